r"""Does the model fit? Signs of misfit, and what to change.

Chains that agree show that the posterior was sampled. They do not show that the model fits: it assumes
Gaussian clusters, and describes others by several Gaussian components. `trace.check()` examines the groups of
`trace.answer()`.

**Within clusters.** Rows are centred and whitened by the covariance of their cluster, which is pooled towards
that of all clusters with the weight of 2d rows. Of the whitened residuals z (d numbers each),

.. math:: s_b = \frac1{n_b} \sum_{i \in b} z_i |z_i|^2, \qquad
          k_b = \frac1{n_b} \sum_{i \in b} \frac{|z_i|^4}{d (d + 2)} - 1

are the skewness (Móri, Rohatgi & Székely 1993) and the excess kurtosis (Mardia 1970) of cluster b. Both are
pooled over clusters, and compared with those of `SIMULATIONS` replicates, which are Gaussian clusters of the
same sizes. A finding needs both a distance of `BEYOND` standard deviations from the replicates and an
effect of relevant size. Light tails are no finding, since overlapping clusters are truncated where they meet.

**Between clusters.** For a common shape, :math:`\sum_b n_b |W^{-1/2} S_b W^{-1/2} - I|^2` measures how much
the covariances :math:`S_b` differ from the pooled one W, with the same comparison. Models I and II leave
out correlations within clusters, and I also differences between variances: these are looked for in W.

These statistics have the invariance of the model. Columns do not: for model III their examination needs the
data. In models I and II the coordinates are the columns, but without their names and zero points.

References: K. V. Mardia (1970), Biometrika 57, 519–530; T. F. Móri, V. K. Rohatgi & G. J. Székely (1993),
Theory Probab. Appl. 38, 547–551.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.findings import Finding, finding, html_table
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import (
    ModelName,
    check_data,
    column_names,
    dependence_text,
    dependent_columns,
    named_columns,
    repeated_values,
    skewness_of,
)
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import read_only

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior
    from ewens_widgets.sampling.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SIMULATIONS = 100
BEYOND = 5.0

_SKEWED = 0.4  # Mean skewness of a direction for a note …
_VERY_SKEWED = 0.8  # … and for a warning, since clusters are then split;
_SKEWED_COLUMN = 2.0  # skewness of one column for a warning.
_TILTED = 0.76 * 4.0  # Distance of means from medians, in units of chance: four standard deviations.
_TAILED = 0.25  # Excess kurtosis, relative to a Gaussian's, for a note …
_HEAVY = 0.5  # … and for a warning, since tails then form clusters.
_UNLIKE = 0.4  # Difference of covariances, as a share of the pooled covariance, for a warning.
_CORRELATED = 0.5  # Correlation within clusters under model II for a warning …
_UNEVEN = 4.0  # … and ratio of variances under model I.
_FEWEST = 8  # Rows that a cluster needs to be examined.
_MOST_ROWS = 5_000  # More rows are thinned.
_NOTHING = 1e-8  # Share of the variance within clusters below which they count as constant in a direction.
_DECIDES = 0.7  # Least share of a column's variance between clusters if it determines them …
_SILENT = 0.1  # … and the largest share for the other columns together.
_FOREIGN = 1e-3  # Share of the squared coordinates by which other data differ.
_MOST_NAMED = 8


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """What `trace.check()` found; print it, or show it in a notebook.

    Attributes
    ----------
    findings
        Signs of misfit: warnings first, then notes.
    labels
        The clusters that were examined; −1 for objects in small clusters.
    knows_columns
        Whether the columns were examined too: model III needs the data for that.
    knows_forms
        Whether clusters have enough rows to examine their form.
    """

    findings: tuple[Finding, ...]
    labels: IntArray = field(repr=False)
    knows_columns: bool
    knows_forms: bool

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings after which the number of clusters is unreliable."""
        return tuple(found for found in self.findings if found.severity == "warning")

    @property
    def fits(self) -> bool:
        """Whether there is no warning; notes do not count."""
        return not self.warnings

    @property
    def headline(self) -> str:
        """The outcome as a sentence."""
        if self.fits:
            return "No sign of misfit was found."
        return "The model does not fit these data: the number of clusters is unreliable."

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was not examined, and why."""
        left_out = []
        if not self.knows_forms:
            left_out.append("The clusters have too few rows to examine their form in so many columns.")
        if not self.knows_columns:
            left_out.append("The columns were not examined: model III needs the data for that, check(data).")
        return tuple(left_out)

    def __str__(self) -> str:
        lines = [self.headline]
        for found in self.findings:
            lines += [f"- {found.severity}: {found.sentence}", f"  → {found.way_out}"]
        return "\n".join([*lines, *self.remarks])

    def _repr_html_(self) -> str:
        rows = [(found.severity, found.sentence, found.way_out) for found in self.findings]
        table = html_table([("", "What was found", "What to do"), *rows])
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self.remarks)
        return f"<div><p><strong>{escape(self.headline)}</strong></p>{table}{remarks}</div>"


def check(trace: "Trace", data: ArrayLike | Dataset | None = None) -> ModelCheck:
    """Examine whether clusters have the form that the model assumes, and whether columns are misleading.

    Parameters
    ----------
    trace
        Draws of a chain, or of several that were pooled.
    data
        The data that were clustered, in their own units: then findings have the names of the columns,
        logarithms of positive columns are tried, and columns can be examined under model III too.
    """
    if not len(trace):
        raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")
    posterior = trace.best_posterior
    columns, names = _columns(posterior, data)
    labels = _labels(trace)
    clusters = _large_clusters(posterior, labels)
    found = [] if clusters is None else [*_within(posterior, clusters)]
    if columns is not None:
        is_skewed = any((each.kind, each.severity) == ("skewness", "warning") for each in found)
        about = [
            *_dependent(columns, names),
            *_few_values(columns, names),
            *_deciding(columns, labels, names),
        ]
        skewed = [*_skewed(columns, labels, names, data is not None, is_skewed)]
        if skewed:
            found = [
                each for each in found if each.kind != "skewness"
            ]  # the findings about columns are more precise
        found += [*about, *skewed]
    found.sort(key=lambda each: each.severity != "warning")
    return ModelCheck(tuple(found), read_only(labels), columns is not None, clusters is not None)


def _columns(
    posterior: "Posterior", data: ArrayLike | Dataset | None
) -> tuple[FloatArray | None, tuple[str, ...] | None]:
    """Columns to examine, and their names; refuse data that are not those of the posterior."""
    Y = posterior.coordinates
    if data is None:
        return (None if posterior.model == "III" else Y), None
    matrix, columns = check_data(data, finite=False), posterior.map.columns
    if matrix.shape != posterior.data_shape:
        n_rows, n_columns = posterior.data_shape
        raise ValueError(f"the trace is of {n_rows} × {n_columns} data; got {matrix.shape}.")
    if np.nansum((posterior.map(matrix) - Y) ** 2) > _FOREIGN * np.sum(Y * Y):
        raise ValueError(
            "these are not the data that the trace is of: give the same rows and columns, in the same units."
        )
    names = column_names(data)
    numbers = posterior.numbers_of(matrix).copy()
    numbers[tuple(posterior.gaps.T)] = posterior.imputed_values(Y[tuple(posterior.gaps.T)])
    if columns is None:
        return numbers, names
    return numbers, tuple(posterior.columns.kinds[place].name for place in columns)


def _labels(trace: "Trace") -> IntArray:
    """Groups of the answer, −1 in small clusters; the clusters of the best draw if memory is short."""
    try:
        found = trace.answer()
    except TooLargeError:
        return trace.best.copy()
    labels = found.labels.copy()
    labels[found.small_clusters] = -1
    return labels


class _CheckedClusters(NamedTuple):
    """Rows in clusters that are large enough, centred: residuals, labels 0 … K − 1, and row numbers."""

    residuals: FloatArray
    labels: IntArray
    rows: IntArray

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.labels)

    @property
    def freedom(self) -> int:
        return self.labels.size - self.sizes.size


def _centred_clusters(values: FloatArray, labels: IntArray, fewest: int = _FEWEST) -> _CheckedClusters | None:
    """Subtract the clusters' means, after thinning many rows; None if no cluster is large enough."""
    rows = np.flatnonzero(labels >= 0)
    rows = rows[:: -(-rows.size // _MOST_ROWS)] if rows.size else rows
    sizes = np.bincount(labels[rows]) if rows.size else np.zeros(1, dtype=np.intp)
    rows = rows[sizes[labels[rows]] >= fewest]
    return _centred_rows(values[rows], canonical_labels(labels[rows]), rows) if rows.size else None


def _centred_rows(values: FloatArray, labels: IntArray, rows: IntArray) -> _CheckedClusters:
    sums = np.column_stack([np.bincount(labels, weights=column) for column in values.T])
    return _CheckedClusters(values - (sums / np.bincount(labels)[:, None])[labels], labels, rows)


def _covariances(clusters: _CheckedClusters) -> tuple[FloatArray, FloatArray]:
    """Covariance within clusters, pooled (d × d), and of each (K × d × d)."""
    Z, sizes = clusters.residuals, clusters.sizes
    scatters = np.empty((sizes.size, Z.shape[1], Z.shape[1]))
    for cluster in range(sizes.size):
        members = Z[clusters.labels == cluster]
        scatters[cluster] = members.T @ members
    pooled = scatters.sum(axis=0) / max(clusters.freedom, 1)
    return pooled, scatters / (sizes - 1.0)[:, None, None]


class _Statistics(NamedTuple):
    """Statistics compared with replicates; the larger, the worse the model fits."""

    skewness: float
    kurtosis: float
    unlike: float
    farthest: float


def _whitened(clusters: _CheckedClusters) -> FloatArray:
    """Residuals whitened by the covariance of their cluster, pooled towards that of all."""
    Z, sizes = clusters.residuals, clusters.sizes
    d = Z.shape[1]
    pooled, each = _covariances(clusters)
    weight = 2.0 * d
    found = np.empty_like(Z)
    for cluster, size in enumerate(sizes):
        members = clusters.labels == cluster
        shape = (weight * pooled + (size - 1.0) * each[cluster]) / (weight + size - 1.0)
        root = np.linalg.cholesky(shape + 1e-12 * np.trace(shape) / d * np.eye(d))
        found[members] = np.linalg.solve(root, Z[members].T).T
    return found


def _unlike(clusters: _CheckedClusters, model: ModelName) -> float:
    """Difference of covariances, in the model's form, from the pooled one; a share, weighted by sizes."""
    pooled, each = _covariances(clusters)
    sizes = clusters.sizes
    if model == "III":
        d = pooled.shape[0]
        root = np.linalg.cholesky(pooled + 1e-12 * np.trace(pooled) / d * np.eye(d))
        half = np.linalg.solve(root, each)
        gaps = np.linalg.solve(root, np.swapaxes(half, 1, 2)) - np.eye(d)
        squares = np.sum(gaps * gaps, axis=(1, 2)) / d
    elif model == "II":
        gaps = np.diagonal(each, axis1=1, axis2=2) / np.maximum(np.diag(pooled), 1e-300) - 1.0
        squares = np.mean(gaps * gaps, axis=1)
    else:
        squares = (np.trace(each, axis1=1, axis2=2) / np.trace(pooled) - 1.0) ** 2
    return float(sizes @ squares / sizes.sum())


def _statistics(clusters: _CheckedClusters, model: ModelName) -> tuple[_Statistics, FloatArray]:
    """The statistics, and the squared length of each whitened residual."""
    Z = _whitened(clusters)
    d, sizes = Z.shape[1], clusters.sizes
    lengths = np.sum(Z * Z, axis=1)
    # A few distant rows would make any cluster look skewed, so their lengths are capped.
    capped = np.minimum(lengths, d + 4.0 * np.sqrt(2.0 * d))
    scale = capped * np.sqrt(np.divide(capped, lengths, out=np.ones_like(lengths), where=lengths > 0.0))
    moments = np.column_stack([np.bincount(clusters.labels, weights=column) for column in Z.T * scale])
    skewness = float(np.sum(moments * moments / sizes[:, None]) / (sizes.sum() * d))
    kurtosis = float(np.mean(lengths * lengths) / (d * (d + 2.0)) - 1.0)
    return _Statistics(skewness, kurtosis, _unlike(clusters, model), float(lengths.max())), lengths


def _simulated(clusters: _CheckedClusters, model: ModelName) -> FloatArray:
    """The statistics of replicates: Gaussian clusters of the same sizes, a row each, from a fixed seed."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(SIMULATIONS):
        values = rng.normal(size=clusters.residuals.shape)
        drawn = _centred_rows(values, clusters.labels, clusters.rows)
        found.append(_statistics(drawn, model)[0])
    return np.asarray(found, dtype=np.float64)


def _large_clusters(posterior: "Posterior", labels: IntArray) -> _CheckedClusters | None:
    """Clusters with enough rows for a covariance of all columns, or None."""
    clusters = _centred_clusters(posterior.coordinates, labels)
    return clusters if clusters is not None and clusters.freedom > posterior.n_features else None


def _within(posterior: "Posterior", clusters: _CheckedClusters) -> Iterator[Finding]:
    """Findings within clusters, from the coordinates alone."""
    pooled, each = _covariances(clusters)
    n_clusters = clusters.sizes.size
    least = np.linalg.eigvalsh(each[clusters.sizes > len(pooled)])[:, 0].min(initial=np.inf)
    if n_clusters > 1 and min(least, np.linalg.eigvalsh(pooled)[0]) < _NOTHING:
        yield finding("constant")
        return  # the other statistics would be rounding error
    yield from _of_form(posterior, clusters, pooled)
    seen, lengths = _statistics(clusters, posterior.model)
    null = _simulated(clusters, posterior.model)
    middle, spread = null.mean(axis=0), null.std(axis=0) + 1e-12
    excess = _Statistics(*(np.asarray(seen) - middle).tolist())
    beyond = _Statistics(*((np.asarray(seen) - middle) / spread).tolist())
    effect = float(np.sqrt(max(excess.unlike, 0.0)))
    if posterior.shapes == "common" and n_clusters > 1 and beyond.unlike > BEYOND and effect > _UNLIKE:
        yield finding("shapes", effect=100 * effect, beyond=beyond.unlike)
    skewness = float(np.sqrt(max(excess.skewness, 0.0)))
    if skewness > _SKEWED and beyond.skewness > BEYOND:
        yield finding("skewness", None if skewness > _VERY_SKEWED else "note", size=skewness)
    if excess.kurtosis > _TAILED and beyond.kurtosis > BEYOND:
        yield finding("tails", None if excess.kurtosis > _HEAVY else "note", excess=100 * excess.kurtosis)
    far = np.flatnonzero(lengths > null[:, seen._fields.index("farthest")].max())
    if far.size:
        objects = clusters.rows[far[np.argsort(-lengths[far], kind="stable")]].tolist()
        shown = ", ".join(map(str, objects[:_MOST_NAMED])) + (", …" if len(objects) > _MOST_NAMED else "")
        count = "1 object is" if len(objects) == 1 else f"{len(objects)} objects are"
        yield finding("outliers", objects=objects, count=count, listed=shown)


def _of_form(posterior: "Posterior", clusters: _CheckedClusters, pooled: FloatArray) -> Iterator[Finding]:
    """Covariance within clusters that models I and II leave out."""
    d = pooled.shape[0]
    if posterior.model == "III" or d < 2:
        return
    if posterior.model == "II":
        scales = np.sqrt(np.maximum(np.diag(pooled), 1e-300))
        correlations = np.abs(pooled / np.outer(scales, scales) - np.eye(d))
        largest = float(correlations.max())
        if largest > max(_CORRELATED, BEYOND / np.sqrt(clusters.freedom)):
            pair = sorted(int(place) for place in np.unravel_index(int(correlations.argmax()), (d, d)))
            yield finding("correlation", columns=pair, size=largest)
        return
    values = np.linalg.eigvalsh(pooled)
    ratio = float(values[-1] / max(values[0], 1e-300))
    # By chance, sample eigenvalues differ up to this ratio (Marchenko–Pastur).
    chance = ((1.0 + np.sqrt(d / clusters.freedom)) / max(1.0 - np.sqrt(d / clusters.freedom), 1e-3)) ** 2
    if ratio > _UNEVEN * chance:
        yield finding("uneven variances", ratio=np.sqrt(ratio))


def _dependent(columns: FloatArray, names: Sequence[str] | None) -> Iterator[Finding]:
    found = dependent_columns(columns)
    if found:
        places = [dependence.column for dependence in found]
        text, listed = dependence_text(found, names), named_columns(places, names)
        yield finding("dependent columns", columns=places, text=text, listed=listed)


def _few_values(columns: FloatArray, names: Sequence[str] | None) -> Iterator[Finding]:
    for kind, places in repeated_values(columns).items():
        if places:
            yield finding(kind, columns=places, listed=named_columns(places, names))


def _deciding(columns: FloatArray, labels: IntArray, names: Sequence[str] | None) -> Iterator[Finding]:
    """A column that separates the clusters, while all other columns together do not."""
    d = columns.shape[1]
    clusters = _centred_clusters(columns, labels)
    if d < 2 or clusters is None or clusters.sizes.size < 2 or clusters.freedom < 2 * d:
        return
    chosen = columns[clusters.rows]
    total = chosen - chosen.mean(axis=0)
    sums = np.sum(total * total, axis=0)
    varying = sums > 0.0
    shares = 1.0 - np.sum(clusters.residuals**2, axis=0) / np.where(varying, sums, 1.0)
    for place in np.flatnonzero(varying & (shares > _DECIDES)).tolist():
        others = np.flatnonzero(varying & (np.arange(d) != place))
        if others.size and _explained(total[:, others], clusters) < _SILENT:
            listed, share = named_columns([place], names), 100 * shares[place]
            yield finding("deciding column", columns=[place], listed=listed, share=share)


def _explained(total: FloatArray, clusters: _CheckedClusters) -> float:
    """Share of variance between clusters in the directions that separate them, less its mean by chance."""
    basis = np.linalg.qr(total / np.linalg.norm(total, axis=0))[0]
    means = np.column_stack([np.bincount(clusters.labels, weights=column) for column in basis.T])
    trace = float(np.sum(means * means / clusters.sizes[:, None]))
    width, between = total.shape[1], clusters.sizes.size - 1
    return float(trace / min(width, between) - max(width, between) / (clusters.labels.size - 1.0))


def _skewed(
    columns: FloatArray, labels: IntArray, names: Sequence[str] | None, has_units: bool, is_skewed: bool
) -> Iterator[Finding]:
    clusters = _centred_clusters(columns, labels)
    if clusters is None:
        return
    skewness, tilt = _pooled_skewness(clusters)
    # In a Gaussian sample mean and median differ by chance, by 0.76 / √n standard deviations.
    beyond = tilt * np.sign(skewness) > _TILTED / np.sqrt(clusters.labels.size)
    places = np.flatnonzero(beyond & (np.abs(skewness) > _SKEWED)).tolist()
    if not places:
        return
    positive = [place for place in places if has_units and columns[:, place].min() > 0.0]
    helped: list[int] = []
    is_cut = False
    if positive:
        rows = clusters.rows
        logs = _centred_rows(np.log(columns[rows][:, positive]), clusters.labels, rows)
        better = np.abs(_pooled_skewness(logs)[0]) < 0.5 * np.abs(skewness[positive])
        even = [_is_even_in_logarithms(columns[:, place]) for place in positive]
        helped = [place for place, *helps in zip(positive, better, even, strict=True) if any(helps)]
        is_cut = any(even)
    listed = ", ".join(
        f"{named_columns([place], names)} ({skewness[place]:.1f})" for place in places[:_MOST_NAMED]
    )
    if helped:
        advice = f"Take logarithms of column(s) {named_columns(helped, names)} and cluster again."
    elif has_units:
        advice = "Transform these columns, e.g. by ranks or roots, until they are symmetric within clusters."
    else:
        advice = "Take logarithms of the positive columns, and cluster again."
    yield finding(
        "skewed columns",
        None if is_skewed or is_cut or np.abs(skewness[places]).max() > _SKEWED_COLUMN else "note",
        columns=places,
        listed=listed + (", …" if len(places) > _MOST_NAMED else ""),
        advice=advice,
    )


def _is_even_in_logarithms(column: FloatArray) -> bool:
    """Whether a column as a whole is very skewed, and its logarithms are not.

    A long tail that was split into clusters is less skewed within each of them.
    """
    return abs(skewness_of(column)) > _SKEWED_COLUMN and abs(skewness_of(np.log(column))) < _SKEWED


def _pooled_skewness(clusters: _CheckedClusters) -> tuple[FloatArray, FloatArray]:
    """Skewness of each column within clusters, and the distance of means from medians.

    Both in standard deviations of the cluster, averaged over rows. Only the second is robust against a few
    distant rows.
    """
    Z, sizes = clusters.residuals, clusters.sizes
    squares = np.column_stack([np.bincount(clusters.labels, weights=column) for column in (Z * Z).T])
    scales = np.sqrt(squares / sizes[:, None])
    medians = np.array([np.median(Z[clusters.labels == cluster], axis=0) for cluster in range(sizes.size)])
    tilts = np.divide(-medians, scales, out=np.zeros_like(scales), where=scales > 0.0)
    own = scales[clusters.labels]
    unit = np.divide(Z, own, out=np.zeros_like(Z), where=own > 0.0)
    return np.mean(unit**3, axis=0), sizes @ tilts / sizes.sum()
