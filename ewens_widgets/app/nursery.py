"""Where visitors' processes come from: one process that has everything loaded, and forks.

A process that loads NumPy, SciPy, the widgets and the machine code of the sampler by itself takes seconds and
some 180 MB. The nursery does so once and shows an Explorer to nobody. For each visitor it forks: the child is
ready at once, and all memory that nobody writes to is shared.

Lines of JSON go both ways: to the nursery with what a kernel is to be started, back the number of its process
and, later, that it has ended. When the server is gone there are no more lines, and the nursery ends; kernels
watch their parent and follow. A process can safely be forked only while it has a single thread, so a nursery
that has more does not open. Linux alone: elsewhere system libraries may not survive a fork.

The server talks to its kernels through files that only its user can open. Ports would be chosen by the server
and taken by the kernel a moment later; when many visitors come at once, others may have one of them by then.
The kernel ends, another is started on other ports, and the page waits for ever for the first.
"""

import contextlib
import gc
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ewens_widgets.app.command_line import precompile

__all__ = ["ForkedKernel", "Nursery"]

_LAUNCHER = "ipykernel_launcher"
_PATIENCE = 60.0  # seconds for a fork, on however busy a machine
# A socket's name has 107 bytes at most, and 30 of them come after the folder for all that is temporary.
_LONGEST_FOLDER = 107 - 30
# Kernels let the server go first: what it passes on to the pages, and what these send, is everybody's.
_NICENESS = 5


class Nursery:
    """The server's side: opens the nursery, asks it for kernels, and hears when they end.

    Parameters
    ----------
    data
        Name of the data set that the Explorer is tried with.

    Attributes
    ----------
    code, said
        Exit code of the preparation, 0 if all went well, and what it said. Otherwise the nursery is closed.
    sockets
        Folder for the sockets of kernels, which goes with this process; None where names would be too long.
    """

    def __init__(self, data: str) -> None:
        self._link, theirs = socket.socketpair()
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), data]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._heard = b""
        self._is_closed = False
        self._born: list[int] = []
        self._ended: dict[int, int] = {}
        self._reports: list[tuple[int, str]] = []
        while not self._reports and not self._is_closed:
            self._listen(None)
        self.code, self.said = self._reports.pop() if self._reports else (1, "it ended before it was ready")
        self.sockets: Path | None = None
        if self.code:
            self.close()
        elif len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_FOLDER:
            # Kernels that are started by themselves, after the nursery has closed, need it too.
            self.sockets = Path(tempfile.mkdtemp(prefix="ewens-"))
            weakref.finalize(self, shutil.rmtree, self.sockets, ignore_errors=True)

    @property
    def is_open(self) -> bool:
        """Whether kernels can be had here."""
        return not self._is_closed

    def fork(self, command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> "ForkedKernel | None":
        """Start a kernel as the command says; None if the nursery is closed."""
        arguments = list(command[command.index(_LAUNCHER) + 1 :])
        request = {"arguments": arguments, "env": dict(env), "cwd": cwd}
        with contextlib.suppress(OSError):
            self._link.sendall(json.dumps(request).encode() + b"\n")
            while not self._born and not self._is_closed:
                if not self._listen(_PATIENCE):
                    self.close()
        return ForkedKernel(self, self._born.pop()) if self._born else None

    def poll(self, process: int) -> int | None:
        """Exit code of a kernel, None while it runs."""
        while self._listen(0.0):
            pass
        if process in self._ended or not self._is_closed:
            return self._ended.get(process)
        # Nobody is left to tell, and the kernel is about to notice.
        return 1 if _has_ended(process) else None

    def forget(self, process: int) -> None:
        """Note that nobody will ask for this kernel again."""
        self._ended.pop(process, None)

    def close(self) -> None:
        """End the nursery; its kernels follow within seconds."""
        self._is_closed = True
        self._link.close()
        self._process.wait()

    def _listen(self, seconds: float | None) -> bool:
        """Take in what the nursery says within some time; return whether it said anything."""
        if self._is_closed or not select.select([self._link], [], [], seconds)[0]:
            return False
        heard = _received(self._link)
        self._is_closed = not heard
        *lines, self._heard = (self._heard + heard).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "ended" in message:
                self._ended[message["ended"]] = message["code"]
            elif "born" in message:
                self._born.append(message["born"])
            else:
                self._reports.append((message["code"], message["said"]))
        return bool(heard)


def _has_ended(process: int) -> bool:
    """Whether a process is gone; one that nobody has buried yet, as in a container without init, is."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 0.0)[0])
    finally:
        os.close(handle)


class ForkedKernel:
    """A kernel of the nursery, with the methods of a `subprocess.Popen` that its manager uses.

    Parameters
    ----------
    nursery
        Where it comes from.
    pid
        Number of its process, which leads a process group of its own.
    """

    stdin = stdout = stderr = None

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Exit code, None while it runs."""
        if self.returncode is None:
            self.returncode = self._nursery.poll(self.pid)
        if self.returncode is not None:
            self._nursery.forget(self.pid)
        return self.returncode

    def wait(self) -> int | None:
        """Exit code; asked for when it is known."""
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)


def _prepare(data: str) -> tuple[int, str]:
    """Load everything; return an exit code and what went wrong."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            import ipykernel.ipkernel
            import ipykernel.kernelapp
            import ipykernel.zmqshell  # noqa: F401 - loaded for the children

            code = precompile(data)
            if not code:
                from ipywidgets import Widget

                Widget.close_all()  # Every page would ask for them.
        if threading.active_count() > 1:
            raise RuntimeError(f"a nursery has one thread, not {threading.enumerate()}")
    except Exception:  # noqa: BLE001 - told to the server
        return 1, traceback.format_exc()
    return code, said.getvalue()


def _tend(link: socket.socket) -> dict[str, Any] | None:
    """Fork a child for each request, which is returned there; None when there are no more."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    heard = b""
    children = 0
    while True:
        ready, _, _ = select.select([link, woken], [], [])
        if woken in ready:
            woken.recv(4096)
        while children:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                break
            children -= 1
            _tell(link, ended=process, code=os.waitstatus_to_exitcode(status))
        if link not in ready:
            continue
        received = _received(link)
        if not received:
            return None
        *lines, heard = (heard + received).split(b"\n")
        for line in lines:
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for end in (link, woken, waker):
                    end.close()
                return dict(json.loads(line))
            children += 1
            _tell(link, born=process)


def _received(link: socket.socket) -> bytes:
    """What came; nothing if there is nobody any more, who may have been killed with our words unread."""
    try:
        return link.recv(65536)
    except ConnectionError:
        return b""


def _tell(link: socket.socket, **message: object) -> None:
    link.sendall(json.dumps(message).encode() + b"\n")


def _leave_home(request: dict[str, Any]) -> None:
    """Make this child a process of its own, for one visitor."""
    # A session of its own: where the scheduler groups by session, each visitor has the same share, however
    # many threads run there.
    os.setsid()
    os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_NICENESS))
    os.environ.clear()
    os.environ.update(request["env"], JPY_PARENT_PID=str(os.getppid()))
    if request["cwd"]:
        os.chdir(request["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _become_kernel(arguments: list[str]) -> None:
    from ipykernel.kernelapp import IPKernelApp
    from ipywidgets import register_comm_target

    # Its default was taken from the environment when the class was made.
    kernel = IPKernelApp.instance(parent_handle=os.getppid())
    kernel.initialize(arguments)
    register_comm_target()  # There was no kernel to register with when the widgets were loaded.
    kernel.start()


def main() -> int:
    """Run a nursery: ``python -m ewens_widgets.app.nursery DESCRIPTOR DATA``."""
    link = socket.socket(fileno=int(sys.argv[1]))
    # The terminal sends Ctrl-C to all; it is the server that ends everything.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code, said = _prepare(sys.argv[2])
    # What is there by now is shared, as long as nobody writes to it, not even to mark it as garbage or not.
    gc.collect()
    gc.freeze()
    _tell(link, code=code, said=said)
    if code:
        return code
    request = _tend(link)
    if request is not None:
        _leave_home(request)
        _become_kernel(request["arguments"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
