"""The site on which tutorials and labs run in the visitor's browser: ``make lite``, ``make lite OFFLINE=1``.

Any server of files will do. The site holds JupyterLite with Python for the browser (Pyodide), the tutorials,
this package as a wheel, a start page, and a page without code for each lab. By default a page loads Pyodide
and packages from the web when it is opened; a site built with ``--offline`` has everything in its folder
(`pyodide`). This folder is no part of the installed package: it builds the site from the sources.
"""

import argparse
import base64
import hashlib
import html
import importlib.metadata
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode

import nbformat

from browser_site import pyodide
from browser_site.webassembly import browser_module
from ewens_widgets.files import cache_directory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# Where downloaded packages and compiled chains are kept.
CACHE = cache_directory() / "lite"

_KERNEL_SETTINGS = "@jupyterlite/pyodide-kernel-extension:kernel"
# The kernel of JupyterLite; with another name the page would ask which one to use.
_KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
_APPS = ("lab", "notebooks", "repl")

# JavaScript of the widgets and of the kernel, and the packages whose version has to match. Other extensions
# in the environment are left out, because they would take time to load.
EXTENSIONS = {
    "@jupyter-widgets/jupyterlab-manager": "ipywidgets",
    "@jupyterlite/pyodide-kernel-extension": None,
    "anywidget": "anywidget",
    "bqplot": "bqplot",
    "bqscales": "bqscales",
}

# Loaded before the first cell is run.
_KERNEL_PACKAGES = ("micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython")
# Loaded when a cell imports them.
_ON_DEMAND = ("arviz", "xarray", "xarray-einstats", "platformdirs")


@dataclass(frozen=True)
class Lab:
    """A widget on a page of its own."""

    name: str
    title: str
    question: str
    code: str


_FIRST_DATA = "ew.datasets.unit_square(seed=0)"

# With these seeds the chains find the four corners within some dozens of iterations; with others it may take
# hundreds, and a player begins slowly.
LABS = (
    Lab(
        "explorer",
        "Explorer",
        "Watch a chain find clusters: in one of our data sets, or in a table of your own.",
        "ew.Explorer(ew.datasets.unit_square(seed=0), seed=15)",
    ),
    Lab(
        "prior",
        "PriorLab",
        "Seat guests in a restaurant: which partitions are probable before any data?",
        "ew.PriorLab(concentration=2.0, n=40)",
    ),
    Lab(
        "affine",
        "AffineLab",
        "Rotate, stretch and shear the data: which models are invariant?",
        "ew.AffineLab(ew.datasets.unit_square(seed=0), draws=60, burn_in=40, seed=4)",
    ),
    Lab(
        "moves",
        "MoveInspector",
        "One proposal in slow motion: why was it accepted?",
        "ew.MoveInspector(ew.datasets.unit_square(seed=0), model='I')",
    ),
    Lab(
        "chains",
        "ChainsView",
        "Chains from different starts: when do they agree?",
        "ew.ChainsView(ew.datasets.unit_square(seed=0), model='II')",
    ),
)


def main() -> None:
    """Build the site that the command line asks for."""
    parser = argparse.ArgumentParser(description="Build the site that runs in the browser.")
    parser.add_argument("output", type=Path, help="folder for the site; an earlier site in it is replaced")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="put Python and packages into the folder; gets about 120 MB from the package index, once",
    )
    options = parser.parse_args()
    site = build_site(options.output, offline=options.offline)
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(f"{site}: {size:.0f} MB")


def build_site(output: Path, offline: bool = False) -> Path:
    """Build the site in a folder that is empty, missing, or holds an earlier site; return the folder.

    An `offline` site works without the web.
    """
    output = _empty(output)
    module = browser_module(CACHE)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "pypi").mkdir()  # wheels in there are offered to %pip on the site
        wheel = package_wheel(folder / "pypi", module)
        settings = _write_offline(folder, wheel) if offline else {}
        install = None if offline else _install_line()
        titles = copy_notebooks(folder / "files", install)
        _write_json(
            folder / "jupyter-lite.json",
            {
                "jupyter-lite-schema-version": 0,
                "jupyter-config-data": {
                    "appName": "ewens_widgets",
                    "litePluginSettings": {_KERNEL_SETTINGS: settings},
                },
            },
        )
        _run_jupyterlite(folder, output)
    write_pages(output, titles, install)
    return output


def _empty(output: Path) -> Path:
    """Empty the folder of a site; raise an error if it holds other files."""
    output = output.resolve()
    is_site = (output / "jupyter-lite.json").is_file()
    if output.exists() and not (is_site or not any(output.iterdir())):
        raise SystemExit(f"{output} holds files that are not a site; choose another folder")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    return output


def _run_jupyterlite(folder: Path, output: Path) -> None:
    options = {
        "apps": _APPS,
        "contents": ["files"],
        "federated_extensions": [str(_extension(name)) for name in EXTENSIONS],
        "ignore_sys_prefix": ["federated_extensions"],
        "lite_dir": str(folder),
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
        "output_dir": str(output),
    }
    _write_json(folder / "jupyter_lite_config.json", {"LiteBuildConfig": options})
    command = [sys.executable, "-m", "jupyterlite_core", "build"]
    result = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(
            f"JupyterLite could not build the site:\n{result.stdout[-2000:]}{result.stderr[-2000:]}"
        )


def _extension(name: str) -> Path:
    return Path(sys.prefix, "share", "jupyter", "labextensions", name)


def package_wheel(folder: Path, module: bytes) -> Path:
    """Make the wheel of this package for browsers.

    It has the chains as WebAssembly (`module`) and what calls them, and no tutorials: they are on the site.
    """
    with TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", temporary]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        (built,) = Path(temporary).iterdir()
        with zipfile.ZipFile(built) as archive:
            names = [name for name in archive.namelist() if "/notebooks/" not in name]
            files = {name: archive.read(name) for name in names}
    files["ewens_widgets/sampling/kernels.wasm"] = module
    # The sampler finds the loops through this module, which only this wheel has.
    files["ewens_widgets/sampling/browser_loops.py"] = (HERE / "browser_loops.py").read_bytes()
    (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
    del files[record]
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = folder / built.name
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            # Without a date, the same sources give the same wheel, and browsers can keep it.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return wheel


def widget_packages() -> list[str]:
    """Packages whose JavaScript is on the site; their Python has to be the same version."""
    return [name for name in EXTENSIONS.values() if name is not None]


def _install_line() -> str:
    """Line that installs the package in the browser, with the widgets whose JavaScript is on the site.

    A later threadpoolctl than Pyodide's is needed: that one warns at every use of scikit-learn.
    """
    exact = " ".join(f"{name}=={importlib.metadata.version(name)}" for name in widget_packages())
    quiet = next(f"{pin.name}=={pin.version}" for pin in pyodide.read_pins() if pin.name == "threadpoolctl")
    return f"%pip install -q ewens-widgets {exact} {quiet}"


def _write_offline(folder: Path, wheel: Path) -> dict[str, object]:
    """Put Pyodide and packages beside the site; return the settings of the kernel."""
    pins = pyodide.read_pins()
    _check_versions({pin.name: pin.version for pin in pins})
    wheels = pyodide.fetch(pins, CACHE)
    kernel = sorted((_extension("@jupyterlite/pyodide-kernel-extension") / "static" / "pypi").glob("*.whl"))
    # Of two stand-ins with the same name the later version is the one for ipywidgets 8.
    additional = [wheel, *{path.name.partition("-")[0]: path for path in kernel}.values()]
    first = [*_KERNEL_PACKAGES, "ewens-widgets", "pandas"]
    target = folder / "static" / "pyodide"
    names = pyodide.write_runtime(target, wheels, additional, [*first, *_ON_DEMAND])
    print(f"{len(names)} packages for the browser")
    return {"disablePyPIFallback": True, "loadPyodideOptions": {"packages": first}}


def _check_versions(pinned: Mapping[str, str]) -> None:
    """Raise an error if JavaScript and Python of a package on the site have different versions."""
    for name in widget_packages():
        if importlib.metadata.version(name) != pinned[name]:
            raise SystemExit(
                f"This environment has {name} {importlib.metadata.version(name)}; an offline site needs "
                f"{pinned[name]}. Install that:  python -m pip install {name}=={pinned[name]}"
            )


def copy_notebooks(target: Path, install: str | None) -> dict[str, str]:
    """Copy the notebooks for the site, and return their titles by their names.

    `install` is the line that installs the package, for a cell below each title, where that is needed.
    """
    target.mkdir(parents=True)
    titles = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        titles[path.name] = notebook.cells[0].source.partition("\n")[0].lstrip("# ")
        if install is not None:
            code = f"# Only in the browser: install the package. It takes a minute.\n{install}"
            notebook.cells.insert(1, nbformat.v4.new_code_cell(code, id="install-package"))
        notebook.metadata.kernelspec = _KERNEL
        nbformat.write(notebook, target / path.name)
    return titles


def write_pages(output: Path, titles: Mapping[str, str], install: str | None) -> None:
    """Write the start page, a page for each lab, and the server for the folder."""
    page = (HERE / "lab.html").read_text(encoding="utf-8")
    for lab in LABS:
        preset = f"ew.Explorer.from_preset('STATE', {_FIRST_DATA})" if lab.name == "explorer" else ""
        text = _filled(
            page,
            title=lab.title,
            question=lab.question,
            address=_lab_address(lab.code, install),
            preset=_lab_address(preset, install) if preset else "",
            picture="explorer.gif" if lab.name == "explorer" else "",
        )
        (output / f"{lab.name}.html").write_text(text, encoding="utf-8")
    labs = "\n".join(
        f'<dt><a href="{lab.name}.html">{html.escape(lab.title)}</a></dt><dd>{html.escape(lab.question)}</dd>'
        for lab in LABS
    )
    tutorials = "\n".join(
        f'<li><a href="notebooks/index.html?path={quote(name)}">{html.escape(title)}</a></li>'
        for name, title in titles.items()
    )
    index = (HERE / "index.html").read_text(encoding="utf-8")
    index = index.replace("<!-- labs -->", labs).replace("<!-- tutorials -->", tutorials)
    (output / "index.html").write_text(index, encoding="utf-8")
    shutil.copyfile(ROOT / "docs" / "explorer.gif", output / "explorer.gif")
    shutil.copyfile(HERE / "serve.py", output / "serve.py")


def _lab_address(code: str, install: str | None) -> str:
    # In a box, so that no static picture is drawn, which would take seconds: the page shows the live one.
    code = f"import ewens_widgets as ew, ipywidgets\nipywidgets.VBox(({code},))"
    lines = [*([install] if install else []), code]
    options = {"kernel": "python", "hideCodeInput": "1", "showBanner": "0", "code": "\n".join(lines)}
    return f"repl/index.html?{urlencode(options, quote_via=quote)}"


def _filled(template: str, **values: str) -> str:
    for name, value in values.items():
        template = template.replace(f"[[{name}]]", html.escape(value))
    return template


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
