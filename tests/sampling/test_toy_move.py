"""A move from outside the package: this file and one registration, and it is everywhere.

The toy swaps the clusters of two objects. Sizes stay as they are, so only the scale of the likelihood
changes, and the proposal is symmetric. It is not irreducible by itself, but leaves the posterior as it is.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling.exact import (
    FIVE,
    Floats,
    Space,
    assert_does_not_follow,
    assert_follows,
    assert_stochastic,
    canonical,
    count_transitions,
    detailed_imbalance,
    imbalance,
    make_space,
    metropolis,
)
from views.explorer.small_explorer import step

import ewens_widgets as ew
from ewens_widgets.analysis.explanation import Inspection, explain
from ewens_widgets.sampling.archive import ArchiveError
from ewens_widgets.sampling.compiled import guest
from ewens_widgets.sampling.kernel.scatter import log_scale, refresh
from ewens_widgets.sampling.kernel.workspace import (
    ACCOUNT,
    CHANGED,
    WANTED,
    Outcome,
    Problem,
    Workspace,
    note,
    report,
)
from ewens_widgets.sampling.moves.move import MOVES, OWN, BareProposal, Choice, Move, Notes, Option, register
from ewens_widgets.sampling.moves.schedule import Repeated, from_plain, resolve_schedule, to_plain

PAIR = OWN


@guest
def exchange(problem: Problem, workspace: Workspace, item: int, other: int) -> None:
    """Let two objects swap their clusters."""
    slot, slot_there = workspace.labels[item], workspace.labels[other]
    workspace.labels[item], workspace.labels[other] = slot_there, slot
    for r in range(problem.coordinates.shape[1]):
        gap = problem.coordinates[other, r] - problem.coordinates[item, r]
        workspace.sums[slot, r] += gap
        workspace.sums[slot_there, r] -= gap
        workspace.columns[r, slot] = workspace.sums[slot, r]
        workspace.columns[r, slot_there] = workspace.sums[slot_there, r]
    refresh(problem, workspace)


@guest
def swap(
    problem: Problem,
    workspace: Workspace,
    pairs: NDArray[np.float64],
    options: tuple[float, float],
    outcome: Outcome,
    rng: np.random.Generator,
) -> int:
    """Propose to swap two objects, chosen evenly; with some probability do nothing."""
    n_objects = problem.coordinates.shape[0]
    laziness, care = options
    item = int(rng.random() * n_objects)
    other = int(rng.random() * (n_objects - 1))
    if other >= item:
        other += 1
    is_idle = rng.random() < laziness
    log_uniform = math.log(1.0 - rng.random())
    if outcome.flags[WANTED] == ACCOUNT:
        note(outcome, PAIR, item, other, 0.0)
    if is_idle or workspace.labels[item] == workspace.labels[other]:
        return -1
    before = log_scale(problem, workspace)
    exchange(problem, workspace, item, other)
    log_ratio = -0.5 * care * n_objects * (log_scale(problem, workspace) - before)
    if outcome.flags[WANTED]:
        log_pair = -math.log(0.5 * n_objects * (n_objects - 1))
        report(outcome, workspace.labels, log_ratio, log_uniform, log_pair, log_pair)
    if log_uniform < log_ratio:
        workspace.integers[CHANGED] = 1
        return 1
    exchange(problem, workspace, item, other)
    return 0


@dataclass(frozen=True)
class Swap(Move):
    """Two objects swap their clusters."""

    laziness: float = 0.0

    name: ClassVar[str] = "swap"
    title: ClassVar[str] = "swap two objects"
    kernel = staticmethod(swap)
    choosable: ClassVar[tuple[Option, ...]] = (
        Option("laziness", "laziness", "laziness", "Probability that nothing is proposed"),
    )

    def options(self, as_printed: bool = False) -> tuple[float, float]:  # noqa: ARG002 - part of the contract
        return self.laziness, 1.0

    def account(self, notes: Notes) -> BareProposal:
        item, other, _ = notes.of(PAIR)[0]
        n_objects = notes.slots.size
        n_pairs = n_objects * (n_objects - 1) // 2
        place = next(
            place
            for place, pair in enumerate(itertools.combinations(range(n_objects), 2))
            if set(pair) == {item, other}
        )
        even = np.full(n_objects, 2.0 / n_objects)
        pair = Choice(
            "two objects to swap", np.full(n_pairs, 1 / n_pairs), place, np.array([item, other]), even
        )
        return notes.account("swap", choices=(pair,), reason="They are together already, or it was idle.")


@dataclass(frozen=True)
class CarelessSwap(Swap):
    """The sabotaged twin: it accepts whatever it proposes."""

    name: ClassVar[str] = "careless-swap"

    def options(self, as_printed: bool = False) -> tuple[float, float]:  # noqa: ARG002 - part of the contract
        return self.laziness, 0.0


@dataclass(frozen=True)
class Stranger(Swap):
    """Never registered."""

    name: ClassVar[str] = "stranger"


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    register(Swap)
    register(CarelessSwap)
    yield
    del MOVES["swap"], MOVES["careless-swap"]


DATA = ew.datasets.unit_square(per_cluster=4, seed=3)
THETA = 4.0
MIXED: list[Any] = ["reassign", ("swap", 3), "split-merge", Swap(laziness=0.5), "gibbs"]


@functools.cache
def five() -> Space:
    return make_space(FIVE, "II", 1.3, [THETA])


def swap_proposals(space: Space) -> Floats:
    """Probabilities that a swap proposes each partition at each other one, from its description alone."""
    proposals = np.zeros((len(space.labels),) * 2)
    pairs = list(itertools.combinations(range(5), 2))
    for start, labels in enumerate(space.labels):
        for first, second in pairs:
            swapped = list(labels)
            swapped[first], swapped[second] = labels[second], labels[first]
            end = space.index[canonical(swapped)]
            proposals[start, end] += (end != start) / len(pairs)
    return proposals


@dataclass(frozen=True)
class PlainSwap(Swap):
    """The same, its kernel left as plain Python."""

    name: ClassVar[str] = "plain swap"
    kernel = staticmethod(getattr(swap, "py_func", swap))


def test_its_transition_matrix_leaves_the_posterior_as_it_is() -> None:
    space = five()
    target = space.target(0)
    matrix = metropolis(swap_proposals(space), target)
    assert_stochastic(matrix)
    assert imbalance(matrix, target) < 1e-12
    assert detailed_imbalance(matrix, target) < 1e-12
    # The sabotaged twin accepts everything.
    assert imbalance(swap_proposals(space), target) > 1e-3


@pytest.mark.slow
def test_the_chain_follows_the_matrix_and_its_twin_does_not() -> None:
    space = five()
    matrix = metropolis(swap_proposals(space), space.target(0))
    assert_follows(space, count_from_everywhere(space, Swap()), matrix)
    assert_does_not_follow(space, count_from_everywhere(space, CarelessSwap()), matrix)


def count_from_everywhere(space: Space, move: Move) -> NDArray[np.int64]:
    """Transitions of chains of swaps that start from every partition: one cannot reach all of them."""
    counts = np.zeros((len(space.labels),) * 2, dtype=np.int64)
    for place, labels in enumerate(space.labels):
        sampler = ew.Sampler(
            FIVE, model="II", concentration=1.3, theta_grid=[THETA], moves=[move], initial=labels, seed=place
        )
        counts += count_transitions(space, sampler, 300)
    return counts


@pytest.mark.parametrize("model", ["I", "II", "III"])
@pytest.mark.slow
def test_it_runs_alone_and_with_others(model: str, tmp_path: Path) -> None:
    for moves in (["swap"], MIXED):
        settings = {"model": model, "moves": moves, "initial": "prior", "seed": 1}
        sampler = ew.Sampler(DATA, **settings)
        for event in sampler.events(40):
            expected = sampler.posterior.log_density(event.labels, event.theta_index)
            assert event.log_posterior == pytest.approx(expected, abs=1e-9, rel=0.0)
            assert [count.name for count in event.moves] == [made.move.name for made in sampler.schedule]
        trace = ew.Sampler(DATA, **settings).sample(40, progress=False)
        assert np.array_equal(trace.labels[-1], event.labels)
        assert 0.0 < trace.acceptance["swap"] < 1.0
        thinned = ew.Sampler(DATA, **settings).sample(10, thin=3, progress=False)
        assert np.array_equal(thinned.labels, trace.labels[2:30:3])
        steps = list(ew.Sampler(DATA, **settings).events(40, block=1))
        assert np.array_equal([event.labels for event in steps], trace.labels)
        reported = [event for event in steps if event.proposed_labels is not None]
        assert {event.accepted for event in reported} == ({True, False} if moves == ["swap"] else set())
        assert all(event.log_ratio is not None for event in reported)
        sampler.save(tmp_path / "chain.npz")
        loaded = ew.Sampler.load(tmp_path / "chain.npz")
        assert loaded.schedule == sampler.schedule
        assert from_plain(json.loads(json.dumps(to_plain(sampler.schedule)))) == sampler.schedule
        chains = [each.sample(20, progress=False).labels for each in (loaded, sampler)]
        assert np.array_equal(*chains)


def test_it_can_be_inspected() -> None:
    inspector = ew.MoveInspector(DATA, model="I", move="swap", initial="prior")
    assert ("swap two objects", "swap") in inspector.fields.move.control.options
    keys = set()
    for _ in range(40):
        assert inspector.inspection.gap < 1e-9
        keys |= {stage.key for stage in inspector.stages}
        inspector.buttons["Next iteration"].click()
    assert keys == {"start", "choice", "proposal", "ratio", "decision"}
    inspector.fields.options["laziness"].control.value = "0.5"
    assert inspector.inspection.move == Swap(laziness=0.5)
    assert inspector.picture("png").startswith(b"\x89PNG")
    # A wrong ratio shows as a gap.
    looked_at = Inspection(ew.Sampler(DATA, model="I", moves=[CarelessSwap()], initial="prior", seed=1))
    gaps = []
    for _ in range(20):
        gaps.append(looked_at.gap)
        looked_at.next_iteration()
    assert max(gaps) > 1e-2


def test_the_explorer_offers_it() -> None:
    explorer = ew.Explorer(DATA, seed=1)
    schedule = explorer.panel.fields["schedule"].control
    assert ("swap two objects", "swap") in schedule.options
    schedule.value = "swap"
    explorer.panel.fields["repeats"].control.value = "4"
    explorer.panel.fields["laziness"].control.value = "0.25"
    step(explorer, 1)
    assert explorer.sampler.schedule == (Repeated(Swap(laziness=0.25), 4),)
    assert ew.Explorer(DATA, moves=[Swap()]).panel.fields["schedule"].control.value == "swap"


def test_a_kind_that_is_not_registered_is_refused_everywhere(tmp_path: Path) -> None:
    refused: dict[str, Any] = {"match": "not registered.*register"}
    sampler = ew.Sampler(DATA)
    with pytest.raises(TypeError, **refused):
        ew.Sampler(DATA, moves=[Stranger()])
    with pytest.raises(TypeError, **refused):
        ew.MoveInspector(DATA, move=Stranger())
    with pytest.raises(TypeError, **refused):
        ew.Explorer(DATA, moves=[Stranger()])
    with pytest.raises(TypeError, **refused):
        explain(sampler.posterior, sampler.state, Stranger())
    with pytest.raises(ValueError, match="no move 'stranger'; the moves are gibbs"):
        resolve_schedule(["stranger"])
    with pytest.raises(ValueError, match="no move 'stranger'"):
        from_plain([{"name": "stranger", "repeats": 1}])
    ew.Sampler(DATA, moves=["swap"]).save(tmp_path / "chain.npz")
    known = MOVES.pop("swap")
    try:
        with pytest.raises(ArchiveError, match="no move 'swap'"):
            ew.Sampler.load(tmp_path / "chain.npz")
    finally:
        register(known)


def test_what_is_no_move_cannot_be_registered() -> None:
    with pytest.raises(TypeError, match="not a frozen dataclass that inherits from Move"):
        register(int)
    with pytest.raises(TypeError, match="has no kernel"):
        register(dataclass(frozen=True)(type("Idle", (Move,), {"name": "idle", "title": "idle"})))
    twin = dataclass(frozen=True)(type("Other", (Swap,), {"name": "swap"}))
    with pytest.raises(ValueError, match="there is a move 'swap' already, Swap"):
        register(twin)


@pytest.mark.slow
def test_a_kernel_in_plain_python_is_compiled_when_it_is_registered() -> None:
    # Not compiled, it would call what only compiled code can call, and crash the process.
    register(PlainSwap)
    try:
        chains = [ew.Sampler(DATA, moves=[move], initial="prior", seed=1) for move in (Swap(), PlainSwap())]
        traces = [chain.sample(30, progress=False) for chain in chains]
    finally:
        del MOVES[PlainSwap.name]
    assert np.array_equal(traces[0].labels, traces[1].labels)
    assert len(np.unique(traces[0].labels, axis=0)) > 1
