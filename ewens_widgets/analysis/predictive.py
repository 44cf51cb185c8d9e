r"""Prediction for a new object: the exact conditional of object n + 1, averaged over draws.

Given a draw, its partition B and its parameters, a new object y joins a cluster b, or opens one of its own,
with probability proportional to

.. math:: w_b(y) = p(B_{+b} \mid B) \, L_{n+1}(B_{+b}) \,/\, L_n(B).

The first factor is the prior probability of the next seat (`PartitionPrior.seating_probabilities`), for
Ewens' prior with the draw's λ. By Bayes' rule the *unnormalised* weights are averaged over draws, and then
normalised: draws that explain the new object better have more weight.

**Own shapes.** Given θ, ν and Σ the ratio of likelihoods is the Student density of y in the cluster
(`own_shapes.log_predictive`), in the coordinates of the n objects.

**One shape.** All n + 1 objects are centred again. With :math:`u = y / (n + 1)`,
:math:`q_b = \theta / (1 + \theta n_b)`, :math:`q_b^+ = \theta / (1 + \theta (n_b + 1))`,
:math:`h = \sum_b q_b n_b s_b` and :math:`c = \sum_b q_b n_b^2`, the matrix of the likelihood changes by a
matrix of rank three,

.. math::

    M_{+b} = M &+ h u^T + u h^T + \big(n (n + 1) - c + q_b n_b^2 - q_b^+ (n - n_b)^2\big) \, u u^T \\
    &- \big(q_b n_b + q_b^+ (n - n_b)\big) (s_b u^T + u s_b^T) + (q_b - q_b^+) \, s_b s_b^T,

and a new cluster is the case :math:`n_b = 0, s_b = 0`. Determinants follow from 3 × 3 ones, so a new object
costs O(d² + K d) a draw, however many objects there are.

With an unknown centre S (see `model.likelihood`) grows by :math:`(y - \hat y_b)(y - \hat y_b)^T / w_b`, where
:math:`\hat m = v/c`, :math:`\hat y_b = \hat m + q_b (s_b - n_b \hat m)` and
:math:`w_b = 1 + q_b + (1 + \theta n_b)^{-2} / c`: the density of y is a Student density.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from ewens_widgets.model.likelihood import cluster_statistics
from ewens_widgets.model.own_shapes import ClusterStatistics, log_predictive, statistics_of
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
    """
    n_reported = int(labels.max()) + 1
    log_known = np.full((len(new), n_reported), -np.inf)
    log_novel = np.full(len(new), -np.inf)
    for own, theta, concentration, nu, sigma in _spread_draws(trace, draws):
        log_weights = join_log_weights(trace.posterior, own, theta, concentration, new, nu, sigma, categories)
        log_novel = np.logaddexp(log_novel, log_weights[:, -1])
        log_known = np.logaddexp(log_known, _translated(log_weights[:, :-1], own, labels, n_reported))
    total = logsumexp(log_known, axis=1)
    return Prediction(
        clusters=np.exp(log_known - total[:, None]),
        novelty=np.exp(log_novel - np.logaddexp(log_novel, total)),
    )


def log_predictive_density(
    trace: "Trace", new: FloatArray, draws: int = 100, categories: NDArray[np.int64] | None = None
) -> FloatArray:
    """Log density of each new object given the data, in canonical coordinates, averaged over draws.

    Of categories it is the probability.

    Parameters
    ----------
    trace
        Draws of a chain.
    new
        Canonical coordinates of the new objects, a row each.
    draws
        How many draws, evenly spaced along the chain, to average over at most.
    categories
        Places of their categories (`Columns.places_of`), if some columns are categorical.
    """
    posterior = trace.posterior
    total = np.full(len(new), -np.inf)
    chosen = _spread_draws(trace, draws)
    for labels, theta, concentration, nu, sigma in chosen:
        log_density = logsumexp(
            join_log_weights(posterior, labels, theta, concentration, new, nu, sigma, categories), axis=1
        )
        if posterior.shapes == "common" and posterior.centre == "mean":
            log_prior = _log_seats(posterior, labels, concentration)
            log_density = log_density - logsumexp(log_prior + _common_log_mass(posterior, labels, theta))
        total = np.logaddexp(total, log_density)
    return np.asarray(total - np.log(len(chosen)), dtype=np.float64)


def _spread_draws(trace: "Trace", draws: int) -> list[tuple[IntArray, float, float, float, FloatArray]]:
    """At most `draws` draws, evenly spaced along the chain: labels, θ, λ, ν and Σ of each."""
    chosen = np.unique(np.linspace(0, len(trace) - 1, min(draws, len(trace))).astype(np.intp)).tolist()
    theta, concentration, nu, sigma = trace.theta, trace.concentration, trace.nu, trace.sigma
    return [
        (trace.labels[k].astype(np.intp), float(theta[k]), float(concentration[k]), float(nu[k]), sigma[k])
        for k in chosen
    ]


def join_log_weights(
    posterior: "Posterior",
    labels: IntArray,
    theta: float,
    concentration: float,
    new: FloatArray,
    nu: float = np.inf,
    sigma: FloatArray | None = None,
    categories: NDArray[np.int64] | None = None,
) -> FloatArray:
    """Log weights of each new object for joining each cluster of a draw, and for opening its own (m × K + 1).

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
    categories
        As of `predict_clusters`.
    """
    log_prior = _log_seats(posterior, labels, concentration)
    if posterior.shapes == "own":
        log_likelihood = _own_log_likelihood(posterior, labels, theta, nu, sigma, new)
    elif posterior.centre == "unknown":
        log_likelihood = _orbit_log_density(posterior, labels, theta, new)
    else:
        log_likelihood = _common_log_likelihood(posterior, labels, theta, new)
    if categories is not None and posterior.columns.has_categories:
        counts = np.pad(posterior.columns.counts(labels), ((0, 1), (0, 0)))
        log_likelihood = log_likelihood + posterior.columns.log_weights(counts, categories)
    return np.asarray(log_prior + log_likelihood, dtype=np.float64)


def member_log_weights(trace: "Trace", draw: int, rows: IntArray) -> FloatArray:
    r"""Log weights of some objects for the clusters of a draw, given all other objects (m × K).

    With own shapes they are those of a Gibbs step, given the parameters of the draw. With one shape for all,
    its covariance is replaced by the estimate M/n, in the form of the model: the density of y in a cluster of
    m others with sum s is then normal, with mean :math:`\theta s / (1 + \theta m)` and covariance
    :math:`(1 + \theta / (1 + \theta m)) M / n`.
    """
    posterior, labels = trace.posterior, trace.labels[draw].astype(np.intp)
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


def _log_seats(posterior: "Posterior", labels: IntArray, concentration: float) -> FloatArray:
    """Log prior probabilities of the next object for each cluster of a draw, and for a new one."""
    prior = posterior.prior if posterior.concentration is None else Ewens(concentration)
    with np.errstate(divide="ignore"):  # Some priors allow no further cluster.
        return np.asarray(np.log(prior.seating_probabilities(np.bincount(labels))), dtype=np.float64)


def _own_log_likelihood(
    posterior: "Posterior",
    labels: IntArray,
    theta: float,
    nu: float,
    sigma: FloatArray | None,
    new: FloatArray,
) -> FloatArray:
    """Log densities of new objects in each cluster and in a new one, with own shapes."""
    if sigma is None:
        raise ValueError("own shapes need the scale Σ beside the partition.")
    model, n_features = posterior.model, posterior.n_features
    known, new = posterior.statistics(labels, sigma), new - posterior.shift(sigma)
    clusters = ClusterStatistics(*(np.append(values, np.zeros_like(values[:1]), axis=0) for values in known))
    scale = posterior.scale(sigma)
    step = max(1, _BLOCK_ENTRIES // (clusters.sizes.size * n_features))
    blocks = [
        log_predictive(new[start : start + step], clusters, theta, nu, scale, model)
        for start in range(0, len(new), step)
    ]
    return np.concatenate(blocks) if blocks else np.empty((0, clusters.sizes.size))


def _common_log_likelihood(
    posterior: "Posterior", labels: IntArray, theta: float, new: FloatArray
) -> FloatArray:
    """Log ratios of likelihoods with and without new objects, in each cluster and a new one, one shape."""
    sizes, sums = cluster_statistics(posterior.coordinates, labels)
    sizes, sums = np.append(sizes, 0.0), np.vstack([sums, np.zeros(sums.shape[1])])
    draw = _Draw.of(posterior, sizes, sums, theta)
    n_objects, n_features = posterior.coordinates.shape
    log_det = np.log1p(theta * (sizes + 1.0)) - np.log1p(theta * sizes)
    step = max(1, _BLOCK_ENTRIES // (sizes.size * n_features))
    blocks = [
        _SCALES[posterior.model](draw, new[start : start + step] / (n_objects + 1))
        for start in range(0, len(new), step)
    ]
    log_scale = np.concatenate(blocks) if blocks else np.empty((0, sizes.size))
    grown = -0.5 * (n_features * log_det + (n_objects + 1) * log_scale + draw.log_scale)
    return np.asarray(grown, dtype=np.float64)


def _orbit_log_density(posterior: "Posterior", labels: IntArray, theta: float, new: FloatArray) -> FloatArray:
    """Log densities of new objects in each cluster and in a new one, one shape and an unknown centre."""
    sizes, sums = cluster_statistics(posterior.coordinates, labels)
    sizes, sums = np.append(sizes, 0.0), np.vstack([sums, np.zeros(sums.shape[1])])
    n_objects, d = posterior.coordinates.shape
    weights = 1.0 / (1.0 + theta * sizes)
    total, pull = weights @ sizes, theta * weights
    centre = weights @ sums / total
    sums = sums - sizes[:, None] * centre
    own = posterior.coordinates - centre
    scatter = own.T @ own - (sums.T * pull) @ sums
    expected, spread = centre + pull[:, None] * sums, 1.0 + pull + weights**2 / total
    power = 0.5 * n_objects * (d if posterior.model == "I" else 1)
    step = max(1, _BLOCK_ENTRIES // (sizes.size * d))
    blocks = [np.empty((0, sizes.size))]
    for start in range(0, len(new), step):
        gaps = new[start : start + step, None] - expected
        if posterior.model == "II":
            forms = np.log1p(gaps**2 / spread[:, None] / np.diag(scatter)).sum(axis=2)
        elif posterior.model == "III":
            solved = np.linalg.solve(scatter, gaps.reshape(-1, d).T).T.reshape(gaps.shape)
            forms = np.log1p(np.sum(gaps * solved, axis=2) / spread)
        else:
            forms = np.log1p(np.sum(gaps**2, axis=2) / spread / np.trace(scatter))
        blocks.append(-power * forms)
    if posterior.model == "II":
        log_constant = d * (gammaln(power) - gammaln(power - 0.5))
    else:
        log_constant = gammaln(power) - gammaln(power - 0.5 * d)
    log_constant -= 0.5 * (d * np.log(np.pi) + _log_scale(scatter, posterior.model))
    log_density = np.concatenate(blocks) + log_constant - 0.5 * d * np.log(spread)
    return np.asarray(log_density, dtype=np.float64)


def _common_log_mass(posterior: "Posterior", labels: IntArray, theta: float) -> FloatArray:
    r"""Log integrals over all new objects of what `_common_log_likelihood` gives, cluster by cluster.

    Completing the square, M₊ = A + β (u + v)(u + v)ᵀ with v = (h + γ s) / β and A = M + δ s sᵀ − β v vᵀ,
    where β, γ, δ are the three coefficients of the cluster: a Student density in u, whose integral is known.
    """
    sizes, sums = cluster_statistics(posterior.coordinates, labels)
    sizes, sums = np.append(sizes, 0.0), np.vstack([sums, np.zeros(sums.shape[1])])
    draw = _Draw.of(posterior, sizes, sums, theta)
    n_objects, d = posterior.coordinates.shape
    log_det = np.log1p(theta * (sizes + 1.0)) - np.log1p(theta * sizes)
    power = 0.5 * (n_objects + 1) * (d if posterior.model == "I" else 1)
    if posterior.model == "II":
        log_constant = d * (0.5 * np.log(np.pi) + gammaln(power - 0.5) - gammaln(power))
    else:
        log_constant = 0.5 * d * np.log(np.pi) + gammaln(power - 0.5 * d) - gammaln(power)
    log_mass = np.empty(sizes.size)
    for place, (both, cross, own) in enumerate(zip(draw.both, draw.cross, draw.own, strict=True)):
        shift = (draw.pull + cross * draw.sums[place]) / both
        rest = draw.scatter + own * np.outer(draw.sums[place], draw.sums[place])
        log_scale = _log_scale(rest - both * np.outer(shift, shift), posterior.model)
        log_mass[place] = -0.5 * (d * log_det[place] + n_objects * log_scale + d * np.log(both))
    log_mass += 0.5 * n_objects * draw.log_scale + log_constant + d * np.log(n_objects + 1.0)
    return log_mass


class _Draw(NamedTuple):
    """What all new objects share: M of the draw, h, the sums, and the three coefficients of each cluster."""

    scatter: FloatArray
    pull: FloatArray
    sums: FloatArray
    both: FloatArray
    cross: FloatArray
    own: FloatArray
    log_scale: float

    @classmethod
    def of(cls, posterior: "Posterior", sizes: FloatArray, sums: FloatArray, theta: float) -> "_Draw":
        coordinates, n_objects = posterior.coordinates, posterior.n_objects
        shrinkage, after = theta / (1.0 + theta * sizes), theta / (1.0 + theta * (sizes + 1.0))
        scatter = coordinates.T @ coordinates - (sums.T * shrinkage) @ sums
        others = n_objects - sizes
        constant = n_objects * (n_objects + 1.0) - np.sum(shrinkage * sizes**2)
        return cls(
            scatter=scatter,
            pull=(shrinkage * sizes) @ sums,
            sums=sums,
            both=constant + shrinkage * sizes**2 - after * others**2,
            cross=-(shrinkage * sizes + after * others),
            own=shrinkage - after,
            log_scale=_log_scale(scatter, posterior.model),
        )


def _log_scale(scatter: FloatArray, model: str) -> float:
    if model == "I":
        return float(len(scatter) * np.log(np.trace(scatter)))
    if model == "II":
        return float(np.log(np.diag(scatter)).sum())
    return float(np.linalg.slogdet(scatter)[1])


def _trace_scale(draw: _Draw, u: FloatArray) -> FloatArray:
    """Model I: d log(tr M₊ / tr M), for each new object and cluster."""
    added = draw.both * np.sum(u * u, axis=1)[:, None] + 2.0 * (u @ draw.pull)[:, None]
    added = added + 2.0 * draw.cross * (u @ draw.sums.T) + draw.own * np.sum(draw.sums**2, axis=1)
    return np.asarray(len(draw.scatter) * np.log1p(added / np.trace(draw.scatter)), dtype=np.float64)


def _diagonal_scale(draw: _Draw, u: FloatArray) -> FloatArray:
    """Model II: Σ_r log(M₊_rr / M_rr)."""
    u, sums = u[:, None, :], draw.sums[None, :, :]
    both, cross, own = (value[None, :, None] for value in (draw.both, draw.cross, draw.own))
    added = both * u * u + 2.0 * draw.pull * u + 2.0 * cross * u * sums + own * sums * sums
    return np.asarray(np.log1p(added / np.diag(draw.scatter)).sum(axis=2), dtype=np.float64)


def _determinant_scale(draw: _Draw, u: FloatArray) -> FloatArray:
    """Model III: log det M₊ − log det M = log det(I + Q G), with G the products of h, u, s_b under M⁻¹."""
    basis = np.vstack([draw.pull, draw.sums])
    solved = np.linalg.solve(draw.scatter, basis.T)
    own = np.einsum("kr,rk->k", draw.sums, solved[:, 1:])
    shape = (len(u), len(draw.sums))
    gram = np.empty((*shape, 3, 3))
    products = {
        (0, 0): np.full(shape, draw.pull @ solved[:, 0]),
        (0, 1): np.broadcast_to((u @ solved[:, 0])[:, None], shape),
        (0, 2): np.broadcast_to(draw.pull @ solved[:, 1:], shape),
        (1, 1): np.broadcast_to(np.sum(u * np.linalg.solve(draw.scatter, u.T).T, axis=1)[:, None], shape),
        (1, 2): u @ solved[:, 1:],
        (2, 2): np.broadcast_to(own, shape),
    }
    for (row, column), values in products.items():
        gram[..., row, column] = gram[..., column, row] = values
    zero, one = np.zeros_like(draw.both), np.ones_like(draw.both)
    weights = np.array([[zero, one, zero], [one, draw.both, draw.cross], [zero, draw.cross, draw.own]])
    change = np.eye(3) + np.moveaxis(weights, 2, 0) @ gram
    return np.asarray(np.linalg.slogdet(change)[1], dtype=np.float64)


# Each gives the change of log det M, or of what a model has in its place; `join_log_weights` adds the rest.
_SCALES = {"I": _trace_scale, "II": _diagonal_scale, "III": _determinant_scale}


def _translated(log_weights: FloatArray, own: IntArray, labels: IntArray, n_reported: int) -> FloatArray:
    """Log weights for the reported clusters, given those for the clusters of a draw."""
    counts = np.zeros((int(own.max()) + 1, n_reported))
    np.add.at(counts, (own, labels), 1.0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    highest = log_weights.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_weights - highest) @ shares) + highest, dtype=np.float64)
