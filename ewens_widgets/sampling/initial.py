"""Initial partitions of a chain. Chains from dispersed starts tell whether a run has converged."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import ewens
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.state import State

__all__ = ["INITIAL", "first_state", "initial_labels"]

INITIAL = ("singletons", "one-cluster", "k-means", "prior")
LARGEST_K_MEANS = 50


def initial_labels(
    posterior: Posterior, initial: str | ArrayLike, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Canonical labels of the partition that a chain starts from.

    Parameters
    ----------
    posterior
        The posterior to be sampled.
    initial
        ``"singletons"`` (the paper's), ``"one-cluster"``, ``"k-means"`` (k-means++ in canonical coordinates
        with about as many clusters as the prior expects), ``"prior"`` (a draw from the Ewens prior), or
        labels.
    rng
        Used by ``"k-means"`` and ``"prior"``.
    """
    n_objects = posterior.n_objects
    if not isinstance(initial, str):
        return check_labels(initial, n_objects)
    if initial == "singletons":
        return np.arange(n_objects)
    if initial == "one-cluster":
        return np.zeros(n_objects, dtype=np.intp)
    if initial == "k-means":
        return _k_means(posterior, rng)
    if initial == "prior":
        prior = posterior.concentration
        value = rng.gamma(prior.shape, 1.0 / prior.rate) if isinstance(prior, Gamma) else prior
        return ewens.sample(n_objects, max(value, 1e-300), rng)
    raise ValueError(f"initial must be one of {', '.join(INITIAL)}, or one label an object; got {initial!r}.")


def first_state(posterior: Posterior, initial: str | ArrayLike, rng: np.random.Generator) -> State:
    """State before the first iteration: the partition to start from, θ in the middle of its grid, mean λ."""
    labels = initial_labels(posterior, initial, rng)
    prior = posterior.concentration
    return State(
        labels=labels.astype(np.int64),
        theta_index=posterior.theta_grid.size // 2,
        log_concentration=float(np.log(prior.mean if isinstance(prior, Gamma) else prior)),
        iteration=0,
        generator=dict(rng.bit_generator.state),
    )


def _k_means(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.intp]:
    """Cluster by k-means, whose seeding depends on distances alone, so it is invariant like the model."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    prior = posterior.concentration
    value = prior.mean if isinstance(prior, Gamma) else prior
    expected = round(ewens.expected_clusters(posterior.n_objects, value))
    wanted = min(max(2, expected), LARGEST_K_MEANS)
    count = _distinct_rows(posterior.coordinates, wanted)
    seed = int(rng.integers(2**31 - 1))
    method = KMeans(n_clusters=count, init="k-means++", n_init=1, max_iter=20, random_state=seed)
    with warnings.catch_warnings():
        # Rows that are equal but for rounding may leave fewer clusters: as good a start.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = method.fit(posterior.coordinates)
    return check_labels(found.labels_)


def _distinct_rows(coordinates: FloatArray, enough: int) -> int:
    """Count the distinct rows, up to `enough`; the first few nearly always have so many."""
    size = 20 * enough
    while True:
        found = len(np.unique(coordinates[:size], axis=0))
        if found >= enough or size >= len(coordinates):
            return min(found, enough)
        size *= 10
