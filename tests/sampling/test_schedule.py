"""Schedules: names, lists of moves with repeats, and their plain form for files."""

import json

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.sampling.moves import MOVES, Gibbs, InformedSplitMerge, Reassign, SplitMerge
from ewens_widgets.sampling.moves.schedule import (
    SCHEDULES,
    Repeated,
    from_plain,
    resolve_schedule,
    to_plain,
)

X = np.random.default_rng(0).normal(size=(10, 2))


def test_the_named_schedules() -> None:
    assert resolve_schedule("paper-1") == (Repeated(Reassign(), 1),)
    assert resolve_schedule("paper-2") == (Repeated(SplitMerge(), 1),)
    assert resolve_schedule("default") == (Repeated(InformedSplitMerge(), 20), Repeated(Gibbs(), 1))
    assert resolve_schedule("default", "own") == (Repeated(InformedSplitMerge(), 20), Repeated(Gibbs(), 3))
    assert resolve_schedule("paper-2", "own") == resolve_schedule("paper-2")
    assert set(SCHEDULES) == {"paper-1", "paper-2", "default"}
    assert set(MOVES) == {"reassign", "split-merge", "gibbs", "informed-split-merge"}


def test_the_papers_probabilities_are_the_default() -> None:
    move = SplitMerge()
    assert move.probabilities == (0.475, 0.475, 0.05)
    assert move.core_jump == 0.01
    assert (move.within, move.between) == ("average", "average")


def test_moves_may_be_given_in_many_ways() -> None:
    given = ["gibbs", ("reassign", 3), [SplitMerge("maximum"), 2], InformedSplitMerge(), Repeated(Gibbs(), 4)]
    assert resolve_schedule(given) == (
        Repeated(Gibbs(), 1),
        Repeated(Reassign(), 3),
        Repeated(SplitMerge("maximum"), 2),
        Repeated(InformedSplitMerge(), 1),
        Repeated(Gibbs(), 4),
    )
    assert resolve_schedule(("gibbs",)) == (Repeated(Gibbs(), 1),)


@pytest.mark.parametrize(
    "moves", [*SCHEDULES, ["gibbs", (SplitMerge("minimum", "hausdorff", (0.5, 0.25, 0.25), 0.0), 2)]]
)
def test_the_plain_form_survives_a_file(moves: object) -> None:
    schedule = resolve_schedule(moves)
    assert from_plain(json.loads(json.dumps(to_plain(schedule)))) == schedule


def test_moves_are_values() -> None:
    assert SplitMerge() == SplitMerge(probabilities=[0.475, 0.475, 0.05])
    assert hash(SplitMerge()) == hash(SplitMerge())
    with pytest.raises(AttributeError):
        SplitMerge().core_jump = 0.5


def test_a_move_with_repeats_is_the_move_written_several_times() -> None:
    for move in ("split-merge", "reassign", "informed-split-merge"):
        together = ew.Sampler(X, moves=[(move, 3)], seed=3).sample(200, progress=False)
        apart = ew.Sampler(X, moves=[move] * 3, seed=3).sample(200, progress=False)
        np.testing.assert_array_equal(together.labels, apart.labels)
        assert together.acceptance == apart.acceptance


def test_moves_handed_from_driver_to_driver_make_the_same_chain() -> None:
    """A move that never acts and draws one number stands between, in the same driver or in another."""
    idle = SplitMerge(probabilities=(0.0, 0.0, 1.0))
    idle_elsewhere = SplitMerge("maximum", probabilities=(0.0, 0.0, 1.0))
    first = ew.Sampler(X, moves=[idle, "reassign", idle, "reassign"], seed=3)
    second = ew.Sampler(X, moves=[idle, "reassign", idle_elsewhere, "reassign"], seed=3)
    np.testing.assert_array_equal(
        first.sample(200, progress=False).labels, second.sample(200, progress=False).labels
    )
