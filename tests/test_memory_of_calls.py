"""With a memory limit no public call takes much more, or it refuses and says what to do instead.

Twelve thousand objects: a matrix of all pairs would take 144 MB with a byte a pair, and 1.2 GB with a number;
the limit is 60 MB. Calls of traces and chains, public names and pictures are listed one by one, and one that
is missing here fails.
"""

import asyncio
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.sampling.chains.result import Chains

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a stretch of work"),
]

N_OBJECTS = 12_000
LIMIT = 60_000_000
# Of files, of single columns, of the table that a trace is, or (ν) of another family than the one here.
NO_RESULT = {"load", "column", "columns", "concatenate", "held", "nu_posterior"}
NO_RESULT |= {"clear", "count", "events", "extend", "index", "reserve", "trace"}


def make_data() -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(5)
    centres = 8.0 * rng.normal(size=(5, 2))
    return centres[rng.integers(0, 5, N_OBJECTS)] + rng.normal(size=(N_OBJECTS, 2))


@pytest.fixture(scope="module")
def traces() -> list[ew.Trace]:
    data = make_data()
    return [ew.Sampler(data, initial="k-means", seed=seed).sample(12, progress=False) for seed in range(2)]


@pytest.fixture(scope="module")
def chains(traces: list[ew.Trace]) -> Chains:
    return Chains(traces, starts=("k-means", "k-means"))


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(LIMIT))
    yield
    plt.close("all")


def memory(name: str) -> int:
    """The resident memory of this process, now (VmRSS) or at most (VmHWM), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def extra_memory(call: Callable[[], object]) -> int:
    """Memory that a call takes at most, besides what there was."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # Resets the peak.
    before = memory("VmRSS")
    call()
    return memory("VmHWM") - before


def assert_keeps_to_the_limit(call: Callable[[], object]) -> str:
    """Twice: the first time may load packages and machine code. Returns what a refusal said."""
    said = ""

    def attempt() -> None:
        nonlocal said
        try:
            call()
        except TooLargeError as refusal:
            said = str(refusal)

    attempt()
    assert extra_memory(attempt) <= 1.25 * LIMIT
    if said:
        assert "would take" in said
        assert "(Set EWENS_WIDGETS_MEMORY_LIMIT to allow more.)" in said
    return said


# What each call is called with; whether it refuses here, and if so, words of the way out.
TRACE_CALLS: dict[str, tuple[Callable[[ew.Trace, Path], object], str]] = {
    "answer": (lambda trace, _: str(trace.answer()), ""),
    "consensus_tree": (lambda trace, _: trace.consensus_tree(3), "evidence"),
    "check": (lambda trace, _: trace.check(), ""),
    "cut": (lambda trace, _: trace.cut(n_clusters=3), ""),
    "distance": (lambda trace, _: trace.distance(), "subset"),
    "evidence_tree": (lambda trace, _: trace.evidence_tree(), ""),
    "imputed": (lambda trace, _: trace.imputed(), ""),
    "levels": (lambda trace, _: trace.levels(), ""),
    "linkage": (lambda trace, _: trace.linkage(), "evidence"),
    "methods": (lambda trace, _: trace.methods(), ""),
    "point_estimate": (lambda trace, _: trace.point_estimate(), ""),
    "posterior_at": (lambda trace, _: trace.posterior_at(), ""),
    "report": (lambda trace, _: str(trace.report()), ""),
    "representatives": (lambda trace, _: trace.representatives(200), ""),
    "save": (lambda trace, folder: trace.save(folder / "trace.npz"), ""),
    "similarity": (lambda trace, _: trace.similarity(), "subset"),
    "similarity_tree": (lambda trace, _: trace.similarity_tree(), "evidence"),
    "theta_histogram": (lambda trace, _: trace.theta_histogram(), ""),
    "theta_posterior": (lambda trace, _: trace.theta_posterior(), ""),
    "thin": (lambda trace, _: trace.thin(2), ""),
    "to_arviz": (lambda trace, _: trace.to_arviz(), ""),
    "to_bytes": (lambda trace, _: trace.to_bytes(), ""),
    "to_csv": (lambda trace, folder: trace.to_csv(folder / "trace.csv"), ""),
    "uncertainty": (lambda trace, _: trace.uncertainty(trace.best), ""),
}
CHAINS_CALLS: dict[str, Callable[[Chains, Path], object]] = {
    "diagnostics": lambda chains, _: chains.diagnostics(),
    "ess": lambda chains, _: chains.ess(),
    "pooled": lambda chains, _: chains.pooled(),
    "report": lambda chains, _: str(chains.report()),
    "rhat": lambda chains, _: chains.rhat(),
    "save": lambda chains, folder: chains.save(folder / "chains"),
    "to_arviz": lambda chains, _: chains.to_arviz(),
}
OTHER_CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "Sampler": (lambda: ew.Sampler(make_data(), seed=0).sample(2, progress=False), ""),
    "Sampler with distances": (lambda: ew.Sampler(make_data(), moves="paper-2"), "default"),
    "AffineClustering": (
        lambda: ew.AffineClustering(draws=4, burn_in=0, n_chains=1, initial="k-means", shapes="common").fit(
            make_data()
        ),
        "",
    ),
    "AffineClustering with a tree": (
        lambda: ew.AffineClustering(
            n_clusters=4, draws=4, burn_in=0, n_chains=1, initial="k-means", shapes="common"
        ).fit(make_data()),
        "",
    ),
    "RunningSimilarity": (lambda: ew.RunningSimilarity(N_OBJECTS), "subset"),
    "ChainsView": (lambda: ew.ChainsView(make_data(), iterations=6, burn_in=0).close(), ""),
    "MoveInspector": (lambda: ew.MoveInspector(make_data()), "default"),
    "adjusted_rand": (lambda: ew.adjusted_rand(*two_partitions()), ""),
    "compare": (
        lambda: ew.compare(make_data(), models=["II"], shapes=["common"], folds=2, draws=2, burn_in=40),
        "",
    ),
    "compare own shapes": (
        lambda: ew.compare(make_data(), models=["II"], shapes=["own"], folds=2, draws=2, burn_in=40),
        "",
    ),
    "confusion_table": (lambda: ew.confusion_table(*two_partitions()), ""),
    "error_rate": (lambda: ew.error_rate(*two_partitions()), ""),
    "cite": (ew.cite, ""),
    "labels_csv": (lambda: ew.labels_csv(two_partitions()[0]), ""),
    "log_likelihood": (lambda: ew.log_likelihood(make_data(), two_partitions()[0], 1.0), ""),
    "profile": (lambda: str(ew.profile(two_partitions()[1], make_data())), ""),
    "sample_chains": (
        lambda: ew.sample_chains(
            make_data(), chains=2, draws=2, burn_in=0, initial="k-means", progress=False
        ),
        "",
    ),
    "watch": (lambda: ew.watch([two_partitions()[0]] * 3, make_data()).close(), ""),
    "summarize": (lambda: ew.summarize(np.stack([two_partitions()[1]] * 4)), "subset"),
    "variation_of_information": (lambda: ew.variation_of_information(*two_partitions()), ""),
}
# Kinds of values and errors; and what is the same as, or a part of, something that is called here.
NO_CALLS = {
    *("ArchiveError", "ChainsError", "DataWarning", "Event", "Gamma", "State", "TableError"),
    *("Chains", "Explorer", "Posterior", "DrawTable", "Trace", "diagnose", "read_table", "report"),
    *("resume_chains", "to_arviz", "until"),
    # Of few objects by their nature, and refused beyond.
    *("AffineLab", "PointsLab", "PriorLab", "exact_posterior"),
}


def two_partitions() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """With as many clusters as make a table of all their pairs large."""
    rng = np.random.default_rng(6)
    return rng.integers(0, 3000, N_OBJECTS), rng.integers(0, 40, N_OBJECTS)


def methods_of(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_every_call_is_listed() -> None:
    assert methods_of(ew.Trace) - NO_RESULT == set(TRACE_CALLS)
    assert methods_of(Chains) - NO_RESULT == set(CHAINS_CALLS)
    names = {name for name in ew.__all__ if not inspect.ismodule(getattr(ew, name)) and name[0] != "_"}
    assert names - NO_CALLS == {name.partition(" ")[0] for name in OTHER_CALLS}
    assert {name for name in ew.plots.__all__ if name.startswith(("plot_", "animate_"))} == set(PLOTS)


@pytest.mark.parametrize("name", sorted(TRACE_CALLS))
def test_calls_of_a_trace(name: str, traces: list[ew.Trace], tmp_path: Path) -> None:
    call, way_out = TRACE_CALLS[name]
    assert_says(way_out, assert_keeps_to_the_limit(lambda: call(traces[0], tmp_path)))


@pytest.mark.parametrize("name", sorted(CHAINS_CALLS))
def test_calls_of_chains(name: str, chains: Chains, tmp_path: Path) -> None:
    assert_says("", assert_keeps_to_the_limit(lambda: CHAINS_CALLS[name](chains, tmp_path)))


@pytest.mark.parametrize("name", sorted(OTHER_CALLS))
def test_other_calls(name: str) -> None:
    call, way_out = OTHER_CALLS[name]
    assert_says(way_out, assert_keeps_to_the_limit(call))


def assert_says(way_out: str, said: str) -> None:
    assert bool(said) == bool(way_out)
    assert way_out in said


PLOTS: dict[str, Callable[[ew.Trace], object]] = {
    "animate_partitions": lambda trace: ew.plots.animate_partitions(make_data(), trace.labels[:2]),
    "plot_boxplots": lambda trace: ew.plots.plot_boxplots(make_data(), trace.best),
    "plot_heatmap": ew.plots.plot_heatmap,
    "plot_scatter": lambda trace: ew.plots.plot_scatter(make_data(), trace.best),
    "plot_theta": ew.plots.plot_theta,
    "plot_traces": ew.plots.plot_traces,
    "plot_tree": lambda trace: ew.plots.plot_tree(trace.evidence_tree()),
}


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_pictures(name: str, traces: list[ew.Trace]) -> None:
    assert_keeps_to_the_limit(lambda: PLOTS[name](traces[0]))


def test_the_explorer_plays_without_pairs() -> None:
    async def play() -> None:
        explorer = ew.Explorer(make_data(), initial="k-means", iterations=6, burn_in=0, speed=None)
        explorer.player.run_to_end()
        await explorer.player.wait()
        explorer.player.refresh()
        assert {view._error.layout.display for view in explorer.views.values()} == {"none"}
        explorer.close()

    assert assert_keeps_to_the_limit(lambda: asyncio.run(play())) == ""


def test_a_matrix_would_be_noticed() -> None:
    assert extra_memory(lambda: np.ones((N_OBJECTS, N_OBJECTS), dtype=np.uint8)) > 1.25 * LIMIT
