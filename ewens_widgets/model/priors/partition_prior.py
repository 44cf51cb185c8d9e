r"""What all priors on partitions have in common: a factor for their number of clusters, one for each size.

A partition B of n objects into K clusters of sizes :math:`n_b` has probability

.. math:: p(B) = V_n(K) \prod_b W(n_b), \qquad \frac{W(m+1)}{W(m)} = m - \sigma, \qquad
    W(1) = -\sigma \text{ if that is positive, else } 1,

a Gibbs-type prior (Gnedin & Pitman 2006). The discount σ < 1 is zero for Ewens' prior, positive for Pitman
and Yor's, negative where there are finitely many components. Everything else follows.

**Seats.** With i objects seated in K clusters, the next one joins a cluster of m members with weight
:math:`m - \sigma` and opens a new one with weight :math:`W(1) \, V_{i+1}(K+1) / V_{i+1}(K)`; the weights sum
to :math:`V_i(K) / V_{i+1}(K)`, because what n + 1 objects do without the last is what n objects do:

.. math:: V_n(K) = (n - \sigma K) \, V_{n+1}(K) + W(1) \, V_{n+1}(K+1).

For a fixed concentration λ the weight of a new cluster is :math:`\lambda + \sigma K`, the sum is
:math:`\lambda + i`, and two numbers give V too (`SeatingRule`; Pitman 1995):

* `Ewens`: :math:`\sigma = 0`;
* `PitmanYor`: :math:`0 \le \sigma < 1`, :math:`\lambda > -\sigma`;
* `DirichletMultinomial`: :math:`\sigma = -\lambda/k`, so that no cluster is opened beside k others.

The others are averages: over λ (`Ewens` with a Gamma prior), or over k with λ = γk (`FiniteMixture`). They
are drawn exactly by drawing λ or k first.

**The number of clusters** has probabilities :math:`p(K) = V_n(K) \, G_n(K)`, where the generalised Stirling
numbers :math:`G_n(K) = \sum \prod_b W(n_b)`, summed over partitions into K clusters, obey a recursion with
positive terms,

.. math:: G_{n+1}(K) = (n - \sigma K) \, G_n(K) + W(1) \, G_n(K-1).

It takes n steps over the numbers of clusters that are asked for; nothing cancels. The same numbers give the
sizes: m given objects are a cluster, and the others whatever they are, so that

.. math:: E[C_m] = \binom{n}{m} \, W(m) \sum_j V_n(j+1) \, G_{n-m}(j), \qquad G_0(0) = 1.

===================  ===========================================================
symbol               name
===================  ===========================================================
n, K                 `n` objects; `counts` of clusters, of which `most` at most
:math:`V_n, W`       `log_count_weights`, `log_size_weights`; their steps are
                     :math:`\log V_n(K+1)/V_n(K)`, :math:`\log W(m+1)/W(m)`
λ, σ, k              `concentration`, `discount`, `components`
===================  ===========================================================
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from ewens_widgets.arguments import check_count
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.partition import check_labels, cluster_sizes

Counts = NDArray[np.intp]


class PartitionPrior:
    """A prior on the partitions of any number of objects; see `ew.priors` for those there are.

    A new one has a rule of seats. Where a parameter of the rule is averaged over, it has the discount, how to
    draw a rule, and the weights V instead.
    """

    @property
    def _rule(self) -> "SeatingRule | None":
        """The rule of seats, or None where it has a parameter that is averaged over."""
        return None

    @property
    def _discount(self) -> float:
        """The σ in W(m+1)/W(m) = m − σ."""
        return 0.0 if self._rule is None else self._rule.discount

    @property
    def most_clusters(self) -> float:
        """How many clusters are possible at all; infinite where there is no bound."""
        components = None if self._rule is None else self._rule.components
        return np.inf if components is None else float(components)

    @property
    def has_slow_count_weights(self) -> bool:
        """Whether every V(K) takes a sum or an integral of its own."""
        return self._rule is None

    def _draw_rule(self, rng: np.random.Generator, draws: int) -> "SeatingRule":
        """Draw the parameter that is averaged over, for each of several draws."""
        del rng, draws
        return cast("SeatingRule", self._rule)

    def _log_count_weights(self, n: int, counts: Counts) -> FloatArray:
        """Log V_n(K) for some K of at least 1."""
        rule = cast("SeatingRule", self._rule)
        products = np.cumsum(np.append(0.0, self._log_count_steps(n, np.arange(1, counts.max(initial=1)))))
        seats = log_rising_factorial(rule.concentration + 1.0, n - 1) + self._log_size_weights(np.array([1]))
        return np.asarray(products[counts - 1] - seats, dtype=np.float64)

    def _log_count_steps(self, n: int, counts: Counts) -> FloatArray:
        """Log of V_n(K+1)/V_n(K) for consecutive K ≥ 1."""
        if self._rule is None:
            with np.errstate(invalid="ignore"):  # Where both are impossible the step is, too.
                steps = np.diff(self._log_count_weights(n, np.append(counts, counts[-1:] + 1)))
            return np.where(counts < self.most_clusters, steps, -np.inf)
        with np.errstate(divide="ignore"):
            openings = np.log(self._rule.opening_weights(counts))
        return np.asarray(openings - self._log_size_weights(np.array([1])), dtype=np.float64)

    def _log_size_weights(self, sizes: Counts) -> FloatArray:
        """Log W(m) for some m of at least 1."""
        if self._discount < 0.0:
            return np.asarray(gammaln(sizes) - betaln(-self._discount, sizes), dtype=np.float64)
        return np.asarray(gammaln(sizes - self._discount) - gammaln(1.0 - self._discount), dtype=np.float64)

    def log_pmf(self, labels: ArrayLike) -> float:
        """Log probability of a partition, given as one label an object."""
        sizes = cluster_sizes(check_labels(labels))
        weight = self._log_count_weights(int(sizes.sum()), np.array([sizes.size]))[0]
        return float(weight + self._log_size_weights(sizes).sum())

    def sample(self, n: int, rng: np.random.Generator) -> Counts:
        """Draw the canonical labels of a partition of n objects, seating one after the other."""
        return self.sample_partitions(n, 1, rng).ravel()

    def sample_partitions(self, n: int, draws: int, rng: np.random.Generator) -> Counts:
        """Draw the canonical labels of many partitions, a partition a row, seated side by side."""
        n_objects = _check_objects(n)
        n_draws = check_count("the number of draws", draws, 1)
        return self._draw_rule(rng, n_draws).sample_partitions(n_objects, n_draws, rng)

    def seating_probabilities(self, sizes: ArrayLike) -> FloatArray:
        """Probabilities that the next object joins each of the clusters, and (last) that it opens a new one.

        Parameters
        ----------
        sizes
            Sizes of the clusters so far; empty before the first object.
        """
        weights = self.seating_weights(sizes)
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def seating_weights(self, sizes: ArrayLike) -> FloatArray:
        """Weights that `seating_probabilities` are proportional to: m − σ for m members; new cluster last.

        Parameters
        ----------
        sizes
            Sizes of the clusters so far; empty before the first object, which opens a cluster in any case.
            Its weight is that of the rule, such as λ, or 1 where the rule has none.
        """
        members = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
        if members.size == 0:
            weight = 0.0 if self._rule is None else float(self._rule.opening_weights(0))
            return np.array([weight if weight > 0.0 else 1.0])
        if members.ndim != 1 or not np.all(members > 0.0):
            raise ValueError("cluster sizes must be positive.")
        if members.size > self.most_clusters:
            raise ValueError(
                f"{self} has at most {self.most_clusters:.0f} clusters; got the sizes of {members.size}."
            )
        if self._rule is None:
            steps = self._log_count_steps(round(members.sum()) + 1, np.array([members.size]))
            opening = np.exp(steps + self._log_size_weights(np.array([1])))
        else:
            opening = self._rule.opening_weights(members.size)
        return np.append(members - self._discount, opening)

    def count_pmf(self, n: int, most: int | None = None) -> FloatArray:
        """Probabilities of 0, 1, …, n clusters, or of those up to `most`, in O(n · most)."""
        n_objects = _check_objects(n)
        largest = _check_most(most, n_objects)
        possible = int(min(largest, self.most_clusters))
        steps = self._log_count_steps(n_objects, np.arange(1, possible))
        log_pmf = np.cumsum(np.append(self.log_pmf(np.zeros(n_objects, dtype=np.intp)), steps))
        *_, ratios = _log_stirling_ratios(n_objects, possible, self._discount)
        log_pmf += ratios + self._log_size_weights(np.array([1])) * np.arange(possible)
        pmf = np.append(0.0, np.exp(log_pmf))
        return np.concatenate([pmf, np.zeros(largest - possible)])

    def expected_clusters(self, n: int) -> float:
        """Mean number of clusters of n objects."""
        if self._rule is None:
            return self._averaged_clusters(_check_objects(n))
        return float(np.sum(self._rule.openings(_check_objects(n))))

    def _averaged_clusters(self, n: int) -> float:
        """Mean number of clusters where there is no rule."""
        return float(self.count_pmf(n) @ np.arange(n + 1))

    def expected_sizes(self, n: int, most: int | None = None) -> FloatArray:
        """Expected number of clusters with 0, 1, …, n members; multiplied by these, they sum to n.

        Parameters
        ----------
        n
            Number of objects.
        most
            Partitions into more clusters than this are left out, for the sake of time, which is O(n · most).
        """
        n_objects = _check_objects(n)
        possible = int(min(_check_most(most, n_objects), self.most_clusters))
        log_sizes = self._log_size_weights(np.arange(1, n_objects + 1))
        log_terms = self._log_count_weights(n_objects, np.arange(1, possible + 1))
        log_expected = np.full(n_objects + 1, -np.inf)
        log_expected[n_objects] = log_terms[0] + log_sizes[-1]
        # The other objects make one cluster or more, each with a factor W(1) that the ratios leave out.
        log_terms = log_terms[1:] + log_sizes[0] * np.arange(possible - 1)
        rows = _log_stirling_ratios(n_objects - 1, possible - 1, self._discount)
        for others, ratios in enumerate(rows, start=1):
            size = n_objects - others
            log_ways = gammaln(n_objects + 1) - gammaln(size + 1) - gammaln(others + 1)
            log_sum = np.logaddexp.reduce(log_terms + ratios)
            log_expected[size] = log_ways + log_sizes[size - 1] + log_sizes[others - 1] + log_sum
        return np.asarray(np.exp(log_expected), dtype=np.float64)

    def log_count_weights(self, n: int, most: int | None = None) -> FloatArray:
        """Log V_n(K) for K = 0, …, n, or up to `most`; the first is minus infinity."""
        n_objects = _check_objects(n)
        counts = np.arange(1, _check_most(most, n_objects) + 1)
        return np.concatenate([[-np.inf], self._log_count_weights(n_objects, counts)])

    def log_count_steps(self, n: int, most: int | None = None) -> FloatArray:
        """Log of V_n(K+1)/V_n(K) for K = 0, …, n − 1, or below `most`; the first is infinite."""
        n_objects = _check_objects(n)
        counts = np.arange(1, _check_most(most, n_objects))
        return np.concatenate([[np.inf], self._log_count_steps(n_objects, counts)])

    def log_size_weights(self, n: int) -> FloatArray:
        """Log W(m) for m = 0, …, n; the first is zero, as an empty cluster is no factor."""
        return np.concatenate([[0.0], self._log_size_weights(np.arange(1, _check_objects(n) + 1))])

    def log_size_steps(self, n: int) -> FloatArray:
        """Log of W(m+1)/W(m) for m = 0, …, n − 1; the first is log W(1)."""
        steps = np.log(np.arange(1, _check_objects(n)) - self._discount)
        return np.concatenate([self._log_size_weights(np.array([1])), steps])


@dataclass(frozen=True)
class SeatingRule:
    """The rule of seats with two numbers: join m others with weight m − σ, or open with weight λ + σK.

    Attributes
    ----------
    concentration
        λ: a number, or an array with one for each of several draws.
    discount
        σ, below 1.
    components
        k, where there are finitely many; then σ = −λ/k. A number, or an array as above.
    """

    concentration: float | FloatArray
    discount: float = 0.0
    components: float | FloatArray | None = None

    def opening_weights(self, counts: Counts | int) -> FloatArray:
        """Weight of a new cluster beside so many others; exactly zero beside k of k."""
        if self.components is None:
            return np.asarray(self.concentration + self.discount * counts, dtype=np.float64)
        share = np.maximum(self.components - counts, 0) / self.components
        return np.asarray(self.concentration * share, dtype=np.float64)

    def openings(self, n: int) -> FloatArray:
        r"""Chances that the first, second, …, nth object opens a cluster.

        That of the object after i others is :math:`(\lambda+\sigma)^{(i)} / (\lambda+1)^{(i)}`, with rising
        factorials; of Ewens' prior :math:`\lambda/(\lambda+i)` is left.
        """
        if self.discount == 0.0:
            return np.asarray(self.concentration / (self.concentration + np.arange(n)), dtype=np.float64)
        seated = np.arange(1.0, n)
        ratios = (self.opening_weights(1) + (seated - 1.0)) / (self.concentration + seated)
        return np.concatenate([[1.0], np.cumprod(ratios)])

    def sample_partitions(self, n: int, draws: int, rng: np.random.Generator) -> Counts:
        """Draw many partitions, a partition a row: all are seated side by side, object by object.

        Weights m − σ are those of m objects and of the cluster with weight −σ; for a positive σ, those of the
        m − 1 objects that joined it (the pool) and of the cluster with weight 1 − σ.
        """
        rows, most = np.arange(draws), np.inf if self.components is None else self.components
        labels = np.zeros((draws, n), dtype=np.intp)
        everybody = self.discount <= 0.0
        pool, share = (labels, -self.discount) if everybody else (np.zeros_like(labels), 1.0 - self.discount)
        n_clusters = np.ones(draws, dtype=np.intp)
        for seated in range(1, n):
            place = rng.random(draws) * (seated + self.concentration)
            opens = (place >= seated - self.discount * n_clusters) & (n_clusters < most)
            pooled = np.full(draws, seated) if everybody else seated - n_clusters
            by_object = place < pooled
            joined = pool[rows, np.where(by_object, place, 0).astype(np.intp)]
            if share > 0.0:
                by_cluster = (np.where(by_object, 0.0, place - pooled) / share).astype(np.intp)
                joined = np.minimum(np.where(by_object, joined, by_cluster), n_clusters - 1)
            labels[:, seated] = np.where(opens, n_clusters, joined)
            if not everybody:
                pool[rows, pooled] = joined  # of those who open one it is overwritten by the next
            n_clusters += opens
        return labels


def _log_stirling_ratios(n: int, most: int, discount: float) -> Iterator[FloatArray]:
    """Log of G_i(K) / (W(1)^(K−1) G_i(1)) for K = 1, …, `most`, and that for i = 1, …, n in turn.

    Relative to one cluster, so that the numbers stay small: G_i(1) = W(i) itself is about i!.
    """
    if most < 1:
        return
    counts = np.arange(1.0, most + 1.0)
    ratios = np.full(most, -np.inf)
    ratios[0] = 0.0
    for seated in range(1, n):
        yield ratios
        reached = min(seated + 1, most)
        # Smaller only beyond the clusters that there are.
        left = np.maximum(seated - discount * counts[1:reached], 1.0 - discount)
        joined = ratios[1:reached] + np.log(left / (seated - discount))
        ratios[1:reached] = np.logaddexp(joined, ratios[: reached - 1] - np.log(seated - discount))
    yield ratios


def _check_objects(n: int) -> int:
    return check_count("the number of objects", n, 1)


def _check_most(most: int | None, n: int) -> int:
    """Return the largest number of clusters that is asked for: n by default."""
    if most is None:
        return n
    largest = check_count("the largest number of clusters", most, 1)
    if largest > n:
        raise ValueError(f"{n} objects have at most {n} clusters; got most={most}.")
    return largest


def log_rising_factorial(start: FloatArray | float, count: int) -> FloatArray:
    r"""Log of :math:`x (x+1) \cdots (x+k-1) = \Gamma(x+k)/\Gamma(x)` for positive x.

    SciPy's Beta function, unlike a difference of two log Gamma functions, keeps its digits where x is large.
    """
    if np.ndim(start) == 0 or count == 0:
        return np.asarray(np.log(np.add.outer(start, np.arange(count))).sum(axis=-1), dtype=np.float64)
    return np.asarray(gammaln(count) - betaln(start, count), dtype=np.float64)


def total_variation(one: ArrayLike, other: ArrayLike) -> float:
    """Total variation distance of two laws on the same values: half the sum of absolute differences.

    Examples
    --------
    >>> total_variation([0.5, 0.5], [0.75, 0.25])
    0.25
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"both laws must list the probabilities of the same values; got shapes {first.shape} and "
            f"{second.shape}."
        )
    return float(0.5 * np.abs(first - second).sum())
