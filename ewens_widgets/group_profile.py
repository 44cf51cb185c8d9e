r"""What tells the groups apart: column by column in the units of the data, and all columns together.

With :math:`T` and :math:`W` the total and the within-group sums of squares and products of the columns of
numbers, a column separates the groups

* *alone* by :math:`\eta_j^2 = 1 - W_{jj} / T_{jj}`,
* *beyond the others* by the partial :math:`1 - (T^{-1})_{jj} / (W^{-1})_{jj}`: the share of what the other
  columns leave unexplained. A column with a small value can be left out without losing the groups.

Of a category with a table of K groups × L levels the first is Cramér's
:math:`V^2 = \chi^2 / (n \min(K - 1, L - 1))`. The *discriminating directions* are the eigenvectors of
:math:`W^{-1} (T - W)`, their shares the eigenvalues over their sum. A standardised difference is that of a
group's mean from the mean of all other objects, in standard deviations within groups.

Values describe the groups that were found in the same data: they are no tests, and p-values computed from
them would be far too small.
"""

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from ewens_widgets.analysis.findings import html_table, text_table
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.datasets.kinds import coded
from ewens_widgets.model.checks import FloatArray, check_data
from ewens_widgets.partition import check_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Profile", "profile"]

_NAMED = 3  # Typical and untypical objects of each group that are listed.
_LARGE = 0.8  # A standardised difference that is called large since Cohen (1988).


@dataclass(frozen=True, eq=False)
class Profile:
    """What `profile` found; print it, or show it in a notebook.

    Attributes
    ----------
    columns
        Names of the columns, those of numbers first.
    sizes
        Number of objects in each group.
    means, deviations
        Mean and standard deviation of each group and column of numbers (K × d).
    differences
        Standardised differences (K × columns): of numbers as above; of a category that of the share of the
        level that is most typical of the group.
    shares
        For each categorical column, its levels and their share in each group (K × L).
    alone, beyond_others
        How far each column separates the groups, from 0 to 1; the second is NaN for categories.
    directions
        Weights of the columns of numbers, in standard deviations within groups, a column per direction.
    direction_shares
        Share of the separation along each direction.
    typical, untypical
        For each group the objects nearest to its centre and farthest from it, the first ones most so.
    """

    columns: tuple[str, ...]
    sizes: NDArray[np.intp]
    means: FloatArray = field(repr=False)
    deviations: FloatArray = field(repr=False)
    differences: FloatArray = field(repr=False)
    shares: dict[str, tuple[tuple[str, ...], FloatArray]] = field(repr=False)
    alone: FloatArray = field(repr=False)
    beyond_others: FloatArray = field(repr=False)
    directions: FloatArray = field(repr=False)
    direction_shares: FloatArray = field(repr=False)
    typical: tuple[tuple[str, ...], ...] = field(repr=False)
    untypical: tuple[tuple[str, ...], ...] = field(repr=False)

    @property
    def order(self) -> list[int]:
        """Places of the columns, that which separates the groups most first."""
        return [int(place) for place in np.argsort(-self.alone, kind="stable")]

    def table(self) -> list[list[str]]:
        """The profile as text: a header, then a row for each column, the most separating first."""
        groups = [f"group {group} ({size})" for group, size in enumerate(self.sizes.tolist())]
        rows = [["column", *groups, "alone", "beyond others"]]
        for place in self.order:
            cells = [self._cell(group, place) for group in range(self.sizes.size)]
            beyond = self.beyond_others[place]
            last = "" if np.isnan(beyond) else f"{beyond:.2f}"
            rows.append([self.columns[place], *cells, f"{self.alone[place]:.2f}", last])
        return rows

    def _cell(self, group: int, place: int) -> str:
        difference = self.differences[group, place]
        if place < self.means.shape[1]:
            mean, deviation = self.means[group, place], self.deviations[group, place]
            return f"{mean:.4g} ± {deviation:.3g} ({difference:+.1f})"
        level, share = self._level(group, place)
        return f"{level} {share:.0%} ({difference:+.1f})"

    def _level(self, group: int, place: int) -> tuple[str, float]:
        """Commonest level of a category in a group, and its share there."""
        levels, shares = self.shares[self.columns[place]]
        level = int(np.argmax(shares[group]))
        return levels[level], shares[group, level]

    def sentences(self) -> list[str]:
        """What stands out of each group, and the members to look at."""
        told = []
        for group, size in enumerate(self.sizes.tolist()):
            row = self.differences[group]
            far = [place for place in np.argsort(-np.abs(row)).tolist() if abs(row[place]) >= _LARGE][:4]
            words = [self._words(group, place) for place in far]
            listed = ", ".join(words) if words else "no column differs by much"
            told.append(
                f"Group {group} ({size} objects): {listed}. Typical: {', '.join(self.typical[group])}. "
                f"Untypical: {', '.join(self.untypical[group])}."
            )
        if self.direction_shares.size:
            weights = self.directions[:, 0]
            largest = np.argsort(-np.abs(weights))[:3].tolist()
            told.append(
                f"The first direction has {self.direction_shares[0]:.0%} of the separation; its largest "
                "weights: " + ", ".join(f"{self.columns[place]} {weights[place]:+.2f}" for place in largest)
            )
        return told

    def _words(self, group: int, place: int) -> str:
        name, difference = self.columns[place], self.differences[group, place]
        if place < self.means.shape[1]:
            return f"{'high' if difference > 0 else 'low'} {name} ({difference:+.1f} sd)"
        level, share = self._level(group, place)
        return f"{name} mostly {level} ({share:.0%})"

    def to_frame(self) -> Any:  # noqa: ANN401 - a DataFrame
        """One row per group and column as a pandas DataFrame, ready for ``to_csv``."""
        import pandas as pd

        rows = []
        for group, size in enumerate(self.sizes.tolist()):
            for place, name in enumerate(self.columns):
                row = {"group": group, "objects": size, "column": name}
                if place < self.means.shape[1]:
                    row |= {"mean": self.means[group, place], "sd": self.deviations[group, place]}
                else:
                    levels, shares = self.shares[name]
                    row |= {f"share of {level}": s for level, s in zip(levels, shares[group], strict=True)}
                rows.append(row | {"difference": self.differences[group, place], "alone": self.alone[place]})
        return pd.DataFrame(rows)

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the standardised differences as a heatmap, the most separating columns at the top."""
        from ewens_widgets.analysis.plots.palette import figure_of, new_figure

        order = self.order
        values = self.differences[:, order].T
        size = 2.0 + 0.9 * self.sizes.size, 1.2 + 0.28 * len(order)
        axes = new_figure(*size).subplots() if ax is None else ax
        limit = max(float(np.abs(values).max()), 1e-9)
        image = axes.imshow(values, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
        axes.set_xticks(range(self.sizes.size), [str(group) for group in range(self.sizes.size)])
        axes.set_xlabel("group")
        axes.set_yticks(range(len(order)), [self.columns[place] for place in order])
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if abs(value) > 0.6 * limit else "black"
            axes.text(column, row, f"{value:+.1f}", ha="center", va="center", fontsize=8, color=colour)
        figure = figure_of(axes)
        figure.colorbar(image, ax=axes, label="standardised difference")
        return figure

    def __str__(self) -> str:
        return "\n".join([*text_table(self.table()), "", *self.sentences()])

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())
        return f"<div>{html_table(self.table())}{told}</div>"


def profile(labels: ArrayLike, data: ArrayLike | Dataset) -> Profile:
    """Describe what tells groups apart, in the units of the data.

    Parameters
    ----------
    labels
        The group of each row.
    data
        The data that were grouped. A `Dataset` with `kinds` has shares of its categories described; columns
        that are left out are not described.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> wine = ew.datasets.wine()
    >>> print(ew.profile(wine.labels, wine).table()[1][0])
    flavanoids
    """
    dataset = as_dataset(data)
    X = check_data(dataset, finite=False)
    groups = check_labels(labels, len(X))
    if groups.max() == 0:
        raise ValueError("there is one group only, and nothing to tell it apart from.")
    kinds = dataset.kinds or ()
    numbers = [j for j in range(X.shape[1]) if not kinds or kinds[j].kind in {"number", "two-part"}]
    among = [j for j, kind in enumerate(kinds) if kind.kind == "category"]
    names = [dataset.feature_names[j] for j in (*numbers, *among)]
    sizes = np.bincount(groups)
    Y = X[:, numbers]
    rows = np.isfinite(Y).all(axis=1)
    means = np.array([np.nanmean(Y[groups == group], axis=0) for group in range(sizes.size)])
    deviations = np.array([np.nanstd(Y[groups == group], axis=0) for group in range(sizes.size)])
    if rows.sum() < len(numbers) + sizes.size:  # Too few rows without gaps: put these at the group's mean.
        filled = np.where(np.isnan(means), np.nanmean(Y, axis=0), means)[groups]
        Y, rows = np.where(np.isfinite(Y), Y, filled), np.ones(len(Y), dtype=bool)
    within = Y[rows] - means[groups[rows]]
    W, centred = within.T @ within, Y[rows] - Y[rows].mean(axis=0)
    T = centred.T @ centred
    degrees = max(int(rows.sum()) - sizes.size, 1)
    spread = np.sqrt(np.maximum(np.diag(W) / degrees, 1e-300))
    others = (sizes @ means - sizes[:, None] * means) / (len(X) - sizes)[:, None]
    differences = [(means - others) / spread]
    alone = [1.0 - np.diag(W) / np.maximum(np.diag(T), 1e-300)]
    ridged_w, ridged_t = (M + 1e-10 * np.diag(np.diag(T)) for M in (W, T))
    beyond = 1.0 - np.diag(np.linalg.inv(ridged_t)) / np.diag(np.linalg.inv(ridged_w))
    values, vectors = eigh(T - W, ridged_w)
    n_directions = min(sizes.size - 1, len(numbers))
    shares = {}
    codes = coded(X, kinds)[:, among] if among else np.empty((len(X), 0))
    for place, column in zip(among, codes.T, strict=True):
        levels, table = _shares(kinds[place], column, groups, sizes.size)
        shares[dataset.feature_names[place]] = (levels, table / np.maximum(table.sum(axis=1), 1.0)[:, None])
        difference, strength = _association(table)
        differences.append(difference[:, None])
        alone.append(np.array([strength]))
    # Members of each group, by their distance from its centre.
    distances = np.einsum("ij,ij->i", within, np.linalg.solve(ridged_w, within.T).T)
    near, far = [], []
    for group in range(sizes.size):
        own = np.flatnonzero(groups[rows] == group)
        order = np.flatnonzero(rows)[own[np.argsort(distances[own], kind="stable")]].tolist()
        near.append(tuple(dataset.row_name(row) for row in order[:_NAMED]))
        far.append(tuple(dataset.row_name(row) for row in order[::-1][:_NAMED]))
    return Profile(
        columns=tuple(names),
        sizes=sizes,
        means=means,
        deviations=deviations,
        differences=np.hstack(differences),
        shares=shares,
        alone=np.concatenate(alone),
        beyond_others=np.concatenate([beyond, np.full(len(among), np.nan)]),
        directions=(vectors * spread[:, None] * degrees**0.5)[:, ::-1][:, :n_directions],
        direction_shares=np.maximum(values[::-1][:n_directions], 0.0)
        / max(np.maximum(values, 0).sum(), 1e-300),
        typical=tuple(near),
        untypical=tuple(far),
    )


def _shares(
    kind: Any,  # noqa: ANN401 - a ColumnKind
    column: FloatArray,
    groups: NDArray[np.intp],
    n_groups: int,
) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the levels of a category, and counts of each group (K × L)."""
    names = kind.level_names or tuple(f"{level:g}" for level in kind.levels)
    names += ("other",) * (kind.n_levels - len(names))
    table, there = np.zeros((n_groups, len(names))), ~np.isnan(column)
    known = np.minimum(column[there], len(names) - 1).astype(np.intp)
    np.add.at(table, (groups[there], known), 1.0)
    return names, table


def _association(table: FloatArray) -> tuple[FloatArray, float]:
    """Standardised difference of each group's commonest level, and Cramér's V²."""
    total, rows = table.sum(), table.sum(axis=1)
    expected = rows[:, None] * table.sum(axis=0) / max(total, 1.0)
    chi_square = np.sum(np.where(expected > 0.0, (table - expected) ** 2 / np.maximum(expected, 1e-300), 0.0))
    level = table.argmax(axis=1)
    own = table[np.arange(len(table)), level]
    here = own / np.maximum(rows, 1.0)
    elsewhere = (table.sum(axis=0)[level] - own) / np.maximum(total - rows, 1.0)
    middle = np.clip(0.5 * (here + elsewhere), 1e-3, 1.0 - 1e-3)
    strength = chi_square / (max(total, 1.0) * max(min(table.shape) - 1, 1))
    return (here - elsewhere) / np.sqrt(middle * (1.0 - middle)), float(strength)
