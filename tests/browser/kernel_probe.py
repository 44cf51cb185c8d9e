"""Looking into the kernel behind a page, without touching the page."""

import ast
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from browser.servers import Lab
from jupyter_client import BlockingKernelClient

ANSWER_SECONDS = 300  # it may be compiling


class Kernel:
    """Evaluates expressions in a running kernel, between its other work."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def value(self, expression: str) -> Any:  # noqa: ANN401 - whatever the expression gives
        """Value of an expression made of plain Python literals."""
        reply = self._client.execute(
            "", silent=True, user_expressions={"value": expression}, reply=True, timeout=ANSWER_SECONDS
        )
        answer = reply["content"]["user_expressions"]["value"]
        if answer["status"] != "ok":
            raise RuntimeError(f"{expression}: {answer['ename']}: {answer['evalue']}")
        return ast.literal_eval(answer["data"]["text/plain"])


def _api(lab: Lab, path: str) -> str:
    address = urlsplit(lab.address)
    return urlunsplit(address._replace(path=f"/api/{path}"))


def _sessions(lab: Lab) -> list[dict[str, Any]]:
    with urllib.request.urlopen(_api(lab, "sessions")) as answer:
        return list(json.load(answer))


@contextmanager
def probed_kernel(lab: Lab, runtime: Path, notebook: str) -> Iterator[Kernel]:
    """The kernel of an open notebook."""
    session = next(session for session in _sessions(lab) if session["path"] == notebook)
    client = BlockingKernelClient(connection_file=str(runtime / f"kernel-{session['kernel']['id']}.json"))
    client.load_connection_file()
    client.start_channels()
    try:
        yield Kernel(client)
    finally:
        client.stop_channels()
