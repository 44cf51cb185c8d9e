r"""The affine lab: change the coordinates of the data, and see which results change with them.

A lecturer moves a slider, or takes the paper's matrix, and asks the class which methods will give the same
result as before. The page shows the data before and after the map, k-means on both, and the posterior
similarities of each model on both, side by side. The sentence on top names the methods that are invariant.

The chains run in the background of the notebook, on the original and on the transformed data with the same
seed, a few milliseconds at a time. A new map starts them again. `playback.invariance` computes the comparison
and its verdict; this module connects them to controls and pictures.

Both scatter plots have the same colours, and both heatmaps of a model have the order of the original, so
every visible difference is a difference of the results.

Rows are points, so a matrix A acts from the right, y → y A + a, as in the paper. Every invertible A is

.. math:: A = \begin{pmatrix} s_1 & 0 \\ 0 & \pm s_2 \end{pmatrix}
        \begin{pmatrix} 1 & 0 \\ h & 1 \end{pmatrix}
        \begin{pmatrix} \cos\varphi & \sin\varphi \\ -\sin\varphi & \cos\varphi \end{pmatrix}

in one way. First each column is scaled; the second is mirrored as well if the determinant is negative. Then h
times the second column is added to the first. Last, everything is rotated by φ anticlockwise. The sliders
show these `Steps`.

The matrix is exact, and the page rounds: sliders to whole steps, the text to three digits. So a value that
comes back from the page changes the matrix only if it differs from what was shown.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from html import escape, unescape
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from ipywidgets import Checkbox, Dropdown, FloatLogSlider, FloatSlider, HBox, VBox, Widget
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.plots.palette import GREY, SELECTED, ClusterColours, colour_of
from ewens_widgets.analysis.trees import average_order
from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.datasets import LOADERS, Dataset, as_dataset
from ewens_widgets.model.checks import FloatArray, ModelName, check_data
from ewens_widgets.playback import Tick, Worker, invariance
from ewens_widgets.playback.invariance import Comparison, KMeansPair, ModelPair
from ewens_widgets.views import figures
from ewens_widgets.views.base import Panel, Post, Silence, assign, button, look, make, note, show_if
from ewens_widgets.views.fields import Field, choice, entry, whole_number
from ewens_widgets.views.page import STATUS, Dashboard, in_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_OBJECTS = 2000
"""With more objects the n × n pictures would no longer be live."""

_SIDES = ("original", "transformed")
_NO_CLASSES = 3  # clusters for k-means where no classes are known
_COLOURINGS = ("k-means", "known classes", "model I", "model II", "model III")
_INVARIANT, _CHANGED = "✓ invariant", "✗ changed"
_MOST_LIVE = 500  # with more objects, the order of the heatmap is found once the chains are done
_INVARIANCE = {
    "I": "invariant to shift, rotation, common scale",
    "II": "invariant to shift, a scale for each column",
    "III": "invariant to shift and every invertible map",
}
_READING = (
    "Pairs with the colour of the diagonal are always in one cluster, those with the colour of the "
    "background never. Both pictures of a model have the same order of objects. Ringed points change their "
    "k-means cluster."
)

# Matrices closer to singular than this are refused: rounding would decide the result.
_LEAST_CONDITION = 1e-6
_LARGEST = 1e6

# Name on the page, ends, step and tooltip; the scales have powers of ten.
_SLIDERS = {
    "shift_x": ("shift x", -10.0, 10.0, 0.1, "Adds to the first column"),
    "shift_y": ("shift y", -10.0, 10.0, 0.1, "Adds to the second column"),
    "rotation": ("rotate °", -180.0, 180.0, 1.0, "Rotates the plane anticlockwise"),
    "scale_x": ("scale x", -1.0, 1.0, 0.01, "Multiplies the first column"),
    "scale_y": ("scale y", -1.0, 1.0, 0.01, "Multiplies the second column"),
    "shear": ("shear", -5.0, 5.0, 0.05, "Adds a multiple of the second column to the first"),
}
_PRESETS = {
    "I": "No change: the original data",
    "II": "The paper's diag(3, 1/3): other units",
    "III": "The paper's matrix [[4.1, 2.1], [1.9, 1.1]]: stretched and sheared",
}


class AffineLab(Dashboard):
    """Shift, rotate, stretch and shear the data, and see which results are invariant.

    Model I is invariant to shifts, rotations and one common scale, model II to shifts and a scale for each
    column, model III to every invertible map; k-means at most to the maps of model I.

    Parameters
    ----------
    data
        A `Dataset` or an array of at least two columns; the unit square by default. Two columns are mapped
        (the page lets you choose which), the others stay as they are.
    matrix, shift
        The initial map: points y of the two columns become y A + a. By default the paper's matrix, which
        stretches and shears.
    draws, burn_in
        Length of the chains.
    concentration
        Concentration λ of the Ewens prior.
    n_clusters
        Clusters for k-means; by default as many as there are known classes, or 3.
    seed
        Seed of all chains, the same for both versions of the data.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> lab = ew.AffineLab()
    >>> lab.matrix.tolist()  # the paper's
    [[4.1, 2.1], [1.9, 1.1]]
    >>> lab.run_sync()
    >>> [lab.differences()[model] < 1e-6 for model in ("I", "II", "III")]
    [False, False, True]
    """

    css_class = "ew-lab ew-affine-lab ew-fills"

    def __init__(
        self,
        data: Dataset | ArrayLike | None = None,
        *,
        matrix: ArrayLike | None = None,
        shift: tuple[float, float] = (0.0, 0.0),
        draws: int = 300,
        burn_in: int = 100,
        concentration: float = 1.0,
        n_clusters: int | None = None,
        seed: int = 0,
    ) -> None:
        self._run = invariance.ChainSettings(
            draws=check_count("draws", draws, 1),
            burn_in=check_count("burn_in", burn_in, 0),
            concentration=check_positive("concentration", concentration),
            seed=check_count("seed", seed, 0),
        )
        self.dataset = _checked_dataset(data)
        self._datasets = {self.dataset.name: self.dataset}
        self._silence = Silence()
        self._colours = ClusterColours()
        count = _n_classes(self.dataset) if n_clusters is None else check_count("n_clusters", n_clusters, 1)
        self._comparison = Comparison(self.dataset.X, self.dataset.X, self._run, count)
        self._worker = Worker(self._comparison)
        super().__init__(self._worker, self._worker.post)
        self._build(count)
        self._offer_columns()
        self.attach(self)
        self.transform(invariance.PAPER_MATRICES["III"] if matrix is None else matrix, shift)

    def _build(self, count: int) -> None:
        self.controls = MapControls(self.post, self._changed)
        known = [(name, name) for name in dict.fromkeys([*self._datasets, *LOADERS])]
        self.data_field = choice("data", known, self.dataset.name, "ew-data", "Data set to transform")
        self.data = self.data_field.control
        self.features = tuple(
            make(Dropdown, f"ew-{name}-feature", description=name, tooltip=f"Column shown as {name}")
            for name in ("x", "y")
        )
        self.feature_field = Field(self.features[1], lambda _: self.columns, "ew-second-feature")
        self.feature_box = VBox((Field(self.features[0], str, "ew-first-feature"), self.feature_field))
        seed, hint = str(self._run.seed), "The same for both versions"
        self.seed = entry("seed", seed, whole_number("seed", 0), "ew-seed", hint)
        hint = "Number of clusters that k-means looks for"
        self.k = entry("k", str(count), whole_number("k", 1, 50), "ew-k", hint)
        hint = "What the colours show"
        self.colouring = make(Dropdown, "ew-chooser ew-colouring", options=_COLOURINGS, tooltip=hint)
        restart = (*self.features, self.seed.control, self.k.control)
        commands = {self.data: self._choose_data, self.colouring: self._colour}
        self._silence.commands(self.post, {**dict.fromkeys(restart, self._changed), **commands})
        self.original = ScatterPanel("Original", "ew-original-data")
        self.transformed = ScatterPanel("Transformed", "ew-transformed-data")
        self.models = {model: InvariancePanel(model) for model in invariance.MODELS}
        below = (self.k, note("ew-note", _READING))
        self.k_means = KMeansPanel((note("ew-hint", "colours show"), self.colouring), below)
        self.sentence = note("ew-verdict")
        plots = (self.original, self.transformed, self.k_means)
        rows = [HBox(row, **look("ew-lab-row")) for row in (plots, tuple(self.models.values()))]
        settings = (self.data_field, self.feature_box, self.controls, self.seed)
        names: dict[str, dict[str, str]] = {".ew-verdict": STATUS}
        for model, side in product(self.models, _SIDES):
            label = f"heatmap of the {side} data under model {model}"
            names[f".ew-model-{model} .ew-{side}"] = {"role": "img", "aria-label": label, "alt": label}
        columns = in_columns({"ew-settings": settings, "ew-lab-main": rows})
        self.lay_out(self.sentence, columns, names=names)

    @property
    def matrix(self) -> FloatArray:
        """The 2 × 2 matrix that the two columns are multiplied by, from the right."""
        return self.controls.matrix

    @property
    def columns(self) -> tuple[int, int]:
        """The two columns that are mapped; choosing one twice raises `ValueError`."""
        names = self.dataset.feature_names
        first, second = (names.index(chooser.value) for chooser in self.features)
        if first == second:
            raise ValueError("x and y must be two different columns.")
        return first, second

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Both scatter plots, k-means and the three models."""
        return self.original, self.transformed, self.k_means, *self.models.values()

    def differences(self) -> dict[str, float | None]:
        """Largest difference of the posterior similarities by model; None where there are no draws."""
        return {model: pair.difference() for model, pair in self._comparison.models.items()}

    def transform(self, matrix: ArrayLike, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        """Map the two columns by this matrix, from the right, and this shift."""
        added = np.asarray(shift, dtype=float)
        if added.shape != (2,) or not np.all(np.isfinite(added)):
            raise ValueError(f"shift must be two numbers, one for each of the two columns; got {shift!r}.")
        self.controls.set(np.asarray(matrix, dtype=float), (float(added[0]), float(added[1])))

    def run_sync(self) -> None:
        """Run the chains to their end in the foreground: in a script, or before a static picture."""
        self._worker.run_sync()
        self._worker.refresh()

    async def wait(self, timeout: float | None = None) -> None:
        """Wait until the chains are at their end, or until the time, in seconds, is over."""
        await self._worker.wait(timeout)

    def caption(self) -> str:
        """Which results are invariant, in words."""
        if self._worker.error is not None:
            return self._worker.status.message
        expected = invariance.invariant_models(self.matrix, self.dataset.n_features)
        return invariance.verdict(self._comparison, expected)

    def _choose_data(self) -> None:
        name = str(self.data.value)
        try:
            dataset = self._datasets[name] if name in self._datasets else _checked_dataset(LOADERS[name]())
        except (ValueError, TypeError, OSError) as error:
            self.data_field.problem = str(error)
            return
        self.data_field.problem = ""
        self._datasets[name] = self.dataset = dataset
        self._offer_columns()
        self._colours.clear()
        with self._silence:
            assign(self.k.control, value=str(_n_classes(dataset)))
        self._changed()

    def _offer_columns(self) -> None:
        names = list(self.dataset.feature_names)
        with self._silence:
            for place, chooser in enumerate(self.features):
                assign(chooser, options=names, value=names[place])
        show_if(self.feature_box, len(names) > 2)

    def _changed(self) -> None:
        """Start again with the settings of the page; a wrong one is explained next to its field."""
        try:
            columns, seed, count = self.feature_field.read(), self.seed.read(), self.k.read()
        except ValueError:
            return
        X = self.dataset.X
        before: Comparison | None = self._comparison
        if seed != self._run.seed or self._comparison.original is not X:
            self._run = replace(self._run, seed=seed)
            before = None
        transformed = invariance.mapped(X, columns, self.matrix, self.controls.shift)
        self._comparison = Comparison(X, transformed, self._run, count, before)
        self.original.place(X[:, columns])
        self.transformed.place(transformed[:, columns])
        self._worker.replace(self._comparison)
        if self._worker.mailbox.capture_loop():
            self._worker.play()

    def show(self, tick: Tick) -> None:  # noqa: ARG002 - the state itself is shown
        """Show where the chains are."""
        comparison = self._comparison
        self.k_means.show(comparison.k_means)
        for model, panel in self.models.items():
            panel.show(comparison.models[model])
        self._colour()
        # Last, so that the verdict never appears before the pictures that it is about.
        assign(self.sentence, value=escape(self.caption()))

    def _colour(self) -> None:
        kind, comparison = self.colouring.value, self._comparison
        labels: tuple[NDArray[Any], ...] = comparison.k_means.labels
        if kind == "known classes":
            labels = () if self.dataset.labels is None else (self.dataset.labels,) * 2
        elif kind != "k-means":
            labels = comparison.models[kind.removeprefix("model ")].last_labels
        colours = [[colour_of(number) for number in self._colours.assign(side)] for side in labels]
        before, after = colours or ([GREY], [GREY])
        self.original.colour(before)
        self.transformed.colour(after, comparison.k_means.moved if labels and kind == "k-means" else ())

    def __repr__(self) -> str:
        return f"AffineLab({self.dataset.name!r}: {self.caption()})"


def _checked_dataset(data: Dataset | ArrayLike | None) -> Dataset:
    dataset = as_dataset(data)
    check_data(dataset)
    if dataset.n_features < 2:
        raise ValueError("the affine lab maps a plane and needs at least two columns; got one.")
    if dataset.n_objects > MOST_OBJECTS:
        raise ValueError(
            f"the affine lab compares pictures of n × n pairs and takes at most {MOST_OBJECTS} objects; got "
            f"{dataset.n_objects}. Use some of the rows."
        )
    if len(set(dataset.feature_names)) < dataset.n_features:
        raise ValueError("the columns must have different names, so that two of them can be chosen.")
    return dataset


def _n_classes(dataset: Dataset) -> int:
    return _NO_CLASSES if dataset.labels is None else len(np.unique(dataset.labels))


class ScatterPanel(Panel):
    """Points in the plane; one unit is equally long in both directions."""

    def __init__(self, title: str, css_class: str) -> None:
        self.title = title
        self.css_class = css_class
        self.description = f"Scatter plot of the {title.lower()} data, coloured by cluster"
        self.about = (
            "Every dot is an object, and both plots show the same objects before and after the map. One unit "
            "is equally long in both directions, so shapes are not distorted."
        )
        scales = {"x": figures.make_scale(), "y": figures.make_scale()}
        dots = {"default_size": 22, "colors": [GREY], "stroke": "#80808080", "stroke_width": 0.5}
        rings = {"default_size": 90, "colors": [SELECTED], "fill": False, "stroke_width": 1.6}
        self.points, self.moved = (figures.make_scatter(scales, **style) for style in (dots, rings))
        axes = [figures.make_axis(scales["x"]), figures.make_axis(scales["y"], vertical=True)]
        self.figure = figures.make_figure(
            f"{css_class}-figure",
            230,
            (6, 8, 22, 40),
            self._resize,
            marks=[self.points, self.moved],
            axes=axes,
        )
        self._size = (1.0, 1.0)
        super().__init__((self.figure,))

    def place(self, places: FloatArray) -> None:
        """Move the points."""
        assign(self.points, x=places[:, 0], y=places[:, 1])
        self._resize(*self._size)

    def _resize(self, width: float, height: float) -> None:
        self._size = (width, height)
        places = np.stack([self.points.x, self.points.y]) if self.points.x.size else np.zeros((2, 1))
        low, high = figures.equal_limits(places.min(axis=1), places.max(axis=1), self._size, margin=0.04)
        for axis, *ends in zip(self.figure.axes, low.tolist(), high.tolist(), strict=True):
            figures.set_limits(axis.scale, axis, *ends)

    def colour(self, colours: list[str], moved: Sequence[int] | NDArray[np.intp] = ()) -> None:
        """Colour the points, and ring some."""
        assign(self.points, colors=colours)
        ringed = np.asarray(moved, dtype=np.intp)
        assign(self.moved, x=self.points.x[ringed], y=self.points.y[ringed])

    def paint(self, axes: "Axes") -> None:
        """Draw the points with matplotlib."""
        super().paint(axes)
        axes.set_aspect("equal")


class InvariancePanel(Panel):
    """Similarity under one model: original left, transformed right, both in the order of the original."""

    about = (
        "Left the posterior similarities of the original data, right those of the transformed data, with the "
        "same objects in the same places. If the pictures are equal, the result does not depend on the "
        "coordinates."
    )

    def __init__(self, model: ModelName) -> None:
        self.title = f"Model {model}"
        self.css_class = f"ew-model-{model}"
        self.description = (
            f"How often two objects share a cluster under model {model}: original left, transformed right"
        )
        self.images = tuple(figures.SimilarityPicture(f"ew-{side}") for side in _SIDES)
        captions = note("ew-caption ew-captions", "".join(f"<span>{side}</span>" for side in _SIDES))
        self.result = note("ew-result")
        pair = HBox(self.images, **look("ew-pair"))
        super().__init__((pair, captions, self.result), (note("ew-hint", _INVARIANCE[model]),))
        self.add_class("ew-model")

    def show(self, pair: ModelPair) -> None:
        """Show where the chains of a model are."""
        difference = pair.difference()
        if pair.problem:
            text = f'<span class="ew-problem">{escape(pair.problem)}</span>'
        elif difference is None:
            text = "waiting for the first draws"
        else:
            text = f'largest difference <b class="ew-difference">{difference:.6f}</b> · '
            text += _INVARIANT if difference < invariance.SAME else _CHANGED
        assign(self.result, value=text)
        if difference is not None:
            similarities = pair.similarity()
            n_objects = len(similarities[0])
            is_cheap = n_objects <= _MOST_LIVE or pair.is_done
            order = average_order(similarities[0]) if is_cheap else np.arange(n_objects)
            for image, similarity in zip(self.images, similarities, strict=True):
                image.show(similarity, order)

    def darken(self, is_dark: bool) -> None:
        """Turn black on white into white on black."""
        for image in self.images:
            image.darken(is_dark)

    def paint(self, axes: "Axes") -> None:
        """Draw both heatmaps with matplotlib."""
        figures.paint_pictures(dict(zip(_SIDES, self.images, strict=True)), axes, 2)
        axes.set_xlabel(_plain_text(self.result.value)[:60], fontsize=8)


class KMeansPanel(Panel):
    """k-means on both versions."""

    title = "k-means"
    css_class = "ew-k-means"
    description = "k-means on the original and on the transformed data, compared"
    about = (
        "k-means minimises Euclidean distances, so its result depends on units and on shear. Ringed dots are "
        "in another cluster after the map than before it."
    )

    def __init__(self, tools: tuple[Widget, ...], below: tuple[Widget, ...]) -> None:
        self.result = note("ew-result")
        super().__init__((self.result, *below), tools)

    def show(self, pair: KMeansPair) -> None:
        """Say how many objects change their cluster."""
        text = "waiting"
        if pair.agreement is not None:
            text = (
                f'<b class="ew-moved">{pair.moved.size}</b> of {len(pair.labels[0])} objects change their '
                f"cluster<br>adjusted Rand index of both results <b>{pair.agreement:z.3f}</b> · "
                f"{_CHANGED if pair.moved.size else _INVARIANT}"
            )
        assign(self.result, value=text)

    def paint(self, axes: "Axes") -> None:
        """Write the result with matplotlib."""
        lines = _plain_text(self.result.value).replace(" · ", "\n")
        axes.text(0.0, 0.6, lines, fontsize=9)
        axes.set_axis_off()


def _plain_text(html: str) -> str:
    """The text of a result, without markup."""
    return unescape(re.sub(r"<[^>]*>", "", html.replace("<br>", "\n")))


class MapControls(VBox):
    """Controls of the map.

    Parameters
    ----------
    post
        Brings a command to the event loop.
    on_change
        Called there after each change.
    """

    def __init__(self, post: Post, on_change: Callable[[], None]) -> None:
        self.matrix: FloatArray = np.eye(2)
        self._on_change = on_change
        self._silence = Silence()
        self.presets = {
            name: button(name, f"ew-paper-{name}", hint, lambda name=name: post(lambda: self.choose(name)))  # type: ignore[misc]
            for name, hint in _PRESETS.items()
        }
        self.sliders: dict[str, FloatSlider | FloatLogSlider] = {}
        for name, (title, low, high, step, tooltip) in _SLIDERS.items():
            kind, value, shown = (FloatLogSlider, 1, ".3g") if "scale" in name else (FloatSlider, 0, ".2f")
            traits = {"min": low, "max": high, "step": step, "value": value, "readout_format": shown}
            css_class = f"ew-{name.replace('_', '-')} ew-slider"
            self.sliders[name] = make(kind, css_class, description=title, tooltip=tooltip, **traits)
        hint = "Changes the sign of the second column"
        self.mirror = make(Checkbox, "ew-mirror", description="mirror", indent=False, tooltip=hint)
        hint = "Two rows of two numbers; points are multiplied by it from the right"
        self.field = entry("matrix", format_matrix(self.matrix), parse_matrix, "ew-matrix", hint)
        self._controls = {**self.sliders, "mirrored": self.mirror}
        # Exact values of the controls, of which the page may show rounded ones.
        self._values: dict[str, Any] = {name: control.value for name, control in self._controls.items()}
        takes = {control: partial(self._take, name) for name, control in self._controls.items()}
        self._silence.commands(post, {**takes, self.field.control: self._take_matrix})
        label = note("ew-presets-label", "the paper's")
        presets = HBox((label, *self.presets.values()), **look("ew-presets"))
        super().__init__((presets, *self.sliders.values(), self.mirror, self.field), **look("ew-map"))

    @property
    def shift(self) -> tuple[float, float]:
        """What is added after the multiplication."""
        return self._values["shift_x"], self._values["shift_y"]

    def choose(self, name: str) -> None:
        """Take one of the paper's matrices, without a shift."""
        self.set(invariance.PAPER_MATRICES[name])

    def set(self, matrix: FloatArray, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        """Take a matrix and a shift."""
        self.matrix = parse_matrix(" ".join(map(repr, np.asarray(matrix, dtype=float).ravel().tolist())))
        self._values = values = {"shift_x": shift[0], "shift_y": shift[1], **asdict(Steps.of(self.matrix))}
        with self._silence:
            for name, slider in self.sliders.items():
                _, low, high, *_ = _SLIDERS[name]
                place = np.log10(values[name]) if "scale" in name else values[name]
                low, high = min(low, np.floor(place)), max(high, np.ceil(place))
                # In this order no value is ever outside: a page would clip it, and send that back.
                assign(slider, min=min(low, slider.min), max=max(high, slider.max))
                assign(slider, value=values[name])
                assign(slider, min=low, max=high)
            assign(self.mirror, value=values["mirrored"])
        self._announce()

    def _take(self, name: str) -> None:
        """Take the value of a slider or the box, unless the page has only rounded it."""
        control, given = self._controls[name], self._values[name]
        moved = np.log10(control.value / given) if "scale" in name else control.value - given
        if abs(moved) > 0.5 * getattr(control, "step", 0.0) + 1e-9:
            self._values[name] = control.value
            self.matrix = Steps(**{field.name: self._values[field.name] for field in fields(Steps)}).matrix()
            self._announce()

    def _take_matrix(self) -> None:
        if self.field.control.value == format_matrix(self.matrix):
            self.field.problem = ""
            return
        with suppress(ValueError):  # it is explained below the field
            self.set(self.field.read(), self.shift)

    def _announce(self) -> None:
        """Write the matrix, and say that it has changed."""
        with self._silence:
            assign(self.field.control, value=format_matrix(self.matrix))
        self.field.problem = ""
        self._on_change()


@dataclass(frozen=True)
class Steps:
    """Scales, shear, rotation in degrees, and whether the second column is mirrored."""

    scale_x: float = 1.0
    scale_y: float = 1.0
    shear: float = 0.0
    rotation: float = 0.0
    mirrored: bool = False

    def matrix(self) -> FloatArray:
        """The matrix A that does all of them, from the right."""
        angle = np.deg2rad(self.rotation)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        scales = np.diag([self.scale_x, -self.scale_y if self.mirrored else self.scale_y])
        return scales @ np.array([[1.0, 0.0], [self.shear, 1.0]]) @ turn

    @classmethod
    def of(cls, matrix: FloatArray) -> "Steps":
        """Find the steps of a matrix."""
        scale_x = float(np.hypot(*matrix[0]))
        across = matrix[0] / scale_x
        scale_y = float((matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]) / scale_x)
        return cls(
            scale_x=scale_x,
            scale_y=abs(scale_y),
            shear=float(matrix[1] @ across / scale_y) + 0.0,
            rotation=float(np.rad2deg(np.arctan2(across[1], across[0]))) + 0.0,
            mirrored=scale_y < 0.0,
        )


def parse_matrix(text: str) -> FloatArray:
    """Read an invertible 2 × 2 matrix such as ``4.1 2.1; 1.9 1.1`` or ``[[4.1, 2.1], [1.9, 1.1]]``."""
    numbers = []
    for part in filter(None, re.split(r"[\s,;\[\]()]+", text)):
        try:
            numbers.append(float(part))
        except ValueError:
            raise ValueError(f"{part!r} is not a number; write for example 4.1 2.1; 1.9 1.1.") from None
    if len(numbers) != 4:
        raise ValueError(
            f"a matrix of two rows and two columns has 4 numbers, got {len(numbers)}; write for example "
            "4.1 2.1; 1.9 1.1."
        )
    matrix = np.array(numbers).reshape(2, 2)
    if not np.all(np.abs(matrix) <= _LARGEST):
        raise ValueError(f"the numbers must be finite and at most {_LARGEST:g} in size.")
    values = np.linalg.svd(matrix, compute_uv=False)
    if values[1] <= _LEAST_CONDITION * values[0]:
        raise ValueError(
            "this matrix is singular, or nearly so: it maps the plane onto a line and cannot be inverted. "
            "Change one of its numbers."
        )
    return matrix


def format_matrix(matrix: FloatArray) -> str:
    """Write a matrix as `parse_matrix` reads it, with three digits."""
    rows = (" ".join(f"{value:.3g}" for value in np.where(np.abs(row) < 1e-12, 0.0, row)) for row in matrix)
    return "; ".join(rows)
