"""Files as somebody who knows the format would forge them: right checksums, and hostile content.

In a forged file any value of the settings may be hostile, and any member may be another array, or bytes that
only look like one.
"""

import copy
import io
import json
import pickle
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

Members = dict[str, bytes]

MOST_MEMORY = 32 * 2**20
COMPILED_CODE = 300 * 2**20  # The first call of a compiled function takes memory of its own.
Array = NDArray[Any]

NAN = float("nan")
VALUES: list[Any] = [
    *(None, True, 0, -1, 1, 3, 2**31, 2**63, 2**64, 10**400, -(10**400)),
    *(0.5, -0.5, 1e308, 1e-320, 1e400, NAN),
    *("", "I", "III", "nan", "inf", "0x1p2000", "0x1.8p+700", "\ud800"),
    *("__import__('os').abort()", "../../etc/passwd"),
    *([], [[]], ["labels"] * 50, [0.475, 0.475, 0.05]),
    *({}, {"shape": 1.0, "rate": 1e-300}, {"shape": 1e300, "rate": 1e-300}),
    *({"name": "gibbs", "repeats": 10**30}, {"__class__": "os.system"}),
]


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes; 0 where the platform does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def traced_peak(work: Callable[[], object]) -> int:
    """Memory that some work takes, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Mine:
    """Unpickled, it leaves a file behind: nothing of ours may ever unpickle it."""

    def __init__(self, trap: Path) -> None:
        self.trap = trap

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trap,)


def npy(array: Array) -> bytes:
    """An array in the .npy format; one of objects is pickled."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npy_with_header(header: str, payload: bytes = b"") -> bytes:
    """Bytes that claim to be an array."""
    text = header.encode("utf-8", "surrogatepass") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + payload


ZEROS = "{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}"
HEADERS = [
    ZEROS.format(1000000000),
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 999999999999999), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<i3', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': __import__('os').abort(), 'fortran_order': False, 'shape': (), }",
    "(" * 500,
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }" + " " * 9000,
    "\ud800",
    "",
]


def _filled(array: Array, value: float) -> Array:
    """The array with another value in the middle, as far as its type has it."""
    result = array.copy()
    if result.size and result.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            result.flat[result.size // 2] = np.nan_to_num(value).astype(result.dtype)
        if result.dtype.kind == "f":
            result.flat[result.size // 2] = value
    return result


ARRAY_CHANGES: list[Callable[[Array], Array]] = [
    *(lambda array, kind=kind: array.astype(kind) for kind in ("f8", "c16", ">f8", "f4", "i8", "U8", "?")),
    *(lambda array, value=value: _filled(array, value) for value in (np.nan, np.inf, 1e300, -1.0, 2.0**62)),
    lambda array: array.ravel(),
    lambda array: array[None],
    lambda array: array[..., None],
    lambda array: array[:-1] if array.ndim else array,
    lambda array: array[:0] if array.ndim else array,
    lambda array: array.T,
    np.asfortranarray,
    lambda array: np.concatenate([array, array]) if array.ndim else array,
    lambda array: array[::-1].copy() if array.ndim else array,
    np.zeros_like,
    lambda array: array * 3 if array.dtype.kind in "iuf" else array,
]


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - any JSON
    """Where the values of a JSON document are."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*here, key)
        yield from paths(inner, (*here, key))


def changed(value: Any, path: tuple[Any, ...], new: Any, drop: bool) -> Any:  # noqa: ANN401 - any JSON
    """A JSON document with another value in one place, or without it."""
    result = copy.deepcopy(value)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    if drop:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return result


def opened(content: bytes) -> tuple[Any, Members]:
    """Header and other members of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    header = np.lib.format.read_array(io.BytesIO(members.pop("ewens_widgets.npy")))
    return json.loads(header.tobytes()), members


def forged(header: Any, members: Members, padding: str = "") -> bytes:  # noqa: ANN401 - any JSON
    """Make an archive with right checksums; the padding goes behind the settings."""
    text = np.frombuffer((json.dumps(header) + padding).encode(), dtype=np.uint8)
    return zipped({"ewens_widgets.npy": npy(text), **members})


def zipped(parts: dict[str, bytes]) -> bytes:
    """A zip file with these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return buffer.getvalue()


@contextmanager
def loadable(content: bytes) -> Iterator[Path]:
    """A file with this content."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "chain.npz").write_bytes(content)
        yield Path(folder) / "chain.npz"


def seeded(seed: int) -> Random:
    """Random choices that a seed decides: drawing each one by hypothesis would take most of the time."""
    return Random(seed)  # noqa: S311 - nothing secret


def mutated(content: bytes, rng: Random) -> bytes:
    """Some bytes changed, a stretch cut out, or one put in."""
    result = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        place = rng.randint(0, max(len(result) - 1, 0))
        kind = rng.choice(["flip", "flip", "cut", "insert", "truncate", "repeat"])
        if kind == "flip" and result:
            result[place] = rng.randint(0, 255)
        elif kind == "cut":
            del result[place : place + rng.randint(1, 40)]
        elif kind == "insert":
            result[place:place] = rng.randbytes(rng.randint(1, 12))
        elif kind == "truncate":
            del result[place:]
        else:
            result[place:place] = result[place : place + 60]
    return bytes(result)


def forgery(content: bytes, trap: Path, rng: Random) -> bytes:
    """An archive of which settings and arrays have been exchanged, with a right checksum."""
    header, members = opened(content)
    for _ in range(rng.randint(1, 2)):
        kind = rng.choice(["setting", "setting", "array", "array", "header", "bytes", "member"])
        name = rng.choice(sorted(members))
        if kind == "setting":
            header = with_hostile_value(header, rng)
        elif kind == "array":
            members[name] = with_hostile_array(members[name], rng)
        elif kind == "header":
            members[name] = npy_with_header(rng.choice(HEADERS), rng.randbytes(rng.randint(0, 24)))
        elif kind == "bytes":
            members[name] = mutated(members[name], rng)
        else:
            mine = npy(np.array([Mine(trap)], dtype=object))
            members[name] = rng.choice([mine, pickle.dumps(Mine(trap)), b""])
    return forged(header, members)


def with_hostile_value(document: Any, rng: Random) -> Any:  # noqa: ANN401 - any JSON
    """A JSON document in which one value is another, or missing."""
    places = list(paths(document))
    if not places:
        return document
    return changed(document, rng.choice(places), rng.choice(VALUES), drop=rng.random() < 0.1)


LARGEST = 10**7


def with_hostile_array(content: bytes, rng: Random) -> bytes:
    """Another array in place of one; what has been changed before stays as it is."""
    try:
        array: Array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception:  # noqa: BLE001 - whatever NumPy's own reader, which evaluates, stumbles over
        return content
    # Of elements without a size, it cost nothing to read, and would to change; raw bytes become nothing else.
    if array.size > LARGEST or array.dtype.kind == "V":
        return content
    with np.errstate(all="ignore"):
        return npy(np.asarray(rng.choice(ARRAY_CHANGES)(array)))
