"""JupyterLab, Voilà and the web app as servers with settings of their own, which leave nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

# No question about news over the notebook; and every cell is drawn, so that a test can see those out of view.
SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
    "notebook-extension/tracker": '{"windowingMode": "none"}',
}

START_SECONDS = 300  # on however busy a machine; the app compiles the sampler before it serves it
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


def free_port() -> int:
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


@contextmanager
def running(
    folder: Path, command: Sequence[str], ready: Callable[[str], str | None]
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server for as long as the context lasts: its address, which `ready` finds in its log, and process."""
    log = folder / "server.log"
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
            deadline = time.monotonic() + START_SECONDS
            while (address := ready(log.read_text())) is None:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command} did not start:\n{log.read_text()[-3000:]}")
                time.sleep(0.1)
            yield address, server
        finally:
            # Terminated, a server ends its kernels first; killed, the kernels notice by themselves.
            server.terminate()
            try:
                server.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait(timeout=STOP_SECONDS)


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def running_lab(folder: Path, command: Sequence[str], root: Path) -> Iterator[Lab]:
    """A command that serves the root folder with JupyterLab; its settings and log lie in the other folder."""
    port = free_port()

    def ready(said: str) -> str | None:
        printed = re.findall(rf"http://127\.0\.0\.1:{port}/\S+\?token=\w+", said)
        return str(printed[-1]) if printed and _answers(printed[-1]) else None

    with running(folder, [sys.executable, *command, "--no-browser", f"--port={port}"], ready) as (address, _):
        yield Lab(root, address)


@contextmanager
def running_voila(folder: Path, notebook: Path) -> Iterator[str]:
    """Voilà with one notebook; gives its address."""
    port = free_port()

    def ready(_: str) -> str | None:
        # Asking for a page would run the notebook.
        with socket.socket() as probe:
            return f"http://127.0.0.1:{port}/" if probe.connect_ex(("127.0.0.1", port)) == 0 else None

    command = [sys.executable, "-m", "voila", str(notebook), "--no-browser", f"--port={port}"]
    with running(folder, [*command, "--Voila.ip=127.0.0.1"], ready) as (address, _):
        yield address


@contextmanager
def running_app(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The web app, started as a user starts it; gives its address and its process."""

    def ready(said: str) -> str | None:
        printed = re.search(r"The Explorer is at (http://localhost:\d+/)", said)
        return printed and printed[1]

    command = [sys.executable, "-m", "ewens_widgets.app", "app", "--no-browser", "--port=0", *options]
    with running(folder, command, ready) as started:
        yield started


def left_behind(server: psutil.Process, folder: Path) -> dict[str, Any]:
    """What a visit may leave: processes, files, and handles of files, sockets and pipes."""
    return {
        "processes": sorted(child.pid for child in server.children(recursive=True)),
        "files": sorted(str(path) for path in folder.rglob("*") if path.is_file()),
        "handles": server.num_fds(),
        "threads": server.num_threads(),
    }
