#!/usr/bin/env python3
"""Renew the packages of the site that runs in a browser: versions that the tests use, and their hashes.

    scripts/freeze_lite.py

Names are kept; versions are those of binder/constraints.txt, or as they were where it has none (the newest
where none is given). Needs the package index. Pyodide comes in the wheel of open-webui, whose version is
kept: give another one by hand, and see whether `make lite-test` passes.
"""

import hashlib
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from browser_site.pyodide import PINS, Pin, read_pins

CONSTRAINTS = Path(__file__).resolve().parent.parent / "binder" / "constraints.txt"


def renewed(pin: Pin, versions: dict[str, str]) -> str:
    """The line of a package, with the hash of the wheel that the index has."""
    version = versions.get(pin.name, pin.version)
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version=3.12", "--implementation=py", "--abi=none", "--platform=any"]
        command += [f"--dest={folder}", f"{pin.name}=={version}" if version else pin.name]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return f"{pin.name}=={wheel.name.split('-')[1]} --hash=sha256:{sha256}"


def main() -> None:
    """Write the file again, with its opening comment."""
    versions = dict(
        line.split("==") for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")
    )
    text = PINS.read_text(encoding="utf-8").splitlines()
    comment = [line for line in text if line.startswith("#")]
    pins = sorted(renewed(pin, versions) for pin in read_pins())
    PINS.write_text("\n".join([*comment, *pins]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
