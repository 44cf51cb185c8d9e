"""Draws and partitions in the formats of other tools: CSV tables, ArviZ, and words for a paper.

`methods` says what was computed, with the settings and diagnostics of the run; it judges nothing. `cite`
gives the references.
"""

import csv
import io
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets._version import __version__
from ewens_widgets.analysis.convergence import diagnose
from ewens_widgets.datasets import as_dataset
from ewens_widgets.files import guarded
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Ewens, Gamma
from ewens_widgets.model.priors.finite_mixture import FiniteMixture
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.archive import same_posterior
from ewens_widgets.sampling.draws import SCHEMA, saved_columns
from ewens_widgets.sampling.moves.move import MOVES, PRINTED
from ewens_widgets.sampling.trace import Trace

_LEADING = ("theta", "concentration", "log_posterior", "n_clusters")  # columns of the table, in their order
_INDICES = {"theta_index": "theta", "nu_index": "nu"}  # A table has the value instead of its place on a grid.


def labels_csv(
    labels: ArrayLike | None,
    names: Sequence[str] | None = None,
    columns: Mapping[str, NDArray[Any]] | None = None,
) -> str:
    """Write one partition as a table with one row per object: object, cluster, and further columns.

    Parameters
    ----------
    labels
        One label per object; they are written as they are. None: only the columns are written.
    names
        Names of the objects; their numbers, counted from 0, by default.
    columns
        Further columns, by name.
    """
    table = {name: np.asarray(values).tolist() for name, values in (columns or {}).items()}
    if labels is not None:
        check_labels(np.asarray(labels))
        table = {"cluster": np.asarray(labels).tolist(), **table}
    count = len(next(iter(table.values())))
    table = {"object": [str(name) for name in (range(count) if names is None else names)], **table}
    for name, values in table.items():
        if len(values) != count:
            raise ValueError(f"column {name!r} has {len(values)} entries for {count} objects.")
    return _csv_text(list(table), zip(*table.values(), strict=True))


def draws_csv(trace: Trace, names: Sequence[str] | None = None) -> str:
    """Write one row per draw: iteration, theta, …, n_clusters, labels ``object_0``, … or by `names`.

    Every other recorded number that varies, such as ``nu`` of own shapes, comes before the labels.
    """
    recorded = [_INDICES.get(entry.name, entry.name) for entry in saved_columns() if not entry.axes]
    known = {"iterations", *_LEADING}
    further = [name for name in recorded if name not in known and SCHEMA[name].varies(trace.posterior)]
    titles = {"iteration": "iterations", **{name: name for name in (*_LEADING, *further)}}
    numbers = {title: trace.column(name) for title, name in titles.items()}
    objects = [f"object_{item}" for item in range(trace.n_objects)] if names is None else list(names)
    if len(objects) != trace.n_objects:
        raise ValueError(f"{len(objects)} names for {trace.n_objects} objects.")
    columns = [values.tolist() for values in numbers.values()]
    rows = ((*row, *labels.tolist()) for *row, labels in zip(*columns, trace.labels, strict=True))
    return _csv_text([*numbers, *objects], rows)


def to_arviz(
    traces: Sequence[Trace],
    data: Any = None,  # noqa: ANN401 - a Dataset, a DataFrame or an array
) -> Any:  # noqa: ANN401 - its type depends on the version of ArviZ
    """Export traces, one per chain, to ArviZ.

    The posterior group holds ``n_clusters``, ``theta`` and, where they are sampled, ``concentration`` and the
    pooling ``nu`` of own shapes: the quantities for which diagnostics make sense. The group ``sample_stats``
    holds ``log_posterior``, ``acceptance`` by move, the ``labels`` of the objects, whose numbers change
    meaning from draw to draw, and the common scale of own shapes, ``sigma``: its variances in models II and
    I, its lower triangle in model III, row by row. The canonical coordinates are ``observed_data``.

    Parameters
    ----------
    traces
        Chains of one length on the same data.
    data
        The data that they were run on, if these have names: a `Dataset` or a DataFrame. The coordinate
        ``object`` then holds the names of the rows, and ``feature`` those of the columns; numbers otherwise.
        Under model III the canonical coordinates mix columns, and stay numbered.

    Returns
    -------
    an `InferenceData` before ArviZ 1.0, a `DataTree` from then on
    """
    if not traces or len({len(trace) for trace in traces}) > 1:
        raise ValueError("ArviZ needs chains of one length; cut them, e.g. trace[-1000:].")
    first = traces[0]
    posterior = first.posterior
    if not all(same_posterior(posterior, other.posterior) for other in traces[1:]):
        raise ValueError("only chains on the same data, model and prior belong together.")
    try:
        with warnings.catch_warnings():
            # ArviZ 0.23 announces 1.0 when it is imported; this module works with both.
            warnings.simplefilter("ignore", FutureWarning)
            arviz: Any = import_module("arviz")
    except ImportError as fault:
        raise ImportError("exporting to ArviZ needs the package arviz: pip install arviz.") from fault
    groups: dict[str, Any] = {"posterior": {}, "sample_stats": {}}
    dims = {"acceptance": ["move"], "coordinates": ["object", "feature"]}
    for entry in SCHEMA.values():
        if entry.arviz and entry.varies(posterior):
            groups[entry.arviz][entry.name] = np.stack([trace.column(entry.name) for trace in traces])
            dims |= {entry.name: list(entry.axes)} if entry.axes else {}
    counts = [trace.move_counts for trace in traces]
    moves = [name for name in counts[0] if all(name in one for one in counts)]
    if moves:
        made, taken = (np.array([[one[name][k] for name in moves] for one in counts]) for k in (0, 1))
        rates = np.divide(taken, made, out=np.full(made.shape, np.nan), where=made > 0)
        groups["sample_stats"]["acceptance"] = np.moveaxis(rates, 1, 2)
    groups["observed_data"] = {"coordinates": posterior.coordinates}
    coords = {
        "draw": first.iterations,
        "object": np.arange(first.n_objects),
        "feature": np.arange(posterior.n_features),
        "move": moves,
        **({} if data is None else _names(data, posterior)),
    }
    options: dict[str, Any] = {"dims": dims, "coords": coords}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, **options)
    return arviz.from_dict(**groups, **options)


def _names(data: Any, posterior: Posterior) -> dict[str, list[str]]:  # noqa: ANN401 - as above
    """Coordinates by name, where the data have names that differ."""
    dataset = as_dataset(data)
    if dataset.X.shape != posterior.data_shape:
        raise ValueError(
            "the chains were run on {} rows and {} columns; ".format(*posterior.data_shape)
            + f"got data with {dataset.n_objects} and {dataset.n_features}."
        )
    rows, columns = dataset.row_names, dataset.feature_names
    names: dict[str, list[str]] = {}
    if rows is not None and len(set(rows)) == len(rows):
        names["object"] = list(rows)
    if posterior.map.columns is not None:
        columns = tuple(columns[place] for place in posterior.map.columns)
    if posterior.model != "III" and len(set(columns)) == len(columns):
        names["feature"] = list(columns)
    return names


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([guarded(cell) for cell in header])
    writer.writerows([guarded(cell) for cell in row] for row in rows)
    return buffer.getvalue()


# Words for a paper.

_INVARIANT = {
    "I": "rotations and one common scale of the columns",
    "II": "a separate scale for each column",
    "III": "all non-singular linear maps of the columns",
}
_MOVES = {
    "gibbs": "Gibbs sweeps",
    "informed-split-merge": "split-merge moves by sequential allocation (Dahl 2005)",
    "reassign": "single-object reassignments (Huang and Yang 2020, Algorithm 1)",
    "split-merge": "split-merge moves (Huang and Yang 2020, Algorithm 2)",
}


def methods(trace: Trace) -> str:
    """Write what was done as a paragraph for a paper, with every number of this run.

    Parameters
    ----------
    trace
        Draws of one chain, or pooled draws of several.
    """
    return " ".join([*_model(trace.posterior), *_sampling(trace), *_answer(trace)])


def cite(trace: Trace | None = None) -> str:
    """Write the references as BibTeX: paper, software and methods; with a trace, those that it used."""
    entries = files("ewens_widgets").joinpath("data", "references.bib").read_text(encoding="utf-8")
    used: dict[str, bool] = {}
    if trace is not None:
        prior = trace.posterior.prior
        used = {
            "dahl2005sequentially": "informed-split-merge" in trace.move_counts,
            "miller2018mixture": isinstance(prior, FiniteMixture),
            "escobar1995bayesian": isinstance(prior, Ewens) and isinstance(prior.concentration, Gamma),
        }
    wanted = [
        entry
        for entry in entries.strip().replace("VERSION", __version__).split("\n\n")
        if used.get(entry[entry.index("{") + 1 : entry.index(",")], True)
    ]
    return "\n\n".join(wanted)


def _model(posterior: Posterior) -> Iterator[str]:
    n_rows, n_columns = posterior.data_shape
    kinds = [kind.kind for kind in posterior.columns.kinds]
    counted = {kind: kinds.count(kind) for kind in ("number", "two-part", "category", "left out")}
    listed = ", ".join(f"{count} {kind}" for kind, count in counted.items() if count)
    yield (
        f"{n_rows} objects with {n_columns} columns" + (f" ({listed})" if listed else "") + " were clustered "
        f"with the Bayesian partition model of Huang and Yang (2020) in ewens_widgets {__version__}."
    )
    shapes = "a common covariance for all clusters"
    if posterior.shapes == "own":
        grid = posterior.nu_grid
        shapes = (
            "a covariance for each cluster, pooled towards a common one with a degree of pooling that is "
            f"uniform on {grid.size} values from {grid[0]:g} to {grid[-1]:g}"
        )
    invariant = _INVARIANT[posterior.model]
    if len(posterior.gaps) and posterior.model != "II":
        rest = ", and to shifts and scales of the others" if posterior.model == "III" else ""
        invariant += f" without missing cells{rest}"
    yield f"Model {posterior.model}, invariant to {invariant}, had {shapes}."
    grid = posterior.theta_grid
    yield (
        f"The prior on partitions was {posterior.prior}; the ratio of the variance between clusters to that "
        f"within had {grid.size} values from {grid[0]:g} to {grid[-1]:g}, with shape {posterior.alpha:g} of "
        "its prior."
    )
    if posterior.columns.has_categories:
        yield (
            "Categories were independent given the partition, with symmetric Dirichlet(1/2) priors on their "
            "shares; missing ones were not counted."
        )
    yield from posterior.sentences


def _move(name: str) -> str:
    """A move in words, and by which ratio it is accepted, where the paper prints another one."""
    kind = name.removesuffix(PRINTED)
    words = _MOVES.get(kind, kind)
    if kind not in MOVES or not MOVES[kind].has_printed_ratio:
        return words
    ratio = "the Hastings ratio corrected" if kind == name else "the acceptance ratio inverted, as printed"
    return f"{words.removesuffix(')')}, with {ratio})"


def _sampling(trace: Trace) -> Iterator[str]:
    chains = trace.chains
    numbers = diagnose(trace, similarity=False)
    moves = " and ".join(map(_move, trace.move_counts))
    burn_in = min(int(chain.iterations[0]) for chain in chains) - 1
    steps = np.diff(chains[0].iterations)
    thin = f", one every {steps[0]} iterations" if steps.size and steps[0] > 1 else ""
    count = "One Markov chain" if len(chains) == 1 else f"{len(chains)} Markov chains"
    yield (
        f"{count} of {len(chains[0])} draws{thin}, after at least {burn_in} iterations of burn-in, used "
        f"{moves}."
    )
    if any(name.endswith(PRINTED) for name in trace.move_counts):
        yield "With this ratio the chain does not sample the posterior, so no result below describes it."
    if numbers.rhat:
        yield (
            f"The largest rank-normalised R-hat was {numbers.worst_rhat:.3f} and the smallest effective "
            f"sample size {numbers.least_ess:.0f} (Vehtari et al. 2021)."
        )


def _answer(trace: Trace) -> Iterator[str]:
    found = trace.answer()
    components = len(found.table)
    sizes = ", ".join(map(str, found.sizes))
    groups = "one group" if found.n_clusters == 1 else f"{found.n_clusters} groups"
    how = f" by merging {components} components of the draws" if components > found.n_clusters else ""
    yield (
        f"The answer of the draws was {groups} of {sizes} objects{how}; "
        f"{trace.n_objects - found.uncertain.size} of {trace.n_objects} objects were assigned with "
        "probability of at least 0.8."
    )
    yield found.reason
