"""The yardstick: how many logarithms a second a compiled loop takes on this machine."""

import math

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

COUNT = 1_000_000


def test_logarithms_a_second(benchmark: BenchmarkFixture) -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def sum_of_logarithms(count: int) -> float:
        total = 0.0
        for k in range(1, count + 1):
            total += math.log(k)
        return total

    assert sum_of_logarithms(COUNT) == pytest.approx(math.lgamma(COUNT + 1))
    benchmark(sum_of_logarithms, COUNT)
    if benchmark.stats is not None:  # None where benchmarks are switched off
        benchmark.extra_info["logarithms a second"] = COUNT / benchmark.stats.stats.min
