"""The state of a chain: what the next iteration needs, and nothing else; and the states chains start from.

Everything else that a sampler holds is a function of the state, so it is small, it can be saved without
pickle, and a chain that goes on from it is the same bit for bit. A chain begins with one too: a partition
(the paper's singletons, one cluster, k-means, a draw from the prior, or given labels), θ and ν in the middle
of their grids, the mean of λ, and half the total variance for Σ. Chains from dispersed starts tell whether a
run has converged.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.own_shapes import SMALLEST_PIVOT, pack_sigma, unpack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Ewens, Gamma
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.archive import ArchiveError
from ewens_widgets.sampling.kernel.workspace import AnyProblem, AnyWorkspace, make_workspace

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
    nu_index, sigma
        Of own shapes: place of ν on its grid, and the packed scale Σ, which is empty where shapes are common.
    """

    labels: NDArray[np.int64]
    theta_index: int
    log_concentration: float
    iteration: int
    generator: dict[str, Any]
    nu_index: int = 0
    sigma: FloatArray = field(default_factory=lambda: np.empty(0))

    def workspace(self, problem: AnyProblem) -> AnyWorkspace:
        """A workspace of the kernels that stands where the chain does."""
        return make_workspace(
            problem, self.labels, self.theta_index, self.log_concentration, self.nu_index, self.sigma
        )

    @property
    def concentration(self) -> float:
        """Concentration λ of the Ewens prior."""
        return float(np.exp(self.log_concentration))


def pack_state(state: State) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Settings and array that a file needs to hold a state."""
    settings: dict[str, Any] = {
        "theta_index": state.theta_index,
        "log_concentration": state.log_concentration.hex(),
        "iteration": state.iteration,
        "generator": state.generator,
    }
    if state.sigma.size:
        settings |= {"nu_index": state.nu_index, "sigma": [value.hex() for value in state.sigma.tolist()]}
    return settings, state.labels


def unpack_state(settings: dict[str, Any], labels: NDArray[Any], posterior: Posterior) -> State:
    """Make a state from the parts found in a file, or say that they do not fit together."""
    n_objects, n_thetas = posterior.n_objects, posterior.theta_grid.size
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
    nu_index, sigma = int(settings.get("nu_index", 0)), _unpacked_sigma(settings.get("sigma", ()))
    sound = sound and 0 <= nu_index < posterior.nu_grid.size and _is_scale(sigma, posterior)
    if not packed or not sound:
        raise ArchiveError(
            "the saved state is inconsistent: its labels, θ, λ, ν, Σ or iteration do not fit the data."
        )
    return State(
        labels=slots.astype(np.int64),
        theta_index=theta_index,
        log_concentration=log_concentration,
        iteration=iteration,
        generator=dict(settings["generator"]),
        nu_index=nu_index,
        sigma=sigma,
    )


def _unpacked_sigma(numbers: Sequence[str]) -> FloatArray:
    return np.array([float.fromhex(number) for number in numbers], dtype=np.float64)


def _is_scale(sigma: FloatArray, posterior: Posterior) -> bool:
    """Whether this is a packed scale of the posterior: positive definite, and of the right length."""
    if sigma.shape != (posterior.sigma_length,) or not np.all(np.isfinite(sigma)):
        return False
    if not sigma.size:
        return True
    form = unpack_sigma(sigma, posterior.n_features, posterior.model)
    if posterior.model != "III":
        return bool(np.all(form >= SMALLEST_PIVOT))
    try:
        pivots = np.diag(np.linalg.cholesky(form)) ** 2
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() >= 0.5 * SMALLEST_PIVOT)  # half: it may have been rounded differently


def initial_labels(
    posterior: Posterior, initial: str | ArrayLike | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Canonical labels of the partition that a chain starts from.

    Parameters
    ----------
    posterior
        The posterior to be sampled.
    initial
        ``"singletons"`` (the paper's), ``"one-cluster"``, ``"k-means"`` (k-means++ in canonical coordinates
        with about as many clusters as the prior expects), ``"prior"`` (a draw from the prior), or labels;
        None for singletons under the paper's family and prior, and for one cluster under others.
    rng
        Used by ``"k-means"`` and ``"prior"``.
    """
    n_objects, most = posterior.n_objects, posterior.prior.most_clusters
    if initial is None:
        # One cluster falls apart in few iterations where clusters have own shapes; singletons have none yet.
        is_papers = posterior.shapes == "common" and posterior.concentration is not None
        initial = "singletons" if is_papers else "one-cluster"
    if not isinstance(initial, str):
        return _check_possible(check_labels(initial, n_objects), most)
    if initial == "singletons":
        return _check_possible(np.arange(n_objects), most)
    if initial == "one-cluster":
        return np.zeros(n_objects, dtype=np.intp)
    if initial == "k-means":
        return _k_means(posterior, rng)
    if initial == "prior":
        return posterior.prior.sample(n_objects, rng)
    raise ValueError(f"initial must be one of {', '.join(INITIAL)}, or one label an object; got {initial!r}.")


def _check_possible(labels: NDArray[np.intp], most: float) -> NDArray[np.intp]:
    """Refuse to start from more clusters than the prior allows."""
    n_clusters = int(labels.max()) + 1
    if n_clusters > most:
        raise ValueError(
            f"the prior allows at most {most:.0f} clusters, but the chain is to start from {n_clusters}; use "
            'initial="one-cluster", "k-means" or "prior".'
        )
    return labels


def first_state(posterior: Posterior, initial: str | ArrayLike | None, rng: np.random.Generator) -> State:
    """State before the first iteration: a partition, and parameters in the middle of what they can be."""
    labels = initial_labels(posterior, initial, rng)
    return State(
        labels=labels.astype(np.int64),
        theta_index=posterior.theta_grid.size // 2,
        log_concentration=posterior.first_log_concentration,
        iteration=0,
        generator=dict(rng.bit_generator.state),
        nu_index=posterior.nu_grid.size // 2,
        sigma=_first_sigma(posterior),
    )


def _first_sigma(posterior: Posterior) -> FloatArray:
    """Half of the total variance, which is 1 in canonical coordinates."""
    if posterior.shapes == "common":
        return np.empty(0)
    n_features = posterior.n_features
    form = {"I": np.array(0.5), "II": np.full(n_features, 0.5), "III": 0.5 * np.eye(n_features)}
    return pack_sigma(form[posterior.model], posterior.model)


def _k_means(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.intp]:
    """Cluster by k-means, whose seeding depends on distances alone, so it is invariant like the model."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    prior, value = posterior.prior, posterior.concentration
    mean = Ewens(value.mean) if isinstance(value, Gamma) else prior
    expected = round(mean.expected_clusters(posterior.n_objects))
    wanted = int(min(max(2, expected), LARGEST_K_MEANS, prior.most_clusters))
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
