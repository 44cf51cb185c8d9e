"""The compiled loops as WebAssembly: made where numba is, and run where it is not, in a browser.

*Made.* `make_module` has numba compile functions for another machine: WebAssembly, with 32-bit addresses.
LLVM, which is part of llvmlite, optimises them and writes an object file. The linker in the package ziglang
turns it into a module that Pyodide can load like those of NumPy. Integers keep the 64 bits that numba gives
them, sizes and strides of arrays included; only addresses have 32 bits. The loops create no arrays and count
no references, so numba's runtime is not needed.

*Run.* `loaded` wraps a function whose module came with the package, as on a site for browsers. Its arguments,
named tuples of arrays, are written into a block with 8 bytes for each number (`pack`). The address of this
block is the only argument of an exported function. Arrays are not copied, and random numbers come from the
generator's own stream, through the functions that NumPy offers to C. Exported names contain a digest of the
kinds of the arguments. For other kinds, and where the module cannot be loaded, the interpreted function runs.

*The same chain.* The arithmetic of WebAssembly is exact to the bit. `exp`, `log`, `log1p` and `pow` come from
Pyodide, where Python and NumPy use the same ones. A module that needs any other function of a mathematical
library is refused, because Python may have another implementation.
"""

import ctypes
import functools
import hashlib
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

# The module in a wheel for browsers, next to the Python module that loads it (`lite.package_wheel`); an
# ordinary installation has neither.
MODULE = Path(__file__).parent.parent / "sampling" / "kernels.wasm"

_TRIPLE = "wasm32-unknown-emscripten"
# Supported by browsers for years, and required by Pyodide too.
_FEATURES = "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext"
_FROM_PYODIDE = {"exp", "log", "log1p", "pow"}
_INSTRUCTIONS = {"ceil", "copysign", "fabs", "floor", "sqrt", "trunc"}

# A call of one of the generator's functions: numba passes the address of the state as 64 bits.
_DRAW = re.compile(r"(%\S+) = (?:tail )?call (\w+) (%[^\s(]+)\(i64 (%[^\s)]+)\)")


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


def _exported(name: str, kinds: str) -> str:
    """Name of a function for certain kinds of arguments in a module."""
    return f"{name}_{hashlib.sha256(kinds.encode()).hexdigest()[:16]}"


# Run.


class Loaded:
    """A plain function that runs as WebAssembly where the module has it for the kinds of its arguments."""

    def __init__(self, function: Callable[..., Any], library: ctypes.CDLL) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._library = library

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - as the function has them
        """Call the function; those that the module has return nothing."""
        kinds, form, numbers = pack(arguments)
        native = getattr(self._library, _exported(self.py_func.__name__, kinds), None)
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


# Made.


def make_module(calls: Iterable[tuple[Any, Sequence[Any]]]) -> bytes:
    """Compile functions to WebAssembly. Afterwards numba cannot compile for this machine in this process.

    Numba has decorated the functions, which return nothing; each comes with arguments of the kinds that it is
    compiled for.
    """
    import llvmlite.binding as llvm

    machine = _machine(llvm)
    _retarget(machine)
    combined: Any = None
    names = []
    for function, arguments in calls:
        kinds, form, _ = pack(arguments)
        names.append(_exported(function.py_func.__name__, kinds))
        module = _compiled(llvm, function, arguments, names[-1], form)
        if combined is None:
            combined = module
        else:
            combined.link_in(module)
    _optimise(llvm, combined, machine, set(names))
    foreign = {function.name for function in combined.functions if function.is_declaration}
    foreign = {name for name in foreign if not name.startswith("llvm.")} - _FROM_PYODIDE - _INSTRUCTIONS
    if foreign:
        raise RuntimeError(
            f"compiled code needs {', '.join(sorted(foreign))}, which may differ from Python's"
        )
    with TemporaryDirectory() as folder:
        given, made = Path(folder, "kernels.o"), Path(folder, "kernels.wasm")
        given.write_bytes(machine.emit_object(combined))
        linker = [sys.executable, "-m", "ziglang", "wasm-ld", "--shared", "--experimental-pic", "--no-entry"]
        options = ["--allow-undefined", "--strip-all", *(f"--export={name}" for name in names)]
        subprocess.run([*linker, *options, str(given), "-o", str(made)], check=True)  # noqa: S603 - our own
        return made.read_bytes()


def _machine(llvm: Any) -> Any:  # noqa: ANN401 - llvmlite has no types
    """The target, as LLVM has it."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(_TRIPLE)
    return target.create_target_machine(opt=3, reloc="pic", codemodel="default", features=_FEATURES)


def _retarget(machine: Any) -> None:  # noqa: ANN401 - llvmlite has no types
    """Have numba compile for WebAssembly, whose code cannot be run here."""
    import numba
    from llvmlite import ir
    from numba.core import caching, cgutils
    from numba.core.codegen import JITCodeLibrary
    from numba.core.registry import cpu_target

    normalise: Any = cgutils.normalize_ir_text
    trifle: Any = numba.njit(lambda: 0)
    trifle.compile(())  # Brings in numba's own library, which is for this machine.

    def empty_module(name: str) -> Any:  # noqa: ANN401 - llvmlite has no types
        module = ir.Module(normalise(name))
        module.triple, module.data_layout = _TRIPLE, str(machine.target_data)
        return module

    def finish(library: Any) -> None:  # noqa: ANN401 - numba has no types
        library._finalized = True  # noqa: SLF001 - as numba does

    generator = cpu_target.target_context.codegen()
    made_over: dict[str, Any] = {
        "_tm": machine,
        "_target_data": machine.target_data,
        "_data_layout": str(machine.target_data),
        "_create_empty_module": empty_module,
        "set_env": lambda *_: None,
    }
    for name, value in made_over.items():
        setattr(generator, name, value)
    # Everything is optimised at the end, as a whole; code is neither loaded nor kept.
    library: Any = JITCodeLibrary
    library._optimize_final_module = lambda _: None  # noqa: SLF001 - numba offers no other way
    library._finalize_final_module = finish  # noqa: SLF001 - numba offers no other way
    library.get_pointer_to_function = lambda *_: 0
    kept: Any = caching.Cache
    kept.load_overload = kept.save_overload = lambda *_: None


def _compiled(llvm: Any, function: Any, arguments: Sequence[Any], name: str, form: str) -> Any:  # noqa: ANN401
    """A module of LLVM with a function and all that it calls, and the way in from a block."""
    from numba.core.compiler_lock import global_compiler_lock

    from ewens_widgets.sampling.compiled import jit

    types = tuple(function.typeof_pyval(value) for value in arguments)
    inner: Any = jit(function.py_func)
    inner.compile(types)
    made = inner.overloads[types]
    with global_compiler_lock:
        made.library.finalize()
    text = _DRAW.sub(
        lambda found: (
            f"%state.{found.start()} = trunc i64 {found[4]} to i32\n"
            f"  {found[1]} = call {found[2]} {found[3]}(i32 %state.{found.start()})"
        ),
        made.library.get_llvm_str(),
    )
    module = llvm.parse_assembly(text)
    native = module.get_function(made.fndesc.llvm_func_name)
    wanted = [str(argument.type) for argument in native.arguments]
    module.link_in(llvm.parse_assembly(_way_in(module, native.name, wanted, name, form)))
    return module


def _way_in(module: Any, native: str, types: Sequence[str], name: str, form: str) -> str:  # noqa: ANN401
    """A function, in LLVM's language, that takes the arguments of another one from a block.

    The first two are numba's own: where to put what is returned, and what was raised.
    """
    if "<" + "".join("d" if kind == "double" else "q" for kind in types[2:]) != form:
        raise RuntimeError(f"numba does not take the arguments of {name} as they are packed")
    loads = "".join(
        f"  %p{place} = getelementptr i8, ptr %block, i32 {8 * place}\n"
        f"  %v{place} = load {kind}, ptr %p{place}\n"
        for place, kind in enumerate(types[2:])
    )
    values = "".join(f", {kind} %v{place}" for place, kind in enumerate(types[2:]))
    return (
        f'target triple = "{module.triple}"\ntarget datalayout = "{module.data_layout}"\n'
        f'declare i32 @"{native}"({", ".join(types)})\n'
        f"define i32 @{name}(ptr %block) {{\n"
        f"  %returned = alloca ptr\n  %raised = alloca ptr\n  store ptr null, ptr %raised\n{loads}"
        f'  %status = call i32 @"{native}"(ptr %returned, ptr %raised{values})\n  ret i32 %status\n}}\n'
    )


def _optimise(llvm: Any, module: Any, machine: Any, names: set[str]) -> None:  # noqa: ANN401
    """Keep the named functions and what they need, and have LLVM do all it can."""
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name in names else "internal"
    for variable in module.global_variables:
        variable.linkage = "internal"
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
