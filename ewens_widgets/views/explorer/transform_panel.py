"""Transform the data while the chain goes on, and see which results stay the same.

Buttons rotate, stretch and shear the plane that the scatter plot shows; the points move there. Columns X
become X A with

.. math:: A = I + W (M - I) W^+ ,

where M is the map of the plane and W has the weights of the columns in its axes, so that the picture X W
becomes X W M. The chain of the page is that of the original data. Beside it `invariance.Comparison` runs each
model and k-means on both versions, with the same seed, and a badge for each says what these runs found.
"""

from collections.abc import Callable
from dataclasses import replace
from html import escape

import numpy as np
from ipywidgets import HBox
from numpy.typing import NDArray

from ewens_widgets.datasets import Dataset
from ewens_widgets.playback import Worker, invariance
from ewens_widgets.views.base import Panel, Post, assign, button, look, note, show_if
from ewens_widgets.views.explorer.settings import SamplerSettings
from ewens_widgets.views.fields import buttons
from ewens_widgets.views.figures import FeaturePlane

FloatArray = NDArray[np.float64]

MOST_OBJECTS = 2000
"""With more objects the similarities of both versions would hold up the page."""

_TURN = np.deg2rad(30.0)
STEPS: dict[str, tuple[str, str, FloatArray]] = {
    "Rotate": (
        "undo",
        "Turn by 30 degrees",
        np.array([[np.cos(_TURN), np.sin(_TURN)], [-np.sin(_TURN), np.cos(_TURN)]]),
    ),
    "Stretch": ("arrows-h", "Double the horizontal axis", np.diag([2.0, 1.0])),
    "Shear": (
        "italic",
        "Shift every point to the right by 0.8 of its height",
        np.array([[1.0, 0.0], [0.8, 1.0]]),
    ),
}
"""Maps of the plane, for row vectors, with the icon and the tooltip of their buttons."""

_MOST_STRETCHED = 20.0  # a longer and thinner plane would be a line on the page
_CLUSTERS = 3  # of k-means, where no classes are known
_SAME, _CHANGED, _ROUNDED = "✓ same", "✗ changed", "≈ same but for rounding"
_START = "Transform the data: the points move, the chain goes on. Which results stay the same?"


class _Compared:
    """Work that reports each new result of a comparison."""

    def __init__(self, comparison: invariance.Comparison | None, on_step: Callable[[], None]) -> None:
        self.comparison, self._on_step = comparison, on_step

    @property
    def is_done(self) -> bool:
        return self.comparison is None or self.comparison.is_done

    def advance(self, steps: int) -> int:
        done = 0 if self.comparison is None else self.comparison.advance(min(steps, 20))
        self._on_step()
        return done


class TransformPanel(Panel):
    """Buttons that map the plane of the scatter plot, and a badge for each model and k-means.

    Parameters
    ----------
    plane
        What the scatter plot shows.
    post
        Brings a command to the event loop.
    on_use
        Called with the transformed data when the user wants the chain to run on them.
    """

    title = "Transform the data"
    css_class = "ew-transform"
    description = "Buttons that transform the data, and which results stay the same"
    about = (
        "The points move, and the chain of the original data goes on. Each model and k-means is run on both "
        "versions with the same seed. 'Same' means that all posterior similarities are equal."
    )

    def __init__(self, plane: FeaturePlane, post: Post, on_use: Callable[[Dataset], None]) -> None:
        self._plane = plane
        self._matrices: list[FloatArray] = [np.eye(2)]
        self._dataset: Dataset | None = None
        self._settings = SamplerSettings()
        self._random = np.random.default_rng(0)
        self._badges = ""
        self.worker = Worker(_Compared(None, self._write))
        rows = [(name, icon, f"ew-{name.lower()}", tip) for name, (icon, tip, _) in STEPS.items()]
        rows += [
            ("Dice", "random", "ew-dice", "A random invertible map"),
            ("Undo", "reply", "ew-undo", "Take the last map back"),
        ]
        self.buttons = buttons(rows, lambda name: post(lambda: self._command(name)))
        assign(self.buttons["Undo"], disabled=True)
        self.badges = note("ew-badges")
        tooltip = "Start the chain again, on the transformed data"
        self.use = button(
            "Run the chain on these data",
            "ew-use-transformed",
            tooltip,
            lambda: post(lambda: on_use(self.transformed)),
        )
        show_if(self.use, False)
        row = HBox(tuple(self.buttons.values()), **look("ew-row"))
        super().__init__((row, self.badges, self.use))

    def prepare(self, dataset: Dataset, settings: SamplerSettings) -> None:
        """Turn to other data or settings, which are not transformed."""
        self._dataset, self._settings = dataset, settings
        self.reset()

    @property
    def matrix(self) -> FloatArray:
        """The map of the plane, for row vectors."""
        return self._matrices[-1]

    @property
    def transformed(self) -> Dataset:
        """The transformed data."""
        if self._dataset is None or self._plane.weights is None:
            raise ValueError("there are no data to transform")
        X = self._dataset.X
        middle = X.mean(axis=0)
        name = f"{self._dataset.name}, transformed"
        return replace(self._dataset, X=middle + (X - middle) @ self._whole_matrix(), name=name, summary=None)

    def _whole_matrix(self) -> FloatArray:
        """The map of all columns, A."""
        weights = self._plane.axes_weights
        if weights is None:
            return np.eye(0)
        across = np.linalg.pinv(weights)
        return np.eye(len(weights)) + weights @ (self.matrix - np.eye(2)) @ across

    def map_by(self, step: FloatArray) -> None:
        """Map the plane once more."""
        matrix = self.matrix @ step
        if np.linalg.cond(matrix) > _MOST_STRETCHED:
            problem = "<div>The points are nearly on a line; undo a map first.</div>"
            assign(self.badges, value=f"{self._badges}{problem}")
            return
        self._matrices.append(matrix)
        self._show()

    def _command(self, name: str) -> None:
        if name in STEPS:
            self.map_by(STEPS[name][2])
            return
        if name == "Undo":
            self._matrices = self._matrices[:-1] or [np.eye(2)]
        else:
            self._matrices.append(self._random_map())
        self._show()

    def _random_map(self) -> FloatArray:
        while True:
            matrix = self._random.uniform(-1.5, 1.5, (2, 2))
            if np.linalg.cond(matrix) < 6.0 and abs(np.linalg.det(matrix)) > 0.3:
                return matrix

    def reset(self) -> None:
        """Take all maps back."""
        self._matrices = [np.eye(2)]
        self._show()

    def _show(self) -> None:
        self._plane.transform(self.matrix)
        assign(self.buttons["Undo"], disabled=len(self._matrices) == 1)
        is_mapped = not np.array_equal(self.matrix, np.eye(2))
        comparison = self._compare() if is_mapped else None
        show_if(self.use, comparison is not None)
        self.worker.replace(_Compared(comparison, self._write))
        self._write()
        if comparison is not None and self.worker.mailbox.capture_loop():
            self.worker.play()

    @property
    def comparison(self) -> invariance.Comparison | None:
        """Both versions side by side; None if the data are not transformed, or cannot be compared."""
        work = self.worker.work
        return work.comparison if isinstance(work, _Compared) else None

    def _compare(self) -> invariance.Comparison | None:
        data, settings = self._dataset, self._settings
        if data is None or self._problem():
            return None
        run = invariance.ChainSettings(
            seed=settings.seed or 0,
            shapes="own" if settings.shapes == "own" else "common",
            prior=settings.prior,
        )
        count = _CLUSTERS if data.labels is None else len(np.unique(data.labels))
        before = self.comparison
        same_data = before is not None and before.original is data.X and before.run == run
        return invariance.Comparison(data.X, self.transformed.X, run, count, before if same_data else None)

    def _problem(self) -> str:
        data = self._dataset
        if data is None or self._plane.axes_weights is None:
            return "Choose columns or components for both axes, so that the data can be transformed."
        if data.n_objects > MOST_OBJECTS:
            return f"Only the picture is transformed: results are compared for up to {MOST_OBJECTS} objects."
        if not np.all(np.isfinite(data.X)):
            return "Only the picture is transformed: these data have missing cells."
        if any(column.kind != "number" for column in data.kinds or ()):
            return "Only the picture is transformed: these data have columns that are not numbers."
        return ""

    def _write(self) -> None:
        """Write the badges, if they say something new."""
        comparison = self.comparison
        if comparison is None:
            problem = "" if np.array_equal(self.matrix, np.eye(2)) else self._problem()
            self._say(f'<div class="ew-help">{escape(problem or _START)}</div>')
            return
        expected = invariance.invariant_models(self._whole_matrix(), comparison.original.shape[1])
        found = {
            f"model {model}": _result(pair, model in expected) for model, pair in comparison.models.items()
        }
        agreement = comparison.k_means.agreement
        found["k-means"] = (
            "…" if agreement is None else _SAME if agreement > 1 - invariance.SAME else _CHANGED
        )
        own = f"model {self._settings.model}"
        badges = "".join(_badge(name, result, name == own) for name, result in found.items())
        sentence = {
            _SAME: f"Every draw of your chain ({own}) stays the same.",
            _ROUNDED: f"The posterior of your chain ({own}) stays the same.",
            _CHANGED: f"On these data your chain ({own}) gives another result.",
        }.get(found[own], "Sampling both versions with the same seed …")
        self._say(f'<div>{badges}</div><div class="ew-help">{escape(sentence)}</div>')

    def _say(self, html: str) -> None:
        if html != self._badges:
            self._badges = html
            assign(self.badges, value=html)


def _result(pair: invariance.ModelPair, is_expected: bool) -> str:
    """What was found for a model, once it is certain: a difference that is there stays."""
    if pair.problem:
        return "not defined for these data"
    difference = pair.difference()
    if not pair.is_done or difference is None:
        return "…"
    return _SAME if difference < invariance.SAME else _ROUNDED if is_expected else _CHANGED


def _badge(name: str, result: str, is_own: bool) -> str:
    kind = {_SAME: "ew-same", _ROUNDED: "ew-same", _CHANGED: "ew-changed"}.get(result, "ew-waiting")
    classes = f"ew-badge {kind}{' ew-own' if is_own else ''}"
    return f'<span class="{classes}"><b>{escape(name)}</b> {escape(result)}</span>'
