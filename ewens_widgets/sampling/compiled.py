"""The compiler of the kernels: numba where it is installed, plain Python where it is not (Pyodide).

Set ``EWENS_WIDGETS_INTERPRETED=1`` to run the kernels interpreted, e.g. to step through them in a debugger:
the chain is the same.

*Machine code on disk.* Numba keeps it beside the sources (or in ``NUMBA_CACHE_DIR``, or in the user's folder
of caches) and compares with the content of the file of the function itself, but not with the files of the
functions that were compiled into it. So that an edit or an update of one file never leaves old code in
another, the code of each function is stamped with the content of all sources. Times do not matter: code can
be copied together with the sources, into an image for instance.

*A cold start.* Compilation takes a dozen seconds, and a chain need not wait for it: the same functions run
interpreted too (`interpreted`), with the same draws. Where there is no machine code for a call, `Code` starts
a child process that makes it and puts it on disk; the chain changes over when it is there. The child has none
of our streams, and if we end before it does, it finishes for those who come after us. Of several processes
that want the same code one makes it, while the children of the others wait at a lock. A child can do what
numba cannot: since nothing will be run in it, it makes machine code of the outermost function alone, with all
that it calls, which takes less than half the time (`_compile_as_a_whole`). Where code cannot be
kept or no process started, a call compiles what it needs and everybody waits. ``EWENS_WIDGETS_WAIT=1`` asks
for waiting in any case, e.g. to measure compiled code only.

Compiled code releases the interpreter's lock. While a chain runs, other threads can send its pictures to a
browser or run other chains.
"""

import contextlib
import errno
import functools
import gc
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import IO, Any, TypeVar, cast

import numpy as np

from ewens_widgets.sampling.webassembly import loaded

__all__ = [
    "COMPILED",
    "Code",
    "at_once",
    "by_family",
    "code_for",
    "entry",
    "fingerprint",
    "guest",
    "inlined",
    "interpreted",
    "jit",
    "make_code",
    "must_wait",
    "run_aside",
    "short_runs",
]

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent.parent
# Under the folder of this file: what machine code is made from, and this file, for its options.
_SOURCES = ("compiled.py", "draws.py", "driver.py", "kernel/*.py", "moves/*.py")
_CHILD = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from ewens_widgets.sampling.compiled import make_code; make_code(sys.stdin.buffer, sys.stdout.buffer)"
)


def fingerprint(folder: Path) -> str:
    """What tells the sources of machine code under a folder from any others: their names and contents."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _SOURCES for path in folder.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@functools.cache
def _carry(source: Path, place: Path, sources: str) -> None:
    """Copy machine code that came with an installation which cannot be written to where it can be added to.

    Numba uses no place that it cannot write to. Copied is what belongs to these sources, once.
    """
    note = place / "carried.txt"
    if source == place or os.access(source, os.W_OK) or not any(source.glob("*.nbi")):
        return
    with contextlib.suppress(OSError):
        if note.exists() and note.read_text() == sources:
            return
        for path in sorted(source.glob("*.nb[ci]")):  # Code before the index that names it.
            copy = place / f"{path.name}.{os.getpid()}"
            shutil.copyfile(path, copy)
            copy.replace(place / path.name)
        note.write_text(sources)


def must_wait() -> bool:
    """Whether chains are to wait for the compiler, and not to run interpreted meanwhile."""
    return os.environ.get("EWENS_WIDGETS_WAIT", "") not in ("", "0")


def _must_interpret() -> bool:
    return os.environ.get("EWENS_WIDGETS_INTERPRETED", "") not in ("", "0")


def _of_kind(table: Mapping[type, Callable[..., Any]], kind: type) -> Callable[..., Any]:
    if kind not in table:
        known = ", ".join(entry.__name__ for entry in table)
        raise TypeError(f"there is no such operation for {kind.__name__}; there is one for {known}")
    return table[kind]


try:
    if _must_interpret():
        raise ImportError
    import numba
    from numba.core import caching
    from numba.core import event as numba_events
    from numba.extending import overload
except ImportError:
    COMPILED = False

    def entry(function: Function) -> Function:
        """Take a function that Python calls from the module for browsers, or leave it as it is."""
        return function if _must_interpret() else cast("Function", loaded(function))

    def jit(function: Function) -> Function:
        """Leave the function as it is."""
        return function

    inlined = guest = jit

    def _announce(operation: Callable[..., Any], table: Mapping[type, Any]) -> None:
        """Nothing has to be told to a compiler."""

    def _load(function: Any, types: tuple[Any, ...]) -> bool:  # noqa: ANN401, ARG001 - as below
        """There is no machine code."""
        return False
else:
    COMPILED = True

    class _StampedPlaces:
        """Where numba would keep machine code of this package; stamped with the content of all its sources.

        Numba asks the classes of a list for a place, one after another, and this one is the first of them.
        """

        sources = fingerprint(Path(__file__).parent)
        known: Any = getattr(getattr(caching, "CacheImpl", None), "_locator_classes", [])
        others = tuple(known)

        @classmethod
        def from_function(cls, function: Any, file: str) -> Any:  # noqa: ANN401 - as numba has it
            """Return a place for the machine code of a function, or None if that is not our business."""
            if not Path(file).is_relative_to(_PACKAGE):
                return None
            found = next(filter(None, (other.from_function(function, file) for other in cls.others)), None)
            if found is not None:
                _carry(Path(file).parent / "__pycache__", Path(found.get_cache_path()), cls.sources)
                stamp = cls.sources, hashlib.sha256(Path(file).read_bytes()).hexdigest()
                found.get_source_stamp = lambda: stamp
            return found

    if _StampedPlaces.others:  # The list is numba's own, so a version may come without it.
        _StampedPlaces.known.insert(0, _StampedPlaces)

    def _can_keep() -> bool:
        """Whether there is a place for machine code; numba refuses to compile what it cannot keep."""
        try:
            numba.njit(cache=True)(_of_kind)
        except RuntimeError:
            return False
        return True

    def _use_what_cannot_be_kept(usual: Callable[..., Any]) -> Callable[..., Any]:
        """Let code of this package be used though the disk is full, or its folder was removed meanwhile."""

        def save(cache: Any, *rest: Any) -> None:  # noqa: ANN401 - as numba has it
            is_ours = cache._py_func.__module__.startswith("ewens_widgets.")  # noqa: SLF001 - numba has no other way
            with contextlib.suppress(*([OSError] if is_ours else [])):
                usual(cache, *rest)

        return save

    _cache: Any = caching.Cache
    _cache.save_overload = _use_what_cannot_be_kept(_cache.save_overload)

    class _AbsentError(Exception):
        """There is no machine code on disk."""

    class _NoCompiler(numba_events.Listener):
        """Hears that a function is about to be compiled on this thread, and forbids it."""

        def __init__(self, function: object) -> None:
            self._function, self._thread = function, threading.get_ident()

        def on_start(self, event: Any) -> None:  # noqa: ANN401 - as numba has it
            if event.data["dispatcher"] is self._function and threading.get_ident() == self._thread:
                raise _AbsentError

        def on_end(self, event: object) -> None:
            """Nothing is done then."""

    class _Counter(numba_events.Listener):
        """Writes a byte for each function of this package that has been compiled."""

        def __init__(self, out: IO[bytes]) -> None:
            self._out = out

        def on_start(self, event: object) -> None:
            """Nothing is done yet."""

        def on_end(self, event: Any) -> None:  # noqa: ANN401 - as numba has it
            if event.data["dispatcher"].py_func.__module__.startswith("ewens_widgets."):
                with contextlib.suppress(OSError):  # Perhaps nobody listens any more.
                    self._out.write(b".")
                    self._out.flush()

    def _load(function: Any, types: tuple[Any, ...]) -> bool:  # noqa: ANN401 - numba has no types
        """Load machine code from disk; say whether there is any."""
        if types in function.overloads:
            return True
        try:
            with numba_events.install_listener("numba:compile", _NoCompiler(function)):
                function.compile(types)
        except _AbsentError:
            return False
        return True

    def _compile_as_a_whole(function: Any) -> None:  # noqa: ANN401 - numba has no types
        """Have numba optimise a function together with all that it calls, and make machine code of it alone.

        By itself numba optimises every function with its callees in it, makes machine code of each and keeps
        it, though only that of the outermost is ever used. Without that, compilation takes less than half the
        time, and the code is faster. It also compiles a function again for each constant that it is called
        with, which is the same code but for own shapes a quarter of the time. Nothing can be called
        afterwards: this is for a process that only compiles. Where numba has changed inside, it does as it
        always did.
        """
        from numba.core.codegen import JITCodeLibrary, JITCPUCodegen

        whole = function.py_func.__name__
        dispatcher: Any = type(function)
        replaced: dict[tuple[type, str], Callable[..., Any]] = {
            # Of a library: optimise and finish; and the address of a function in it.
            (JITCodeLibrary, "_optimize_final_module"): lambda _: None,
            (JITCodeLibrary, "_finalize_final_module"): _finish_inner,
            (JITCodeLibrary, "get_pointer_to_function"): lambda *_: 0,
        }
        others = (JITCPUCodegen, "set_env"), (dispatcher, "get_call_template")
        if not all(hasattr(kind, name) for kind, name in (*replaced, *others)):
            return

        def choose(usual: Callable[..., Any], lean: Callable[..., Any]) -> Callable[..., Any]:
            return lambda library, *rest: (usual if library.name == whole else lean)(library, *rest)

        def choose_kept(usual: Callable[..., Any]) -> Callable[..., Any]:
            plain = function.py_func
            return lambda cache, *rest: usual(cache, *rest) if cache._py_func is plain else None  # noqa: SLF001

        for (kind, name), lean in replaced.items():
            setattr(kind, name, choose(getattr(kind, name), lean))
        for name in ("load_overload", "save_overload"):
            setattr(caching.Cache, name, choose_kept(getattr(caching.Cache, name)))
        generator: Any = JITCPUCodegen
        generator.set_env = lambda *_: None  # That is for functions in memory, of which there are none.
        usual_types = dispatcher.get_call_template

        def without_constants(callee: Any, types: tuple[Any, ...], named: Any) -> Any:  # noqa: ANN401 - numba's
            if callee.py_func.__module__.startswith("ewens_widgets."):
                types = tuple(map(numba.types.unliteral, types))
            return usual_types(callee, types, named)

        dispatcher.get_call_template = without_constants

    def _finish_inner(library: Any) -> None:  # noqa: ANN401 - numba has no types
        library._finalize_dynamic_globals()  # noqa: SLF001 - as numba does
        library._finalized = True  # noqa: SLF001 - as numba does

    # error_model="numpy": a division by zero gives inf as in NumPy, and inner loops need no branch for it.
    _OPTIONS: dict[str, Any] = {"cache": _can_keep(), "error_model": "numpy", "no_cfunc_wrapper": True}
    # Leaving out the way in from Python halves the time that it takes to compile a function.
    _INNER = {**_OPTIONS, "no_cpython_wrapper": True}
    # An inner function makes and keeps no arrays: those that it is given live for as long as the entry runs.
    # Counting references to all arrays of a workspace at every call would take half of the time of a Gibbs
    # sweep. The option is numba's own (`numba.extending` mentions it), so a version may come without it.
    with contextlib.suppress(ImportError):
        from numba.core.cpu import CPUTargetOptions

        if hasattr(CPUTargetOptions, "_nrt"):
            _INNER["_nrt"] = False

    def entry(function: Function) -> Function:
        """Compile a function that Python calls, at its first call, and keep its machine code on disk."""
        compiled: Function = numba.njit(nogil=True, **_OPTIONS)(function)
        return compiled

    def guest(function: Function) -> Function:
        """Compile a function from outside this package that Python calls, and forget it with the process.

        On disk nothing would tell that the functions of this package which are compiled into it have changed.
        """
        compiled: Function = numba.njit(nogil=True, **{**_OPTIONS, "cache": False})(function)
        return compiled

    def jit(function: Function) -> Function:
        """Compile a function for compiled callers.

        It can make no arrays, nor assign one to a slice, and must return none, not even in a tuple.
        """
        compiled: Function = numba.njit(**_INNER)(function)
        return compiled

    def inlined(function: Function) -> Function:
        """Compile a small function of an inner loop into each place that it is called from."""
        compiled: Function = numba.njit(forceinline=True, **_INNER)(function)
        return compiled

    def _announce(operation: Callable[..., Any], table: Mapping[type, Any]) -> None:
        """Tell numba what stands for the operation in code that is compiled for a kind of workspace."""
        for kind, found in table.items():
            _announce_one(operation, kind, found)

    def _announce_one(operation: Callable[..., Any], kind: type, found: Any) -> None:  # noqa: ANN401 - numba's
        # Inlined where this family's function is: a call hands over all arrays of a workspace, one by one.
        options: Any = {**_INNER, "forceinline": found.targetoptions.get("forceinline", False)}
        plain: Callable[..., Any] = found.py_func

        @overload(operation, jit_options=options, strict=False)
        def chosen(*types: Any) -> Callable[..., Any] | None:  # noqa: ANN401 - types as numba has them
            return plain if types[1].instance_class is kind else None


def by_family(table: Mapping[type, Callable[..., Any]]) -> Callable[..., Any]:
    """One operation that each family of shapes does in its own way.

    Callers are written once, and the kind of the workspace, the second argument, decides; of compiled code
    that is known when it is compiled, so that nothing has to be decided in a loop, and nobody waits for the
    compilation of a family that is not used. Called from Python, the operation is interpreted.

    Parameters
    ----------
    table
        The function of each kind of workspace; all take the same arguments.
    """

    def operation(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the functions take and give
        return interpreted(_of_kind(table, type(arguments[1])))(*arguments)

    operation.table = table  # type: ignore[attr-defined] # for those who follow the calls
    _announce(operation, table)
    return operation


_plain_modules: dict[str, dict[str, Any]] = {}


@functools.cache
def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as plain Python, which calls others as plain Python too.

    Parameters
    ----------
    function
        Compiled, or not: then it is returned as it is.
    """
    plain = getattr(function, "py_func", None)
    if plain is None:
        return function
    known = plain.__globals__
    if known["__name__"] not in _plain_modules:
        # Noted before it is filled: functions call each other in circles.
        names = _plain_modules[known["__name__"]] = dict(known)
        names.update((name, interpreted(value)) for name, value in known.items() if hasattr(value, "py_func"))
    names = _plain_modules[known["__name__"]]
    return FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)


def _called(function: Any, kind: type, found: set[Any]) -> set[Any]:  # noqa: ANN401 - any function
    """Add the compiled functions that a function needs for a kind of workspace, itself among them."""
    if function not in found:
        found.add(function)
        for name in function.py_func.__code__.co_names:
            callee = function.py_func.__globals__.get(name)
            table = getattr(callee, "table", None)
            callee = callee if table is None else table.get(kind)
            if hasattr(callee, "py_func"):
                _called(callee, kind, found)
    return found


class Code:
    """Machine code of a function for arguments of certain types: at hand, or made by a child process.

    Parameters
    ----------
    function
        What is called; a function that is not compiled is always at hand.
    types
        Types of its arguments, as numba has them.
    kind
        The kind of the workspace.

    Attributes
    ----------
    is_known
        Whether machine code was at hand when it was last looked for.
    n_made, n_functions
        How many functions the child has compiled, and about how many there are.
    """

    def __init__(self, function: Callable[..., Any], types: tuple[Any, ...], kind: type) -> None:
        self._function = function
        self._types = types
        self._child: threading.Thread | None = None
        self.n_made = 0
        self.n_functions = len(_called(function, kind, set())) if types else 0
        self.is_known = not types or _load(function, types)

    def is_at_hand(self) -> bool:
        """Look whether a call would find machine code; if nobody makes it yet, have it made."""
        if not self.is_known:
            if self._child is None:
                self._child = self._start()
            # A child that is gone has made it. If not, or if there never was one, the next call compiles.
            self.is_known = self._child is None or not self._child.is_alive()
        return self.is_known

    def wait(self, seconds: float) -> bool:
        """Wait for the machine code at most so long; say whether it is at hand."""
        if not self.is_at_hand() and self._child is not None:
            self._child.join(seconds)
        return self.is_at_hand()

    def _start(self) -> threading.Thread | None:
        function: Any = self._function
        if function.stats.cache_path is None or not sys.executable or getattr(sys, "frozen", False):
            return None
        wanted = function.py_func.__module__, function.py_func.__name__, self._types
        try:
            given = pickle.dumps(sys.path) + pickle.dumps(wanted)
            return run_aside([sys.executable, "-c", _CHILD], given, self._note)
        except (OSError, pickle.PicklingError):
            return None

    def _note(self) -> None:
        self.n_made += 1


_codes: dict[tuple[Any, tuple[Any, ...]], Code] = {}
_codes_by_form: dict[tuple[Any, tuple[Any, ...]], Code] = {}


def _form(value: object) -> object:
    """What decides about the type that numba gives to a value; to make that takes thirty times as long."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable
    if isinstance(value, tuple):
        return type(value), *map(_form, value)
    return type(value)


def code_for(function: Callable[..., Any], arguments: Sequence[Any]) -> Code:
    """The machine code that a call would use; the second argument is the workspace."""
    form = tuple(map(_form, arguments))
    if (function, form) not in _codes_by_form:
        numba_type = getattr(function, "typeof_pyval", None)
        types = () if numba_type is None else tuple(numba_type(value) for value in arguments)
        if (function, types) not in _codes:
            _codes[function, types] = Code(function, types, type(arguments[1]))
        _codes_by_form[function, form] = _codes[function, types]
    return _codes_by_form[function, form]


def at_once(function: Callable[..., Any], arguments: Sequence[Any]) -> Callable[..., Any]:
    """The function, or the same one interpreted for as long as a child process makes its machine code.

    For calls that take little time either way, so that nobody waits for the compiler. Who wants to wait waits
    for the child too, which takes less than half the time that the call would need to compile.
    """
    code = code_for(function, arguments)
    while must_wait() and not code.wait(1.0):
        pass
    return function if code.is_at_hand() else interpreted(function)


def run_aside(
    command: Sequence[str], given: bytes = b"", heard: Callable[[], None] | None = None
) -> threading.Thread:
    """Start a process that has none of our streams and is left alone when we end, or are interrupted.

    Parameters
    ----------
    command
        Program and arguments.
    given
        What it reads from its standard input.
    heard
        Called for each byte that it writes to its standard output.

    Returns
    -------
    A thread that ends when the process does.
    """
    process = subprocess.Popen(  # noqa: S603 - callers name this interpreter
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )

    def attend() -> None:
        with contextlib.suppress(OSError), process:  # It may have ended before it has read everything.
            if process.stdin is not None and process.stdout is not None:
                process.stdin.write(given)
                process.stdin.close()
                while process.stdout.read(1):
                    if heard is not None:
                        heard()

    thread = threading.Thread(target=attend, name="ewens_widgets compiler watch", daemon=True)
    thread.start()
    return thread


def make_code(given: IO[bytes], out: IO[bytes]) -> None:
    """Compile a function and put its machine code on disk: all that a child process does.

    Parameters
    ----------
    given
        Says which function of which module, and the types of its arguments.
    out
        Where a byte is written for each function that is done.
    """
    module, name, types = pickle.load(given)  # noqa: S301 - from our parent
    function = getattr(import_module(module), name)
    which = hashlib.sha256(str(types).encode()).hexdigest()[:16]
    place = Path(function.stats.cache_path) / f"{name}-{which}.lock"
    gc.disable()  # A fifth of the time would go into looking for garbage, of which there is little.
    with _alone_at(place):
        if not _load(function, types):  # Somebody else may have made it while we waited.
            trifle: Any = numba.njit(lambda: 0)
            trifle.compile(())  # Brings in numba's own library, which has to be complete.
            with contextlib.suppress(ImportError):
                _compile_as_a_whole(function)
            with numba_events.install_listener("numba:compile", _Counter(out)):
                function.compile(types)


@contextlib.contextmanager
def _alone_at(path: Path) -> Iterator[None]:
    """Let one process in at a time; the lock goes with the process that has it, however that ends."""
    with path.open("ab") as file:
        with contextlib.suppress(OSError):  # Some file systems know no locks: then the work is done twice.
            _lock(file)
        yield


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        while True:
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            except OSError as fault:
                if fault.errno != errno.EDEADLK:  # That says that ten seconds have passed.
                    raise
            else:
                return
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def short_runs() -> bool:
    """Say whether runs should be short, because chains are not compiled here, as in a browser.

    The tutorials ask this once and then take fewer draws. Where the answer is yes it is printed too, so that
    a reader knows why numbers differ from the text.

    Returns
    -------
    False where chains are compiled.

    Examples
    --------
    >>> SHORT = short_runs()
    >>> draws = 200 if SHORT else 2000
    """
    if not COMPILED:
        print(  # noqa: T201 - for the reader of a notebook
            "There is no compiler here, as in a browser: this notebook makes short runs. Its numbers differ "
            "from those in the text, and what only long runs can show is left out."
        )
    return not COMPILED
