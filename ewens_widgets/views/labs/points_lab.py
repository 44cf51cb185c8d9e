"""The points lab: paint points, press Play, and watch how they are clustered.

A lecturer draws two clouds, lets the chain run, and draws a bridge between them; the class predicts what the
chain will do. Points are painted, sprayed and erased on a sheet by mouse or finger, or written in a table.
When the points change, the chain goes on from the clusters that it had: each point begins in the cluster of
the nearest point before.

Places are whole hundredths, so that the sheet and the table agree exactly. The table is a text with a line
for each point; it can be copied into another lab.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
from ipywidgets import HBox, Textarea, ToggleButtons, VBox, Widget
from numpy.typing import ArrayLike, NDArray
from traitlets import Dict, Float, List, Unicode

from ewens_widgets.analysis.plots.palette import GREY, colour_of
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame, Player
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.views.base import Silence, View, assign, button, look, make, note
from ewens_widgets.views.fields import Field, button_choice
from ewens_widgets.views.headline_view import Headline
from ewens_widgets.views.page import in_columns
from ewens_widgets.views.programmed import Programmed
from ewens_widgets.views.quantity_views import CountView
from ewens_widgets.views.shared_state import SharedState
from ewens_widgets.views.similarity_views import HeatmapView
from ewens_widgets.views.transport import Transport

WIDTH, HEIGHT = 10.0, 7.0
"""Size of the sheet; x grows to the right and y upwards."""

MOST_POINTS = 500
_REACH = 0.35  # of the eraser
_TOOLS = (("Paint", "paint"), ("Spray", "spray"), ("Erase", "erase"))
_NOTHING = np.zeros((0, 2), dtype=np.int64)
# What is clustered, invisibly, while there are too few points.
_STAND_IN = Dataset(
    X=np.array([[0.0, 0.0], [1.0, 0.2], [0.1, 1.0], [1.2, 1.1], [0.5, 0.4]]), name="no points"
)


class Sheet(anywidget.AnyWidget):
    """The picture; its messages are strokes of the pointer."""

    _esm = Path(__file__).with_name("points_lab.js")

    size = List([WIDTH, HEIGHT]).tag(sync=True)
    """Width and height."""

    tool = Unicode("paint").tag(sync=True)
    """What a stroke does: paint, spray or erase."""

    reach = Float(_REACH).tag(sync=True)
    """Radius of the eraser."""

    scene = Dict({"points": [], "colours": [GREY]}).tag(sync=True)
    """Places, y counted from the top, and colours."""


class SheetView(View):
    """The sheet, with the colours of the chain's clusters."""

    title = "Your points"
    css_class = "ew-points"
    description = "Points that you have painted, coloured by cluster"
    about = (
        "Click or drag to paint points; Spray scatters them around the pointer, and Erase removes them. The "
        "table changes the same points by keyboard. While the chain runs, it continues with the new points."
    )

    def build(self) -> tuple[Widget, ...]:
        """Make the sheet and its tools."""
        self.points = _NOTHING
        self.sheet = Sheet()
        self.tool = make(ToggleButtons, "ew-tool", options=_TOOLS, tooltip="What a click or a drag does")
        self.tool.observe(lambda change: assign(self.sheet, tool=change["new"]), "value")
        self.tools = (self.tool,)
        return (self.sheet,)

    def adapt(self, dataset: Dataset, posterior: Posterior) -> None:
        """Forget the clusters of other points."""

    def place(self, points: NDArray[np.int64]) -> None:
        """Show other points, in hundredths."""
        self.points = points
        self._show([GREY])

    def _show(self, colours: list[str]) -> None:
        places = np.column_stack([self.points[:, 0] / 100, HEIGHT - self.points[:, 1] / 100])
        assign(self.sheet, scene={"points": places.round(2).tolist(), "colours": colours})

    def draw(self, frame: Frame) -> None:
        """Colour the points."""
        colours = self.shared.colours(frame)
        # Before the first draw all are alone; too few points have no clusters.
        if colours is None or frame.summary.posterior.n_objects != len(self.points):
            self._show([GREY])
        else:
            self._show([colour_of(one) for one in colours.tolist()])

    def paint(self, axes: Any) -> None:  # noqa: ANN401 - of matplotlib
        """Draw the points with matplotlib."""
        colours = self.sheet.scene["colours"]
        axes.scatter(*(self.points.T / 100), c=np.resize(colours, len(self.points)), s=14)
        axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT), aspect="equal")


class PointsLab(Programmed):
    """Paint points and watch how they are clustered.

    Click or drag on the sheet, or write a table; press Play. Everything can be undone. `keep` returns the
    points as a data set. `text` is the table as a text, which shows the same points elsewhere:
    ``ew.PointsLab(text)``.

    Parameters
    ----------
    points
        The first points: a table of two columns, the text of another lab, or none. The sheet goes from
        0 to 10 and from 0 to 7; a table that does not fit is scaled to it.
    iterations, burn_in
        Iterations at which playing stops, and the first ones that averages leave out.
    settings
        Settings of the `Sampler`, such as ``model``, ``"III"`` by default.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> lab = ew.PointsLab([[1, 1], [1.2, 1.1], [1, 1.3], [6, 5], [6.1, 5.2], [6.3, 5]], model="I")
    >>> lab.text.splitlines()[1]
    '1.2 1.1'
    >>> lab.player.step_sync(20)
    >>> lab.erase(6, 5)
    >>> lab.dataset.n_objects
    3
    >>> lab.undo()
    >>> lab.keep("two corners").X[0].tolist()
    [1.0, 1.0]
    """

    css_class = "ew-lab ew-points-lab ew-even ew-fills"

    def __init__(
        self,
        points: ArrayLike | str | Dataset | None = None,
        *,
        iterations: int = 3000,
        burn_in: int = 200,
        **settings: Any,  # noqa: ANN401 - passed on
    ) -> None:
        first = _NOTHING
        if isinstance(points, str):
            first = parse_table(points)
        elif points is not None:
            first = _fitted(points.X if isinstance(points, Dataset) else points)
        self._settings = {"model": "III", "seed": 0, **settings}
        self._points, self._before = _NOTHING, list[NDArray[np.int64]]()
        self._silence = Silence()
        self._dataset, sampler = _STAND_IN, Sampler(_STAND_IN, **self._settings)
        self.shared = SharedState()
        self.player = Player(
            sampler,
            DrawTable(sampler.posterior, sampler.move_names),
            target_iterations=iterations,
            speed=1.0,
            burn_in=burn_in,
            wants_answer=self.shared.wants_answer,
        )
        self.shared.renew = self.player.refresh
        self.shared.burn_in = burn_in
        super().__init__(self.player, self.shared.post)
        self._sheet = SheetView(self.shared)
        self.views: dict[str, View] = {
            "points": self._sheet,
            "heatmap": HeatmapView(self.shared),
            "counts": CountView(self.shared),
        }
        self._build()
        self._use(first)

    def _build(self) -> None:
        post = self.post
        self._sheet.sheet.on_msg(lambda _, content, __: post(lambda: self._take_stroke(content)))
        self.transport = Transport(self.player, on_more=self._run_on)
        self.headline = Headline(self.shared)
        self.undo_button, self.clear_button = (
            button(name, css_class, hint, lambda command=command: post(command), icon=icon)  # type: ignore[misc]
            for name, css_class, hint, icon, command in (
                ("Undo", "ew-undo", "Take the last change back", "undo", self.undo),
                ("Clear", "ew-clear-points", "Remove all points", "trash", self.clear),
            )
        )
        names, model = [(name, name, f"Model {name}") for name in ("I", "II", "III")], self._settings["model"]
        hint = "What the clusters may look like"
        self.model = button_choice("model", names, model, "ew-model-choice", hint)
        lines = {"placeholder": "1.5 2\n1.7 2.1", "tooltip": "A point in each line: x and y", "rows": 12}
        table = make(Textarea, "ew-point-table", continuous_update=False, **lines)
        hint = "Each line is a point: x from 0 to 10, y from 0 to 7. Copy all lines to share the points."
        self.table = Field(table, parse_table, "ew-points-table", hint)
        self.problem = note("ew-problem ew-too-few")
        commands = {self.model.control: self._take_model, self.table.control: self._take_table}
        self._silence.commands(post, commands)
        row = HBox((self.undo_button, self.clear_button), **look("ew-row"))
        columns = {
            "ew-column-points": (self._sheet, self.problem),
            "ew-column-results": (self.views["heatmap"], self.views["counts"]),
            "ew-settings": (row, self.model, self.table),
        }
        self.lay_out(VBox((self.transport, self.headline), **look("ew-front")), in_columns(columns))

    def _run_on(self, iterations: int) -> None:
        self.player.extend(iterations)
        self.player.play()

    # What other code uses.

    def keep(self, name: str = "painted points") -> Dataset:
        """Return the points as a data set, for an Explorer or a Sampler."""
        if len(self._points) < 2:
            raise ValueError(f"a data set has at least two objects; {len(self._points)} were painted.")
        return _dataset_of(self._points, name)

    @property
    def points(self) -> NDArray[np.float64]:
        """The points, a row each."""
        return np.asarray(self._points / 100)

    @property
    def text(self) -> str:
        """The table: a line for each point."""
        return format_table(self._points)

    def add(self, points: ArrayLike) -> None:
        """Add points, a row each."""
        self._change(np.concatenate([self._points, _hundredths(points)]))

    def erase(self, x: float, y: float) -> None:
        """Remove the points around a place."""
        self._erase(_hundredths([[x, y]]))

    def clear(self) -> None:
        """Remove all points."""
        self._change(_NOTHING)

    def undo(self) -> None:
        """Take the last change of the points back."""
        if self._before:
            self._use(self._before.pop())

    # What the page does.

    def _take_stroke(self, content: Any) -> None:  # noqa: ANN401 - from a page
        if not isinstance(content, dict) or not content.get("points"):
            return
        places = np.array(content["points"], dtype=np.float64)
        places[:, 1] = HEIGHT - places[:, 1]
        if content.get("kind") == "erase":
            self._erase(_hundredths(places))
        else:
            self.add(places)

    def _erase(self, around: NDArray[np.int64]) -> None:
        is_kept = np.all(_distances(self._points, around) >= 100 * _REACH, axis=1)
        self._change(self._points[is_kept])

    def _take_table(self) -> None:
        with suppress(ValueError):  # it is explained below the field
            self._change(self.table.read())

    def _take_model(self) -> None:
        self._settings["model"] = self.model.control.value
        self._use(self._points)

    def _change(self, points: NDArray[np.int64]) -> None:
        if not np.array_equal(points, self._points):
            self._before.append(self._points)
            self._use(points[:MOST_POINTS])

    def _use(self, points: NDArray[np.int64]) -> None:
        """Turn to these points; a chain that runs continues with them."""
        recorder, is_running = self.player.recorder, self.player.status.is_running
        initial = None
        if len(recorder) and recorder.posterior.n_objects == len(self._points) and len(points):
            # Each point begins in the cluster of the nearest point before.
            nearest = _distances(points, self._points).argmin(axis=1)
            initial = recorder.labels[-1].astype(np.intp)[nearest]
        self._points, problem = points, ""
        try:
            dataset = _dataset_of(points, "painted points")
            sampler = Sampler(dataset, initial=initial, **self._settings)
        except ValueError as error:
            dataset, sampler = _STAND_IN, Sampler(_STAND_IN, **self._settings)
            problem = str(error) if len(points) > 3 else "Paint at least four points, not on one line."
        with self._silence:
            assign(self.table.control, value=self.text)
        self.table.problem = ""
        if len(points) == MOST_POINTS:
            problem = f"There is room for {MOST_POINTS} points."
        assign(self.problem, value=problem)
        self._sheet.place(points)
        self._change_chain(dataset, sampler)
        can_play = dataset is not _STAND_IN
        # Without points to be clustered there is nothing to play, and no picture.
        (self.remove_class if can_play else self.add_class)("ew-empty")
        assign(self.undo_button, disabled=not self._before)
        if is_running and can_play:
            self.player.play()

    def _change_chain(self, dataset: Dataset, sampler: Sampler) -> None:
        self.player.replace_source(sampler, DrawTable(sampler.posterior, sampler.move_names))
        self.headline.prepare(dataset)
        self._turn_to(dataset, sampler.posterior, self.headline, self.transport)
        self.player.refresh()

    def __repr__(self) -> str:
        status, model = self.player.status, self._settings["model"]
        where = f"iteration {status.iteration} of {status.target}"
        return f"PointsLab({len(self._points)} points, model {model}, {where})"


def _distances(points: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(*np.moveaxis(points[:, None] - others[None], 2, 0)))


def _dataset_of(points: NDArray[np.int64], name: str) -> Dataset:
    return Dataset(X=points / 100, name=name, feature_names=("x", "y"), same_units=True, noun="point")


def _hundredths(points: ArrayLike) -> NDArray[np.int64]:
    """Places in hundredths, within the sheet."""
    table = np.asarray(points, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2 or not np.all(np.isfinite(table)):
        raise ValueError(f"points are a table of two columns of finite numbers; got shape {table.shape}.")
    limits = [round(100 * WIDTH), round(100 * HEIGHT)]
    return np.clip(np.round(100 * table), 0, limits).astype(np.int64)


def _fitted(points: ArrayLike) -> NDArray[np.int64]:
    """The points on the sheet; a table that does not fit is scaled, alike in both directions."""
    table = np.asarray(points, dtype=np.float64)
    if len(table) > MOST_POINTS:
        raise ValueError(f"there is room for {MOST_POINTS} points; got {len(table)}.")
    if table.ndim == 2 and table.shape[1] == 2 and np.all(np.isfinite(table)) and len(table):
        low, high, size = table.min(axis=0), table.max(axis=0), np.array([WIDTH, HEIGHT])
        if np.any(low < 0.0) or np.any(high > size):
            unit = 0.9 * float(np.min(size / np.maximum(high - low, 1e-12)))
            table = size / 2 + unit * (table - (low + high) / 2)
    return _hundredths(table)


def format_table(points: NDArray[np.int64]) -> str:
    """One line per point, as `parse_table` reads it."""
    return "\n".join(f"{x / 100:g} {y / 100:g}" for x, y in points.tolist())


def parse_table(text: str) -> NDArray[np.int64]:
    """Read points, one per line."""
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts = [part for part in re.split(r"[\s,;]+", line) if part]
        if not parts:
            continue
        try:
            x, y = map(float, parts)
        except ValueError:
            raise ValueError(
                f"line {number} must be two numbers, such as 1.5 2; got {line.strip()!r}."
            ) from None
        if not (0.0 <= x <= WIDTH and 0.0 <= y <= HEIGHT):
            raise ValueError(f"line {number} is not on the sheet: x is from 0 to 10, y from 0 to 7.")
        rows.append((x, y))
    if len(rows) > MOST_POINTS:
        raise ValueError(f"there is room for {MOST_POINTS} points; got {len(rows)}.")
    return _hundredths(rows) if rows else _NOTHING
