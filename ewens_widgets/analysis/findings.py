"""Every finding about a run, and the one sentence that reports it.

A report has two parts: have the chains sampled the posterior (`convergence`), and does the model fit
(`check`)? Both return findings from the table below. `report`, the Explorer and the `ChainsView` print these
sentences unchanged, so they cannot contradict each other.

To add a finding, add a row here and a `finding(...)` with its numbers where it is computed. The functions at
the end write tables as text and as HTML for reports, diagnostics, answers and model comparisons.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal, NamedTuple

Severity = Literal["serious", "warning", "note"]


class _Row(NamedTuple):
    severity: Severity
    sentence: str
    way_out: str
    control: str = ""


_TABLE: dict[str, _Row] = {
    # About the sampling, the most severe first: after a serious finding the draws cannot be used.
    "apart": _Row(
        "serious",
        "{Chains} do not agree: R-hat for {quantity} is {rhat} (at most {wanted} recommended){means}.",
        "{longer}",
    ),
    "printed": _Row(
        "serious",
        "Proposals are accepted by the ratio that the paper prints, which does not sample the posterior.",
        'Use acceptance="metropolis-hastings", the default.',
        "Under More settings, Moves, set the ratio to “correct”, and restart.",
    ),
    "stuck": _Row(
        "serious",
        "No proposal was accepted: {chains_have} not moved.",
        'Start from another partition, e.g. initial="one-cluster" or "k-means".',
        "Under More settings, Moves, choose another start, and restart.",
    ),
    "worthless": _Row(
        "serious",
        "Smallest effective sample size: {ess:.0f}, too small to assess convergence (at least {wanted:.0f} "
        "recommended).",
        "{longer}",
    ),
    "gap": _Row(
        "serious",
        "{Two} cluster the objects differently: the shares of draws in which two objects share a cluster "
        "differ by {gap:.2f} on average.",
        "{longer}",
    ),
    "nearly": _Row(
        "warning",
        "{Chains} nearly agree: R-hat for {quantity} is {rhat} (at most {wanted} recommended).",
        "{longer}",
    ),
    "few": _Row(
        "warning",
        "Smallest effective sample size: {ess:.0f} (at least {wanted:.0f} recommended).",
        "{longer}",
    ),
    "resting": _Row(
        "warning",
        "{chains_have} not left one partition: it may hold nearly all of the posterior probability, or "
        "{it_is} stuck.",
        'Compare chains from other starts: initial="one-cluster", "k-means" or "prior".',
        "Under More settings, Moves, choose another start, and restart: is the answer the same?",
    ),
    "rising": _Row(
        "warning",
        "The log posterior still rises in the first quarter of the draws: the burn-in is too short.",
        "Drop the first quarter, trace[{quarter}:], or use a longer burn-in.",
        "Under More settings, Run, use a longer burn-in.",
    ),
    "grid end": _Row(
        "note",
        "θ is often at the {side} value of its grid, {value:g}: the grid cuts the posterior off.",
        "Extend theta_grid, e.g. by {beyond:g}.",
    ),
    # About the groups: after these their number is uncertain.
    "groups": _Row(
        "serious",
        "Single chains give other groups: the adjusted Rand index of chain {chain} with the answer is "
        "{index:.2f} (at least {wanted} required).",
        "Take more draws, or compare the groups of each chain: chains_[0].answer(), ….",
    ),
    "threshold": _Row(
        "warning",
        "The number of groups depends on how much overlap makes two components one group: {listed}.",
        "Compare these groupings, answer().groups(number), and decide by what they mean.",
    ),
    "number": _Row(
        "warning",
        "The posterior is divided between several numbers of groups: {listed}.",
        "Report the probabilities, and compare these groupings: answer().groups(number).",
    ),
    "few rows": _Row(
        "warning",
        "Each component has {free} parameters, for {rows} rows in all: too few rows for groups in so many "
        "columns.",
        'Use model="II" or fewer columns; ew.compare(X) shows which model predicts best.',
    ),
    "unseen": _Row(
        "warning",
        "One group was found, but in so few rows two equal halves would look like one group unless their "
        "centres are about {distance:.0f} standard deviations apart.",
        'Use more rows, fewer columns, or model="II"; ew.compare(X) shows which model predicts best.',
    ),
    "seen": _Row(
        "note",
        "One group was found. Two equal halves whose centres are less than about {distance:.1f} standard "
        "deviations apart would look the same.",
        "Do not conclude that there are no subgroups closer than that.",
    ),
    # About the model: after a warning the number of clusters is unreliable.
    "constant": _Row(
        "warning",
        "In one direction all rows of a cluster are equal: a column with few values, such as a batch or a "
        "code, determines the clusters.",
        "Drop this column (check(data) names it), or cluster the rows of each value separately.",
    ),
    "shapes": _Row(
        "warning",
        "The clusters do not have one common shape: their covariances differ from the pooled covariance by "
        "{effect:.0f} % on average, {beyond:.0f} standard deviations more than in simulated data sets. The "
        "model then splits larger clusters, and the number of clusters is too large.",
        'Give each cluster its own shape: shapes="own", with prior=ew.priors.FiniteMixture().',
    ),
    "skewness": _Row(
        "warning",
        "The clusters are skewed (mean skewness {size:.1f} per direction; 0 for Gaussians): a long tail may "
        "be split into clusters.",
        "Transform skewed columns, positive ones by logarithms; check(data) names them.",
    ),
    "tails": _Row(
        "warning",
        "The clusters have heavier tails than Gaussians (kurtosis {excess:.0f} % larger): objects in the "
        "tails may form clusters.",
        "Read small clusters around large ones as tails; see answer().small_clusters, and the outliers.",
    ),
    "outliers": _Row(
        "note",
        "{count} farther from the cluster centre than in any simulated data set: {listed}.",
        "Check these rows for errors.",
    ),
    "correlation": _Row(
        "warning",
        "Columns are correlated within clusters (up to {size:.2f}), but model II assumes independence: long "
        "clusters are split.",
        'Use model="III", which includes correlations.',
    ),
    "uneven variances": _Row(
        "warning",
        "Clusters are {ratio:.1f} times longer in one direction than in another, but model I assumes "
        "spheres: long clusters are split.",
        'Use model="III", or "II" if the columns are independent within clusters.',
    ),
    "dependent columns": _Row(
        "warning",
        "Column {text} (nearly): the shared information counts twice, or the difference is rounding error.",
        "Drop column(s) {listed}.",
    ),
    "few values": _Row(
        "warning",
        "Few different values, like codes or counts, in column(s) {listed}: each value can look "
        "like a cluster.",
        "Drop column(s) {listed}, and compare the clusters with them afterwards.",
    ),
    "coarse values": _Row(
        "note",
        "Coarsely rounded values in column(s) {listed}: many rows have the same value.",
        "Do not trust small clusters in which all rows have the same value.",
    ),
    "row numbers": _Row(
        "warning",
        "Row numbers in column(s) {listed}: all values differ, evenly spaced or whole, like an identifier.",
        "Drop column(s) {listed}.",
    ),
    "deciding column": _Row(
        "warning",
        "Column {listed} determines the clusters: {share:.0f} % of its variance is between the clusters, and "
        "the other columns do not separate them. It may be a batch, an order or a code.",
        "Drop column {listed} and check whether clusters remain.",
    ),
    "skewed columns": _Row(
        "warning",
        "Columns skewed within clusters (skewness in brackets): {listed}. A long tail may be split.",
        "{advice}",
    ),
}


@dataclass(frozen=True)
class Finding:
    """One finding about a run.

    Attributes
    ----------
    kind
        Its key in the table.
    severity
        ``"serious"``: the draws cannot be used; ``"warning"``: more draws are needed, or the number of
        clusters is unreliable; ``"note"``: worth knowing.
    sentence
        What was found, with its numbers.
    way_out, control
        What to do about it in code, and on a page, which may have other ways.
    columns, objects
        Numbers of the columns and objects concerned; empty if it concerns all.
    """

    kind: str
    severity: Severity
    sentence: str
    way_out: str
    columns: tuple[int, ...] = ()
    objects: tuple[int, ...] = field(default=(), repr=False)
    control: str = field(default="", repr=False)


def finding(
    kind: str,
    severity: Severity | None = None,
    columns: Iterable[int] = (),
    objects: Iterable[int] = (),
    **numbers: object,
) -> Finding:
    """Fill in the row of this kind; its own severity is the default."""
    row = _TABLE[kind]
    return Finding(
        kind,
        severity or row.severity,
        row.sentence.format(**numbers),
        row.way_out.format(**numbers),
        tuple(columns),
        tuple(objects),
        row.control or row.way_out.format(**numbers),
    )


def text_table(rows: Sequence[Sequence[str]], align: str = "rjust") -> list[str]:
    """Lines of a table whose first row is its head; the first column is left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [first.ljust(widths[0])]
            + [getattr(cell, align)(width) for cell, width in zip(rest, widths[1:], strict=True)]
        ).rstrip()
        for first, *rest in rows
    ]


def html_table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """The same table as HTML; empty without rows below its head."""
    head, *body = rows
    if not body:
        return ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
    lines = "".join(
        f"<tr><th scope='row' style='text-align: left'>{escape(first)}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in body
    )
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"
