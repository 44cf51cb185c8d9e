"""Runs of several chains on small data."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.paper.moves import distance_loop
from ewens_widgets.sampling import driver

LOOPS = ((driver, "advance_by_likelihood"), (distance_loop, "advance_by_distance"))


def wrap_loops(
    monkeypatch: pytest.MonkeyPatch, wrapped: Callable[[Callable[..., object]], Callable[..., object]]
) -> None:
    """Wrap the compiled loops that the driver calls."""
    for module, name in LOOPS:
        monkeypatch.setattr(module, name, wrapped(getattr(module, name)))


def data(n_objects: int = 12) -> NDArray[np.float64]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(n_objects, 2)) + 3.0 * rng.integers(0, 3, (n_objects, 1))


def run(**arguments: object) -> ew.Chains:
    """Four short chains, one after another unless told otherwise."""
    settings: dict[str, Any] = {"draws": 20, "burn_in": 5, "seed": 3, "n_jobs": 1, "progress": False}
    return ew.sample_chains(data(), **{**settings, **arguments})


def assert_same_trace(found: ew.Trace, expected: ew.Trace) -> None:
    """Every column and count is the same, bit for bit."""
    for name, values in expected.columns().items():
        np.testing.assert_array_equal(getattr(found, name), values, err_msg=name)
    assert list(found.move_counts) == list(expected.move_counts)
    for name, pair in expected.move_counts.items():
        np.testing.assert_array_equal(np.stack(found.move_counts[name]), np.stack(pair), err_msg=name)


def assert_same_draws(found: Iterable[ew.Trace], expected: Iterable[ew.Trace]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_same_trace(one, other)


def assert_beginning(found: ew.Chains, expected: ew.Chains) -> None:
    """Each chain holds the first draws of the expected one, and some chain holds draws."""
    assert sum(len(trace) for trace in found) > 0
    pairs = zip(found, expected, strict=True)
    assert_same_draws(found, [whole[: len(part)] for part, whole in pairs])
