"""`ewens-widgets app`, started as a user starts it; it sees only our settings and leaves nothing behind."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from browser.lab_server import _environment, _stop

START_SECONDS = 300  # the app compiles the sampler before it serves it


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    """The address that the server prints once it listens."""
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        printed = re.search(r"The Explorer is at (http://localhost:\d+/)", log.read_text())
        if printed:
            return printed[1]
        time.sleep(0.2)
    raise RuntimeError(f"the app did not start:\n{log.read_text()[-3000:]}")


@contextmanager
def running_app(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The web app for as long as the context lasts; gives its address and its process."""
    log = folder / "app.log"
    command = [sys.executable, "-m", "ewens_widgets.app", "app", "--no-browser", "--port=0", *options]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield _address(server, log), server
        finally:
            _stop(server)


def left_behind(server: psutil.Process, folder: Path) -> dict[str, Any]:
    """What a visit may leave: processes, files, and handles of files, sockets and pipes."""
    return {
        "processes": sorted(child.pid for child in server.children(recursive=True)),
        "files": sorted(str(path) for path in folder.rglob("*") if path.is_file()),
        "handles": server.num_fds(),
        "threads": server.num_threads(),
    }
