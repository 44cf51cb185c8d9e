"""The series of the finite mixture against exact fractions and decimals, from one object to a million."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ewens_widgets.model.priors import FiniteMixture, Geometric, Poisson

Chance = Callable[[int], Decimal]
DIGITS = 60


def geometric(probability: float) -> Chance:
    return lambda k: Decimal(probability) * (1 - Decimal(probability)) ** (k - 1)


def poisson(rate: float) -> Chance:
    return lambda k: (-Decimal(rate)).exp() * Decimal(rate) ** (k - 1) / math.factorial(k - 1)


def exact_weight(n: int, count: int, gamma: float, chance: Chance, terms: int) -> Decimal:
    """V_n(K), term by term with products of n factors, in 60 digits: slow, and nothing is subtracted."""
    total = Decimal(0)
    for k in range(count, count + terms):
        rising = Decimal(1)
        for i in range(n):
            rising *= Decimal(gamma) * k + i
        term = chance(k) * math.perm(k, count) / rising
        total += term
    assert term < total * Decimal("1e-18")  # the reference has terms enough
    return total


@pytest.mark.parametrize(
    ("gamma", "count", "chance"),
    [
        (1.0, Geometric(0.5), geometric(0.5)),
        (0.3, Geometric(0.1), geometric(0.1)),
        (0.01, Poisson(2.0), poisson(2.0)),
        (2.0, Poisson(9.0), poisson(9.0)),
        (1e-7, Geometric(0.5), geometric(0.5)),
    ],
)
@pytest.mark.parametrize(("n", "terms"), [(1, 400), (30, 700)])
def test_weights_and_steps_agree_with_decimals(
    gamma: float, count: Geometric | Poisson, chance: Chance, n: int, terms: int
) -> None:
    """Also K = n, where the terms fall no faster than p(k), and most of them are needed."""
    prior, most = FiniteMixture(gamma, count), min(n, 30)
    log_v, steps = prior.log_count_weights(n, most), prior.log_count_steps(n, most)
    with localcontext() as context:
        context.prec = DIGITS
        for k in {1, max(1, most - 1)}:
            weight = exact_weight(n, k, gamma, chance, terms)
            assert log_v[k] == pytest.approx(float(weight.ln()), rel=1e-12, abs=1e-11)
            if k < most:
                following = exact_weight(n, k + 1, gamma, chance, terms)
                assert steps[k] == pytest.approx(float((following / weight).ln()), abs=1e-11)


def exact_ratio(n: int, count: int, gamma: int, terms: int) -> Fraction:
    """V_n(K) (n−1)! under Geometric(1/2) for a whole γ, exactly, with products of γk factors instead of n."""
    total = Fraction(0)
    for k in range(count, count + terms):
        rising = Fraction(math.prod(range(n, n + gamma * k)), math.factorial(gamma * k - 1))
        total += Fraction(math.perm(k, count), 2**k) / rising
    return total


@pytest.mark.parametrize("gamma", [1, 3])
def test_a_million_objects_agree_with_fractions(gamma: int) -> None:
    n = 1_000_000
    prior = FiniteMixture(gamma, Geometric(0.5))
    log_v, steps = prior.log_count_weights(n, 200), prior.log_count_steps(n, 200)
    constant = math.fsum(np.log(np.arange(1.0, n)))
    for k in (1, 17, 199):
        weights = [exact_ratio(n, k + more, gamma, 40) for more in (0, 1)]
        assert log_v[k] == pytest.approx(_log(weights[0]) - constant, rel=1e-14)
        assert steps[k] == pytest.approx(_log(weights[1] / weights[0]), abs=5e-9)


def _log(value: Fraction) -> float:
    with localcontext() as context:
        context.prec = DIGITS
        return float((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def test_a_slightly_wrong_series_is_found_out() -> None:
    # A term left out, or a γ with an error in the eighth digit: what the tolerance is there to see.
    steps = FiniteMixture().log_count_steps(1_000_000, 18)
    weights = [exact_ratio(1_000_000, 17 + more, 1, 1) for more in (0, 1)]
    assert abs(steps[17] - _log(weights[1] / weights[0])) > 1e-7
    assert abs(steps[17] - FiniteMixture(1.0 + 1e-8).log_count_steps(1_000_000, 18)[17]) > 1e-8


@pytest.mark.parametrize("gamma", [1e-100, 1e-8, 0.5, 1e8, 1e100])
@pytest.mark.parametrize("count", [Geometric(0.5), Geometric(0.02), Poisson(1e-8), Poisson(100.0)])
def test_nothing_overflows(gamma: float, count: Geometric | Poisson) -> None:
    prior = FiniteMixture(gamma, count)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for n in (1, 2, 1000, 10**6):
            most = min(n, 5)
            log_v, steps = prior.log_count_weights(n, most), prior.log_count_steps(n, most)
            assert np.isfinite(log_v[1:]).all()
            assert np.isfinite(steps[1:]).all()
            np.testing.assert_allclose(np.diff(log_v)[1:], steps[1:], rtol=1e-8, atol=1e-8)
        assert 1.0 - 1e-9 <= prior.expected_clusters(1000) <= 1000.0


def test_the_number_of_components_has_the_laws_of_the_library_shifted() -> None:
    counts = np.arange(1, 30)
    expected = stats.geom.logpmf(counts, 0.3), stats.poisson.logpmf(counts - 1, 2.5)
    for prior, log_pmf in zip((Geometric(0.3), Poisson(2.5)), expected, strict=True):
        np.testing.assert_allclose(prior.log_pmf(counts), log_pmf, rtol=1e-12, atol=1e-14)
    assert Geometric(1.0).log_pmf(np.array([1, 2])).tolist() == [0.0, -math.inf]
    for prior, mean in ((Geometric(0.3), 1 / 0.3), (Poisson(2.5), 3.5)):
        likely = prior.likely(math.log(1e-17))
        assert math.fsum(np.exp(prior.log_pmf(likely))) == pytest.approx(1.0, abs=1e-14)
        draws = prior.sample(np.random.default_rng(0), 20_000)
        assert draws.min() == 1
        assert draws.mean() == pytest.approx(mean, abs=4.0 * draws.std() / math.sqrt(20_000))
    assert Geometric(1.0).likely(-50.0).tolist() == [1]


def test_every_component_is_occupied_in_the_end() -> None:
    prior = FiniteMixture(1.0, Poisson(4.0))
    assert prior.expected_clusters(10**9) == pytest.approx(5.0, rel=1e-6)
    pmf = prior.count_pmf(20_000, 25)
    np.testing.assert_allclose(pmf[1:], np.exp(prior.count.log_pmf(np.arange(1, 26))), atol=2e-3)
