r"""Prediction for a new object: the exact conditional of object n + 1, averaged over draws.

Given a draw, its partition B and its parameters, a new object y joins a cluster b, or opens one of its own,
with probability proportional to

.. math:: w_b(y) = p(B_{+b} \mid B) \, L_{n+1}(B_{+b}) \,/\, L_n(B).

The first factor is the prior probability of the next seat (`PartitionPrior.seating_probabilities`), for
Ewens' prior with the draw's λ. By Bayes' rule the *unnormalised* weights are averaged over draws, and then
normalised: draws that explain the new object better have more weight.

**Own shapes.** Given θ, ν and Σ the ratio of likelihoods is the Student density of y in the cluster
(`own_shapes.log_predictive`), in the coordinates of the n objects.

**One shape.** The likelihood has a matrix M in each model's form: its trace (I), its diagonal (II), its
determinant (III). For a new object it becomes :math:`A_b + (y - \hat y_b)(y - \hat y_b)^T / w_b`, so the
ratio of likelihoods is a mass times a Student density of y, with a matrix, centre and width for each cluster.

With the mean as the centre, all n + 1 objects are centred again. Let
:math:`q_b = \theta / (1 + \theta n_b)`, :math:`q_b^+ = \theta / (1 + \theta (n_b + 1))`,
:math:`h = \sum_b q_b n_b s_b`, :math:`c = \sum_b q_b n_b^2` and

.. math::

    \beta_b = n (n + 1) - c + q_b n_b^2 - q_b^+ (n - n_b)^2, \qquad
    v_b = \big(h - (q_b n_b + q_b^+ (n - n_b)) \, s_b\big) / \beta_b .

Completing the square gives :math:`\hat y_b = -(n + 1) \, v_b`, :math:`w_b = (n + 1)^2 / \beta_b` and
:math:`A_b = M + (q_b - q_b^+) \, s_b s_b^T - \beta_b v_b v_b^T`; a new cluster has :math:`n_b = 0, s_b = 0`.

With an unknown centre (see `model.likelihood`) :math:`A_b = S` for all clusters, their masses are equal,
:math:`\hat m = v/c`, :math:`\hat y_b = \hat m + q_b (s_b - n_b \hat m)` and
:math:`w_b = 1 + q_b + (1 + \theta n_b)^{-2} / c`.

**Missing cells.** Where a new row has some, its density is that of its observed cells (`model.partial_rows`).
Where the table has some, a draw's own table has its imputed cells, the centre is that of the observed cells,
and :math:`A_b = M`, :math:`\hat y_b = q_b s_b`, :math:`w_b = 1 + q_b`.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from ewens_widgets.model.likelihood import cluster_statistics
from ewens_widgets.model.own_shapes import ClusterStatistics, log_predictive, statistics_of
from ewens_widgets.model.partial_rows import Students, log_densities_of_observed, own_students
from ewens_widgets.model.priors.ewens import Ewens

if TYPE_CHECKING:
    from ewens_widgets.model.posterior import Posterior
    from ewens_widgets.sampling.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_BLOCK_ENTRIES = 500_000  # New objects × clusters × features at once.


class Prediction(NamedTuple):
    """Probabilities for new objects.

    Attributes
    ----------
    clusters
        For each new object and cluster of the reported partition, the probability of belonging to it, given
        that it belongs to one of them; rows sum to 1.
    novelty
        Probability that it belongs to none and opens a cluster of its own.
    """

    clusters: FloatArray
    novelty: FloatArray


def predict_clusters(
    trace: "Trace",
    labels: IntArray,
    new: FloatArray,
    draws: int = 100,
    categories: NDArray[np.int64] | None = None,
    numbers: FloatArray | None = None,
) -> Prediction:
    """Probabilities of new objects for the clusters of a partition.

    An object that joins a cluster of a draw is assigned to the reported clusters in proportion to that
    cluster's members in each.

    Parameters
    ----------
    trace
        Draws of a chain.
    labels
        The reported partition of the trace's objects.
    new
        Canonical coordinates of the new objects, a row each.
    draws
        How many draws, evenly spaced along the chain, to average over at most.
    categories
        Places of their categories (`Columns.places_of`), if some columns are categorical.
    numbers
        The numbers that `new` was made of, in the units of the data; required where they have missing cells.
    """
    n_reported = int(labels.max()) + 1
    log_known = np.full((len(new), n_reported), -np.inf)
    log_novel = np.full(len(new), -np.inf)
    for own, log_masses, log_densities in _conditionals(trace, new, draws, categories, numbers):
        log_weights = log_masses + log_densities
        log_novel = np.logaddexp(log_novel, log_weights[:, -1])
        counts = np.zeros((int(own.max()) + 1, n_reported))
        np.add.at(counts, (own, labels), 1.0)
        highest = log_weights[:, :-1].max(axis=1, keepdims=True)
        weights = np.exp(log_weights[:, :-1] - highest) @ (counts / counts.sum(axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            log_known = np.logaddexp(log_known, np.log(weights) + highest)
    total = logsumexp(log_known, axis=1)
    return Prediction(
        clusters=np.exp(log_known - total[:, None]),
        novelty=np.exp(log_novel - np.logaddexp(log_novel, total)),
    )


def log_predictive_density(
    trace: "Trace",
    new: FloatArray,
    draws: int = 100,
    categories: NDArray[np.int64] | None = None,
    numbers: FloatArray | None = None,
) -> FloatArray:
    """Log density of each new object given the data, in canonical coordinates; parameters as before.

    Of categories it is the probability.
    """
    found = [
        logsumexp(log_masses + log_densities, axis=1) - logsumexp(log_masses)
        for _, log_masses, log_densities in _conditionals(trace, new, draws, categories, numbers)
    ]
    return np.asarray(logsumexp(found, axis=0) - np.log(len(found)), dtype=np.float64)


def _conditionals(
    trace: "Trace",
    new: FloatArray,
    draws: int,
    categories: NDArray[np.int64] | None,
    numbers: FloatArray | None,
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Labels of at most `draws` draws, evenly spaced along the chain, with their masses and densities."""
    theta, concentration, nu, sigma = trace.theta, trace.concentration, trace.nu, trace.sigma
    for k in np.unique(np.linspace(0, len(trace) - 1, min(draws, len(trace))).astype(np.intp)).tolist():
        labels = trace.labels[k].astype(np.intp)
        found = masses_and_densities(
            trace.posterior_at(k),
            labels,
            float(theta[k]),
            float(concentration[k]),
            new,
            float(nu[k]),
            sigma[k],
            categories,
            numbers,
        )
        yield labels, *found


def masses_and_densities(
    posterior: "Posterior",
    labels: IntArray,
    theta: float,
    concentration: float,
    new: FloatArray,
    nu: float = np.inf,
    sigma: FloatArray | None = None,
    categories: NDArray[np.int64] | None = None,
    numbers: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Log weights of joining each cluster of a draw and of opening one, in two factors.

    Parameters
    ----------
    posterior
        The posterior of the n objects.
    labels, theta, concentration
        A draw: canonical labels, variance ratio, concentration of Ewens' prior (others have none).
    new
        Canonical coordinates of the new objects, a row each.
    nu, sigma
        Of own shapes: the draw's pooling ν and packed scale Σ.
    categories, numbers
        As of `predict_clusters`.

    Returns
    -------
    masses that do not depend on the object (K + 1), and densities of each object (m × K + 1)
    """
    prior = posterior.prior if posterior.concentration is None else Ewens(concentration)
    with np.errstate(divide="ignore"):  # Some priors allow no further cluster.
        log_masses = np.log(prior.seating_probabilities(np.bincount(labels)))
    if posterior.shapes == "own":
        if sigma is None:
            raise ValueError("own shapes need the scale Σ beside the partition.")
        known, scale = posterior.statistics(labels, sigma), posterior.scale(sigma)
        clusters = ClusterStatistics(*(np.append(v, np.zeros_like(v[:1]), axis=0) for v in known))
        log_densities = _in_blocks(
            lambda rows: log_predictive(rows, clusters, theta, nu, scale, posterior.model),
            new - posterior.shift(sigma),
            log_masses.size,
        )
        students = own_students(posterior, clusters, theta, nu, sigma)
    else:
        shape = _common_shape(posterior, labels, theta)
        log_masses = log_masses + shape.log_masses
        log_densities = _in_blocks(
            lambda rows: shape.log_densities(rows, posterior.model), new, log_masses.size
        )
        students = shape.students(posterior.model)
    partial = np.isnan(new).any(axis=1)
    if partial.any():
        if numbers is None:
            raise ValueError("rows with missing cells need their numbers in the units of the data")
        log_densities[partial] = log_densities_of_observed(posterior, students, numbers[partial])
    if categories is not None and posterior.columns.has_categories:
        counts = np.pad(posterior.columns.counts(labels), ((0, 1), (0, 0)))
        log_densities = log_densities + posterior.columns.log_weights(counts, categories)
    return log_masses, log_densities


def _in_blocks(density: Callable[[FloatArray], FloatArray], new: FloatArray, n_clusters: int) -> FloatArray:
    """Densities of new objects, computed for some of them at a time."""
    step = max(1, _BLOCK_ENTRIES // (n_clusters * new.shape[1]))
    return np.concatenate([density(new[k : k + step]) for k in range(0, max(1, len(new)), step)])


def member_log_weights(trace: "Trace", draw: int, rows: IntArray) -> FloatArray:
    r"""Log weights of some objects for the clusters of a draw, given all other objects (m × K).

    With own shapes they are those of a Gibbs step, given the parameters of the draw. With one shape for all,
    its covariance is replaced by the estimate M/n, in the form of the model: the density of y in a cluster of
    m others with sum s is then normal, with mean :math:`\theta s / (1 + \theta m)` and covariance
    :math:`(1 + \theta / (1 + \theta m)) M / n`.
    """
    posterior, labels = trace.posterior_at(draw), trace.labels[draw].astype(np.intp)
    model, theta, Y = posterior.model, float(trace.theta[draw]), posterior.coordinates
    own, new = labels[rows], Y[rows]
    clusters = statistics_of(Y, labels, model)
    inside = own[:, None] == np.arange(clusters.sizes.size)
    others = (clusters.sizes - inside).astype(np.intp)
    log_sizes, log_counts = posterior.log_size_weights, posterior.count_weights(clusters.sizes.size)
    log_prior = np.where(
        others > 0, log_sizes[others + 1] - log_sizes[others], log_sizes[1] + log_counts[-1] - log_counts[-2]
    )
    if posterior.columns.has_categories:
        single = posterior.columns.counts(np.arange(len(Y)))[rows, None]
        apart = posterior.columns.counts(labels) - inside[..., None] * single
        marginals = posterior.columns.log_marginals
        log_prior = log_prior + marginals(apart + single) - marginals(apart)
    if posterior.shapes == "own":
        packed = trace.sigma[draw]
        known, new = posterior.statistics(labels, packed), new - posterior.shift(packed)
        nu, sigma = float(trace.nu[draw]), posterior.scale(packed)
        density = log_predictive(new, known, theta, nu, sigma, model, own)
        return np.asarray(log_prior + density)
    sums, shrinkage = clusters.sums, theta / (1.0 + theta * others)
    scatter = Y.T @ Y - (sums.T * (theta / (1.0 + theta * clusters.sizes))) @ sums
    if model != "III":
        variances = np.diag(scatter)
        scatter = np.diag(variances if model == "II" else np.full_like(variances, variances.mean()))
    root = np.linalg.cholesky(scatter / len(Y))
    new, sums = np.linalg.solve(root, new.T).T, np.linalg.solve(root, sums.T).T
    gaps = new[:, None, :] * (1.0 + shrinkage * inside)[..., None] - shrinkage[..., None] * sums
    wider = 1.0 + shrinkage
    form = np.sum(gaps * gaps, axis=2) / wider + new.shape[1] * np.log(wider)
    return np.asarray(log_prior - 0.5 * form, dtype=np.float64)


class _CommonShape(NamedTuple):
    """With one shape: log masses, A, ŷ and w of each cluster and of a new one; the power of the densities."""

    log_masses: FloatArray
    volumes: FloatArray
    centres: FloatArray
    widths: FloatArray
    power: float

    def students(self, model: str) -> Students:
        """The Student densities."""
        d = self.centres.shape[1]
        volumes = self.volumes
        if model != "III":
            volumes = (volumes.sum(axis=1)[:, None, None] if model == "I" else volumes[:, None]) * np.eye(d)
        degrees = 2.0 * self.power - (1 if model == "II" else d)
        scales = volumes * (self.widths / degrees)[:, None, None]
        return Students(self.centres, scales, np.full(len(scales), degrees))

    def log_densities(self, rows: FloatArray, model: str) -> FloatArray:
        """Log Student densities of rows."""
        d, power, volumes = self.centres.shape[1], self.power, self.volumes
        if model == "II":
            log_constant = d * (gammaln(power) - gammaln(power - 0.5))
        else:
            log_constant = gammaln(power) - gammaln(power - 0.5 * d)
        log_constant = log_constant - 0.5 * (d * np.log(np.pi * self.widths) + _log_scale(volumes, model))
        gaps = rows[:, None] - self.centres
        if model == "II":
            grown = np.log1p(gaps**2 / self.widths[:, None] / volumes).sum(axis=2)
        elif model == "III":
            columns = np.moveaxis(gaps, 0, -1)
            grown = np.log1p(np.sum(columns * np.linalg.solve(volumes, columns), axis=1).T / self.widths)
        else:
            grown = np.log1p(np.sum(gaps**2, axis=2) / self.widths / volumes.sum(axis=1))
        return np.asarray(log_constant - power * grown, dtype=np.float64)


def _common_shape(posterior: "Posterior", labels: IntArray, theta: float) -> _CommonShape:
    Y, model = posterior.coordinates, posterior.model
    n, d = Y.shape
    sizes, sums = cluster_statistics(Y, labels)
    sizes, sums = np.append(sizes, 0.0), np.vstack([sums, np.zeros(d)])
    shrinkage = theta / (1.0 + theta * sizes)
    if posterior.centre == "unknown" or len(posterior.gaps):
        weights, is_unknown = 1.0 / (1.0 + theta * sizes), posterior.centre == "unknown"
        total = weights @ sizes if is_unknown else np.inf
        centre = weights @ sums / total
        Y, sums = Y - centre, sums - sizes[:, None] * centre
        scatter = _total(Y, np.ones(n), model) - _total(sums, shrinkage, model)
        volumes = np.repeat(scatter[None], sizes.size, axis=0)
        centres, widths = centre + shrinkage[:, None] * sums, 1.0 + shrinkage + weights**2 / total
        count, log_masses = n if is_unknown else n + 1, np.zeros(sizes.size)
    else:
        scatter = _total(Y, np.ones(n), model) - _total(sums, shrinkage, model)
        after = theta / (1.0 + theta * (sizes + 1.0))
        both = n * (n + 1.0) - np.sum(shrinkage * sizes**2) + shrinkage * sizes**2 - after * (n - sizes) ** 2
        pull = (shrinkage * sizes) @ sums - (shrinkage * sizes + after * (n - sizes))[:, None] * sums
        pairs = zip(
            np.stack([sums, pull], axis=1), np.column_stack([shrinkage - after, -1.0 / both]), strict=True
        )
        volumes = np.array([scatter + _total(vectors, weights, model) for vectors, weights in pairs])
        centres, widths = -(n + 1.0) * pull / both[:, None], (n + 1.0) ** 2 / both
        count, log_det = n + 1, np.log1p(theta * (sizes + 1.0)) - np.log1p(theta * sizes)
        log_scales = _log_scale(volumes, model) - _log_scale(scatter, model)
        log_masses = -0.5 * (d * log_det + n * log_scales - d * np.log(widths))
    power = 0.5 * count * (d if model == "I" else 1)
    return _CommonShape(log_masses, volumes, centres, widths, power)


def _total(vectors: FloatArray, weights: FloatArray, model: str) -> FloatArray:
    """Weighted sum of the squares v vᵀ of vectors; of models I and II its diagonal."""
    found = (vectors.T * weights) @ vectors if model == "III" else weights @ vectors**2
    return np.asarray(found, dtype=np.float64)


def _log_scale(scatter: FloatArray, model: str) -> FloatArray:
    """Log determinant of matrices (III), or what a model has in its place: diagonals are given."""
    if model == "III":
        return np.asarray(np.linalg.slogdet(scatter)[1], dtype=np.float64)
    found = (
        np.log(scatter).sum(axis=-1) if model == "II" else scatter.shape[-1] * np.log(scatter.sum(axis=-1))
    )
    return np.asarray(found, dtype=np.float64)
