"""The site that runs in a browser, as far as that can be checked without one (tests/browser/test_lite.py)."""

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import threading
import urllib.request
import zipfile
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest

from ewens_widgets import app
from ewens_widgets.app import lite, pyodide
from ewens_widgets.app.command_line import StartError
from ewens_widgets.app.pyodide import Pin
from ewens_widgets.app.site_server import SiteHandler

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
    packages = {
        name: {
            "name": name,
            "version": "2.0",
            "file_name": f"{name}.whl",
            "sha256": hashlib.sha256(b"compiled").hexdigest(),
            "depends": [],
            "imports": [name],
        }
        for name in ("array", "elsewhere")
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
    titles = lite.copy_notebooks(repository / "notebooks", tmp_path / "files", install)
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


def test_the_wheel_is_made_from_what_is_installed(tmp_path: Path) -> None:
    wheel = lite.package_wheel(tmp_path)
    version = importlib.metadata.version("ewens-widgets")
    assert wheel.name == f"ewens_widgets-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read(f"ewens_widgets-{version}.dist-info/RECORD").decode()
        metadata = archive.read(f"ewens_widgets-{version}.dist-info/METADATA").decode()
    assert {line.partition(",")[0] for line in record.splitlines()} == set(names)
    assert {"ewens_widgets/py.typed", "ewens_widgets/data/leukemia.npz"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or "notebooks" in name]
    assert "Name: ewens-widgets" in metadata
    again = tmp_path / "again"
    again.mkdir()
    assert lite.package_wheel(again).read_bytes() == wheel.read_bytes()
    # Compiled chains are in the wheels of sites only.
    module = "ewens_widgets/sampling/kernels.wasm"
    assert module not in names
    with zipfile.ZipFile(lite.package_wheel(again, b"compiled")) as archive:
        assert archive.read(module) == b"compiled"
        assert (
            archive.read(f"ewens_widgets-{version}.dist-info/RECORD").decode().count(f"{module},sha256=") == 1
        )


def test_chains_are_compiled_once_for_their_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command[-1])
        if len(asked) > 2:
            return subprocess.CompletedProcess(command, 1, "", "no such target")
        Path(command[-1]).write_bytes(b"compiled")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(pyodide.subprocess, "run", run)
    assert [pyodide.browser_module(tmp_path / "cache") for _ in range(2)] == [b"compiled"] * 2
    assert len(asked) == 1
    monkeypatch.setattr("ewens_widgets.sampling.compiled.fingerprint", lambda: "other sources")
    pyodide.browser_module(tmp_path / "cache")
    assert len(set(asked)) == 2
    fault = r"could not be compiled for browsers:\nno such target\n.*--interpreted"
    with pytest.raises(StartError, match=fault):
        pyodide.browser_module(tmp_path / "elsewhere")


@pytest.mark.slow
def test_pip_installs_that_wheel(tmp_path: Path) -> None:
    wheel = lite.package_wheel(tmp_path)
    target = tmp_path / "target"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, f"--target={target}", str(wheel)], check=True)
    code = "import ewens_widgets as ew; print(ew.__file__, ew.datasets.leukemia(2).n_objects)"
    environment = {**os.environ, "PYTHONPATH": str(target)}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=tmp_path,
    )
    assert result.stdout.split() == [str(target / "ewens_widgets" / "__init__.py"), "38"]


def test_the_packages_of_the_site_are_those_that_are_tested(repository: Path) -> None:
    pins = {pin.name: pin for pin in pyodide.read_pins()}
    assert all(len(pin.sha256) == 64 for pin in pins.values())
    lines = (repository / "binder" / "constraints.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: pin.version for name, pin in pins.items() if name in tested} == {
        name: tested[name] for name in pins if name in tested
    }
    assert set(lite.widget_packages()) <= pins.keys() & tested.keys()


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
    with pytest.raises(StartError, match=r"Could not get one from the package index \(pip ended with code 1"):
        pyodide.fetch([pin], tmp_path)
    (command,) = asked
    assert "--require-hashes" in command
    assert "Getting 1 package" in capsys.readouterr().out


def test_the_runtime_has_what_is_wanted_and_what_that_needs(tmp_path: Path) -> None:
    needs = (
        "array",
        "Helper_One>=1",
        "gpu; sys_platform != 'emscripten'",
        "other; extra == 'test'",
        "h5py",
    )
    wheels = {
        "open-webui": write_carrier(tmp_path),
        "helper-one": write_wheel(tmp_path, "helper_one"),
        "unused": write_wheel(tmp_path, "unused"),
    }
    target = tmp_path / "pyodide"
    names = pyodide.write_runtime(target, wheels, [write_wheel(tmp_path, "ours", needs)], ["ours"])
    assert names == ["array", "helper-one", "ours"]
    lock = json.loads((target / "pyodide-lock.json").read_text())["packages"]
    assert lock["ours"]["depends"] == ["array", "helper-one"]
    assert lock["ours"]["imports"] == ["ours"]
    for entry in lock.values():
        content = (target / entry["file_name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert {path.name for path in target.iterdir()} == {
        *RUNTIME,
        "pyodide-lock.json",
        *(entry["file_name"] for entry in lock.values()),
    }


def test_a_listed_package_takes_the_place_of_the_one_that_is_carried(tmp_path: Path) -> None:
    wheels = {"open-webui": write_carrier(tmp_path), "array": write_wheel(tmp_path, "array")}
    pyodide.write_runtime(tmp_path / "pyodide", wheels, [], ["array"])
    lock = json.loads((tmp_path / "pyodide" / "pyodide-lock.json").read_text())["packages"]
    assert lock["array"]["version"] == "1.0"
    assert (tmp_path / "pyodide" / lock["array"]["file_name"]).is_file()
    assert not (tmp_path / "pyodide" / "array.whl").exists()
    damaged = {"open-webui": write_carrier(tmp_path, content=b"damaged")}
    with pytest.raises(StartError, match=r"array\.whl does not have the hash of Pyodide's lock"):
        pyodide.write_runtime(tmp_path / "pyodide", damaged, [], ["array"])
    for missing in ("elsewhere", "nowhere"):
        ours = write_wheel(tmp_path, "ours", (missing,))
        with pytest.raises(StartError, match=f"ours needs {missing}, which packages.txt does not list"):
            pyodide.write_runtime(tmp_path / "pyodide", wheels, [ours], ["ours"])


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "thesis.txt"
    mine.write_text("mine")
    assert app.main(["lite", "--output", str(tmp_path)]) == 1
    assert "holds files that are not a site" in capsys.readouterr().err
    assert mine.read_text() == "mine"


def test_widgets_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.metadata.version

    def version(name: str) -> str:
        return "0.0.1" if name == "bqplot" else installed(name)

    monkeypatch.setattr(lite.importlib.metadata, "version", version)
    with pytest.raises(StartError, match=r"has bqplot 0\.0\.1; .* pip install bqplot=="):
        lite.build_site(tmp_path / "site", cache=tmp_path / "cache", interpreted=True)


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (lambda _: None, r"pip install \"ewens-widgets\[lite\]\""),
        (lambda name: name != "ziglang" or None, r"for WebAssembly \(which --interpreted does without\)"),
    ],
    ids=["package", "linker"],
)
def test_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: object, fault: str
) -> None:
    monkeypatch.setattr("ewens_widgets.app.command_line.find_spec", found)
    with pytest.raises(StartError, match=fault):
        lite.build_site(tmp_path / "site")


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
        lite.build_site(site)
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
    assert extensions == {name.rpartition("/")[2] for name in lite.EXTENSIONS}
    page = (site / "index.html").read_text()
    for name in names:
        assert f"notebooks/index.html?path={name}" in page
    for lab in lite.LABS:
        assert f'href="{lab.name}.html"' in page
        assert lab.title in (site / f"{lab.name}.html").read_text()


def test_pages_of_labs_take_a_state_where_it_has_a_meaning(tmp_path: Path) -> None:
    lite._write_pages(tmp_path, {"01_quickstart.ipynb": "Quickstart"}, None)
    explorer, prior = (
        (tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in ("explorer", "prior")
    )
    assert "from_preset%28%27STATE%27" in explorer
    assert 'data-preset=""' in prior
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert index.count('class="button"') == 1
    assert (tmp_path / "explorer.gif").read_bytes()[:4] == b"GIF8"
