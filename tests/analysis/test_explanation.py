"""The explanation of a proposal against the sampler that made it, and the stages in which it is told."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.analysis.explanation import Inspection, Proposal, Sweep, explain, stages_of
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling import cold_start
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.kernel import partition_changes
from ewens_widgets.sampling.moves import Gibbs, InformedSplitMerge, Reassign, SplitMerge
from ewens_widgets.sampling.moves.move import Move, count, from_log, pair_distances, signed

PROPOSALS = 60
CLOSE = 1e-9
DATA = ew.datasets.unit_square(transform="III", per_cluster=4, seed=4)
GAPPED = ew.datasets.Dataset(np.where(np.arange(32).reshape(16, 2) % 7 == 3, np.nan, DATA.X))
MODELS = ("I", "II", "III")
MOVES = (
    Reassign(),
    SplitMerge(core_jump=0.05),
    InformedSplitMerge(),
    SplitMerge(),
    SplitMerge(within="minimum", between="hausdorff", core_jump=0.4),
    SplitMerge(within="maximum", between="minimum", probabilities=(0.3, 0.6, 0.1), core_jump=0.0),
    SplitMerge(within="average", between="maximum", core_jump=0.2),
)


@dataclass(frozen=True)
class Step:
    """One proposal as it was explained, and as the sampler reported it."""

    explained: Proposal
    reported: Event


def steps(move: Move, data: ew.datasets.Dataset = DATA, **settings: object) -> Iterator[Step]:
    """Proposals of a chain that starts at a draw from the prior."""
    sampler = ew.Sampler(data, moves=[move], **{"initial": "prior", "seed": 5, **settings})
    raw = sampler.raw_data
    pairs = pair_distances(sampler.posterior.coordinates if raw is None else raw)
    as_printed = sampler.acceptance == "as-printed"
    while True:
        explained = explain(sampler.posterior, sampler.state, move, pairs=pairs, as_printed=as_printed)
        yield Step(explained, next(sampler.events(1, block=1)))


def explain_sweep(sampler: ew.Sampler) -> list[Proposal]:
    """Every draw of the sweep of an iteration that begins where the sampler stands."""
    sweep = Sweep(sampler.posterior, sampler.state, Gibbs())
    found = []
    for item in range(sampler.posterior.n_objects):
        found.append(sweep.draw(item))
        sweep.keep()
    return found


def proposals(count: int, *arguments: object, **settings: object) -> list[Step]:
    """So many steps at which something was proposed."""
    found: list[Step] = []
    for step in steps(*arguments, **settings):
        assert (step.explained.proposed is None) == (step.reported.proposed_labels is None)
        found += [] if step.explained.proposed is None else [step]
        if len(found) == count:
            return found
    raise AssertionError


def largest_gap(found: list[Step], log_ratio: Callable[[Proposal], float | None]) -> float:
    pairs = [(log_ratio(step.explained), step.reported.log_ratio) for step in found]
    # Without core jumps the reverse proposal of a merge may be impossible: then both are minus infinity.
    return max(0.0 if one == other else abs(one - other) for one, other in pairs)


def without(name: str) -> Callable[[Proposal], float]:
    return lambda explained: math.fsum(term.value for term in explained.terms() if term.name != name)


def assert_alike(found: list[Step]) -> None:
    assert largest_gap(found, Proposal.log_ratio) < CLOSE
    for step in found:
        explained, reported = step.explained, step.reported
        assert np.array_equal(explained.proposed, reported.proposed_labels)
        assert explained.accepted() == reported.accepted
        assert explained.parameters.theta_index == reported.theta_index
        assert explained.parameters.concentration == pytest.approx(reported.concentration, rel=1e-14)
        np.testing.assert_allclose(explained.parameters.theta_weights, reported.theta_weights, atol=1e-12)
        assert np.array_equal(
            explained.proposed if explained.accepted() else explained.labels, reported.labels
        )


JUMPING, INFORMED = SplitMerge(core_jump=0.1), InformedSplitMerge()
OWN = {"shapes": "own", "prior": ew.priors.FiniteMixture()}
CASES: list[tuple[Move, dict[str, Any]]] = [
    *((move, {"model": model}) for move in MOVES[:3] for model in MODELS),
    *((move, {"model": "II"}) for move in MOVES[3:]),
    (Reassign(), {"model": "II", "concentration": ew.Gamma(2.0, 1.0)}),
    (JUMPING, {"model": "II", "concentration": 7.5, "theta_grid": [0.5, 3.0], "alpha": 2.0}),
    (INFORMED, {"model": "II", "concentration": ew.Gamma(2.0, 1.0)}),
    *((move, {"model": "II", "metric": "euclidean"}) for move in (Reassign(), JUMPING)),
    (INFORMED, {"model": "II", "initial": "one-cluster", "seed": 2}),
    (Reassign(), {"model": "II", "prior": ew.priors.FiniteMixture()}),
    (JUMPING, {"model": "II", "prior": ew.priors.PitmanYor(1.0, 0.3)}),
    (INFORMED, {"model": "II", "prior": ew.priors.DirichletMultinomial(5, 2.0)}),
    *((move, {"model": model, **OWN}) for move, model in zip(MOVES[:3], MODELS, strict=True)),
    *((INFORMED, {"model": model, **OWN}) for model in MODELS[:2]),
    *((move, {"model": "III", "data": GAPPED}) for move in MOVES[:3]),
    *((INFORMED, {"model": model, "data": GAPPED, **OWN}) for model in MODELS),
]


@pytest.mark.parametrize(("move", "settings"), CASES, ids=str)
def test_the_terms_add_up_to_the_sampler_s_own_log_ratio(move: Move, settings: dict[str, Any]) -> None:
    found = proposals(PROPOSALS, move, **settings)
    assert_alike(found)
    kinds = {"reassign"} if isinstance(move, Reassign) else {"split", "merge"}
    assert {step.explained.kind for step in found} == kinds
    for step in found:
        for way in (step.explained.forward, step.explained.backward):
            total = math.fsum(factor.log_probability for factor in way.factors)
            assert total == pytest.approx(way.log_probability, abs=CLOSE), way
        if isinstance(move, InformedSplitMerge):
            sides = step.explained.allocation.probability_of_sides
            way = step.explained.forward if step.explained.kind == "split" else step.explained.backward
            assert np.log(sides).sum() == pytest.approx(way.log_probability, abs=CLOSE)
        drawn, reported = step.explained.parameters, step.reported
        assert (drawn.nu, drawn.nu_index) == (reported.nu, reported.nu_index)
        if drawn.sigma.size:
            np.testing.assert_allclose(drawn.sigma, reported.sigma, rtol=1e-12)
    if "data" in settings:
        assert "Then 5 missing cells got new values" in stages_of(found[0].explained, move)[0].text
    if "shapes" in settings:
        told = stages_of(found[0].explained, move)[0].text
        assert f"ν = {found[0].explained.parameters.nu:g} was drawn" in told
        assert "FiniteMixture" in told
        assert "λ" not in told
    # Sabotaged twins: with any one term dropped, the same comparison fails.
    for name in ("prior", "likelihood", "reverse", "forward"):
        assert largest_gap(found, without(name)) > 1e-2, name


@pytest.mark.parametrize("model", MODELS)
def test_a_sweep_of_own_shapes_is_the_sampler_s(model: str) -> None:
    sampler = ew.Sampler(
        DATA,
        model=model,
        moves=[Gibbs()],
        initial="prior",
        seed=5,
        shapes="own",
        prior=ew.priors.FiniteMixture(),
    )
    draws = explain_sweep(sampler)
    event = next(sampler.events(1, block=1))
    after = draws[-1].labels if draws[-1].proposed is None else draws[-1].proposed
    assert np.array_equal(canonical_labels(after), event.labels)
    ratios = [draw.log_ratio() for draw in draws if draw.proposed is not None]
    assert ratios
    np.testing.assert_allclose(ratios, 0.0, atol=1e-8)


def test_the_printed_ratio_is_the_sampler_s_where_it_is_asked_for() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = proposals(PROPOSALS, SplitMerge(core_jump=0.2), model="I", acceptance="as-printed")
    assert_alike(found)
    assert largest_gap(found, lambda explained: replace(explained, as_printed=False).log_ratio()) > 1.0


def test_the_printed_ratio_turns_the_proposal_terms_round() -> None:
    found = proposals(200, SplitMerge(), model="I")
    decisions = set()
    for step in found:
        right, printed = (replace(step.explained, as_printed=which).terms() for which in (False, True))
        assert [term.value for term in printed] == [
            right[0].value,
            right[1].value,
            -right[2].value,
            -right[3].value,
        ]
        decisions.add(tuple(replace(step.explained, as_printed=which).accepted() for which in (False, True)))
    assert {(True, False), (False, True)} & decisions, "the two rules must disagree now and then"
    for move in (Reassign(), InformedSplitMerge()):
        step = proposals(1, move)[0]
        assert not step.explained.has_printed_ratio
        right, printed = (replace(step.explained, as_printed=which).terms() for which in (False, True))
        assert printed == right


@pytest.mark.parametrize("data", [DATA, GAPPED], ids=["complete", "gaps"])
@pytest.mark.parametrize("model", MODELS)
def test_a_gibbs_sweep_is_explained_draw_by_draw(model: str, data: ew.datasets.Dataset) -> None:
    sampler = ew.Sampler(
        data, model=model, moves=["gibbs"], initial="prior", seed=6, concentration=ew.Gamma(2, 1)
    )
    draws: list[Proposal] = []
    moved = 0
    while len(draws) < 200:
        sweep = explain_sweep(sampler)
        first = explain(sampler.posterior, sampler.state, Gibbs())
        assert np.array_equal(first.proposed, sweep[0].proposed)
        event = next(sampler.events(1, block=1))
        assert np.array_equal(sweep[-1].proposed, event.labels)
        changed = [not np.array_equal(draw.labels, draw.proposed) for draw in sweep]
        assert sum(changed) == event.moves[0].acceptances
        moved += sum(changed)
        draws += sweep
    assert moved > 10
    # The ratio of a draw from the exact conditional is one, and it is always accepted.
    assert max(abs(draw.log_ratio()) for draw in draws) < CLOSE
    assert max(abs(without("likelihood")(draw)) for draw in draws) > 1e-2
    assert max(abs(without("reverse")(draw)) for draw in draws) > 1e-2
    for draw in draws:
        assert draw.accepted()
        candidates = draw.choices[1]
        assert candidates.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        item = draw.choices[0].objects[0]
        company = candidates.by_object[draw.labels == draw.labels[item]]
        assert np.ptp(company) == 0.0, "members of a cluster share its probability"


def test_nobody_waits_for_the_compiler_to_see_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = ew.Sampler(DATA, model="III", initial="prior", seed=5)
    expected = explain_sweep(sampler)
    calls: list[object] = []
    absent = SimpleNamespace(is_at_hand=lambda: calls.append(1))
    monkeypatch.setenv("EWENS_WIDGETS_WAIT", "")
    monkeypatch.setattr(cold_start, "code_for", lambda *_: absent)
    found = explain_sweep(sampler)
    assert len(calls) == len(found) == DATA.n_objects
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.proposed, other.proposed)
        assert one.forward.log_probability == pytest.approx(other.forward.log_probability, rel=1e-12)


@pytest.mark.filterwarnings("ignore::ewens_widgets.model.checks.DataWarning")  # all but copies
def test_a_probability_that_underflows_still_has_its_logarithm() -> None:
    # One object far away, in one cluster with the others: its own candidate has no probability left.
    X = np.concatenate([np.random.default_rng(0).normal(size=(60, 12)), np.full((1, 12), 1e6)])[::-1]
    sampler = ew.Sampler(X, model="I", moves=["gibbs"], initial="one-cluster", theta_grid=[1024.0])
    draw = explain(sampler.posterior, sampler.state, Gibbs())
    assert draw.choices[1].probabilities[0] == 0.0
    assert abs(draw.log_ratio()) < CLOSE


def test_where_nothing_is_proposed_the_reason_is_told() -> None:
    reasons = set()
    move = SplitMerge(probabilities=(0.4, 0.4, 0.2), core_jump=0.9)
    data = ew.datasets.unit_square(per_cluster=1, seed=0)
    for start in ("singletons", "one-cluster"):
        for seed in range(25):
            step = next(steps(move, data, initial=start, model="I", seed=seed))
            assert (step.explained.proposed is None) == (step.reported.proposed_labels is None)
            if step.explained.proposed is None:
                assert step.explained.log_ratio() is None
                assert step.explained.accepted() is None
                assert step.explained.terms() == ()
                reasons.add(step.explained.reason)
    assert len(reasons) == 4, reasons


def test_choices_say_how_probable_they_were() -> None:
    sampler = ew.Sampler(DATA, model="I", moves=[SplitMerge()], initial="one-cluster", seed=0)
    Y = sampler.posterior.coordinates
    for step in proposals(30, SplitMerge(), model="I", initial="one-cluster"):
        for choice in step.explained.choices:
            assert choice.probabilities.sum() == pytest.approx(1.0)
            assert choice.probability == choice.probabilities[choice.chosen] > 0.0
        allocation = step.explained.allocation
        first, second = allocation.cores
        assert first < second
        assert allocation.to_second[allocation.members == first] == 0.0
        assert allocation.to_second[allocation.members == second] == 1.0
        # Each member favours the nearer core.
        far, near = (np.linalg.norm(Y[allocation.members] - Y[core], axis=1) for core in allocation.cores)
        np.testing.assert_allclose(allocation.to_second, far / (far + near), atol=1e-9)


def test_the_moved_objects_are_the_smaller_part() -> None:
    for step in proposals(60, SplitMerge()):
        explained = step.explained
        for array in (explained.labels, explained.proposed, explained.allocation.sides):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        moved = explained.moved
        assert 0 < moved.size <= explained.allocation.members.size / 2
        fine = explained.proposed if explained.kind == "split" else explained.labels
        assert len(set(fine[moved])) == 1
        assert (fine == fine[moved[0]]).sum() == moved.size


def test_nothing_to_choose_from_is_refused() -> None:
    choose = getattr(partition_changes.choose, "py_func", partition_changes.choose)
    assert choose(np.array([0.0, 2.0, 0.0]), 3, 0.999) == 1
    assert choose(np.zeros(3), 3, 0.5) == -1


def test_notes_that_do_not_fit_are_taken_again() -> None:
    """All pairs of 40 singletons are more options than there is room for at first."""
    data = ew.datasets.unit_square(per_cluster=10, seed=2)
    merging = SplitMerge(probabilities=(0.01, 0.98, 0.01))
    (step,) = proposals(1, merging, data, initial="singletons", seed=1)
    assert step.explained.choices[1].probabilities.size == 40 * 39 // 2
    assert_alike([step])


SQUARE = ew.datasets.unit_square(per_cluster=5, seed=1)
PROPOSING = (Reassign(), SplitMerge(), InformedSplitMerge())


def inspection(move: Move, **settings: object) -> Inspection:
    given = {"model": "I", "initial": "prior", "seed": 2, **settings}
    return Inspection(ew.Sampler(SQUARE, moves=[move], **given))


@pytest.mark.parametrize("move", PROPOSING, ids=repr)
def test_going_on_follows_the_sampler(move: Move) -> None:
    sampler = ew.Sampler(SQUARE, model="I", moves=[move], initial="prior", seed=2)
    looked_at = Inspection(sampler)
    assert sampler.iteration == 0
    for iteration, event in enumerate(sampler.events(40, block=1)):
        assert looked_at.iteration == iteration
        assert looked_at.gap < 1e-9
        assert (looked_at.event.log_ratio is None) == (looked_at.proposal.proposed is None)
        looked_at.next_iteration()
        assert np.array_equal(looked_at.proposal.labels, event.labels)


def test_a_sweep_is_gone_through_object_by_object() -> None:
    sampler = ew.Sampler(SQUARE, model="I", moves=["gibbs"], initial="prior", seed=2)
    looked_at = Inspection(sampler)
    for iteration, event in enumerate(sampler.events(3)):
        for item in range(20):
            assert looked_at.iteration == iteration
            assert looked_at.proposal.choices[0].objects.tolist() == [item]
            assert looked_at.gap < 1e-9
            assert not looked_at.can_accept_anyway
            looked_at.next_iteration()
        assert np.array_equal(looked_at.proposal.labels, event.labels)


@pytest.mark.parametrize("move", [*PROPOSING, Gibbs()], ids=repr)
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


@pytest.mark.parametrize("move", PROPOSING, ids=repr)
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
    looked_at, twin = inspection(Gibbs()), inspection(Gibbs())
    looked_at.accept_anyway()  # Without a rejected proposal this is going on.
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
    sampler = ew.Sampler(SQUARE, model="II", seed=9)
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
        sampler = ew.Sampler(SQUARE, moves="paper-2", acceptance="as-printed", initial="prior", seed=3)
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
    assert set(told) >= {"start", "action", "choice", "cores", "sides", "jump"}
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
        (SplitMerge(), "merge", "action choice cores sides jump"),
        (InformedSplitMerge(), "split", "choice sides"),
        (InformedSplitMerge(), "merge", "choice sides"),
        (Reassign(), "reassign", "choice target"),
    ],
)
def test_every_kind_of_proposal_has_its_stages(move: Move, kind: str, keys: str) -> None:
    told = stages(inspection(move), kind)
    assert list(told) == ["start", *keys.split(), "proposal", "ratio", "decision"]
    assert all(stage.title and stage.text.endswith(".") for stage in told.values())
    reverse = [stage.title for stage in told.values() if "reverse" in stage.title.lower()]
    assert bool(reverse) == (kind == "merge")


def test_a_draw_a_jumped_core_and_no_proposal_are_told() -> None:
    looked_at = inspection(Gibbs())
    told = {stage.key: stage for stage in looked_at.stages}
    assert list(told) == ["start", "choice", "target", "draw", "ratio", "decision"]
    best = looked_at.proposal.choices[1].probabilities.max()
    assert f"probability {best:.3g}" in told["target"].text
    assert "always accepted" in told["decision"].text
    looked_at = inspection(SplitMerge(core_jump=0.8))
    for _ in range(200):
        allocation = looked_at.proposal.allocation
        if looked_at.proposal.kind == "split" and allocation.jumped is not None:
            break
        looked_at.next_iteration()
    told = {stage.key: stage for stage in looked_at.stages}
    assert told["jump"].ringed.tolist() == [allocation.jumped]
    assert f"object {allocation.jumped + 1} did" in told["jump"].text
    looked_at = inspection(SplitMerge(probabilities=(0.0, 0.0, 1.0)))
    assert [stage.key for stage in looked_at.stages] == ["start", "action", "decision"]
    assert "keeps the partition" in looked_at.stages[-1].text
    assert looked_at.gap == 0.0


def test_numbers_are_readable_however_small() -> None:
    logs = [0.0, np.log(0.475), -230.0, -np.inf, np.inf, 20.0]
    assert [from_log(one) for one in logs] == ["1", "0.475", "1.29·10⁻¹⁰⁰", "0", "∞", "4.85·10⁸"]
    assert (signed(1.5), signed(-0.25)) == ("+1.500", "−0.250")
    assert (count(1, "object"), count(3, "object"), count(2, "possibility", "possibilities")) == (
        "1 object",
        "3 objects",
        "2 possibilities",
    )
