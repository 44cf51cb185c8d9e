"""Files with sound checksums and senseless content: refused as what they are, never a bare exception."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_runs import run

import ewens_widgets as ew
from ewens_widgets.sampling.archive import read_archive, write_archive
from ewens_widgets.sampling.chains.checkpoint import Checkpoint

JUNK: list[Any] = [
    None,
    [],
    {},
    "x",
    -1,
    1e308,
    True,
    [[1]],
    {"draws": -3},
    {"until": {"rhat": 0}},
    ["a", "b"],
]
ARRAYS = [
    np.zeros(0),
    np.zeros((2, 2)),
    np.array([np.nan]),
    np.array(["x"]),
    np.full((4, 12), 200, dtype=np.uint8),
]


def variants(content: dict[str, Any], junk: list[Any]) -> Iterator[dict[str, Any]]:
    """The content with one entry missing or replaced, also one level down."""
    for key, value in content.items():
        yield {name: entry for name, entry in content.items() if name != key}
        for other in junk:
            yield {**content, key: other}
        if isinstance(value, dict) and junk is JUNK:
            for inner in variants(value, junk):
                yield {**content, key: inner}


def chains_file(folder: Path) -> tuple[Path, str, Callable[[], object]]:
    path = folder / "chains.npz"
    run(chains=2, draws=9).save(path)
    return path, "chains", lambda: ew.Chains.load(path)


def plan_file(folder: Path) -> tuple[Path, str, Callable[[], object]]:
    run(chains=2, draws=9, checkpoint=folder)
    return folder / "run.npz", "run of chains", lambda: ew.Chains.load(folder)


def chunk_file(folder: Path) -> tuple[Path, str, Callable[[], object]]:
    run(chains=2, draws=9, burn_in=0, checkpoint=folder)
    checkpoint = Checkpoint.open(folder)
    return folder / "chain-0001" / "000000000000.npz", "chunk of a chain", lambda: list(checkpoint.read(1))


@pytest.mark.parametrize("make", [chains_file, plan_file, chunk_file])
def test_strange_content_is_refused(
    make: Callable[[Path], tuple[Path, str, Callable[[], object]]], tmp_path: Path
) -> None:
    path, kind, load = make(tmp_path)
    load()
    metadata, arrays = read_archive(path, kind)
    refused = total = 0
    for settings, stored in [
        *((strange, arrays) for strange in variants(metadata, JUNK)),
        *((metadata, strange) for strange in variants(arrays, ARRAYS)),
    ]:
        write_archive(path, kind, settings, stored)
        total, refused = total + 1, refused + 1
        with suppress(ew.ArchiveError):
            load()
            refused -= 1
    assert refused > 0.6 * total
