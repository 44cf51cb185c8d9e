"""A cold start: chains run interpreted until a child process has compiled them, with identical draws.

Compilation takes many seconds, once per machine. `Code` looks for machine code and, if there is none, has a
child process compile it. The child finishes even if its parent ends first. Of several processes that need the
same code one makes it, while the children of the others wait for a lock. Where code cannot be kept, or no
process can be started, it is compiled in this process. ``EWENS_WIDGETS_WAIT=1`` asks chains to wait for the
compiler, for example to measure compiled code only.

A process that runs chains uses numba's public interface alone. The child replaces four private methods of
numba (`_optimise_once`).
"""

import contextlib
import gc
import hashlib
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from ewens_widgets.sampling.compiled import COMPILED, FOLDER, interpreted, is_set

if COMPILED:
    import numba

_CHILD = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from ewens_widgets.sampling.cold_start import make_code; make_code(sys.stdin.buffer)"
)


def must_wait() -> bool:
    """Whether chains are to wait for the compiler instead of running interpreted meanwhile."""
    return is_set("EWENS_WIDGETS_WAIT")


def _mark(function: Any, types: tuple[Any, ...]) -> Path | None:  # noqa: ANN401 - numba has no types
    """The file that says that there is machine code of an entry for arguments of these types."""
    if FOLDER is None or function.stats.cache_path is None:
        return None
    return FOLDER / f"{function.py_func.__name__}-{hashlib.sha256(str(types).encode()).hexdigest()[:16]}.made"


class Code:
    """Machine code of a function for arguments of certain types: ready, or made by a child process.

    A plain function, without types, is always ready. `is_known` says whether machine code was ready when it
    was last looked for.
    """

    def __init__(self, function: Any, types: tuple[Any, ...]) -> None:  # noqa: ANN401 - numba has no types
        self._function = function
        self._types = types
        self._child: threading.Thread | None = None
        self._mark = _mark(function, types) if types else None
        is_kept = self._mark is not None and self._mark.exists()
        self.is_known = not types or types in self._function.overloads or is_kept

    def is_at_hand(self) -> bool:
        """Look whether a call would find machine code; if no child makes it yet, start one."""
        if not self.is_known:
            if self._child is None and self._mark is not None:
                self._child = self._start()
            if self._child is None or not self._child.is_alive():
                if self._mark is not None and not self._mark.exists():
                    with contextlib.suppress(OSError):  # A full disk: the code is there, though not kept.
                        self._function.compile(self._types)
                self.is_known = True
        return self.is_known

    def wait(self, seconds: float) -> bool:
        """Wait for the machine code at most so long; say whether it is ready."""
        if not self.is_at_hand() and self._child is not None:
            self._child.join(seconds)
        return self.is_at_hand()

    def _start(self) -> threading.Thread | None:
        plain = self._function.py_func
        if not sys.executable or getattr(sys, "frozen", False):
            return None
        try:
            wanted = pickle.dumps(sys.path) + pickle.dumps((plain.__module__, plain.__name__, self._types))
            return run_aside([sys.executable, "-c", _CHILD], wanted)
        except (OSError, pickle.PicklingError):
            return None


_codes: dict[tuple[Any, tuple[Any, ...]], Code] = {}


def code_for(function: Callable[..., Any], arguments: Sequence[Any]) -> Code:
    """The machine code that a call would use."""
    types = tuple(map(numba.typeof, arguments)) if hasattr(function, "overloads") else ()
    if (function, types) not in _codes:
        _codes[function, types] = Code(function, types)
    return _codes[function, types]


def at_once(function: Callable[..., Any], arguments: Sequence[Any]) -> Callable[..., Any]:
    """The function, or the same one interpreted while a child process makes its machine code.

    For calls that take little time either way.
    """
    code = code_for(function, arguments)
    while must_wait() and not code.wait(1.0):
        pass
    return function if code.is_at_hand() else interpreted(function)


def run_aside(command: Sequence[str], given: bytes = b"") -> threading.Thread:
    """Start a process that has none of our streams and goes on when we end or are interrupted.

    It reads what is `given` from its standard input. The thread that is returned ends when the process does.
    """
    process = subprocess.Popen(  # noqa: S603 - callers name this interpreter
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    thread = threading.Thread(
        target=process.communicate, args=(given,), name="ewens_widgets compiler watch", daemon=True
    )
    thread.start()
    return thread


def make_code(given: IO[bytes]) -> None:
    """Compile the function whose module, name and types of arguments are given, for the disk.

    This is all that a child process does.
    """
    module, name, types = pickle.load(given)  # noqa: S301 - from our parent
    function = getattr(import_module(module), name)
    mark = _mark(function, types)
    if mark is None:
        return
    gc.disable()  # A fifth of the time would go into looking for garbage, of which there is little.
    with _alone_at(mark.with_suffix(".lock")):
        if not mark.exists():  # Another process may have made it meanwhile.
            trifle: Any = numba.njit(lambda: 0)
            trifle.compile(())  # Loads numba's own library, which has to be complete.
            _optimise_once(function)
            function.compile(types)
            mark.touch()


@contextlib.contextmanager
def _alone_at(path: Path) -> Iterator[None]:
    """Let one process in at a time; without such locks, as on Windows, the work is done twice."""
    with path.open("ab") as file:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _optimise_once(function: Any) -> None:  # noqa: ANN401 - numba has no types
    """Have numba optimise a function together with all that it calls, and make machine code of it alone.

    By itself numba optimises each function with its callees in it and makes machine code of each, though only
    the outermost is used. In this way own shapes of model III take 12 seconds of processor time, not 33,
    and the first `AffineClustering().fit` on wine 15.5 seconds instead of 39.0 (one run each, on two
    processors). No public option was found that does the same. Nothing can be called afterwards, so this is
    for a process that only compiles. Where numba has changed inside, it does as it always does.
    """
    from numba.core import codegen

    library: Any = codegen.JITCodeLibrary
    generator: Any = codegen.JITCPUCodegen
    name = function.py_func.__name__

    def finish(inner: Any) -> None:  # noqa: ANN401 - numba has no types
        inner._finalize_dynamic_globals()  # noqa: SLF001 - as numba does
        inner._finalized = True  # noqa: SLF001 - as numba does

    replaced: dict[str, Callable[..., Any]] = {
        "_optimize_final_module": lambda _: None,
        "_finalize_final_module": finish,
        "get_pointer_to_function": lambda *_: 0,
    }
    if not all(hasattr(library, method) for method in replaced) or not hasattr(generator, "set_env"):
        return

    def choose(usual: Callable[..., Any], lean: Callable[..., Any]) -> Callable[..., Any]:
        return lambda made, *rest: (usual if made.name == name else lean)(made, *rest)

    for method, lean in replaced.items():
        setattr(library, method, choose(getattr(library, method), lean))
    generator.set_env = lambda *_: None  # For functions in memory, of which there are none.
