"""Has the chain run long enough? R-hat, effective sample sizes and autocorrelation, through ArviZ.

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

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.memory import TooLargeError
from ewens_widgets.model.concentration import Gamma
from ewens_widgets.sampling.posterior_record import same_posterior
from ewens_widgets.sampling.trace import Trace

__all__ = ["Diagnostics", "autocorrelation", "diagnose", "quantities", "similarity_gap"]

FloatArray = NDArray[np.float64]

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
    from arviz_stats.base import array_stats  # type: ignore[import-not-found,unused-ignore] # From ArviZ 1.0 on it lives there.

    return np.asarray(array_stats.autocorr(values), dtype=np.float64)


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
