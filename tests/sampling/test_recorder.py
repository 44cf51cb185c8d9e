import numpy as np
import pytest
from traces import blob_trace, events_of

from ewens_widgets.sampling.draws import Block
from ewens_widgets.sampling.event import Event, MoveCount
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.trace import Trace

COLUMNS = ("labels", "theta_index", "theta_weights", "log_posterior", "concentration", "iterations")


@pytest.fixture(scope="module")
def trace() -> Trace:
    # More draws than the first capacity, so that the arrays grow.
    return blob_trace(n_draws=700, n_objects=12)


@pytest.fixture(scope="module")
def events(trace: Trace) -> list[Event]:
    return events_of(trace)


def recorded(trace: Trace, events: list[Event]) -> Recorder:
    recorder = Recorder(trace.posterior)
    for event in events:
        recorder.append(event)
    return recorder


def keep(recorder: Recorder, **columns: object) -> None:
    given = {name: np.array(values) for name, values in columns.items()}
    recorder.extend(Block(recorder.posterior, recorder.move_names, given))


def assert_same_draws(first: Trace, second: Trace) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert getattr(first, name).dtype == getattr(second, name).dtype
    assert first.acceptance == second.acceptance


def assert_same_event(first: Event, second: Event) -> None:
    for name, one, other in zip(Event._fields, first, second, strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            assert one == other, name


def test_events_come_back(trace: Trace, events: list[Event]) -> None:
    recorder = recorded(trace, events)
    assert len(recorder) == len(events)
    for place in (0, 1, 255, 256, 699, -1):
        event = recorder.event(place)
        assert_same_event(event, events[place])
        assert not event.labels.flags.writeable
        assert not event.theta_weights.flags.writeable


def test_trace_holds_what_was_recorded(trace: Trace, events: list[Event]) -> None:
    assert_same_draws(recorded(trace, events).trace(), trace)


def test_blocks_and_events_record_the_same(trace: Trace, events: list[Event]) -> None:
    names = tuple(trace.move_counts)
    made = np.stack([trace.move_counts[name][0] for name in names], axis=1)
    taken = np.stack([trace.move_counts[name][1] for name in names], axis=1)
    recorder = Recorder(trace.posterior, names)
    for start, stop in ((0, 3), (3, 3), (3, 400), (400, 700)):
        rows = slice(start, stop)
        columns = {name: getattr(trace, name)[rows] for name in COLUMNS}
        keep(recorder, **columns, proposals=made[rows], acceptances=taken[rows])
    assert_same_draws(recorder.trace(), trace)
    assert_same_event(recorder.event(450), recorded(trace, events).event(450))
    np.testing.assert_array_equal(recorder.n_clusters, trace.n_clusters)


def test_columns_can_be_watched_while_they_grow(trace: Trace, events: list[Event]) -> None:
    recorder = recorded(trace, events[:200])
    early, labels = recorder.log_posterior, recorder.labels
    for event in events[200:]:
        recorder.append(event)
    np.testing.assert_array_equal(early, trace.log_posterior[:200])
    np.testing.assert_array_equal(labels, trace.labels[:200])
    np.testing.assert_array_equal(recorder.theta, trace.theta)
    np.testing.assert_array_equal(recorder.theta_weights, trace.theta_weights)
    np.testing.assert_array_equal(recorder.concentration, trace.concentration)
    np.testing.assert_array_equal(recorder.proposals[:, 0], trace.move_counts["gibbs"][0])
    np.testing.assert_array_equal(recorder.acceptances[:, 1], trace.move_counts["split-merge"][1])
    assert not recorder.labels.flags.writeable


def test_clear_leaves_earlier_traces_alone(trace: Trace, events: list[Event]) -> None:
    recorder = recorded(trace, events[:10])
    before = recorder.trace()
    kept = before.labels.copy()
    recorder.clear()
    assert len(recorder) == 0
    assert len(recorder.trace()) == 0
    for event in events[300:320]:
        recorder.append(event)
    np.testing.assert_array_equal(before.labels, kept)
    assert recorder.event(0).iteration == 301


def test_burn_in_and_thinning(trace: Trace, events: list[Event]) -> None:
    kept = recorded(trace, events).trace(burn_in=100, thin=7)
    np.testing.assert_array_equal(kept.iterations, np.arange(107, 701, 7))
    made = np.asarray(trace.move_counts["gibbs"][0])
    # Nothing proposed after burn-in is forgotten but what follows the last kept draw.
    assert np.sum(kept.move_counts["gibbs"][0]) == made[100 : kept.iterations[-1]].sum()


def test_watching_before_the_first_event(trace: Trace, events: list[Event]) -> None:
    recorder = Recorder(trace.posterior)
    assert recorder.move_names == ()
    assert recorder.labels.shape == (0, 12)
    assert recorder.proposals.shape == (0, 0)
    recorder.append(events[0])
    assert recorder.move_names == ("gibbs", "split-merge")
    assert recorder.proposals.shape == (1, 2)


def test_a_single_metropolis_step_is_kept(trace: Trace, events: list[Event]) -> None:
    proposed = np.zeros(12, dtype=np.intp)
    stepped = events[0]._replace(proposed_labels=proposed, accepted=False, log_ratio=-1.5)
    recorder = recorded(trace, [stepped, events[1]])
    assert_same_event(recorder.event(0), stepped)
    assert recorder.event(1).proposed_labels is None
    assert recorder.event(1).accepted is None


def test_a_move_twice_in_the_schedule_counts_once_by_name(trace: Trace, events: list[Event]) -> None:
    twice = events[0]._replace(moves=(MoveCount("gibbs", 10, 5), MoveCount("gibbs", 20, 4)))
    kept = recorded(trace, [twice]).trace()
    assert kept.acceptance == {"gibbs": 9 / 30}


def test_more_clusters_than_a_byte_counts() -> None:
    trace = blob_trace(n_objects=256, n_draws=1)
    recorder = Recorder(trace.posterior, ())
    columns = {name: getattr(trace, name) for name in COLUMNS} | {
        "labels": np.arange(256, dtype=np.uint8)[None]
    }
    keep(recorder, **columns, proposals=np.empty((1, 0)), acceptances=np.empty((1, 0)))
    assert recorder.n_clusters[0] == 256
    assert recorder.trace().n_clusters[0] == 256


def test_refusals(trace: Trace, events: list[Event]) -> None:
    recorder = recorded(trace, events[:3])
    for place in (3, -4):
        with pytest.raises(IndexError, match="3 are recorded"):
            recorder.event(place)
    with pytest.raises(ValueError, match="burn_in must not be negative"):
        recorder.trace(burn_in=-1)
    with pytest.raises(ValueError, match="at least 1"):
        recorder.trace(thin=0)
    columns = {name: getattr(trace, name)[:1] for name in COLUMNS}
    with pytest.raises(ValueError, match="a column a move"):
        keep(recorder, **columns, proposals=np.ones((1, 3)), acceptances=np.ones((1, 3)))
    assert len(recorder) == 3


def test_a_failed_append_changes_nothing(trace: Trace, events: list[Event]) -> None:
    recorder = recorded(trace, events[:3])
    with pytest.raises(ValueError, match="shape"):
        recorder.append(events[3]._replace(labels=np.zeros(5, dtype=np.intp)))
    assert len(recorder) == 3
    recorder.append(events[3])
    assert_same_event(recorder.event(3), events[3])
