"""The way of a call into WebAssembly, and how a module is made; browser/test_lite_compiled.py runs one."""

import ctypes
import math
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ewens_widgets.app import webassembly
from ewens_widgets.sampling import compiled

needs_compiler = pytest.mark.skipif(not compiled.COMPILED, reason="without a compiler")


class Pair(NamedTuple):
    """As a workspace is."""

    table: Any
    flag: Any


def total(pair: Pair, factor: float, count: int, out: Any) -> None:  # noqa: ANN401 - an array
    """Something to compile: a sum over a table, a few times."""
    for r in range(pair.table.shape[0]):
        for c in range(pair.table.shape[1]):
            out[0] += factor * pair.table[r, c] * count


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for a module, where there is none yet."""
    path = tmp_path / "kernels.wasm"
    monkeypatch.setattr(webassembly, "MODULE", path)
    webassembly._library.cache_clear()
    yield path
    webassembly._library.cache_clear()


def test_a_call_is_packed_number_by_number() -> None:
    table, generator = np.ones((2, 3)), np.random.Generator(np.random.PCG64(1))
    kinds, form, numbers = webassembly.pack((Pair(table, True), 1.5, np.int64(7) + 0, generator))
    assert (
        kinds == "Pair <f82 bool float int64 generator"
    )  # A number of NumPy's is none that was compiled for.
    kinds, form, numbers = webassembly.pack((Pair(table, True), np.float64(1.5), 7, generator))
    assert kinds == "Pair <f82 bool float int generator"
    assert form == "<" + 9 * "q" + "q" + "d" + "q" + 9 * "q"
    address = table.ctypes.data
    assert numbers[:12] == [0, 0, 6, 8, address, 2, 3, 24, 8, True, 1.5, 7]
    offered = generator.bit_generator.ctypes
    assert numbers[14] == offered.state.value
    draw = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(numbers[17])
    assert draw(offered.state.value) == np.random.Generator(np.random.PCG64(1)).random()


def test_other_arrays_are_of_another_kind() -> None:
    table = np.ones((4, 4))
    known = webassembly.pack((table,))[0]
    others = [table.astype(np.float32), table[0], table[:, :2], np.asfortranarray(table), table.astype(int)]
    assert known not in {webassembly.pack((other,))[0] for other in others}


def test_without_a_module_a_function_is_itself(module: Path) -> None:
    assert webassembly.loaded(total) is total


def test_with_a_module_that_cannot_be_loaded_too(module: Path) -> None:
    module.write_bytes(b"\0asm is not for this machine")
    assert webassembly.loaded(total) is total


class Library:
    """Stands for a module with one function, whose status can be chosen."""

    def __init__(self, name: str, status: int = 0) -> None:
        self.blocks: list[bytes] = []
        self._status = status
        setattr(self, name, self._call)

    def _call(self, block: bytes) -> int:
        self.blocks.append(block)
        return self._status


ARGUMENTS = (Pair(np.ones((2, 2)), False), 0.5, 3)


def exported() -> str:
    kinds, _, _ = webassembly.pack((*ARGUMENTS, np.zeros(1)))
    return webassembly._exported("total", kinds)


def test_a_known_call_goes_to_the_module_and_any_other_to_the_function() -> None:
    library: Any = Library(exported())
    function = webassembly.Loaded(total, library)
    out = np.zeros(1)
    function(*ARGUMENTS, out)
    assert out[0] == 0.0  # This library does nothing, and the function was not called.
    (block,) = library.blocks
    assert struct.unpack("<2d", block[80:96]) == (0.5, struct.unpack("<d", struct.pack("<q", 3))[0])
    other = np.zeros(1, dtype=np.float32)
    function(*ARGUMENTS, other)
    assert other[0] == 6.0
    assert len(library.blocks) == 1
    assert compiled.interpreted(function)(*ARGUMENTS, out) is None
    assert out[0] == 6.0


def test_what_a_function_returns_that_is_not_in_the_module_is_not_lost() -> None:
    library: Any = Library("another")
    assert webassembly.Loaded(lambda count: count + 1, library)(2) == 3


def test_an_error_in_the_module_is_not_lost() -> None:
    library: Any = Library(exported(), status=1)
    with pytest.raises(RuntimeError, match="total ended early"):
        webassembly.Loaded(total, library)(*ARGUMENTS, np.zeros(1))


MADE = """
import sys
import numpy as np
from app.test_webassembly import ARGUMENTS, foreign, total
from ewens_widgets.sampling.compiled import entry
from ewens_widgets.app.webassembly import make_module
calls = {"total": (entry(total), (*ARGUMENTS, np.zeros(1))), "foreign": (entry(foreign), (np.zeros(1),))}
sys.stdout.buffer.write(make_module([calls[sys.argv[1]]]))
"""


def foreign(out: Any) -> None:  # noqa: ANN401 - an array
    """Needs a function that Python has in a version of its own."""
    out[0] = math.lgamma(out[0])


def make(name: str) -> subprocess.CompletedProcess[bytes]:
    tests = str(Path(__file__).resolve().parent.parent)
    code = f"import sys; sys.path.append({tests!r}){MADE}"
    return subprocess.run([sys.executable, "-c", code, name], capture_output=True, check=False)


@needs_compiler
@pytest.mark.slow
def test_a_module_is_made_for_pyodide() -> None:
    made = make("total")
    assert made.returncode == 0, made.stderr.decode()
    assert made.stdout.startswith(b"\0asm\1\0\0\0")
    assert b"dylink.0" in made.stdout[:32]
    assert exported().encode() in made.stdout
    assert make("total").stdout == made.stdout


@needs_compiler
@pytest.mark.slow
def test_functions_that_python_has_otherwise_are_refused() -> None:
    made = make("foreign")
    assert made.returncode == 1
    assert b"compiled code needs lgamma, which may differ from Python's" in made.stderr
