"""Sessions go on where they were saved, in the file format of today and in the first one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sampling.sessions import old_file, running, unzipped

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.draws import SCHEMA
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.session import Session, pack_session, unpack_session


@pytest.mark.parametrize("pack", [pack_session, old_file])
@pytest.mark.parametrize("draws", [0, 5])
@pytest.mark.parametrize("moves", ["default", ["gibbs", "reassign", "gibbs"]])
def test_everything_comes_back(pack: Callable[[Session], bytes], draws: int, moves: object) -> None:
    X = np.random.default_rng(5).normal(size=(7, 2))
    data = Dataset(X=X, name="seven", feature_names=("width", "height"), description="Made up.")
    sampler = ew.Sampler(data, moves=moves, concentration=ew.Gamma(2.0, 1.0), metric="euclidean")
    recorder = Recorder(sampler.posterior, sampler.move_names)
    if draws:
        recorder.extend(sampler.advance(draws))
    loaded = unpack_session(
        pack(Session(data, sampler, recorder, {"iterations": 9, "burn_in": 0, "note": "x"}))
    )
    assert loaded.settings == {"iterations": 9, "burn_in": 0, "note": "x"}
    assert (loaded.dataset.name, loaded.dataset.feature_names) == (data.name, data.feature_names)
    assert (loaded.dataset.description, loaded.dataset.labels) == (data.description, None)
    np.testing.assert_array_equal(loaded.dataset.X, data.X)
    assert loaded.recorder.move_names == recorder.move_names
    once = len(set(recorder.move_names)) == len(recorder.move_names)
    for name in SCHEMA:
        # The old files counted a move that a schedule holds twice by its name.
        if once or pack is pack_session or name not in ("proposals", "acceptances"):
            np.testing.assert_array_equal(loaded.recorder.column(name), recorder.column(name))
    assert loaded.sampler.iteration == draws
    np.testing.assert_array_equal(loaded.sampler.advance(4).labels, sampler.advance(4).labels)
    loaded.sampler.reset()
    sampler.reset()
    np.testing.assert_array_equal(loaded.sampler.advance(4).labels, sampler.advance(4).labels)


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_own_shapes_and_their_prior_come_back(model: str) -> None:
    data = running().dataset
    prior = ew.priors.FiniteMixture(0.5, ew.priors.Poisson(2.0))
    sampler = ew.Sampler(data, model=model, shapes="own", prior=prior)
    recorder = Recorder(sampler.posterior, sampler.move_names)
    recorder.extend(sampler.advance(5))
    loaded = unpack_session(pack_session(Session(data, sampler, recorder, {"iterations": 9, "burn_in": 0})))
    assert loaded.sampler.posterior.prior == prior
    assert loaded.sampler.posterior.shapes == "own"
    for name in SCHEMA:
        np.testing.assert_array_equal(loaded.recorder.column(name), recorder.column(name))
    first, second = loaded.sampler.advance(6), sampler.advance(6)
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.sigma, second.sigma)


def test_a_session_is_one_archive_without_archives_inside(tmp_path: Path) -> None:
    session = pack_session(running())
    assert not any(name.endswith((".zip", ".npz")) for name in unzipped(session))
    (tmp_path / "session.npz").write_bytes(session)
    with np.load(tmp_path / "session.npz") as file:
        assert file["data.X"].shape == (7, 2)
        assert file["draws.labels"].shape == (5, 7)
    with pytest.raises(ew.ArchiveError, match="holds a session, not a sampler"):
        ew.Sampler.load(tmp_path / "session.npz")
    with pytest.raises(ValueError, match="holds a trace, not a session"):
        unpack_session(running().recorder.trace().to_bytes())


def test_names_of_rows_come_back() -> None:
    session = running()
    data = session.dataset
    names = tuple(f"row {k}" for k in range(data.n_objects))
    named = Dataset(data.X, labels=data.labels, label_names=data.label_names, row_names=names, noun="wine")
    loaded = unpack_session(pack_session(replace(session, dataset=named)))
    assert (loaded.dataset.row_names, loaded.dataset.noun) == (names, "wine")
    assert loaded.dataset.classes == named.classes
    assert unpack_session(pack_session(session)).dataset.row_names is None
