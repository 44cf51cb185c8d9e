"""Files with a right checksum and wrong content: what fuzzing found, one by one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.sampling.archive import ArchiveError, read_archive, write_archive

Change = Callable[[dict[str, Any], dict[str, Any]], None]


def rewritten(path: Path, kind: str, change: Change) -> Path:
    """Change the content of a file and give it a right checksum."""
    metadata, arrays = read_archive(path, kind)
    change(metadata, arrays)
    write_archive(path, kind, metadata, arrays)
    return path


@pytest.fixture
def sampler(tmp_path: Path) -> Path:
    X = np.random.default_rng(1).normal(size=(8, 2))
    made = ew.Sampler(X, moves="paper-2", metric="euclidean")
    made.sample(3, progress=False)
    made.save(tmp_path / "sampler.npz")
    return tmp_path / "sampler.npz"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    X = np.random.default_rng(1).normal(size=(8, 2))
    ew.Sampler(X).sample(4, progress=False).save(tmp_path / "trace.npz")
    return tmp_path / "trace.npz"


def test_data_with_other_rows_would_lead_the_kernel_astray(sampler: Path) -> None:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["raw"] = arrays["raw"][:5]

    with pytest.raises(ArchiveError, match="5 rows, but its coordinates 8"):
        ew.Sampler.load(rewritten(sampler, "sampler", change))


@pytest.mark.parametrize("factor", [1e3, 1e200, 0.0])
def test_coordinates_must_be_canonical(sampler: Path, factor: float) -> None:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["coordinates"] = arrays["coordinates"] * factor

    with pytest.raises(ArchiveError, match="not canonical for model II"):
        ew.Sampler.load(rewritten(sampler, "sampler", change))


@pytest.mark.parametrize("label", [2**62, 8, -1])
def test_a_label_beyond_the_objects_takes_no_memory(sampler: Path, label: int) -> None:
    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["labels"] = arrays["labels"].astype(np.int64)
        arrays["labels"][3] = label

    with pytest.raises(ArchiveError, match="inconsistent"):
        ew.Sampler.load(rewritten(sampler, "sampler", change))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("state", "iteration"), 10**30, "inconsistent"),
        (("state", "log_concentration"), "0x1p2000", "complete sampler"),
        (("state", "log_concentration"), "0x1p+10", "inconsistent"),
        (("state", "log_concentration"), "0x1.8p+3", "its prior 1.0"),
        (("first", "generator"), {"bit_generator": "PCG64"}, "complete sampler"),
        (("state", "generator"), [], "complete sampler"),
        (("moves",), [{"name": "gibbs", "repeats": 10**30}], "must not exceed"),
        (("moves",), 5, "complete sampler"),
        (("posterior", "alpha"), 1e308, "alpha is too large"),
        (("posterior", "concentration"), {"shape": 1e300, "rate": 1.0}, "between 1e-100 and 1e\\+100"),
    ],
)
def test_settings_of_a_sampler(sampler: Path, place: tuple[str, ...], value: object, words: str) -> None:
    def change(metadata: dict[str, Any], _: dict[str, Any]) -> None:
        inner = metadata
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value

    with pytest.raises(ArchiveError, match=words):
        ew.Sampler.load(rewritten(sampler, "sampler", change))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("moves.gibbs", lambda _: np.int64(3)),
        ("moves.gibbs", lambda array: array.astype(np.float64)),
        ("log_posterior", lambda array: array * np.nan),
        ("log_posterior", lambda array: array.astype(np.complex128)),
        ("theta_weights", lambda array: array + np.inf),
        ("concentration", lambda array: array.astype("U8")),
        ("iterations", lambda array: array + 0.5),
        ("labels", lambda array: array[0]),
        ("theta_index", lambda array: array + 100),
    ],
)
def test_columns_of_a_trace(trace: Path, name: str, change: Callable[[Any], Any]) -> None:
    def exchange(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name] = np.asarray(change(arrays[name]))

    with pytest.raises(ArchiveError, match="not a complete trace"):
        ew.Trace.load(rewritten(trace, "trace", exchange))


def test_only_numbers_and_text_are_written(tmp_path: Path) -> None:
    dates = np.array(["2020-01-01"], dtype="datetime64[D]")
    with pytest.raises(TypeError, match="numbers or plain text"):
        write_archive(tmp_path / "dates.npz", "trace", {}, {"dates": dates})
    write_archive(
        tmp_path / "text.npz", "trace", {}, {"names": np.array(["é", "b"]), "none": np.zeros((0, 3))}
    )
    arrays = read_archive(tmp_path / "text.npz", "trace")[1]
    assert arrays["names"].tolist() == ["é", "b"]
    assert arrays["none"].shape == (0, 3)
