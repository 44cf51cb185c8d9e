"""The Ewens prior: in its limits, for many objects, and with a concentration that is integrated out.

What it shares with the other priors is in `test_priors`.
"""

import math
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
from ewens_widgets.model.priors import DirichletMultinomial, Ewens
from ewens_widgets.model.priors.ewens import check_concentration, expected_growth
from ewens_widgets.model.priors.partition_prior import log_rising_factorial, total_variation
from ewens_widgets.partition import canonical_labels


def _log(value: int) -> float:
    shift = max(value.bit_length() - 60, 0)
    return math.log(value >> shift) + shift * math.log(2)


def log_stirling(n: int) -> np.ndarray:
    """Logs of the numbers of permutations of n objects with K cycles, from whole numbers."""
    return np.array([-math.inf if value == 0 else _log(value) for value in stirling_row(n)])


def stirling_row(n: int) -> list[int]:
    """Unsigned Stirling numbers of the first kind, in whole numbers."""
    row = [1]
    for size in range(n):
        row = [a * size + b for a, b in zip([*row, 0], [0, *row], strict=True)]
    return row


def log_total_probability(weights: np.ndarray) -> float:
    """Log of the sum of p(B) over all partitions: exp(c_K) times the Stirling number, summed over K."""
    return float(np.logaddexp.reduce(weights + log_stirling(weights.size - 1)))


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
        assert ew.ewens.log_pmf(oracle.labels_of(clusters), concentration) == pytest.approx(
            expected, rel=1e-12, abs=1e-12
        )


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


@pytest.mark.parametrize("n_objects", [1, 2, 10, 178, 900])
@pytest.mark.parametrize(
    ("shape", "rate"),
    [
        (1.0, 1.0),
        (0.01, 0.01),
        (1e-4, 1.0),
        (1e-3, 1e8),
        (1e-3, 1e-8),
        (1e3, 1e3),
        (1e4, 1e-2),
        (1e4, 1e12),
        (1e6, 1e6),
    ],
)
def test_integrated_probabilities_sum_to_one(n_objects: int, shape: float, rate: float) -> None:
    if n_objects == 900 and shape != 1.0:
        n_objects = 60
    weights = Ewens(ew.Gamma(shape, rate)).log_count_weights(n_objects)
    assert np.all(np.isfinite(weights[1:]))
    assert log_total_probability(weights) == pytest.approx(0.0, abs=1e-8)


def test_integrated_probabilities_of_wrong_weights_do_not_sum_to_one() -> None:
    weights = Ewens(ew.Gamma(1.0, 1.0)).log_count_weights(10)
    assert abs(log_total_probability(weights + 0.01 * np.arange(11.0))) > 1e-3
    coarse = weights.copy()
    coarse[1] = np.logaddexp(coarse[1], coarse[1] - 10.0)
    assert abs(log_total_probability(coarse)) > 1e-7


def test_an_almost_certain_prior_is_a_fixed_concentration() -> None:
    for shape, tolerance in ((1e4, 0.03), (1e7, 3e-5)):
        certain = Ewens(ew.Gamma(shape, shape / 3.0)).log_count_weights(20)
        np.testing.assert_allclose(certain[1:], Ewens(3.0).log_count_weights(20)[1:], rtol=0, atol=tolerance)


def test_integrated_prior_is_a_mixture_of_fixed_ones() -> None:
    # An average over many draws of the concentration, with its Monte-Carlo error.
    rng = np.random.default_rng(8)
    values = rng.gamma(2.0, 1 / 1.5, size=4000)
    weights = Ewens(ew.Gamma(2.0, 1.5)).log_count_weights(5)
    for count in range(1, 6):
        fixed = np.exp([Ewens(float(value)).log_count_weights(5)[count] for value in values])
        assert abs(fixed.mean() - math.exp(weights[count])) < 4.5 * fixed.std() / math.sqrt(values.size)


def test_rising_factorial() -> None:
    assert float(log_rising_factorial(3.0, 4)) == pytest.approx(math.log(3 * 4 * 5 * 6), rel=1e-15)
    assert float(log_rising_factorial(3.0, 0)) == 0.0
    np.testing.assert_allclose(
        log_rising_factorial(np.array([1.0, 0.5]), 3), np.log([6.0, 1.875]), rtol=1e-14
    )
    assert float(log_rising_factorial(1e15, 3)) == pytest.approx(3 * math.log(1e15), abs=1e-13)


@pytest.mark.parametrize("count", [1001, 5000, 100_000])
def test_long_products(count: int) -> None:
    """From tiny factors, where the plain sum is exact enough, to huge ones, where log Gammas would cancel."""
    start = np.array([1e-300, 1e-3, 0.7, 1.0, 15.9, 16.0, 300.0, 1e6, 1e12, 1e300])
    expected = [math.fsum(np.log(value + np.arange(count))) for value in start]
    np.testing.assert_allclose(log_rising_factorial(start, count), expected, rtol=3e-15)
    naive = gammaln(1e12 + count) - gammaln(1e12)
    assert abs(naive - expected[8]) > 1e-5  # what the series is there to avoid


def test_the_first_weights_are_those_of_all() -> None:
    prior = ew.Gamma(2.0, 0.7)
    np.testing.assert_allclose(
        Ewens(prior).log_count_weights(300, 5),
        Ewens(prior).log_count_weights(300)[:6],
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        Ewens(2.0).log_count_weights(300, 5),
        Ewens(2.0).log_count_weights(300)[:6],
        rtol=1e-14,
    )


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


def test_law_of_the_number_of_clusters_for_many_objects() -> None:
    pmf = ewens.cluster_count_pmf(2000, 2.5)
    counts = np.arange(2001)
    assert math.fsum(pmf) == pytest.approx(1.0, abs=1e-12)
    mean = ewens.expected_clusters(2000, 2.5)
    assert counts @ pmf == pytest.approx(mean, rel=1e-12)
    # The number of clusters is a sum of independent coin tosses.
    chances = 2.5 / (2.5 + np.arange(2000))
    assert (counts - mean) ** 2 @ pmf == pytest.approx(float(np.sum(chances * (1 - chances))), rel=1e-10)
    assert mean == pytest.approx(2.5 * math.log(2000 / 2.5), rel=0.05)


@pytest.mark.parametrize("concentration", [1e-12, 1e12, 1e-300, 1e300])
def test_extreme_concentrations_keep_their_digits(concentration: float) -> None:
    # Two objects: together with probability 1/(1+λ), apart with λ/(1+λ).
    together = -math.log1p(concentration)
    assert ewens.log_pmf([0, 0], concentration) == pytest.approx(together, rel=1e-14)
    assert ewens.log_pmf([0, 1], concentration) == pytest.approx(
        math.log(concentration) + together, rel=1e-12, abs=1e-15
    )
    pmf = ewens.cluster_count_pmf(3, concentration)
    denominator = (1 + concentration) * (2 + concentration) if concentration < 1e100 else math.inf
    assert pmf[1] == pytest.approx(2 / denominator, rel=1e-14)
    assert ewens.expected_clusters(2, concentration) == pytest.approx(
        1 + concentration / (1 + concentration), rel=1e-15
    )


def test_sizes_decide_the_seating() -> None:
    np.testing.assert_allclose(ewens.seating_probabilities([3, 1], 1.0), [0.6, 0.2, 0.2], rtol=1e-15)
    np.testing.assert_array_equal(ewens.seating_probabilities([], 0.7), [1.0])
    with pytest.raises(ValueError, match="cluster sizes must be positive"):
        ewens.seating_probabilities([2, 0], 1.0)


def test_finite_prior_of_two_components_by_hand() -> None:
    # Weights (w, 1−w) uniform: three objects share a component with probability E[w³ + (1−w)³] = 1/2.
    assert math.exp(ewens.dirichlet_multinomial_log_pmf([0, 0, 0], 2.0, 2)) == pytest.approx(0.5, rel=1e-13)
    assert math.exp(ewens.dirichlet_multinomial_log_pmf([0, 1, 0], 2.0, 2)) == pytest.approx(1 / 6, rel=1e-13)
    assert ewens.dirichlet_multinomial_log_pmf([0, 1, 2], 2.0, 2) == -math.inf


def test_a_sample_is_canonical_and_repeats_with_its_seed() -> None:
    first = ewens.sample(50, 2.0, np.random.default_rng(3))
    np.testing.assert_array_equal(first, canonical_labels(first))
    np.testing.assert_array_equal(first, ewens.sample(50, 2.0, np.random.default_rng(3)))
    assert first.tolist() != ewens.sample(50, 2.0, np.random.default_rng(4)).tolist()
    assert ewens.sample(1, 2.0, np.random.default_rng(0)).tolist() == [0]
    assert len(ewens.sample(7.0, 2.0, np.random.default_rng(0))) == 7
    assert ewens.sample(100, 1e-12, np.random.default_rng(0)).max() == 0
    assert ewens.sample(100, 1e12, np.random.default_rng(0)).max() == 99


@pytest.mark.parametrize("concentration", [1, 10])
def test_a_thousand_objects_agree_with_exact_stirling_numbers(concentration: int) -> None:
    numbers = stirling_row(1000)
    total = math.prod(range(concentration, concentration + 1000))
    # Whole numbers of thousands of digits: divided as such, with 25 digits kept.
    exact = [int(number * concentration**k * 10**25 // total) / 1e25 for k, number in enumerate(numbers)]
    np.testing.assert_allclose(ewens.cluster_count_pmf(1000, concentration), exact, rtol=1e-9, atol=1e-24)


def test_finitely_many_components_tend_to_the_ewens_prior() -> None:
    exact = ewens.cluster_count_pmf(1000, 5.0)
    components = (10, 30, 100, 1_000, 100_000)
    distances = [total_variation(DirichletMultinomial(k, 5.0).count_pmf(1000), exact) for k in components]
    assert all(later < earlier for earlier, later in pairwise(distances))
    assert distances[0] > 0.9
    assert distances[-1] < 1e-3
    np.testing.assert_allclose(
        DirichletMultinomial(10**8, 5.0).expected_sizes(1000),
        Ewens(5.0).expected_sizes(1000),
        rtol=1e-5,
        atol=1e-12,
    )


def test_growth_is_logarithmic() -> None:
    for n in range(1, 8):
        assert expected_growth(n, 0.7)[-1] == pytest.approx(ewens.expected_clusters(n, 0.7), rel=1e-12)
    growth = expected_growth(100_000, 2.0)
    assert growth[0] == 1.0
    # From 1 000 to 100 000 objects the number grows by λ log 100.
    assert growth[-1] - growth[999] == pytest.approx(2.0 * math.log(100.0), rel=1e-3)


def test_gamma_prior() -> None:
    prior = ew.Gamma(shape=3, rate=2)
    assert prior == ew.Gamma(3.0, 2.0)
    assert isinstance(prior.shape, float)
    assert prior.mean == 1.5
    for value in (1e-5, 0.7, 40.0):
        assert prior.log_density(value) == pytest.approx(stats.gamma.logpdf(value, 3.0, scale=0.5), rel=1e-12)
    with pytest.raises(AttributeError):
        prior.shape = 1.0


@pytest.mark.parametrize("value", [0.0, -2.0, math.nan, math.inf, 10**400])
def test_parameters_that_are_not_positive_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="the shape of the Gamma prior must be positive and finite"):
        ew.Gamma(value, 1.0)
    with pytest.raises(ValueError, match="the rate of the Gamma prior must be positive and finite"):
        ew.Gamma(1.0, value)
    with pytest.raises(ValueError, match="concentration must be positive and finite"):
        check_concentration(value)


@pytest.mark.parametrize("value", ["1.0", None, [1.0, 2.0], (1.0, 2.0), 1j])
def test_parameters_of_the_wrong_kind_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="concentration must be a number; got"):
        check_concentration(value)
    with pytest.raises(TypeError, match="the shape of the Gamma prior must be a number; got"):
        ew.Gamma(value, 1.0)


@pytest.mark.parametrize(("shape", "rate"), [(1e-101, 1.0), (1.0, 1e-300), (1e300, 1.0), (1.0, 1e101)])
def test_priors_whose_draws_could_overflow_are_refused(shape: float, rate: float) -> None:
    with pytest.raises(ValueError, match=r"must lie between 1e-100 and 1e\+100"):
        ew.Gamma(shape, rate)


@pytest.mark.parametrize("concentration", [0, -1.0, math.nan, math.inf])
def test_a_concentration_that_is_not_positive_is_refused(concentration: float) -> None:
    rng = np.random.default_rng(0)
    calls: list[Callable[[], object]] = [
        lambda: ewens.log_pmf([0, 1], concentration),
        lambda: ewens.sample(3, concentration, rng),
        lambda: ewens.seating_probabilities([1], concentration),
        lambda: ewens.expected_clusters(3, concentration),
        lambda: ewens.cluster_count_pmf(3, concentration),
        lambda: ewens.dirichlet_multinomial_log_pmf([0, 1], concentration, 3),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=f"concentration must be positive and finite; got {concentration!r}"
        ):
            call()


@pytest.mark.parametrize("n", [0, -3, 2.5])
def test_a_number_of_objects_that_is_not_one_is_refused(n: int) -> None:
    for call in (ewens.expected_clusters, ewens.cluster_count_pmf):
        with pytest.raises(ValueError, match=f"whole number of at least 1; got {n!r}"):
            call(n, 1.0)
    with pytest.raises(ValueError, match=f"whole number of at least 1; got {n!r}"):
        ewens.sample(n, 1.0, np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=f"number of components must be a whole number of at least 1; got {n!r}"
    ):
        ewens.dirichlet_multinomial_log_pmf([0], 1.0, n)


def test_distances_of_unlike_lists_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        total_variation([0.5, 0.5], [1.0, 0.0, 0.0])
