"""What keeps memory and time in bounds where there are many objects."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling import trace
from ewens_widgets.sampling.draws import DrawTable


def test_a_slow_start_is_warned_of() -> None:
    X = np.random.default_rng(0).normal(size=(32_000, 1))
    with pytest.warns(UserWarning, match=r'32000 clusters.* use initial="k-means"'):
        ew.Sampler(X)
    ew.Sampler(X, initial="one-cluster")
    ew.Sampler(X, moves="paper-1")  # makes no sweeps


def test_draws_that_would_not_fit_are_refused_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = ew.Sampler(np.random.default_rng(0).normal(size=(300, 1)))
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "60000")
    with pytest.raises(
        TooLargeError, match=r"101 draws of the labels of 300 objects would take .*larger thin"
    ):
        sampler.sample(101, progress=False)
    assert sampler.iteration == 0
    assert len(sampler.sample(3, progress=False)) == 3


def test_a_table_takes_no_memory_before_its_first_draw() -> None:
    table = DrawTable(Posterior.from_data(np.random.default_rng(0).normal(size=(50, 1))), ("gibbs",))
    assert sum(column.nbytes for column in table.held().values()) == 0
    table.reserve(7)
    assert len(table) == 0
    assert table.labels.base is not None
    assert table.labels.base.shape == (7, 50)


def test_labels_are_checked_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_CHECKED_ENTRIES", 6)
    labels = np.array([[0, 1, 2], [0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 1, 0]], dtype=np.uint8)
    trace.check_canonical(labels)
    for row, wrong in ((4, [0, 2, 1]), (3, [1, 0, 0]), (0, [0, 255, 1])):
        damaged = labels.copy()
        damaged[row] = wrong
        with pytest.raises(ValueError, match="canonical"):
            trace.check_canonical(damaged)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [10_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_a_hundred_thousand_rows(n_rows: int, repository: Path) -> None:
    """In a process of their own, single precision and mapped: ten iterations from k-means, and the answers.

    The limits are those of the machine's processor, not of its other users; documented are far smaller ones.
    """
    script = repository / "benchmarks" / "large_data.py"
    command = [sys.executable, str(script), "--rows", str(n_rows), "--no-burn-in"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=repository).stdout
    rows = [line.strip("| ").split(" | ") for line in output.splitlines() if line.startswith("|")][2:]
    seconds = {name: float(value) for name, value, _ in rows}
    assert sum(seconds.values()) < 60.0
    assert seconds["sampler with its k-means start"] + seconds["10 iterations"] < 30.0
    assert max(float(memory) for *_, memory in rows) < 2.0
    assert float(output.split("error of the cut into 8: ")[1]) < 0.1  # ten iterations are not many
