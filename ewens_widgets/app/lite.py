"""``ewens-widgets lite``: a site on which tutorials and labs run in the visitor's browser.

Any server of files will do. The site holds JupyterLite with Python for the browser (Pyodide), the tutorials,
this package as a wheel, a start page, and a page without code for each lab. By default a page loads Pyodide
and packages from the web when it is opened; a site built with ``--offline`` has everything in its folder
(`pyodide`).
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode

from ewens_widgets.app import pyodide
from ewens_widgets.app.command_line import StartError, need_package, port, shipped_tutorials
from ewens_widgets.app.site_server import serve
from ewens_widgets.files import cache_directory

_PACKAGE = "ewens-widgets"
_TEMPLATES = Path(__file__).parent / "site"
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


def add_lite(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    lite = add_parser(
        "lite",
        help="build a site that runs in the browser, without a server",
        description="Build a site on which the tutorials and labs run in the visitor's browser: a folder of "
        "files for any web server. Python and packages are loaded from the web when a page is opened, or, "
        "with --offline, from the folder itself.",
    )
    lite.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the site; an earlier site in it is replaced",
    )
    lite.add_argument(
        "--offline",
        action="store_true",
        help="put everything into the folder; gets about 120 MB from the package index, once",
    )
    lite.add_argument(
        "--cache",
        type=Path,
        default=cache_directory() / "lite",
        metavar="DIR",
        help="where --offline keeps what it got (default: %(default)s)",
    )
    lite.add_argument(
        "--interpreted",
        action="store_true",
        help="leave out the compiled chains: needs no linker, but chains are a hundred times slower",
    )
    lite.add_argument("--serve", action="store_true", help="then serve it on this computer, and open it")
    lite.add_argument("--port", type=port, default=8000, help="port on localhost (default: %(default)s)")
    lite.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    cache = options.cache if options.offline else None
    site = build_site(options.output, cache, interpreted=options.interpreted)
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(f"{site}: {size:.0f} MB")
    if options.serve:
        return serve(site, options.port)
    print(f"To see it:  {Path(sys.executable).name} {site / 'serve.py'}")
    return 0


def build_site(output: Path, cache: Path | None = None, interpreted: bool = False) -> Path:
    """Build the site in a folder that is empty, missing, or holds an earlier site; return the folder.

    With a `cache`, a folder for downloaded packages, the site works without the web. An `interpreted` site
    has no compiled chains.
    """
    for name in ("jupyterlite_core", "jupyterlite_pyodide_kernel", "jupyter_server", "nbformat"):
        need_package(name, "JupyterLite", extra="lite")
    output = _empty(output)
    module = None
    if not interpreted:
        title = "The linker for WebAssembly (which --interpreted does without)"
        need_package("ziglang", title, extra="lite")
        module = pyodide.browser_module((cache or cache_directory() / "lite").expanduser())
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "pypi").mkdir()  # wheels in there are offered to %pip on the site
        wheel = package_wheel(folder / "pypi", module)
        settings: dict[str, object] = {}
        if cache is not None:
            settings = _write_offline(folder, wheel, cache)
        install = None if cache is not None else _install_line()
        titles = copy_notebooks(shipped_tutorials(), folder / "files", install)
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
    _write_pages(output, titles, install)
    return output


def _empty(output: Path) -> Path:
    """Empty the folder of a site; raise an error if it holds other files."""
    output = output.expanduser().resolve()
    is_site = (output / "jupyter-lite.json").is_file()
    if output.exists() and not (output.is_dir() and (is_site or not any(output.iterdir()))):
        raise StartError(f"{output} holds files that are not a site. Choose another folder:  --output DIR")
    try:
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
    except OSError as error:
        raise StartError(f"Cannot write to {output}: {error.strerror}.") from error
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
    result = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)  # noqa: S603 - this interpreter
    if result.returncode:
        said = f"{result.stdout[-2000:]}{result.stderr[-2000:]}"
        raise StartError(f"JupyterLite could not build the site:\n{said}")


def _extension(name: str) -> Path:
    folder = Path(sys.prefix, "share", "jupyter", "labextensions", name)
    if not folder.is_dir():
        raise StartError(
            f"{folder} is missing, the JavaScript of {name}. Install ewens-widgets[lite] into an environment "
            "of its own, and build the site from there."
        )
    return folder


def package_wheel(folder: Path, module: bytes | None = None) -> Path:
    """Make a wheel of this package as it is installed, or as it is in the checkout.

    Building it again would need the sources and a build tool; all that a wheel of pure Python has besides the
    files of the package is what the installation knows about it. The tutorials are left out: they are on the
    site. `module` has the compiled loops as WebAssembly; without it chains are interpreted.
    """
    from ewens_widgets.app.webassembly import MODULE

    distribution = importlib.metadata.distribution(_PACKAGE)
    package = Path(__file__).resolve().parent.parent
    files = {
        f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file()
        and not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)
        and path.relative_to(package).parts[0] != "notebooks"
    }
    foreign = [name for name in files if Path(name).suffix in (".so", ".pyd", ".dylib")]
    if foreign:
        raise StartError(f"{foreign[0]} is machine code: a browser could not run this package")
    if module is not None:
        files[f"{package.name}/{MODULE.relative_to(package).as_posix()}"] = module
        # The sampler finds the loops through this module, which only this wheel has.
        hook = MODULE.with_name("browser_loops.py").relative_to(package).as_posix()
        files[f"{package.name}/{hook}"] = b"from ewens_widgets.app.webassembly import loaded\n"
    stem = f"{package.name}-{distribution.version}"
    files[f"{stem}.dist-info/METADATA"] = (distribution.read_text("METADATA") or "").encode()
    files[f"{stem}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: ewens-widgets\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{record},,", ""]
    for name, content in reversed(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.insert(0, f"{name},sha256={digest},{len(content)}")
    files[record] = "\n".join(lines).encode()
    wheel = folder / f"{stem}-py3-none-any.whl"
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
    return f"%pip install -q {_PACKAGE} {exact} {quiet}"


def _write_offline(folder: Path, wheel: Path, cache: Path) -> dict[str, object]:
    """Put Pyodide and packages beside the site; return the settings of the kernel."""
    pins = pyodide.read_pins()
    _check_versions({pin.name: pin.version for pin in pins})
    wheels = pyodide.fetch(pins, cache.expanduser())
    kernel = sorted((_extension("@jupyterlite/pyodide-kernel-extension") / "static" / "pypi").glob("*.whl"))
    # Of two stand-ins with the same name the later version is the one for ipywidgets 8.
    additional = [wheel, *{path.name.partition("-")[0]: path for path in kernel}.values()]
    target = folder / "static" / "pyodide"
    names = pyodide.write_runtime(
        target, wheels, additional, [*_KERNEL_PACKAGES, _PACKAGE, "pandas", *_ON_DEMAND]
    )
    first = [*_KERNEL_PACKAGES, _PACKAGE, "pandas"]
    print(f"{len(names)} packages for the browser")
    return {"disablePyPIFallback": True, "loadPyodideOptions": {"packages": first}}


def _check_versions(pinned: Mapping[str, str]) -> None:
    """Raise an error if JavaScript and Python of a package on the site have different versions."""
    for name in widget_packages():
        if importlib.metadata.version(name) != pinned[name]:
            raise StartError(
                f"This environment has {name} {importlib.metadata.version(name)}; an offline site needs "
                f"{pinned[name]}. Install that:  python -m pip install {name}=={pinned[name]}"
            )


def copy_notebooks(source: Path, target: Path, install: str | None) -> dict[str, str]:
    """Copy the notebooks for the site, and return their titles by their names.

    `install` is the line that installs the package, for a cell below each title, where that is needed.
    """
    import nbformat

    target.mkdir(parents=True)
    titles = {}
    for path in sorted(source.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        titles[path.name] = notebook.cells[0].source.partition("\n")[0].lstrip("# ")
        if install is not None:
            code = f"# Only in the browser: install the package. It takes a minute.\n{install}"
            notebook.cells.insert(1, nbformat.v4.new_code_cell(code, id="install-package"))
        notebook.metadata.kernelspec = _KERNEL
        nbformat.write(notebook, target / path.name)
    return titles


def _write_pages(output: Path, titles: Mapping[str, str], install: str | None) -> None:
    """Write the start page, a page for each lab, and the server for the folder."""
    page = (_TEMPLATES / "lab.html").read_text(encoding="utf-8")
    for lab in LABS:
        preset = f"ew.Explorer.from_preset('STATE', {_FIRST_DATA})" if lab.name == "explorer" else ""
        text = _filled(
            page,
            title=lab.title,
            question=lab.question,
            address=_lab_address(lab.code, install),
            preset=_lab_address(preset, install) if preset else "",
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
    index = (_TEMPLATES / "index.html").read_text(encoding="utf-8")
    index = index.replace("<!-- labs -->", labs).replace("<!-- tutorials -->", tutorials)
    (output / "index.html").write_text(index, encoding="utf-8")
    picture = _TEMPLATES / "explorer.gif"  # in the package, or in the documents of a checkout
    picture = picture if picture.is_file() else _TEMPLATES.parents[2] / "docs" / "explorer.gif"
    shutil.copyfile(picture, output / "explorer.gif")
    shutil.copyfile(Path(__file__).with_name("site_server.py"), output / "serve.py")


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
