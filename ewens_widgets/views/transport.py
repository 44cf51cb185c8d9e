"""Play, pause, step: the buttons, the timeline, and the status in words.

One large button plays and pauses; at the end of a run it adds iterations. The timeline shows what is done,
the burn-in and the last jump of the log posterior, and its handle leads back to earlier iterations.
"""

import math
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
from ipywidgets import Button, Dropdown, HBox, VBox, Widget
from traitlets import Int

from ewens_widgets.playback import Frame, Player, PlayerState, PlayerStatus
from ewens_widgets.playback.frame import number_text
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.moves.move import MOVES
from ewens_widgets.views.base import Silence, assign, look, make, note
from ewens_widgets.views.fields import buttons

Speed = float | str | None
"""Iterations per frame, None for as fast as possible, or `RISING`."""

RISING = "rising"
"""The speed that begins with one iteration per frame and rises to twenty."""

_RISE = ((10, 1.0), (20, 2.0), (60, 5.0))  # up to this iteration, iterations per frame

SPEEDS: tuple[tuple[str, float | str], ...] = (
    ("slowly, then faster", RISING),
    ("1 iteration in 2 s", 1 / 40),
    ("2 iterations per second", 1 / 10),
    ("1 iteration per frame", 1.0),
    ("5 iterations per frame", 5.0),
    ("20 iterations per frame", 20.0),
    ("as fast as possible", math.inf),
)
"""What the user reads, and iterations per frame (infinity: no limit). The page shows about 20 frames per
second."""


def risen_speed(iteration: int) -> float:
    """The rising speed at an iteration, in iterations per frame."""
    return next((speed for end, speed in _RISE if iteration < end), 20.0)


MORE = 1000
"""Iterations that one click adds to a finished run."""

# Browsers take long to lay out sliders: while the chain runs they follow at this distance, in seconds.
_REST = 0.3

_BUTTONS = (
    ("Play", "play", "ew-play", "Run the chain, or pause it (space bar)"),
    ("Step", "step-forward", "ew-step", "Run one iteration"),
    ("Run to end", "fast-forward", "ew-run-to-end", "Run the remaining iterations as fast as possible"),
    ("Reset", "refresh", "ew-reset", "Return to the start and delete the draws"),
)


def status_text(frame: Frame, status: PlayerStatus | None = None) -> str:
    """Describe a frame in one line: iteration, what happened, how fast it goes.

    Parameters
    ----------
    frame
        What is on display.
    status
        A newer status than that of the frame.
    """
    now = frame.status if status is None else status
    if now.state is PlayerState.PREPARING or now.state is PlayerState.FAILED:
        return now.message
    parts = [f"iteration {number_text(now.shown_iteration)} of {number_text(now.target)}"]
    if frame.event is not None and frame.event.iteration == now.shown_iteration and frame.event.moves:
        parts.append(move_text(frame))
    if not now.is_following:
        return " · ".join([*parts, f"looking back; the chain is at {number_text(now.iteration)}"])
    if (rate := round(now.iterations_per_second)) >= 1:
        parts.append("1 iteration/s" if rate == 1 else f"{number_text(rate)} iterations/s")
    if now.message:
        parts.append(now.message.rstrip("."))
    return " · ".join(parts)


def move_text(frame: Frame) -> str:
    """Describe the moves of the iteration on display."""
    event = frame.event
    if event is None or not event.moves:
        return ""
    if event.proposed_labels is not None and event.accepted is not None:
        kind = _kind(frame, event, int(np.max(event.proposed_labels)) + 1)
        return f"{kind} {'accepted' if event.accepted else 'rejected'}"
    if len(event.moves) == 1 and event.moves[0].proposals == 1:
        return "proposal accepted" if event.moves[0].acceptances else "proposal rejected"
    parts = []
    # A Gibbs draw is always accepted: what counts is how many points it has moved.
    sweeps = {name for name, kind in MOVES.items() if kind.is_sweep}
    for is_drawn, what in ((False, "proposals accepted"), (True, "points moved")):
        moves = [move for move in event.moves if (move.name in sweeps) == is_drawn]
        made, taken = (sum(getattr(move, name) for move in moves) for name in ("proposals", "acceptances"))
        several = made // event.labels.size if is_drawn else 0
        if several > 1:
            parts.append(f"{taken} {what} in {several} sweeps")
        elif made:
            parts.append(f"{taken} of {made} {what}")
    return ", ".join(parts) or "nothing proposed"


def _kind(frame: Frame, event: Event, after: int) -> str:
    """Whether a proposal with `after` clusters splits, merges, or moves an object."""
    previous = frame.summary.n_clusters[-2:-1]
    before = event.n_clusters if not event.accepted else int(previous[0]) if len(previous) else None
    move = MOVES.get(event.moves[0].name)
    if move is None:  # The record is from a move that is not registered here.
        return "proposal"
    if before is None or move.moves_one:
        return "move"
    return "split" if after > before else "merge" if after < before else "move"


class Timeline(anywidget.AnyWidget):
    """The iterations of a run: how many are done, the burn-in, a jump, and a handle that is dragged."""

    _esm = Path(__file__).parent / "timeline.js"

    value = Int(0).tag(sync=True)
    """Iteration on display; the page sets it too."""

    max = Int(1).tag(sync=True)
    done = Int(0).tag(sync=True)
    burn_in = Int(0).tag(sync=True)
    jump = Int(-1).tag(sync=True)
    """Iteration of the last jump of the log posterior, or −1."""


def present_button() -> Button:
    """Button for a whole room; the page itself presents, so there is nothing to be called here."""
    tooltip = "Full screen with large type (F); Esc returns"
    return make(Button, "ew-present", description="Present", icon="arrows-alt", tooltip=tooltip)


class Transport(VBox):
    """Buttons, timeline and status of a player.

    Parameters
    ----------
    player
        What is played.
    others
        Widgets at the end of the row.
    on_more
        Called with a number of iterations when the user wants more of them at the end of a run; has to raise
        the target and play. None: a run that has ended cannot be continued.
    """

    def __init__(
        self,
        player: Player,
        others: tuple[Widget, ...] = (),
        on_more: Callable[[int], None] | None = None,
    ) -> None:
        self._player = player
        self._on_more = on_more
        self._frame: Frame | None = None
        self._silence = Silence()
        self._due = 0.0
        self.buttons = buttons(_BUTTONS, self._command)
        self._risen = player.speed  # the rising speed that the player has
        self.speed = make(
            Dropdown, "ew-speed", options=SPEEDS, description="speed", tooltip="How fast the chain runs"
        )
        self.choose_speed(player.speed)
        self.speed.observe(self._on_speed, "value")
        self.status = note("ew-status")
        self.timeline = Timeline(**look("ew-timeline"))
        self.timeline.observe(self._on_seek, "value")
        play, *more = self.buttons.values()
        middle = VBox((self.timeline, self.status), **look("ew-timeline-box"))
        super().__init__(
            (HBox((play, middle, *more, self.speed, *others), **look("ew-transport")),),
            **look("ew-transport-box"),
        )
        player.on_status(self._write)  # it may come ahead of the next frame

    def _command(self, name: str) -> None:
        player = self._player
        commands: dict[str, Callable[[], None]] = {
            "Play": player.pause if player.status.is_running else player.play,
            "Step": player.step,
            "Run to end": player.run_to_end,
            "Reset": player.reset,
        }
        if name == "Play" and player.status.is_end and self._on_more is not None:
            self._on_more(MORE)
        else:
            commands[name]()

    def choose_speed(self, speed: Speed) -> None:
        """Set the speed in iterations per frame; None: as fast as possible."""
        # For a chooser None would mean that nothing is chosen.
        wanted = math.inf if speed is None else speed
        if wanted not in dict(self.speed.options).values():
            self.speed.options = (*self.speed.options, (f"{wanted:g} iterations per frame", wanted))
        self.speed.value = wanted

    def _on_speed(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        if change["new"] == RISING:
            self._risen = self._player.speed
            self._rise(self._player.status.iteration)
        else:
            self._player.speed = None if change["new"] == math.inf else change["new"]

    def _rise(self, iteration: int) -> None:
        """Set the rising speed of an iteration, unless the player has been given another speed."""
        if self._player.speed != self._risen:
            self.choose_speed(self._player.speed)
            return
        wanted = risen_speed(iteration)
        if wanted != self._risen:
            self._player.speed = self._risen = wanted

    def _on_seek(self, change: dict[str, Any]) -> None:
        if self._silence:
            return
        status = self._player.status
        # At the right end the display follows the chain again.
        wanted = max(int(change["new"]), status.first_iteration)
        self._player.seek(None if wanted >= status.iteration else wanted)

    def show(self, frame: Frame) -> None:
        """Show where the chain is."""
        self._frame = frame
        if self.speed.value == RISING:
            self._rise(frame.status.iteration)
        self._write(frame.status)

    def _write(self, status: PlayerStatus) -> None:
        if self._frame is None:
            return
        assign(self.status, value=escape(status_text(self._frame, status)))
        name, icon, style = "Play", "play", "primary"
        if status.is_running:
            name, icon, style = "Pause", "pause", ""
        elif status.is_end and self._on_more is not None:
            name, icon = f"Run {number_text(MORE)} more", "plus"
        is_over = status.is_end and self._on_more is None
        assign(self.buttons["Play"], description=name, icon=icon, button_style=style, disabled=is_over)
        now = time.perf_counter()
        if status.is_running and now < self._due:
            return
        self._due = now + _REST
        # A target that was lowered leaves what is recorded beyond it.
        last = max(1, status.target, status.iteration)
        jump = None if self._frame.event is None else self._frame.summary.leap()
        with self._silence:
            assign(
                self.timeline,
                max=last,
                done=status.iteration,
                value=status.shown_iteration,
                burn_in=min(last, self._player.burn_in),
                jump=-1 if jump is None else jump,
            )
