"""The compiler of the kernels: numba where it is installed, plain Python where it is not (Pyodide).

``EWENS_WIDGETS_INTERPRETED=1`` runs them interpreted, for example in a debugger. The chain is the same.

*Machine code on disk.* Numba compares kept machine code with the file of the function itself, but not with
the files of the functions that it calls. So the folder of our machine code is named after the content of all
sources: an edit or an update of one file starts a new folder (`FOLDER`).

*A cold start.* Compilation takes many seconds, so a chain starts interpreted (`cold_start`).

Compiled code releases the lock of the interpreter: while a chain runs, other threads can run other chains.

Only numba's public interface is used here.
"""

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from ewens_widgets.files import cache_directory

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent.parent
# What machine code is made from, and this file, for its options. A compiled function in any other file of the
# package needs an entry: without it, an edit of that file would leave old machine code in use.
_SOURCES = (
    "sampling/compiled.py",
    "sampling/draws.py",
    "sampling/driver.py",
    "sampling/kernel/*.py",
    "sampling/moves/*.py",
    "paper/moves/*.py",
    "analysis/similarity.py",
)


def fingerprint(package: Path = _PACKAGE) -> str:
    """Digest of the sources of machine code in a package: their names and contents, not their times."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _SOURCES for path in package.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def is_set(variable: str) -> bool:
    """Whether an environment variable is neither empty nor 0."""
    return os.environ.get(variable, "") not in ("", "0")


def _find_folder(chosen: str, package: Path = _PACKAGE) -> Path | None:
    """Make a folder for the machine code of these sources, and remove those of older sources.

    It is in ``NUMBA_CACHE_DIR`` if that is set, beside the sources, or in the user's folder of caches: the
    first of these that can be written to. Machine code that came with an installation which cannot be written
    to is copied, since numba reads only where it can write.
    """
    made_by = f"{fingerprint(package)} {numba.__version__} {sys.version} {get_host_cpu_name()}"
    name = f"ewens_widgets-{hashlib.sha256(made_by.encode()).hexdigest()[:16]}"
    installed = package / "__pycache__"
    for place in ([Path(chosen)] if chosen else []) + [installed, cache_directory()]:
        folder = place / name
        with contextlib.suppress(OSError):
            is_new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            if is_new:
                if (installed / name).is_dir() and not os.access(installed, os.W_OK):
                    shutil.copytree(installed / name, folder, dirs_exist_ok=True)
                folders = sorted(place.glob("ewens_widgets-*"), key=lambda other: other.stat().st_mtime)
                for old in folders[:-4]:
                    shutil.rmtree(old, ignore_errors=True)
            return folder
    return None


try:
    if is_set("EWENS_WIDGETS_INTERPRETED"):
        raise ImportError
    import numba
    from llvmlite.binding import get_host_cpu_name
    from numba.core.cpu import CPUTargetOptions
    from numba.extending import overload
except ImportError:
    COMPILED = False
    FOLDER: Path | None = None
    try:
        # Only the wheel for browsers has this module (`package_wheel` in browser_site/build.py).
        _loaded = import_module("ewens_widgets.sampling.browser_loops").loaded
    except ImportError:
        _loaded = None

    def jit(function: Function) -> Function:
        """Leave the function as it is."""
        return function

    inlined = guest = jit

    def entry(function: Function) -> Function:
        """Take a function that Python calls from the module for browsers, or leave it as it is."""
        is_plain = _loaded is None or is_set("EWENS_WIDGETS_INTERPRETED")
        return function if is_plain else cast("Function", _loaded(function))

    def _announce(operation: Callable[..., Any], kind: type, found: Any, mixed: bool | None) -> None:  # noqa: ANN401 - see below
        """Without a compiler there is nothing to announce."""
else:
    COMPILED = True
    _config: Any = numba.config
    FOLDER = _find_folder(_config.CACHE_DIR)
    # error_model="numpy": a division by zero gives inf as in NumPy, and inner loops need no branch for it.
    _OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
    # Leaving out the way in from Python halves the time that it takes to compile a function.
    _INNER = {**_OPTIONS, "no_cpython_wrapper": True}
    # An inner function makes and keeps no arrays: those that it is given live for as long as the entry runs.
    # Counting references to all arrays of a workspace at every call would take half of the time of a Gibbs
    # sweep. `numba.extending` documents the option; a version may come without it.
    _INNER |= {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}

    def entry(function: Function) -> Function:
        """Compile a function that Python calls, at its first call, and keep its machine code on disk."""
        usual, _config.CACHE_DIR = _config.CACHE_DIR, str(FOLDER or "")
        try:
            compiled: Function = numba.njit(nogil=True, cache=FOLDER is not None, **_OPTIONS)(function)
        finally:
            _config.CACHE_DIR = usual
        return compiled

    def guest(function: Function) -> Function:
        """Compile a function from outside this package that Python calls, for this process only.

        On disk nothing would show that the functions of this package which it calls have changed.
        """
        compiled: Function = numba.njit(nogil=True, **_OPTIONS)(function)
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

    def _announce(operation: Callable[..., Any], kind: type, found: Any, mixed: bool | None) -> None:  # noqa: ANN401 - numba's
        """Tell numba what the operation stands for in code that is compiled for a kind of workspace."""
        # Inlined where this family's function is: a call hands over all arrays of a workspace, one by one.
        options: Any = {**_INNER, "forceinline": found.targetoptions.get("forceinline", False)}
        plain: Callable[..., Any] = found.py_func

        @overload(operation, jit_options=options, strict=False)
        def chosen(*types: Any) -> Callable[..., Any] | None:  # noqa: ANN401 - types as numba has them
            workspace = types[1]
            if workspace.instance_class is not kind:
                return None
            if mixed is None:
                return plain
            members = dict(zip(workspace.fields, workspace.types, strict=True))
            return plain if (members["categories"].count > 0) == mixed else None


def by_family(table: Mapping[type, Callable[..., Any]]) -> Callable[..., Any]:
    """One operation that each family of shapes does in its own way, given the function of each workspace.

    Callers are written once. The kind of the workspace, the second argument, decides; in compiled code it is
    known when the code is compiled, so a loop decides nothing, and only families that are used are compiled.
    Called from Python, the operation is interpreted.
    """
    operation = _in_python(table, table)
    for kind, found in table.items():
        _announce(operation, kind, found, mixed=None)
    _families[operation] = table
    return operation


def with_categories(operation: Callable[..., Any]) -> Callable[[Function], Function]:
    """Give an operation of `by_family` another version for workspaces that have categories; a decorator.

    It is one version for all families. Compiled code for other workspaces has nothing of it.
    """
    plain = _families[operation]

    def decorate(mixed: Any) -> Any:  # noqa: ANN401 - as compiled functions are
        chosen = _in_python(plain, dict.fromkeys(plain, mixed))
        for kind, found in plain.items():
            _announce(chosen, kind, found, mixed=False)
            _announce(chosen, kind, mixed, mixed=True)
        return chosen

    return decorate


def _in_python(plain: Mapping[type, Any], mixed: Mapping[type, Any]) -> Callable[..., Any]:
    def operation(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the functions take and give
        table = mixed if getattr(arguments[1], "categories", ()) else plain
        if (kind := type(arguments[1])) not in table:
            known = ", ".join(other.__name__ for other in table)
            raise TypeError(f"there is no such operation for {kind.__name__}; there is one for {known}")
        return interpreted(table[kind])(*arguments)

    return operation


_families: dict[Callable[..., Any], Mapping[type, Callable[..., Any]]] = {}  # Of each operation.
_plain_modules: dict[str, dict[str, Any]] = {}


class _PlainModule:
    """Stands for a module of this package that is imported as a whole."""


def _plain_names(known: dict[str, Any]) -> dict[str, Any]:
    """The names of a module with plain functions in place of compiled ones, also in modules that it imports.

    Python must not call compiled inner functions: they have no way in from there, and the process crashes.
    """
    if known["__name__"] not in _plain_modules:
        names = _plain_modules[known["__name__"]] = dict(known)  # Functions call each other in circles.
        for name, value in known.items():
            if hasattr(value, "py_func"):
                names[name] = interpreted(value)
            elif isinstance(value, ModuleType) and value.__name__.startswith("ewens_widgets."):
                names[name] = _PlainModule()
                names[name].__dict__ = _plain_names(vars(value))
    return _plain_modules[known["__name__"]]


@functools.cache
def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as plain Python, which calls others as plain Python too."""
    plain = getattr(function, "py_func", None)
    if plain is None:
        return function
    names = _plain_names(plain.__globals__)
    return FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
