"""The site that runs in a browser, without a browser (browser/test_lite.py drives one)."""

import ctypes
import hashlib
import json
import math
import struct
import subprocess
import sys
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import numpy as np
import pytest

from browser_site import browser_loops, build, pyodide, webassembly
from browser_site.pyodide import Pin
from browser_site.serve import SiteHandler
from ewens_widgets.sampling import compiled

CARRIED = "open_webui/frontend/pyodide/"
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")


def write_wheel(folder: Path, name: str, needs: tuple[str, ...] = ()) -> Path:
    """A wheel of pure Python, version 1.0."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    metadata = [f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {need}" for need in needs)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(metadata))
    return path


def write_carrier(folder: Path, content: bytes = b"compiled") -> Path:
    """A wheel that carries Pyodide with a package `array`, which its lock knows by a hash."""
    common = {"version": "2.0", "sha256": hashlib.sha256(b"compiled").hexdigest(), "depends": []}
    names = ("array", "elsewhere")
    packages = {
        name: {**common, "name": name, "file_name": f"{name}.whl", "imports": [name]} for name in names
    }
    path = folder / "open_webui-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in RUNTIME:
            archive.writestr(CARRIED + name, name)
        archive.writestr(CARRIED + "pyodide-lock.json", json.dumps({"info": {}, "packages": packages}))
        archive.writestr(CARRIED + "array.whl", content)
    return path


def pin_of(path: Path) -> Pin:
    name, version, *_ = path.name.split("-")
    return Pin(f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")


@pytest.mark.parametrize("install", [None, "%pip install -q ewens-widgets"])
def test_notebooks_are_copied_with_a_cell_that_installs_where_that_is_needed(
    install: str | None, repository: Path, tmp_path: Path
) -> None:
    originals = sorted((repository / "notebooks").glob("*.ipynb"))
    titles = build.copy_notebooks(tmp_path / "files", install)
    assert list(titles) == [path.name for path in originals]
    assert titles["01_quickstart.ipynb"] == "Quickstart"
    for original in originals:
        before = nbformat.read(original, as_version=4)
        after = nbformat.read(tmp_path / "files" / original.name, as_version=4)
        nbformat.validate(after)
        assert after.metadata.kernelspec.name == "python"
        if install is None:
            assert after.cells == before.cells
        else:
            assert after.cells[0] == before.cells[0]
            assert after.cells[1].source.endswith(install)
            assert after.cells[2:] == before.cells[1:]


@pytest.mark.slow
def test_the_wheel_has_the_chains_and_what_calls_them(tmp_path: Path) -> None:
    wheel = build.package_wheel(tmp_path, b"compiled")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    lines = files[record].decode().splitlines()
    assert [line.partition(",")[0] for line in lines] == list(files)
    assert {"ewens_widgets/py.typed", "ewens_widgets/data/leukemia.npz"} <= files.keys()
    assert not [name for name in files if "__pycache__" in name or "notebooks" in name]
    assert files["ewens_widgets/sampling/kernels.wasm"] == b"compiled"
    assert b"def loaded" in files["ewens_widgets/sampling/browser_loops.py"]
    (tmp_path / "again").mkdir()
    assert build.package_wheel(tmp_path / "again", b"compiled").read_bytes() == wheel.read_bytes()
    # pip compares the files with their hashes.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, f"--target={tmp_path / 'target'}", str(wheel)], check=True)


def test_chains_are_compiled_once_for_their_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(command: list[str], **_: object) -> None:
        asked.append(command[-1])
        Path(command[-1]).write_bytes(b"compiled")

    monkeypatch.setattr(webassembly.subprocess, "run", run)
    assert [webassembly.browser_module(tmp_path / "cache") for _ in range(2)] == [b"compiled"] * 2
    assert len(asked) == 1
    monkeypatch.setattr(compiled, "fingerprint", lambda: "other sources")
    webassembly.browser_module(tmp_path / "cache")
    assert len(set(asked)) == 2


def test_the_packages_of_the_site_are_those_that_are_tested(repository: Path) -> None:
    pins = {pin.name: pin for pin in pyodide.read_pins()}
    assert all(len(pin.sha256) == 64 for pin in pins.values())
    lines = (repository / "binder" / "constraints.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert [name for name, pin in pins.items() if tested.get(name, pin.version) != pin.version] == []
    assert set(build.widget_packages()) <= pins.keys() & tested.keys()


def test_a_wheel_with_another_hash_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = write_wheel(tmp_path, "one")
    pin = pin_of(wheel)
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(pyodide.subprocess, "run", run)
    assert pyodide.fetch([pin], tmp_path) == {"one": wheel}
    assert asked == [], "a cached wheel is not asked for again"
    wheel.write_bytes(b"something else")
    with pytest.raises(SystemExit, match=r"Could not get one from the package index \(pip ended with code 1"):
        pyodide.fetch([pin], tmp_path)
    (command,) = asked
    assert "--require-hashes" in command
    assert "Getting 1 package" in capsys.readouterr().out


def test_the_runtime_has_what_is_wanted_and_what_that_needs(tmp_path: Path) -> None:
    needs = ("array", "Helper_One>=1", "gpu; sys_platform != 'emscripten'", "other; extra == 'test'", "h5py")
    wheels = {name.replace("_", "-"): write_wheel(tmp_path, name) for name in ("helper_one", "unused")}
    wheels["open-webui"] = write_carrier(tmp_path)
    target = tmp_path / "pyodide"
    names = pyodide.write_runtime(target, wheels, [write_wheel(tmp_path, "ours", needs)], ["ours"])
    assert names == ["array", "helper-one", "ours"]
    lock = json.loads((target / "pyodide-lock.json").read_text())["packages"]
    assert lock["ours"]["depends"] == ["array", "helper-one"]
    assert lock["ours"]["imports"] == ["ours"]
    for entry in lock.values():
        content = (target / entry["file_name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    files = {path.name for path in target.iterdir()}
    assert files == {*RUNTIME, "pyodide-lock.json", *(entry["file_name"] for entry in lock.values())}


def test_a_listed_package_takes_the_place_of_the_one_that_is_carried(tmp_path: Path) -> None:
    wheels = {"open-webui": write_carrier(tmp_path), "array": write_wheel(tmp_path, "array")}
    pyodide.write_runtime(tmp_path / "pyodide", wheels, [], ["array"])
    lock = json.loads((tmp_path / "pyodide" / "pyodide-lock.json").read_text())["packages"]
    assert lock["array"]["version"] == "1.0"
    assert (tmp_path / "pyodide" / lock["array"]["file_name"]).is_file()
    assert not (tmp_path / "pyodide" / "array.whl").exists()
    damaged = {"open-webui": write_carrier(tmp_path, content=b"damaged")}
    with pytest.raises(SystemExit, match=r"array\.whl does not have the hash of Pyodide's lock"):
        pyodide.write_runtime(tmp_path / "pyodide", damaged, [], ["array"])
    for missing in ("elsewhere", "nowhere"):
        ours = write_wheel(tmp_path, "ours", (missing,))
        with pytest.raises(SystemExit, match=f"ours needs {missing}, which packages.txt does not list"):
            pyodide.write_runtime(tmp_path / "pyodide", wheels, [ours], ["ours"])


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "thesis.txt"
    mine.write_text("mine")
    with pytest.raises(SystemExit, match="holds files that are not a site"):
        build.build_site(tmp_path)
    assert mine.read_text() == "mine"


def test_widgets_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pins = {pin.name: pin.version for pin in pyodide.read_pins()}
    monkeypatch.setattr(build.importlib.metadata, "version", (pins | {"bqplot": "0.0.1"}).__getitem__)
    with pytest.raises(SystemExit, match=r"has bqplot 0\.0\.1; .* pip install bqplot=="):
        build._check_versions(pins)


def test_files_are_served_as_what_they_are(tmp_path: Path) -> None:
    types = {"a.wasm": "application/wasm", "a.mjs": "text/javascript", "a.js": "text/javascript"}
    for name in types:
        (tmp_path / name).write_text("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SiteHandler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for name, expected in types.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{name}") as answer:
                assert answer.headers["Content-Type"] == expected
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# As in a browser: numba cannot be imported, and no thread starts.
BROWSER = """
import asyncio, sys, threading, warnings
sys.modules["numba"] = None
def refuse(thread, *_, **__):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
warnings.simplefilter("error")
import ewens_widgets as ew
from ewens_widgets.sampling.compiled import COMPILED
assert not COMPILED
async def play():
    explorer = ew.Explorer(ew.datasets.unit_square(seed=0), iterations=5)
    explorer.player.play()
    await explorer.player.wait()
    return explorer.player.status.iteration
assert asyncio.run(play()) == 5
data = ew.datasets.unit_square(per_cluster=2, seed=0)
ew.Sampler(data, seed=0).sample(5)
ew.sample_chains(data, chains=2, draws=5, burn_in=0, seed=0)
"""


@pytest.mark.slow
def test_neither_compiler_nor_threads_are_needed() -> None:
    result = subprocess.run([sys.executable, "-c", BROWSER], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_site_has_the_wheel_the_notebooks_and_the_widgets(repository: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for _ in range(2):  # The second time there is a site already, which is replaced.
        build.build_site(site)
        assert not (site / "stale.txt").exists()
        (site / "stale.txt").write_text("")
    names = {path.name for path in (site / "files").glob("*.ipynb")}
    assert names == {path.name for path in (repository / "notebooks").glob("*.ipynb")}
    index = json.loads((site / "pypi" / "all.json").read_text())
    (release,) = index["ewens-widgets"]["releases"].values()
    assert release[0]["filename"].endswith("-py3-none-any.whl")
    with zipfile.ZipFile(site / "pypi" / release[0]["filename"]) as archive:
        assert archive.read("ewens_widgets/sampling/kernels.wasm").startswith(b"\0asm")
    extensions = {path.parent.name for path in (site / "extensions").rglob("package.json")}
    assert extensions == {name.rpartition("/")[2] for name in build.EXTENSIONS}
    page = (site / "index.html").read_text()
    for name in names:
        assert f"notebooks/index.html?path={name}" in page
    for lab in build.LABS:
        assert f'href="{lab.name}.html"' in page
        assert lab.title in (site / f"{lab.name}.html").read_text()


def test_pages_of_labs_take_a_state_where_it_has_a_meaning(tmp_path: Path) -> None:
    build.write_pages(tmp_path, {"01_quickstart.ipynb": "Quickstart"}, None)
    explorer, prior = (
        (tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in ("explorer", "prior")
    )
    assert "from_preset%28%27STATE%27" in explorer
    assert 'data-preset=""' in prior
    assert 'src="explorer.gif"' in explorer  # until the live one is there
    assert "explorer.gif" not in prior
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert index.count('class="button"') == 1
    assert (tmp_path / "explorer.gif").read_bytes()[:4] == b"GIF8"


# The way of a call into WebAssembly, and how a module is made; browser/test_lite_compiled.py runs one.


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
    monkeypatch.setattr(browser_loops, "MODULE", path)
    browser_loops._library.cache_clear()
    yield path
    browser_loops._library.cache_clear()


def test_a_call_is_packed_number_by_number() -> None:
    table, generator = np.ones((2, 3)), np.random.Generator(np.random.PCG64(1))
    kinds, form, numbers = browser_loops.pack((Pair(table, True), 1.5, np.int64(7) + 0, generator))
    # A number of NumPy's is none that was compiled for.
    assert kinds == "Pair <f82 bool float int64 generator"
    kinds, form, numbers = browser_loops.pack((Pair(table, True), np.float64(1.5), 7, generator))
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
    known = browser_loops.pack((table,))[0]
    others = [table.astype(np.float32), table[0], table[:, :2], np.asfortranarray(table), table.astype(int)]
    assert known not in {browser_loops.pack((other,))[0] for other in others}


def test_without_a_module_that_can_be_loaded_a_function_is_itself(module: Path) -> None:
    assert browser_loops.loaded(total) is total
    browser_loops._library.cache_clear()
    module.write_bytes(b"\0asm is not for this machine")
    assert browser_loops.loaded(total) is total


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
    kinds, _, _ = browser_loops.pack((*ARGUMENTS, np.zeros(1)))
    return browser_loops.exported("total", kinds)


def test_a_known_call_goes_to_the_module_and_any_other_to_the_function() -> None:
    library: Any = Library(exported())
    function = browser_loops.Loaded(total, library)
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


def test_what_a_function_returns_and_an_error_in_the_module_are_not_lost() -> None:
    library: Any = Library("another")
    assert browser_loops.Loaded(lambda count: count + 1, library)(2) == 3
    library = Library(exported(), status=1)
    with pytest.raises(RuntimeError, match="total ended early"):
        browser_loops.Loaded(total, library)(*ARGUMENTS, np.zeros(1))


MADE = """
import sys
import numpy as np
from test_browser_site import ARGUMENTS, foreign, total
from ewens_widgets.sampling.compiled import entry
from browser_site.webassembly import make_module
calls = {"total": (entry(total), (*ARGUMENTS, np.zeros(1))), "foreign": (entry(foreign), (np.zeros(1),))}
sys.stdout.buffer.write(make_module([calls[sys.argv[1]]]))
"""


def foreign(out: Any) -> None:  # noqa: ANN401 - an array
    """Needs a function that Python has in a version of its own."""
    out[0] = math.lgamma(out[0])


def make(name: str) -> subprocess.CompletedProcess[bytes]:
    tests = Path(__file__).resolve().parent
    code = f"import sys; sys.path += [{str(tests)!r}, {str(tests.parent)!r}]{MADE}"
    return subprocess.run([sys.executable, "-c", code, name], capture_output=True, check=False)


@pytest.mark.skipif(not compiled.COMPILED, reason="without a compiler")
@pytest.mark.slow
def test_a_module_is_made_for_pyodide_without_functions_that_python_has_otherwise() -> None:
    made = make("total")
    assert made.returncode == 0, made.stderr.decode()
    assert made.stdout.startswith(b"\0asm\1\0\0\0")
    assert b"dylink.0" in made.stdout[:32]
    assert exported().encode() in made.stdout
    assert make("total").stdout == made.stdout
    refused = make("foreign")
    assert refused.returncode == 1
    assert b"compiled code needs lgamma, which may differ from Python's" in refused.stderr
