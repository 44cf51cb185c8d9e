"""The one file format of the package: arrays and settings in a checked ``.npz``, without pickle.

A file is an ordinary NumPy ``.npz`` (so ``numpy.load`` opens it too) whose first member,
``ewens_widgets.json``, holds the kind of content, the version of the format, and the settings. The archive
comment at the very end holds a SHA-256 digest of everything before it, so that a truncated file or a single
flipped bit is noticed before anything is used. The digest keeps out accidents, not forgers: nothing in a file
is ever executed, and one that would unpack to more than fits in memory is refused (see `Members`).

Writing is atomic: a temporary file in the same directory is completed, flushed to disk and only then renamed.
A failed or interrupted save leaves the previous file as it was.

A file may come from anywhere. A few kilobytes of zip can claim, or really unpack to, any amount of memory;
the header of an ``.npy`` file can claim any shape and is, elsewhere, evaluated as Python. So sizes are
checked before memory is taken, the header must match a pattern letter by letter, and the array must be
exactly as large as what is there.

What is saved (posterior, state, sampler, draws, chains, session) is taken apart by a function ``pack_…`` into
settings and arrays, and put together by its twin ``unpack_…``, which checks that the parts fit together. One
archive can so hold several of them, the arrays of each under a prefix (`under`, `prefixed`).
"""

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets._version import __version__
from ewens_widgets.arguments import check_positive
from ewens_widgets.files import write_atomically
from ewens_widgets.memory import TooLargeError, check_fits
from ewens_widgets.model.checks import check_data, check_model, check_theta_grid
from ewens_widgets.model.coordinates import AffineMap, check_canonical
from ewens_widgets.model.posterior import Posterior, check_nu_grid, check_shapes
from ewens_widgets.model.priors import (
    DirichletMultinomial,
    Ewens,
    FiniteMixture,
    Geometric,
    PartitionPrior,
    PitmanYor,
    Poisson,
)
from ewens_widgets.model.priors.ewens import Gamma, check_concentration

__all__ = [
    "FORMAT_VERSION",
    "MALFORMED",
    "ArchiveError",
    "Members",
    "MissingArchiveError",
    "archive_bytes",
    "is_archive",
    "pack_posterior",
    "parse_archive",
    "prefixed",
    "read_archive",
    "same_posterior",
    "under",
    "unpack_posterior",
    "write_archive",
]

FORMAT_VERSION = 1
_PRIORS: dict[str, type] = {
    kind.__name__: kind
    for kind in (DirichletMultinomial, Ewens, FiniteMixture, Gamma, Geometric, PitmanYor, Poisson)
}
_HEADER = "ewens_widgets.json"
_DIGEST_MARK = b"ewens_widgets sha256 "
_COMMENT_LENGTH = len(_DIGEST_MARK) + hashlib.sha256().digest_size * 2
_LOCAL_NAME = slice(30, 30 + len(_HEADER))  # Where a zip file names its first member.
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # The same content always gives the same bytes.

MALFORMED = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    OSError,
    OverflowError,
    RuntimeError,  # a password, an unknown compression, or brackets nested too deep
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading raises where content is not what it should be."""

_LARGEST_TEXT = 8 * 2**20  # As Python objects, JSON takes many times its size.
_PIECE = 2**20
_MAGIC = b"\x93NUMPY\x01\x00"
_LARGEST_SIDE = 10**15
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufcSU]\d{1,6})', 'fortran_order': (True|False), 'shape': "
    rb"\(((?:\d{1,16},)|(?:\d{1,16}(?:, \d{1,16})+)|)\), \} *\n"
)

Metadata = Mapping[str, Any]
Arrays = Mapping[str, NDArray[Any]]


class ArchiveError(ValueError):
    """A file is not an archive of this package, is damaged, or holds something else than was asked for."""


class MissingArchiveError(ArchiveError, FileNotFoundError):
    """There is no such file."""


def write_archive(path: str | os.PathLike[str], kind: str, metadata: Metadata, arrays: Arrays) -> None:
    """Save settings and arrays in one file, atomically.

    Parameters
    ----------
    path
        File to write; an existing one is replaced once the new one is complete.
    kind
        What the file holds, e.g. ``"trace"``; `read_archive` refuses another kind.
    metadata
        Settings, of types that JSON knows (NumPy scalars are converted).
    arrays
        Arrays by name; arrays of Python objects are refused.
    """
    write_atomically(path, archive_bytes(kind, metadata, arrays))


def read_archive(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the settings and arrays of a file that `write_archive` made with the same `kind`."""
    target = Path(path)
    try:
        data = _whole_file(target)
    except FileNotFoundError as fault:
        raise MissingArchiveError(f"there is no file {str(target)!r}; check the path.") from fault
    except IsADirectoryError as fault:
        raise ArchiveError(f"{str(target)!r} is a directory; give the file inside it.") from fault
    except PermissionError as fault:
        if target.is_dir():  # Windows reports a directory so.
            raise ArchiveError(f"{str(target)!r} is a directory; give the file inside it.") from fault
        raise
    return parse_archive(data, kind, source=str(target))


def archive_bytes(kind: str, metadata: Metadata, arrays: Arrays) -> bytes:
    """Make the content of an archive in memory, e.g. for a download."""
    header = {"package": "ewens_widgets", "version": __version__, "format": FORMAT_VERSION, "kind": kind}
    text = _to_json({**header, "metadata": dict(metadata), "arrays": sorted(arrays)})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=4) as archive:
        _add_member(archive, _HEADER, text.encode())
        for name in sorted(arrays):
            _add_member(archive, f"{name}.npy", _npy_bytes(name, arrays[name]))
        archive.comment = b" " * _COMMENT_LENGTH
    body = buffer.getvalue()[:-_COMMENT_LENGTH]
    return body + _digest(body)


def parse_archive(
    data: bytes, kind: str, source: str = "the file"
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Check the content of an archive and return its settings and arrays.

    Parameters
    ----------
    data
        Everything the file holds, e.g. an upload.
    kind
        What it must be an archive of.
    source
        How messages name the file.

    Raises
    ------
    ArchiveError
        For anything but a whole archive of this kind.
    TooLargeError
        For one that would not fit in memory.
    """
    _check_origin(data, source)
    body, digest = data[:-_COMMENT_LENGTH], data[-_COMMENT_LENGTH:]
    if digest != _digest(body):
        raise ArchiveError(
            f"{source} is damaged: its checksum does not match its content (a truncated download, or a disk "
            "fault). Use another copy, or save it again."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = Members(archive, source)
            header = members.settings(_HEADER)
            _check_header(header, kind, source)
            arrays = {name: members.array(f"{name}.npy") for name in _array_names(header)}
            return dict(header["metadata"]), arrays
    except (ArchiveError, TooLargeError):
        raise
    except MALFORMED as fault:
        raise ArchiveError(f"{source} is not a well-formed archive of ewens_widgets ({fault}).") from fault


def is_archive(data: bytes) -> bool:
    """Whether this is, or once was, an archive of this package: it begins or ends like one."""
    begins_like_ours = data[:2] == b"PK" and data[_LOCAL_NAME] == _HEADER.encode()
    return begins_like_ours or _DIGEST_MARK in data[-_COMMENT_LENGTH:]


def prefixed(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Name the arrays of one part of an archive that holds several."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Find the arrays that were named so."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def pack_posterior(posterior: Posterior) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a posterior into settings and arrays."""
    settings = {"model": posterior.model, **_plain_prior(posterior.prior), "alpha": posterior.alpha}
    arrays = {"coordinates": posterior.coordinates, "theta_grid": posterior.theta_grid}
    if posterior.shapes != "common":
        settings["shapes"], arrays["nu_grid"] = posterior.shapes, posterior.nu_grid
    arrays |= {"map.centre": posterior.map.centre, "map.scale": posterior.map.scale}
    if posterior.map.matrix is not None:
        arrays["map.matrix"] = posterior.map.matrix
    return settings, arrays


def _plain_prior(prior: PartitionPrior) -> dict[str, Any]:
    """Describe a prior; that of Ewens by its concentration alone, as files always had it."""
    if not isinstance(prior, Ewens):
        return {"prior": _plain_value(prior)}
    value = prior.concentration
    return {
        "concentration": {"shape": value.shape, "rate": value.rate} if isinstance(value, Gamma) else value
    }


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - a number, or a prior of numbers and priors
    if not is_dataclass(value):
        return value
    if type(value) is not _PRIORS.get(type(value).__name__):
        raise TypeError(
            f"a file cannot hold {value!r}: it knows the priors of ew.priors, not those made elsewhere."
        )
    parts = {entry.name: _plain_value(getattr(value, entry.name)) for entry in fields(value)}
    return {"kind": type(value).__name__, **parts}


def _prior(settings: Mapping[str, Any]) -> PartitionPrior:
    """Read what `_plain_prior` wrote."""
    if "prior" not in settings:
        given = settings["concentration"]
        return Ewens(check_concentration(Gamma(**given) if isinstance(given, dict) else given))
    prior = _value(settings["prior"])
    if not isinstance(prior, PartitionPrior):
        raise TypeError(f"{prior!r} is no prior on partitions")
    return prior


def _value(given: Any) -> Any:  # noqa: ANN401 - as above
    if not isinstance(given, dict):
        return given
    parts = {name: _value(part) for name, part in given.items() if name != "kind"}
    return _PRIORS[given["kind"]](**parts)


def unpack_posterior(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Posterior:
    """Put a posterior together again; its coordinates are taken as they are, not made canonical anew."""
    shapes = check_shapes(settings.get("shapes", "common"))
    model = check_model(settings["model"])
    coordinates = np.ascontiguousarray(check_data(arrays["coordinates"]))
    check_canonical(coordinates, model)
    return Posterior(
        coordinates=coordinates,
        model=model,
        prior=_prior(settings),
        alpha=check_positive("alpha", settings["alpha"]),
        theta_grid=check_theta_grid(arrays["theta_grid"]),
        shapes=shapes,
        nu_grid=np.array([np.inf]) if shapes == "common" else check_nu_grid(arrays["nu_grid"]),
        map=_affine_map(arrays, coordinates.shape[1]),
    )


def _affine_map(arrays: Mapping[str, NDArray[Any]], n_features: int) -> AffineMap:
    """Read the map from the data to their coordinates; refuse one of other data."""
    centre, scale, matrix = arrays["map.centre"], arrays["map.scale"], arrays.get("map.matrix")
    parts = [centre, scale] if matrix is None else [centre, scale, matrix]
    shapes = [(), ()] if matrix is None else [(), (), (n_features,)]
    for values, rest in zip(parts, shapes, strict=True):
        fits = values.shape in {(n_features, *rest), (1, *rest)} and values.dtype == np.float64
        if not (fits and np.all(np.isfinite(values))):
            raise ValueError("the map from the data to their coordinates does not fit")
    if np.any(scale <= 0.0):
        raise ValueError("the map from the data to their coordinates has a scale that is not positive")
    return AffineMap(centre, scale, matrix)


def same_posterior(first: Posterior, second: Posterior) -> bool:
    """Whether two posteriors are of the same data under the same settings."""
    if first is second:
        return True
    first_settings, first_arrays = pack_posterior(first)
    second_settings, second_arrays = pack_posterior(second)
    return first_settings == second_settings and all(
        np.array_equal(first_arrays[name], second_arrays[name])
        for name in first_arrays
        if not name.startswith("map.")  # data in other units may have the same coordinates
    )


class Members:
    """Members of one archive, which together may not take more memory than one result may.

    Parameters
    ----------
    archive
        An open zip archive.
    source
        How messages name the file.
    """

    def __init__(self, archive: zipfile.ZipFile, source: str) -> None:
        self._archive = archive
        self._source = source
        self._taken = 0

    def content(self, name: str, largest: int | None = None) -> bytes:
        """Bytes of a member."""
        member = self._admitted(name)
        if largest is not None and member.file_size > largest:
            raise ValueError(f"{name} has {member.file_size} bytes; at most {largest} are read")
        return self._archive.read(member)

    def settings(self, name: str) -> dict[str, Any]:
        """Settings in a member of JSON."""
        found = json.loads(self.content(name, _LARGEST_TEXT), parse_constant=_refuse_constant)
        if not isinstance(found, dict):
            raise TypeError(f"{name} holds no settings")
        return found

    def array(self, name: str) -> NDArray[Any]:
        """Array of numbers or plain text in a member of the ``.npy`` format."""
        member = self._admitted(name)
        with self._archive.open(member) as stream:
            dtype, shape, in_columns = _npy_header(stream, name)
            if math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
                raise ValueError(f"{name} is not as long as its header says")
            flat = np.empty(math.prod(shape), dtype=dtype)
            _fill(stream, flat.view(np.uint8).data, name)
        return flat.reshape(shape, order="F" if in_columns else "C")

    def _admitted(self, name: str) -> zipfile.ZipInfo:
        """Look a member up; refuse it if it cannot be read plainly, or would take too much memory."""
        member = self._archive.getinfo(name)
        if member.flag_bits & 0x1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is encrypted, or compressed in an unknown way")
        self._taken += member.file_size
        check_fits(self._taken, f"reading {self._source}", "Use a machine with more memory.")
        return member


def _whole_file(target: Path) -> bytes:
    """Content of a file that is one: a device or a pipe could go on for ever."""
    if target.exists() and not target.is_file() and not target.is_dir():
        raise ArchiveError(f"{str(target)!r} is a device or a pipe; give a file.")
    if target.is_file():
        check_fits(target.stat().st_size, f"reading {str(target)!r}", "Use a machine with more memory.")
    return target.read_bytes()


def _digest(body: bytes) -> bytes:
    return _DIGEST_MARK + hashlib.sha256(body).hexdigest().encode()


def _check_origin(data: bytes, source: str) -> None:
    """Tell a foreign file from a damaged one of ours, which still begins or ends like one."""
    if is_archive(data):
        return
    if not data:
        what = "it is empty"
    elif data[:4] == b"PK\x03\x04":
        what = "it is a zip or npz file made by something else"
    else:
        what = f"it begins with {data[:12]!r}"
    raise ArchiveError(f"{source} was not saved by ewens_widgets: {what}.")


def _array_names(header: dict[str, Any]) -> list[str]:
    """Names of the arrays, each once: a name repeated would be read again and again."""
    names = header["arrays"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("the names of its arrays are no list of names")
    return list(dict.fromkeys(names))


def _check_header(header: dict[str, Any], kind: str, source: str) -> None:
    if not isinstance(header["format"], int):
        raise TypeError("the version of its format is no number")
    if header["format"] > FORMAT_VERSION:
        raise ArchiveError(
            f"{source} was saved by ewens_widgets {header['version']} in format {header['format']}, but this "
            f"version ({__version__}) reads formats up to {FORMAT_VERSION}; upgrade ewens_widgets."
        )
    if header["kind"] != kind:
        raise ArchiveError(
            f"{source} holds a {header['kind']}, not a {kind}; load it with the class that saved it."
        )


def _add_member(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, date_time=_FIXED_DATE)
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, content)


def _npy_bytes(name: str, array: NDArray[Any]) -> bytes:
    values = np.asarray(array)
    if values.dtype.hasobject:
        raise TypeError(
            f"array {name!r} holds Python objects, which only pickle could save; convert it to numbers."
        )
    if values.dtype.kind not in "biufcSU":
        raise TypeError(f"array {name!r} must hold numbers or plain text; got dtype {values.dtype}.")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def _to_json(value: dict[str, Any]) -> str:
    try:
        return json.dumps(value, default=_plain_scalar, allow_nan=False)
    except ValueError as fault:
        raise ValueError(
            f"settings to save must be finite numbers ({fault}); put NaN and infinity in an array."
        ) from fault


def _plain_scalar(value: object) -> int | float | bool:
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.bool_):
        return bool(value)
    raise TypeError(
        f"cannot save {value!r} of type {type(value).__name__}; settings must be numbers, strings or lists."
    )


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that settings may hold")


def _npy_header(stream: IO[bytes], name: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Type, shape and order (whether by columns) that an ``.npy`` header tells."""
    start = stream.read(len(_MAGIC) + 2)
    if start[: len(_MAGIC)] != _MAGIC or len(start) < len(_MAGIC) + 2:
        raise ValueError(f"{name} is not an array in the npy format, version 1")
    (length,) = struct.unpack("<H", start[len(_MAGIC) :])
    found = _NPY_HEADER.fullmatch(stream.read(length))
    if found is None:
        raise ValueError(f"{name} has a header that NumPy would not write for numbers or text")
    shape = tuple(int(side) for side in found[3].decode().replace(",", " ").split())
    if math.prod(max(side, 1) for side in shape) > _LARGEST_SIDE:
        raise ValueError(f"{name} claims an absurd shape")
    dtype: np.dtype[Any] = np.dtype(found[1].decode())
    if not dtype.itemsize:
        raise ValueError(f"{name} holds text without letters")
    return dtype, shape, found[2] == b"True"


def _fill(stream: IO[bytes], room: memoryview, name: str) -> None:
    """Read exactly as much as there is room for, in pieces, so that nothing is in memory twice."""
    done = 0
    while done < len(room):
        piece = stream.read(min(_PIECE, len(room) - done))
        if not piece:
            raise EOFError(f"{name} ends early")
        room[done : done + len(piece)] = piece
        done += len(piece)
    if stream.read(1):
        raise ValueError(f"{name} is longer than its header says")
