r"""Priors with finitely many components, whose number is known or not.

**A known number** (`DirichletMultinomial`). The weights of the k components are symmetric
Dirichlet(:math:`\lambda/k`), each object belongs to a component drawn by them, and objects of the same
component form a cluster. With n objects in :math:`K \le k` clusters,

.. math:: p(B) = \frac{k!}{(k-K)!} \, \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)}
    \prod_b \frac{\Gamma(n_b + \lambda/k)}{\Gamma(\lambda/k)},

and more than k clusters are impossible. Seated one by one, with i objects seated in j clusters, the next
object

* joins a cluster of m members with probability :math:`(m + \lambda/k) / (\lambda + i)`, and
* opens a new one with probability :math:`\lambda (1 - j/k) / (\lambda + i)`.

As k grows the probabilities become those of the Ewens prior (see `ewens`).

**An unknown number** (`FiniteMixture`; Miller & Harrison 2018). The number k has a prior p(k) of its own on
1, 2, …; given k the weights of the components are symmetric Dirichlet(γ), so that the partition is that of
`DirichletMultinomial` with λ = γk. Averaged over k,

.. math:: p(B) = V_n(K) \prod_b \frac{\Gamma(n_b + \gamma)}{\Gamma(\gamma)}, \qquad
    V_n(K) = \sum_{k \ge K} p(k) \, \frac{k!}{(k-K)!} \, \frac{\Gamma(\gamma k)}{\Gamma(\gamma k + n)}.

As n grows K settles at the number of components, and every cluster grows in proportion to n: unlike Ewens'
prior this one does not open small clusters for ever. Draws take k from its prior, then seats given k.

**The series.** Its terms without p(k), :math:`f_K(k) = k!/(k-K)! \; \Gamma(\gamma k)/\Gamma(\gamma k+n)`, are
summed as logarithms. For n up to a thousand log V is good to twelve digits after the point, for a million to
eight.

*Where the series may stop.* Seen as a function of a real k,

.. math:: k \, \frac{d}{dk} \log f_K(k) = \sum_{j<K} \frac{1}{1 - j/k} - \sum_{i<n} \frac{1}{1 + i/(\gamma k)}

falls as k grows. So :math:`f_K` first rises, by factors that fall, and then falls: no later factor exceeds
the larger of 1 and the present one. Let p be log-concave, i.e. p(k+1)/p(k) never rises. Then past the term at
k no factor exceeds :math:`\rho = \max(1, f_K(k+1)/f_K(k)) \, p(k+1)/p(k)`, and what is left out is at most
:math:`\rho/(1-\rho)` times that term. We stop when this is below :math:`2^{-54}` of the sum.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors.partition_prior import (
    Counts,
    PartitionPrior,
    SeatingRule,
)

_NEGLIGIBLE = -54.0 * np.log(2.0)
_FIRST_TERMS = 64
_MOST_ENTRIES = 4_000_000  # Terms that are held at once.
_MOST_EXPECTED = 1000.0  # Components: with more, sums over their number take too long.
_LARGEST_GAMMA = 1e100  # Beyond it, products with the number of components would overflow.
_MOST_COMPONENTS = 2**53  # Floats tell whole numbers apart up to here.


@dataclass(frozen=True)
class DirichletMultinomial(PartitionPrior):
    """A fixed number k of components: V_n(K) = k!/(k−K)! Γ(λ)/Γ(n+λ), W(m) = Γ(m+λ/k)/Γ(λ/k).

    Parameters
    ----------
    k
        Number of components; no more than k clusters are possible.
    concentration
        Concentration λ, the sum of the k parameters of the Dirichlet distribution.

    Examples
    --------
    >>> DirichletMultinomial(2, 1.0).count_pmf(3).round(4).tolist()
    [0.0, 0.625, 0.375, 0.0]
    """

    k: int
    concentration: float

    def __post_init__(self) -> None:
        """Refuse parameters that make no prior."""
        components = check_count("the number of components", self.k, 1)
        if components > _MOST_COMPONENTS:
            raise ValueError(
                f"the number of components must not exceed 2**53; got {components}. "
                "With so many it is the Ewens prior: use Ewens(concentration)."
            )
        object.__setattr__(self, "k", components)
        object.__setattr__(self, "concentration", check_positive("concentration", self.concentration))

    @property
    def share(self) -> float:
        """Parameter λ/k of each component."""
        return self.concentration / self.k

    @property
    def _rule(self) -> SeatingRule:
        return SeatingRule(self.concentration, -self.share, self.k)


class CountPrior(ABC):
    """A prior of the number of components on k = 1, 2, …, with p(k+1)/p(k) never rising (log-concave)."""

    @property
    def largest(self) -> float:
        """The largest k that is possible."""
        return np.inf

    @abstractmethod
    def log_pmf(self, counts: NDArray[np.integer]) -> FloatArray:
        """Log probabilities of some k of at least 1; minus infinity where k is impossible."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        """Draw one k, or several."""

    def likely(self, log_tail: float) -> Counts:
        """Values 1, …, k beyond which there is less than exp(`log_tail`) of the probability."""
        size = _FIRST_TERMS
        while True:
            counts = np.arange(1, int(min(size, self.largest)) + 1)
            if counts[-1] == self.largest:
                return counts
            last, following = self.log_pmf(np.array([counts[-1], counts[-1] + 1]))
            if last - following > 0.0 and following - np.log(-np.expm1(following - last)) < log_tail:
                return counts
            size *= 2


@dataclass(frozen=True)
class Geometric(CountPrior):
    """p(k) = p (1−p)^(k−1) on k = 1, 2, …: the number of tosses until the first success, with mean 1/p.

    Parameters
    ----------
    probability
        Probability p of success, at most 1.
    """

    probability: float

    def __post_init__(self) -> None:
        """Refuse what is no probability, or leads to more components than can be summed over."""
        value = check_positive("the probability of the geometric prior", self.probability)
        if not 1.0 / _MOST_EXPECTED <= value <= 1.0:
            raise ValueError(
                f"the probability of the geometric prior must lie between {1.0 / _MOST_EXPECTED:g} and 1; "
                f"got {value!r}."
            )
        object.__setattr__(self, "probability", value)

    @property
    def largest(self) -> float:
        """1 if success is certain."""
        return 1.0 if self.probability == 1.0 else np.inf

    def log_pmf(self, counts: NDArray[np.integer]) -> FloatArray:
        """Log p(k)."""
        if self.probability == 1.0:
            return np.where(counts == 1, 0.0, -np.inf)
        log_pmf = np.log(self.probability) + (counts - 1) * np.log1p(-self.probability)
        return np.asarray(log_pmf, dtype=np.float64)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        """Draw one k, or several."""
        return np.asarray(rng.geometric(self.probability, size=size))


@dataclass(frozen=True)
class Poisson(CountPrior):
    """p(k) = e^(−rate) rate^(k−1) / (k−1)! on k = 1, 2, …: k − 1 is a Poisson number, k has mean 1 + rate.

    Parameters
    ----------
    rate
        Mean of k − 1.
    """

    rate: float

    def __post_init__(self) -> None:
        """Refuse a rate that is not positive, or leads to more components than can be summed over."""
        value = check_positive("the rate of the Poisson prior", self.rate)
        if value > _MOST_EXPECTED:
            raise ValueError(
                f"the rate of the Poisson prior must not exceed {_MOST_EXPECTED:g}; got {value!r}."
            )
        object.__setattr__(self, "rate", value)

    def log_pmf(self, counts: NDArray[np.integer]) -> FloatArray:
        """Log p(k)."""
        log_pmf = (counts - 1) * np.log(self.rate) - self.rate - gammaln(counts)
        return np.asarray(log_pmf, dtype=np.float64)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        """Draw one k, or several."""
        return np.asarray(1 + rng.poisson(self.rate, size=size))


@dataclass(frozen=True)
class FiniteMixture(PartitionPrior):
    """An unknown number of components: V_n(K) = Σ_k p(k) k!/(k−K)! Γ(γk)/Γ(γk+n), W(m) = Γ(m+γ)/Γ(γ).

    Parameters
    ----------
    gamma
        Parameter γ of the Dirichlet weights of the components. With 1 all weights are equally likely; the
        larger, the more alike the clusters' sizes.
    count
        Prior of the number of components: `Geometric` or `Poisson`, or another `CountPrior`. The default
        has mean 1.7 and prefers few components. That matters since two clusters with one centre and shape
        fit as well as one: the data of a single Gaussian hardly change the prior. For 300 objects of one
        Gaussian in three dimensions, own shapes have 2.1 clusters on average a posteriori; with
        `Geometric(0.5)` they have 2.7, with 0.7 they have 1.7. But with 0.7, four overlapping clusters of 20
        objects each are often reported as two. Five well separated Gaussians are found with all three.

    Examples
    --------
    >>> prior = FiniteMixture()
    >>> prior.expected_clusters(10) < prior.expected_clusters(10_000) < 2.0
    True
    """

    gamma: float = 1.0
    count: CountPrior = Geometric(0.6)

    def __post_init__(self) -> None:
        """Refuse parameters that make no prior."""
        gamma = check_positive("gamma", self.gamma)
        if not 1.0 / _LARGEST_GAMMA <= gamma <= _LARGEST_GAMMA:
            raise ValueError(
                f"gamma must lie between {1.0 / _LARGEST_GAMMA:g} and {_LARGEST_GAMMA:g}; got {gamma!r}."
            )
        object.__setattr__(self, "gamma", gamma)
        if not isinstance(self.count, CountPrior):
            raise TypeError(
                "count must be a prior of the number of components, such as Geometric(0.5) or Poisson(3.0); "
                f"got {self.count!r}."
            )

    @property
    def _discount(self) -> float:
        return -self.gamma

    @property
    def most_clusters(self) -> float:
        """As many as there can be components."""
        return self.count.largest

    def _draw_rule(self, rng: np.random.Generator, draws: int) -> SeatingRule:
        components = self.count.sample(rng, draws).astype(np.float64)
        return SeatingRule(self.gamma * components, -self.gamma, components)

    def _averaged_clusters(self, n: int) -> float:
        r"""Average over k the number of components that are not empty.

        One of k components stays empty with probability :math:`B(\gamma k, n) / B(\gamma k - \gamma, n)`.
        """
        counts = self.count.likely(_NEGLIGIBLE - np.log(n))
        weights = self.gamma * counts
        occupied = np.ones(counts.shape)
        occupied[1:] = -np.expm1(betaln(weights[1:], n) - betaln(weights[:-1], n))
        return float(np.sum(np.exp(self.count.log_pmf(counts)) * counts * occupied))

    def _log_count_weights(self, n: int, counts: Counts) -> FloatArray:
        """Sum the series, with as many terms for each K as it needs."""
        sums = np.full(counts.shape, -np.inf)
        waiting = np.flatnonzero(counts <= self.most_clusters)
        size = _FIRST_TERMS
        while waiting.size:
            rows = max(1, _MOST_ENTRIES // size)
            left = []
            for chosen in np.array_split(waiting, -(-waiting.size // rows)):
                sums[chosen], done = self._partial_sums(n, counts[chosen], size)
                left.append(chosen[~done])
            waiting = np.concatenate(left)
            size *= 2
        return sums

    def _partial_sums(self, n: int, counts: Counts, size: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Sum the first terms of the series for some K, and tell where the others are negligible."""
        lowest = int(counts[0])
        components = np.arange(lowest, int(counts[-1]) + size + 1)
        common = gammaln(components + 1.0) + betaln(self.gamma * components, n) - gammaln(n)
        log_priors = self.count.log_pmf(components)
        later = np.arange(size + 1)
        places = (counts - lowest)[:, None] + later
        log_f = common[places] - gammaln(later + 1.0)
        terms = log_f + log_priors[places]
        sums = np.asarray(logsumexp(terms[:, :-1], axis=1), dtype=np.float64)
        last, following = log_priors[places[:, -2]], log_priors[places[:, -1]]
        with np.errstate(invalid="ignore", divide="ignore"):
            log_factor = np.maximum(0.0, log_f[:, -1] - log_f[:, -2]) + following - last
            rest = terms[:, -2] + log_factor - np.log(-np.expm1(np.minimum(log_factor, 0.0)))
        # Past the end of what is possible nothing is left, once something has been found.
        done = (rest < sums + _NEGLIGIBLE) | ((last == -np.inf) & (sums > -np.inf))
        return sums, done
