"""The Ewens prior: in its limits, for many objects, and with a concentration that is integrated out.

What it shares with the other priors is in `test_priors`.
"""

import math
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import oracle
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

import ewens_widgets as ew
from ewens_widgets import ewens
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import Ewens
from ewens_widgets.model.priors.ewens import check_concentration
from ewens_widgets.model.priors.partition_prior import log_rising_factorial, total_variation


def stirling_row(n: int) -> list[int]:
    """Unsigned Stirling numbers of the first kind, in whole numbers."""
    row = [1]
    for size in range(n):
        row = [a * size + b for a, b in zip([*row, 0], [0, *row], strict=True)]
    return row


def quadrature(n_objects: int, prior: ew.Gamma, count: int) -> float:
    """Log of c_K by SciPy's adaptive integration over log λ, in pieces around the peak."""

    def log_integrand(t: float) -> float:
        value = math.exp(t)
        rising = math.fsum(math.log1p(value / seated) for seated in range(1, n_objects)) + math.lgamma(
            n_objects
        )
        density = prior.shape * math.log(prior.rate) - math.lgamma(prior.shape)
        return density + (prior.shape + count - 1) * t - prior.rate * value - rising

    grid = np.linspace(
        -80 / min(prior.shape + count - 1, 1), math.log((n_objects + prior.shape) / prior.rate) + 5, 4001
    )
    values = np.array([log_integrand(float(t)) for t in grid])
    peak = values.max()
    above = grid[values > peak - 60]
    edges = np.linspace(above[0] - 0.1, above[-1] + 0.1, 13)
    pieces = [
        integrate.quad(lambda t: math.exp(log_integrand(t) - peak), *edge, epsabs=0, epsrel=1e-11, limit=200)[
            0
        ]
        for edge in pairwise(edges)
    ]
    return float(peak + math.log(math.fsum(pieces)))


@pytest.mark.parametrize("concentration", [1e-9, 0.4, 1.0, 7.0, 1e9])
def test_weights_of_a_fixed_concentration(concentration: float) -> None:
    weights = Ewens(concentration).log_count_weights(6)
    assert weights.shape == (7,)
    assert weights[0] == -math.inf
    for clusters in oracle.set_partitions(range(6)):
        log_sizes = math.fsum(math.lgamma(len(cluster)) for cluster in clusters)
        expected = math.log(oracle.ewens_probability(clusters, concentration))
        assert weights[len(clusters)] + log_sizes == pytest.approx(expected, rel=1e-12, abs=1e-12)
        found = ew.ewens.log_pmf(oracle.labels_of(clusters), concentration)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("n_objects", "shape", "rate"),
    [
        (2, 1.0, 1.0),
        (6, 2.0, 0.5),
        (6, 0.01, 0.01),
        (40, 2.0, 4.0),
        (40, 0.3, 30.0),
        (12, 50.0, 5.0),
        (12, 3.0, 1e-4),
    ],
)
def test_integrated_weights_agree_with_quadrature(n_objects: int, shape: float, rate: float) -> None:
    prior = ew.Gamma(shape, rate)
    weights = Ewens(prior).log_count_weights(n_objects)
    for count in {1, 2, n_objects // 2 + 1, n_objects}:
        assert weights[count] == pytest.approx(quadrature(n_objects, prior, count), rel=0, abs=1e-9)


def test_quadrature_would_notice_a_slightly_wrong_prior() -> None:
    weights = Ewens(ew.Gamma(2.001, 0.5)).log_count_weights(6)
    assert abs(weights[3] - quadrature(6, ew.Gamma(2.0, 0.5), 3)) > 1e-6


@pytest.mark.parametrize(
    ("n_objects", "shape", "rate"),
    [
        *((n_objects, 1.0, 1.0) for n_objects in (1, 2, 10, 178, 900)),
        *((60, shape, rate) for shape, rate in ((0.01, 0.01), (1e-4, 1.0), (1e-3, 1e8), (1e-3, 1e-8))),
        *((60, shape, rate) for shape, rate in ((1e3, 1e3), (1e4, 1e-2), (1e4, 1e12), (1e6, 1e6))),
    ],
)
def test_integrated_probabilities_sum_to_one(n_objects: int, shape: float, rate: float) -> None:
    prior = Ewens(ew.Gamma(shape, rate))
    assert np.all(np.isfinite(prior.log_count_weights(n_objects)[1:]))
    assert math.fsum(prior.count_pmf(n_objects)) == pytest.approx(1.0, abs=1e-8)


def test_an_almost_certain_prior_is_a_fixed_concentration() -> None:
    for shape, tolerance in ((1e4, 0.03), (1e7, 3e-5), (9e9, 1e-4), (1e12, 1e-12), (1e100, 1e-12)):
        certain = Ewens(ew.Gamma(shape, shape / 3.0)).log_count_weights(20)
        np.testing.assert_allclose(certain[1:], Ewens(3.0).log_count_weights(20)[1:], rtol=0, atol=tolerance)


@pytest.mark.parametrize(("shape", "rate"), [(9e9, 1e-90), (1e14, 1e-10), (1e3, 1e-100), (7.0, 1e-100)])
def test_a_narrow_prior_far_from_one_takes_little_memory(shape: float, rate: float) -> None:
    """The peaks of the integrand are narrow, and lie close together where the shape exceeds n."""
    tracemalloc.start()
    try:
        prior = Ewens(ew.Gamma(shape, rate))
        assert np.all(np.isfinite(prior.log_count_weights(8)[1:]))
        assert 1.0 <= prior.expected_clusters(8) <= 8.0 + 1e-3
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [0, 3, 1001, 100_000])
def test_rising_factorials(count: int) -> None:
    """From tiny factors to huge ones, where a difference of log Gammas would cancel."""
    start = np.array([1e-300, 1e-3, 0.7, 1.0, 16.0, 300.0, 1e6, 1e12, 1e300])
    expected = [math.fsum(np.log(value + np.arange(count))) for value in start]
    np.testing.assert_allclose(log_rising_factorial(start, count), expected, rtol=2e-11)
    found = [float(log_rising_factorial(float(value), count)) for value in start]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    naive = gammaln(1e12 + count) - gammaln(1e12)
    assert (abs(naive - expected[7]) > 1e-5) == (count > 0)


def test_a_gamma_prior_of_many_objects_computes_only_what_is_asked_for() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 1))
    posterior = Posterior.from_data(X, concentration=ew.Gamma(1.0, 1.0))
    labels = np.arange(3000) % 4
    value = posterior.log_prior(labels)
    assert "log_count_weights" not in posterior.__dict__
    assert posterior.__dict__["_first_count_weights"].size < 20
    expected = Ewens(ew.Gamma(1.0, 1.0)).log_count_weights(3000, 4)[4] + 4 * gammaln(750)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(posterior.count_weights(2), posterior.count_weights(30)[:3])


@pytest.mark.parametrize("concentration", [1e-12, 1e12, 1e-300, 1e300])
def test_extreme_concentrations_keep_their_digits(concentration: float) -> None:
    # Two objects: together with probability 1/(1+λ), apart with λ/(1+λ).
    together = -math.log1p(concentration)
    assert ewens.log_pmf([0, 0], concentration) == pytest.approx(together, rel=1e-14)
    apart = math.log(concentration) + together
    assert ewens.log_pmf([0, 1], concentration) == pytest.approx(apart, rel=1e-12, abs=1e-15)
    pmf = ewens.cluster_count_pmf(3, concentration)
    denominator = (1 + concentration) * (2 + concentration) if concentration < 1e100 else math.inf
    assert pmf[1] == pytest.approx(2 / denominator, rel=1e-14)
    mean = 1 + concentration / (1 + concentration)
    assert ewens.expected_clusters(2, concentration) == pytest.approx(mean, rel=1e-15)


def test_the_functions_are_the_methods_of_the_prior() -> None:
    assert ewens.log_pmf([0, 0, 1], 0.7) == Ewens(0.7).log_pmf([0, 0, 1])
    np.testing.assert_allclose(ewens.seating_probabilities([3, 1], 1.0), [0.6, 0.2, 0.2], rtol=1e-15)
    np.testing.assert_array_equal(ewens.seating_probabilities([], 0.7), [1.0])
    first, again, other = (ewens.sample(50, 2.0, np.random.default_rng(seed)).tolist() for seed in (3, 3, 4))
    assert first == again != other
    assert ewens.sample(100, 1e-12, np.random.default_rng(0)).max() == 0
    assert ewens.sample(100, 1e12, np.random.default_rng(0)).max() == 99


def test_a_thousand_objects_agree_with_exact_stirling_numbers() -> None:
    numbers, total = stirling_row(1000), math.prod(range(3, 1003))
    # Whole numbers of thousands of digits: divided as such, with 25 digits kept.
    exact = [int(number * 3**k * 10**25 // total) / 1e25 for k, number in enumerate(numbers)]
    np.testing.assert_allclose(ewens.cluster_count_pmf(1000, 3.0), exact, rtol=1e-9, atol=1e-24)


def test_gamma_prior() -> None:
    prior = ew.Gamma(shape=3, rate=2)
    assert prior == ew.Gamma(3.0, 2.0)
    assert isinstance(prior.shape, float)
    assert prior.mean == 1.5
    for value in (1e-5, 0.7, 40.0):
        assert prior.log_density(value) == pytest.approx(stats.gamma.logpdf(value, 3.0, scale=0.5), rel=1e-12)
    with pytest.raises(AttributeError):
        prior.shape = 1.0


@pytest.mark.parametrize(
    ("value", "error", "what"),
    [
        *((value, ValueError, "positive and finite") for value in (0.0, -2.0, math.nan, math.inf, 10**400)),
        *((value, TypeError, "a number; got") for value in ("1.0", None, [1.0, 2.0], (1.0, 2.0), 1j)),
    ],
)
def test_what_is_no_parameter_is_refused(value: object, error: type[Exception], what: str) -> None:
    rng = np.random.default_rng(0)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("the shape of the Gamma prior", lambda: ew.Gamma(value, 1.0)),
        ("the rate of the Gamma prior", lambda: ew.Gamma(1.0, value)),
        ("concentration", lambda: check_concentration(value)),
        ("concentration", lambda: ewens.log_pmf([0, 1], value)),
        ("concentration", lambda: ewens.sample(3, value, rng)),
        ("concentration", lambda: ewens.seating_probabilities([1], value)),
        ("concentration", lambda: ewens.expected_clusters(3, value)),
        ("concentration", lambda: ewens.cluster_count_pmf(3, value)),
    ]
    for name, call in calls:
        with pytest.raises(error, match=f"{name} must be {what}"):
            call()


@pytest.mark.parametrize(("shape", "rate"), [(1e-101, 1.0), (1.0, 1e-300), (1e300, 1.0), (1.0, 1e101)])
def test_priors_whose_draws_could_overflow_are_refused(shape: float, rate: float) -> None:
    with pytest.raises(ValueError, match=r"must lie between 1e-100 and 1e\+100"):
        ew.Gamma(shape, rate)


def test_distances_of_unlike_lists_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        total_variation([0.5, 0.5], [1.0, 0.0, 0.0])
