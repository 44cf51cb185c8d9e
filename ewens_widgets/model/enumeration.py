"""The exact posterior of a few objects, by enumerating every partition and every θ."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.likelihood import log_likelihoods_from_statistics
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Concentration
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.partition import all_partitions, bell_number

LARGEST_EXACT = 9
_BLOCK = 4096  # Partitions handled at once: bounds memory at a few hundred MB for nine objects.


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """Every partition of n objects with its posterior probability.

    Attributes
    ----------
    labels
        Canonical labels, a row per partition (P × n).
    joint
        Probabilities of partition and θ (P × G); they sum to 1.
    log_evidence
        Log of the sum that normalises them: prior times likelihood, up to the likelihood's constant.
    posterior
        The posterior that was enumerated.
    """

    labels: NDArray[np.int8] = field(repr=False)
    joint: FloatArray = field(repr=False)
    log_evidence: float
    posterior: Posterior

    @property
    def probabilities(self) -> FloatArray:
        """Posterior probabilities of the partitions."""
        return np.asarray(self.joint.sum(axis=1), dtype=np.float64)

    @property
    def theta_probabilities(self) -> FloatArray:
        """Posterior probabilities of the values of θ."""
        return np.asarray(self.joint.sum(axis=0), dtype=np.float64)

    @property
    def cluster_count_probabilities(self) -> FloatArray:
        """Posterior probabilities of 0, 1, …, n clusters."""
        counts = self.labels.max(axis=1).astype(np.intp) + 1
        pmf = np.bincount(counts, weights=self.probabilities, minlength=self.labels.shape[1] + 1)
        return np.asarray(pmf, dtype=np.float64)

    def similarity(self) -> FloatArray:
        """Posterior probability, for each pair of objects, that they share a cluster."""
        same = self.labels[:, :, None] == self.labels[:, None, :]
        return np.asarray(np.einsum("p,pij->ij", self.probabilities, same), dtype=np.float64)

    def most_probable(self, count: int = 5) -> list[tuple[NDArray[np.int8], float]]:
        """List the most probable partitions with their probabilities."""
        order = np.argsort(-self.probabilities, kind="stable")[:count]
        return [(self.labels[row], float(self.probabilities[row])) for row in order]


def exact_posterior(
    X: ArrayLike | Dataset,
    model: str = "II",
    concentration: Concentration = 1.0,
    alpha: float = 1.0,
    theta_grid: ArrayLike | None = None,
    *,
    prior: PartitionPrior | None = None,
    centre: str = "mean",
    theta_prior: str = "as-printed",
) -> ExactPosterior:
    """Enumerate the posterior of at most 9 objects (21 147 partitions).

    The parameters are those of `Sampler` with common shapes. Tests compare samplers with this posterior.
    """
    posterior = Posterior.from_data(
        X, model, concentration, alpha, theta_grid, prior=prior, centre=centre, theta_prior=theta_prior
    )
    n_objects = posterior.n_objects
    if len(posterior.gaps):
        raise ValueError(
            "partitions are enumerated for tables without missing cells; use ew.Sampler, or drop these rows."
        )
    if n_objects > LARGEST_EXACT:
        size = f"{bell_number(n_objects):.3g}" if n_objects <= 200 else "too many"
        raise ValueError(
            f"exact enumeration takes at most {LARGEST_EXACT} objects; {n_objects} have {size} partitions. "
            "Use ew.Sampler, or a few rows of the data."
        )
    labels = all_partitions(n_objects)
    starts = range(0, len(labels), _BLOCK)
    log_joint = np.concatenate([_log_joint(posterior, labels[start : start + _BLOCK]) for start in starts])
    log_evidence = float(logsumexp(log_joint))
    return ExactPosterior(labels, np.exp(log_joint - log_evidence), log_evidence, posterior)


def _log_joint(posterior: Posterior, labels: NDArray[np.int8]) -> FloatArray:
    """Unnormalised log posterior of a block of partitions × θ."""
    membership = labels[:, None, :] == np.arange(posterior.n_objects)[:, None]
    sizes = membership.sum(axis=2).astype(np.float64)
    sums = np.matmul(membership, posterior.coordinates)
    log_likelihoods = log_likelihoods_from_statistics(
        sizes, sums, posterior.n_objects, posterior.theta_grid, posterior.model, posterior.centre
    )
    counts = labels.max(axis=1).astype(np.intp) + 1
    by_size = posterior.log_size_weights[sizes.astype(np.intp)].sum(axis=1)
    log_prior = posterior.log_count_weights[counts] + by_size
    if posterior.columns.has_categories:
        log_likelihoods += np.array([[posterior.log_categories(row)] for row in labels])
    return np.asarray(log_prior[:, None] + posterior.log_theta_prior + log_likelihoods, dtype=np.float64)
