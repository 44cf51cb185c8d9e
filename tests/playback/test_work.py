import signal
from collections.abc import Callable

import pytest
from playback.fakes import FakeRecorder, FakeSource, make_event

from ewens_widgets.playback.player import RecordedChain
from ewens_widgets.sampling.event import Event

TARGET = 1_000_000


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def recorder() -> FakeRecorder:
    return FakeRecorder()


def iterations(recorder: FakeRecorder) -> list[int]:
    return [event.iteration for event in recorder.kept]


def test_every_iteration_is_recorded(source: FakeSource, recorder: FakeRecorder) -> None:
    chain = RecordedChain(source, recorder, TARGET)
    assert chain.advance(1) == 1
    assert chain.advance(7) == 7
    assert iterations(recorder) == [*range(1, 9)]
    assert source.blocks == [1, 7]
    assert chain.iteration == 8
    assert chain.latest is not None
    assert chain.latest.iteration == 8


def test_initial_state_is_known_through_the_snapshot(source: FakeSource, recorder: FakeRecorder) -> None:
    chain = RecordedChain(source, recorder, TARGET)
    assert chain.first_iteration == 0
    assert chain.latest is not None
    assert (chain.latest.iteration, chain.latest.moves) == (0, ())
    chain.advance(3)
    start = chain.event(0)
    assert start is not None
    assert start.iteration == 0
    middle = chain.event(2)
    assert middle is not None
    assert middle.iteration == 2


def test_source_without_snapshot(recorder: FakeRecorder) -> None:
    class Plain:
        iteration = 0

        def advance(self, n: int) -> list[Event]:
            self.iteration += n
            return [make_event(iteration) for iteration in range(self.iteration - n + 1, self.iteration + 1)]

        def snapshot(self) -> None:
            return None

        def reset(self) -> None:
            self.iteration = 0

    chain = RecordedChain(Plain(), recorder, TARGET)
    assert chain.latest is None
    assert chain.first_iteration == 0
    chain.advance(2)
    assert chain.first_iteration == 1, "nothing is known of the start"


def test_resumed_source_continues_its_record(source: FakeSource, recorder: FakeRecorder) -> None:
    RecordedChain(source, recorder, TARGET).advance(5)
    chain = RecordedChain(source, recorder, TARGET)
    assert chain.iteration == 5
    assert chain.first_iteration == 1
    assert chain.n_draws(5) == 5
    chain.advance(2)
    assert iterations(recorder) == [*range(1, 8)]


def test_resumed_source_with_a_new_record(source: FakeSource) -> None:
    RecordedChain(source, FakeRecorder(), TARGET).advance(500)
    chain = RecordedChain(source, FakeRecorder(), TARGET)
    assert (chain.first_iteration, chain.iteration) == (500, 500)
    chain.advance(3)
    assert chain.n_draws(502) == 2
    shown = chain.event(502)
    assert shown is not None
    assert shown.iteration == 502


def test_exhausted_source(source: FakeSource, recorder: FakeRecorder) -> None:
    source.ends_at = 3
    chain = RecordedChain(source, recorder, TARGET)
    assert chain.advance(5) == 3
    assert chain.advance(5) == 0


def test_fault_keeps_what_was_recorded(source: FakeSource, recorder: FakeRecorder) -> None:
    source.raise_at[4] = ArithmeticError("log of zero")
    chain = RecordedChain(source, recorder, TARGET)
    assert chain.advance(8) == 3
    with pytest.raises(ArithmeticError):
        chain.advance(8)
    assert iterations(recorder) == [1, 2, 3]
    chain.reset()
    assert (len(recorder), source.iteration, chain.iteration) == (0, 0, 0)
    chain.advance(8)
    assert iterations(recorder) == [*range(1, 9)]


def interrupt_once(at: int) -> Callable[[Event], None]:
    pending = [at]

    def interrupt(event: Event) -> None:
        if pending and event.iteration == pending[0]:
            pending.clear()
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.parametrize("moment", ["before_append", "after_append"])
@pytest.mark.parametrize("at", [1, 3, 6])
def test_interrupt_while_recording_loses_nothing(
    source: FakeSource, recorder: FakeRecorder, moment: str, at: int
) -> None:
    setattr(recorder, moment, interrupt_once(at))
    chain = RecordedChain(source, recorder, TARGET)
    with pytest.raises(KeyboardInterrupt):
        chain.advance(6)
    assert iterations(recorder) == [*range(1, 7)]
    assert chain.latest is recorder.kept[-1]
    chain.advance(2)
    assert iterations(recorder) == [*range(1, 9)]


def test_interrupt_inside_the_source(source: FakeSource, recorder: FakeRecorder) -> None:
    source.raise_at[3] = KeyboardInterrupt()
    chain = RecordedChain(source, recorder, TARGET)
    assert chain.advance(6) == 2
    with pytest.raises(KeyboardInterrupt):
        chain.advance(6)
    assert iterations(recorder) == [1, 2]
    chain.advance(6)
    assert iterations(recorder) == [*range(1, 9)]


def test_source_moved_from_outside_is_noticed(source: FakeSource, recorder: FakeRecorder) -> None:
    chain = RecordedChain(source, recorder, TARGET)
    chain.advance(2)
    source.advance(5)
    with pytest.raises(RuntimeError, match=r"at iteration 7, its record at 2.*reset to start again"):
        chain.advance(1)
    chain.reset()
    chain.advance(1)
    assert iterations(recorder) == [1]


class AtomicSource(FakeSource):
    """Runs a block as a whole; interrupted, it goes back to where the record ends."""

    def advance(self, n: int) -> list[Event]:
        before = self.iteration
        events: list[Event] = []
        while len(events) < n:
            try:
                events += super().advance(n - len(events))
            except KeyboardInterrupt:
                self.iteration = before
                raise
        return events


def test_a_block_goes_into_the_record_as_a_whole(recorder: FakeRecorder) -> None:
    source = AtomicSource()
    chain = RecordedChain(source, recorder, TARGET)
    chain.advance(1)
    assert source.blocks == [1], "stepping wants the whole event"
    assert chain.advance(6) == 6
    assert source.blocks == [1, 6]
    assert iterations(recorder) == [*range(1, 8)]
    assert chain.latest is recorder.kept[-1]


def test_interrupt_of_a_source_that_takes_the_block_back(recorder: FakeRecorder) -> None:
    source = AtomicSource()
    chain = RecordedChain(source, recorder, TARGET)
    chain.advance(3)
    source.raise_at[5] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        chain.advance(6)
    assert iterations(recorder) == [1, 2, 3]
    assert chain.latest is recorder.kept[-1]
    chain.advance(6)
    assert iterations(recorder) == [*range(1, 10)]


def test_a_signal_between_run_and_record_waits(source: FakeSource, recorder: FakeRecorder) -> None:
    class Signalling(FakeSource):
        def advance(self, n: int) -> list[Event]:
            block = super().advance(n)
            signal.raise_signal(signal.SIGINT)  # the source has moved on, and nobody knows
            return block

    chain = RecordedChain(Signalling(), recorder, TARGET)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            chain.advance(6)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert iterations(recorder) == [*range(1, 7)]
    assert chain.latest is recorder.kept[-1]


def test_the_target_is_never_passed(source: FakeSource, recorder: FakeRecorder) -> None:
    chain = RecordedChain(source, recorder, 10)
    assert [chain.advance(6), chain.advance(6)] == [6, 4]
    assert chain.is_done
    assert not chain.is_exhausted
