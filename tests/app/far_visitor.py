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
from http.cookies import SimpleCookie
from typing import Any
from uuid import uuid4

from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

PROTOCOL = "v1.kernel.websocket.jupyter.org"
_CONTROL_VERSION = "1.0.0"
_PATIENCE = 600.0  # seconds; a test that hangs is ended by others


class FarVisitor:
    """A page that is open; `far_visit` opens one.

    Attributes
    ----------
    frames
        When each frame came, in seconds of the monotonic clock.
    """

    def __init__(self, address: str, kernel: str, link: WebSocketClientConnection) -> None:
        self._address, self.kernel, self._link = address, kernel, link
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
        panel = next(
            name for name, model in self.models.items() if ".csv" in model["state"].get("accept", "")
        )
        message = {"method": "custom", "content": {"kind": "file", "name": name}}
        self._awaited = self._send(panel, message, buffers=[content])
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
            # Most of what comes is not looked into, as a page would have to.
            if channel != "iopub" or b'"comm_msg"' not in parts[0]:
                continue
            if not self.models:
                content = json.loads(parts[3])
                if content["data"].get("method") == "update_states":
                    self.models = content["data"]["states"]
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
            await self._came.wait_for(lambda: bool(self.models) and len(self.frames) >= frames)

    async def leave(self) -> None:
        """Close the page, which tells the server so."""
        self._listening.cancel()
        self._link.close()
        client = AsyncHTTPClient()
        asked = await client.fetch(f"{self._address}visits/{self.kernel}", request_timeout=_PATIENCE)
        cookie = next(
            SimpleCookie(one)["_xsrf"].value
            for one in asked.headers.get_list("Set-Cookie")
            if one.startswith("_xsrf=")
        )
        headers = {"Cookie": f"_xsrf={cookie}", "X-XSRFToken": cookie}
        address = f"{self._address}voila/api/shutdown/{self.kernel}"
        # Answered when the kernel has ended, which takes its time on a busy machine.
        await client.fetch(
            HTTPRequest(address, method="POST", headers=headers, body=b"", request_timeout=_PATIENCE)
        )


@asynccontextmanager
async def far_visit(address: str) -> AsyncIterator[FarVisitor]:
    """A page from its opening to its closing; its widgets are there and greeted."""
    answer = await AsyncHTTPClient().fetch(address, connect_timeout=_PATIENCE, request_timeout=_PATIENCE)
    found = re.search(r'"kernelId": *"([\w-]+)"', answer.body.decode())
    assert found is not None, "a page without a kernel"
    url = f"{address.replace('http', 'ws', 1)}api/kernels/{found[1]}/channels?session_id={uuid4().hex}"
    asked = HTTPRequest(url, connect_timeout=_PATIENCE, request_timeout=_PATIENCE)
    link = await websocket_connect(asked, subprotocols=[PROTOCOL], max_message_size=2**28)
    visitor = FarVisitor(address, found[1], link)
    try:
        await visitor.until(0)
        yield visitor
    finally:
        await visitor.leave()
