"""Choosing data: one of the built-in data sets, or a file.

The browser reads a file and sends its bytes; a file that is too large is not sent. Tables are parsed without
running anything (see `tables`). The role of each column is shown with a choice, which can be changed before
the data are used (where the reader has to ask) and afterwards. Data that cannot be used are explained next to
the chooser. Everything that a table contains is shown as text.
"""

import re
import warnings
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
from ipywidgets import HTML, Dropdown, VBox, Widget
from traitlets import Int, Unicode

from ewens_widgets.datasets import LOADERS, ColumnSummary, Dataset, TableSummary
from ewens_widgets.tables import LARGEST_FILE, DataWarning, TableError, read_table
from ewens_widgets.views.base import Post, Silence, assign, button, look, make, note, show_if
from ewens_widgets.views.fields import Field

_MOST_CONTROLS = 60
_ROLES = {
    "feature": "feature",
    "category": "feature: category",
    "two-part": "feature: zero or more",
    "names": "row names",
    "classes": "known classes",
    "left out": "leave out",
}
_KINDS = ("category", "two-part")
_UNDECIDED = "please choose"
_MISSING = "keep"


class _Table(NamedTuple):
    """A table that can be read again."""

    source: Any
    name: str
    options: dict[str, Any]


class DataPanel(VBox):
    """Chooser of data sets, upload, and a description.

    Parameters
    ----------
    given
        The data set shown at first.
    post
        Brings a command to the event loop.
    on_data
        Called with a data set that was chosen or uploaded; raises `ValueError` if it cannot be used.
    table
        What the data set was read from, if its columns can be chosen again: a DataFrame, or bytes.
    """

    def __init__(
        self,
        given: Dataset,
        post: Post,
        on_data: Callable[[Dataset], None],
        table: Any = None,  # noqa: ANN401 - what `read_table` takes
    ) -> None:
        self._on_data = on_data
        self._extra: dict[str, Dataset] = {given.name: given}
        self._tables: dict[str, _Table] = {} if table is None else {given.name: _Table(table, given.name, {})}
        self._table: _Table | None = None  # what the columns on show belong to
        self._silence = Silence()
        self.chooser = make(Dropdown, description="data", tooltip="Data set to cluster")
        self.field = Field(self.chooser, str, "ew-data")
        self.upload = Upload(
            "Upload a CSV file",
            "ew-upload",
            hint="One object per row. Features, names and known classes are recognised; change them below",
            accept=".csv,.tsv,.txt",
            on_file=lambda name, content: post(lambda: self._try_table(_Table(content, name, {}))),
            on_too_large=lambda name, size: post(lambda: self._refuse(name, size)),
        )
        self.about = note("ew-about")
        self.columns = ColumnsPanel(lambda: post(self._read_again))
        super().__init__((self.field, self.upload, self.about, self.columns), **look())
        self.show(given)
        self._silence.commands(post, {self.chooser: self._choose})

    def show(self, dataset: Dataset) -> None:
        """Show a data set as the chosen one, without a call of `on_data`."""
        name = next((name for name, data in self._extra.items() if data is dataset), dataset.name)
        self._extra[name] = dataset
        names = [*self._extra, *(other for other in LOADERS if other not in self._extra)]
        with self._silence:
            assign(self.chooser, options=names, value=name)
        classes = "" if dataset.labels is None else f", {len(set(dataset.labels.tolist()))} known classes"
        shape = f"{dataset.counted(dataset.n_objects)} × {dataset.n_features} features{classes}."
        assign(self.about, value=escape(f"{shape} {_first_sentences(dataset.description)}"))
        self.field.problem = ""
        self._table = self._tables.get(name)
        options = None if self._table is None else self._table.options
        self.columns.show(dataset.summary, self._table is not None, 0, options)

    def _choose(self) -> None:
        name = str(self.chooser.value)
        self._offer(lambda: self._extra[name] if name in self._extra else LOADERS[name](), name)

    def _read_again(self) -> None:
        """Read the table whose columns are on show as its controls say."""
        if self._table is None:
            return
        try:
            options = self.columns.options()
        except ValueError as error:
            self.field.problem = str(error)
            return
        self._try_table(self._table._replace(options=options))

    def _try_table(self, table: _Table) -> None:
        """Read a table; where the reader has to ask, show its columns with the choices."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # the summary has them
                dataset = read_table(table.source, table.name, **table.options)
        except TableError as error:
            hint = ". Choose below, then use these columns." if error.summary is not None else ""
            self.field.problem = error.problem + hint if error.problem != str(error) else str(error)
            if error.summary is not None:
                self._table = table
                self.columns.show(error.summary, True, error.incomplete, table.options)
            return
        except (ValueError, TypeError) as error:
            self.field.problem = str(error)
            return
        if not self._offer(lambda: dataset, None, table):
            # The model refuses it, perhaps for a column that can be left out here.
            self._table = table
            self.columns.show(dataset.summary, True, 0, table.options)

    def _refuse(self, name: str, size: int) -> None:
        self.field.problem = (
            f"{name[:60]} has {size / 1e6:.1f} MB; the limit is {LARGEST_FILE / 1e6:.0f} MB. "
            "Remove rows or columns."
        )

    def _offer(self, load: Callable[[], Dataset], name: str | None, table: _Table | None = None) -> bool:
        """Hand over a data set; if it cannot be used, say why, and leave everything as it is."""
        try:
            dataset = load()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                self._on_data(dataset)
        except (ValueError, TypeError, OSError) as error:
            self.field.problem = str(error)
            return False
        if name is not None:
            self._extra[name] = dataset
        if table is not None:
            self._tables[dataset.name] = table
        self.show(dataset)
        return True


class ColumnsPanel(VBox):
    """The summary of a table with a choice for each column, and what to do with rows that are not complete.

    Parameters
    ----------
    on_use
        Called when the user wants the table read as the controls say.
    """

    def __init__(self, on_use: Callable[[], None]) -> None:
        self.controls: dict[str, Dropdown] = {}
        tooltip = "What to do with missing values"
        self.missing = make(Dropdown, description="missing", tooltip=tooltip)
        tooltip = "Read the table again with these choices"
        self.use = button("Use these columns", "ew-use-columns", tooltip, on_use)
        self.heading = note("")
        self.remarks = note("ew-help")
        self._read_as: dict[str, str] = {}
        self._proposed: set[str] = set()  # Columns that were proposed as categories or two-part.
        self._unlisted: list[str] = []  # features beyond those that have a control
        super().__init__((), **look("ew-table-columns"))

    def show(
        self,
        summary: TableSummary | None,
        can_change: bool = False,
        incomplete: int = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Show the summary of a table that was read with these options; None: nothing.

        `can_change`: the table can be read again. `incomplete`: the number of rows with missing values, if
        these keep the table from being used.
        """
        self.controls = {}
        if summary is None:
            self.children = ()
            return
        given = options or {}
        beyond = summary.columns[_MOST_CONTROLS:]
        self._unlisted = [column.name for column in beyond if column.role == "feature"]
        self._read_as = dict(given.get("read_as", {}))
        self._proposed = {column.name for column in summary.columns if column.kind in _KINDS}
        rows: list[Widget] = []
        for column in summary.columns[:_MOST_CONTROLS]:
            if can_change:
                self.controls[column.name] = control = _role_control(column)
                rows.append(control)
            rows.append(_remark(column, can_change))
        self._show_missing(incomplete, str(given.get("missing", _MISSING)))
        said = [*summary.notes, *(f"Note: {warning}" for warning in summary.warnings)]
        if beyond:
            said.append(f"{len(beyond)} more columns are not listed.")
        assign(self.remarks, value="".join(f"<p>{escape(text)}</p>" for text in said))
        below = (self.missing, self.use) if can_change else ()
        # A complete table needs no choice for missing values.
        is_said = any("missing value" in text for text in summary.notes)
        has_gaps = bool(incomplete) or is_said or self.missing.value != _MISSING
        show_if(self.missing, has_gaps)
        assign(self.heading, value=f"<b>Columns of {escape(summary.origin)}</b>")
        self.children = (self.heading, *rows, *below, self.remarks)

    def _show_missing(self, incomplete: int, chosen: str) -> None:
        which = f"these {incomplete} rows" if incomplete > 1 else "this row" if incomplete else "such rows"
        ways = [
            ("draw them with the clusters", _MISSING),
            (f"leave {which} out", "drop rows"),
            ("fill in the column's median", "median"),
            ("refuse", "refuse"),
        ]
        # Where gaps are the problem, the first way out is offered; otherwise nothing is decided for the user.
        assign(self.missing, options=ways, value="drop rows" if incomplete else chosen)

    def options(self) -> dict[str, Any]:
        """Arguments for `read_table` that the controls stand for; refuse what is not decided yet."""
        chosen = {name: str(control.value) for name, control in self.controls.items()}
        open_columns = [name for name, role in chosen.items() if role == _UNDECIDED]
        if open_columns:
            raise ValueError(f"choose a role for {', '.join(map(repr, open_columns[:5]))} first.")
        by_role = {role: [name for name, it in chosen.items() if it.split(":")[0] == role] for role in _ROLES}
        for role in ("names", "classes"):
            if len(by_role[role]) > 1:
                listed = ", ".join(map(repr, by_role[role]))
                raise ValueError(f"only one column can have the role {_ROLES[role]!r}; got {listed}.")
        ways = {name: it.partition(":")[2] for name, it in chosen.items() if ":" in it}
        kinds = {name: kind for kind in _KINDS for name in by_role[kind]}
        kinds |= {name: "number" for name in by_role["feature"] if name in self._proposed}
        return {
            "features": by_role["feature"]
            + [name for kind in _KINDS for name in by_role[kind]]
            + self._unlisted,
            "kinds": kinds,
            "names": next(iter(by_role["names"]), None),
            "classes": next(iter(by_role["classes"]), None),
            "drop": by_role["left out"],
            "read_as": {**self._read_as, **ways},
            "missing": str(self.missing.value),
        }


def _role_control(column: ColumnSummary) -> Dropdown:
    options = [(text, role) for role, text in _ROLES.items()]
    if column.choices and column.role != "feature":
        # Only with one of these is it clear which numbers are meant.
        options[:1] = [(f"feature: {way}", f"feature:{way}") for way in column.choices]
    role = column.kind if column.kind in _KINDS else column.role
    if role == "undecided":
        options.insert(0, (_UNDECIDED, role := _UNDECIDED))
    return make(
        Dropdown,
        "ew-column-role",
        options=options,
        value=role,
        description=column.name,
        tooltip=f"Role of column {column.name}",
        style={"description_width": "35%"},
    )


def _remark(column: ColumnSummary, has_control: bool) -> HTML:
    """Values of a column and what was done with it, below its control or in its place."""
    role = escape(_ROLES.get(column.role, column.role))
    start = "" if has_control else f"<b>{escape(column.name)}</b>: {role} · "
    asks = column.role == "undecided" and not column.choices  # the problem above says it
    texts = [", ".join(column.values), "" if asks else column.reason]
    return note("ew-help", start + " · ".join(escape(text) for text in texts if text))


def _first_sentences(text: str, most: int = 160) -> str:
    """The beginning of a description, up to the end of a sentence where possible."""
    if len(text) <= most:
        return text
    end = text.rfind(". ", 0, most)
    return text[: end + 1] if end > 0 else re.split(r"\W+\w*$", text[:most])[0] + " …"


class Upload(anywidget.AnyWidget):
    """A button that sends one file at a time, unless it is too large: that would break the connection.

    Parameters
    ----------
    label, css_class, hint
        Text and class of the button, and the text when the mouse rests on it.
    accept
        Extensions of the files that are offered, with commas between them.
    on_file
        Called with the name and the content of a file.
    on_too_large
        Called with the name and the size, in bytes, of a file that was not sent.
    largest
        Size of the largest file that is sent, in bytes.
    """

    _esm = Path(__file__).parent / "upload.js"

    label = Unicode().tag(sync=True)
    hint = Unicode().tag(sync=True)
    accept = Unicode().tag(sync=True)
    largest = Int(LARGEST_FILE).tag(sync=True)

    def __init__(
        self,
        label: str,
        css_class: str,
        *,
        hint: str,
        accept: str,
        on_file: Callable[[str, bytes], None],
        on_too_large: Callable[[str, int], None],
        largest: int = LARGEST_FILE,
    ) -> None:
        super().__init__(label=label, hint=hint, accept=accept, largest=largest, **look(css_class))
        self._on_file = on_file
        self._on_too_large = on_too_large
        self.on_msg(self._on_message)

    def _on_message(self, _: object, content: Any, buffers: Any) -> None:  # noqa: ANN401 - from a page
        if not isinstance(content, dict):
            return
        name = str(content.get("name", ""))
        if content.get("kind") == "file" and buffers:
            self._on_file(name, bytes(buffers[0]))
        elif content.get("kind") == "too-large" and isinstance(content.get("size"), int):
            self._on_too_large(name, content["size"])
