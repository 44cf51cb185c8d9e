"""The paper's settings, number by number, and what running them gives."""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from other_methods import METHODS, comparison_table, figures
from traces import blobs, synthetic_trace

import ewens_widgets as ew
from ewens_widgets import app
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.paper.published import ALL, ROADS_VARIABLE, published_table, run_paper
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.views.explorer.presets import DATA, PAPER_SCHEDULES, PRESETS

STORED = Path(__file__).with_name("results.json")
EVEN, MERGING, WINE = (0.475, 0.475, 0.05), (0.019, 0.98, 0.001), (0.09, 0.90, 0.01)
# As arXiv 1611.09890 prints them: model, within, between, probabilities, burn-in, draws, clusters.
PRINTED = {
    "unit-square-1": ("I", "average", "average", EVEN, 500, 1000, 4),
    "unit-square-2": ("II", "average", "average", EVEN, 500, 2000, 4),
    "unit-square-3": ("III", "average", "average", EVEN, 500, 2000, 4),
    "half-moons-2": ("II", "minimum", "average", MERGING, 610, 1000, 2),
    "half-moons-3": ("III", "maximum", "minimum", MERGING, 400, 1000, 2),
    "half-moons-3-discussion": ("III", "minimum", "maximum", MERGING, 400, 1000, 2),
    "leukemia-1": ("I", "average", "average", EVEN, 500, 1000, 2),
    "wine-1": ("I", "minimum", "average", WINE, 1350, 1500, 3),
    "wine-2": ("II", "minimum", "average", WINE, 1350, 1500, 3),
    "roads-3": ("III", "average", "average", EVEN, 500, 1000, 2),
}
REPORTED = {"half-moons-2": ("error 0.115", "0.23"), "half-moons-3": ("error 0.11", "0.15")}


@pytest.fixture(autouse=True)
def no_roads(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a copy of the roads, whatever the machine has in its cache."""
    monkeypatch.delenv(ROADS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def test_the_settings_are_the_printed_ones() -> None:
    found = {
        key: (e.model, e.within, e.between, e.probabilities, e.burn_in, e.draws, e.n_clusters)
        for key, e in ew.paper.experiments.items()
    }
    assert found == PRINTED
    assert {entry.core_jump for entry in ew.paper.experiments.values()} == {0.01}
    for key, told in REPORTED.items():
        assert (ALL[key].claim, ALL[key].k_means_claim) == told


@pytest.mark.parametrize("key", ALL)
def test_the_data_have_the_true_number_of_clusters(key: str) -> None:
    experiment = ALL[key]
    data = experiment.load(0)
    assert len(np.unique(data.labels)) == experiment.n_clusters
    is_drawn = key.startswith(("unit", "half")) or "stand-in" in data.name
    assert is_drawn is not np.array_equal(data.X, experiment.load(1).X)
    Posterior.from_data(data, model=experiment.model)


def test_the_table_has_a_row_per_experiment_and_reads_well() -> None:
    lines = repr(ew.paper.experiments).splitlines()
    assert len(lines) == 1 + len(PRINTED)
    row = next(line for line in lines if line.startswith("half-moons-2 ")).split("  ")
    assert {"0.019/0.98/0.001", "610", "1000", "minimum", "error 0.115"} <= {cell.strip() for cell in row}
    assert "<td>0.019/0.98/0.001</td>" in ew.paper.experiments._repr_html_()
    assert "wine-3" not in ew.paper.experiments
    with pytest.raises(ValueError, match=r"no experiment 'iris'; choose from unit-square-1"):
        ew.paper.run("iris")
    with pytest.raises(ValueError, match="wine-3 is not in the paper"):
        ew.paper.run("wine-3")


def test_roads_that_were_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "stand-in" in ALL["roads-3"].load(0).name
    monkeypatch.setenv(ROADS_VARIABLE, "nowhere.txt")
    with pytest.raises(FileNotFoundError):
        ALL["roads-3"].load(0)


@pytest.mark.parametrize(("key", "reading"), [("half-moons-2", "single"), ("wine-2", "consensus")])
def test_a_chain_of_singletons_can_be_read_too(key: str, reading: str) -> None:
    rng = np.random.default_rng(0)
    X, _ = blobs(rng, n_objects=30)
    trace = synthetic_trace(np.tile(np.arange(30), (10, 1)), Posterior.from_data(X), rng)
    assert ALL[key].cut(trace, reading).max() + 1 == ALL[key].n_clusters


def test_a_run_tells_errors_clusters_and_convergence() -> None:
    found = ew.paper.run("half-moons-2", "as-printed", seeds=2)
    assert found.iterations == 1610
    assert found.errors.shape == found.n_clusters.shape == (2,)
    assert len(found.trace) == 1000
    assert str(found).splitlines()[0].startswith("half-moons, model II, as-printed, 1610 iterations: R-hat ")
    means = [f"{found.errors.mean():.3f}", f"{found.n_clusters.mean():.1f}"]
    assert str(found).splitlines()[-1].split() == ["mean", *means]
    assert "<table" in found._repr_html_()
    assert found.plot().axes
    longer = ew.paper.run("half-moons-2", "metropolis-hastings", seeds=1, iterations=5000)
    assert (longer.iterations, len(longer.trace)) == (5000, 1250)


def test_the_example_of_the_explorer_shows_the_reported_error() -> None:
    state = dict(parse_qsl(PRESETS["as the authors may have seen it"].state))
    experiment = ALL["half-moons-2"]
    assert PAPER_SCHEDULES[state["moves"]] == resolve_schedule([experiment.move()])
    assert (int(state["burn_in"]), int(state["iterations"])) == (610, 1610)
    settings = {"moves": [experiment.move()], "metric": state["metric"], "acceptance": state["ratio"]}
    data, traces = DATA[state["data"]](), []
    for seed in (int(state["seed"]), 0):
        with pytest.warns(UserWarning, match="as-printed"):
            sampler = ew.Sampler(data, model=state["model"], seed=seed, **settings)
        traces.append(sampler.sample(1000, 610, progress=False))
    found = (
        traces[0].similarity_tree("single").cut(n_clusters=int(state["cut"]), min_size=int(state["least"]))
    )
    assert ew.error_rate(data.labels, found) == pytest.approx(0.115)
    assert traces[0].n_clusters.mean() < 10
    assert np.all(traces[1].n_clusters == 1)


def test_the_stored_numbers_are_of_these_settings_and_fill_the_page(
    stored: dict[str, Any], repository: Path
) -> None:
    assert stored["seeds"] == 10
    assert list(stored["experiments"]) == list(ALL)
    for key, found in stored["experiments"].items():
        assert found["settings"] == json.loads(json.dumps(ALL[key].settings()))
        for method in ("as printed", "corrected"):
            if ALL[key].draws:
                assert found[method]["iterations"] == ALL[key].burn_in + ALL[key].draws
                assert len(found[method]["errors"]) == len(found[method]["n_clusters"]) == 10
    page = (repository / "docs" / "results.md").read_text(encoding="utf-8")
    assert published_table(stored) in page
    assert comparison_table(stored) in page


def test_what_the_page_says_of_convergence(stored: dict[str, Any]) -> None:
    longer = {key: found.get("converged", {}) for key, found in stored["experiments"].items()}
    agree = {key: found["iterations"] for key, found in longer.items() if found and found["rhat"] <= 1.05}
    million = dict.fromkeys(("unit-square-2", "unit-square-3"), 1_000_000)
    assert agree == {"unit-square-1": 100_000, "leukemia-1": 100_000, **million}
    differ = {
        key: (longer[key]["iterations"], len(longer[key]["errors"])) for key in set(PRINTED) - set(agree)
    }
    others = ("half-moons-2", "half-moons-3", "half-moons-3-discussion", "wine-1", "wine-2", "roads-3")
    assert differ == dict.fromkeys(others, (1_000_000, 10))
    ours = {key: found["default"]["rhat"] for key, found in stored["experiments"].items()}
    assert {key for key, rhat in ours.items() if rhat > 1.05} == {"wine-1"}
    assert ours["wine-1"] < 1.1
    assert all(len(found["default"]["errors"]) == 10 for found in stored["experiments"].values())


@pytest.mark.slow
@pytest.mark.parametrize("key", ["unit-square-1", "half-moons-2", "half-moons-3-discussion", "wine-2"])
@pytest.mark.parametrize(
    ("method", "acceptance"), [("as printed", "as-printed"), ("corrected", "metropolis-hastings")]
)
def test_a_stored_column_is_what_is_computed(
    stored: dict[str, Any], key: str, method: str, acceptance: str
) -> None:
    found, kept = ew.paper.run(key, acceptance, 3).plain(), stored["experiments"][key][method]
    for name in ("errors", "n_clusters"):
        assert found[name] == kept[name][:3]
    assert (found["rhat"], found["iterations"]) == (kept["rhat"], kept["iterations"])


def test_what_the_error_of_print_does_with_the_printed_settings(stored: dict[str, Any]) -> None:
    """With equal probabilities the chain stays at singletons; with the paper's own, merges win."""
    found = {key: stored["experiments"][key]["as printed"]["n_clusters"] for key in PRINTED}
    for key in ("unit-square-1", "unit-square-2", "unit-square-3"):
        assert min(found[key]) > 79
    assert max(found["half-moons-2"]) < 25
    assert max(found["wine-2"]) < 10
    for key in PRINTED:
        assert stored["experiments"][key]["corrected"]["rhat"] > 1.2


def test_the_tables_have_errors_clusters_and_convergence() -> None:
    chain = {"errors": [0.0, 0.1], "n_clusters": [4.0, 5.0], "rhat": None, "iterations": 1500}
    found: dict[str, Any] = {key: chain | {"rhat": 1.01} for key in ("as printed", "corrected", "default")}
    found |= {"converged": {**chain, "iterations": 100_000}, "k-means": {"errors": [0.2, 0.2]}}
    found |= {"our answer": {"adjusted_rand": 0.6, "groups": [3, 4]}, "mclust": {}}
    one = "0.050 (0.000–0.100); K 4.5; R-hat 1.01"
    longer = f"{one.replace('1.01', '∞')}, 100 000 iterations"
    both = {"experiments": {"half-moons-2": found}}
    row = f"| `half-moons-2` | error 0.115 | {one} | {one} | {longer} | {one} |"
    assert published_table(both).splitlines()[2] == row
    row = "| half-moons | II | 0.050 (0.000–0.100) | 0.23 | 0.200 | – | 0.60 (3–4) | – |"
    assert comparison_table(both).splitlines()[2] == row


@pytest.mark.slow
def test_other_methods_are_run_on_the_data() -> None:
    found = figures(ALL["roads-3"], 2, draws=50, burn_in=50, n_chains=2)
    assert tuple(found) == METHODS
    assert len(found["k-means"]["errors"]) == 2


@pytest.mark.slow
def test_the_command_writes_numbers_a_page_and_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "results"
    options = ["--output", str(folder), "--fast", "--only", "roads-3", "--jobs", "2"]
    assert app.main(["paper", *options]) == 0
    assert f"Wrote {folder / 'results.md'}" in capsys.readouterr().out
    text, numbers = ((folder / f"results.{kind}").read_text(encoding="utf-8") for kind in ("md", "json"))
    names = {path.name for path in folder.glob("*.png")}
    assert names == {f"roads-3-{kind}.png" for kind in ("default", "as-printed", "metropolis-hastings")}
    assert all(f"]({name})" in text for name in names)
    assert "over 2 seeds" in text
    assert "The real Denmark roads were not at hand" in text
    found = json.loads(numbers)["experiments"]["roads-3"]
    assert set(found) == {"settings", "as printed", "corrected", "converged", "default"}
    assert found["default"]["iterations"] == 100
    assert published_table(json.loads(numbers)) in text


def test_what_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["paper", "--output", str(tmp_path), "--only", "iris"]) == 1
    assert "no experiment 'iris'" in capsys.readouterr().err
    roads = tmp_path / "roads.txt"
    try:
        command = ["paper", "--output", str(tmp_path), "--only", "roads-3", "--jobs", "1", "--roads"]
        assert app.main([*command, str(roads)]) == 1
    finally:
        os.environ.pop(ROADS_VARIABLE, None)
    assert f"no file {roads}" in capsys.readouterr().err
    with pytest.raises(ValueError, match="choose experiments from unit-square-1"):
        run_paper(tmp_path, only=[])
    with pytest.raises(ValueError, match="at least 1; got 0"):
        run_paper(tmp_path, jobs=0)
