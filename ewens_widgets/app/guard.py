"""What a request must satisfy before Voilà, jupyter-server or a visitor's process sees it.

The parsers behind it trust their input: forty bytes could claim 2^64 parts, and take all memory.
So a message is checked here first: its layout (`unpack`), its kind, its size, and the rate of its visitor. A
cookie ties each visit to the browser that opened it, so that knowing the visit's id is not enough to join it.

`server` puts these handlers in the place of the original ones. `docs/web_app.md` lists the attacks that are
covered, and `tests/app/test_hostile.py` carries them out.
"""

import json
import re
import struct
import time
from collections.abc import Awaitable
from itertools import pairwise
from typing import Any

from jupyter_server.services.kernels.handlers import KernelHandler
from tornado.iostream import StreamBufferFullError
from tornado.web import HTTPError
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler

__all__ = ["HEADERS", "Allowance", "MessageError", "check", "unpack"]

PROTOCOL = "v1.kernel.websocket.jupyter.org"
LARGEST_MESSAGE = 16 * 2**20  # bytes; an upload has at most 5 MB
LARGEST_JSON = 2**20  # bytes of a message, without tables and other arrays, which follow it as they are
MOST_UNREAD = 2**25  # bytes that wait for a page which does not read, or for a process which does not answer
COST = 2**11  # bytes that a waiting message takes besides its content
LONGEST_QUERY = 2000
MOST_PARTS = 64
MOST_CONNECTIONS = 4  # per visit; a page that is loaded again has two for a moment
_KINDS = {"comm_open", "comm_close", "comm_msg", "comm_info_request", "kernel_info_request"}
_TARGETS = {"jupyter.widget.control"}  # by which a page asks for all widgets
_DICTIONARIES = ("header", "parent_header", "metadata", "content")

HEADERS = {
    # Voilà's page and the widgets need inline and evaluated scripts; other hosts are out of reach.
    "Content-Security-Policy": "default-src 'self'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; "
    "style-src 'self' 'unsafe-inline' blob: data:; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class MessageError(ValueError):
    """A message that no page sends."""


class Allowance:
    """How much a visitor may send: a rate, and a reserve that fills up again.

    Parameters
    ----------
    rate, reserve
        Units per second, and the most that is saved up.
    """

    def __init__(self, rate: float, reserve: float) -> None:
        self._rate, self._reserve = rate, reserve
        self._left, self._filled = reserve, time.monotonic()

    def take(self, units: float) -> bool:
        """Take units, if there are enough."""
        now = time.monotonic()
        self._left = min(self._reserve, self._left + self._rate * (now - self._filled))
        self._filled = now
        self._left -= units
        return self._left >= 0


class Sender:
    """What a visitor has sent: how fast, and how much of it waits for an answer of the visitor's process."""

    def __init__(self) -> None:
        # A page sends some twenty messages per second, and a few hundred when it is loaded.
        self._messages, self._content = Allowance(200, 2000), Allowance(4 * 2**20, 2**26)
        self._waiting: dict[str, int] = {}
        self._total = 0

    def may_send(self, size: int) -> bool:
        """Count a message; return whether the visitor keeps to the rates."""
        return self._messages.take(1) & self._content.take(size)

    def passes_on(self, name: str, size: int) -> bool:
        """Note a message until it is answered; return whether not too much waits by now."""
        if name in self._waiting or self._total > MOST_UNREAD:
            return False
        self._waiting[name] = size + COST
        self._total += size + COST
        return True

    def is_answered(self, name: str) -> None:
        """Forget a message that was answered, and those before it, whose answers were lost."""
        for earlier in list(self._waiting) if name in self._waiting else ():
            self._total -= self._waiting.pop(earlier)
            if earlier == name:
                return


def unpack(message: bytes | str) -> tuple[str, list[bytes]]:
    """Split a message into its channel and its parts, as the protocol lays them out.

    Eight bytes hold the number of offsets, eight bytes each offset (little-endian); the offsets bound the
    channel's name and the parts, one after another, up to the end of the message.
    """
    if isinstance(message, str) or len(message) < 8:
        raise MessageError("not a message of the protocol")
    count = int.from_bytes(message[:8], "little")
    if not len(_DICTIONARIES) + 2 <= count <= MOST_PARTS + 2 or len(message) < 8 * (count + 1):
        raise MessageError("a wrong number of parts")
    offsets = struct.unpack_from(f"<{count}Q", message, 8)
    if (
        offsets[0] != 8 * (count + 1)
        or offsets[-1] != len(message)
        or any(a > b for a, b in pairwise(offsets))
    ):
        raise MessageError("parts outside of the message")
    channel, *parts = (message[start:stop] for start, stop in pairwise(offsets))
    return channel.decode("ascii", "replace"), parts


def check(message: bytes | str) -> str | None:
    """Check a message of a page.

    Returns
    -------
    Its identifier if it is passed on. Kinds of messages that no page needs are not.

    Raises
    ------
    MessageError
        For what no page sends.
    """
    channel, parts = unpack(message)
    # A few bytes of JSON may become a hundred in memory.
    if sum(len(part) for part in parts[: len(_DICTIONARIES)]) > LARGEST_JSON:
        raise MessageError("more JSON than a page sends")
    try:
        header, _, _, content = (_dictionary(part) for part in parts[: len(_DICTIONARIES)])
    except (ValueError, RecursionError) as error:
        raise MessageError("parts that are not dictionaries") from error
    kind, name = header.get("msg_type"), header.get("msg_id")
    if channel != "shell" or not isinstance(kind, str) or kind not in _KINDS:
        return None
    if kind == "comm_open" and content.get("target_name") not in _TARGETS:
        return None
    if not isinstance(name, str) or not 0 < len(name) <= 100:
        raise MessageError("a message without an identifier")
    is_comm = kind in {"comm_open", "comm_msg", "comm_close"}
    if is_comm and not (
        isinstance(content.get("comm_id"), str) and isinstance(content.get("data", {}), dict)
    ):
        raise MessageError("a message to no widget")
    return name


def _dictionary(part: bytes) -> dict[str, Any]:
    value = json.loads(part)
    if not isinstance(value, dict):
        raise MessageError("a part that is not a dictionary")
    return value


class Terse:
    """Part of a handler that browsers ask: our headers also on its files, and no page for an error."""

    set_header: Any
    finish: Any

    def set_default_headers(self) -> None:
        """Tell browsers to load from here alone."""
        super().set_default_headers()  # type: ignore[misc]
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code: int, **_: object) -> None:
        """Answer with the status alone; no person reads more."""
        self.finish(f"{status_code}\n")


class OwnVisit(Terse):
    """Part of a handler whose address names a visit: only the browser that opened the visit is answered."""

    # What it uses of the handler.
    kernel_manager: Any
    path_args: list[str]
    path_kwargs: dict[str, str]

    async def prepare(self, *arguments: Any, **keywords: Any) -> None:  # noqa: ANN401 - passed on
        """Refuse a browser without the visit's cookie."""
        prepared: Awaitable[None] | None = super().prepare(*arguments, **keywords)  # type: ignore[misc]
        if prepared is not None:
            await prepared
        (visit,) = (*self.path_args, *self.path_kwargs.values())
        owner = self.kernel_manager.owners.get(visit)
        if owner is not None and owner != visitor_of(self):
            raise HTTPError(403, "this visit belongs to another browser")


def cookie_name(handler: Any) -> str:  # noqa: ANN401 - any handler
    """Name of the cookie; ports of one host share their cookies."""
    return f"ewens-visitor-{handler.settings['voila'].port}"


def visitor_of(handler: Any) -> str | None:  # noqa: ANN401 - any handler
    """Who asks, as the signed cookie says."""
    value = handler.get_signed_cookie(cookie_name(handler))
    return None if value is None else value.decode("ascii", "replace")


class GuardedSocket(OwnVisit, VoilaKernelWebsocketHandler):
    """The connection of a page: one protocol, and only messages that pages send."""

    async def get(self, kernel_id: str) -> None:
        """Open the connection, if it is one of a page."""
        offered = self.request.headers.get("Sec-WebSocket-Protocol", "")
        if PROTOCOL not in [name.strip() for name in offered.split(",")]:
            raise HTTPError(400, f"this server speaks {PROTOCOL} only")
        if not re.fullmatch(r"[\w-]{1,64}", self.get_argument("session_id", "none")):
            raise HTTPError(400, "session_id must be up to 64 letters, digits, - and _")
        if kernel_id not in self.kernel_manager:
            raise HTTPError(404, "this visit has ended")
        if self.kernel_manager.connections(kernel_id) >= MOST_CONNECTIONS:
            raise HTTPError(429, "this visit has too many connections")
        await super().get(kernel_id=kernel_id)

    async def open(self, kernel_id: str) -> None:
        """Limit what waits for a page that does not read."""
        self.ws_connection.stream.max_write_buffer_size = MOST_UNREAD
        await super().open(kernel_id)

    def on_message(self, ws_message: bytes | str) -> None:
        """Pass a message on to the visitor's process, or close the connection."""
        try:
            sender = self.kernel_manager.senders.get(self.kernel_id)
            if sender is None:
                raise MessageError("the visit has ended")
            if not sender.may_send(len(ws_message)):
                raise MessageError("more messages than a page sends")
            name = check(ws_message)
            if name is not None and not sender.passes_on(name, len(ws_message)):
                raise MessageError("more messages than the process answers")
        except MessageError as error:
            self.log.warning("Closed a connection of visit %s: %s", self.kernel_id, error)
            self.close(1008, str(error))
            return
        if name is not None:
            super().on_message(ws_message)

    def write_message(self, message: bytes | dict[str, Any], binary: bool = False) -> Any:  # noqa: ANN401 - a future
        """Send a message, or end the connection if the page has left too many unread."""
        try:
            return super().write_message(message, binary)
        except StreamBufferFullError:
            self.log.warning("Closed a connection of visit %s: it does not read", self.kernel_id)
            self.ws_connection.stream.close()
            return None


class GuardedKernel(OwnVisit, KernelHandler):
    """Says of a visitor's process that it is there; it is ended by `GuardedShutdown`."""

    SUPPORTED_METHODS = ("GET",)


class GuardedShutdown(OwnVisit, VoilaShutdownKernelHandler):
    """Ends a visit when its page is closed."""

    async def post(self, kernel_id: str) -> None:
        """End the visit, if it has not ended yet."""
        if kernel_id in self.kernel_manager:
            await super().post(kernel_id)
        else:
            self.set_status(204)
            self.finish()
