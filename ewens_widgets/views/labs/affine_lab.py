"""The affine lab: change the coordinates of the data, and see whose answers change with them.

A lecturer moves a slider, or takes the paper's matrix, and asks the class who will give the same answer as
before. On the page are the data before and after, what k-means makes of both, and for each model the
posterior similarities of both side by side; the sentence on top says who survived.

The chains run in the background of the notebook, on the original and on the transformed data with the same
seed, a few milliseconds at a time. Whoever moves a slider starts them anew; the latest settings win. What is
computed, and what is said about it, is in `analysis.invariance`; here it is only wired to controls and
pictures.
"""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from ipywidgets import Dropdown, HBox, VBox
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.invariance import (
    MODELS,
    ChainSettings,
    Comparison,
    invariant_models,
    mapped,
    verdict,
)
from ewens_widgets.analysis.plots.palette import GREY, ClusterColours, colour_of
from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.datasets import LOADERS, Dataset, as_dataset
from ewens_widgets.model.checks import FloatArray, check_data
from ewens_widgets.playback import Tick, Worker
from ewens_widgets.views.base import Panel, assign, note
from ewens_widgets.views.fields import Field, entry, whole_number
from ewens_widgets.views.labs.affine_controls import MapControls
from ewens_widgets.views.labs.affine_panels import InvariancePanel, KMeansPanel, ScatterPanel
from ewens_widgets.views.page import STATUS, Dashboard, in_columns

__all__ = ["AffineLab"]

MOST_OBJECTS = 2000
"""With more objects the n × n pictures would no longer be live."""

_NO_CLASSES = 3  # clusters for k-means where no classes are known
_COLOURINGS = ("k-means", "known classes", "model I", "model II", "model III")


class AffineLab(Dashboard):
    """Shift, rotate, stretch and shear the data, and see which model's posterior survives.

    Model I survives shifts, rotations and one common scale, model II shifts and a scale for each column,
    model III every invertible map; k-means survives no more than model I.

    Parameters
    ----------
    data
        A `Dataset` or an array of at least two columns; the unit square by default. Two columns are mapped
        (the page lets choose which), the others stay as they are.
    matrix, shift
        The map to begin with: points y of the two columns become y A + a.
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
    >>> lab = ew.AffineLab(matrix=[[4.1, 1.1], [2.1, 1.1]])
    >>> lab.run_sync()
    >>> [lab.differences()[model] < 1e-6 for model in ("I", "II", "III")]
    [False, False, True]
    """

    css_class = "ew-lab ew-affine-lab ew-fills"
    stylesheet = Path(__file__).with_name("affine_lab.css")

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
        self._run = ChainSettings(
            draws=check_count("draws", draws, 1),
            burn_in=check_count("burn_in", burn_in, 0),
            concentration=check_positive("concentration", concentration),
            seed=check_count("seed", seed, 0),
        )
        self._dataset = _checked_dataset(data)
        self._datasets = {self._dataset.name: self._dataset}
        self._is_silent = False
        self._colours = ClusterColours()
        count = (
            _clusters_of(self._dataset) if n_clusters is None else check_count("n_clusters", n_clusters, 1)
        )
        self._comparison = Comparison(self._dataset.X, self._dataset.X, self._run, count)
        self._worker = Worker(self._comparison)
        super().__init__(self._worker, self._worker.post)
        self._build(count)
        self.lay_out(self.sentence, self._columns(), names=self._names())
        self._offer_columns()
        self.attach(self)
        self.transform(np.eye(2) if matrix is None else matrix, shift)

    def _build(self, count: int) -> None:
        post = self.post
        self.controls = MapControls(post, self._changed)
        self.data = Dropdown(
            options=[*self._datasets, *(name for name in LOADERS if name not in self._datasets)],
            value=self._dataset.name,
            description="data",
            tooltip="Data set to transform",
        )
        self.data_field = Field(self.data, str, "ew-data")
        self.data.observe(lambda _: None if self._is_silent else post(self._choose_data), "value")
        self.features = tuple(
            Dropdown(description=name, tooltip=f"Column that is the {name} of the plane")
            for name in ("x", "y")
        )
        for chooser, name in zip(self.features, ("x", "y"), strict=True):
            chooser.add_class(f"ew-{name}-feature")
            chooser.observe(lambda _: None if self._is_silent else post(self._changed), "value")
        self.feature_field = Field(self.features[1], lambda _: self.columns, "ew-second-feature")
        self.feature_box = VBox((Field(self.features[0], str, "ew-first-feature"), self.feature_field))
        self.seed = entry(
            "seed", str(self._run.seed), whole_number("seed", 0), "ew-seed", "The same for both versions"
        )
        self.k = entry(
            "k", str(count), whole_number("k", 1, 50), "ew-k", "Number of clusters that k-means looks for"
        )
        for field in (self.seed, self.k):
            field.control.observe(lambda _: None if self._is_silent else post(self._changed), "value")
        self.colouring = Dropdown(options=_COLOURINGS, tooltip="What the colours of the points show")
        self.colouring.add_class("ew-chooser")
        self.colouring.add_class("ew-colouring")
        self.colouring.observe(lambda _: post(self._colour), "value")
        self.original = ScatterPanel("Original", "ew-original-data")
        self.transformed = ScatterPanel("Transformed", "ew-transformed-data")
        self.models = {model: InvariancePanel(model) for model in MODELS}
        help_text = note(
            "ew-note",
            "Black: always in one cluster. White: never. Both pictures of a model have the same order of "
            "objects. Ringed points change their k-means cluster.",
        )
        self.k_means = KMeansPanel((note("ew-hint", "colours show"), self.colouring), (self.k, help_text))
        self.sentence = note("ew-verdict")

    def _columns(self) -> HBox:
        top = HBox((self.original, self.transformed, self.k_means))
        bottom = HBox(tuple(self.models.values()))
        for row in (top, bottom):
            row.add_class("ew-lab-row")
        settings = (self.data_field, self.feature_box, self.controls, self.seed)
        return in_columns({"ew-settings": settings, "ew-lab-main": (top, bottom)})

    def _names(self) -> dict[str, dict[str, str]]:
        names = {".ew-verdict": STATUS}
        for model in MODELS:
            for side in ("original", "transformed"):
                label = f"heatmap of the {side} data under model {model}"
                names[f".ew-model-{model} .ew-{side}"] = {"role": "img", "aria-label": label, "alt": label}
        return names

    @property
    def dataset(self) -> Dataset:
        """The original data."""
        return self._dataset

    @property
    def matrix(self) -> FloatArray:
        """The 2 × 2 matrix that the two columns are multiplied by, from the right."""
        return self.controls.matrix

    @property
    def columns(self) -> tuple[int, int]:
        """The two columns that are mapped; choosing one twice raises `ValueError`."""
        names = self._dataset.feature_names
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

    @property
    def k_means_agreement(self) -> float | None:
        """Adjusted Rand index of k-means on both versions; None before it has been found."""
        return self._comparison.k_means.agreement

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

    def status_line(self) -> str:
        """Which models survived, in words."""
        if self._worker.error is not None:
            return self._worker.status.message
        return verdict(self._comparison, invariant_models(self.matrix, self._dataset.n_features))

    def caption(self) -> str:
        """Heading of the still picture."""
        return self.status_line()

    def _choose_data(self) -> None:
        name = str(self.data.value)
        try:
            dataset = self._datasets[name] if name in self._datasets else _checked_dataset(LOADERS[name]())
        except (ValueError, TypeError, OSError) as error:
            self.data_field.problem = str(error)
            return
        self.data_field.problem = ""
        self._datasets[name] = self._dataset = dataset
        self._offer_columns()
        self._colours.clear()
        self._is_silent = True
        assign(self.k.control, value=str(_clusters_of(dataset)))
        self._is_silent = False
        self._changed()

    def _offer_columns(self) -> None:
        names = list(self._dataset.feature_names)
        self._is_silent = True
        for place, chooser in enumerate(self.features):
            assign(chooser, options=names, value=names[place])
        self._is_silent = False
        assign(self.feature_box.layout, display="none" if len(names) == 2 else "")

    def _changed(self) -> None:
        """Start anew with what the page says; if it cannot be used, the problem is shown beside it."""
        try:
            columns, seed, count = self.feature_field.read(), self.seed.read(), self.k.read()
        except ValueError:
            return
        X = self._dataset.X
        before: Comparison | None = self._comparison
        if seed != self._run.seed or self._comparison.original is not X:
            self._run = ChainSettings(self._run.draws, self._run.burn_in, self._run.concentration, seed)
            before = None
        transformed = mapped(X, columns, self.matrix, self.controls.shift)
        self._comparison = Comparison(X, transformed, self._run, count, before)
        self.original.place(X[:, columns])
        self.transformed.place(transformed[:, columns])
        self._worker.replace(self._comparison)
        if self._worker.has_loop:
            self._worker.play()

    def show(self, tick: Tick) -> None:  # noqa: ARG002 - the state itself is shown
        """Show where the chains are."""
        comparison = self._comparison
        self.k_means.show(comparison.k_means)
        for model, panel in self.models.items():
            panel.show(comparison.models[model])
        self._colour()
        # Last: whoever reads the verdict sees the pictures that it is about.
        assign(self.sentence, value=escape(self.status_line()))

    def _colour(self) -> None:
        labels = self._labels()
        moved = np.empty(0, dtype=np.intp)
        for side, panel in enumerate((self.original, self.transformed)):
            if labels is None:
                panel.colour([GREY], moved)
                continue
            colours = self._colours.assign(labels[side])
            if self.colouring.value == "k-means":
                moved = self._comparison.k_means.moved
            panel.colour([colour_of(colour) for colour in colours], moved if side else moved[:0])

    def _labels(self) -> tuple[NDArray[Any], ...] | None:
        """Labels on display, for the original and the transformed data."""
        kind = self.colouring.value
        if kind == "known classes":
            known = self._dataset.labels
            return None if known is None else (known, known)
        if kind == "k-means":
            return self._comparison.k_means.labels or None
        return self._comparison.models[kind.removeprefix("model ")].last_labels or None

    def __repr__(self) -> str:
        return f"AffineLab({self._dataset.name!r}: {self.status_line()})"


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


def _clusters_of(dataset: Dataset) -> int:
    return _NO_CLASSES if dataset.labels is None else len(np.unique(dataset.labels))
