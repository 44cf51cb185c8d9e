"""The kept draws of a chain, and the way from them to answers.

A `Trace` is a `DrawTable` (see `draws`) with the methods that say what draws mean. `analysis` computes the
answers and builds on this module; so the methods import it when they are called.
"""

import itertools
import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ewens_widgets.files import write_atomically
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling import archive
from ewens_widgets.sampling.draws import SCHEMA, DrawTable, axis_sizes, read_only, saved_columns
from ewens_widgets.sampling.moves.move import is_sweep

if TYPE_CHECKING:
    from pandas import DataFrame

    from ewens_widgets.analysis.answer import Answer, MergeTable
    from ewens_widgets.analysis.check import ModelCheck
    from ewens_widgets.analysis.estimates import PointEstimate
    from ewens_widgets.analysis.report import Report
    from ewens_widgets.analysis.trees import Tree
    from ewens_widgets.datasets import Dataset

FloatArray = NDArray[np.float64]

_WEIGHT_ERROR = 1e-3  # far above that of the single precision they are kept in
_CHECKED_ENTRIES = 4_000_000  # Labels checked at once: the check takes little memory beside the labels.
_KIND = "trace"


class Trace(DrawTable):
    """Draws of a chain in compact, read-only arrays, with what they mean: summaries, trees and answers.

    ``len(trace)`` is the number of draws T; ``trace[500:]`` drops the first 500; ``trace.thin(5)`` keeps
    every fifth; ``trace[3]`` is a draw as an event. Summaries are computed once, when they are asked for.

    Parameters
    ----------
    posterior
        The posterior that was sampled.
    move_names
        Names of the schedule's moves, one for each column of `proposals` and `acceptances`.
    columns
        Recorded quantities by name. They are checked against each other and against the posterior.

    Attributes
    ----------
    labels
        Canonical labels, a draw a row (T × n), in the smallest integer type that holds them.
    n_clusters
        Number of clusters of each draw.
    theta, theta_index
        Variance ratio θ of each draw, and its index on the grid.
    theta_weights
        Exact conditional probabilities that θ was drawn from (T × G, single precision).
    log_posterior
        Unnormalised log posterior of each draw.
    concentration
        Concentration λ of each draw; 1 under priors that have none.
    iterations
        Number of the iteration that each draw is from.
    proposals, acceptances
        Counts of each move since the draw before (T × moves); by name in `move_counts`.
    nu, nu_index, nu_weights, sigma
        Of own shapes: pooling ν, its index on the grid, its exact conditional probabilities, and the packed
        scale Σ; behind Σ the imputed cells, of common shapes too (see `imputed`).
    """

    def __init__(
        self, posterior: Posterior, move_names: Sequence[str], columns: Mapping[str, ArrayLike]
    ) -> None:
        if unknown := sorted(columns.keys() - SCHEMA.keys()):
            raise ValueError(f"nothing is known of {', '.join(unknown)}.")
        # Views: the given arrays stay writable.
        views = {name: np.asarray(values)[...] for name, values in columns.items()}
        given = DrawTable(posterior, move_names, views)
        sizes, checked = axis_sizes(posterior, len(given.move_names)), {}
        for entry in saved_columns():
            values = given.column(entry.name)
            kept, shape = entry.kept_type(sizes), (len(given), *entry.shape(sizes))
            if values.shape != shape:
                raise ValueError(f"{entry.name} must have shape {shape}; got {values.shape}.")
            if values.dtype.kind not in ("iuf" if kept.kind == "f" else "iu"):
                kind = "numbers" if kept.kind == "f" else "integers"
                raise TypeError(f"{entry.name} must be {kind}; got dtype {values.dtype}.")
            most = max(sizes[entry.below], 1) - 1 if entry.below else 0
            if entry.below and values.size and not 0 <= values.min() <= values.max() <= most:
                raise ValueError(f"{entry.name} must lie between 0 and {most}.")
            checked[entry.name] = values.astype(kept, copy=False)
        check_canonical(checked["labels"])
        super().__init__(posterior, given.move_names, checked)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the recorded quantities that files hold, by name."""
        return {entry.name: self.column(entry.name) for entry in saved_columns()}

    def thin(self, step: int) -> "Trace":
        """Keep every `step`-th draw: the last one of each `step`."""
        if step < 1:
            raise ValueError(f"the step must be at least 1; got {step}.")
        return self._take(range(len(self))[step - 1 :: step], since=0)

    @staticmethod
    def concatenate(traces: Sequence["Trace"]) -> "Trace":
        """Pool the draws of traces of one posterior, e.g. of several chains."""
        if not traces:
            raise ValueError("there are no traces to pool.")
        first = traces[0]
        if not all(archive.same_posterior(first.posterior, other.posterior) for other in traces[1:]):
            raise ValueError("only traces of the same data, model and prior can be pooled.")
        names, parts = first.move_names, [trace.columns() for trace in traces]
        if any(trace.move_names != names for trace in traces):
            names = tuple(dict.fromkeys(name for trace in traces for name in trace.move_names))
            for trace, part in zip(traces, parts, strict=True):
                nothing, counts = np.zeros((2, len(trace)), dtype=np.int64), trace.move_counts
                matched = np.stack([counts.get(name, nothing) for name in names], axis=2)
                part["proposals"], part["acceptances"] = matched
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Trace(first.posterior, names, columns)

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return self.posterior.n_objects

    @property
    def chains(self) -> tuple["Trace", ...]:
        """The chains that the draws come from: a new one begins where the number of the iteration falls."""
        starts = (np.flatnonzero(np.diff(self.iterations) <= 0) + 1).tolist()
        if not starts:
            return (self,)
        bounds = [0, *starts, len(self)]
        return tuple(self[first:last] for first, last in itertools.pairwise(bounds))

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of accepted proposals by move; NaN for a move that proposed nothing."""
        totals = {name: (made.sum(), taken.sum()) for name, (made, taken) in self.move_counts.items()}
        return {name: float(taken / made) if made else float("nan") for name, (made, taken) in totals.items()}

    @property
    def best_index(self) -> int:
        """Index of the draw with the highest posterior density; the first if several have it."""
        self._need_draws()
        return int(np.argmax(self.log_posterior))

    @property
    def best(self) -> NDArray[np.intp]:
        """Labels of the draw with the highest posterior density."""
        return read_only(self.labels[self.best_index].astype(np.intp))

    @property
    def best_posterior(self) -> Posterior:
        """The posterior whose coordinates have the imputed cells of the best draw; see `posterior_at`."""
        return self._once("best_posterior", lambda: self.posterior_at(self.best_index))

    def theta_posterior(self) -> FloatArray:
        """Posterior probabilities of θ on its grid, as the average of the exact conditionals."""
        return self._average("theta_weights")

    def theta_histogram(self) -> FloatArray:
        """Share of the draws at each value of the grid of θ."""
        self._need_draws()
        # In a browser NumPy counts numbers of 32 bits only.
        counts = np.bincount(self.theta_index.astype(np.intp), minlength=self.posterior.theta_grid.size)
        return np.asarray(counts / len(self), dtype=np.float64)

    def nu_posterior(self) -> FloatArray:
        """Posterior probabilities of the pooling ν of own shapes on its grid, as `theta_posterior`."""
        if self.posterior.shapes == "common":
            raise ValueError('common shapes have no pooling ν; sample with shapes="own".')
        return self._average("nu_weights")

    def similarity(self, rows: ArrayLike | None = None, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Share of draws in which each pair of objects is in one cluster; `rows` chooses objects."""
        from ewens_widgets.analysis.similarity import similarity

        self._need_draws()
        if rows is not None:
            return similarity(self.labels, rows=rows, dtype=dtype)
        key = ("similarity", np.dtype(dtype).str)
        return self._once(key, lambda: read_only(similarity(self.labels, dtype=dtype)))

    def distance(self, rows: ArrayLike | None = None, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Share of draws in which each pair of objects is in different clusters: D = 1 − S."""
        return 1 - self.similarity(rows=rows, dtype=dtype)

    def representatives(self, most: int = 400) -> NDArray[np.intp]:
        """Numbers of at most so many objects, in proportion from each cluster of the best draw."""
        from ewens_widgets.analysis.similarity import representative_rows

        return representative_rows(self.best, most)

    def similarity_tree(self, method: str = "single", rows: ArrayLike | None = None) -> "Tree":
        """Hierarchy by linkage of the distance: ``"single"``, ``"average"`` or ``"complete"``."""
        from ewens_widgets.analysis.trees import similarity_tree

        if rows is not None:
            return similarity_tree(self, method, rows)
        return self._once(("similarity_tree", method), lambda: similarity_tree(self, method))

    def linkage(self, method: str = "single") -> FloatArray:
        """SciPy linkage matrix of the similarity tree."""
        return self.similarity_tree(method).linkage

    def cut(
        self, n_clusters: int = 2, method: str = "auto", min_size: int = 1, small_clusters: str = "assign"
    ) -> NDArray[np.intp]:
        """Labels of a tree's cut into `n_clusters` clusters; see `Tree.cut`.

        Parameters
        ----------
        n_clusters
            Number of clusters.
        method
            Which tree: ``"consensus"`` or ``"evidence"``, for compact clusters; ``"single"`` linkage of the
            distance, for long or bent ones (with a `min_size`, as it cuts off single objects first),
            ``"average"`` or ``"complete"``. ``"auto"``: single linkage, of clusters of a size that counts,
            where `answer` finds long or bent clusters, else the consensus, or the evidence tree where there
            is no memory for pairs of objects.
        min_size, small_clusters
            As for `Tree.cut`.
        """
        from ewens_widgets.analysis.answer import tree_to_cut

        self._need_draws()
        tree, least = tree_to_cut(self, n_clusters, method, min_size)
        return tree.cut(n_clusters=n_clusters, min_size=least, small_clusters=small_clusters)

    def imputed(self) -> "DataFrame":
        """The missing cells of the data, a row each: row and column, mean, sd, and all draws.

        Values are in the units of the data. ``trace.imputed().drop(columns="draws")`` is a table to print;
        each entry of `draws` is an array with the cell's value in every draw of the trace. The table is empty
        where no number is missing.
        """
        from pandas import DataFrame

        self._need_draws()
        values = self.posterior.imputed_values(self.sigma).T
        gaps, columns = self.posterior.gaps, self.posterior.map.columns
        places = gaps[:, 1] if columns is None else np.asarray(columns)[gaps[:, 1]]
        kinds = self.posterior.columns.kinds
        return DataFrame(
            {
                "row": gaps[:, 0],
                "column": [kinds[place].name if kinds else f"x{place + 1}" for place in places.tolist()],
                "mean": values.mean(axis=1),
                "sd": values.std(axis=1, ddof=min(1, len(self) - 1)),
                "draws": list(values),
            }
        )

    def evidence_tree(self) -> "Tree":
        """Hierarchy made from the best draw by repeatedly merging the pair that loses least log posterior."""
        from ewens_widgets.analysis.evidence_tree import evidence_of, evidence_tree

        return self._once(
            "evidence_tree",
            lambda: evidence_tree(self.best_posterior, self.best, evidence_of(self.best_posterior, self)),
        )

    def consensus_tree(self, n_clusters: int) -> "Tree":
        """Average of the evidence trees of many draws, from their own clusters down to `n_clusters`."""
        from ewens_widgets.analysis.evidence_tree import consensus_tree

        return self._once(("consensus_tree", n_clusters), lambda: consensus_tree(self, n_clusters))

    def point_estimate(self, loss: str = "vi") -> "PointEstimate":
        """Partition with the least expected loss: ``"vi"`` (variation of information) or ``"binder"``."""
        from ewens_widgets.analysis.estimates import point_estimate

        return self._once(("point_estimate", loss), lambda: point_estimate(self, loss))

    def answer(self) -> "Answer":
        """Number of clusters, the clusters, and their probabilities, without being given a number."""
        from ewens_widgets.analysis.answer import answer

        self._need_draws()
        return self._once("answer", lambda: answer(self))

    def levels(self) -> "MergeTable":
        """Table behind the answer: a row for each number of clusters, and what merging costs."""
        return self.answer().table

    def uncertainty(self, labels: ArrayLike) -> FloatArray:
        """Share of draws that disagree with where a partition puts each object."""
        from ewens_widgets.analysis.estimates import Draws, object_uncertainty

        self._need_draws()
        return object_uncertainty(Draws.of(self.labels), check_labels(labels, self.n_objects))

    def check(self, data: "ArrayLike | Dataset | None" = None) -> "ModelCheck":
        """Check the fit of the model: clusters that are not Gaussian, and columns that mislead.

        Given the `data` that were clustered, columns have their names, also under model III.
        """
        from ewens_widgets.analysis.check import check

        self._need_draws()
        return self._once("check", lambda: check(self)) if data is None else check(self, data)

    def report(self, data: "ArrayLike | Dataset | None" = None) -> "Report":
        """Report in plain words whether to trust this run and its clusters, and what to change.

        Given the `data` that were clustered, it says more about their columns; see `check`.
        """
        from ewens_widgets.analysis.report import report

        return self._once("report", lambda: report(self)) if data is None else report(self, data)

    def methods(self) -> str:
        """Write what was done as a paragraph for a paper; see `ewens_widgets.cite` for the references."""
        from ewens_widgets.analysis.export import methods

        return methods(self)

    def to_arviz(self, data: Any = None) -> Any:  # noqa: ANN401 - its type depends on the version of ArviZ
        """Export to ArviZ: `InferenceData` before ArviZ 1.0, a `DataTree` from then on.

        Given the `data`, a `Dataset` or a DataFrame, rows and columns have their names.
        """
        from ewens_widgets.analysis.export import to_arviz

        return to_arviz([self], data)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the draws as a table, a draw a row: iteration, parameters, then the label of each object."""
        from ewens_widgets.analysis.export import draws_csv

        write_atomically(path, draws_csv(self).encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the draws, and the posterior's settings and coordinates, in one file."""
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Give what `save` writes, e.g. for a download."""
        settings, arrays = archive.pack_posterior(self.posterior)
        moves, columns = pack_draws(self)
        return archive.archive_bytes(_KIND, {"posterior": settings, **moves}, {**columns, **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trace":
        """Load what `save` wrote; a damaged or foreign file is refused."""
        metadata, arrays = archive.read_archive(path, _KIND)
        with archive.refused(f"{str(path)!r} is not a complete trace"):
            return unpack_draws(metadata, arrays, archive.unpack_posterior(metadata["posterior"], arrays))

    def __repr__(self) -> str:
        return "Trace(" + ", ".join(f"{name}: {value}" for name, value in trace_facts(self)) + ")"

    def _repr_html_(self) -> str:
        return facts_table("Trace", trace_facts(self))

    def _average(self, name: str) -> FloatArray:
        self._need_draws()
        average = self.column(name).mean(axis=0, dtype=np.float64)
        return np.asarray(average / average.sum(), dtype=np.float64)

    def _need_draws(self) -> None:
        if not len(self):
            raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")


def check_canonical(labels: NDArray[Any]) -> None:
    """Refuse labels that do not number the clusters 0, 1, 2, … in order of first appearance."""
    if not labels.size:
        return
    step = max(1, _CHECKED_ENTRIES // labels.shape[1])
    for start in range(0, len(labels), step):
        block = labels[start : start + step]
        highest = np.maximum.accumulate(block, axis=1)
        # In unsigned numbers a difference cannot be negative here, and it does not overflow as a sum would.
        if np.any(block[:, 0] != 0) or np.any(highest[:, 1:] - highest[:, :-1] > 1):
            raise ValueError(
                "the labels of a trace must be canonical; apply ewens_widgets.partition.canonical_labels."
            )


def pack_draws(draws: DrawTable) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split draws into settings and arrays for an archive; their posterior is packed separately."""
    arrays = {entry.name: draws.column(entry.name) for entry in saved_columns()}
    return {"moves": list(draws.move_names)}, arrays


def unpack_draws(
    settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], posterior: Posterior
) -> Trace:
    """Put a trace together again; arrays that no chain would give are refused by one of several errors."""
    columns = {name: arrays[name] for name in SCHEMA if name in arrays}
    trace = Trace(posterior, [str(name) for name in settings["moves"]], columns)
    for name, values in columns.items():
        if values.dtype.kind == "f" and not np.all(np.isfinite(values)):
            raise ValueError(f"{name} has values that are no finite numbers")
    for name in ("theta_weights", *(("nu_weights",) if posterior.shapes == "own" else ())):
        weights = trace.column(name)
        if np.any(weights < 0.0) or np.any(np.abs(weights.sum(axis=1) - 1.0) > _WEIGHT_ERROR):
            raise ValueError(f"{name} are no probabilities")
    return trace


def trace_facts(trace: Trace) -> list[tuple[str, str]]:
    """List the first things to know of a trace: names and values."""
    posterior, own = trace.posterior, trace.posterior.shapes == "own"
    name = "prior" if posterior.concentration is None else "concentration"
    facts = [
        ("draws", str(len(trace))),
        ("data", f"{posterior.n_objects} objects × {posterior.n_features} features"),
        ("model", posterior.model),
        *([("shapes", "own")] if own else []),
        (name, f"{getattr(posterior, name)}"),
    ]
    if len(trace):
        low, middle, high = np.quantile(trace.n_clusters, [0.05, 0.5, 0.95], method="inverted_cdf")
        grids = {"theta": (posterior.theta_grid, trace.theta_posterior)}
        grids |= {"nu": (posterior.nu_grid, trace.nu_posterior)} if own else {}
        facts += [
            ("iterations", f"{trace.iterations[0]} to {trace.iterations[-1]}"),
            ("clusters", f"{middle} (90 % of draws {low} to {high})"),
            *((name, f"{grid[np.argmax(found())]:g} most probable") for name, (grid, found) in grids.items()),
            ("best log posterior", f"{trace.log_posterior[trace.best_index]:.2f}"),
        ]
    return facts + [
        (f"{'points moved by' if is_sweep(name) else 'acceptance of'} {name}", f"{rate:.3f}")
        for name, rate in trace.acceptance.items()
    ]


def facts_table(title: str, facts: list[tuple[str, str]]) -> str:
    """Write facts as an HTML table."""
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
