"""Voilà servers for one test, which see no settings but ours and leave nothing behind."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser.lab_server import START_SECONDS, _environment, _free_port, _stop


def _listens(port: int) -> bool:
    # Asking for a page would run the notebook.
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _listens(port):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Voilà did not start on port {port}:\n{log.read_text()[-3000:]}")
        time.sleep(0.2)


@contextmanager
def running_voila(folder: Path, notebook: Path) -> Iterator[str]:
    """Voilà with one notebook, for as long as the context lasts; gives its address."""
    port, log = _free_port(), folder / "voila.log"
    command = [sys.executable, "-m", "voila", str(notebook), "--no-browser", f"--port={port}"]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, "--Voila.ip=127.0.0.1"],
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(server, port, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            _stop(server)
