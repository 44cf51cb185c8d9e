"""The one file format of the package: a ``.npz`` of arrays and settings, without pickle.

A file is what `numpy.savez_compressed` writes. Its first array, ``ewens_widgets``, holds JSON: the kind of
content, the version of the format, and the settings. It is read by `numpy.load` with ``allow_pickle=False``,
so nothing in a file is ever executed. A file may come from anywhere, and a few kilobytes of zip can unpack to
any amount of memory. So the sum of the sizes of its members, from the zip's directory, is checked before
anything is unpacked, and the zip's checksums before anything is used.

What is saved (a posterior here, draws in `trace`, states, samplers and sessions in `state`) is split into
settings and arrays by a function ``pack_…``, and put together again by its twin ``unpack_…``, which checks
that the parts fit together. Several of them can share an archive, the arrays of each under a prefix.
"""

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets._version import __version__
from ewens_widgets.arguments import TooLargeError, check_fits, check_positive
from ewens_widgets.datasets.kinds import ColumnKind
from ewens_widgets.files import write_atomically
from ewens_widgets.model import priors
from ewens_widgets.model.checks import check_data, check_model, check_theta_grid
from ewens_widgets.model.coordinates import AffineMap, check_canonical
from ewens_widgets.model.likelihood import check_centre
from ewens_widgets.model.mixed_columns import Columns
from ewens_widgets.model.posterior import Posterior, check_nu_grid, check_shapes
from ewens_widgets.model.priors.ewens import Gamma

FORMAT_VERSION = 1
_HEADER = "ewens_widgets"
_FIRST_NAME = slice(30, 30 + len(_HEADER))  # Where a zip file names its first member.
_LARGEST_TEXT = 8 * 2**20  # As Python objects, JSON takes many times its size.
# A file may unpack to this or to a multiple of its own size, unless the memory limit is set by hand.
_LARGEST, _LARGEST_RATIO = 2**30, 20
_PRIORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        priors.DirichletMultinomial,
        priors.Ewens,
        priors.FiniteMixture,
        Gamma,
        priors.Geometric,
        priors.PitmanYor,
        priors.Poisson,
    )
}

Metadata = Mapping[str, Any]
Arrays = Mapping[str, NDArray[Any]]


class ArchiveError(ValueError):
    """A file is not an archive of this package, is damaged, or holds something else than was asked for."""


class MissingArchiveError(ArchiveError, FileNotFoundError):
    """There is no such file."""


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Raise an `ArchiveError` for whatever malformed content raises in the block."""
    try:
        yield
    except TooLargeError:
        raise
    except Exception as fault:
        raise ArchiveError(f"{what} ({fault}). Use another copy, or save it again.") from fault


def write_archive(path: str | os.PathLike[str], kind: str, metadata: Metadata, arrays: Arrays) -> None:
    """Save settings and arrays in one file, whole or not at all.

    Parameters
    ----------
    path
        File to write; an existing one is replaced once the new one is complete.
    kind
        What the file holds, e.g. ``"trace"``; `read_archive` refuses another kind.
    metadata
        Settings, of types that JSON knows (NumPy scalars are converted).
    arrays
        Arrays of numbers or plain text by name.
    """
    write_atomically(path, archive_bytes(kind, metadata, arrays))


def archive_bytes(kind: str, metadata: Metadata, arrays: Arrays) -> bytes:
    """Make the content of an archive in memory, e.g. for a download."""
    for name, values in arrays.items():
        if np.asarray(values).dtype.kind not in "biufcSU":
            raise TypeError(f"array {name!r} must hold numbers or plain text; got dtype {values.dtype}.")
    about = {"version": __version__, "format": FORMAT_VERSION, "kind": kind}
    header = {**about, "metadata": dict(metadata), "arrays": sorted(arrays)}
    try:
        text = json.dumps(header, default=_plain_scalar, allow_nan=False)
    except ValueError as fault:
        raise ValueError(
            f"settings to save must be finite numbers ({fault}); put NaN and infinity in an array."
        ) from fault
    buffer = io.BytesIO()
    content: dict[str, Any] = {_HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    np.savez_compressed(buffer, **content)
    return buffer.getvalue()


def read_archive(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the settings and arrays of a file that `write_archive` made with the same `kind`."""
    target = Path(path)
    if not target.exists():
        raise MissingArchiveError(f"there is no file {str(target)!r}; check the path.")
    if not target.is_file():  # a device or a pipe could go on for ever
        raise ArchiveError(f"{str(target)!r} is a directory, a device or a pipe; give a file.")
    with target.open("rb") as stream:
        return _parse(stream, kind, str(target))


def parse_archive(
    data: bytes, kind: str, source: str = "the file"
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the settings and arrays of an archive in memory, e.g. an upload; messages name the `source`."""
    return _parse(io.BytesIO(data), kind, source)


def _parse(stream: IO[bytes], kind: str, source: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    start, size = stream.read(_FIRST_NAME.stop), stream.seek(0, os.SEEK_END)
    if start[:4] != b"PK\x03\x04" or start[_FIRST_NAME] != _HEADER.encode():
        found = f"it begins with {start[:12]!r}" if start else "it is empty"
        what = "it is a zip or npz file made by something else" if start[:4] == b"PK\x03\x04" else found
        raise ArchiveError(f"{source} was not saved by ewens_widgets: {what}.")
    stream.seek(0)
    with refused(f"{source} is damaged or incomplete"), np.load(stream, allow_pickle=False) as file:
        _check_sizes(file.zip.infolist(), size, source)
        if file.zip.testzip() is not None:
            raise zipfile.BadZipFile("a checksum does not match")
        header = json.loads(file[_HEADER].tobytes(), parse_constant=_refuse_constant)
        if header["kind"] == kind and header["format"] == FORMAT_VERSION:
            arrays = {name: file[name] for name in dict.fromkeys(header["arrays"])}
            if not all(values.itemsize for values in arrays.values()):
                raise ValueError("text without letters may have any length")
            return dict(header["metadata"]), arrays
    if header["kind"] != kind:
        raise ArchiveError(
            f"{source} holds a {header['kind']}, not a {kind}; load it with the class that saved it."
        )
    raise ArchiveError(
        f"{source} was saved by ewens_widgets {header.get('version')} in format {header['format']}, but this "
        f"version ({__version__}) reads format {FORMAT_VERSION}; upgrade ewens_widgets."
    )


def _check_sizes(members: list[zipfile.ZipInfo], size: int, source: str) -> None:
    """Refuse members that cannot be read plainly, or that together would take too much memory."""
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{member.filename} is compressed in an unknown way")
        if member.filename == f"{_HEADER}.npy" and member.file_size > _LARGEST_TEXT:
            raise ValueError(f"its settings have {member.file_size} bytes; at most {_LARGEST_TEXT} are read")
    total = sum(member.file_size for member in members)
    usual = max(_LARGEST, _LARGEST_RATIO * size)
    check_fits(total, f"reading {source}", "Only if you know where the file is from, raise the limit.", usual)


def _plain_scalar(value: object) -> int | float | bool:
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    raise TypeError(
        f"cannot save {value!r} of type {type(value).__name__}; settings must be numbers, strings or lists."
    )


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that settings may hold")


def prefixed(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Name the arrays of one part of an archive that holds several."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Find the arrays that `prefixed` named."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def pack_posterior(posterior: Posterior) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a posterior into settings and arrays."""
    settings = {
        "model": posterior.model,
        "shapes": posterior.shapes,
        "prior": _pack_prior(posterior.prior),
        "alpha": posterior.alpha,
        **({} if posterior.theta_prior == "as-printed" else {"theta_prior": posterior.theta_prior}),
        **({} if posterior.centre == "mean" else {"centre": posterior.centre}),
    }
    if posterior.columns.kinds:
        settings["kinds"] = [asdict(kind) for kind in posterior.columns.kinds]
        settings["rounding"] = list(posterior.columns.rounding)
    arrays: dict[str, NDArray[Any]] = {
        "coordinates": posterior.coordinates,
        "theta_grid": posterior.theta_grid,
        "nu_grid": posterior.nu_grid,
        "map.centre": posterior.map.centre,
        "map.scale": posterior.map.scale,
    }
    if len(posterior.gaps):
        arrays["gaps"] = posterior.gaps
    if posterior.columns.kinds:
        arrays["categories"] = posterior.columns.places
    if posterior.map.matrix is not None:
        arrays["map.matrix"] = posterior.map.matrix
    return settings, arrays


def _pack_prior(value: Any) -> Any:  # noqa: ANN401 - a number, or a prior of numbers and priors
    if isinstance(value, int | float):
        return value
    kind: Any = type(value)
    name: str = kind.__name__
    if name not in _PRIORS or kind is not _PRIORS[name]:
        raise TypeError(f"a file can hold the priors of ew.priors only; got {value!r}.")
    return {"kind": name, **{part.name: _pack_prior(getattr(value, part.name)) for part in fields(kind)}}


def _unpack_prior(given: Any) -> Any:  # noqa: ANN401 - as above
    if not isinstance(given, dict):
        return given
    return _PRIORS[given["kind"]](
        **{name: _unpack_prior(one) for name, one in given.items() if name != "kind"}
    )


def unpack_posterior(settings: Metadata, arrays: Arrays) -> Posterior:
    """Put a posterior together again; its coordinates are kept as they are."""
    shapes, model = check_shapes(settings["shapes"]), check_model(settings["model"])
    coordinates = np.ascontiguousarray(check_data(arrays["coordinates"]))
    gaps = arrays.get("gaps", np.zeros((0, 2), dtype=np.int64))
    check_canonical(coordinates, model, gaps)
    columns = _columns(settings, arrays, len(coordinates))
    prior = _unpack_prior(settings["prior"])
    if not isinstance(prior, priors.PartitionPrior):
        raise TypeError(f"{prior!r} is no prior on partitions")
    return Posterior(
        coordinates=coordinates,
        model=model,
        prior=prior,
        alpha=check_positive("alpha", settings["alpha"]),
        theta_grid=check_theta_grid(arrays["theta_grid"]),
        shapes=shapes,
        nu_grid=np.array([np.inf]) if shapes == "common" else check_nu_grid(arrays["nu_grid"]),
        map=_affine_map(arrays, coordinates.shape[1], columns),
        theta_prior=settings.get("theta_prior", "as-printed"),
        centre=check_centre(settings.get("centre", "mean")),
        columns=columns,
        gaps=gaps,
    )


def unpack_kinds(given: Any) -> tuple[ColumnKind, ...]:  # noqa: ANN401 - what a file holds
    """Read kinds of columns that were written as dictionaries."""
    return tuple(
        ColumnKind(
            str(kind["name"]),
            str(kind["kind"]),
            float(kind["resolution"]),
            str(kind["reason"]),
            tuple(float(level) for level in kind["levels"]),
            tuple(str(name) for name in kind["level_names"]),
        )
        for kind in given
    )


def _columns(settings: Metadata, arrays: Arrays, n_objects: int) -> Columns:
    """Read what the columns of the data are."""
    if "kinds" not in settings:
        return Columns()
    kinds = unpack_kinds(settings["kinds"])
    columns = Columns(kinds, arrays["categories"], tuple(str(text) for text in settings["rounding"]))
    places, n_places = columns.places, int(columns.levels.sum())
    if places.shape != (n_objects, columns.levels.size) or places.dtype != np.int64:
        raise ValueError("the categories do not fit the kinds of the columns")
    if places.size and not (places.min() >= -1 and places.max() < n_places):
        raise ValueError("there are categories that no column has")
    return columns


def _affine_map(arrays: Mapping[str, NDArray[Any]], n_kept: int, columns: Columns) -> AffineMap:
    """Read the map from the data to their coordinates; refuse one of other data."""
    used = columns.numbers
    n_features = n_kept
    if "map.matrix" in arrays and columns.rounding:
        n_features = n_kept + len(columns.rounding)
    centre, scale, matrix = arrays["map.centre"], arrays["map.scale"], arrays.get("map.matrix")
    parts = [centre, scale] if matrix is None else [centre, scale, matrix]
    shapes = [(), ()] if matrix is None else [(), (), (n_features,)]
    for values, rest in zip(parts, shapes, strict=True):
        fits = values.shape in {(n_features, *rest), (1, *rest)} and values.dtype == np.float64
        if not (fits and np.all(np.isfinite(values))):
            raise ValueError("the map from the data to their coordinates does not fit")
    if np.any(scale <= 0.0):
        raise ValueError("the map from the data to their coordinates has a scale that is not positive")
    if used is not None and len(used) != n_features:
        raise ValueError("the map from the data to their coordinates is of other columns")
    return AffineMap(
        centre, scale, matrix, None if n_kept == n_features else n_kept, used, (), columns.parted
    )


def same_posterior(first: Posterior, second: Posterior) -> bool:
    """Whether two posteriors are of the same data under the same settings."""
    if first is second:
        return True
    (settings, arrays), (others, other_arrays) = pack_posterior(first), pack_posterior(second)
    # Data in other units may have the same coordinates.
    names = [name for name in arrays if not name.startswith("map.")]
    return settings == others and all(np.array_equal(arrays[name], other_arrays[name]) for name in names)
