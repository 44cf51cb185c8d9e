"""Objects in two of their features, coloured by cluster."""

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.plots.canvas import figure_of, new_figure, styled
from ewens_widgets.analysis.plots.ellipses import averaged_ellipses, projection_onto
from ewens_widgets.analysis.plots.palette import MARKERS, SINGLETON, by_size, cluster_colours, cluster_markers
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import check_data, column_names
from ewens_widgets.partition import check_labels

__all__ = ["chosen_columns", "feature_names", "plot_scatter", "projections", "two_features"]

FloatArray = NDArray[np.float64]

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ewens_widgets.sampling.trace import Trace

_MOST_NAMES = 10
_MOST_COMPONENTS = 6
_RINGS = (1.2, 0.8)  # widths of the inner and of the outer ellipse


@styled
def plot_scatter(
    X: ArrayLike | Dataset,
    labels: ArrayLike | None = None,
    *,
    features: Sequence[int | str] | str = "auto",
    true: ArrayLike | None = None,
    equal: bool = False,
    ellipses: "Trace | None" = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw the objects as points, a colour for each cluster; singletons are grey.

    Parameters
    ----------
    X
        Data, n objects by d features: an array, a `Dataset` or a DataFrame.
    labels
        A partition; known labels of a `Dataset` by default.
    features
        Two columns, by number or name, or ``"pca"`` for the first two principal components of the
        standardised columns; ``"auto"`` takes the columns as they are if there are two, and principal
        components if there are more.
    true
        Known classes; they decide the marker, so that errors can be seen.
    equal
        Draw one unit equally long in both directions.
    ellipses
        A trace of these data: then each cluster has the ellipses that hold 50 and 90 % of a Gaussian with the
        centre and covariance that the trace's model gives it, averaged over the draws' parameters. With
        common shapes all are alike, with own shapes each is its own. None draws none.
    ax
        Axes to draw in; new ones by default.
    """
    points, names = two_features(X, features)
    if labels is None and isinstance(X, Dataset):
        labels = X.labels
    found = np.zeros(len(points), dtype=np.intp) if labels is None else check_labels(labels, len(points))
    axes = new_figure(4.2, 3.4).subplots() if ax is None else ax
    colours, shapes = cluster_colours(found), cluster_markers(found)
    classes = None if true is None else check_labels(true, len(points))
    for label, colour in enumerate(colours):
        members = np.flatnonzero(found == label)
        for kind in [None] if classes is None else np.unique(classes[members]).tolist():
            chosen = members if classes is None or kind is None else members[classes[members] == kind]
            marker = shapes[label] if kind is None else MARKERS[kind % len(MARKERS)]
            axes.scatter(
                points[chosen, 0],
                points[chosen, 1],
                s=16,
                color=colour,
                marker=marker,
                linewidths=0,
                alpha=0.9,
            )
    if ellipses is not None:
        _draw_ellipses(axes, ellipses, found, points, colours)
    if labels is not None:
        handles = _cluster_handles(found, colours, shapes if classes is None else None)
        if classes is not None:
            handles += _class_handles(true, X)
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.2, borderaxespad=0.0
        )
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    if equal:
        axes.set_aspect("equal", adjustable="datalim")
    return figure_of(axes)


def _draw_ellipses(
    axes: "Axes", trace: "Trace", labels: NDArray[np.intp], points: FloatArray, colours: Sequence[str]
) -> None:
    """Draw the outlines of the clusters, where what is shown is a function of the features."""
    if trace.n_objects != len(points):
        raise ValueError(f"the trace for the ellipses is of {trace.n_objects} objects, not {len(points)}.")
    projection = projection_onto(trace.posterior, points)
    if projection is None:
        raise ValueError(
            "there are no ellipses in this plane: it shows something else than features of the data that the "
            "trace is of. Give the data that were sampled, and two features or principal components."
        )
    made = averaged_ellipses(trace, labels, projection)
    for cluster, rings in zip(made.clusters.tolist(), made.outlines, strict=True):
        for ring, width in zip(rings, _RINGS, strict=True):
            axes.plot(ring[:, 0], ring[:, 1], color=colours[cluster], linewidth=width)


def two_features(
    X: ArrayLike | Dataset, features: Sequence[int | str] | str = "auto"
) -> tuple[FloatArray, tuple[str, str]]:
    """Two columns of the data, or principal components, with their names."""
    matrix = check_data(X)
    names = feature_names(X, matrix.shape[1])
    if features == "auto":
        features = "pca" if matrix.shape[1] > 2 else range(matrix.shape[1])
    if isinstance(features, str):
        if features != "pca":
            raise ValueError(f'features must be two columns, "auto" or "pca"; got {features!r}.')
        scores, shares = _principal_components(matrix)
        # Two columns even if all but one are constant.
        (one, other), scores = np.append(shares, 0.0)[:2], np.pad(scores, ((0, 0), (0, 1)))[:, :2]
        return scores, (f"principal component 1 ({one:.0%})", f"principal component 2 ({other:.0%})")
    columns = chosen_columns(features, names)
    if len(columns) == 1:
        # One feature is drawn against the number of the object, so that points do not cover each other.
        return np.column_stack([matrix[:, columns[0]], np.arange(len(matrix))]), (names[columns[0]], "object")
    if len(columns) != 2 or not all(-matrix.shape[1] <= column < matrix.shape[1] for column in columns):
        raise ValueError(f"features must be two of the {matrix.shape[1]} columns; got {columns}.")
    return matrix[:, columns], (names[columns[0]], names[columns[1]])


def chosen_columns(features: Iterable[int | str], names: Sequence[str]) -> list[int]:
    """Numbers of the columns that are meant, each given by its number or its name."""
    columns = []
    for feature in features:
        if isinstance(feature, str) and feature not in names:
            near = difflib.get_close_matches(feature, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names[:10]))}."
            raise ValueError(f"features: there is no column {feature!r}; {hint}")
        columns.append(names.index(feature) if isinstance(feature, str) else int(feature))
    return columns


def feature_names(X: ArrayLike | Dataset, n_features: int) -> tuple[str, ...]:
    """Names of the columns, or numbers for data without."""
    names = column_names(X)
    if names is not None:
        return names
    return tuple(f"feature {number}" for number in range(1, n_features + 1))


def projections(data: Dataset) -> dict[str, FloatArray]:
    """One-dimensional pictures of the data by name: principal components of standardised columns, columns.

    For two columns these come first, as they are the whole truth.
    """
    X = data.X
    columns = {name: X[:, place] for place, name in enumerate(data.feature_names)}
    scores = _principal_components(X)[0]
    count = min(_MOST_COMPONENTS, scores.shape[1]) if scores.shape[1] > 1 else 0
    components = {f"PC {k + 1}": scores[:, k] for k in range(count)}
    row = {"row number": np.arange(1.0, len(X) + 1.0)}
    return {**columns, **components, **row} if X.shape[1] <= 2 else {**components, **columns, **row}


def _principal_components(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores of the standardised columns, constant ones left out, and shares of the variance."""
    spread = matrix.std(axis=0)
    standard = (matrix - matrix.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
    left, singular, _ = np.linalg.svd(standard, full_matrices=False)
    scores = left * singular
    # The linear algebra library may choose any sign; fix it, or pictures flip between machines.
    largest = scores[np.argmax(np.abs(scores), axis=0), np.arange(scores.shape[1])]
    return scores * np.where(largest < 0, -1.0, 1.0), singular**2 / np.sum(singular**2)


def _cluster_handles(
    labels: NDArray[np.intp], colours: Sequence[str], shapes: Sequence[str] | None
) -> list["Line2D"]:
    """Entries of the legend for the clusters, the largest first."""
    sizes = np.bincount(labels)
    order = by_size(sizes)
    handles = [
        _handle(f"{sizes[label]} objects", colours[label], "o" if shapes is None else shapes[label])
        for label in order[:_MOST_NAMES]
    ]
    if len(order) > _MOST_NAMES:
        handles.append(_handle(f"… {len(order) - _MOST_NAMES} more clusters", "none", "none"))
    alone = int(np.sum(sizes == 1))
    if alone:
        handles.append(_handle("1 singleton" if alone == 1 else f"{alone} singletons", SINGLETON, "o"))
    return handles


def _class_handles(true: ArrayLike | None, X: ArrayLike | Dataset) -> list["Line2D"]:
    """Entries of the legend for the known classes, which are told by their markers."""
    given = np.asarray(true)
    names = [str(given[place]) for place in np.sort(np.unique(given, return_index=True)[1])]
    if isinstance(X, Dataset) and X.label_names is not None and given.dtype.kind in "iu":
        names = [X.label_names[int(name)] for name in names]
    return [
        _handle(f"true: {name}", "0.5", MARKERS[place % len(MARKERS)]) for place, name in enumerate(names)
    ]


def _handle(name: str, colour: str, marker: str) -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=4, label=name)
