"""The list of everything public, taken from the package itself, and where each name is documented."""

import ast
import inspect
import json
import sys
import types
import typing
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import ewens_widgets as ew

PACKAGE = ew.__name__

# Titles for the layers that the names come from, in the order of the page.
LAYERS = {
    "tables": "Tables",
    "model": "The model",
    "sampling": "Sampling",
    "analysis": "From draws to answers",
    "estimator": "scikit-learn",
    "views": "Widgets",
}
OTHERS = "Other names"
TUTORIALS = "What tutorials import besides"
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

# Modules whose docstrings hold the mathematics.
MATHEMATICS = [
    "model.priors.partition_prior",
    "model.priors.ewens",
    "model.priors.finite_mixture",
    "model.likelihood",
    "model.posterior",
    "sampling.moves.gibbs",
    "sampling.moves.informed",
    "paper.moves.reassign",
    "paper.moves.split_merge",
]


def _is_ours(value: Any) -> bool:  # noqa: ANN401 - a function or a class
    return value.__module__.startswith(f"{PACKAGE}.")


def _mentioned(annotation: Any) -> Iterator[type]:  # noqa: ANN401 - whatever is written there
    """Classes of ours in an annotation."""
    named = typing.get_origin(annotation) or annotation  # of a generic class, the class itself
    if isinstance(named, type) and _is_ours(named):
        yield named
    for part in typing.get_args(annotation):
        yield from _mentioned(part)


def _annotated(value: object) -> Iterator[object]:
    """A function, or a class with its public methods and properties."""
    yield value
    if isinstance(value, type):
        yield value.__init__
        for name, member in vars(value).items():
            if not name.startswith("_"):
                function = (
                    member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                )
                yield getattr(function, "py_func", function)  # what a compiled function was made from


@cache
def _names_for_types(module: str) -> dict[str, object]:
    """What a module imports for type checkers only."""
    found: dict[str, object] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    source = import_module(line.module)
                    found |= {name.asname or name.name: getattr(source, name.name) for name in line.names}
    return found


def _classes_beside(value: object) -> Iterator[type]:
    """Classes of ours that the signatures of something mention, and its bases."""
    if isinstance(value, type):
        yield from (base for base in value.__bases__ if _is_ours(base))
    for part in _annotated(value):
        if isinstance(part, types.FunctionType | type) and _is_ours(part):
            names = dict(vars(sys.modules[part.__module__]))
            for base in getattr(part, "__mro__", (part,)):  # annotations of a class are inherited
                names |= _names_for_types(base.__module__) if _is_ours(base) else {}
            for annotation in typing.get_type_hints(part, localns=names).values():
                yield from _mentioned(annotation)


def _imported_by_notebooks() -> Iterator[tuple[str, str]]:
    """Modules of ours and the names that a notebook imports from them."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for line in "".join(cell["source"]).splitlines() if cell["cell_type"] == "code" else ():
                if line.startswith(f"from {PACKAGE}."):
                    (statement,) = ast.parse(line).body
                    for name in statement.names:
                        yield statement.module, name.name


class Reference:
    """Names by title, and the address of each object that is documented."""

    def __init__(self) -> None:
        self.sections: dict[str, list[str]] = {title: [] for title in (*LAYERS.values(), OTHERS)}
        self.addresses: dict[str, str] = {}
        for name, module in ew._NAMES.items():  # noqa: SLF001 - the table of public names
            title = LAYERS.get(module.split(".", maxsplit=1)[0], OTHERS)
            self._add(title, name, getattr(ew, name))
        # The module of one prior after that of all: what both name is documented with the others of its kind.
        for name in sorted(ew._MODULES, key=lambda name: name == "ewens"):  # noqa: SLF001 - the same
            module = getattr(ew, name)
            # So that Sphinx can import it by its public name.
            sys.modules.setdefault(f"{PACKAGE}.{name}", module)
            for part in module.__all__:
                if callable(getattr(module, part)) and not self._has(getattr(module, part)):
                    self._add(f"`{PACKAGE}.{name}`", f"{name}.{part}", getattr(module, part))
        self._add_imported()
        self._add_mentioned()

    def _add_imported(self) -> None:
        """Add what notebooks import from where it is defined."""
        for module, name in _imported_by_notebooks():
            value = getattr(import_module(module), name)
            if f"{value.__module__}.{value.__qualname__}" not in self.addresses:
                inner = value.__module__.removeprefix(f"{PACKAGE}.")
                self._add(TUTORIALS, f"{inner}.{value.__qualname__}", value)

    def _has(self, value: Any) -> bool:  # noqa: ANN401 - anything public
        return f"{value.__module__}.{value.__qualname__}" in self.addresses

    def _add(self, title: str, name: str, value: Any) -> None:  # noqa: ANN401 - anything public
        self.sections.setdefault(title, []).append(name)
        self.addresses[f"{value.__module__}.{value.__qualname__}"] = f"{PACKAGE}.{name}"

    def _add_mentioned(self) -> None:
        """Add the classes that public names take or return, and those that these mention in turn."""
        waiting = [self._value(name) for names in self.sections.values() for name in names]
        while waiting:
            for found in _classes_beside(waiting.pop()):
                full = f"{found.__module__}.{found.__qualname__}"
                if full not in self.addresses and not found.__name__.startswith("_"):
                    self._add("What public names take and return", full.removeprefix(f"{PACKAGE}."), found)
                    waiting.append(found)

    def _value(self, name: str) -> object:
        value: object = ew
        for part in name.split("."):
            value = getattr(value, part)
        return value

    def write(self, folder: Path) -> None:
        """Write the pages that Sphinx fills in."""
        folder.mkdir(exist_ok=True)
        lines = ["Names", "=====", "", f"``import {PACKAGE} as ew``", ""]
        for title, names in self.sections.items():
            if names:
                lines += [title.replace("`", "``"), "-" * 60, "", f".. currentmodule:: {PACKAGE}", ""]
                lines += [".. autosummary::", "   :toctree:", "   :nosignatures:", ""]
                lines += [f"   {name}" for name in sorted(names, key=str.lower)] + [""]
        _replace(folder / "index.rst", lines)
        lines = ["The mathematics", "===============", ""]
        for name in MATHEMATICS:
            heading = name.rpartition(".")[2].replace("_", " ")
            lines += [
                heading.capitalize(),
                "-" * 60,
                "",
                f".. automodule:: {PACKAGE}.{name}",
                "   :no-members:",
                "",
            ]
        _replace(folder / "mathematics.rst", lines)

    def resolve(self, app: Any, environment: Any, node: Any, content: Any) -> Any:  # noqa: ANN401 - Sphinx's
        """Lead from where an object is defined to where it is documented."""
        address = self.addresses.get(node.get("reftarget", ""))
        if address is None or node.get("refdomain") != "py":
            return None
        domain = environment.get_domain("py")
        return domain.resolve_xref(environment, node["refdoc"], app.builder, "obj", address, node, content)


def _replace(path: Path, lines: list[str]) -> None:
    """Write a file unless it is the same already: Sphinx would read it again."""
    text = "\n".join(lines)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
