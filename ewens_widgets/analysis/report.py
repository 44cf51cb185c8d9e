r"""A report on a run: whether to trust it, why, and what to change.

It combines three examinations: have the chains sampled the posterior (`analysis.convergence`), do they
determine the groups, and does the model fit (`analysis.check`)? The sentences are those of
`analysis.findings`.

**Groups.** A run is trusted only if each chain alone has the groups of the answer (adjusted Rand index of at
least `SAME`); if their number is the same at all thresholds from the largest down to that of the answer; if
it has a posterior probability of at least `PROBABLE`, the threshold being unknown (`analysis.groups`); and if
there are enough rows.

**One group.** For two halves of n rows, δ standard deviations apart, the log-likelihood of two Gaussians is
larger than that of one by about :math:`\tfrac n2 \log(1 + \delta^2/4) - n \log 2` nats. The p parameters of
the second cost about :math:`\tfrac p2 \log n`. Where both are equal, two halves could just have been seen.
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
from ewens_widgets.analysis.groups import SAME
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.moves.move import MOVES, is_sweep
from ewens_widgets.sampling.trace import Trace

Verdict = Literal["trust", "unconfirmed", "uncertain", "model misfit", "run longer", "do not trust"]

PROBABLE = 0.8
"""Probability of the number of groups from which a run is trusted."""

_RATES = {False: "Accepted", True: "Points moved"}  # a Gibbs draw is always accepted
_ROWS = 1.0  # Rows for each parameter of a component, below which they are too few.
_FAR = 4.0  # Distance of centres below which two groups should have been seen: they overlap by 2 %.
_NAMED = 0.05  # Probability from which a number of groups is named.
_EDGE = 0.3  # Probability at an end of the grid of θ above which the grid is too short.

_HEADLINES: dict[Verdict, str] = {
    "trust": "Trust this run: the chains agree, and no sign of misfit was found.",
    "unconfirmed": "No problem was found, but these chains cannot show that they have converged.",
    "uncertain": "The chains agree, but they do not determine the number of groups.",
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
        ``"trust"``, ``"unconfirmed"`` (one chain, or chains at one partition, without any other finding),
        ``"uncertain"`` (the chains have converged, but do not determine the groups), ``"model misfit"`` (they
        have converged, but the model does not fit), ``"run longer"`` or ``"do not trust"``.
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
    found = [*numbers.findings]
    verdict = _VERDICTS[numbers.verdict]
    if {each.kind for each in found} == {"resting"} or (verdict == "trust" and numbers.n_chains == 1):
        verdict = "unconfirmed"
    if verdict != "do not trust":
        found += _grid_end(chains)
    whole = given[0] if len(given) == 1 else Trace.concatenate(given)
    fit = whole.check(data)
    about = [*_about_groups(whole)]
    if any(each.severity == "serious" for each in about):
        verdict = "do not trust"
    elif verdict in {"trust", "unconfirmed"} and not fit.fits:
        verdict = "model misfit"
    elif verdict == "trust" and any(each.severity == "warning" for each in about):
        verdict = "uncertain"
    found += about
    reasons = [each.sentence for each in found]
    if not numbers.findings:
        reasons.insert(0, numbers.sentence())
    papers = {name for name, kind in MOVES.items() if kind.from_paper}
    advice: list[str] = []
    if verdict in {"run longer", "do not trust"} and set(chains[0].move_counts) <= papers:
        advice.append('Use moves="default": it mixes much faster than the moves of the paper.')
    advice += [each.way_out for each in found]
    if numbers.n_chains == 1:
        advice.append(
            'Run more chains from other starts (initial="one-cluster", "k-means" or "prior", other seeds) '
            "and compare them: ew.report([first, second, …])."
        )
    advice += [each.way_out for each in fit.findings]
    counts = np.concatenate([trace.n_clusters for trace in chains])
    low, middle, high = np.quantile(counts, [0.05, 0.5, 0.95], method="inverted_cdf")
    noun = "cluster" if middle == 1 else "clusters"
    chain = "One chain" if numbers.n_chains == 1 else f"{numbers.n_chains} chains"
    return Report(
        verdict=verdict,
        reasons=(
            *reasons,
            fit.headline,
            *(each.sentence for each in fit.findings),
            *fit.remarks,
            *chains[0].posterior.sentences,
        ),
        advice=tuple(dict.fromkeys(advice)),
        diagnostics=numbers,
        check=fit,
        summary=f"{chain} of {numbers.n_draws} draws; {middle} {noun} (90 % of draws: {low} to {high}).",
    )


def _about_groups(trace: Trace) -> Iterator[Finding]:
    """Findings about the groups of the answer: their chains, threshold, probability and number of rows."""
    found = trace.answer()
    indices = found.chain_agreement()
    if indices.size > 1 and indices.min() < SAME:
        worst = int(indices.argmin())
        yield finding("groups", chain=worst + 1, index=indices[worst], wanted=SAME)
    numbers = {level.n_groups for level in found.levels if level.threshold >= found.level.threshold}
    if not found.level.is_stable or len(numbers) > 1:
        listed = ", ".join(f"{level.n_groups} from {100 * level.threshold:.1f} %" for level in found.curve())
        yield finding("threshold", listed=listed)
    if found.probability < PROBABLE:
        shares = found.probabilities.items()
        listed = ", ".join(f"{number} ({share:.2f})" for number, share in shares if share >= _NAMED)
        yield finding("number", listed=listed)
    posterior = trace.posterior
    n, d = posterior.n_objects, posterior.n_features
    free = d + {"I": 1, "II": d, "III": d * (d + 1) // 2}[posterior.model]
    if n < _ROWS * free:
        yield finding("few rows", free=free, rows=n)
    elif found.n_clusters == 1:
        distance = visible_distance(n, free)
        yield finding("unseen" if distance > _FAR else "seen", distance=distance)


def visible_distance(n_objects: int, free_parameters: int) -> float:
    """Distance of two equal halves, in standard deviations, from which they are seen as two; see above."""
    needed = 2.0 * np.log(2.0) + free_parameters * np.log(n_objects) / n_objects
    return float(2.0 * np.sqrt(np.expm1(needed)))


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
