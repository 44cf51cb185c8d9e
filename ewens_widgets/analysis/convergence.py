r"""The verdict on convergence: which quantities are monitored, the limits, and the sentences.

`report`, ``chains.rhat()``, the stopping rule `until` and the live `ChainsView` all use this module, so they
cannot contradict each other.

**Monitored quantities** (`QUANTITIES`) do not depend on the numbering of clusters: the number of clusters,
the index of θ on its grid (whose steps are ratios), the log posterior and the size of the largest cluster. If
they are sampled, the concentration and the logarithm of the pooling ν of own shapes are monitored too, and
where cells are missing the mean of up to five imputed ones.

**R-hat and effective sample size** are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), taken
from arviz-stats: chains are split into halves, values are replaced by normal scores of their ranks, and then,
with m half chains of n draws each, within-chain variance W and variance of the chain means B/n,

.. math::

    \hat R = \sqrt{\frac{(n-1)/n \cdot W + B/n}{W}}, \qquad
    \text{ESS} = \frac{mn}{-1 + 2 \sum_k P_k}, \qquad P_k = \rho_{2k} + \rho_{2k+1} .

R-hat is the larger of those of the values and of their distances from the median, so that it also detects
chains that differ in spread alone. The pairs :math:`P_k` of autocorrelations are summed as long as they
are positive, none larger than the one before it (Geyer's initial monotone sequence). The effective size of
the bulk is that of averages, of the tail that of the 5 % and 95 % quantiles; the smaller one counts. A single
chain is split into halves first: a value near 1 then shows that its parts agree, not that it has explored
all of the posterior.

**The similarity gap** compares the clusters themselves, since chains with the same number of clusters may
have different ones. It is the average of :math:`|S^{(a)}_{ij} - S^{(b)}_{ij}|` over pairs of objects, for the
two chains a, b that differ most. Above 2500 objects a fixed random sample of 1000 is used; the average over
its pairs is an unbiased estimate. If the matrices of all chains do not fit in memory, the sample is smaller.

**Chains that do not move** are of two kinds. One kind is stuck. The other is at a partition with nearly all
of the posterior probability, as with well separated clusters, and correctly rejects proposals to leave it.
The draws do not distinguish the two, so neither is said to agree. If the moves include a sweep, which draws
every object again from its exact conditional distribution, or if several chains have the same partition, the
verdict is "not yet"; otherwise it is "apart".

=============  ==========================================================================================
verdict        if
=============  ==========================================================================================
``"unknown"``  there are fewer than 8 draws of each chain
``"apart"``    an R-hat is above 1.2, no proposal was accepted (but see above), an effective sample size is
               below 10, the similarity gap is above 0.1, or proposals are accepted by the printed ratio
``"not yet"``  an R-hat is above 1.05, an effective sample size is below 100, the log posterior still rises,
               or no chain left one partition
``"agree"``    none of these
=============  ==========================================================================================
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.findings import Finding, finding, html_table, text_table
from ewens_widgets.analysis.similarity import similarity
from ewens_widgets.arguments import TooLargeError, check_fits, memory_limit
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.archive import same_posterior
from ewens_widgets.sampling.draws import SCHEMA, DrawTable
from ewens_widgets.sampling.moves.move import PRINTED, is_sweep
from ewens_widgets.sampling.trace import Trace

QUANTITIES = {
    "n_clusters": "number of clusters",
    "theta": "θ",
    "log_posterior": "log posterior",
    "largest_cluster": "size of the largest cluster",
    "concentration": "concentration",
    "nu": "pooling ν",
    "imputed_cells": "mean of some imputed cells",
}
"""Monitored quantities and their names."""

GOOD_RHAT, BAD_RHAT = 1.05, 1.2
WANTED_ESS, BAD_ESS = 100.0, 10.0
BAD_GAP = 0.1
ABOUT_ZERO = 0.001  # Acceptance of every move, below which chains with one number of clusters do not move.

FEWEST_DRAWS = 8
"""Least draws of each chain for a verdict: halves of halves need at least two each."""

ALL_PAIRS = 2500
"""Objects up to which the similarity gap compares all pairs."""
_SOME_OBJECTS = 1000  # Size of the random sample beyond that.
_FEWEST_OBJECTS = 200  # With fewer, the estimate of the gap is too noisy.
_BLOCK_BYTES = 32 * 2**20  # Memory of similarities besides the matrices, for any number of objects.
_ENTRIES = 1_000_000  # Labels processed at once.
_SAME = 1e-9  # Values that differ by less, relatively, differ by rounding.


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics:
    """R-hat, effective sample sizes and acceptance of a run, with their verdict.

    Attributes
    ----------
    n_chains, n_draws
        Number of chains, and draws of each.
    rhat
        R-hat by quantity; NaN for a constant quantity, infinite if chains are constant at different values.
        Empty if there are too few draws.
    ess_bulk, ess_tail
        Effective sample sizes by quantity, of all chains together: for averages, and for the 5 % and 95 %
        quantiles.
    acceptance
        Share of accepted proposals by move, over all chains; of a sweep, the share of points that moved.
    similarity_gap
        Largest average difference between the similarity matrices of two chains (of the two halves, for one
        chain); None if it was not computed or would not fit in memory.
    means
        Mean of each quantity by chain; those of θ and ν on the scale of their logarithms to base 2.
    is_rising
        Whether, in some chain, the log posterior still rises in the first quarter of the draws.
    """

    n_chains: int
    n_draws: int
    rhat: Mapping[str, float] = field(default_factory=dict)
    ess_bulk: Mapping[str, float] = field(default_factory=dict)
    ess_tail: Mapping[str, float] = field(default_factory=dict)
    acceptance: Mapping[str, float] = field(default_factory=dict)
    similarity_gap: float | None = None
    means: Mapping[str, FloatArray] = field(default_factory=dict, repr=False)
    is_rising: bool = False

    def __repr__(self) -> str:
        return "\n".join([self._title, *(text_table(self.table()) if self.is_known else [])])

    def _repr_html_(self) -> str:
        return f"<div>{self._title}{html_table(self.table())}</div>"

    @property
    def _title(self) -> str:
        chains = "1 chain" if self.n_chains == 1 else f"{self.n_chains} chains"
        verdict = self.verdict if self.is_known else "too few for a verdict"
        return f"Diagnostics of {chains} of {self.n_draws} draws: {verdict}"

    def table(self) -> list[list[str]]:
        """R-hat and effective sample sizes as cells, a row per quantity, below a head."""
        rows = [["", "R-hat", "ESS bulk", "ESS tail"]]
        for name, rhat in self.rhat.items():
            sizes = self.ess_bulk[name], self.ess_tail[name]
            cells = (
                ["constant", "–", "–"] if np.isnan(rhat) else [f"{rhat:.3f}", *(f"{n:.0f}" for n in sizes)]
            )
            rows.append([QUANTITIES[name], *cells])
        return rows

    @property
    def is_known(self) -> bool:
        """Whether there are enough draws for a verdict."""
        return bool(self.rhat)

    @property
    def worst(self) -> str | None:
        """The quantity with the largest R-hat; None if all are constant."""
        changing = self._changing
        return max(changing, key=lambda name: changing[name]) if changing else None

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; 1 if all quantities are constant."""
        return max([1.0, *self._changing.values()])

    @property
    def least_ess(self) -> float:
        """The smallest effective sample size of a quantity that changes."""
        sizes = [min(self.ess_bulk[name], self.ess_tail[name]) for name in self._changing]
        return min(sizes, default=float(self.n_chains * self.n_draws))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the run, the most severe first."""
        return self.findings_of()

    def findings_of(self, names: Sequence[str] = ()) -> tuple[Finding, ...]:
        """The findings, with `names` of the chains; chain 1, chain 2, … by default."""
        if not self.is_known:
            return ()
        is_stuck = self._has_not_moved and not self.stays_at_one_partition
        found: dict[str, bool] = {
            "printed": any(name.endswith(PRINTED) for name in self.acceptance),
            "apart": self.worst_rhat > BAD_RHAT,
            "stuck": is_stuck,
            "worthless": self.least_ess < BAD_ESS and not is_stuck,
            "gap": self.similarity_gap is not None and self.similarity_gap > BAD_GAP,
            "nearly": GOOD_RHAT < self.worst_rhat <= BAD_RHAT,
            "few": BAD_ESS <= self.least_ess < WANTED_ESS,
            "resting": self.stays_at_one_partition,
            "rising": self.is_rising,
        }
        several = self.n_chains > 1
        numbers: dict[str, Any] = {
            "Chains": "The chains" if several else "The two halves of the chain",
            "chains_have": "the chains have" if several else "the chain has",
            "it_is": "the chains are" if several else "the chain is",
            "Two": "Two of the chains" if several else "The two halves of the chain",
            "quantity": _with_article(QUANTITIES[self.worst or "n_clusters"]),
            "rhat": f"{self.worst_rhat:.2f}" if np.isfinite(self.worst_rhat) else "infinite",
            "means": self._extreme_means(names) if several else "",
            "wanted": GOOD_RHAT,
            "ess": self.least_ess,
            "gap": self.similarity_gap,
            "quarter": self.n_draws // 4,
            "longer": self._longer(),
        }
        size = {"wanted": WANTED_ESS}
        return tuple(
            finding(kind, **(numbers | (size if kind in {"worthless", "few"} else {})))
            for kind, is_there in found.items()
            if is_there
        )

    def sentence(self, names: Sequence[str] = ()) -> str:
        """One sentence: whether the chains, or the two halves of a single chain, agree."""
        several = self.n_chains > 1
        if not self.is_known:
            chains = "the chains agree" if several else "the two halves of the chain agree"
            return f"Too early to say whether {chains}: {self.n_draws} draws are too few."
        findings = self.findings_of(names)
        if findings:
            return findings[0].sentence
        return (
            f"{'The chains' if several else 'Both halves of the chain'} agree: the largest R-hat is "
            f"{self.worst_rhat:.2f}, and the smallest effective sample size is {self.least_ess:.0f}."
        )

    def _extreme_means(self, names: Sequence[str]) -> str:
        """Smallest and largest chain mean of the quantity with the largest R-hat."""
        name = self.worst
        if name is None:
            return ""
        means = self.means[name]
        low, high = int(means.argmin()), int(means.argmax())
        called = names or [f"chain {number}" for number in range(1, self.n_chains + 1)]
        # The means of θ and ν are means of their logarithms.
        quantity = {"theta": "log₂ θ", "nu": "log₂ ν"}.get(name, _with_article(QUANTITIES[name]))
        return (
            f"; the mean of {quantity} is {means[low]:.4g} in {called[low]} and {means[high]:.4g} in "
            f"{called[high]}"
        )

    def _longer(self) -> str:
        """How many draws to use instead."""
        factor = WANTED_ESS / max(self.least_ess, 1.0)
        wanted = self.n_draws * (factor if factor > 1.0 else 2.0)
        scale = 10 ** int(np.floor(np.log10(wanted)))
        rounded = int(np.ceil(wanted / scale - 1e-9) * scale)  # up to one digit that is not zero
        return f"Take about {rounded} draws instead of {self.n_draws}."

    @property
    def stays_at_one_partition(self) -> bool:
        """Whether no proposal was accepted, apparently as one partition has nearly all probability."""
        # Draws that differ although nothing was accepted contradict that.
        partition = [self.rhat.get(name, np.nan) for name in ("n_clusters", "largest_cluster")]
        if not (self.is_known and self._has_not_moved and np.isnan(partition).all()):
            return False
        if self.n_chains > 1:
            return self.similarity_gap is not None and self.similarity_gap < _SAME
        return any(map(is_sweep, self.acceptance))

    @property
    def verdict(self) -> Literal["unknown", "apart", "not yet", "agree"]:
        """The verdict, as in the table at the top of this module."""
        if not self.is_known:
            return "unknown"
        findings = self.findings
        if any(found.severity == "serious" for found in findings):
            return "apart"
        return "not yet" if findings else "agree"

    @property
    def _has_not_moved(self) -> bool:
        rates = [rate for rate in self.acceptance.values() if not np.isnan(rate)]
        return bool(rates) and max(rates) < ABOUT_ZERO

    @property
    def _changing(self) -> dict[str, float]:
        return {name: value for name, value in self.rhat.items() if not np.isnan(value)}


def _with_article(quantity: str) -> str:
    return quantity if len(quantity) == 1 or quantity.endswith("ν") else f"the {quantity}"


def diagnose(traces: Trace | Sequence[Trace], similarity: bool = True) -> Diagnostics:
    """Compute R-hat, effective sample sizes and acceptance for one chain or for several of one posterior.

    Parameters
    ----------
    traces
        One trace, or one for each chain; a pooled trace is split into its chains. Longer chains are cut to
        their last draws, as many as the shortest chain has.
    similarity
        Compare the similarity matrices too, which takes most of the time if there are many objects.
    """
    chains = _aligned(traces)
    gap = None
    if similarity:
        half = len(chains[0]) // 2
        with suppress(TooLargeError):
            gap = similarity_gap(chains if len(chains) > 1 else [chains[0][:half], chains[0][half:]])
    return compare(
        quantities(chains),
        theta_grid=chains[0].posterior.theta_grid,
        acceptance=pooled_acceptance([trace.move_counts for trace in chains]),
        similarity_gap=gap,
    )


def compare(
    values: Mapping[str, FloatArray],
    theta_grid: FloatArray | None = None,
    acceptance: Mapping[str, float] | None = None,
    similarity_gap: float | None = None,
) -> Diagnostics:
    """Diagnose monitored quantities, a row per chain.

    Parameters
    ----------
    values
        Draws of each quantity (chains × draws); θ by its index on the grid.
    theta_grid
        Values of θ; without it, the mean of θ is that of its index.
    acceptance
        Share of accepted proposals by move.
    similarity_gap
        The result of `largest_gap`, if known.
    """
    n_chains, n_draws = next(iter(values.values())).shape
    found = Diagnostics(n_chains, n_draws, acceptance=acceptance or {}, similarity_gap=similarity_gap)
    if n_draws < FEWEST_DRAWS:
        return found
    means = {name: rows.mean(axis=1) for name, rows in values.items()}
    if theta_grid is not None:
        means["theta"] = np.log2(theta_grid)[values["theta"].astype(np.intp)].mean(axis=1)
    return replace(
        found,
        rhat={name: _rhat(rows) for name, rows in values.items()},
        ess_bulk={name: _ess(rows, "bulk") for name, rows in values.items()},
        ess_tail={name: _ess(rows, "tail", prob=(0.05, 0.95)) for name, rows in values.items()},
        means=means,
        is_rising=any(_still_rises(row) for row in values.get("log_posterior", ())),
    )


def quantities(traces: Sequence[Trace]) -> dict[str, FloatArray]:
    """Monitored quantities, a row per chain; all chains have the same number of draws."""
    columns = [followed(trace) for trace in traces]
    return {name: np.stack([each[name] for each in columns]) for name in columns[0]}


def followed_names(posterior: Posterior) -> tuple[str, ...]:
    """Names of the monitored quantities: those that vary under the posterior."""
    return tuple(name for name in QUANTITIES if name not in SCHEMA or SCHEMA[name].varies(posterior))


def followed(source: DrawTable, rows: slice = slice(None)) -> dict[str, FloatArray]:
    """Monitored quantities of one chain, finished or running; `rows` chooses draws."""
    columns: dict[str, NDArray[Any]] = {
        "n_clusters": source.n_clusters[rows],
        "theta": source.theta_index[rows],
        "log_posterior": source.log_posterior[rows],
        "largest_cluster": _largest(source.labels[rows]),
        "concentration": source.concentration[rows],
        "nu": np.log2(source.column("nu")[rows]),
        "imputed_cells": source.column("imputed_cells")[rows],
    }
    return {name: np.asarray(columns[name], dtype=np.float64) for name in followed_names(source.posterior)}


def similarity_gap(traces: Sequence[Trace]) -> float:
    """Similarity gap of traces of one posterior."""
    if not traces:
        return 0.0
    rows = _rows_that_fit(traces[0].n_objects, len(traces))
    # Not cached with the traces, where each chain would keep its matrix in memory.
    return largest_gap([similarity(trace.labels, rows=rows, dtype=np.float32) for trace in traces])


def largest_gap(similarities: Sequence[NDArray[Any]]) -> float:
    """Largest average absolute difference between two similarity matrices."""
    return max((float(np.abs(one - two).mean()) for one, two in combinations(similarities, 2)), default=0.0)


def compared_rows(n_objects: int) -> NDArray[np.intp] | None:
    """Objects whose pairs the similarity gap compares, always the same ones; None means all."""
    return None if n_objects <= ALL_PAIRS else _some_rows(n_objects, _SOME_OBJECTS)


def pooled_acceptance(counts: Sequence[Mapping[str, tuple[ArrayLike, ArrayLike]]]) -> dict[str, float]:
    """Share of accepted proposals by move, over the counts (proposals, acceptances) of all chains."""
    rates = {}
    for name in counts[0]:
        pairs = [each[name] for each in counts if name in each]
        made, taken = (sum(int(np.sum(pair[side])) for pair in pairs) for side in (0, 1))
        rates[name] = taken / made if made else float("nan")
    return rates


def _rows_that_fit(n_objects: int, n_chains: int) -> NDArray[np.intp] | None:
    """The objects of `compared_rows`, or fewer if the matrices of all chains would not fit in memory."""
    rows = compared_rows(n_objects)
    wanted = n_objects if rows is None else rows.size
    # A matrix in single precision for each chain; counts, a product and a sum while one is made.
    pair = 4 * n_chains + 12
    limit = memory_limit()
    fitting = math.isqrt(max(limit - _BLOCK_BYTES, limit // 2) // pair)
    if fitting >= wanted:
        return rows
    fewest = min(wanted, _FEWEST_OBJECTS)
    check_fits(
        2 * pair * fewest**2,
        f"the similarities of {fewest} objects in {n_chains} chains",
        "Compare fewer chains at once.",
    )
    return _some_rows(n_objects, max(fitting, fewest))


def _some_rows(n_objects: int, count: int) -> NDArray[np.intp]:
    # At random, since evenly spaced objects may all be in one cluster.
    chosen = np.random.default_rng(n_objects).choice(n_objects, count, replace=False)
    return np.sort(chosen).astype(np.intp)


@cache
def load_statistics() -> Any:  # noqa: ANN401 - arviz-stats has no types
    """Return the array functions of arviz-stats; the first call takes about a second to import them."""
    from arviz_stats.base import array_stats

    return array_stats


def _rhat(values: FloatArray) -> float:
    if _is_constant(values):
        return float("nan")
    if np.all(np.ptp(values, axis=1) == 0.0):
        return float("inf")
    parts, statistics = _halved(values), load_statistics()
    # Where ranks or distances from the median do not vary within the parts, this divides zero by zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        ranked = float(statistics.rhat(parts))
        plain = ranked if np.isfinite(ranked) else float(statistics.rhat(parts, method="split"))
    return float("inf") if np.isnan(plain) else plain


def _ess(values: FloatArray, method: str, **options: object) -> float:
    if _is_constant(values):
        return float(values.size)
    return float(load_statistics().ess(values, method=method, **options))


def _is_constant(values: FloatArray) -> bool:
    """Whether values differ by rounding at most, as the log posterior of one partition in two chains does."""
    return bool(np.ptp(values) <= _SAME * max(1.0, float(np.abs(values).max())))


def _halved(values: FloatArray) -> FloatArray:
    """Two halves of a single chain, since R-hat needs at least two; several chains unchanged."""
    if len(values) > 1:
        return values
    half = values.shape[1] // 2
    return values[:, -2 * half :].reshape(2, half)


def _largest(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Size of the largest cluster of each draw, some draws at a time."""
    found = np.zeros(len(labels), dtype=np.intp)
    step = max(1, _ENTRIES // max(1, labels.shape[1]))
    for start in range(0, len(labels), step):
        block = labels[start : start + step]
        width = int(block.max()) + 1 if block.size else 1
        cells = block + width * np.arange(len(block))[:, None]
        counts = np.bincount(cells.ravel(), minlength=width * len(block)).reshape(len(block), width)
        found[start : start + step] = counts.max(axis=1)
    return found


def _still_rises(log_posterior: FloatArray) -> bool:
    quarters = np.array_split(log_posterior, 4)
    means = [float(quarter.mean()) for quarter in quarters]
    spread = float(np.concatenate(quarters[1:]).std())
    rounding = _SAME * max(1.0, float(np.abs(log_posterior).max()))
    return means[0] < min(means[1:]) - max(spread, rounding)


def _aligned(traces: Trace | Sequence[Trace]) -> list[Trace]:
    given = [traces] if isinstance(traces, Trace) else list(traces)
    chains = [chain for trace in given for chain in trace.chains]
    if not chains:
        raise ValueError("there are no traces to diagnose.")
    if not all(same_posterior(chains[0].posterior, other.posterior) for other in chains[1:]):
        raise ValueError("only chains on the same data, model and prior can be compared.")
    shortest = min(len(trace) for trace in chains)
    if shortest < FEWEST_DRAWS:
        raise ValueError(f"diagnostics need at least {FEWEST_DRAWS} draws of each chain; got {shortest}.")
    return [trace if len(trace) == shortest else trace[-shortest:] for trace in chains]
