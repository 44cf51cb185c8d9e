"""What the wheel and the source archive hold, and that the wheel works where there is no checkout."""

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow

PACKAGED = {
    "ewens_widgets/py.typed",
    "ewens_widgets/partition.py",
    "ewens_widgets/data/leukemia.npz",
    "ewens_widgets/notebooks/01_quickstart.ipynb",
    "ewens_widgets/app/page/index.html.j2",
    "ewens_widgets/app/page/503.html",
    "ewens_widgets/app/site/index.html",
    "ewens_widgets/app/site/packages.txt",
}


def build(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", repository, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked_source(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = build("sdist", repository, tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_is_complete_and_clean(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = names_in(wheel)
    assert names >= PACKAGED
    assert not [name for name in names if re.search(r"^tests|__pycache__|\.ipynb_checkpoints", name)]
    # In a browser numba is not asked for.
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    (numba,) = (requirement for requirement in requirements if requirement.name == "numba")
    assert numba.marker is not None
    assert not numba.marker.evaluate({"sys_platform": "emscripten"})
    assert numba.marker.evaluate({"sys_platform": "linux"})


def test_a_wheel_from_the_source_archive_is_the_same(
    wheel: Path, unpacked_source: Path, tmp_path: Path
) -> None:
    assert (unpacked_source / "Makefile").is_file()
    assert (unpacked_source / "LICENSE").is_file()
    assert names_in(build("wheel", unpacked_source, tmp_path)) == names_in(wheel)


def test_the_wheel_works_without_a_checkout(wheel: Path, tmp_path: Path) -> None:
    site, course = tmp_path / "site", tmp_path / "course"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # noqa: S202 — our own archive
    code = f"""
import ewens_widgets as ew
from pathlib import Path
from ewens_widgets import app
assert Path(ew.__file__).is_relative_to({str(site)!r}), ew.__file__
assert ew.datasets.leukemia(n_components=20).X.shape == (38, 20)
assert app.copy_tutorials(app.shipped_tutorials(), Path({str(course)!r})) >= 1
"""
    environment = os.environ | {"PYTHONPATH": str(site)}
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (course / "01_quickstart.ipynb").is_file()
