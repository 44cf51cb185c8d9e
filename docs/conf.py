"""How Sphinx builds these pages (`make docs`).

The reference lists whatever the package calls public, so that a new name appears by itself. A reference to a
name of ours that leads nowhere is an error. Names of other packages are not looked up: that needs a network.
"""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from public_names import Reference  # noqa: E402 - beside this file

from ewens_widgets import __version__  # noqa: E402 - after the path, with the other

REFERENCE = Reference()
REFERENCE.write(HERE / "reference")

project = "ewens_widgets"
author = "the ewens_widgets developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
templates_path = ["templates"]

html_theme = "pydata_sphinx_theme"
html_title = f"ewens_widgets {release}"
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2}
html_show_sourcelink = False

default_role = "py:obj"
maximum_signature_line_length = 90
python_use_unqualified_type_names = True
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
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


def setup(app: Any) -> None:  # noqa: ANN401 - Sphinx's own class, which need not be imported for this
    """Connect what is ours: where a name is documented, and how signatures look."""
    app.connect("missing-reference", REFERENCE.resolve)
    app.connect("autodoc-process-signature", fold)
