"""How Sphinx builds these pages (`make docs`).

The reference lists whatever the package calls public, so that a new name appears by itself. A reference to a
name of ours that leads nowhere is an error. Names of other packages are not looked up: that needs a network.
"""

import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from public_names import Reference  # noqa: E402 - beside this file
from tutorial_pages import write_tutorials  # noqa: E402 - the same

from ewens_widgets import __version__  # noqa: E402 - after the path, with the others

REFERENCE = Reference()
REFERENCE.write(HERE / "reference")
write_tutorials(HERE.parent / "notebooks", HERE / "notebooks")

project = "ewens_widgets"
author = "the ewens_widgets developers"
version = release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
templates_path = ["templates"]

URLS = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
html_theme = "pydata_sphinx_theme"
html_title = f"ewens_widgets {release}"
html_baseurl = URLS["Documentation"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "external_links": [{"name": "Try it", "url": URLS["Try it"]}],
    "icon_links": [{"name": "Source", "url": URLS["Source"], "icon": "fa-brands fa-github"}],
}
# Formulas need no other site: MathJax comes with a package. It is one file, with its letters as outlines.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
html_static_path = ["explorer.png", "site.css", str(MATHJAX)]
mathjax_path = MATHJAX.name
html_css_files = ["site.css"]
html_sidebars = {"notebooks/gallery": []}  # it has no pages below it
html_show_sourcelink = False
html_context = {"site": html_baseurl, "default_mode": "auto"}
nb_execution_mode = "off"  # the outputs are stored; `make notebooks` runs and compares them

default_role = "py:obj"
maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"  # the column beside a page is narrow
python_use_unqualified_type_names = True
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False  # the template of classes lists them

nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!ewens_widgets\b).*"),
    (r"py:class", r"ewens_widgets\..*\.(FrameT\w*|StatusT|_Kind)"),  # variables for types have no page
]


# What NumPy's long names for types mean.
UNFOLDED = {
    re.compile(
        r"numpy\._typing\S*_Buffer \| numpy\._typing\S*_SupportsArray\[numpy\.dtype\[Any\]\] "
        r"\| numpy\._typing\S*_NestedSequence\[numpy\._typing\S*_SupportsArray\[numpy\.dtype\[Any\]\]\] "
        r"\| complex \| bytes(?: \| str)? \| numpy\._typing\S*_NestedSequence\[complex \| bytes \| str\]"
    ): "ArrayLike",
    re.compile(r"numpy\.ndarray\[tuple\[Any, \.\.\.\], numpy\.dtype\[([\w.]+)\]\]"): r"NDArray[\1]",
}


def fold(*arguments: Any) -> tuple[str | None, str | None]:  # noqa: ANN401 - as Sphinx calls it
    """Write NumPy's types by their names in a signature."""
    texts = list(arguments[-2:])
    for pattern, name in UNFOLDED.items():
        texts = [
            text and pattern.sub(name, text.replace("~", "").replace("typing.Any", "Any")) for text in texts
        ]
    return texts[0], texts[1]


def lead_to_pages(_app: Any, _name: str, text: list[str]) -> None:  # noqa: ANN401 - as Sphinx calls it
    """Lead from the documents to the pages that are made of notebooks."""
    text[0] = text[0].replace("(../notebooks/", "(notebooks/")


def write_sitemap(app: Any, fault: Exception | None) -> None:  # noqa: ANN401 - as Sphinx calls it
    """Tell search engines which pages there are."""
    if fault is None and app.builder.name == "html":
        addresses = (urljoin(html_baseurl, app.builder.get_target_uri(page)) for page in app.env.found_docs)
        lines = "".join(f"<url><loc>{address}</loc></url>\n" for address in sorted(addresses))
        text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{lines}</urlset>\n'
        (Path(app.outdir) / "sitemap.xml").write_text(text, encoding="utf-8")


def setup(app: Any) -> None:  # noqa: ANN401 - Sphinx's own class, which need not be imported for this
    """Connect what is ours: where names are documented, how signatures look, what else is on the site."""
    app.connect("missing-reference", REFERENCE.resolve)
    app.connect("autodoc-process-signature", fold)
    app.connect("source-read", lead_to_pages)
    app.connect("build-finished", write_sitemap)
