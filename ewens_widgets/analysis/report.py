"""A report on a run: whether to trust it, why, and what to change.

It combines two examinations: have the chains sampled the posterior (`analysis.convergence`), and does the
model fit (`analysis.check`)? The sentences are those of `analysis.findings`.
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
from ewens_widgets.sampling.moves.move import MOVES, is_sweep
from ewens_widgets.sampling.trace import Trace

Verdict = Literal["trust", "unconfirmed", "model misfit", "run longer", "do not trust"]

_CHECKED_DRAWS = 300  # Draws of all chains together that are used to check the model.
_RATES = {False: "Accepted", True: "Points moved"}  # a Gibbs draw is always accepted
_EDGE = 0.3  # Probability at an end of the grid of θ above which the grid is too short.

_HEADLINES: dict[Verdict, str] = {
    "trust": "Trust this run: the chains agree, and no sign of misfit was found.",
    "unconfirmed": "No problem was found, but one chain alone cannot show that it has converged.",
    "model misfit": (
        "No convergence problem was found, but the model does not fit: the number of clusters is unreliable."
    ),
    "run longer": "Run longer before you use these draws.",
    "do not trust": "Do not trust this run.",
}
_VERDICTS: dict[str, Verdict] = {"apart": "do not trust", "not yet": "run longer", "agree": "trust"}


@dataclass(frozen=True, eq=False)
class Report:
    """What `report` found; print it, or show it in a notebook.

    Attributes
    ----------
    verdict
        ``"trust"``, ``"unconfirmed"`` (one chain, without any finding), ``"model misfit"`` (the chains have
        converged, but the model does not fit), ``"run longer"`` or ``"do not trust"``.
    reasons
        The findings behind the verdict.
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
        texts: dict[bool, list[str]] = {False: [], True: []}
        for name, rate in self.diagnostics.acceptance.items():
            texts[is_sweep(name)].append(f"{name} {rate:.1%}")
        parts = [f"{what}: {', '.join(texts[key])}" for key, what in _RATES.items() if texts[key]]
        return ["; ".join(parts)] if parts else []


def report(traces: Trace | Sequence[Trace], data: ArrayLike | Dataset | None = None) -> Report:
    """Report on the convergence of chains, best several from different starts, and on the fit of the model.

    Parameters
    ----------
    traces
        One trace, or one for each chain; a pooled trace is split into its chains.
    data
        The data that were clustered: then misleading columns are reported too. See `Trace.check`.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> data = ew.datasets.denmark_roads_standin(seed=0)
    >>> starts = ["singletons", "one-cluster", "k-means"]
    >>> samplers = [ew.Sampler(data, model="III", initial=start, seed=k) for k, start in enumerate(starts)]
    >>> chains = [sampler.sample(2000, burn_in=500, progress=False) for sampler in samplers]
    >>> ew.report(chains).verdict  # they agree, but the regions differ in shape: try shapes="own"
    'model misfit'
    """
    given = [traces] if isinstance(traces, Trace) else list(traces)
    chains = [chain for trace in given for chain in trace.chains]
    numbers = diagnose(chains)
    verdict = _VERDICTS[numbers.verdict]
    if verdict == "trust" and numbers.n_chains == 1:
        verdict = "unconfirmed"
    findings = [*numbers.findings, *([] if verdict == "do not trust" else _grid_end(chains))]
    if len(chains) == 1:
        fit = chains[0].check(data)
    else:
        step = -(-sum(map(len, chains)) // _CHECKED_DRAWS)
        fit = Trace.concatenate([trace.thin(min(step, len(trace))) for trace in chains]).check(data)
    reasons = [found.sentence for found in findings]
    if not numbers.findings:
        reasons.insert(0, numbers.sentence())
    if numbers.stays_at_one_partition and numbers.n_chains == 1:
        reasons.append(
            "No object switched clusters, although each sweep draws every one again: this partition may hold "
            "nearly all of the posterior probability, or the chain may be stuck. Compare other starts."
        )
    papers = {name for name, kind in MOVES.items() if kind.from_paper}
    advice: list[str] = []
    if verdict in {"run longer", "do not trust"} and set(chains[0].move_counts) <= papers:
        advice.append('Use moves="default": it mixes much faster than the moves of the paper.')
    advice += [found.way_out for found in findings]
    if numbers.n_chains == 1:
        advice.append(
            'Run more chains from other starts (initial="one-cluster", "k-means" or "prior", other seeds) '
            "and compare them: ew.report([first, second, …])."
        )
    elif numbers.stays_at_one_partition:
        advice.append(
            'If all chains had the same start, run one from another start, e.g. initial="one-cluster".'
        )
    advice += [found.way_out for found in fit.findings]
    if verdict in {"trust", "unconfirmed"} and not fit.fits:
        verdict = "model misfit"
    counts = np.concatenate([trace.n_clusters for trace in chains])
    low, middle, high = np.quantile(counts, [0.05, 0.5, 0.95], method="inverted_cdf")
    noun = "cluster" if middle == 1 else "clusters"
    chain = "One chain" if numbers.n_chains == 1 else f"{numbers.n_chains} chains"
    return Report(
        verdict=verdict,
        reasons=(
            *reasons,
            fit.headline,
            *(found.sentence for found in fit.findings),
            *fit.remarks,
            *chains[0].posterior.columns.sentences,
        ),
        advice=tuple(dict.fromkeys(advice)),
        diagnostics=numbers,
        check=fit,
        summary=f"{chain} of {numbers.n_draws} draws; {middle} {noun} (90 % of draws: {low} to {high}).",
    )


def _grid_end(chains: Sequence[Trace]) -> Iterator[Finding]:
    """An end of the grid of θ with much of the posterior probability."""
    grid, shares = (
        chains[0].posterior.theta_grid,
        np.mean([trace.theta_posterior() for trace in chains], axis=0),
    )
    for end, side, factor in ((-1, "largest", 2.0), (0, "smallest", 0.5)):
        if shares.size > 2 and shares[end] > _EDGE:
            yield finding("grid end", side=side, value=grid[end], beyond=factor * grid[end])
            return
