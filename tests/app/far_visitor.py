"""A visitor of the web app whose browser is elsewhere: it says what a page says, and paints nothing.

It asks for the page, connects to the kernel behind it in the protocol that browsers use, presses buttons, and
acknowledges each frame as soon as it is there. What server and kernels do for it is what they do for a real
page, and it takes next to nothing of the machine itself.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse
from tornado.websocket import WebSocketClientConnection, websocket_connect

PROTOCOL = "v1.kernel.websocket.jupyter.org"
_CONTROL_VERSION = "1.0.0"
_PATIENCE = 600.0  # seconds; a test that hangs is ended by others
AsyncHTTPClient.configure(None, max_clients=100)  # more visitors at once than the ten of the default


class FarVisitor:
    """A page that is open; `far_visit` opens one.

    Attributes
    ----------
    frames
        When each frame came, in seconds of the monotonic clock.
    """

    def __init__(self, address: str, kernel: str, cookies: str, link: WebSocketClientConnection) -> None:
        self._address, self.kernel, self.cookies, self._link = address, kernel, cookies, link
        self._session = uuid4().hex
        self._page = self._awaited = ""
        self.models: dict[str, dict[str, Any]] = {}
        self.frames: list[float] = []
        self._came = asyncio.Condition()
        self._listening = asyncio.create_task(self._listen())

    def _send(
        self,
        comm: str,
        data: dict[str, Any],
        kind: str = "comm_msg",
        buffers: Sequence[bytes] = (),
        **content: str,
    ) -> str:
        header = {
            "msg_id": uuid4().hex,
            "msg_type": kind,
            "session": self._session,
            "username": "",
            "version": "5.3",
        }
        version = _CONTROL_VERSION if kind == "comm_open" else "2.1.0"
        parts = header, {}, {"version": version}, {"comm_id": comm, "data": data, **content}
        packed = [json.dumps(part).encode() for part in parts]
        self._link.write_message(serialize_msg_to_ws_v1([*packed, *buffers], "shell"), binary=True)
        return header["msg_id"]

    def tell(self, model: str, **content: object) -> None:
        """Send what a view of a widget sends of itself."""
        self._send(model, {"method": "custom", "content": content})

    def change(self, model: str, **state: object) -> None:
        """Change traits of a widget, as one who uses its control."""
        self._send(model, {"method": "update", "state": state, "buffer_paths": []})

    def choose(self, label: str) -> None:
        """Choose from the list that has this label."""
        for name, model in self.models.items():
            labels = model["state"].get("_options_labels", ())
            if label in labels:
                self.change(name, index=labels.index(label))
                return
        raise LookupError(f"there is no list with {label!r}")

    async def upload(self, name: str, content: bytes) -> None:
        """Give a table to the panel of data, and wait until the kernel has dealt with it."""
        await self.open_sections()
        panel = next(
            name for name, model in self.models.items() if ".csv" in model["state"].get("accept", "")
        )
        message = {"method": "custom", "content": {"kind": "file", "name": name}}
        self._awaited = self._send(panel, message, buffers=[content])
        async with asyncio.timeout(_PATIENCE), self._came:
            await self._came.wait_for(lambda: not self._awaited)

    async def open_sections(self) -> None:
        """Open each section once: its widgets are made when it is first opened."""
        sections = next(name for name, one in self.models.items() if one["model_name"] == "AccordionModel")
        for number in range(len(self.models[sections]["state"]["children"])):
            content = {"method": "update", "state": {"selected_index": number}, "buffer_paths": []}
            self._awaited = self._send(sections, content)
            async with asyncio.timeout(_PATIENCE), self._came:
                await self._came.wait_for(lambda: not self._awaited)

    def press(self, tooltip_or_description: str) -> None:
        """Press a button."""
        for name, model in self.models.items():
            words = (model["state"].get("description"), model["state"].get("tooltip"))
            if model["model_name"] == "ButtonModel" and tooltip_or_description in words:
                self.tell(name, event="click")
                return
        raise LookupError(f"there is no button {tooltip_or_description!r}")

    async def _listen(self) -> None:
        control = uuid4().hex
        self._send(control, {}, "comm_open", target_name="jupyter.widget.control")
        self._send(control, {"method": "request_states"})
        while (packed := await self._link.read_message()) is not None:
            assert isinstance(packed, bytes)
            channel, parts = deserialize_msg_from_ws_v1(packed)
            if self._awaited and self._awaited.encode() in parts[1] and b'"idle"' in parts[3]:
                self._awaited = ""
                await self._notify()
            if channel == "iopub" and b'"comm_open"' in parts[0]:
                opened = json.loads(parts[3])
                state = opened["data"].get("state", {})
                self.models[opened["comm_id"]] = {"model_name": state.get("_model_name"), "state": state}
            # Most of what comes is not looked into, as a page would have to.
            if channel != "iopub" or b'"comm_msg"' not in parts[0]:
                continue
            if not self._page:
                content = json.loads(parts[3])
                if content["data"].get("method") == "update_states":
                    self.models |= content["data"]["states"]
                    self._page = next(
                        name for name, model in self.models.items() if "is_running" in model["state"]
                    )
                    self.tell(self._page, kind="here", viewer=self._session)
                    await self._notify()
            elif self._page.encode() in parts[3]:
                number = self._frame_of(json.loads(parts[3])["data"])
                if number is not None:
                    self.frames.append(time.monotonic())
                    answer = {"viewer": self._session, "number": number, "unpacks": True}
                    self.tell(self._page, kind="painted", **answer)
                    await self._notify()

    def _frame_of(self, data: dict[str, Any]) -> int | None:
        """Number of the frame that a message to the page ends, whether it came alone or in a parcel."""
        parcel = data.get("content", {}).get("updates", ())
        states = [update["state"] for update in parcel if update["model"] == self._page]
        return next((state["frame"] for state in (data.get("state", {}), *states) if "frame" in state), None)

    async def _notify(self) -> None:
        async with self._came:
            self._came.notify_all()

    async def until(self, frames: int) -> None:
        """Wait until so many frames have come; 0: until the widgets are known."""
        async with asyncio.timeout(_PATIENCE), self._came:
            await self._came.wait_for(lambda: bool(self._page) and len(self.frames) >= frames)

    async def leave(self) -> None:
        """Close the page, which tells the server so."""
        self._listening.cancel()
        self._link.close()
        await end_visit(self._address, self.kernel, self.cookies)


def cookies_of(answer: HTTPResponse) -> str:
    """Cookies of an answer, as they are sent back."""
    return "; ".join(one.partition(";")[0] for one in answer.headers.get_list("Set-Cookie"))


async def open_page(address: str, cookies: str = "") -> tuple[str, str]:
    """Ask for the page; return the kernel behind it, and the browser's cookies."""
    headers = {"Cookie": cookies} if cookies else {}
    request = HTTPRequest(address, headers=headers, connect_timeout=_PATIENCE, request_timeout=_PATIENCE)
    answer = await AsyncHTTPClient().fetch(request)
    found = re.search(r'"kernelId": *"([\w-]+)"', answer.body.decode())
    assert found is not None, "a page without a kernel"
    return found[1], cookies_of(answer)


async def end_visit(address: str, kernel: str, cookies: str) -> None:
    """Say that the page is closed; answered when its kernel has ended."""
    token = re.search(r"_xsrf=([^;]+)", cookies)
    assert token is not None
    headers = {"Cookie": cookies, "X-XSRFToken": token[1]}
    url = f"{address}voila/api/shutdown/{kernel}"
    request = HTTPRequest(url, method="POST", headers=headers, body=b"", request_timeout=_PATIENCE)
    await AsyncHTTPClient().fetch(request)


async def connect(
    address: str, kernel: str, cookies: str, *, protocols: Sequence[str] = (PROTOCOL,), **headers: str
) -> WebSocketClientConnection:
    """Connect to a kernel as its page does."""
    url = f"{address.replace('http', 'ws', 1)}api/kernels/{kernel}/channels?session_id={uuid4().hex}"
    sent = {"Cookie": cookies, **headers}
    request = HTTPRequest(url, headers=sent, connect_timeout=_PATIENCE, request_timeout=_PATIENCE)
    return await websocket_connect(request, subprotocols=list(protocols) or None, max_message_size=2**28)


@asynccontextmanager
async def far_visit(address: str) -> AsyncIterator[FarVisitor]:
    """A page from its opening to its closing; its widgets are there and greeted."""
    kernel, cookies = await open_page(address)
    link = await connect(address, kernel, cookies)
    visitor = FarVisitor(address, kernel, cookies, link)
    try:
        await visitor.until(0)
        yield visitor
    finally:
        await visitor.leave()
