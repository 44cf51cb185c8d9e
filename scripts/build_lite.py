#!/usr/bin/env python3
"""Build the site on which the tutorials run in the browser itself, without a server (JupyterLite).

    scripts/build_lite.py artefacts/lite

The wheel is put on the site, and each notebook gets a first cell that installs it. Needs the extra `lite`.
The build needs no network; the pages load Python for the browser (Pyodide) and other packages from the web.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

REPOSITORY = Path(__file__).resolve().parent.parent
INSTALL = (
    "# Only in the browser: install the package that lies on this site. It takes a minute.\n"
    "%pip install -q ewens-widgets"
)
# The kernel of JupyterLite; another name would make the page ask which one to use.
KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}


def build_wheel(folder: Path) -> Path:
    """Build the wheel; it must be pure Python, as there is nothing else to compile it with in a browser."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    (wheel,) = folder.glob("*.whl")
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise SystemExit(f"{wheel.name} is not pure Python: JupyterLite could not install it")
    return wheel


def copy_notebooks(source: Path, target: Path) -> int:
    """Copy the notebooks with the cell that installs the package; return how many there are."""
    target.mkdir(parents=True)
    paths = sorted(source.glob("*.ipynb"))
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        # Below the title, where one expects it.
        notebook.cells.insert(1, nbformat.v4.new_code_cell(INSTALL, id="install-package"))
        notebook.metadata.kernelspec = KERNEL
        nbformat.write(notebook, target / path.name)
    return len(paths)


def build_site(output: Path) -> None:
    """Build wheel, notebooks and site."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "pypi").mkdir()  # wheels in there are offered to %pip on the site
        wheel = build_wheel(folder / "pypi")
        count = copy_notebooks(REPOSITORY / "notebooks", folder / "files")
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(folder)]
        command += ["--output-dir", str(output.resolve()), "--contents", str(folder / "files")]
        subprocess.run(command, check=True, cwd=folder)
    print(f"{output}: {count} notebooks and {wheel.name}")
    print(f"To see it:  {Path(sys.executable).name} -m http.server --directory {output}")


def main() -> None:
    """Read the arguments and build."""
    parser = argparse.ArgumentParser(description="Build the site that runs without a server.")
    parser.add_argument("output", type=Path, help="folder for the site; what is in it is deleted")
    build_site(parser.parse_args().output)


if __name__ == "__main__":
    main()
