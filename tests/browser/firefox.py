"""Debian's Firefox, driven by WebDriver BiDi: Playwright sends it commands that it does not know."""

import base64
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from browser.explorer_page import PATIENCE
from browser.opened import VIEWPORT, do_without
from browser.servers import free_port, running
from PIL import Image
from websocket import WebSocket, create_connection


class Firefox:
    """A page in Firefox, and the errors that its scripts have raised."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket, self._number = socket, 0
        self.faults: list[str] = []
        self._send("session.new", capabilities={})
        self._send("session.subscribe", events=["log.entryAdded"])
        self._page = self._send("browsingContext.getTree")["contexts"][0]["context"]
        self._send("browsingContext.setViewport", context=self._page, viewport=VIEWPORT)

    def _send(self, method: str, **parameters: Any) -> Any:  # noqa: ANN401 - of any type
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while (answer := json.loads(self._socket.recv())).get("id") != self._number:
            said = answer["params"]
            if answer.get("method") == "log.entryAdded" and said["type"] == "javascript":
                self.faults.append(said["text"])
        assert answer["type"] == "success", answer
        return answer["result"]

    def go_to(self, address: str) -> None:
        self._send("browsingContext.navigate", context=self._page, url=address, wait="interactive")

    def value(self, expression: str) -> Any:  # noqa: ANN401 - whatever the expression gives
        """Value of an expression on the page."""
        code = f"Promise.resolve({expression}).then(value => JSON.stringify(value))"
        found = self._send(
            "script.evaluate", expression=code, target={"context": self._page}, awaitPromise=True
        )
        assert found["type"] == "success", found
        return json.loads(found["result"].get("value", "null"))

    def wait_for(self, expression: str) -> None:
        """Wait until an expression holds on the page."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.value(expression):
            assert time.monotonic() < deadline, f"{expression} does not hold; errors: {self.faults}"
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """Click in the middle of a part of the page, by the mouse."""
        box = self.box(selector)
        where = {"x": round(box["x"] + box["width"] / 2), "y": round(box["y"] + box["height"] / 2)}
        steps = [
            {"type": "pointerMove", **where},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "actions": steps}
        self._send("input.performActions", context=self._page, actions=[mouse])

    def box(self, selector: str) -> dict[str, float]:
        return dict(self.value(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()"))

    def picture(self, selector: str) -> Image.Image:
        """How a part of the page looks."""
        box = self.box(selector)
        clip = {"type": "box", **{name: box[name] for name in ("x", "y", "width", "height")}}
        shot = self._send("browsingContext.captureScreenshot", context=self._page, clip=clip)
        return Image.open(BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


@contextmanager
def started_firefox(folder: Path) -> Iterator[Firefox]:
    """Firefox without a window and with a profile of its own, for as long as the context lasts."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        do_without("there is no Firefox; `make browser` installs Debian's where it may")
    port = free_port()

    def ready(said: str) -> str | None:
        return f"ws://127.0.0.1:{port}/session" if "WebDriver BiDi listening" in said else None

    command = [program, "--headless", "--no-remote", f"--remote-debugging-port={port}", "--profile"]
    with (
        running(folder, [*command, str(folder), "about:blank"], ready) as (address, _),
        closing(create_connection(address, timeout=PATIENCE / 1000, suppress_origin=True)) as socket,
    ):
        yield Firefox(socket)
