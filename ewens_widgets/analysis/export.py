"""Draws and partitions in the formats of other tools: CSV tables and ArviZ."""

import csv
import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.datasets import as_dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling.archive import same_posterior
from ewens_widgets.sampling.draws import SCHEMA, saved_columns
from ewens_widgets.sampling.trace import Trace

__all__ = ["draws_csv", "labels_csv", "to_arviz"]

_LEADING = ("theta", "concentration", "log_posterior", "n_clusters")  # columns of the table, in their order
_INDICES = {"theta_index": "theta", "nu_index": "nu"}  # In a table the value stands for its place on a grid.


def labels_csv(
    labels: ArrayLike, names: Sequence[str] | None = None, columns: Mapping[str, NDArray[Any]] | None = None
) -> str:
    """Write one partition as a table, an object a row: object, cluster, and further columns.

    Parameters
    ----------
    labels
        One label an object; they are written as they are.
    names
        Names of the objects; their numbers, counted from 0, by default.
    columns
        Further columns, by name.
    """
    given = np.asarray(labels)
    check_labels(given)
    objects = [str(name) for name in (range(given.size) if names is None else names)]
    table = {"object": objects, "cluster": given.tolist()}
    table |= {name: np.asarray(values).tolist() for name, values in (columns or {}).items()}
    for name, values in table.items():
        if len(values) != given.size:
            raise ValueError(f"column {name!r} has {len(values)} entries for {given.size} objects.")
    return _csv_text(list(table), zip(*table.values(), strict=True))


def draws_csv(trace: Trace, names: Sequence[str] | None = None) -> str:
    """Write a table, a draw a row: iteration, theta, …, n_clusters, labels ``object_0``, … or by `names`.

    Whatever else is recorded as a number and varies, such as ``nu`` of own shapes, comes before the labels.
    """
    recorded = [_INDICES.get(entry.name, entry.name) for entry in saved_columns() if not entry.axes]
    known = {"iterations", *_LEADING}
    further = [name for name in recorded if name not in known and SCHEMA[name].varies(trace.posterior)]
    titles = {"iteration": "iterations", **{name: name for name in (*_LEADING, *further)}}
    numbers = {title: trace.column(name) for title, name in titles.items()}
    objects = [f"object_{item}" for item in range(trace.n_objects)] if names is None else list(names)
    if len(objects) != trace.n_objects:
        raise ValueError(f"{len(objects)} names for {trace.n_objects} objects.")
    header = [*numbers, *objects]
    columns = [values.tolist() for values in numbers.values()]
    rows = ((*row, *labels.tolist()) for *row, labels in zip(*columns, trace.labels, strict=True))
    return _csv_text(header, rows)


def to_arviz(
    traces: Sequence[Trace],
    data: Any = None,  # noqa: ANN401 - a Dataset, a DataFrame or an array
) -> Any:  # noqa: ANN401 - its type depends on the version of ArviZ
    """Export traces, a chain each, to ArviZ.

    The posterior group holds ``n_clusters``, ``theta`` and, where they are sampled, ``concentration`` and the
    likeness ``nu`` of own shapes: what diagnostics make sense for. The group ``sample_stats`` holds
    ``log_posterior``, ``acceptance`` by move, the ``labels`` of the objects, whose numbers change meaning
    from draw to draw, and the common scale of own shapes, ``sigma``: of models II and I its variances, of
    model III its lower triangle, row by row. The canonical coordinates of the data are ``observed_data``.
    Which quantity goes where is said in the table of what is recorded, ``ewens_widgets.sampling.draws``.

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
    groups, dims, coords = _arviz_content(traces)
    coords |= {} if data is None else _names(data, traces[0].posterior)
    arviz = _import_arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, dims=dims, coords=coords)
    return arviz.from_dict(**groups, dims=dims, coords=coords)


def _names(data: Any, posterior: Posterior) -> dict[str, list[str]]:  # noqa: ANN401 - as above
    """Coordinates by name, where the data have names that differ."""
    dataset = as_dataset(data)
    if dataset.X.shape != posterior.coordinates.shape:
        raise ValueError(
            f"the chains were run on {posterior.n_objects} rows and {posterior.n_features} columns; got data "
            f"with {dataset.n_objects} and {dataset.n_features}."
        )
    rows, columns = dataset.row_names, dataset.feature_names
    names: dict[str, list[str]] = {}
    if rows is not None and len(set(rows)) == len(rows):
        names["object"] = list(rows)
    if posterior.model != "III" and len(set(columns)) == len(columns):
        names["feature"] = list(columns)
    return names


def _import_arviz() -> ModuleType:
    try:
        with warnings.catch_warnings():
            # ArviZ 0.23 announces 1.0 when it is imported; this module works with both.
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as fault:
        raise ImportError("exporting to ArviZ needs the package arviz: pip install arviz.") from fault
    return arviz


def _arviz_content(
    traces: Sequence[Trace],
) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]], dict[str, Any]]:
    """Variables by group, their dimensions besides chain and draw, and the coordinates."""
    if not traces or len({len(trace) for trace in traces}) > 1:
        raise ValueError("ArviZ needs chains of one length; cut them, e.g. trace[-1000:].")
    first = traces[0]
    if not all(same_posterior(first.posterior, other.posterior) for other in traces[1:]):
        raise ValueError("only chains on the same data, model and prior belong together.")
    exported = [entry for entry in SCHEMA.values() if entry.arviz and entry.varies(first.posterior)]
    groups: dict[str, dict[str, Any]] = {"posterior": {}, "sample_stats": {}}
    for entry in exported:
        stacked = np.stack([trace.column(entry.name) for trace in traces])
        groups[entry.arviz or ""][entry.name] = stacked
    moves = [name for name in first.move_counts if all(_by_draw(trace, name) for trace in traces)]
    if moves:
        groups["sample_stats"]["acceptance"] = np.stack([_acceptance(trace, moves) for trace in traces])
    coords = {
        "draw": first.iterations,
        "object": np.arange(first.n_objects),
        "feature": np.arange(first.posterior.n_features),
        "move": moves,
    }
    dims = {"acceptance": ["move"], "coordinates": ["object", "feature"]}
    dims |= {entry.name: list(entry.axes) for entry in exported if entry.axes}
    groups["observed_data"] = {"coordinates": first.posterior.coordinates}
    return groups, dims, coords


def _by_draw(trace: Trace, move: str) -> bool:
    return move in trace.move_counts and np.ndim(trace.move_counts[move][0]) == 1


def _acceptance(trace: Trace, moves: list[str]) -> NDArray[np.float64]:
    """Share of accepted proposals at each draw (T × moves); NaN where a move proposed nothing."""
    made = np.stack([np.asarray(trace.move_counts[name][0]) for name in moves], axis=1)
    taken = np.stack([np.asarray(trace.move_counts[name][1]) for name in moves], axis=1)
    rates = np.full(made.shape, np.nan)
    np.divide(taken, made, out=rates, where=made > 0)
    return rates


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()
