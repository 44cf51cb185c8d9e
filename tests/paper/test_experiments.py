import numpy as np
import pytest
from traces import blobs, synthetic_trace

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.paper.experiments import EXPERIMENTS, ROADS_VARIABLE, Experiment, experiment_named


@pytest.fixture(autouse=True)
def no_roads(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a copy of the roads, whatever the machine has in its cache."""
    monkeypatch.delenv(ROADS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda entry: entry.key)
def test_the_data_have_the_true_number_of_clusters(experiment: Experiment) -> None:
    data = experiment.load(0)
    assert len(np.unique(data.labels)) == experiment.n_clusters
    assert experiment.drawn is not np.array_equal(data.X, experiment.load(1).X) or "stand-in" in data.name
    Posterior.from_data(data, model=experiment.model)


def test_names_are_unique_and_found() -> None:
    keys = [experiment.key for experiment in EXPERIMENTS]
    assert len(set(keys)) == len(keys)
    assert experiment_named("wine-3").model == "III"
    with pytest.raises(ValueError, match=r"no experiment 'iris'; choose from unit-square-1"):
        experiment_named("iris")


def test_roads_that_were_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "stand-in" in experiment_named("roads-3").load(0).name
    monkeypatch.setenv(ROADS_VARIABLE, "nowhere.txt")
    with pytest.raises(FileNotFoundError):
        experiment_named("roads-3").load(0)


@pytest.mark.parametrize("key", ["half-moons-2", "wine-2"])
def test_a_chain_of_singletons_can_be_read_too(key: str) -> None:
    rng = np.random.default_rng(0)
    X, _ = blobs(rng, n_objects=30)
    experiment = experiment_named(key)
    trace = synthetic_trace(np.tile(np.arange(30), (10, 1)), Posterior.from_data(X), rng)
    assert experiment.read(trace).max() + 1 == experiment.n_clusters
