r"""Objects in two of their features, coloured by cluster, and the ellipses of the clusters.

A cluster has a centre c and a covariance C in canonical coordinates y (`Posterior.cluster_shapes`). What a
picture shows, two features or two principal components in the user's units, is an affine function of them,
:math:`x = a + y P`, so there the cluster has the centre :math:`a + c P` and the covariance :math:`P^T C P`.
Its ellipse with *content* p holds the share p of a Gaussian: in two dimensions, the points up to a distance
of :math:`\sqrt{-2 \log(1 - p)}` standard deviations from the centre. The live scatter shares them.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.plots.palette import (
    MARKERS,
    SINGLETON,
    by_size,
    cluster_colours,
    cluster_markers,
    figure_of,
    new_figure,
    styled,
)
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import check_data, column_names
from ewens_widgets.model.own_shapes import Shapes
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels

FloatArray = NDArray[np.float64]

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ewens_widgets.sampling.trace import Trace

_MOST_NAMES = 10
_MOST_COMPONENTS = 6
_AVERAGED = 50  # draws, evenly spaced along the chain, whose ellipses are averaged
_RINGS = (1.2, 0.8)  # widths of the inner and of the outer ellipse

CONTENTS = (0.5, 0.9)
"""Shares of a cluster that its ellipses hold."""

_LINEAR = 1e-4  # Share of the spread of an axis below which a difference is rounding.


class ShownAxes(NamedTuple):
    """What axes of a picture show: values (n, or n × 2), and the weights of the features in them (d, d × 2).

    The weights are None where something else is shown, such as the number of the row.
    """

    values: FloatArray
    weights: FloatArray | None


class Projection(NamedTuple):
    """The affine map from canonical coordinates to shown ones, x = offset + y @ matrix."""

    offset: FloatArray
    matrix: FloatArray


class Ellipses(NamedTuple):
    """Ellipses of the clusters that are large enough to have one.

    Attributes
    ----------
    clusters
        Canonical labels of these clusters (E).
    centres
        Their centres in shown coordinates (E × 2).
    outlines
        Points on the ellipses, the first one repeated at the end (E × contents × points × 2).
    """

    clusters: NDArray[np.intp]
    centres: FloatArray
    outlines: FloatArray


@styled
def plot_scatter(
    X: ArrayLike | Dataset,
    labels: ArrayLike | None = None,
    *,
    features: Sequence[int | str] | str = "auto",
    true: ArrayLike | None = None,
    like: ArrayLike | None = None,
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
    like
        Another partition of the objects, whose colours are kept: clusters that match have the same colour in
        both pictures.
    equal
        Draw one unit equally long in both directions.
    ellipses
        A trace of these data: then each cluster has the ellipses that hold 50 and 90 % of a Gaussian with the
        centre and covariance that the trace's model gives it, averaged over the draws' parameters. With
        common shapes all are alike, with own shapes each is its own. None draws none.
    ax
        Axes to draw in; new ones by default.
    """
    (points, weights), names = two_features(X, features)
    if labels is None and isinstance(X, Dataset):
        labels = X.labels
    found = np.zeros(len(points), dtype=np.intp) if labels is None else check_labels(labels, len(points))
    axes = new_figure(4.2, 3.4).subplots() if ax is None else ax
    colours, shapes = cluster_colours(found, like), cluster_markers(found)
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
        _draw_ellipses(axes, ellipses, found, ShownAxes(points, weights), colours)
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
    axes: "Axes", trace: "Trace", labels: NDArray[np.intp], shown: ShownAxes, colours: Sequence[str]
) -> None:
    """Draw the outlines of the clusters, averaged over draws, where axes show functions of the features."""
    if trace.n_objects != len(shown.values):
        raise ValueError(
            f"the trace for the ellipses is of {trace.n_objects} objects, not {len(shown.values)}."
        )
    projection = projection_onto(trace.posterior, *shown)
    if projection is None:
        raise ValueError(
            "there are no ellipses in this plane: it shows something else than features of the data that "
            "the trace is of. Give the data that were sampled, and two features or principal components."
        )
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    drawn = np.unique(np.linspace(0, len(trace) - 1, min(_AVERAGED, len(trace))).astype(np.intp))
    theta, nu, sigma = trace.theta, trace.column("nu"), trace.column("sigma")
    each = [trace.posterior.cluster_shapes(labels, float(theta[k]), float(nu[k]), sigma[k]) for k in drawn]
    averages = Shapes(*(np.mean(values, axis=0) for values in zip(*each, strict=True)))
    made = outlines(averages, np.flatnonzero(np.bincount(labels) >= 2), projection)
    for cluster, rings in zip(made.clusters.tolist(), made.outlines, strict=True):
        for ring, width in zip(rings, _RINGS, strict=True):
            axes.plot(ring[:, 0], ring[:, 1], color=colours[cluster], linewidth=width)


def two_features(
    X: ArrayLike | Dataset, features: Sequence[int | str] | str = "auto"
) -> tuple[ShownAxes, tuple[str, str]]:
    """Two columns of the data, or principal components, with their names."""
    matrix = _filled(check_data(X, finite=False))
    n_features = matrix.shape[1]
    names = feature_names(X, n_features)
    if features == "auto":
        features = "pca" if n_features > 2 else range(n_features)
    if isinstance(features, str):
        if features != "pca":
            raise ValueError(f'features must be two columns, "auto" or "pca"; got {features!r}.')
        scores, weights, shares = _principal_components(matrix)
        # Two columns even if all but one are constant.
        one, other = np.append(shares, 0.0)[:2]
        scores, weights = (np.pad(values, ((0, 0), (0, 1)))[:, :2] for values in (scores, weights))
        titles = f"principal component 1 ({one:.0%})", f"principal component 2 ({other:.0%})"
        return ShownAxes(scores, weights), titles
    columns = chosen_columns(features, names)
    if len(columns) == 1:
        # One feature is drawn against the number of the object, so that points do not cover each other.
        points = np.column_stack([matrix[:, columns[0]], np.arange(len(matrix))])
        return ShownAxes(points, None), (names[columns[0]], "object")
    if len(columns) != 2 or not all(-n_features <= column < n_features for column in columns):
        raise ValueError(f"features must be two of the {n_features} columns; got {columns}.")
    weights = np.eye(n_features)[:, columns]
    return ShownAxes(matrix[:, columns], weights), (names[columns[0]], names[columns[1]])


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


def projections(data: Dataset) -> dict[str, ShownAxes]:
    """One-dimensional pictures of the data by name: principal components of standardised columns, columns.

    For two columns these come first, as they are the whole truth. Missing cells are drawn at the column's
    mean.
    """
    X = _filled(data.X)
    units = np.eye(X.shape[1])
    columns = {name: ShownAxes(X[:, place], units[place]) for place, name in enumerate(data.feature_names)}
    scores, weights, _ = _principal_components(X)
    count = min(_MOST_COMPONENTS, scores.shape[1]) if scores.shape[1] > 1 else 0
    components = {f"PC {k + 1}": ShownAxes(scores[:, k], weights[:, k]) for k in range(count)}
    row = {"row number": ShownAxes(np.arange(1.0, len(X) + 1.0), None)}
    return {**columns, **components, **row} if X.shape[1] <= 2 else {**components, **columns, **row}


def _filled(matrix: FloatArray) -> FloatArray:
    """The table with the mean of the column in missing cells, so that all objects can be drawn."""
    missing = np.isnan(matrix)
    return np.where(missing, np.nanmean(matrix, axis=0), matrix) if missing.any() else matrix


def _principal_components(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of the standardised columns, weights of the columns in them, and shares of the variance."""
    spread = matrix.std(axis=0)
    varying = spread > 0.0
    standard = (matrix - matrix.mean(axis=0))[:, varying] / spread[varying]
    left, singular, right = np.linalg.svd(standard, full_matrices=False)
    scores = left * singular
    # The linear algebra library may choose any sign; fix it, or pictures flip between machines.
    largest = scores[np.argmax(np.abs(scores), axis=0), np.arange(scores.shape[1])]
    signs = np.where(largest < 0, -1.0, 1.0)
    weights = np.zeros((matrix.shape[1], singular.size))
    weights[varying] = signs * right.T / spread[varying, None]
    return scores * signs, weights, singular**2 / np.sum(singular**2)


def projection_onto(posterior: Posterior, shown: ArrayLike, weights: FloatArray | None) -> Projection | None:
    """Find the map from canonical coordinates to what a picture shows of the same objects.

    Parameters
    ----------
    posterior
        Holds the canonical coordinates (n × d), and the map to them.
    shown
        ShownAxes coordinates of the objects (n × 2), e.g. two features or principal components.
    weights
        Weights of the features in these (d × 2), as `two_features` returns them.

    Returns
    -------
    The map, or None where there is none: an axis is no function of the features (None for the weights), or
    the features are not those of the posterior's data.
    """
    values = np.asarray(shown, dtype=np.float64)
    if weights is None:
        return None
    offset = values.mean(axis=0)
    centred = values - offset
    most = _LINEAR * np.linalg.norm(centred, axis=0)
    # A picture of a posterior whose data are not at hand shows the coordinates themselves.
    matrices = [posterior.map.pulled_back(weights)] if len(weights) == posterior.data_shape[1] else []
    matrices += [weights] if len(weights) == posterior.n_features else []
    for matrix in matrices:
        if np.all(np.linalg.norm(centred - posterior.coordinates @ matrix, axis=0) <= most):
            return Projection(offset, matrix)
    return None


def outlines(
    shapes: Shapes, clusters: NDArray[np.intp], projection: Projection, n_points: int = 48
) -> Ellipses:
    """Ellipses of chosen clusters with known centres and covariances in canonical coordinates."""
    offset, matrix = projection
    centres = offset + shapes.centres[clusters] @ matrix
    covariances = matrix.T @ shapes.covariances[clusters] @ matrix
    # A root by hand: flat ellipses, of the same feature on both axes, have no Cholesky decomposition.
    width = np.sqrt(np.maximum(covariances[:, 0, 0], np.finfo(np.float64).tiny))
    slope = covariances[:, 0, 1] / width
    height = np.sqrt(np.maximum(covariances[:, 1, 1] - slope * slope, 0.0))
    angles = np.linspace(0.0, 2.0 * np.pi, n_points + 1)
    radii = np.sqrt(-2.0 * np.log1p(-np.array(CONTENTS)))
    circle = radii[:, None, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    across = width[:, None, None] * circle[..., 0]
    upwards = slope[:, None, None] * circle[..., 0] + height[:, None, None] * circle[..., 1]
    points = centres[:, None, None, :] + np.stack([across, upwards], axis=-1)
    return Ellipses(clusters, np.asarray(centres), np.asarray(points, dtype=np.float64))


def _cluster_handles(
    labels: NDArray[np.intp], colours: Sequence[str], shapes: Sequence[str] | None
) -> list["Line2D"]:
    """Entries of the legend for the clusters, the largest first."""
    sizes = np.bincount(labels)
    order = by_size(sizes)
    markers = ["o"] * sizes.size if shapes is None else shapes
    handles = [
        _handle(f"{sizes[label]} objects", colours[label], markers[label]) for label in order[:_MOST_NAMES]
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
