"""The state of a chain: what the next iteration needs, and nothing else; and the states chains start from.

Everything else that a sampler holds is a function of the state, so it is small, it can be saved without
pickle, and a chain that goes on from it is the same bit for bit. A chain begins with one too: a partition
(the paper's singletons, one cluster, k-means, a draw from the prior, or given labels), θ in the middle of its
grid, and the mean of λ. Chains from dispersed starts tell whether a run has converged.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import ewens
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.archive import ArchiveError

__all__ = ["INITIAL", "State", "first_state", "initial_labels", "pack_state", "unpack_state"]

INITIAL = ("singletons", "one-cluster", "k-means", "prior")
LARGEST_K_MEANS = 50
LAST_ITERATION = 2**62  # Iterations are counted in 64 bits.
LOG_RANGE = (-745.0, 709.7)  # Logarithms of positive numbers.


@dataclass(frozen=True, eq=False)
class State:
    """Where a chain stands between two iterations.

    Everything else that a sampler holds (cluster sums, scatter, cached distances) is a function of this,
    computed without rounding that depends on the past; a chain resumed from a state continues bit for bit.

    Attributes
    ----------
    labels
        Slot of each object's cluster. The numbering of the slots decides the order of summation, so it is
        part of the state.
    theta_index
        Place of θ on the grid.
    log_concentration
        Logarithm of λ.
    iteration
        Number of iterations done.
    generator
        State of the random number generator (PCG64).
    """

    labels: NDArray[np.int64]
    theta_index: int
    log_concentration: float
    iteration: int
    generator: dict[str, Any]

    @property
    def concentration(self) -> float:
        """Concentration λ of the Ewens prior."""
        return float(np.exp(self.log_concentration))


def pack_state(state: State) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Settings and array that a file needs to hold a state."""
    settings = {
        "theta_index": state.theta_index,
        "log_concentration": state.log_concentration.hex(),
        "iteration": state.iteration,
        "generator": state.generator,
    }
    return settings, state.labels


def unpack_state(settings: dict[str, Any], labels: NDArray[Any], n_objects: int, n_thetas: int) -> State:
    """Make a state from the parts found in a file, or say that they do not fit together."""
    slots = np.asarray(labels)
    packed = (
        slots.shape == (n_objects,)
        and slots.dtype.kind in "iu"
        and 0 <= slots.min() <= slots.max() < n_objects
        and bool(np.all(np.bincount(slots.astype(np.intp)) > 0))
    )
    theta_index, iteration = int(settings["theta_index"]), int(settings["iteration"])
    log_concentration = float.fromhex(settings["log_concentration"])
    sound = 0 <= theta_index < n_thetas and 0 <= iteration < LAST_ITERATION
    sound = sound and LOG_RANGE[0] < log_concentration < LOG_RANGE[1]
    if not packed or not sound:
        raise ArchiveError(
            "the saved state is inconsistent: its labels, θ, λ or iteration do not fit the data."
        )
    return State(
        labels=slots.astype(np.int64),
        theta_index=theta_index,
        log_concentration=log_concentration,
        iteration=iteration,
        generator=dict(settings["generator"]),
    )


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
