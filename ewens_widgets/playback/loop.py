"""Brings commands from any thread to the thread of the event loop, in the order in which they were given.

Handlers of browser messages may run on a thread of their own (ipykernel 7 has subshells). There a command
only joins a queue; the loop that was captured earlier takes it out. On the loop's own thread a command is
carried out at once, unless a turn is under way (a view may give commands): then it follows when the turn is
over.

The asyncio task that gives the engine its turns, and the way of commands from other threads to it.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Protocol

from ewens_widgets.playback.engine import INTERRUPTED
from ewens_widgets.playback.pacing import Pacing

__all__ = ["BackgroundTask", "Mailbox", "Turns", "running_loop"]


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Mailbox:
    """A queue of commands and the loop that carries them out.

    Parameters
    ----------
    after
        Called on the loop's thread when commands have been carried out.
    """

    def __init__(self, after: Callable[[], None]) -> None:
        self._after = after
        self._commands: deque[Callable[[], None]] = deque()
        self._is_held = False
        self.loop = running_loop()

    def __bool__(self) -> bool:
        return bool(self._commands)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the loop runs on another thread than this one."""
        return self.loop is not None and self.loop.is_running() and running_loop() is not self.loop

    def capture_loop(self) -> bool:
        """Make sure that there is a running loop: the one captured before, or else this thread's."""
        if self.loop is None or not self.loop.is_running():
            self.loop = running_loop()
        return self.loop is not None

    def post(self, command: Callable[[], None]) -> None:
        """Have a command carried out on the loop's thread: now if this is that thread, soon if not."""
        self._commands.append(command)
        if self.loop is not None and self.is_elsewhere:
            # A loop that was closed in the meantime takes nothing; then nobody else handles commands either.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.deliver)
                return
        self.deliver()

    def deliver(self) -> None:
        """Carry out the commands that wait, unless they are held."""
        if self._is_held or not self._commands:
            return
        with self.held():
            while self._commands:
                self._commands.popleft()()
        self._after()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let commands wait: something is going on that they must not disturb."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False


_PATIENCE = 30.0
_SHUT_DOWN = "The event loop was shut down. Play continues from here."


class _Running(Protocol):
    @property
    def is_running(self) -> bool: ...


class Turns(Protocol):
    """Something that works turn by turn, such as the engine of a player."""

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds from an arbitrary start."""

    @property
    def status(self) -> _Running:
        """Whether it is running."""

    @property
    def has_work(self) -> bool:
        """Whether there is a reason for another turn."""

    @property
    def flight(self) -> "Future[None] | None":
        """Done when there is something to take over from another thread; None if nothing is under way."""

    def turn(self) -> float:
        """Work for a moment; return for how long to rest."""

    def run(self, count: int) -> None:
        """Do so much work without rest."""

    def pause(self, message: str = "") -> None:
        """Stop running."""


class BackgroundTask:
    """At most one task, which exists only while the engine has something to do.

    Parameters
    ----------
    engine
        Does the work; only ever touched on the thread of the event loop.
    pacing
        How to rest between two turns.
    sleep
        How to wait.
    """

    def __init__(self, engine: Turns, pacing: Pacing, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._engine = engine
        self._pacing = pacing
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None
        self.mailbox = Mailbox(after=self._ensure_task)

    @property
    def is_settled(self) -> bool:
        """Whether all commands are carried out and the chain stands still."""
        return not self.mailbox and not self._engine.status.is_running

    def need_loop(self, command: str) -> None:
        """Refuse a command that works in the background when there is no running event loop."""
        if not self.mailbox.capture_loop():
            raise RuntimeError(
                f"{command}() works in the background and needs a running event loop, as notebooks have; in "
                f"a plain script call {command}_sync(), or sample() of the sampler, or use asyncio.run"
            )

    def run_sync(self, iterations: int, command: str) -> None:
        """Run iterations in the foreground."""
        if self.mailbox.is_elsewhere:
            raise RuntimeError(
                f"{command}_sync() was called off the event loop's thread; call {command}() there"
            )
        self.mailbox.post(lambda: self._engine.run(iterations))

    def settle(self, command: Callable[[], None]) -> None:
        """Have a command carried out on the loop's thread, after all that were given before; wait for it."""
        if not self.mailbox.is_elsewhere:
            command()
            return
        is_done = threading.Event()

        def carry_out() -> None:
            command()
            is_done.set()

        self.mailbox.post(carry_out)
        if not is_done.wait(_PATIENCE):
            raise RuntimeError("the event loop is busy, so the chain cannot be stopped; try again")

    async def wait(self, timeout: float | None) -> None:
        """Wait until all commands are carried out and the chain stands still, or until the time is over."""
        deadline = None if timeout is None else self._engine.clock() + timeout
        try:
            # Looking again and again is robust whichever loop and thread this runs on.
            while not self.is_settled and (deadline is None or self._engine.clock() < deadline):
                await self._sleep(self._pacing.poll)
        except asyncio.CancelledError:
            self.mailbox.post(lambda: self._engine.pause(INTERRUPTED))
            raise

    def _ensure_task(self) -> None:
        loop = running_loop()
        if loop is None or loop is not self.mailbox.loop or not self._engine.has_work:
            return
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._run(), name="ewens_widgets playback")

    async def _run(self) -> None:
        task = asyncio.current_task()
        try:
            while self._engine.has_work:
                await self._rest(self._turn())
        finally:
            # Out of work, cancelled, or destroyed with its loop. An abandoned task must not stop its heir.
            if self._task is task:
                self._task = None
                self._engine.pause(_SHUT_DOWN)

    def _turn(self) -> float:
        rest = self._pacing.nap
        try:
            with self.mailbox.held():
                rest = self._engine.turn()
            self.mailbox.deliver()
        except KeyboardInterrupt:  # between two turns; if it got through, it would end the event loop
            self._engine.pause(INTERRUPTED)
        return rest

    async def _rest(self, seconds: float) -> None:
        for _ in range(self._pacing.yields):
            await asyncio.sleep(0)
        await self._sleep(seconds)
        if self._engine.flight is not None:
            landing = asyncio.wrap_future(self._engine.flight)
            # Somebody has to look at its fault; the turn that follows raises it.
            landing.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait((landing,))
