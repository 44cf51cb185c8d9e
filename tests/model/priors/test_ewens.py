"""The Ewens prior against enumeration, seat by seat, in its limits, and by its samples."""

import math
from collections import Counter
from collections.abc import Callable
from random import Random

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ewens_widgets import ewens
from ewens_widgets.partition import all_partitions, canonical_labels

CONCENTRATIONS = [1e-6, 0.3, 1.0, 4.5, 1e6]
positive = st.floats(1e-3, 1e3)
label_lists = st.lists(st.integers(0, 5), min_size=1, max_size=10)
LogPmf = Callable[[list[int], float], float]


def total_probability(log_pmf: LogPmf, n: int, concentration: float) -> float:
    return math.fsum(math.exp(log_pmf(row, concentration)) for row in all_partitions(n).tolist())


@pytest.mark.parametrize("n", range(1, 8))
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_probabilities_sum_to_one_over_all_partitions(n: int, concentration: float) -> None:
    assert total_probability(ewens.log_pmf, n, concentration) == pytest.approx(1.0, abs=1e-12)


def test_a_wrong_pmf_does_not_sum_to_one() -> None:
    def wrong(labels: list[int], concentration: float) -> float:
        return ewens.log_pmf(labels, concentration) + math.log(len(set(labels)))

    assert abs(total_probability(wrong, 6, 1.0) - 1.0) > 0.1


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_probabilities_are_those_of_the_formula_with_factorials(concentration: float) -> None:
    for clusters in oracle.set_partitions(range(6)):
        expected = math.log(oracle.ewens_probability(clusters, concentration))
        assert ewens.log_pmf(oracle.labels_of(clusters), concentration) == pytest.approx(
            expected, rel=1e-12, abs=1e-12
        )


def seat(labels: np.ndarray, order: list[int], concentration: float) -> float:
    """Log probability of seating the objects in an order, each at its own cluster's table."""
    sizes: dict[int, int] = {}
    total = 0.0
    for item in order:
        chances = ewens.seating_probabilities(list(sizes.values()), concentration)
        assert math.fsum(chances) == pytest.approx(1.0, abs=1e-14)
        cluster = int(labels[item])
        place = list(sizes).index(cluster) if cluster in sizes else len(sizes)
        total += math.log(chances[place])
        sizes[cluster] = sizes.get(cluster, 0) + 1
    return total


@given(label_lists, positive, st.randoms(use_true_random=False))
def test_joint_is_the_product_of_seating_probabilities_in_any_order(
    labels: list[int], concentration: float, random: Random
) -> None:
    order = list(range(len(labels)))
    random.shuffle(order)
    product = seat(canonical_labels(labels), order, concentration)
    assert product == pytest.approx(ewens.log_pmf(labels, concentration), rel=1e-11, abs=1e-11)


@given(label_lists, positive, st.randoms(use_true_random=False))
def test_relabelling_and_permuting_change_nothing(
    labels: list[int], concentration: float, random: Random
) -> None:
    names = random.sample(range(-50, 50), 6)
    changed = [names[label] for label in labels]
    random.shuffle(changed)
    same = ewens.log_pmf(labels, concentration)
    assert ewens.log_pmf(changed, concentration) == pytest.approx(same, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_law_and_mean_of_the_number_of_clusters(n: int, concentration: float) -> None:
    expected = np.zeros(n + 1)
    for clusters in oracle.set_partitions(range(n)):
        expected[len(clusters)] += oracle.ewens_probability(clusters, concentration)
    pmf = ewens.cluster_count_pmf(n, concentration)
    assert pmf.shape == (n + 1,)
    np.testing.assert_allclose(pmf, expected, rtol=1e-12, atol=0.0)
    mean = ewens.expected_clusters(n, concentration)
    assert mean == pytest.approx(float(np.arange(n + 1) @ expected), rel=1e-12)


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


@pytest.mark.parametrize("n_components", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("concentration", [0.2, 1.0, 30.0])
def test_finite_dirichlet_multinomial_prior_sums_to_one(n_components: int, concentration: float) -> None:
    def log_pmf(labels: list[int], rate: float) -> float:
        return ewens.dirichlet_multinomial_log_pmf(labels, rate, n_components)

    for n in range(1, 7):
        assert total_probability(log_pmf, n, concentration) == pytest.approx(1.0, abs=1e-11)


def test_finite_prior_of_two_components_by_hand() -> None:
    # Weights (w, 1−w) uniform: three objects share a component with probability E[w³ + (1−w)³] = 1/2.
    assert math.exp(ewens.dirichlet_multinomial_log_pmf([0, 0, 0], 2.0, 2)) == pytest.approx(0.5, rel=1e-13)
    assert math.exp(ewens.dirichlet_multinomial_log_pmf([0, 1, 0], 2.0, 2)) == pytest.approx(1 / 6, rel=1e-13)
    assert ewens.dirichlet_multinomial_log_pmf([0, 1, 2], 2.0, 2) == -math.inf


@pytest.mark.parametrize("concentration", [0.3, 2.0])
def test_ewens_is_the_limit_of_the_finite_prior(concentration: float) -> None:
    labels = all_partitions(6).tolist()
    limit = np.array([ewens.log_pmf(row, concentration) for row in labels])

    def distance(n_components: int) -> float:
        values = [ewens.dirichlet_multinomial_log_pmf(row, concentration, n_components) for row in labels]
        return float(np.max(np.abs(values - limit)))

    distances = [distance(10**power) for power in (2, 4, 6, 8, 12)]
    # The gap closes like 1/k.
    assert distances[0] > 1e-3
    assert distances[1] == pytest.approx(distances[0] / 100, rel=0.2)
    assert distances[2] == pytest.approx(distances[0] / 1e4, rel=0.2)
    assert distances[4] < 1e-10


def frequencies_p_value(draw: Callable[[np.random.Generator], np.ndarray], concentration: float) -> float:
    """P-value of a chi-square test of 20 000 partitions of five objects against the prior."""
    rng = np.random.default_rng(20200710)
    n_draws = 20_000
    seen = Counter(tuple(draw(rng).tolist()) for _ in range(n_draws))
    partitions = [tuple(row) for row in all_partitions(5).tolist()]
    assert set(seen) <= set(partitions)
    observed = np.array([seen[row] for row in partitions])
    expected = n_draws * np.exp([ewens.log_pmf(row, concentration) for row in partitions])
    assert expected.min() > 5
    return float(stats.chisquare(observed, expected, sum_check=False).pvalue)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_samples_follow_the_prior(concentration: float) -> None:
    assert frequencies_p_value(lambda rng: ewens.sample(5, concentration, rng), concentration) > 1e-3


def test_samples_of_a_wrong_seating_rule_do_not() -> None:
    def even_seating(rng: np.random.Generator) -> np.ndarray:
        labels = np.zeros(5, dtype=np.intp)
        for seated in range(1, 5):
            n_clusters = int(labels[:seated].max()) + 1
            opens = rng.random() < 1.0 / (1.0 + seated)
            labels[seated] = n_clusters if opens else rng.integers(n_clusters)
        return labels

    assert frequencies_p_value(even_seating, 1.0) < 1e-9
    assert frequencies_p_value(lambda rng: ewens.sample(5, 1.1, rng), 1.0) < 1e-6


def test_samples_of_many_objects_have_the_expected_number_of_clusters() -> None:
    rng = np.random.default_rng(5)
    counts = np.array([ewens.sample(400, 3.0, rng).max() + 1 for _ in range(500)])
    pmf = ewens.cluster_count_pmf(400, 3.0)
    mean = ewens.expected_clusters(400, 3.0)
    error = math.sqrt(float((np.arange(401) - mean) ** 2 @ pmf) / counts.size)
    assert abs(counts.mean() - mean) < 4 * error


def test_a_sample_is_canonical_and_repeats_with_its_seed() -> None:
    first = ewens.sample(50, 2.0, np.random.default_rng(3))
    np.testing.assert_array_equal(first, canonical_labels(first))
    np.testing.assert_array_equal(first, ewens.sample(50, 2.0, np.random.default_rng(3)))
    assert first.tolist() != ewens.sample(50, 2.0, np.random.default_rng(4)).tolist()
    assert ewens.sample(1, 2.0, np.random.default_rng(0)).tolist() == [0]
    assert len(ewens.sample(7.0, 2.0, np.random.default_rng(0))) == 7
    assert ewens.sample(100, 1e-12, np.random.default_rng(0)).max() == 0
    assert ewens.sample(100, 1e12, np.random.default_rng(0)).max() == 99


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
