"""Brings commands from any thread to the thread of the event loop, in the order in which they were given.

Handlers of browser messages may run on a thread of their own (ipykernel 7 has subshells). There a command
only joins a queue; the loop that was captured earlier takes it out. On the loop's own thread a command is
carried out at once, unless a turn is under way (a view may give commands): then it follows when the turn is
over.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["Mailbox", "running_loop"]


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
