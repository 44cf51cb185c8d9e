"""Plain words about a run: whether to trust it, why, and what to change.

There are two questions. Have the chains sampled the posterior? The numbers, the faults found in them and the
verdict are those of `analysis.convergence`. And does the model fit, so that its clusters are real? That is
what `analysis.check` looks at. Here both are only told, at length by `report` and, the first one, in one
sentence, while chains run, by `chains_sentence`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.analysis.check import ModelCheck
from ewens_widgets.analysis.convergence import (
    GOOD_RHAT,
    QUANTITIES,
    WANTED_ESS,
    Diagnostics,
    Fault,
    diagnose,
)
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.moves.move import MOVES
from ewens_widgets.sampling.trace import Trace

__all__ = ["Report", "Verdict", "chain_sentence", "chains_sentence", "report"]

Verdict = Literal["trust", "unconfirmed", "model in doubt", "run longer", "do not trust"]

_CHECKED_DRAWS = 300  # of all chains together, that the check of the model looks at
_EDGE = 0.3  # Probability at an end of the grid of θ from which on the grid is too short.

_HEADLINES: dict[Verdict, str] = {
    "trust": "Trust this run: the chains agree, and nothing seen speaks against the model.",
    "unconfirmed": "Nothing speaks against this chain, but one alone cannot show that it has converged.",
    "model in doubt": (
        "Nothing speaks against the sampling, but the model does not fit these data: do not trust the number "
        "of clusters."
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
        ``"trust"``, ``"unconfirmed"`` (one chain, and nothing against it), ``"model in doubt"`` (the chains
        are good, but the model does not fit), ``"run longer"`` or ``"do not trust"``.
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
        rows = self._table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["", "Numbers"]
        for name, *numbers in rows:
            cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
        return "\n".join([*lines, *self._accepted()])

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{escape(self.headline)}</strong><br>{escape(self.summary)}</p>"]
        for title, entries in (("Why", self.reasons), ("What to do", self.advice)):
            if entries:
                items = "".join(f"<li>{escape(entry)}</li>" for entry in entries)
                parts.append(f"<p>{title}</p><ul>{items}</ul>")
        head, *body = self._table()
        row = "<tr>" + "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head) + "</tr>"
        rows = "".join(
            f"<tr><th scope='row'>{escape(name)}</th>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in body
        )
        parts.append(f"<table>{row}{rows}</table>")
        parts += [f"<p>{escape(line)}</p>" for line in self._accepted()]
        return f"<div>{''.join(parts)}</div>"

    def _table(self) -> list[list[str]]:
        numbers = self.diagnostics
        rows = [["", "R-hat", "ESS bulk", "ESS tail"]]
        for name, rhat in numbers.rhat.items():
            shown = "constant" if np.isnan(rhat) else f"{rhat:.3f}"
            sizes = [numbers.ess_bulk[name], numbers.ess_tail[name]]
            rows.append(
                [QUANTITIES[name], shown, *("–" if np.isnan(rhat) else f"{size:.0f}" for size in sizes)]
            )
        return rows

    def _accepted(self) -> list[str]:
        rates = ", ".join(f"{name} {rate:.1%}" for name, rate in self.diagnostics.acceptance.items())
        return [f"Accepted: {rates}"] if rates else []


def report(traces: Trace | Sequence[Trace], data: ArrayLike | Dataset | None = None) -> Report:
    """Judge a run of one chain or, better, of several from different starts: the sampling, and the model.

    Parameters
    ----------
    traces
        One trace, or one for each chain.
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
    chains = [traces] if isinstance(traces, Trace) else list(traces)
    numbers = diagnose(chains)
    verdict = _VERDICTS[numbers.verdict]
    if verdict == "trust" and numbers.n_chains == 1:
        verdict = "unconfirmed"
    reasons = [_REASONS[fault](numbers) for fault in numbers.faults] or list(_good(numbers))
    if numbers.has_settled:
        reasons.append(_settled(numbers))
    fit = _fit(chains, data)
    advice = [*_advice(numbers, chains, verdict), *(finding.way_out for finding in fit.findings)]
    if verdict in {"trust", "unconfirmed"} and not fit.is_calm:
        verdict = "model in doubt"
    return Report(
        verdict=verdict,
        reasons=(*reasons, *([] if verdict == "do not trust" else _remarks(chains)), *_fitted(fit, verdict)),
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


def _fitted(fit: ModelCheck, verdict: Verdict) -> Iterator[str]:
    if fit.is_calm:
        yield fit.headline
    elif verdict == "model in doubt":
        yield "That chains agree does not make clusters real, and here the model does not fit:"
    else:
        yield "Besides, the model does not fit:"
    yield from (finding.sentence for finding in fit.findings)
    yield from fit.remarks


def chains_sentence(numbers: Diagnostics, names: Sequence[str]) -> str:
    """Say plainly, in one sentence, whether several chains agree; `names` are those of the chains."""
    if not numbers.is_known:
        return (
            f"Too early to say whether the chains agree: they have {numbers.n_draws} draws each that count."
        )
    if not numbers.faults and numbers.has_settled:
        return (
            "The chains agree: all of them stay at one and the same partition, and no proposal to leave it "
            "was accepted."
        )
    if not numbers.faults:
        return (
            f"The chains agree: no R-hat is above {numbers.worst_rhat:.2f}, and together they are worth at "
            f"least {numbers.least_ess:.0f} independent draws."
        )
    return _SENTENCES[numbers.faults[0]](numbers, names)


def chain_sentence(numbers: Diagnostics) -> str:
    """Say in a few words whether one chain agrees with itself."""
    if not numbers.is_known:
        return "Too few draws to say how sure that is."
    if not numbers.faults:
        return "The chain agrees with itself."
    return _OF_ONE_CHAIN[numbers.faults[0]].format(worth=numbers.least_ess)


_OF_ONE_CHAIN: dict[Fault, str] = {
    "apart": "But the parts of the chain differ: run longer.",
    "stuck": "But the chain has not moved: no proposal was accepted.",
    "worthless": "But the draws are worth only {worth:.0f} independent ones: run longer.",
    "gap": "But the parts of the chain put objects together differently: run longer.",
    "nearly": "The chain nearly agrees with itself: run longer.",
    "few": "The draws are worth only {worth:.0f} independent ones: run longer.",
    "rising": "But the log posterior still rises after the burn-in.",
}


def _told_apart(numbers: Diagnostics, names: Sequence[str]) -> str:
    name = numbers.worst or ""
    means = numbers.means[name]
    low, high = int(means.argmin()), int(means.argmax())
    rhat = f"{numbers.worst_rhat:.2f}" if np.isfinite(numbers.worst_rhat) else "∞"
    return (
        f"The chains do not agree: the {_averaged(name)} has R-hat {rhat}; its mean is {means[low]:.4g} in "
        f"{names[low]} and {means[high]:.4g} in {names[high]}."
    )


def _averaged(name: str) -> str:
    """What to call a quantity whose mean is told too: those of θ and ν are means of their logarithms."""
    return {"theta": "log₂ θ", "nu": "log₂ ν"}.get(name, QUANTITIES[name])


_SENTENCES: dict[Fault, Callable[[Diagnostics, Sequence[str]], str]] = {
    "apart": _told_apart,
    "stuck": lambda *_: "The chains have not moved: no proposal was accepted.",
    "worthless": lambda numbers, _: (
        f"The chains cannot be compared yet: together they are worth only {numbers.least_ess:.0f} "
        "independent draws. Run longer."
    ),
    "gap": lambda numbers, _: (
        "The chains do not agree: two of them put objects together differently, by "
        f"{numbers.similarity_gap:.2f} on average over all pairs."
    ),
    "nearly": lambda numbers, _: (
        f"The chains nearly agree, but not yet: the {_averaged(numbers.worst or '')} has R-hat "
        f"{numbers.worst_rhat:.2f}, and should have {GOOD_RHAT} at most. Run longer."
    ),
    "few": lambda numbers, _: (
        f"The chains agree as far as can be seen, but together they are worth only {numbers.least_ess:.0f} "
        f"independent draws; {WANTED_ESS:.0f} would be better. Run longer."
    ),
    "rising": lambda *_: (
        "The chains agree as far as can be seen, but the log posterior still rises in the first quarter of "
        "the draws that count: the burn-in is too short."
    ),
}


def _summary(numbers: Diagnostics, chains: Sequence[Trace]) -> str:
    counts = np.concatenate([trace.n_clusters for trace in chains])
    low, middle, high = np.quantile(counts, [0.05, 0.5, 0.95], method="inverted_cdf")
    chain = "One chain of" if numbers.n_chains == 1 else f"{numbers.n_chains} chains of"
    return f"{chain} {numbers.n_draws} draws; {middle} clusters (90 % of draws {low} to {high})."


def _apart(numbers: Diagnostics) -> str:
    parts = "the chains" if numbers.n_chains > 1 else "earlier and later draws"
    rhat = "infinite" if np.isinf(numbers.worst_rhat) else f"{numbers.worst_rhat:.2f}"
    return f"R-hat of the {_worst(numbers)} is {rhat}, far from 1: {parts} tell different stories."


def _gap(numbers: Diagnostics) -> str:
    parts = "Chains" if numbers.n_chains > 1 else "The two halves of the chain"
    gap = f"shares of draws differ by {numbers.similarity_gap:.2f} on average"
    return f"{parts} put different objects together: {gap}."


def _nearly(numbers: Diagnostics) -> str:
    return f"R-hat of the {_worst(numbers)} is {numbers.worst_rhat:.3f}; below {GOOD_RHAT} is wanted."


def _worthless(numbers: Diagnostics) -> str:
    return f"All draws together are worth about {numbers.least_ess:.0f} independent ones."


def _few(numbers: Diagnostics) -> str:
    worth = f"All draws together are worth about {numbers.least_ess:.0f} independent ones"
    return f"{worth}; {WANTED_ESS:.0f} are wanted."


_REASONS: dict[Fault, Callable[[Diagnostics], str]] = {
    "apart": _apart,
    "stuck": lambda _: "No proposal was accepted: the chain has not moved.",
    "worthless": _worthless,
    "gap": _gap,
    "nearly": _nearly,
    "few": _few,
    "rising": lambda _: (
        "The log posterior still rises in the first quarter of the draws: burn-in was too short."
    ),
}


def _good(numbers: Diagnostics) -> Iterator[str]:
    parts = "The chains agree" if numbers.n_chains > 1 else "The parts of the chain agree"
    yield f"{parts}: no R-hat is above {numbers.worst_rhat:.3f}."
    yield f"All draws together are worth at least {numbers.least_ess:.0f} independent ones."


def _settled(numbers: Diagnostics) -> str:
    if numbers.n_chains > 1:
        return (
            "No proposal was accepted, and all chains have the same partition: it seems to hold nearly all "
            "of the posterior."
        )
    return (
        "No object changed its cluster, though each was drawn anew in every sweep: the partition may hold "
        "nearly all of the posterior, or the chain may be caught at it. Other starts tell which."
    )


def _remarks(chains: Sequence[Trace]) -> Iterator[str]:
    grid, end = chains[0].posterior.theta_grid, _edge(chains)
    if end is not None:
        side = "largest" if end else "smallest"
        yield f"θ is often at the {side} value of its grid, {grid[end]:g}: the grid cuts the posterior off."


def _advice(numbers: Diagnostics, chains: Sequence[Trace], verdict: Verdict) -> Iterator[str]:
    doubtful = verdict in {"run longer", "do not trust"}
    papers = {name for name, kind in MOVES.items() if kind.from_paper}
    if doubtful and set(chains[0].move_counts) <= papers:
        yield 'Use moves="default": it mixes far faster than the moves of the paper.'
    if doubtful and numbers.least_ess < WANTED_ESS:
        factor = WANTED_ESS / max(numbers.least_ess, 1.0)
        yield f"Take about {_rounded(factor * numbers.n_draws)} draws instead of {numbers.n_draws}."
    elif doubtful and numbers.worst_rhat > GOOD_RHAT:
        yield f"Take more draws, e.g. {_rounded(2 * numbers.n_draws)} instead of {numbers.n_draws}."
    if numbers.is_rising:
        yield f"Drop the first quarter, trace[{numbers.n_draws // 4}:], or use a longer burn-in."
    if numbers.has_settled and numbers.n_chains > 1:
        yield 'If all chains had the same start, run one from another, e.g. initial="one-cluster".'
    if numbers.n_chains == 1:
        yield (
            'Run other chains from other starts (initial="one-cluster", "k-means" or "prior", other seeds) '
            "and compare them: ew.report([first, second, …])."
        )
    if verdict != "do not trust" and (end := _edge(chains)) is not None:
        grid = chains[0].posterior.theta_grid
        value = grid[end] * (2.0 if end else 0.5)
        yield f"Extend theta_grid, e.g. by {value:g}."


def _worst(numbers: Diagnostics) -> str:
    return QUANTITIES[numbers.worst] if numbers.worst else "draws"


def _edge(chains: Sequence[Trace]) -> int | None:
    """The end of the grid of θ, 0 or −1, that holds much of the posterior."""
    shares = np.mean([trace.theta_posterior() for trace in chains], axis=0)
    if shares.size > 2:
        for end in (-1, 0):
            if shares[end] > _EDGE:
                return end
    return None


def _rounded(count: float) -> int:
    """Up to the next number with one digit that is not zero."""
    scale = 10 ** int(np.floor(np.log10(max(count, 1.0))))
    return int(np.ceil(count / scale - 1e-9) * scale)
