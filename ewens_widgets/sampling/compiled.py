"""The compiler of the kernels: numba where it is installed, plain Python where it is not (Pyodide).

Set ``EWENS_WIDGETS_INTERPRETED=1`` to run the kernels interpreted, e.g. to step through them in a debugger:
the chain is the same.

Numba keeps machine code beside the sources and checks it against the file of the function itself, but not
against the files of the functions that were compiled into it. So that an edit or an update of one file never
leaves old code in another, all of it is discarded when any of the sources has changed.

Compiled code releases the interpreter's lock. While a chain runs, other threads can send its pictures to a
browser or run other chains.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["COMPILED", "by_family", "discard_stale_code", "entry", "guest", "inlined", "jit", "short_runs"]

Function = TypeVar("Function", bound=Callable[..., Any])

_STAMP = "compiled-from.txt"
# Under the folder of this file: what machine code is made from, and this file, for its options.
_SOURCES = ("compiled.py", "draws.py", "driver.py", "kernel/*.py", "moves/*.py")


def discard_stale_code(folder: Path) -> bool:
    """Delete the machine code under a folder unless it was made from exactly its sources; say whether."""
    sources = sorted(path for pattern in _SOURCES for path in folder.glob(pattern))
    made_from = "\n".join(f"{path.relative_to(folder)} {path.stat().st_mtime_ns}" for path in sources)
    stamp = folder / "__pycache__" / _STAMP
    with contextlib.suppress(OSError):  # A folder that cannot be written cannot have been edited either.
        if stamp.exists() and stamp.read_text() == made_from:
            return False
        stamp.parent.mkdir(exist_ok=True)
        for code in [*folder.rglob("__pycache__/*.nbi"), *folder.rglob("__pycache__/*.nbc")]:
            code.unlink(missing_ok=True)
        stamp.write_text(made_from)
        return True
    return False


try:
    if os.environ.get("EWENS_WIDGETS_INTERPRETED", "") not in ("", "0"):
        raise ImportError
    import numba
    from numba.extending import overload
except ImportError:
    COMPILED = False

    def entry(function: Function) -> Function:
        """Leave the function as it is."""
        return function

    jit = inlined = guest = entry

    def _announce(operation: Callable[..., Any], table: Mapping[type, Any]) -> None:
        """Nothing has to be told to a compiler."""
else:
    COMPILED = True
    discard_stale_code(Path(__file__).parent)

    # error_model="numpy": a division by zero gives inf as in NumPy, and inner loops need no branch for it.
    _OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
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
    compilation of a family that is not used.

    Parameters
    ----------
    table
        The function of each kind of workspace; all take the same arguments.
    """

    def operation(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the functions take and give
        return _of_kind(table, type(arguments[1]))(*arguments)

    _announce(operation, table)
    return operation


def _of_kind(table: Mapping[type, Callable[..., Any]], kind: type) -> Callable[..., Any]:
    if kind not in table:
        known = ", ".join(entry.__name__ for entry in table)
        raise TypeError(f"there is no such operation for {kind.__name__}; there is one for {known}")
    return table[kind]


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
