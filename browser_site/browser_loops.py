"""Compiled loops of chains in a browser, where numba is missing.

The wheel of the site has this file in `sampling`, which finds it there.

`loaded` wraps a function that the module beside this file has as WebAssembly. Its arguments, named tuples of
arrays, are written into a block with 8 bytes for each number (`pack`). The address of this block is the only
argument of an exported function. Arrays are not copied, and random numbers come from the generator's own
stream, through the functions that NumPy offers to C. Exported names contain a digest of the kinds of the
arguments. For other kinds, and where the module cannot be loaded, the interpreted function runs.
"""

import ctypes
import functools
import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MODULE = Path(__file__).with_name("kernels.wasm")


def pack(arguments: Sequence[Any]) -> tuple[str, str, list[int | float]]:
    """Flatten numbers, arrays, generators, and tuples of these as numba does.

    Returns the kinds of the arguments, the format of their numbers in a block (as of `struct`), and these
    numbers. Arrays that numba would not take unchanged, such as columns of others, get the unknown kind "?".
    """
    kinds: list[str] = []
    form: list[str] = []
    numbers: list[int | float] = []
    for value in _leaves(arguments, kinds):
        if isinstance(value, np.ndarray):
            kinds.append(f"{value.dtype.str}{value.ndim}" if value.flags.c_contiguous else "?")
            form.append("q" * (5 + 2 * value.ndim))
            address = value.__array_interface__["data"][0]
            numbers += (0, 0, value.size, value.itemsize, address, *value.shape, *value.strides)
        elif isinstance(value, np.random.Generator):
            kinds.append("generator")
            form.append("q" * 9)
            numbers += (0, *_addresses(value.bit_generator), 0, 0)
        else:
            kind = next((kind for kind in (bool, int, float) if isinstance(value, kind)), type(value))
            kinds.append(kind.__name__)
            form.append("d" if kind is float else "q")
            numbers.append(value)
    return " ".join(kinds), f"<{''.join(form)}", numbers


def _leaves(values: Sequence[Any], kinds: list[str]) -> Iterator[Any]:
    """Yield the members of nested tuples, and add the names of the tuples to `kinds`."""
    for value in values:
        if isinstance(value, tuple):
            kinds.append(type(value).__name__)
            yield from _leaves(value, kinds)
        else:
            yield value


def _addresses(bit_generator: Any) -> tuple[int, ...]:  # noqa: ANN401 - NumPy has no type for what it offers to C
    """Addresses of the state of a generator and of the functions that draw from it."""
    offered = bit_generator.ctypes
    functions = (offered.next_uint64, offered.next_uint32, offered.next_double)
    pointers = (ctypes.cast(function, ctypes.c_void_p) for function in functions)
    addresses = (offered.state, *pointers, offered.bit_generator)
    return (offered.state_address, *(address.value or 0 for address in addresses))


def exported(name: str, kinds: str) -> str:
    """Name of a function for certain kinds of arguments in a module."""
    return f"{name}_{hashlib.sha256(kinds.encode()).hexdigest()[:16]}"


class Loaded:
    """A plain function that runs as WebAssembly where the module has it for the kinds of its arguments."""

    def __init__(self, function: Callable[..., Any], library: ctypes.CDLL) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._library = library

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - as the function has them
        """Call the function; those that the module has return nothing."""
        kinds, form, numbers = pack(arguments)
        native = getattr(self._library, exported(self.py_func.__name__, kinds), None)
        if native is None:
            return self.py_func(*arguments)
        if native(struct.pack(form, *numbers)):
            raise RuntimeError(
                f"{self.py_func.__name__} ended early, as interpreted code would with an error."
            )
        return None


def loaded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is in the module that came with this package; without one, the function itself."""
    library = _library()
    return function if library is None else Loaded(function, library)


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(MODULE)) if MODULE.is_file() else None
    except OSError:  # This browser, or Pyodide, cannot run it: everything works interpreted, slower.
        return None
