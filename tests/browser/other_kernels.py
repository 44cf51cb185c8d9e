"""Kernels with another version of ipykernel than the environment's, beside it and not in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# What a version needs that the environment's own does not; all else is there already.
EXTRA_REQUIREMENTS = {"6.31": ["nest-asyncio"]}

INSTALL_SECONDS = 300


def install_ipykernel(version: str, folder: Path) -> None:
    """Install the newest patch of a version into a folder, unless it is there; without a network, skip."""
    if list(folder.glob(f"ipykernel-{version}.*.dist-info")):
        return
    requirements = [f"ipykernel=={version}.*", *EXTRA_REQUIREMENTS.get(version, [])]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    done = subprocess.run(
        [*command, *requirements], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode != 0:
        message = f"ipykernel {version} cannot be installed: {done.stderr.strip()[-300:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)


def add_kernelspec(data: Path, name: str, folder: Path) -> None:
    """Offer a kernel that imports from a folder first to the server with this data directory."""
    path = data / "kernels" / name / "kernel.json"
    path.parent.mkdir(parents=True)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    specification = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": name,
        "language": "python",
        "env": {"PYTHONPATH": os.pathsep.join(paths)},
    }
    path.write_text(json.dumps(specification))
