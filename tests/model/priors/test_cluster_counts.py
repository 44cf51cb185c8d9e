"""Laws of the number and the sizes of clusters: against enumeration, exact numbers, limits and draws."""

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling.goodness import LEVEL, chi_square, explain

from ewens_widgets import ewens
from ewens_widgets.model.priors import DirichletMultinomial, Ewens
from ewens_widgets.model.priors.ewens import expected_growth, sample_partitions
from ewens_widgets.model.priors.partition_prior import total_variation
from ewens_widgets.partition import all_partitions, cluster_sizes

CONCENTRATIONS = [0.05, 0.7, 1.0, 6.0, 250.0]
LogPmf = Callable[[list[int]], float]


@cache
def partitions(n: int) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, all_partitions(n).tolist()))


def enumerated(n: int, log_pmf: LogPmf) -> tuple[np.ndarray, np.ndarray]:
    """Law of the number of clusters, and expected number of clusters of each size, by adding up all."""
    law, sizes = np.zeros(n + 1), np.zeros(n + 1)
    for labels in partitions(n):
        probability = math.exp(log_pmf(list(labels)))
        members = cluster_sizes(labels)
        law[members.size] += probability
        np.add.at(sizes, members, probability)
    return law, sizes


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("n", range(1, 8))
def test_laws_agree_with_enumeration(n: int, concentration: float) -> None:
    law, sizes = enumerated(n, lambda labels: ewens.log_pmf(labels, concentration))
    np.testing.assert_allclose(ewens.cluster_count_pmf(n, concentration), law, atol=1e-13)
    np.testing.assert_allclose(Ewens(concentration).expected_sizes(n), sizes, rtol=1e-11, atol=1e-14)
    assert expected_growth(n, concentration)[-1] == pytest.approx(law @ np.arange(n + 1), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_laws_of_finitely_many_components_agree_with_enumeration(n: int, n_components: int) -> None:
    for concentration in CONCENTRATIONS:
        law, sizes = enumerated(
            n,
            lambda labels, rate=concentration: ewens.dirichlet_multinomial_log_pmf(
                labels, rate, n_components
            ),
        )
        np.testing.assert_allclose(
            DirichletMultinomial(n_components, concentration).count_pmf(n), law, atol=1e-12
        )
        np.testing.assert_allclose(
            DirichletMultinomial(n_components, concentration).expected_sizes(n), sizes, atol=1e-11
        )


@pytest.mark.slow
def test_eight_objects_agree_with_enumeration_too() -> None:
    law, sizes = enumerated(8, lambda labels: ewens.log_pmf(labels, 1.3))
    np.testing.assert_allclose(ewens.cluster_count_pmf(8, 1.3), law, atol=1e-13)
    np.testing.assert_allclose(Ewens(1.3).expected_sizes(8), sizes, rtol=1e-11)
    finite, finite_sizes = enumerated(8, lambda labels: ewens.dirichlet_multinomial_log_pmf(labels, 1.3, 5))
    np.testing.assert_allclose(DirichletMultinomial(5, 1.3).count_pmf(8), finite, atol=1e-12)
    np.testing.assert_allclose(DirichletMultinomial(5, 1.3).expected_sizes(8), finite_sizes, atol=1e-11)


def stirling_row(n: int) -> list[int]:
    """Unsigned Stirling numbers of the first kind, in whole numbers."""
    row = [1]
    for m in range(n):
        row = [m * a + b for a, b in zip([*row, 0], [0, *row], strict=True)]
    return row


@pytest.mark.parametrize("concentration", [1, 10])
def test_a_thousand_objects_agree_with_exact_stirling_numbers(concentration: int) -> None:
    numbers = stirling_row(1000)
    total = math.prod(range(concentration, concentration + 1000))
    # Whole numbers of thousands of digits: divided as such, with 25 digits kept.
    exact = [int(number * concentration**k * 10**25 // total) / 1e25 for k, number in enumerate(numbers)]
    np.testing.assert_allclose(ewens.cluster_count_pmf(1000, concentration), exact, rtol=1e-9, atol=1e-24)


@given(st.integers(1, 300), st.floats(1e-3, 1e3), st.integers(1, 500))
def test_what_must_add_up_does(n: int, concentration: float, n_components: int) -> None:
    counts = np.arange(n + 1)
    law = DirichletMultinomial(n_components, concentration).count_pmf(n)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert not law[min(n, n_components) + 1 :].any()
    for prior in (Ewens(concentration), DirichletMultinomial(n_components, concentration)):
        sizes = prior.expected_sizes(n)
        assert sizes @ counts == pytest.approx(n, rel=1e-8)
    assert sizes.sum() == pytest.approx(law @ counts, rel=1e-8)


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
    growth = expected_growth(100_000, 2.0)
    assert growth[0] == 1.0
    # From 1 000 to 100 000 objects the number grows by λ log 100.
    assert growth[-1] - growth[999] == pytest.approx(2.0 * math.log(100.0), rel=1e-3)


def test_draws_follow_the_exact_laws() -> None:
    n, concentration, draws = 60, 2.5, 20_000
    labels = sample_partitions(n, concentration, draws, np.random.default_rng(1))
    counts = np.bincount(labels.max(axis=1) + 1, minlength=n + 1)
    expected = draws * ewens.cluster_count_pmf(n, concentration)
    assert chi_square(counts, expected).p_value > LEVEL, explain(range(n + 1), counts, expected)
    # Draws of another prior are found out.
    wrong = draws * ewens.cluster_count_pmf(n, 1.05 * concentration)
    assert chi_square(counts, wrong).p_value < LEVEL


def test_draws_of_five_objects_visit_all_partitions_as_often_as_they_should() -> None:
    labels = sample_partitions(5, 0.8, 30_000, np.random.default_rng(2))
    names = list(partitions(5))
    seen = dict.fromkeys(names, 0)
    for row in map(tuple, labels.tolist()):
        seen[row] += 1
    expected = [30_000 * math.exp(ewens.log_pmf(name, 0.8)) for name in names]
    fit = chi_square([seen[name] for name in names], expected)
    assert fit.p_value > LEVEL, explain(names, list(seen.values()), expected)
    sabotaged = [30_000 * math.exp(ewens.log_pmf(name, 0.9)) for name in names]
    assert chi_square([seen[name] for name in names], sabotaged).p_value < LEVEL


def test_wrong_arguments_are_named() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="number of objects must be at least 1"):
        Ewens(1.0).expected_sizes(0)
    with pytest.raises(ValueError, match="concentration must be positive"):
        DirichletMultinomial(2, 0.0)
    with pytest.raises(ValueError, match="number of components must be at least 1"):
        DirichletMultinomial(0, 1.0)
    with pytest.raises(TypeError, match="number of draws must be a whole number"):
        sample_partitions(5, 1.0, 2.5, rng)
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        total_variation([0.5, 0.5], [1.0, 0.0, 0.0])
