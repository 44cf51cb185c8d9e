"""Looking at a chain one proposal at a time, and the stages in which a proposal is told."""

import warnings
from typing import Any

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.analysis.explanation.inspection import Inspection
from ewens_widgets.sampling.moves import Gibbs, InformedSplitMerge, Reassign, SplitMerge
from ewens_widgets.sampling.moves.move import Move, count, from_log, signed

DATA = ew.datasets.unit_square(per_cluster=5, seed=1)
MOVES = (Reassign(), SplitMerge(), InformedSplitMerge())


def inspection(move: Move, **settings: object) -> Inspection:
    given = {"model": "I", "initial": "prior", "seed": 2, **settings}
    return Inspection(ew.Sampler(DATA, moves=[move], **given))


@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_going_on_follows_the_sampler(move: Move) -> None:
    sampler = ew.Sampler(DATA, model="I", moves=[move], initial="prior", seed=2)
    looked_at = Inspection(sampler)
    assert sampler.iteration == 0
    for iteration, event in enumerate(sampler.events(40, block=1)):
        assert looked_at.iteration == iteration
        assert looked_at.gap < 1e-9
        assert (looked_at.event.log_ratio is None) == (looked_at.proposal.proposed is None)
        looked_at.next_iteration()
        assert np.array_equal(looked_at.proposal.labels, event.labels)


def test_a_sweep_is_gone_through_object_by_object() -> None:
    sampler = ew.Sampler(DATA, model="I", moves=["gibbs"], initial="prior", seed=2)
    looked_at = Inspection(sampler)
    for iteration, event in enumerate(sampler.events(3)):
        for item in range(20):
            assert looked_at.iteration == iteration
            assert looked_at.proposal.choices[0].objects.tolist() == [item]
            assert looked_at.gap < 1e-9
            assert not looked_at.can_accept_anyway
            looked_at.next_iteration()
        assert np.array_equal(looked_at.proposal.labels, event.labels)


@pytest.mark.parametrize("move", [*MOVES, Gibbs()], ids=repr)
def test_proposing_again_keeps_the_partition_and_draws_anew(move: Move) -> None:
    looked_at = inspection(move)
    before, iteration = looked_at.proposal.labels, looked_at.iteration
    seen = set()
    for _ in range(30):
        looked_at.propose_again()
        assert np.array_equal(looked_at.proposal.labels, before)
        assert looked_at.iteration == iteration
        assert looked_at.gap < 1e-9
        proposed = looked_at.proposal.proposed
        seen.add(None if proposed is None else tuple(proposed))
    assert len(seen) > 1


@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_a_rejected_proposal_can_be_accepted_anyway(move: Move) -> None:
    looked_at = inspection(move)
    for _ in range(200):
        if looked_at.can_accept_anyway:
            break
        looked_at.next_iteration()
    proposed, iteration = looked_at.proposal.proposed, looked_at.iteration
    looked_at.accept_anyway()
    assert np.array_equal(looked_at.proposal.labels, proposed)
    assert looked_at.iteration == iteration + 1
    assert looked_at.gap < 1e-9


def test_without_a_rejected_proposal_accepting_is_going_on() -> None:
    looked_at, twin = inspection(Gibbs()), inspection(Gibbs())
    looked_at.accept_anyway()
    twin.next_iteration()
    assert np.array_equal(looked_at.proposal.labels, twin.proposal.labels)


def test_another_move_starts_from_the_same_partition() -> None:
    looked_at = inspection(Gibbs())
    for _ in range(7):
        looked_at.next_iteration()
    labels = looked_at.proposal.labels
    looked_at.use(SplitMerge(within="maximum"))
    assert np.array_equal(looked_at.proposal.labels, labels)
    assert looked_at.proposal.move == "split-merge"
    looked_at.use(Gibbs())
    assert looked_at.proposal.choices[0].objects.tolist() == [0]


def test_running_on_is_the_sampler_s_own_schedule() -> None:
    sampler = ew.Sampler(DATA, model="II", seed=9)
    looked_at = Inspection(sampler, Reassign())
    looked_at.run(25)
    *_, last = sampler.events(25)
    assert looked_at.iteration == 25
    assert np.array_equal(looked_at.proposal.labels, last.labels)
    looked_at.reset()
    assert looked_at.iteration == 0
    assert looked_at.proposal.labels.max() == 19
    with pytest.raises(ValueError, match="number of iterations"):
        looked_at.run(0)


def test_the_acceptance_rule_of_the_sampler_is_kept_without_another_warning() -> None:
    with pytest.warns(UserWarning, match="as-printed"):
        sampler = ew.Sampler(DATA, moves="paper-2", acceptance="as-printed", initial="prior", seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        looked_at = Inspection(sampler)
        for _ in range(20):
            looked_at.next_iteration()
            assert looked_at.gap < 1e-9
    assert looked_at.proposal.as_printed


def stages(looked_at: Inspection, kind: str) -> dict[str, Any]:
    for _ in range(300):
        if looked_at.proposal.kind == kind and looked_at.proposal.log_uniform is not None:
            return {stage.key: stage for stage in looked_at.stages}
        looked_at.next_iteration()
    raise AssertionError(kind)


def test_a_split_is_told_from_the_cluster_to_the_decision() -> None:
    looked_at = inspection(SplitMerge(within="maximum"))
    told = stages(looked_at, "split")
    assert list(told) == [
        "start",
        "action",
        "choice",
        "cores",
        "sides",
        "jump",
        "proposal",
        "ratio",
        "decision",
    ]
    proposal = looked_at.proposal
    cluster = proposal.choices[1]
    assert f"probability {cluster.probability:.3g}" in told["choice"].text
    assert "largest distance within" in told["choice"].text
    assert told["cores"].cores == proposal.allocation.cores
    shares = told["sides"].shares
    assert np.array_equal(np.flatnonzero(np.isfinite(shares)), np.sort(proposal.allocation.members))
    assert signed(proposal.log_ratio()) in told["ratio"].text
    assert told["proposal"].colours == "after"
    assert "a split is tried" in told["proposal"].text
    assert "a merge is tried" in told["proposal"].text
    assert told["decision"].colours == ("after" if proposal.accepted() else "before")
    assert ("accepted" if proposal.accepted() else "rejected") in told["decision"].text


@pytest.mark.parametrize(
    ("move", "kind", "keys"),
    [
        (
            SplitMerge(),
            "merge",
            ["action", "choice", "cores", "sides", "jump", "proposal", "ratio", "decision"],
        ),
        (InformedSplitMerge(), "split", ["choice", "sides", "proposal", "ratio", "decision"]),
        (InformedSplitMerge(), "merge", ["choice", "sides", "proposal", "ratio", "decision"]),
        (Reassign(), "reassign", ["choice", "target", "proposal", "ratio", "decision"]),
    ],
)
def test_every_kind_of_proposal_has_its_stages(move: Move, kind: str, keys: list[str]) -> None:
    told = stages(inspection(move), kind)
    assert list(told) == ["start", *keys]
    assert all(stage.title and stage.text.endswith(".") for stage in told.values())
    way_back = [stage.title for stage in told.values() if "way back" in stage.title]
    assert bool(way_back) == (kind == "merge")


def test_a_gibbs_draw_is_told_with_its_candidates() -> None:
    looked_at = inspection(Gibbs())
    told = {stage.key: stage for stage in looked_at.stages}
    assert list(told) == ["start", "choice", "target", "draw", "ratio", "decision"]
    best = looked_at.proposal.choices[1].probabilities.max()
    assert f"probability {best:.3g}" in told["target"].text
    assert "always accepted" in told["decision"].text


def test_a_jumped_core_is_pointed_at() -> None:
    looked_at = inspection(SplitMerge(core_jump=0.8))
    for _ in range(200):
        allocation = looked_at.proposal.allocation
        if looked_at.proposal.kind == "split" and allocation.jumped is not None:
            break
        looked_at.next_iteration()
    told = {stage.key: stage for stage in looked_at.stages}
    assert told["jump"].ringed.tolist() == [allocation.jumped]
    assert f"object {allocation.jumped + 1} did" in told["jump"].text


def test_where_nothing_is_proposed_the_stages_say_why() -> None:
    looked_at = inspection(SplitMerge(probabilities=(0.0, 0.0, 1.0)))
    assert [stage.key for stage in looked_at.stages] == ["start", "action", "decision"]
    assert "keeps the partition" in looked_at.stages[-1].text
    assert looked_at.gap == 0.0


@pytest.mark.parametrize(
    ("log_value", "text"),
    [
        (0.0, "1"),
        (np.log(0.475), "0.475"),
        (-230.0, "1.29·10⁻¹⁰⁰"),
        (-np.inf, "0"),
        (np.inf, "∞"),
        (20.0, "4.85·10⁸"),
    ],
)
def test_numbers_are_readable_however_small(log_value: float, text: str) -> None:
    assert from_log(log_value) == text


def test_numbers_have_signs_and_nouns() -> None:
    assert (signed(1.5), signed(-0.25)) == ("+1.500", "−0.250")
    assert (count(1, "object"), count(3, "object"), count(2, "possibility", "possibilities")) == (
        "1 object",
        "3 objects",
        "2 possibilities",
    )
