"""Whatever commands come in whatever order: the promises that always hold."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from playback.fakes import FakeRecorder, FakeSource, Stage

from ewens_widgets.playback import Frame, Pacing, PlayerState
from ewens_widgets.playback.display import Display

PACING = Pacing()
ROUNDING = 1e-9
PLAYBACK, SLEEP = "ewens_widgets playback", "ewens_widgets rest"


class Commands(RuleBasedStateMachine):
    """Gives commands, lets time pass, and keeps its own books of frames and acknowledgements."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(seconds=0.004, watched=False, target_iterations=200, burn_in=10)
        self.player = self.stage.player
        self.is_watched = False
        self.acknowledged = 0
        self.sent: list[tuple[int, float]] = []
        self.stage.do(lambda: self.player.attach(self))
        self.sent.clear()

    def teardown(self) -> None:
        self.stage.close()

    # A view that checks each frame when it is shown.

    def show(self, frame: Frame) -> None:
        now = self.stage.time.now
        status, source = frame.status, self.stage.source
        assert status.iteration == source.iteration == len(self.stage.recorder), (
            "the latest state, recorded first"
        )
        assert frame.event is not None
        assert frame.event.iteration == status.shown_iteration == len(frame.summary)
        assert status.is_following or not status.is_running, (
            "the past is shown only while the chain stands still"
        )
        if self.sent:
            assert frame.number > self.sent[-1][0]
            assert now - self.sent[-1][1] >= 1 / PACING.frames_per_second - ROUNDING
        self.sent.append((frame.number, now))
        assert len(self.in_flight(now)) <= PACING.max_in_flight

    def in_flight(self, now: float) -> list[int]:
        timeout = PACING.acknowledgement_timeout
        return [number for number, then in self.sent if number > self.acknowledged and now - then < timeout]

    # Commands.

    @rule()
    def play(self) -> None:
        self.stage.do(self.player.play)

    @rule()
    def run_to_end(self) -> None:
        self.stage.do(self.player.run_to_end)

    @rule()
    def pause(self) -> None:
        self.stage.do(self.player.pause)
        assert not self.player.status.is_running

    @rule(count=st.integers(1, 5))
    def step(self, count: int) -> None:
        self.stage.do(lambda: self.player.step(count))

    @rule()
    def one_step_exactly(self) -> None:
        self.stage.do(self.player.pause)
        before, state = self.stage.source.iteration, self.stage.state
        self.stage.do(self.player.step)
        # A page whose answers come late is given time to paint that the sampler is being prepared.
        for _ in range(3):
            self.let_time_pass(2.0)
            if self.is_watched and self.sent:
                self.acknowledge(0)
        stays = state is PlayerState.FAILED or before >= self.player.target_iterations
        interrupted = self.stage.state is PlayerState.FAILED or "Interrupted" in self.player.status.message
        assert self.stage.source.iteration == before + (0 if stays or interrupted else 1)

    @rule(share=st.floats(0.0, 1.0))
    def seek(self, share: float) -> None:
        iteration = round(share * self.player.status.iteration)
        self.stage.do(lambda: self.player.seek(iteration))
        assert self.player.status.shown_iteration == iteration
        assert not self.player.status.is_running

    @rule()
    def follow(self) -> None:
        self.stage.do(lambda: self.player.seek(None))
        assert self.player.status.is_following

    @rule(speed=st.sampled_from([None, 0.2, 1, 3, 40]))
    def change_speed(self, speed: float | None) -> None:
        self.stage.do(lambda: setattr(self.player, "speed", speed))

    @rule(burn_in=st.integers(0, 50))
    def change_burn_in(self, burn_in: int) -> None:
        self.stage.do(lambda: setattr(self.player, "burn_in", burn_in))

    @rule()
    def extend(self) -> None:
        self.stage.do(lambda: self.player.extend(20))

    @rule()
    def reset(self) -> None:
        self.stage.do(self.player.reset)
        assert self.stage.state is PlayerState.PAUSED

    @rule()
    def replace_source(self) -> None:
        self.stage.source, self.stage.recorder = FakeSource(self.stage.time, seconds=0.002), FakeRecorder()
        self.stage.do(lambda: self.player.replace_source(self.stage.source, self.stage.recorder))
        assert self.stage.state is PlayerState.PAUSED

    @rule()
    def interrupt_soon(self) -> None:
        self.stage.source.raise_at[self.stage.source.iteration + 3] = KeyboardInterrupt()

    @rule()
    def fail_soon(self) -> None:
        self.stage.source.raise_at[self.stage.source.iteration + 3] = ArithmeticError("soon")

    # Viewers and time.

    @precondition(lambda self: not self.is_watched)
    @rule()
    def open_page(self) -> None:
        self.is_watched = True
        self.acknowledged = self.sent[-1][0] if self.sent else 0
        self.stage.do(self.player.viewer_attached)

    @precondition(lambda self: self.is_watched)
    @rule()
    def close_page(self) -> None:
        self.is_watched = False
        self.stage.do(self.player.viewer_left)

    @precondition(lambda self: self.is_watched and self.sent)
    @rule(back=st.integers(0, 2))
    def acknowledge(self, back: int) -> None:
        number = self.sent[max(0, len(self.sent) - 1 - back)][0]
        self.acknowledged = max(self.acknowledged, number)
        self.stage.do(lambda: self.player.acknowledge(number))

    @rule(seconds=st.sampled_from([0.005, 0.03, 0.2]))
    def let_time_pass(self, seconds: float) -> None:
        before, ran, sent = self.stage.source.iteration, self.player.status.is_running, len(self.sent)
        self.stage.run(self.stage.time.advance(seconds))
        if not ran:
            assert self.stage.source.iteration == before, "a chain that stands still does not move"
        if not self.is_watched:
            assert len(self.sent) == sent, "without a viewer nothing is sent"

    @rule()
    def clock_jumps(self) -> None:
        """The machine was asleep for an hour; a viewer who owes an answer counts as gone."""
        self.stage.time.spend(3600.0)
        self.is_watched = False
        self.stage.do(self.player.viewer_left)

    @precondition(lambda self: self.is_watched)
    @rule()
    def latest_state_wins(self) -> None:
        self.stage.do(self.player.pause)
        for _ in range(4):
            if self.sent:
                self.acknowledge(0)
            self.let_time_pass(0.2)
        assert self.stage.viewer.frames[-1].status == self.player.status

    # What always holds.

    @invariant()
    def no_gaps_in_the_record(self) -> None:
        assert self.stage.iterations == [*range(1, self.stage.source.iteration + 1)]

    @invariant()
    def status_tells_the_truth(self) -> None:
        status = self.player.status
        assert not isinstance(self.player.error, AssertionError), "what the view has checked"
        assert status.iteration == self.stage.source.iteration <= status.target
        assert (status.iteration == status.target) <= (status.state in ("finished", "failed", "paused"))

    @invariant()
    def at_most_one_task(self) -> None:
        """One that plays, and while it waits for the pages one that sleeps for it."""
        names = sorted(task.get_name() for task in asyncio.all_tasks(self.stage.loop))
        assert names in ([], [PLAYBACK], [PLAYBACK, SLEEP])


def test_a_late_answer_delays_the_step_that_prepares_and_loses_none() -> None:
    """Found by ten thousand sequences: the model had the step come within two seconds."""
    commands = Commands()
    try:
        commands.open_page()
        commands.one_step_exactly()
        commands.replace_source()
        commands.acknowledge(2)
        commands.one_step_exactly()
    finally:
        commands.teardown()


def test_any_commands_in_any_order() -> None:
    run_state_machine_as_test(Commands, settings=settings(max_examples=100, stateful_step_count=40))


@pytest.mark.parametrize(
    ("owner", "name", "sabotage"),
    [
        (Display, "unacknowledged", lambda *_: 0),
        (Display, "wait_seconds", lambda *_: 0.0),
        (FakeRecorder, "extend", lambda self, block: self.kept.extend(block[:-1])),
    ],
    ids=["without back-pressure", "without a frame rate", "drops iterations"],
)
def test_twins_are_caught(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, sabotage: Callable[..., object]
) -> None:
    def use(paints: bool) -> None:
        commands = Commands()
        try:
            commands.open_page()
            commands.play()
            for _ in range(40):
                commands.let_time_pass(0.03)
                if paints and commands.sent:
                    commands.acknowledge(0)
                commands.no_gaps_in_the_record()
                commands.status_tells_the_truth()
        finally:
            commands.teardown()

    use(paints=True)
    use(paints=False)
    monkeypatch.setattr(owner, name, sabotage)
    with pytest.raises((AssertionError, IndexError)):
        use(paints=name != "unacknowledged")
