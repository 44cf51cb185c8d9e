"""The kept draws of a chain, and the way from them to answers.

A trace is a value: read-only arrays, checked against each other and against the posterior that they were
drawn from, so that everything computed from it can be computed once and kept. It holds what the table of
recorded quantities says (`draws`). How an answer is computed is said in `analysis`; the methods here only ask
for it, by imports that wait until then, since `analysis` builds on this module.
"""

import itertools
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ewens_widgets.files import write_atomically
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.archive import (
    MALFORMED,
    ArchiveError,
    archive_bytes,
    pack_posterior,
    read_archive,
    same_posterior,
    unpack_posterior,
)
from ewens_widgets.sampling.draws import (
    SCHEMA,
    Block,
    Counts,
    axis_sizes,
    check_canonical,
    column,
    move_count_pair,
    pooled_counts,
    read_only,
    saved_columns,
    windows,
)

__all__ = ["Trace", "facts_table", "pack_draws", "trace_facts", "unpack_draws"]

if TYPE_CHECKING:
    from ewens_widgets.analysis.answer import Answer, Levels
    from ewens_widgets.analysis.check import ModelCheck
    from ewens_widgets.analysis.estimates import PointEstimate
    from ewens_widgets.analysis.report import Report
    from ewens_widgets.analysis.trees import Tree
    from ewens_widgets.datasets import Dataset

FloatArray = NDArray[np.float64]
Value = TypeVar("Value")

_WEIGHT_ERROR = 1e-3  # far above that of the single precision they are kept in
_KIND = "trace"
# What is recorded and has a typed field of its own; the rest of the table is in `more`.
_FIELDS = ("labels", "theta_index", "theta_weights", "log_posterior", "concentration", "iterations")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trace:
    """Draws of a chain in compact, read-only arrays, with lazily computed and cached summaries.

    ``len(trace)`` is the number of draws T; ``trace[500:]`` drops the first 500; ``trace.thin(5)`` keeps
    every fifth.

    Attributes
    ----------
    labels
        Canonical labels, a draw a row (T × n), in the smallest integer type that holds them.
    theta_index
        Place of θ on the grid, for each draw.
    theta_weights
        Exact conditional probabilities that θ was drawn from (T × G, single precision).
    log_posterior
        Unnormalised log posterior of each state.
    concentration
        Concentration λ of each state; 1 under priors that have none.
    iterations
        Number of the iteration that each draw is from.
    move_counts
        Proposals and acceptances of each move, by name: one count a draw (of the iterations since the draw
        before it), or a total.
    posterior
        The posterior that was sampled.
    more
        Whatever else is recorded, by name; each is an attribute too: of own shapes the likeness `nu`, its
        place `nu_index`, its exact conditional probabilities `nu_weights`, and the packed scale `sigma`.
    """

    labels: NDArray[Any]
    theta_index: NDArray[Any]
    theta_weights: NDArray[np.float32]
    log_posterior: FloatArray
    concentration: FloatArray
    iterations: NDArray[np.int64]
    move_counts: Mapping[str, tuple[ArrayLike, ArrayLike]]
    posterior: Posterior
    more: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    _summaries: dict[Hashable, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Check the arrays against each other and make them compact and read-only."""
        sizes, draws = axis_sizes(self.posterior), len(self.labels)
        known = {entry.name: entry for entry in saved_columns()}
        if not known.keys() >= self.more.keys():
            raise ValueError(f"nothing is known of {', '.join(sorted(self.more.keys() - known.keys()))}.")

        def checked(name: str, given: ArrayLike) -> NDArray[Any]:
            entry = known[name]
            return column(name, given, entry.kept_type(sizes), (draws, *entry.shape(sizes)))

        for name in _FIELDS:
            object.__setattr__(self, name, checked(name, getattr(self, name)))
        object.__setattr__(self, "more", {name: checked(name, given) for name, given in self.more.items()})
        if draws and np.any(self.theta_index >= sizes["theta"]):
            raise ValueError(f"theta_index must be below {sizes['theta']}, the size of the grid.")
        check_canonical(self.labels)
        counts = {name: move_count_pair(name, given, draws) for name, given in self.move_counts.items()}
        object.__setattr__(self, "move_counts", counts)

    @classmethod
    def of_columns(
        cls,
        columns: Mapping[str, NDArray[Any]],
        move_counts: Mapping[str, tuple[ArrayLike, ArrayLike]],
        posterior: Posterior,
    ) -> "Trace":
        """Make a trace of recorded quantities by name, as `columns` gives them."""
        # What is the same in every draw of this posterior is not kept.
        more = {
            name: values
            for name, values in columns.items()
            if name not in _FIELDS and (name not in SCHEMA or SCHEMA[name].varies(posterior))
        }
        typed: dict[str, Any] = {name: columns[name] for name in _FIELDS}
        return cls(**typed, more=more, move_counts=move_counts, posterior=posterior)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the recorded quantities that a trace holds, by name."""
        return {entry.name: self.column(entry.name) for entry in saved_columns()}

    def column(self, name: str) -> NDArray[Any]:
        """Return a recorded quantity by its name, computed where the trace does not hold it."""
        if name in _FIELDS:
            return cast("NDArray[Any]", getattr(self, name))
        return self.more[name] if name in self.more else self._once(name, lambda: self.block().column(name))

    def block(self) -> Block:
        """Give the draws as a block, whose events tell no counts of moves."""
        held = {name: getattr(self, name) for name in _FIELDS}
        return Block(self.posterior, (), {**held, **self.more})

    if not TYPE_CHECKING:  # so that a misspelt name is still found by the type checker

        def __getattr__(self, name: str) -> NDArray[Any]:
            if name in SCHEMA:
                return self.column(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def __getitem__(self, draws: slice) -> "Trace":
        if not isinstance(draws, slice):
            raise TypeError(
                f"a trace is cut by slices, as in trace[500:], not by {draws!r}; one draw is trace.labels[k]."
            )
        chosen = range(len(self))[draws]
        if chosen.step < 0:
            raise ValueError("draws are kept in their order; the step of the slice must be positive.")
        return self._take(chosen, since=chosen.start)

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
        if not all(same_posterior(first.posterior, other.posterior) for other in traces[1:]):
            raise ValueError("only traces of the same data, model and prior can be pooled.")
        parts = [trace.columns() for trace in traces]
        return Trace.of_columns(
            {name: np.concatenate([part[name] for part in parts]) for name in parts[0]},
            move_counts=pooled_counts([trace.move_counts for trace in traces]),
            posterior=first.posterior,
        )

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
    def theta(self) -> FloatArray:
        """Variance ratio of each draw."""
        return self.column("theta")

    @property
    def nu(self) -> FloatArray:
        """Likeness ν of own shapes of each draw; infinite where shapes are common."""
        return self.column("nu")

    @property
    def sigma(self) -> FloatArray:
        """Common scale Σ of own shapes of each draw, packed; nothing where shapes are common."""
        return self.column("sigma")

    @property
    def n_clusters(self) -> NDArray[np.intp]:
        """Number of clusters of each draw."""
        return self.column("n_clusters")

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of accepted proposals by move; NaN for a move that proposed nothing."""
        totals = {
            name: (int(np.sum(made)), int(np.sum(taken))) for name, (made, taken) in self.move_counts.items()
        }
        return {name: taken / made if made else float("nan") for name, (made, taken) in totals.items()}

    @property
    def best_index(self) -> int:
        """Which draw has the highest posterior density; the first of equals."""
        self._need_draws()
        return int(np.argmax(self.log_posterior))

    @property
    def best(self) -> NDArray[np.intp]:
        """Labels of the draw with the highest posterior density."""
        return read_only(self.labels[self.best_index].astype(np.intp))

    def theta_posterior(self) -> FloatArray:
        """Posterior probabilities of θ on its grid, as the average of the exact conditionals."""
        self._need_draws()
        average = self.theta_weights.mean(axis=0, dtype=np.float64)
        return np.asarray(average / average.sum(), dtype=np.float64)

    def theta_histogram(self) -> FloatArray:
        """Share of the draws at each value of the grid of θ."""
        self._need_draws()
        counts = np.bincount(self.theta_index, minlength=self.posterior.theta_grid.size)
        return np.asarray(counts / len(self), dtype=np.float64)

    def nu_posterior(self) -> FloatArray:
        """Posterior probabilities of the likeness ν of own shapes on its grid, as `theta_posterior`."""
        self._need_draws()
        if self.posterior.shapes == "common":
            raise ValueError('there is no likeness ν where shapes are common; sample with shapes="own".')
        average = self.column("nu_weights").mean(axis=0, dtype=np.float64)
        return np.asarray(average / average.sum(), dtype=np.float64)

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
        self, n_clusters: int = 2, method: str = "auto", min_size: int = 1, leftovers: str = "assign"
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
        min_size, leftovers
            As for `Tree.cut`.
        """
        from ewens_widgets.analysis.answer import tree_to_cut

        self._need_draws()
        tree, least = tree_to_cut(self, n_clusters, method, min_size)
        return tree.cut(n_clusters=n_clusters, min_size=least, leftovers=leftovers)

    def evidence_tree(self) -> "Tree":
        """Hierarchy made from the best draw by merging, each time, what costs least log posterior."""
        from ewens_widgets.analysis.evidence_tree import evidence_of, evidence_tree

        return self._once(
            "evidence_tree",
            lambda: evidence_tree(self.posterior, self.best, evidence_of(self.posterior, self)),
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
        """Say how many clusters there are, which, and how sure that is, without being told a number."""
        from ewens_widgets.analysis.answer import answer

        self._need_draws()
        return self._once("answer", lambda: answer(self))

    def levels(self) -> "Levels":
        """Give the table behind the answer: a row for each number of clusters, and what merging costs."""
        return self.answer().table

    def uncertainty(self, labels: ArrayLike) -> FloatArray:
        """Share of draws that disagree with where a partition puts each object; 0 is sure."""
        from ewens_widgets.analysis.estimates import Draws, object_uncertainty

        self._need_draws()
        return object_uncertainty(Draws.of(self.labels), check_labels(labels, self.n_objects))

    def check(self, data: "ArrayLike | Dataset | None" = None) -> "ModelCheck":
        """Look whether the model fits: clusters that are no Gaussians, and columns that mislead.

        Given the `data` that were clustered, columns are called by their names, and model III knows them.
        """
        from ewens_widgets.analysis.check import check

        self._need_draws()
        return self._once("check", lambda: check(self)) if data is None else check(self, data)

    def report(self, data: "ArrayLike | Dataset | None" = None) -> "Report":
        """Say in plain words whether to trust this run and its clusters, and what to change.

        Given the `data` that were clustered, it says more about their columns; see `check`.
        """
        from ewens_widgets.analysis.report import report

        return self._once("report", lambda: report(self)) if data is None else report(self, data)

    def to_arviz(self, data: Any = None) -> Any:  # noqa: ANN401 - its type depends on the version of ArviZ
        """Export to ArviZ: `InferenceData` before ArviZ 1.0, a `DataTree` from then on.

        Given the `data`, a `Dataset` or a DataFrame, rows and columns are called by their names.
        """
        from ewens_widgets.analysis.export import to_arviz

        return to_arviz([self], data)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the draws as a table, a draw a row: iteration, parameters, then the label of each object."""
        from ewens_widgets.analysis.export import draws_csv

        write_atomically(path, draws_csv(self).encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the draws and the posterior's settings and coordinates in one checked file."""
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Give what `save` writes, e.g. for a download."""
        settings, arrays = pack_posterior(self.posterior)
        moves, columns = pack_draws(self)
        return archive_bytes(_KIND, {"posterior": settings, **moves}, {**columns, **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trace":
        """Load what `save` wrote; a damaged or foreign file is refused."""
        metadata, arrays = read_archive(path, _KIND)
        try:
            return unpack_draws(metadata, arrays, unpack_posterior(metadata["posterior"], arrays))
        except MALFORMED as fault:
            raise ArchiveError(f"{str(path)!r} is not a complete trace ({fault}); save it again.") from fault

    def __repr__(self) -> str:
        return "Trace(" + ", ".join(f"{name}: {value}" for name, value in trace_facts(self)) + ")"

    def _repr_html_(self) -> str:
        return facts_table("Trace", trace_facts(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that copies in other processes are checked and read-only too.
        given = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.init}
        return _rebuild, (given,)

    def _take(self, chosen: range, since: int) -> "Trace":
        draws = slice(chosen.start, chosen.stop, chosen.step)
        columns = {name: values[draws] for name, values in self.columns().items()}
        counts = {
            name: tuple(windows(np.asarray(entry), chosen, since) for entry in pair)
            for name, pair in self.move_counts.items()
        }
        return Trace.of_columns(columns, cast("dict[str, Counts]", counts), self.posterior)

    def _once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        if key not in self._summaries:
            self._summaries[key] = make()
        return cast("Value", self._summaries[key])

    def _need_draws(self) -> None:
        if not len(self):
            raise ValueError("the trace holds no draws; sample some, or drop fewer as burn-in.")


def pack_draws(trace: Trace) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a trace into settings and arrays for an archive; its posterior goes there by itself."""
    counts = {f"moves.{name}": np.stack(pair) for name, pair in trace.move_counts.items()}
    return {"moves": list(trace.move_counts)}, {**trace.columns(), **counts}


def unpack_draws(
    settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], posterior: Posterior
) -> Trace:
    """Put a trace together again; arrays that no chain would give are refused by one of several errors."""
    pairs = {str(name): arrays[f"moves.{name}"] for name in settings["moves"]}
    # What is recorded since the file was written is not in it, and computed when it is asked for.
    trace = Trace.of_columns(
        {entry.name: arrays[entry.name] for entry in saved_columns() if entry.name in arrays},
        move_counts={name: (pair[0], pair[1]) for name, pair in pairs.items()},
        posterior=posterior,
    )
    for name, values in arrays.items():
        if name in SCHEMA and SCHEMA[name].absent is None and not np.all(np.isfinite(values)):
            raise ValueError(f"{name} has values that are no numbers")
    weights = trace.theta_weights
    if np.any(weights < 0.0) or np.any(np.abs(weights.sum(axis=1) - 1.0) > _WEIGHT_ERROR):
        raise ValueError("theta_weights are no probabilities")
    return trace


def trace_facts(trace: Trace) -> list[tuple[str, str]]:
    """List what a reader wants to see first of a trace: names and values."""
    posterior = trace.posterior
    facts = [
        ("draws", str(len(trace))),
        ("data", f"{posterior.n_objects} objects × {posterior.n_features} features"),
        ("model", posterior.model),
        *([("shapes", "own")] if posterior.shapes == "own" else []),
        _prior_fact(posterior),
    ]
    if len(trace):
        low, middle, high = np.quantile(trace.n_clusters, [0.05, 0.5, 0.95], method="inverted_cdf")
        mode = posterior.theta_grid[int(np.argmax(trace.theta_posterior()))]
        facts += [
            ("iterations", f"{trace.iterations[0]} to {trace.iterations[-1]}"),
            ("clusters", f"{middle} (90 % of draws {low} to {high})"),
            ("theta", f"{mode:g} most probable"),
            *_nu_fact(trace),
            ("best log posterior", f"{trace.log_posterior[trace.best_index]:.2f}"),
        ]
    return facts + [(f"acceptance of {name}", f"{rate:.3f}") for name, rate in trace.acceptance.items()]


def _prior_fact(posterior: Posterior) -> tuple[str, str]:
    if posterior.concentration is None:
        return "prior", f"{posterior.prior}"
    return "concentration", f"{posterior.concentration}"


def _nu_fact(trace: Trace) -> list[tuple[str, str]]:
    if trace.posterior.shapes == "common":
        return []
    mode = trace.posterior.nu_grid[int(np.argmax(trace.nu_posterior()))]
    return [("nu", f"{mode:g} most probable")]


def facts_table(title: str, facts: list[tuple[str, str]]) -> str:
    """Write facts as an HTML table."""
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def _rebuild(given: dict[str, Any]) -> Trace:
    return Trace(**given)
