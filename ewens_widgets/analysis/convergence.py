r"""R-hat and effective sample size without ArviZ: quick enough to follow a run while it is going on.

Both follow Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021): chains are split into halves, all values are
replaced by normal scores of their ranks, and then, with m half chains of n draws each, within-chain variance
W and variance of the chain means B/n,

.. math::

    \hat R = \sqrt{\frac{(n-1)/n \cdot W + B/n}{W}}, \qquad
    \text{ESS} = \frac{mn}{-1 + 2 \sum_k P_k}, \qquad P_k = \rho_{2k} + \rho_{2k+1} .

R-hat is the larger of those of the values and of their distances from the median. The pairs :math:`P_k` of
autocorrelations of all chains together are summed as long as they are positive, none larger than the one
before it (Geyer's initial monotone sequence). `analysis.diagnostics` has more, and takes it from ArviZ.

Do several chains agree so far? R-hat, effective sample sizes, similarity, and a sentence about them.

Has the chain run long enough? R-hat, effective sample sizes and autocorrelation, through ArviZ.

The number of clusters, θ, the log posterior and the size of the largest cluster are followed; they do not
depend on how clusters are numbered. R-hat (rank-normalised, Vehtari et al. 2021) compares chains with each
other and, by splitting each, early with late draws. One chain alone is split into halves first: a value near
1 then says that its parts agree, not that it has seen all of the posterior.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from ewens_widgets.memory import TooLargeError
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.archive import same_posterior
from ewens_widgets.sampling.trace import Trace

__all__ = [
    "FEWEST_DRAWS",
    "QUANTITIES",
    "ChainAgreement",
    "Diagnostics",
    "agreement_of",
    "autocorrelation",
    "bulk_ess",
    "diagnose",
    "largest_gap",
    "quantities",
    "rhat",
    "similarity_gap",
]

FEWEST_DRAWS = 10
"""Draws of each chain below which nothing can be said: half chains need some."""


def rhat(values: FloatArray) -> float:
    """R-hat of several chains, one a row: NaN where nothing changes, infinite where all are stuck apart."""
    if np.ptp(values) == 0.0:
        return float("nan")
    if np.all(np.ptp(values, axis=1) == 0.0):
        return float("inf")
    halves = _halves(values)
    found = max(_plain_rhat(_scores(halves)), _plain_rhat(_scores(np.abs(halves - np.median(halves)))))
    if not np.isfinite(found):
        found = _plain_rhat(halves)
    return found if np.isfinite(found) else float("inf")


def bulk_ess(values: FloatArray) -> float:
    """Effective sample size of several chains together, one a row; all draws where nothing ever changes."""
    if np.ptp(values) == 0.0:
        return float(values.size)
    scores = _scores(_halves(values))
    n_chains, n_draws = scores.shape
    covariances = _autocovariances(scores).mean(axis=0)
    within = covariances[0] * n_draws / (n_draws - 1.0)
    pooled = covariances[0] + float(np.var(scores.mean(axis=1), ddof=1))
    correlations = 1.0 - (within - covariances) / pooled
    correlations[0] = 1.0
    pairs = correlations[: 2 * (n_draws // 2)].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    # The last lags rest on too few products; ArviZ leaves out as many.
    end = min(int(ends[0]) if ends.size else pairs.size, (n_draws - 3) // 2)
    kept = np.minimum.accumulate(pairs[:end])
    # Of the first pair that is left out, the even half counts once; a negative one only if the pair is not.
    rest = float(correlations[2 * end])
    if pairs[end] < 0.0:
        rest = max(rest, 0.0)
    time = -1.0 + 2.0 * float(kept.sum()) + rest
    most = n_chains * n_draws
    return float(most / max(time, 1.0 / np.log10(most)))


def _halves(values: FloatArray) -> FloatArray:
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _scores(values: FloatArray) -> FloatArray:
    """Normal scores of the ranks of all values together."""
    ranks = rankdata(values).reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)), dtype=np.float64)


def _plain_rhat(values: FloatArray) -> float:
    n_draws = values.shape[1]
    within = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return float("nan")
    return float(np.sqrt((n_draws - 1.0) / n_draws + between / within))


def _autocovariances(values: FloatArray) -> FloatArray:
    """Autocovariances of each chain at all lags, by Fourier transform."""
    n_draws = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    size = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    products = np.fft.irfft(spectrum * np.conj(spectrum), size, axis=1)[:, :n_draws]
    return np.asarray(products / n_draws, dtype=np.float64)


QUANTITIES = {"n_clusters": "number of clusters", "log_posterior": "log posterior", "theta": "log₂ θ"}
"""What is followed: the same whatever the clusters are called."""

# As in `analysis.report`.
GOOD_RHAT, BAD_RHAT = 1.05, 1.2
WANTED_ESS = 100.0
BAD_GAP = 0.1


@dataclass(frozen=True, eq=False)
class ChainAgreement:
    """What several chains say together.

    Attributes
    ----------
    n_draws
        Draws of each chain that count.
    rhat, ess
        By quantity; R-hat is NaN for one that never changes.
    means
        Mean of each quantity by chain.
    gap
        Largest average difference between the similarity matrices of two chains; None if it is not known.
    """

    n_draws: int
    rhat: Mapping[str, float] = field(default_factory=dict)
    ess: Mapping[str, float] = field(default_factory=dict)
    means: Mapping[str, FloatArray] = field(default_factory=dict)
    gap: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether there are draws enough to say anything."""
        return bool(self.rhat)

    @property
    def worst(self) -> str:
        """The quantity with the largest R-hat."""
        return max(self.rhat, key=lambda name: -1.0 if np.isnan(self.rhat[name]) else self.rhat[name])

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; 1 if nothing ever changed."""
        return max([1.0, *(value for value in self.rhat.values() if not np.isnan(value))])

    @property
    def least_ess(self) -> float:
        """The smallest effective sample size."""
        return min(self.ess.values(), default=0.0)

    @property
    def verdict(self) -> str:
        """``"unknown"``, ``"apart"``, ``"not yet"`` or ``"agree"``."""
        if not self.is_known:
            return "unknown"
        gap = self.gap or 0.0
        if self.worst_rhat > BAD_RHAT or gap > BAD_GAP:
            return "apart"
        if self.worst_rhat > GOOD_RHAT or self.least_ess < WANTED_ESS:
            return "not yet"
        return "agree"

    def sentence(self, names: Sequence[str]) -> str:
        """Say plainly whether the chains agree; `names` are those of the chains."""
        verdict = self.verdict
        if verdict == "unknown":
            return (
                f"Too early to say whether the chains agree: they have {self.n_draws} draws each that count."
            )
        if verdict == "agree":
            return (
                f"The chains agree: no R-hat is above {self.worst_rhat:.2f}, and together they are worth at "
                f"least {self.least_ess:.0f} independent draws."
            )
        if verdict == "apart":
            return f"The chains do not agree: {self._difference(names)}."
        if self.worst_rhat > GOOD_RHAT:
            return (
                f"The chains nearly agree, but not yet: the {QUANTITIES[self.worst]} has R-hat "
                f"{self.worst_rhat:.2f}, and should have {GOOD_RHAT} at most. Run longer."
            )
        return (
            f"The chains agree as far as can be seen, but together they are worth only {self.least_ess:.0f} "
            f"independent draws; {WANTED_ESS:.0f} would be better. Run longer."
        )

    def _difference(self, names: Sequence[str]) -> str:
        if self.worst_rhat <= BAD_RHAT:
            return (
                f"two of them put objects together differently, by {self.gap:.2f} on average over all pairs"
            )
        means = self.means[self.worst]
        low, high = int(means.argmin()), int(means.argmax())
        value = f"{self.worst_rhat:.2f}" if np.isfinite(self.worst_rhat) else "∞"
        return (
            f"the {QUANTITIES[self.worst]} has R-hat {value}; its mean is {means[low]:.4g} in {names[low]} "
            f"and {means[high]:.4g} in {names[high]}"
        )


def agreement_of(chains: Mapping[str, Sequence[NDArray[Any]]], gap: float | None = None) -> ChainAgreement:
    """Compare chains.

    Parameters
    ----------
    chains
        Draws of each quantity, one array a chain, all of one length.
    gap
        Largest average difference between similarity matrices, if it is known.
    """
    rows = {
        name: np.stack([np.asarray(values, dtype=np.float64) for values in chains[name]]) for name in chains
    }
    n_draws = min(values.shape[1] for values in rows.values())
    if n_draws < FEWEST_DRAWS:
        return ChainAgreement(n_draws)
    return ChainAgreement(
        n_draws=n_draws,
        rhat={name: rhat(values) for name, values in rows.items()},
        ess={name: bulk_ess(values) for name, values in rows.items()},
        means={name: values.mean(axis=1) for name, values in rows.items()},
        gap=gap,
    )


def largest_gap(similarities: Sequence[NDArray[Any]]) -> float:
    """Largest average absolute difference between two similarity matrices."""
    return max((float(np.abs(one - two).mean()) for one, two in combinations(similarities, 2)), default=0.0)


_FEWEST_DRAWS = 8  # Halves of halves need at least two draws each.


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What the draws say about the run.

    Attributes
    ----------
    n_chains, n_draws
        Number of chains, and draws of each.
    rhat
        R-hat by quantity; NaN for one that never changes, infinite where chains are stuck at different
        values.
    ess_bulk, ess_tail
        Effective sample sizes by quantity, of all chains together: for averages, and for the 5 % and 95 %
        quantiles.
    acceptance
        Share of accepted proposals by move, over all chains.
    similarity_gap
        Largest average difference between the similarity matrices of two chains (of the two halves, for one
        chain); None where these were left out or would not fit in memory.
    """

    n_chains: int
    n_draws: int
    rhat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]
    acceptance: Mapping[str, float] = field(default_factory=dict)
    similarity_gap: float | None = None

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; 1 if nothing ever changed."""
        return max([1.0, *(value for value in self.rhat.values() if not np.isnan(value))])

    @property
    def least_ess(self) -> float:
        """The smallest effective sample size of a quantity that changes."""
        changing = [name for name, value in self.rhat.items() if not np.isnan(value)]
        sizes = [min(self.ess_bulk[name], self.ess_tail[name]) for name in changing]
        return min(sizes, default=float(self.n_chains * self.n_draws))


def diagnose(traces: Trace | Sequence[Trace], similarity: bool = True) -> Diagnostics:
    """Compute R-hat, effective sample sizes and acceptance for one chain or for several of one posterior.

    Parameters
    ----------
    traces
        One trace, or one for each chain. Longer ones are cut to the last draws, as many as the shortest has.
    similarity
        Compare the similarity matrices too, which costs most of the time where there are many objects.
    """
    chains = _aligned(traces)
    followed = quantities(chains)
    return Diagnostics(
        n_chains=len(chains),
        n_draws=len(chains[0]),
        rhat={name: _rhat(values) for name, values in followed.items()},
        ess_bulk={name: _ess(values, "bulk") for name, values in followed.items()},
        ess_tail={name: _ess(values, "tail") for name, values in followed.items()},
        acceptance=_pooled_acceptance(chains),
        similarity_gap=_gap_or_none(chains) if similarity else None,
    )


def quantities(traces: Sequence[Trace]) -> dict[str, FloatArray]:
    """What is followed, a chain a row: the same whatever the clusters are called.

    θ is taken as its place on the grid, whose steps are ratios.
    """
    chains = list(traces)
    followed = {
        "n_clusters": [trace.n_clusters for trace in chains],
        "theta": [trace.theta_index for trace in chains],
        "log_posterior": [trace.log_posterior for trace in chains],
        "largest_cluster": [_largest(trace) for trace in chains],
    }
    if isinstance(chains[0].posterior.concentration, Gamma):
        followed["concentration"] = [trace.concentration for trace in chains]
    return {name: np.asarray(np.stack(rows), dtype=np.float64) for name, rows in followed.items()}


def autocorrelation(trace: Trace, quantity: str = "n_clusters", max_lag: int | None = None) -> FloatArray:
    """Autocorrelation of a quantity at lags 0, 1, …; a slow decay means that draws say little anew.

    Parameters
    ----------
    trace
        Draws of a chain.
    quantity
        ``"n_clusters"``, ``"theta"``, ``"log_posterior"``, ``"largest_cluster"`` or, where it is sampled,
        ``"concentration"``.
    max_lag
        The largest lag; a tenth of the draws by default.
    """
    followed = quantities([trace])
    if quantity not in followed:
        raise ValueError(f"quantity must be one of {', '.join(followed)}; got {quantity!r}.")
    lags = len(trace) // 10 if max_lag is None else max_lag
    if not 0 <= lags < len(trace):
        raise ValueError(
            f"max_lag must be from 0 to {len(trace) - 1}, below the number of draws; got {lags}."
        )
    values = followed[quantity][0]
    if np.ptp(values) == 0.0:
        # Without variation there is nothing to correlate; say so rather than dividing by zero.
        return np.full(lags + 1, np.nan)
    return np.asarray(_autocorr(values)[: lags + 1], dtype=np.float64)


def similarity_gap(traces: Sequence[Trace]) -> float:
    """Largest average absolute difference between the similarity matrices of two traces.

    It looks at the clusters themselves: chains with equally many clusters may differ in which.
    """
    matrices = [trace.similarity(dtype=np.float32) for trace in traces]
    gaps = [float(np.abs(first - second).mean()) for first, second in combinations(matrices, 2)]
    return max(gaps, default=0.0)


def _aligned(traces: Trace | Sequence[Trace]) -> list[Trace]:
    chains = [traces] if isinstance(traces, Trace) else list(traces)
    if not chains:
        raise ValueError("there are no traces to diagnose.")
    if not all(same_posterior(chains[0].posterior, other.posterior) for other in chains[1:]):
        raise ValueError("only chains on the same data, model and prior can be compared.")
    shortest = min(len(trace) for trace in chains)
    if shortest < _FEWEST_DRAWS:
        raise ValueError(f"diagnostics need at least {_FEWEST_DRAWS} draws of each chain; got {shortest}.")
    return [trace if len(trace) == shortest else trace[-shortest:] for trace in chains]


def _largest(trace: Trace) -> NDArray[np.intp]:
    """Size of the largest cluster of each draw."""
    n_objects = trace.n_objects
    cells = trace.labels + n_objects * np.arange(len(trace))[:, None]
    counts = np.bincount(cells.ravel(), minlength=n_objects * len(trace)).reshape(len(trace), n_objects)
    return np.asarray(counts.max(axis=1), dtype=np.intp)


def _rhat(values: FloatArray) -> float:
    within = np.ptp(values, axis=1)
    if np.all(within == 0.0):
        return float("nan") if np.ptp(values) == 0.0 else float("inf")
    parts = _halved(values)
    # Where ranks or distances from the median do not vary within the parts, ArviZ divides zero by zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        ranked = float(_arviz().rhat(parts))
        plain = ranked if np.isfinite(ranked) else float(_arviz().rhat(parts, method="split"))
    return float("inf") if np.isnan(plain) else plain


def _ess(values: FloatArray, method: str) -> float:
    if np.ptp(values) == 0.0:
        return float(values.size)
    # ArviZ 1.x has no default for the probabilities of the tails.
    tails = {"prob": (0.05, 0.95)} if method == "tail" else {}
    return float(_arviz().ess(values, method=method, **tails))


def _halved(values: FloatArray) -> FloatArray:
    """Two halves of a single chain, as ArviZ wants at least two; several chains as they are."""
    if len(values) > 1:
        return values
    half = values.shape[1] // 2
    return values[:, -2 * half :].reshape(2, half)


def _pooled_acceptance(chains: Sequence[Trace]) -> dict[str, float]:
    rates = {}
    for name in chains[0].move_counts:
        counts = [trace.move_counts[name] for trace in chains if name in trace.move_counts]
        made, taken = (sum(int(np.sum(pair[side])) for pair in counts) for side in (0, 1))
        rates[name] = taken / made if made else float("nan")
    return rates


def _gap_or_none(chains: Sequence[Trace]) -> float | None:
    half = len(chains[0]) // 2
    parts = chains if len(chains) > 1 else [chains[0][:half], chains[0][half:]]
    try:
        return similarity_gap(parts)
    except TooLargeError:
        return None


def _autocorr(values: FloatArray) -> FloatArray:
    arviz = _arviz()
    if hasattr(arviz, "autocorr"):
        return np.asarray(arviz.autocorr(values), dtype=np.float64)
    from arviz_stats.base import array_stats  # type: ignore[import-not-found,attr-defined,unused-ignore] # From ArviZ 1.0 on it lives there.

    return np.asarray(array_stats.autocorr(values), dtype=np.float64)  # type: ignore[no-untyped-call,unused-ignore]


def _arviz() -> ModuleType:
    try:
        with warnings.catch_warnings():
            # ArviZ 0.23 announces 1.0 when it is imported; this module works with both.
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as fault:
        raise ImportError(
            'diagnostics need the package arviz: python -m pip install "ewens-widgets[arviz]".'
        ) from fault
    return arviz
