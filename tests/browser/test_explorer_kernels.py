"""The Explorer on versions of ipykernel that treat messages and event loop differently.

They are installed beside the environment and not in it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser.explorer_page import assert_plays
from browser.opened import RECORDED, Desk, do_without, explorer_code, opened_explorer

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
        do_without(f"ipykernel {version} cannot be installed: {done.stderr.strip()[-300:]}")


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


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["6.31", "7.3", "7.4"])
def test_the_explorer_plays(version: str, desk: Desk, repository: Path) -> None:
    folder, name = repository / "artefacts" / f"ipykernel-{version}", f"ipykernel-{version}"
    install_ipykernel(version, folder)
    add_kernelspec(desk.server.private / "data", name, folder)
    code = explorer_code("ew.datasets.wine(), iterations=200_000")
    with opened_explorer(desk, code, kernel=name) as explorer:
        found = explorer.value("__import__('ipykernel').__version__")
        assert str(found).startswith(f"{version}.")
        explorer.press("step")
        explorer.wait_for_iteration(1)
        assert explorer.value(RECORDED) == (1, 1)
        explorer.press("reset")
        explorer.wait_for_iteration(0, or_later=False)
        explorer.wait_until_still()
        assert_plays(explorer)
