"""What a sampler tells its watchers, and that watching does not change the chain.

(Any calls in any order, with generators that are closed, interleaved or abandoned: `fuzz/test_commands`.)
"""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.moves import SplitMerge

MODELS = ("I", "II", "III")
SCHEDULES: dict[str, object] = {
    "default": "default",
    "paper-1": "paper-1",
    "paper-2": "paper-2",
    "informed": ["informed-split-merge"],
    "unequal": [SplitMerge("maximum", "minimum", probabilities=(0.15, 0.75, 0.1), core_jump=0.2)],
    "mixed": ["split-merge", "gibbs", SplitMerge(within="minimum", between="hausdorff"), ("reassign", 3)],
    # Cached distances and scatter are handed over from one driver to the next, and back.
    "turns": ["reassign", "split-merge", "gibbs", "informed-split-merge"],
    "distances": [SplitMerge("maximum"), SplitMerge("minimum"), "reassign"],
    "repeats": [("gibbs", 2), ("split-merge", 3), ("gibbs", 1), (SplitMerge("minimum", "hausdorff"), 2)],
}
SINGLE = {"paper-1", "paper-2", "informed", "unequal"}


def data(n_objects: int = 16, seed: int = 4) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_objects, 3)) + 3.0 * rng.integers(0, 3, (n_objects, 1))


def make(name: str = "default", **settings: object) -> ew.Sampler:
    return ew.Sampler(data(), **{"moves": SCHEDULES[name], "seed": 9, **settings})


def assert_same_events(first: list[Event], second: list[Event], proposals: bool = False) -> None:
    assert len(first) == len(second)
    fields = Event._fields if proposals else Event._fields[:9]
    for one, other in zip(first, second, strict=True):
        for name in fields:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("model", MODELS)
def test_blocks_do_not_change_the_chain(name: str, model: str) -> None:
    """Stepping, each ratio is worked out in full; in blocks a proposal that must fail is dropped early."""
    stepped = list(make(name, model=model).events(120, block=1))
    assert len({event.labels.tobytes() for event in stepped}) > 10
    for block in (None, 7, 500):
        assert_same_events(list(make(name, model=model).events(120, block=block)), stepped)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper-2", "informed", "unequal"])
def test_early_rejection_does_not_change_long_chains(name: str) -> None:
    stepped, run = make(name, initial="k-means"), make(name, initial="k-means")
    for _ in stepped.events(4000, block=1):
        pass
    run.sample(4000, progress=False)
    np.testing.assert_array_equal(stepped.state.labels, run.state.labels)
    assert stepped.state.generator == run.state.generator


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("concentration", [0.7, ew.Gamma(2.0, 1.0)], ids=str)
def test_the_log_posterior_is_that_of_the_state(name: str, model: str, concentration: object) -> None:
    sampler = make(name, model=model, concentration=concentration)
    events = list(sampler.events(40))
    assert tuple(move.name for move in events[0].moves) == sampler.move_names
    for event in events:
        expected = sampler.posterior.log_density(event.labels, event.theta_index, event.concentration)
        assert event.log_posterior == pytest.approx(expected, abs=1e-9, rel=0.0)
    for place, entry in enumerate(sampler.schedule):
        made = sum(event.moves[place].proposals for event in events)
        most = 40 * entry.repeats * (16 if entry.move.name == "gibbs" else 1)
        assert made <= most if entry.move.name == "split-merge" else made == most


@pytest.mark.parametrize("name", SCHEDULES)
def test_fields_are_plain_consistent_and_read_only(name: str) -> None:
    sampler = make(name)
    for number, event in enumerate(sampler.events(30, block=1), start=1):
        assert event.iteration == number == sampler.iteration
        assert type(event.iteration) is type(event.theta_index) is type(event.n_clusters) is int
        assert type(event.theta) is type(event.log_posterior) is type(event.concentration) is float
        np.testing.assert_array_equal(event.labels, canonical_labels(event.labels))
        assert event.n_clusters == event.labels.max() + 1
        for array in (event.labels, event.theta_weights):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
        assert tuple(move.name for move in event.moves) == sampler.move_names
        assert all(0 <= move.acceptances <= move.proposals for move in event.moves)


def test_events_stay_as_they_were_when_the_chain_goes_on() -> None:
    sampler = make()
    events = list(sampler.events(50, block=10))
    copies = [(event.labels.copy(), event.theta_weights.copy()) for event in events]
    list(sampler.events(200))
    for event, (labels, weights) in zip(events, copies, strict=True):
        np.testing.assert_array_equal(event.labels, labels)
        np.testing.assert_array_equal(event.theta_weights, weights)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_proposal_is_told_of_a_single_metropolis_move_that_is_stepped(name: str) -> None:
    stepped = list(make(name, initial="k-means").events(40, block=1))
    in_blocks = list(make(name, initial="k-means").events(40, block=2))
    told = [event for event in stepped if event.proposed_labels is not None]
    assert bool(told) == (name in SINGLE)
    for event in stepped:
        proposed = event.proposed_labels is not None
        assert (event.accepted is not None) == (event.log_ratio is not None) == proposed
        if name in SINGLE:
            assert event.moves[0].proposals == int(proposed)
            assert event.moves[0].acceptances == int(bool(event.accepted))
    for event in told:
        np.testing.assert_array_equal(event.proposed_labels, canonical_labels(event.proposed_labels))
        assert not event.proposed_labels.flags.writeable
    assert all(event.proposed_labels is event.accepted is event.log_ratio is None for event in in_blocks)


def test_two_metropolis_moves_an_iteration_tell_no_proposal() -> None:
    for moves in ([("reassign", 2)], ["reassign", "reassign"]):
        events = ew.Sampler(data(), moves=moves).events(5, block=1)
        assert all(event.proposed_labels is None for event in events)


def test_no_iterations_give_no_events_and_other_numbers_are_refused() -> None:
    sampler = make()
    assert list(sampler.events(0)) == []
    sampler.events(10).close()
    assert sampler.iteration == 0
    for bad in (-1, 2.0, 2.5, "5", True):
        with pytest.raises((TypeError, ValueError), match="number of iterations"):
            next(sampler.events(bad))
    for bad in (0, -3, 2.0, "5"):
        with pytest.raises((TypeError, ValueError), match="block"):
            next(sampler.events(5, block=bad))


def test_a_snapshot_tells_the_state_without_moving() -> None:
    sampler = make()
    first = sampler.snapshot()
    assert (first.iteration, first.n_clusters, first.moves) == (0, 16, ())
    *_, last = sampler.events(25)
    shown = sampler.snapshot()
    for name in ("iteration", "theta", "theta_index", "labels", "n_clusters"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(last, name))
    assert shown.log_posterior == pytest.approx(last.log_posterior, abs=1e-9)
    np.testing.assert_allclose(shown.theta_weights, sampler.posterior.theta_conditional(last.labels))
    assert not shown.labels.flags.writeable
    expected = list(make().events(26))[-1]
    np.testing.assert_array_equal(next(sampler.events(1)).labels, expected.labels)


LONG = [
    ("common", "I", "paper-2", 500, 1000),
    ("common", "III", "paper-2", 250, 500),
    ("common", "II", "default", 500, 20),
    ("common", "III", "default", 300, 10),
    # Ten million iterations: a thousand of the states on the way.
    *(
        pytest.param(*case, 1000, 10_000, marks=[pytest.mark.nightly, pytest.mark.timeout(0)])
        for case in (*itertools.product(("common", "own"), MODELS, ("paper-1",)), ("common", "II", "paper-2"))
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shapes", "model", "moves", "draws", "thin"), LONG)
def test_statistics_do_not_drift(shapes: str, model: str, moves: str, draws: int, thin: int) -> None:
    """After half a million iterations of the paper's moves the statistics are those of the partition."""
    square = ew.datasets.unit_square(per_cluster=20 if thin <= 1000 else 5, seed=0)
    start = None if thin > 1000 else "k-means"
    sampler = ew.Sampler(square, model=model, shapes=shapes, moves=moves, initial=start, seed=1)
    trace = sampler.sample(draws, thin=thin, progress=False)
    assert len(np.unique(trace.labels, axis=0)) > draws / 10
    for row in range(len(trace)):
        own = (int(trace.nu_index[row]), trace.sigma[row]) if shapes == "own" else ()
        parameters = trace.labels[row], int(trace.theta_index[row]), None, *own
        expected = sampler.posterior.log_density(*parameters)
        assert trace.log_posterior[row] == pytest.approx(expected, abs=1e-9, rel=1e-9)
