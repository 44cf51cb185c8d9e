"""Python for a browser (Pyodide) in a folder, with every package that the tutorials need.

A page that runs Python usually loads Pyodide and packages from the web. For an offline site they are put next
to the page, from packages of the ordinary index: ``packages.txt`` lists each with its version and hash.
The compiled part (Pyodide itself, NumPy and others) comes in the wheel of another project, open-webui, which
also runs Python in browsers; the rest is pure Python. One lock file lists all packages for Pyodide, so that a
page has no dependencies to resolve.
"""

import email.parser
import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement

PINS = Path(__file__).with_name("packages.txt")

_CARRIER = "open-webui"
_CARRIED = "open_webui/frontend/pyodide/"
_RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_LOCK = "pyodide-lock.json"

# Dependencies that packages do not need in a browser: JavaScript that the site already has, compilers, and
# libraries for a file format that no tutorial reads.
_LEFT_OUT = {"h5netcdf", "h5py", "jupyterlab-widgets", "numba", "setuptools", "widgetsnbextension"}


class Pin(str):
    """A package with its version and hash, as a line of a requirements file."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Name of the package, in its canonical form."""
        return _canonical(self.partition("==")[0])

    @property
    def version(self) -> str:
        """Version."""
        return (self.partition("==")[2].split() or [""])[0]

    @property
    def sha256(self) -> str:
        """Hash of the wheel."""
        return self.rpartition("sha256:")[2].strip()


def read_pins(path: Path = PINS) -> list[Pin]:
    """Read the packages of the site."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [Pin(line) for line in lines if line and not line.startswith("#")]


def fetch(pins: Sequence[Pin], cache: Path) -> dict[str, Path]:
    """Get wheels from the cache, and missing ones from the package index; return them by package.

    A wheel with another hash than its pin is refused.
    """
    cache.mkdir(parents=True, exist_ok=True)
    missing = [pin for pin in pins if pin.sha256 not in _by_hash(cache)]
    if missing:
        print(f"Getting {len(missing)} packages for the browser into {cache}", flush=True)
        with TemporaryDirectory() as folder:
            requirements = Path(folder, "requirements.txt")
            requirements.write_text("\n".join(missing), encoding="utf-8")
            # Pure wheels for any Python; the carrier does not allow the newest.
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            command += ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--implementation=py"]
            command += ["--abi=none", "--platform=any", "--require-hashes"]
            command += [f"--requirement={requirements}", f"--dest={cache}"]
            result = subprocess.run(command, check=False)
    found = _by_hash(cache)
    lost = [pin.name for pin in pins if pin.sha256 not in found]
    if lost:
        reason = f"pip ended with code {result.returncode}" if missing else "the cache changed meanwhile"
        raise SystemExit(
            f"Could not get {', '.join(lost)} from the package index ({reason}).\n"
            f"Downloaded packages are kept in {cache}; try again with a network connection."
        )
    return {pin.name: found[pin.sha256] for pin in pins}


def _by_hash(cache: Path) -> dict[str, Path]:
    return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in cache.glob("*.whl")}


def write_runtime(
    folder: Path, wheels: Mapping[str, Path], additional: Iterable[Path], wanted: Iterable[str]
) -> list[str]:
    """Write Pyodide and the wanted packages with all that these need into a folder; return their names.

    `wheels` are those of `fetch`, `additional` ones come from elsewhere: our own, and those of the kernel.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pure = [*(path for name, path in wheels.items() if name != _CARRIER), *additional]
    listed = {entry["name"]: entry for entry in map(_entry, pure)}
    with zipfile.ZipFile(wheels[_CARRIER]) as carrier:
        for name in _RUNTIME:
            (folder / name).write_bytes(carrier.read(_CARRIED + name))
        lock = json.loads(carrier.read(_CARRIED + _LOCK))
        entries = _carried_packages(carrier, lock["packages"]) | listed  # what we list is newer
        chosen = _closure(entries, wanted)
        for entry in (entries[name] for name in chosen - listed.keys()):
            content = carrier.read(_CARRIED + entry["file_name"])
            if hashlib.sha256(content).hexdigest() != entry["sha256"]:
                raise SystemExit(f"{entry['file_name']} does not have the hash of Pyodide's lock file")
            (folder / entry["file_name"]).write_bytes(content)
    for path in pure:
        if _canonical(path.name.partition("-")[0]) in chosen:
            (folder / path.name).write_bytes(path.read_bytes())
    for name in chosen:  # without the dependencies that are left out
        entries[name] = entries[name] | {
            "depends": [one for one in entries[name]["depends"] if one in chosen]
        }
    lock["packages"] = {name: entries[name] for name in sorted(chosen)}
    (folder / _LOCK).write_text(json.dumps(lock), encoding="utf-8")
    return sorted(chosen)


def _carried_packages(carrier: zipfile.ZipFile, packages: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Entries of the lock whose files are in the carrier; the lock lists all of Pyodide's packages."""
    present = set(carrier.namelist())
    entries = {}
    for name, entry in packages.items():
        if _CARRIED + entry["file_name"] in present:
            depends = [_canonical(other) for other in entry["depends"]]
            entries[_canonical(name)] = {**entry, "name": _canonical(name), "depends": depends}
    return entries


def _closure(entries: Mapping[str, Mapping[str, Any]], wanted: Iterable[str]) -> set[str]:
    """Names of the wanted packages and their dependencies."""
    chosen: set[str] = set()
    waiting = [(name, "the site") for name in wanted]
    while waiting:
        name, asked_by = waiting.pop()
        if name in chosen or name in _LEFT_OUT:
            continue
        if name not in entries:
            raise SystemExit(f"{asked_by} needs {name}, which {PINS.name} does not list")
        chosen.add(name)
        waiting += [(other, name) for other in entries[name]["depends"]]
    return chosen


# The platform for which conditions of requirements are evaluated.
_BROWSER = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "platform_system": "Emscripten",
    "python_full_version": "3.14.0",
    "python_version": "3.14",
    "sys_platform": "emscripten",
}


def _entry(wheel: Path) -> dict[str, Any]:
    """Entry of Pyodide's lock for a wheel of pure Python."""
    content = wheel.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        (path,) = (name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        metadata = email.parser.BytesParser().parsebytes(archive.read(path), headersonly=True)
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    needed = [one.name for one in requirements if one.marker is None or one.marker.evaluate(_BROWSER)]
    return {
        "name": _canonical(metadata["Name"]),
        "version": metadata["Version"],
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": hashlib.sha256(content).hexdigest(),
        "package_type": "package",
        "imports": sorted(wheel_names(names)),
        "depends": sorted({_canonical(name) for name in needed}),
        "unvendored_tests": False,
    }


def wheel_names(files: Iterable[str]) -> set[str]:
    """Names that can be imported from a wheel with these files."""
    roots = {name.partition("/") for name in files}
    folders = {root for root, slash, _ in roots if slash and not root.endswith((".dist-info", ".data"))}
    modules = {root.removesuffix(".py") for root, slash, _ in roots if not slash and root.endswith(".py")}
    return folders | modules


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
