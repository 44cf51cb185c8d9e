"""The weights of the number of clusters, for a fixed concentration and for one that is integrated out."""

import math
from itertools import pairwise

import numpy as np
import oracle
import pytest
from scipy import integrate, stats

import ewens_widgets as ew
from ewens_widgets.model.priors.ewens import check_concentration
from ewens_widgets.model.priors.partition_prior import log_rising_factorial


def log_stirling(n: int) -> np.ndarray:
    """Logs of the numbers of permutations of n objects with K cycles, from whole numbers."""
    row = [1]
    for size in range(n):
        row = [a * size + b for a, b in zip([*row, 0], [0, *row], strict=True)]
    return np.array([-math.inf if value == 0 else _log(value) for value in row])


def _log(value: int) -> float:
    shift = max(value.bit_length() - 60, 0)
    return math.log(value >> shift) + shift * math.log(2)


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
    weights = ew.priors.Ewens(concentration).log_count_weights(6)
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
    weights = ew.priors.Ewens(prior).log_count_weights(n_objects)
    for count in {1, 2, n_objects // 2 + 1, n_objects}:
        assert weights[count] == pytest.approx(quadrature(n_objects, prior, count), rel=0, abs=1e-9)


def test_quadrature_would_notice_a_slightly_wrong_prior() -> None:
    weights = ew.priors.Ewens(ew.Gamma(2.001, 0.5)).log_count_weights(6)
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
    weights = ew.priors.Ewens(ew.Gamma(shape, rate)).log_count_weights(n_objects)
    assert np.all(np.isfinite(weights[1:]))
    assert log_total_probability(weights) == pytest.approx(0.0, abs=1e-8)


def test_integrated_probabilities_of_wrong_weights_do_not_sum_to_one() -> None:
    weights = ew.priors.Ewens(ew.Gamma(1.0, 1.0)).log_count_weights(10)
    assert abs(log_total_probability(weights + 0.01 * np.arange(11.0))) > 1e-3
    coarse = weights.copy()
    coarse[1] = np.logaddexp(coarse[1], coarse[1] - 10.0)
    assert abs(log_total_probability(coarse)) > 1e-7


def test_an_almost_certain_prior_is_a_fixed_concentration() -> None:
    for shape, tolerance in ((1e4, 0.03), (1e7, 3e-5)):
        certain = ew.priors.Ewens(ew.Gamma(shape, shape / 3.0)).log_count_weights(20)
        np.testing.assert_allclose(
            certain[1:], ew.priors.Ewens(3.0).log_count_weights(20)[1:], rtol=0, atol=tolerance
        )


def test_integrated_prior_is_a_mixture_of_fixed_ones() -> None:
    # An average over many draws of the concentration, with its Monte-Carlo error.
    rng = np.random.default_rng(8)
    values = rng.gamma(2.0, 1 / 1.5, size=4000)
    weights = ew.priors.Ewens(ew.Gamma(2.0, 1.5)).log_count_weights(5)
    for count in range(1, 6):
        fixed = np.exp([ew.priors.Ewens(float(value)).log_count_weights(5)[count] for value in values])
        assert abs(fixed.mean() - math.exp(weights[count])) < 4.5 * fixed.std() / math.sqrt(values.size)


def test_rising_factorial() -> None:
    assert float(log_rising_factorial(3.0, 4)) == pytest.approx(math.log(3 * 4 * 5 * 6), rel=1e-15)
    assert float(log_rising_factorial(3.0, 0)) == 0.0
    np.testing.assert_allclose(
        log_rising_factorial(np.array([1.0, 0.5]), 3), np.log([6.0, 1.875]), rtol=1e-14
    )
    assert float(log_rising_factorial(1e15, 3)) == pytest.approx(3 * math.log(1e15), abs=1e-13)


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
