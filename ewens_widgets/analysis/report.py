"""A report on a run: whether to trust it, why, and what to change.

There are two questions. Have the chains sampled the posterior? `analysis.convergence` answers it. And does
the model fit, so that its clusters are real? `analysis.check` answers that. The report puts both answers
together; the sentences are those of `analysis.findings`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.analysis.check import ModelCheck
from ewens_widgets.analysis.convergence import Diagnostics, diagnose
from ewens_widgets.analysis.findings import Finding, finding, html_table, text_table
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.moves.move import MOVES
from ewens_widgets.sampling.trace import Trace

Verdict = Literal["trust", "unconfirmed", "model in doubt", "run longer", "do not trust"]

_CHECKED_DRAWS = 300  # Draws of all chains together that are used to check the model.
_EDGE = 0.3  # Probability at an end of the grid of θ above which the grid is too short.

_HEADLINES: dict[Verdict, str] = {
    "trust": "Trust this run: the chains agree, and no sign of misfit was found.",
    "unconfirmed": "No problem was found, but one chain alone cannot show that it has converged.",
    "model in doubt": (
        "The sampling is good, but the model does not fit these data: do not trust the number of clusters."
    ),
    "run longer": "Run longer before you trust this.",
    "do not trust": "Do not trust this run.",
}
_VERDICTS: dict[str, Verdict] = {"apart": "do not trust", "not yet": "run longer", "agree": "trust"}


@dataclass(frozen=True, eq=False)
class Report:
    """What `report` found; print it, or show it in a notebook.

    Attributes
    ----------
    verdict
        ``"trust"``, ``"unconfirmed"`` (one chain, without any finding), ``"model in doubt"`` (the chains are
        good, but the model does not fit), ``"run longer"`` or ``"do not trust"``.
    reasons
        What the verdict rests on.
    advice
        What to change.
    diagnostics
        The numbers.
    check
        Whether the model fits.
    summary
        The run in one line.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    diagnostics: Diagnostics = field(repr=False)
    check: ModelCheck = field(repr=False)
    summary: str

    @property
    def headline(self) -> str:
        """The verdict as a sentence."""
        return _HEADLINES[self.verdict]

    def __str__(self) -> str:
        lines = [self.headline, self.summary, "", "Why", *(f"- {reason}" for reason in self.reasons)]
        if self.advice:
            lines += ["", "What to do", *(f"- {step}" for step in self.advice)]
        return "\n".join([*lines, "", "Numbers", *text_table(self.diagnostics.table()), *self._accepted()])

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{escape(self.headline)}</strong><br>{escape(self.summary)}</p>"]
        for title, entries in (("Why", self.reasons), ("What to do", self.advice)):
            if entries:
                items = "".join(f"<li>{escape(entry)}</li>" for entry in entries)
                parts.append(f"<p>{title}</p><ul>{items}</ul>")
        parts += [html_table(self.diagnostics.table()), *(f"<p>{escape(x)}</p>" for x in self._accepted())]
        return f"<div>{''.join(parts)}</div>"

    def _accepted(self) -> list[str]:
        rates = ", ".join(f"{name} {rate:.1%}" for name, rate in self.diagnostics.acceptance.items())
        return [f"Accepted: {rates}"] if rates else []


def report(traces: Trace | Sequence[Trace], data: ArrayLike | Dataset | None = None) -> Report:
    """Judge a run of one chain or, better, of several from different starts: the sampling, and the model.

    Parameters
    ----------
    traces
        One trace, or one for each chain; a pooled trace stands for its chains.
    data
        The data that were clustered: then columns that mislead are named, too. See `Trace.check`.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> data = ew.datasets.denmark_roads_standin(seed=0)
    >>> starts = ["singletons", "one-cluster", "k-means"]
    >>> samplers = [ew.Sampler(data, model="III", initial=start, seed=k) for k, start in enumerate(starts)]
    >>> chains = [sampler.sample(2000, burn_in=500, progress=False) for sampler in samplers]
    >>> ew.report(chains).verdict  # they agree, but the two regions differ in shape: try shapes="own"
    'model in doubt'
    """
    given = [traces] if isinstance(traces, Trace) else list(traces)
    chains = [chain for trace in given for chain in trace.chains]
    numbers = diagnose(chains)
    verdict = _VERDICTS[numbers.verdict]
    if verdict == "trust" and numbers.n_chains == 1:
        verdict = "unconfirmed"
    findings = [*numbers.findings, *([] if verdict == "do not trust" else _grid_end(chains))]
    fit = _fit(chains, data)
    reasons = [found.sentence for found in findings]
    if not numbers.findings:
        reasons.insert(0, numbers.sentence())
    if numbers.stays_at_one_partition and numbers.n_chains == 1:
        reasons.append(
            "No object changed its cluster, although each sweep draws every one again: the partition may "
            "hold nearly all of the posterior, or the chain may be stuck there. Other starts tell which."
        )
    advice = [*_first_advice(chains, verdict), *(found.way_out for found in findings)]
    advice += [*_further_runs(numbers), *(found.way_out for found in fit.findings)]
    if verdict in {"trust", "unconfirmed"} and not fit.fits:
        verdict = "model in doubt"
    return Report(
        verdict=verdict,
        reasons=(*reasons, fit.headline, *(found.sentence for found in fit.findings), *fit.remarks),
        advice=tuple(dict.fromkeys(advice)),
        diagnostics=numbers,
        check=fit,
        summary=_summary(numbers, chains),
    )


def _fit(chains: Sequence[Trace], data: ArrayLike | Dataset | None) -> ModelCheck:
    """Check the model on the draws of all chains, thinned if they are many."""
    if len(chains) == 1:
        return chains[0].check(data)
    step = -(-sum(map(len, chains)) // _CHECKED_DRAWS)
    return Trace.concatenate([trace.thin(min(step, len(trace))) for trace in chains]).check(data)


def _summary(numbers: Diagnostics, chains: Sequence[Trace]) -> str:
    counts = np.concatenate([trace.n_clusters for trace in chains])
    low, middle, high = np.quantile(counts, [0.05, 0.5, 0.95], method="inverted_cdf")
    chain = "One chain of" if numbers.n_chains == 1 else f"{numbers.n_chains} chains of"
    return f"{chain} {numbers.n_draws} draws; {middle} clusters (90 % of draws {low} to {high})."


def _grid_end(chains: Sequence[Trace]) -> Iterator[Finding]:
    """An end of the grid of θ that holds much of the posterior."""
    grid, shares = (
        chains[0].posterior.theta_grid,
        np.mean([trace.theta_posterior() for trace in chains], axis=0),
    )
    for end, side, factor in ((-1, "largest", 2.0), (0, "smallest", 0.5)):
        if shares.size > 2 and shares[end] > _EDGE:
            yield finding("grid end", side=side, value=grid[end], beyond=factor * grid[end])
            return


def _first_advice(chains: Sequence[Trace], verdict: Verdict) -> Iterator[str]:
    papers = {name for name, kind in MOVES.items() if kind.from_paper}
    if verdict in {"run longer", "do not trust"} and set(chains[0].move_counts) <= papers:
        yield 'Use moves="default": it mixes far faster than the moves of the paper.'


def _further_runs(numbers: Diagnostics) -> Iterator[str]:
    if numbers.stays_at_one_partition and numbers.n_chains > 1:
        yield 'If all chains had the same start, run one from another, e.g. initial="one-cluster".'
    if numbers.n_chains == 1:
        yield (
            'Run other chains from other starts (initial="one-cluster", "k-means" or "prior", other seeds) '
            "and compare them: ew.report([first, second, …])."
        )
