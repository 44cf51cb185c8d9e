"""Every finding about a run, and the one sentence that reports it.

Two questions are asked of a run. Have the chains sampled the posterior? `convergence` answers that. Does
the model fit? `check` answers that. Both answer with findings from the table below. `report`, the Explorer
and the `ChainsView` print their sentences as they are, so that no two of them can disagree.

To add a finding, add a row here and a `finding(...)` with its numbers where it is computed. Below it is how
tables are written as text and as HTML, which reports, diagnostics and model comparisons share.
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


_TABLE: dict[str, _Row] = {
    # About the sampling, the gravest first: after a serious finding the draws are not to be trusted.
    "apart": _Row(
        "serious",
        "{Chains} do not agree: R-hat for {quantity} is {rhat} (at most {wanted} recommended){means}.",
        "{longer}",
    ),
    "stuck": _Row(
        "serious",
        "No proposal was accepted: {chains_have} not moved.",
        'Start from another partition, e.g. initial="one-cluster" or "k-means".',
    ),
    "worthless": _Row(
        "serious",
        "The smallest effective sample size is {ess:.0f}, too small to judge convergence (at least "
        "{wanted:.0f} recommended).",
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
        "The smallest effective sample size is {ess:.0f} (at least {wanted:.0f} recommended).",
        "{longer}",
    ),
    "rising": _Row(
        "warning",
        "The log posterior still rises in the first quarter of the draws: the burn-in is too short.",
        "Drop the first quarter, trace[{quarter}:], or use a longer burn-in.",
    ),
    "grid end": _Row(
        "note",
        "θ is often at the {side} value of its grid, {value:g}: the grid cuts the posterior off.",
        "Extend theta_grid, e.g. by {beyond:g}.",
    ),
    # About the model: after a warning the number of clusters is not to be trusted.
    "constant": _Row(
        "warning",
        "In one direction all rows of a cluster are equal: a column with few values, such as a batch or a "
        "code, decides alone.",
        "Drop this column (check(data) names it), or cluster the rows with each of its values separately.",
    ),
    "shapes": _Row(
        "warning",
        "The clusters do not have one shape, as common shapes assume: their covariances differ from the "
        "pooled one by {effect:.0f} % on average, {beyond:.0f} standard deviations more than by chance. "
        "Larger clusters are then split, and the number of clusters is too large.",
        'Give each cluster a shape of its own: shapes="own", with prior=ew.priors.FiniteMixture().',
    ),
    "skewness": _Row(
        "warning",
        "The clusters are skewed (mean skewness {size:.1f} per direction), not Gaussian: a long tail may be "
        "split into clusters.",
        "Transform skewed columns, positive ones by logarithms; check(data) names them.",
    ),
    "tails": _Row(
        "warning",
        "The clusters have heavier tails than Gaussians (kurtosis {excess:.0f} % above theirs): objects in "
        "the tails may form clusters.",
        "Read small clusters around large ones as tails; see answer().small_clusters, and the outliers.",
    ),
    "outliers": _Row(
        "note",
        "{count} farther out than Gaussian clusters of these sizes reach: {listed}.",
        "Check whether these rows are right.",
    ),
    "correlation": _Row(
        "warning",
        "Columns are correlated within clusters (up to {size:.2f}), but model II assumes independence: long "
        "clusters are split.",
        'Use model="III", which has correlations.',
    ),
    "uneven variances": _Row(
        "warning",
        "Clusters are {ratio:.1f} times longer in one direction than in another, but model I assumes balls: "
        "long clusters are split.",
        'Use model="III", or "II" if the columns are independent within clusters.',
    ),
    "dependent columns": _Row(
        "warning",
        "Column {text} (nearly): what they share counts again, or the rest of them is rounding error.",
        "Drop column(s) {listed}.",
    ),
    "few values": _Row(
        "warning",
        "Column(s) {listed} have at most {most} different values, like codes or counts: each value can look "
        "like a cluster.",
        "Drop column(s) {listed}, and compare the clusters with them afterwards.",
    ),
    "coarse values": _Row(
        "note",
        "Column(s) {listed} are coarsely rounded: many rows have the same value.",
        "Do not trust small clusters in which all rows have one value.",
    ),
    "row numbers": _Row(
        "warning",
        "Column(s) {listed} count the rows: their values are all different and evenly spaced, like an "
        "identifier.",
        "Drop column(s) {listed}.",
    ),
    "deciding column": _Row(
        "warning",
        "Column {listed} decides alone: {share:.0f} % of its variance is between the clusters, and the other "
        "columns do not separate them. It may be a batch, an order or a code.",
        "Drop column {listed} and check whether clusters remain.",
    ),
    "skewed columns": _Row(
        "warning",
        "Column(s) {listed} are skewed within clusters (skewness in brackets): a long tail may be split into "
        "clusters.",
        "{advice}",
    ),
}


@dataclass(frozen=True)
class Finding:
    """One finding about a run.

    Attributes
    ----------
    kind
        What it is, in a word or two.
    severity
        ``"serious"``: the draws are not to be trusted; ``"warning"``: more draws are needed, or the number of
        clusters is not to be trusted; ``"note"``: worth knowing.
    sentence
        What was found, with its numbers.
    way_out
        What to do about it.
    columns, objects
        Numbers of the columns and objects that it is about; none if it is about all.
    """

    kind: str
    severity: Severity
    sentence: str
    way_out: str
    columns: tuple[int, ...] = ()
    objects: tuple[int, ...] = field(default=(), repr=False)


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
    )


def text_table(rows: Sequence[Sequence[str]], align: str = "rjust") -> list[str]:
    """Lines of a table whose first row is its head; the first column is aligned to the left."""
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
