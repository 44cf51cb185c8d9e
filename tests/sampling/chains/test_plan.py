"""The stopping rule: checked at fixed numbers of draws, so that it stops at the same draw everywhere."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_runs import Choosing, Faulty, assert_same_draws, run

import ewens_widgets as ew
from ewens_widgets.sampling.chains.plan import make_plan
from ewens_widgets.sampling.chains.workers import InSequence

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


def test_it_gives_the_draws_of_a_run_of_that_length() -> None:
    chains = run(**EASY)
    assert_same_draws(chains, run(draws=chains.draws, burn_in=50))


@pytest.mark.parametrize("chunk", [7, 45, 1000])
def test_it_stops_at_the_same_draw_whatever_the_chunks_and_their_order(chunk: int) -> None:
    expected = run(**EASY)
    with Choosing(lambda waiting: waiting - 1) as executor:
        found = run(**EASY, chunk=chunk, executor=executor)
    assert_same_draws(found, expected)
    assert found.checks == expected.checks


def test_it_gives_up_at_the_most_and_says_so() -> None:
    rule = ew.until(rhat=1.0001, ess=1e6, most=100, first=40)
    with pytest.warns(UserWarning, match="not met by 100 draws of each chain: R-hat 1"):
        chains = run(draws=None, until=rule)
    assert chains.reached is False
    assert [check.draws for check in chains.checks] == [40, 60, 90, 100]
    assert chains.draws == 100
    assert "not met" in repr(chains)


def test_a_number_of_draws_has_no_rule_to_meet() -> None:
    chains = run()
    assert chains.reached is None
    assert chains.checks == ()


def test_it_is_kept_in_a_checkpoint(tmp_path: Path) -> None:
    expected = run(**EASY)
    with pytest.raises(ew.ChainsError):
        run(
            **EASY,
            chunk=30,
            tries=1,
            checkpoint=tmp_path,
            executor=Faulty(dict.fromkeys(range(13, 99), OSError(5, "gone"))),
        )
    resumed = ew.resume_chains(tmp_path, executor=InSequence(), progress=False)
    assert_same_draws(resumed, expected)
    assert resumed.checks == expected.checks


def test_a_finished_run_can_be_held_to_a_rule(tmp_path: Path) -> None:
    expected = run(**EASY)
    run(draws=2000, burn_in=50, checkpoint=tmp_path)
    executor = Faulty({})
    held = ew.resume_chains(tmp_path, until=EASY["until"], executor=executor, progress=False)
    assert_same_draws(held, expected)
    assert executor.tasks == []


def test_the_stream_says_how_many_draws_are_wanted_next() -> None:
    from chain_runs import data

    stream = ew.stream_chains(data(), **EASY, seed=3, chunk=50, executor=InSequence())
    wanted = [chunk.wanted for chunk in stream]
    assert sorted(set(wanted)) == [check.draws for check in run(**EASY).checks]


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


def test_a_small_most_is_the_only_check() -> None:
    assert list(ew.until(most=50).counts()) == [50]


def test_arviz_itself_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    assert run(**EASY).reached is True


def test_chains_start_only_where_the_prior_allows() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    plan = make_plan(X, 4, 10, 0, 1, None, None, 0, {"prior": ew.priors.DirichletMultinomial(4, 1.0)})
    assert plan.starts == ("one-cluster", "k-means", "prior", "one-cluster")
    assert all(int(state.labels.max()) < 4 for state in plan.first)
    free = make_plan(X, 4, 10, 0, 1, None, None, 0, {"shapes": "own", "prior": ew.priors.FiniteMixture()})
    assert free.starts == ("singletons", "one-cluster", "k-means", "prior")
    with pytest.raises(ValueError, match="at most 4 clusters"):
        make_plan(X, 1, 10, 0, 1, None, "singletons", 0, {"prior": ew.priors.DirichletMultinomial(4, 1.0)})
