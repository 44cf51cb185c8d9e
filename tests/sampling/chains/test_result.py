"""The draws of several chains: what they say together, saving them, and the rule that stops them."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_runs import assert_same_draws, assert_same_trace, run

import ewens_widgets as ew


@pytest.fixture(scope="module")
def chains() -> ew.Chains:
    return run(draws=200, burn_in=50)


def test_it_is_a_sequence_of_traces(chains: ew.Chains) -> None:
    assert len(chains) == 4
    assert chains[0] is chains.traces[0]
    assert chains[-1] is chains.traces[3]
    assert list(chains) == list(chains.traces)
    assert chains.draws == 200
    with pytest.raises(TypeError, match=r"one by one.*trace\[500:\]"):
        chains[50:]
    with pytest.raises(IndexError):
        chains[4]


def test_its_numbers_are_those_of_all_chains(chains: ew.Chains, tmp_path: Path) -> None:
    numbers = ew.diagnose(chains.traces)
    assert chains.rhat() == numbers.rhat
    assert (chains.ess(), chains.ess("tail")) == (numbers.ess_bulk, numbers.ess_tail)
    assert chains.diagnostics().similarity_gap == numbers.similarity_gap
    assert chains.diagnostics(similarity=False).similarity_gap is None
    with pytest.raises(ValueError, match='"bulk" or "tail"'):
        chains.ess("middle")
    pooled = chains.pooled()
    assert len(pooled) == 800
    assert_same_trace(pooled[200:400], chains[1])
    assert chains.pooled() is pooled
    assert pooled.acceptance == pytest.approx(chains.diagnostics().acceptance)
    report = chains.report()
    assert report.diagnostics.n_chains == 4
    assert str(report) == str(ew.report(list(chains)))
    exported = chains.to_arviz().posterior["n_clusters"]
    assert exported.shape == (4, 200)
    np.testing.assert_array_equal(exported[2], chains[2].n_clusters)
    chains.save(tmp_path / "chains.npz")
    loaded = ew.Chains.load(tmp_path / "chains.npz")
    assert_same_draws(loaded, chains)
    assert (loaded.starts, loaded.reached, loaded.checks) == (chains.starts, None, ())
    assert loaded.rhat() == chains.rhat()
    assert_same_draws(pickle.loads(pickle.dumps(chains)), chains)  # noqa: S301 - made a moment ago


def test_a_stopping_rule_is_saved_with_what_it_saw(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not met"):
        chains = run(draws=None, until=ew.until(ess=1e9, most=30, first=8), burn_in=0)
    chains.save(tmp_path / "chains.npz")
    loaded = ew.Chains.load(tmp_path / "chains.npz")
    assert loaded.checks == chains.checks
    assert loaded.reached is False


def test_other_files_are_refused(chains: ew.Chains, tmp_path: Path) -> None:
    chains[0].save(tmp_path / "trace.npz")
    with pytest.raises(ew.ArchiveError, match="holds a trace, not a chains"):
        ew.Chains.load(tmp_path / "trace.npz")


def test_it_shows_itself(chains: ew.Chains) -> None:
    assert repr(chains).startswith("Chains(chains: 4, draws of each: 200, starts: singletons, one-cluster, ")
    assert "<caption>Chains</caption>" in chains._repr_html_()
    assert "draws of each: 10 to 200" in repr(ew.Chains((chains[0], chains[1][:10])))
    assert repr(ew.Chains(())) == "Chains(chains: 0, draws of each: 0)"


def test_nothing_but_traces_is_taken() -> None:
    with pytest.raises(TypeError, match="made of traces"):
        ew.Chains((1, 2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no chains"):
        ew.Chains(()).pooled()


EASY = {"draws": None, "until": ew.until(rhat=1.1, ess=200, most=3000, first=40), "burn_in": 50}


def test_it_stops_when_the_chains_agree() -> None:
    chains = run(**EASY)
    assert chains.reached is True
    *earlier, last = chains.checks
    assert earlier
    assert not any(check.reached for check in earlier)
    assert last.reached
    assert last.rhat <= 1.1
    assert last.ess >= 200
    assert [check.draws for check in chains.checks] == list(EASY["until"].counts())[: len(chains.checks)]
    assert {len(trace) for trace in chains} == {last.draws}
    numbers = chains.diagnostics()
    assert (numbers.worst_rhat, numbers.least_ess) == (last.rhat, last.ess)


@pytest.mark.parametrize("chunk", [None, 45])
def test_it_stops_at_the_same_draw_whatever_the_tasks(
    chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a run of that length would; ArviZ is not needed for it."""
    monkeypatch.setitem(sys.modules, "arviz", None)
    found = run(**EASY, chunk=chunk, n_jobs=3)
    assert_same_draws(found, run(draws=found.draws, burn_in=50))
    assert found.checks == run(**EASY).checks


def test_it_may_drop_the_first_half() -> None:
    rule = ew.until(rhat=1.0001, ess=1e6, most=100, first=40, drop_half=True)
    with pytest.warns(UserWarning, match="not met by 50 draws of each chain"):
        chains = run(draws=None, until=rule, burn_in=0)
    assert [check.draws for check in chains.checks] == [20, 30, 45, 50]
    assert_same_draws(chains, run(draws=50, burn_in=50))
    with pytest.raises(ValueError, match="first must be at least 16"):
        ew.until(first=15, drop_half=True)


def test_it_gives_up_at_the_most_and_says_so() -> None:
    rule = ew.until(rhat=1.0001, ess=1e6, most=100, first=40)
    with pytest.warns(UserWarning, match="not met by 100 draws of each chain: R-hat 1"):
        chains = run(draws=None, until=rule)
    assert chains.reached is False
    assert [check.draws for check in chains.checks] == [40, 60, 90, 100]
    assert list(ew.until(most=50).counts()) == [50]
    assert chains.draws == 100
    assert "not met" in repr(chains)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rhat": 1.0}, "rhat must be above 1"),
        ({"rhat": float("nan")}, "rhat must be above 1"),
        ({"ess": 0}, "ess must be a positive number"),
        ({"ess": float("inf")}, "ess must be a positive number"),
        ({"most": 7}, "most must be at least 8"),
        ({"first": 1}, "first must be at least 8"),
    ],
)
def test_senseless_rules_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ew.until(**arguments)
