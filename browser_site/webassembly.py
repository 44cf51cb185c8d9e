"""Chains as WebAssembly: makes the module that `browser_loops` runs in a browser.

`make_module` has numba compile functions for another machine: WebAssembly, with 32-bit addresses. LLVM, which
is part of llvmlite, optimises them and writes an object file. The linker in the package ziglang turns it into
a module that Pyodide can load like those of NumPy. Integers keep the 64 bits that numba gives them, sizes and
strides of arrays included; only addresses have 32 bits. The loops create no arrays and count no references,
so numba's runtime is not needed. Private parts of numba are replaced; the versions are pinned.

*The same chain.* The arithmetic of WebAssembly is exact to the bit. `exp`, `log`, `log1p` and `pow` come from
Pyodide, where Python and NumPy use the same ones. A module that needs any other function of a mathematical
library is refused, because Python may have another implementation.
"""

import gc
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from browser_site import browser_loops
from browser_site.browser_loops import exported, pack
from ewens_widgets.files import write_atomically
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling import compiled
from ewens_widgets.sampling.driver import Driver
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.sampling.state import first_state

ROOT = Path(__file__).resolve().parent.parent

_TRIPLE = "wasm32-unknown-emscripten"
# Supported by browsers for years, and required by Pyodide too.
_FEATURES = "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext"
_FROM_PYODIDE = {"exp", "log", "log1p", "pow"}
_INSTRUCTIONS = {"ceil", "copysign", "fabs", "floor", "sqrt", "trunc"}

# A call of one of the generator's functions: numba passes the address of the state as 64 bits.
_DRAW = re.compile(r"(%\S+) = (?:tail )?call (\w+) (%[^\s(]+)\(i64 (%[^\s)]+)\)")


def browser_module(cache: Path) -> bytes:
    """The loops of chains as WebAssembly, made by another process, or kept from then in a cache.

    The name of the file there is made from sources and compilers.
    """
    made_from = [f"{name} {importlib.metadata.version(name)}" for name in ("llvmlite", "numba", "ziglang")]
    made_from += [Path(path).read_text(encoding="utf-8") for path in (__file__, browser_loops.__file__)]
    made_from.append(compiled.fingerprint())
    path = cache / f"kernels-{hashlib.sha256(''.join(made_from).encode()).hexdigest()[:16]}.wasm"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        print("Compiling the chains for browsers, which takes a minute or two, once", flush=True)
        # A fixed hash seed, so that the same sources give the same bytes.
        variables = {**os.environ, "PYTHONHASHSEED": "0", "EWENS_WIDGETS_INTERPRETED": ""}
        command = [sys.executable, "-m", "browser_site.webassembly", str(path)]
        subprocess.run(command, check=True, env=variables, cwd=ROOT)
    return path.read_bytes()


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
        names.append(exported(function.py_func.__name__, kinds))
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
        subprocess.run([*linker, *options, str(given), "-o", str(made)], check=True)
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

    types = tuple(function.typeof_pyval(value) for value in arguments)
    inner: Any = compiled.jit(function.py_func)
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


def write_module(target: str) -> None:
    """Write the loops of chains, of both families of shapes, into a file as WebAssembly."""
    calls: list[Any] = []
    for shapes, moves in product(("common", "own"), ("default", "paper-2")):
        posterior = Posterior.from_data([[0.0], [1.0], [3.0]], shapes=shapes)
        driver = Driver(posterior, resolve_schedule(moves, shapes), np.zeros((3, 3)), as_printed=False)
        driver.load(first_state(posterior, None, np.random.Generator(np.random.PCG64(0))))
        calls += driver.trials().values()
    gc.disable()  # as `make_code` does
    write_atomically(target, make_module(calls))


if __name__ == "__main__":
    write_module(sys.argv[1])
