"""JupyterLab servers with their own settings, which leave nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# No question about news over the notebook; and every cell is drawn, so that a test can see those out of view.
SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
    "notebook-extension/tracker": '{"windowingMode": "none"}',
}

START_SECONDS = 300  # on however busy a machine
STOP_SECONDS = 15


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: the folder it serves, and its addresses."""

    root: Path
    address: str  # as the server prints it, with its token

    def url(self, notebook: str) -> str:
        """Address of a notebook."""
        server, token = re.fullmatch(r"(http://[\d.]+:\d+)/.*(\?token=\w+)", self.address).groups()
        return f"{server}/lab/tree/{notebook}{token}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(folder: Path) -> dict[str, str]:
    settings = folder / "settings"
    for name, text in SETTINGS.items():
        path = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return os.environ | {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def _address(server: subprocess.Popen[bytes], log: Path, port: int) -> str:
    """The address that the server prints, once it answers there."""
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        printed = re.findall(rf"http://127\.0\.0\.1:{port}/\S+\?token=\w+", log.read_text())
        if printed and _answers(printed[-1]):
            return str(printed[-1])
        time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start on port {port}:\n{log.read_text()[-3000:]}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    # Terminated, the server ends its kernels first; killed, the kernels notice by themselves that it is gone.
    server.terminate()
    try:
        server.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(timeout=STOP_SECONDS)


@contextmanager
def running_lab(folder: Path, command: Sequence[str], root: Path) -> Iterator[Lab]:
    """A command that serves the root folder with JupyterLab, for as long as the context lasts.

    It is given `--port` and `--no-browser`; its settings and log lie in the other folder.
    """
    port, log = _free_port(), folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, *command, "--no-browser", f"--port={port}"],
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield Lab(root, _address(server, log, port))
        finally:
            _stop(server)
