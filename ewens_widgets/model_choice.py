"""Comparison of models and shapes by the log predictive density of held-out rows.

The rows are divided into folds. For each model and family of shapes a chain is run on all folds but one, and
gives the log predictive density of the rows of that fold in the units of the data. The log Jacobian of the
map to canonical coordinates is added, since these differ between models and folds. A further chain on all
rows gives the number of clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.analysis.answer import ANSWER_PRIOR
from ewens_widgets.analysis.findings import html_table, text_table
from ewens_widgets.analysis.predictive import log_predictive_density
from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import (
    check_data,
    column_names,
    constant_columns,
    dependence_text,
    dependent_columns,
    named_columns,
)
from ewens_widgets.model.mixed_columns import read_columns
from ewens_widgets.sampling.draws import read_only
from ewens_widgets.sampling.sampler import Sampler, progress_bar

FloatArray = NDArray[np.float64]

_MODELS = ("I", "II", "III")
_SHAPES = ("common", "own")
_INVARIANCE = {
    "I": "rotations and one common scale",
    "II": "a scale for each column",
    "III": "every non-singular linear map",
}
_DETERMINED = 1e-10  # Share of its variance by which a column that others determine differs.
_SURE = 2.0  # Standard errors from which a difference counts.


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """A model with a family of shapes, and its results.

    Attributes
    ----------
    model, shapes
        The model and the family of shapes.
    log_densities
        Log predictive density of each row while it was held out, in the data's units; empty if the model
        cannot be fitted.
    n_clusters
        Number of clusters of the answer for all rows; None if the model cannot be fitted.
    problem
        Why the model cannot be fitted; empty if it can.
    """

    model: str
    shapes: str
    log_densities: FloatArray = field(repr=False)
    n_clusters: int | None
    problem: str = ""

    @property
    def name(self) -> str:
        """Its name in tables and sentences."""
        return f"{self.model}, {self.shapes} shapes"

    @property
    def log_density(self) -> float:
        """Mean log predictive density of a row; NaN if the model cannot be fitted."""
        return float(self.log_densities.mean()) if self.log_densities.size else float("nan")

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over rows."""
        return _standard_error(self.log_densities)


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Models and shapes, the best first; `compare` makes it.

    Attributes
    ----------
    rows
        The models by mean log predictive density; models that cannot be fitted come last.
    n_folds
        Number of folds.
    left_out
        Columns that a model cannot take, and that were left out of the comparison for all models: constant
        ones, and those that others determine. Empty if there are none.
    """

    rows: tuple[ComparedModel, ...]
    n_folds: int
    left_out: str = ""

    @property
    def best(self) -> ComparedModel:
        """The row with the highest mean log predictive density."""
        return self.rows[0]

    @property
    def equally_good(self) -> tuple[ComparedModel, ...]:
        """Models within two standard errors of the difference from the best, row by row."""
        return tuple(row for row in self.rows[1:] if not row.problem and not self._is_worse(row))

    @property
    def settings(self) -> dict[str, str]:
        """The best as arguments: ``AffineClustering(**comparison.settings)``."""
        return {"model": self.best.model, "shapes": self.best.shapes}

    @property
    def advice(self) -> str:
        """Which model to use, and why."""
        best = self.best
        found = "1 cluster" if best.n_clusters == 1 else f"{best.n_clusters} clusters"
        text = (
            f"Use model {best.name}: it predicts held-out rows best, and finds {found}. It is invariant to "
            f"{_INVARIANCE[best.model]}."
        )
        if self.left_out:
            text += f" Left out of the comparison: {self.left_out}. Drop these columns before you fit."
        others = self.equally_good
        if others:
            names = " and ".join(f"model {row.name}" for row in others)
            told = {row.n_clusters for row in (best, *others)}
            agree = (
                "they find the same number of clusters, so little depends on the choice"
                if len(told) == 1
                else "they find different numbers of clusters, so the data do not determine that number"
            )
            return f"{text} The difference from {names} is within two standard errors; {agree}."
        fitted = [row for row in self.rows[1:] if not row.problem]
        if not fitted:
            return text
        gap, error = self.difference(fitted[0])
        return f"{text} Next is model {fitted[0].name}, {gap:.2f} ± {error:.2f} nats per row behind."

    def difference(self, row: ComparedModel) -> tuple[float, float]:
        """Difference of a model from the best, in nats per row of the data, and its standard error."""
        gaps = self.best.log_densities - row.log_densities
        return float(gaps.mean()), _standard_error(gaps)

    def to_frame(self) -> Any:  # noqa: ANN401 - pandas is optional
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "model": row.model,
                    "shapes": row.shapes,
                    "log_density": row.log_density,
                    "standard_error": row.standard_error,
                    "behind": float("nan") if row.problem else self.difference(row)[0],
                    "behind_error": float("nan") if row.problem else self.difference(row)[1],
                    "n_clusters": row.n_clusters,
                    "problem": row.problem,
                }
                for row in self.rows
            ]
        ).set_index(["model", "shapes"])

    def _is_worse(self, row: ComparedModel) -> bool:
        gap, error = self.difference(row)
        return gap > _SURE * error

    def _cells(self) -> list[list[str]]:
        cells = [["model", "shapes", "log density per row", "behind the best", "clusters"]]
        for row in self.rows:
            if row.problem:
                cells.append([row.model, row.shapes, row.problem, "", ""])
                continue
            gap, error = self.difference(row)
            behind = "–" if row is self.best else f"{gap:.3f} ± {error:.3f}"
            density = f"{row.log_density:.3f} ± {row.standard_error:.3f}"
            cells.append([row.model, row.shapes, density, behind, str(row.n_clusters)])
        return cells

    def __repr__(self) -> str:
        return f"ModelComparison(best: model {self.best.name}; {len(self.rows)} compared)"

    def __str__(self) -> str:
        cells = self._cells()
        fitted = [row for row in cells if row[-1]]
        problems = [f"{model}  {shapes}  {problem}" for model, shapes, problem, _, last in cells if not last]
        return "\n".join([*text_table(fitted, "ljust"), *problems, self.advice])

    def _repr_html_(self) -> str:
        table = html_table(self._cells(), f"Held-out log predictive density, {self.n_folds} folds")
        return f"<div>{table}<p>{escape(self.advice)}</p></div>"


def compare(
    X: ArrayLike | Dataset,
    *,
    models: Sequence[str] = _MODELS,
    shapes: Sequence[str] = _SHAPES,
    folds: int = 5,
    draws: int = 300,
    burn_in: int = 300,
    seed: int = 0,
    progress: bool = False,
    **settings: Any,  # noqa: ANN401 - of many types; Sampler has them
) -> ModelComparison:
    """Compare models and shapes by the log predictive density of held-out rows.

    For each model and family of shapes a short chain is run on the rows outside each fold, and one on all
    rows, which gives the number of clusters. The default prior is a finite mixture with an unknown number of
    components for own shapes, and Ewens' for common shapes.

    Columns that some model cannot take, constant ones and those that others determine, are left out for all.

    Parameters
    ----------
    X
        Data, n rows by d features, or a `Dataset`.
    models, shapes
        Models and shapes to compare: some of ``"I"``, ``"II"``, ``"III"``, and of ``"common"``, ``"own"``.
    folds
        Number of folds; at least 2 and at most n.
    draws, burn_in
        Draws of each chain, and iterations before the first.
    seed
        Seed of the folds and of the chains.
    progress
        Show a progress bar.
    **settings
        Other arguments of `Sampler`: ``prior``, ``moves``, and so on.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> data = ew.datasets.unit_square(seed=0)
    >>> found = ew.compare(data.X[::4], models=["I"], shapes=["common"], folds=2, draws=20, burn_in=20)
    >>> found.best.name, found.settings
    ('I, common shapes', {'model': 'I', 'shapes': 'common'})
    """
    kinds = read_columns(X, settings.get("kinds"))[2].kinds or None
    settings["kinds"] = kinds  # The same in all folds.
    matrix = np.asarray(check_data(X, finite=False), dtype=np.float64)
    matrix, left_out = (matrix, "") if kinds else _usable(matrix, column_names(X))
    n_rows = len(matrix)
    count = check_count("folds", folds, 2)
    if count > n_rows:
        raise ValueError(f"there are {n_rows} rows, which cannot be divided into {count} folds; use fewer.")
    check_count("draws", draws, 1)
    check_count("burn_in", burn_in, 0)
    for name, given, known in (("models", models, _MODELS), ("shapes", shapes, _SHAPES)):
        if isinstance(given, str) or not given or not set(given) <= set(known):
            raise ValueError(f"{name} must list some of {', '.join(map(repr, known))}; got {given!r}.")
    for name in ("model", "initial"):
        if name in settings:
            raise TypeError(
                f"compare takes no {name!r}: it compares models, each chain with its default start."
            )
    shuffled = np.random.default_rng(seed).permutation(n_rows)
    parts = [np.sort(part) for part in np.array_split(shuffled, count)]
    chain = {"draws": draws, "burn_in": burn_in, "progress": False}
    rows: list[ComparedModel] = []
    with progress_bar(disable=not progress, total=len(models) * len(shapes) * (count + 1)) as bar:
        for model in models:
            for family in shapes:
                chosen = {"model": model, "shapes": family, "seed": seed, **settings}
                if family == "own" and "prior" not in settings and "concentration" not in settings:
                    chosen["prior"] = ANSWER_PRIOR
                rows.append(_compared(matrix, parts, chosen, chain, bar))
    if all(row.problem for row in rows):
        raise ValueError(f"none of these can be fitted to the data. {rows[0].name}: {rows[0].problem}")
    rows.sort(key=lambda row: np.inf if row.problem else -row.log_density)
    return ModelComparison(tuple(rows), count, left_out)


def _usable(matrix: FloatArray, names: Sequence[str] | None) -> tuple[FloatArray, str]:
    """The columns that all models can take, and which are left out."""
    constant = constant_columns(matrix)
    dependent = dependent_columns(matrix[~np.isnan(matrix).any(axis=1)], _DETERMINED, 1)
    gone = constant + [each.column for each in dependent]
    if len(gone) >= matrix.shape[1]:
        return matrix, ""
    told = [f"{named_columns([place], names)} is constant" for place in constant]
    told += [dependence_text(dependent, names)] if dependent else []
    return np.delete(matrix, gone, axis=1), "; ".join(told)


def _compared(
    matrix: FloatArray,
    parts: Sequence[NDArray[np.intp]],
    chosen: dict[str, Any],
    chain: dict[str, Any],
    bar: Any,  # noqa: ANN401 - tqdm has no types
) -> ComparedModel:
    """Fit one model to all folds but one, in turn, and to all rows."""
    found = np.empty(len(matrix))
    try:
        samplers = []
        for part in parts:
            kept = np.delete(matrix, part, axis=0)
            samplers.append((part, Sampler(kept, **chosen)))
        whole = Sampler(matrix, **chosen)
    except ValueError as fault:
        # E.g. model III with as many columns as rows; other models may fit.
        return ComparedModel(chosen["model"], chosen["shapes"], read_only(np.empty(0)), None, str(fault))
    for part, sampler in samplers:
        posterior, rows, trace = sampler.posterior, matrix[part], sampler.sample(**chain)
        density = log_predictive_density(
            trace,
            posterior.map(rows),
            categories=posterior.columns.places_of(rows),
            numbers=posterior.numbers_of(rows),
        )
        found[part] = density + posterior.map.log_jacobian
        bar.update(1)
    number = whole.sample(**chain).answer().n_clusters
    bar.update(1)
    return ComparedModel(chosen["model"], chosen["shapes"], read_only(found), number)


def _standard_error(values: FloatArray) -> float:
    """Standard error of a mean; NaN for fewer than two values."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")
