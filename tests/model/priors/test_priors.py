"""The contract of all priors on partitions: by enumeration, seat by seat, in their limits, by their draws."""

import math
import pickle
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling.goodness import LEVEL, Fit, chi_square

import ewens_widgets as ew
from ewens_widgets.model.priors import (
    CountPrior,
    DirichletMultinomial,
    Ewens,
    FiniteMixture,
    Geometric,
    PartitionPrior,
    PitmanYor,
    Poisson,
)
from ewens_widgets.partition import all_partitions, canonical_labels, cluster_sizes

PRIORS = [
    Ewens(1.3),
    Ewens(0.05),
    Ewens(ew.Gamma(2.0, 1.5)),
    Ewens(ew.Gamma(0.3, 0.1)),
    DirichletMultinomial(1, 0.7),
    DirichletMultinomial(3, 2.0),
    DirichletMultinomial(40, 6.0),
    FiniteMixture(),
    FiniteMixture(0.4, Poisson(3.0)),
    FiniteMixture(5.0, Geometric(0.1)),
    FiniteMixture(1.0, Geometric(1.0)),
    PitmanYor(1.0, 0.5),
    PitmanYor(-0.2, 0.3),
    PitmanYor(4.0, 0.9),
]
every_prior = pytest.mark.parametrize("prior", PRIORS, ids=str)

parameters = st.floats(0.02, 50.0)
any_count = st.one_of(st.floats(0.02, 1.0).map(Geometric), st.floats(0.05, 20.0).map(Poisson))
discounts = st.floats(0.0, 0.98)
any_prior = st.one_of(
    parameters.map(Ewens),
    st.builds(ew.Gamma, parameters, parameters).map(Ewens),
    st.builds(DirichletMultinomial, st.integers(1, 30), parameters),
    st.builds(FiniteMixture, st.floats(0.05, 20.0), any_count),
    discounts.flatmap(
        lambda sigma: st.floats(0.01, 20.0).map(lambda excess: PitmanYor(excess - sigma, sigma))
    ),
)
label_lists = st.lists(st.integers(0, 5), min_size=1, max_size=8)


class Only(CountPrior):
    """The number of components is known after all."""

    def __init__(self, k: int) -> None:
        self.k = k

    @property
    def largest(self) -> float:
        return self.k

    def log_pmf(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.where(counts == self.k, 0.0, -np.inf)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        del rng
        return np.full((), self.k) if size is None else np.full(size, self.k)


@cache
def partitions(n: int) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, all_partitions(n).tolist()))


@cache
def all_sizes(n: int) -> tuple[NDArray[np.intp], ...]:
    return tuple(cluster_sizes(labels) for labels in partitions(n))


def probabilities(prior: PartitionPrior, n: int) -> NDArray[np.float64]:
    """Probabilities of all partitions, from the two tables alone, a table look-up for each cluster."""
    log_v, log_w = prior.log_count_weights(n), prior.log_size_weights(n)
    return np.exp([log_v[members.size] + log_w[members].sum() for members in all_sizes(n)])


# Enumeration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [*PRIORS, Ewens(1e-6), Ewens(1e6)], ids=str)
def test_probabilities_sum_to_one_and_are_those_of_the_tables(prior: PartitionPrior) -> None:
    for n in range(1, 7):
        by_tables = probabilities(prior, n)
        by_pmf = np.exp([prior.log_pmf(labels) for labels in partitions(n)])
        np.testing.assert_allclose(by_pmf, by_tables, rtol=1e-12, atol=0.0)
        assert math.fsum(by_pmf) == pytest.approx(1.0, abs=1e-12)


@every_prior
def test_law_and_mean_of_the_number_of_clusters(prior: PartitionPrior) -> None:
    for n in (1, 2, 3, 4, 5, 6, 8):
        counts = [max(labels) + 1 for labels in partitions(n)]
        law = np.bincount(counts, weights=probabilities(prior, n), minlength=n + 1)
        np.testing.assert_allclose(prior.count_pmf(n), law, rtol=1e-11, atol=1e-300)
        assert prior.expected_clusters(n) == pytest.approx(float(law @ np.arange(n + 1)), rel=1e-12)


@given(any_prior)
def test_any_prior_adds_up(prior: PartitionPrior) -> None:
    assert math.fsum(probabilities(prior, 5)) == pytest.approx(1.0, abs=1e-11)
    assert math.fsum(prior.count_pmf(40)) == pytest.approx(1.0, abs=1e-10)
    assert prior.count_pmf(40) @ np.arange(41) == pytest.approx(prior.expected_clusters(40), rel=1e-10)
    sizes = prior.expected_sizes(40)
    assert sizes @ np.arange(41) == pytest.approx(40.0, rel=1e-8)
    assert sizes.sum() == pytest.approx(prior.expected_clusters(40), rel=1e-8)
    assert np.all(prior.expected_sizes(40, most=9) <= sizes * (1.0 + 1e-12))


# Seats ---------------------------------------------------------------------------------------------


def seat(prior: PartitionPrior, labels: Sequence[int], order: Sequence[int]) -> float:
    """Log probability of seating the objects in an order, each in its own cluster."""
    sizes: dict[int, int] = {}
    total = 0.0
    for item in order:
        chances = prior.seating_probabilities(list(sizes.values()))
        assert math.fsum(chances) == pytest.approx(1.0, abs=1e-14)
        place = list(sizes).index(labels[item]) if labels[item] in sizes else len(sizes)
        if chances[place] == 0.0:
            return -math.inf
        total += math.log(chances[place])
        sizes[labels[item]] = sizes.get(labels[item], 0) + 1
    return total


@given(any_prior, label_lists, st.randoms(use_true_random=False))
def test_joint_is_the_product_of_seating_probabilities_in_any_order(
    prior: PartitionPrior, labels: list[int], random: Random
) -> None:
    order = random.sample(range(len(labels)), len(labels))
    assert seat(prior, labels, order) == pytest.approx(prior.log_pmf(labels), rel=1e-11, abs=1e-11)
    # Names and the order of the objects do not matter.
    names = random.sample(range(-50, 50), 6)
    changed = [names[labels[item]] for item in order]
    assert prior.log_pmf(changed) == pytest.approx(prior.log_pmf(labels), rel=1e-13, abs=1e-13)


@every_prior
def test_steps_are_the_differences_of_the_weights(prior: PartitionPrior) -> None:
    for n in (1, 2, 30):
        log_v, log_w = prior.log_count_weights(n), prior.log_size_weights(n)
        assert log_v.shape == log_w.shape == (n + 1,)
        steps, size_steps = prior.log_count_steps(n), prior.log_size_steps(n)
        assert steps.shape == size_steps.shape == (n,)
        assert (log_v[0], log_w[0], steps[0]) == (-math.inf, 0.0, math.inf)
        np.testing.assert_allclose(np.diff(log_w), size_steps, rtol=1e-11, atol=1e-13)
        possible = np.isfinite(log_v[1:])
        assert np.all(steps[1:][~possible[1:]] == -math.inf)
        found, expected = np.diff(log_v[1:][possible]), steps[1:][possible[1:]]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@every_prior
def test_tables_may_end_early(prior: PartitionPrior) -> None:
    for table in (prior.log_count_weights, prior.count_pmf):
        np.testing.assert_allclose(table(50, 7), table(50)[:8], rtol=1e-12, atol=0.0)
    np.testing.assert_allclose(prior.log_count_steps(50, 7), prior.log_count_steps(50)[:7], rtol=1e-12)


# Limits --------------------------------------------------------------------------------------------


def distance(one: PartitionPrior, other: PartitionPrior, n: int = 6) -> float:
    return 0.5 * float(np.abs(probabilities(one, n) - probabilities(other, n)).sum())


@settings(max_examples=30)
@given(parameters)
def test_a_discount_of_zero_is_the_ewens_prior(concentration: float) -> None:
    one, other = PitmanYor(concentration, 0.0), Ewens(concentration)
    assert distance(one, other) < 1e-13
    np.testing.assert_array_equal(one.count_pmf(30), other.count_pmf(30))
    assert one.expected_clusters(30) == other.expected_clusters(30)
    draws = [prior.sample(30, np.random.default_rng(1)).tolist() for prior in (one, other)]
    assert draws[0] == draws[1]


@settings(max_examples=30)
@given(parameters)
def test_many_components_are_the_ewens_prior(concentration: float) -> None:
    gaps = [
        distance(DirichletMultinomial(10**power, concentration), Ewens(concentration)) for power in (4, 6)
    ]
    assert gaps[1] < 1e-3
    assert gaps[1] == pytest.approx(gaps[0] / 100, rel=0.2, abs=1e-12)  # the gap closes like 1/k
    assert distance(DirichletMultinomial(2**53, concentration), Ewens(concentration)) < 1e-12


@settings(max_examples=30)
@given(st.integers(1, 12), st.floats(0.05, 20.0))
def test_a_known_number_of_components_is_the_dirichlet_multinomial_prior(k: int, gamma: float) -> None:
    mixture, fixed = FiniteMixture(gamma, Only(k)), DirichletMultinomial(k, gamma * k)
    assert distance(mixture, fixed) < 1e-12
    np.testing.assert_allclose(mixture.count_pmf(20), fixed.count_pmf(20), rtol=1e-10, atol=1e-300)
    assert mixture.expected_clusters(20) == pytest.approx(fixed.expected_clusters(20), rel=1e-12)
    expected, steps = fixed.log_count_weights(300, 15), fixed.log_count_steps(300, 15)
    np.testing.assert_allclose(mixture.log_count_weights(300, 15), expected, rtol=1e-13)
    np.testing.assert_allclose(mixture.log_count_steps(300, 15), steps, rtol=1e-12, atol=1e-12)
    far, expected = FiniteMixture(0.7, Only(1000)), DirichletMultinomial(1000, 700.0).log_count_weights(50)
    np.testing.assert_allclose(far.log_count_weights(50), expected, rtol=1e-12, atol=1e-12)


def test_how_the_number_of_clusters_grows() -> None:
    sizes = (10**3, 10**6)
    ewens, finite = ([prior.expected_clusters(n) for n in sizes] for prior in (Ewens(1.0), FiniteMixture()))
    assert ewens[1] - ewens[0] == pytest.approx(math.log(1000.0), rel=1e-3)
    assert finite[0] < finite[1] < 2.0  # the mean number of components
    assert finite[1] - finite[0] < 0.01
    many = [PitmanYor(1.0, 0.5).expected_clusters(n) for n in sizes]
    assert many[1] / many[0] == pytest.approx(1000.0**0.5, rel=0.03)


@every_prior
@pytest.mark.parametrize("n", [1, 2, 7])
def test_expected_numbers_of_clusters_of_each_size(prior: PartitionPrior, n: int) -> None:
    expected = np.zeros(n + 1)
    for labels, chance in zip(partitions(n), probabilities(prior, n), strict=True):
        np.add.at(expected, cluster_sizes(labels), chance)
    np.testing.assert_allclose(prior.expected_sizes(n), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("prior", [prior for prior in PRIORS if prior.most_clusters >= 2], ids=str)
def test_weights_of_seats_are_those_of_the_formula(prior: PartitionPrior) -> None:
    weights = prior.seating_weights([3, 1])
    np.testing.assert_allclose(weights[:2], np.array([3.0, 1.0]) - prior._discount)
    np.testing.assert_allclose(weights / weights.sum(), prior.seating_probabilities([3, 1]))
    log_weights = prior.log_count_weights(5)
    opening = np.exp(log_weights[3] - log_weights[2] + prior.log_size_weights(1)[1])
    assert weights[2] == pytest.approx(opening, rel=1e-9, abs=1e-300)
    rule = prior._rule
    expected = 1.0 if rule is None or rule.concentration <= 0.0 else rule.concentration
    assert prior.seating_weights([]).tolist() == [pytest.approx(expected)]


# Draws ---------------------------------------------------------------------------------------------


def fit_of_draws(drawn: PartitionPrior, believed: PartitionPrior, draws: int = 20_000) -> Fit:
    """How well draws of five objects fit a prior, partition by partition."""
    seen = dict.fromkeys(partitions(5), 0)
    for row in drawn.sample_partitions(5, draws, np.random.default_rng(20181)).tolist():
        seen[tuple(row)] += 1
    return chi_square(list(seen.values()), draws * probabilities(believed, 5))


@every_prior
def test_draws_follow_the_prior(prior: PartitionPrior) -> None:
    fit = fit_of_draws(prior, prior)
    assert fit.p_value > LEVEL, fit


@pytest.mark.parametrize(
    ("prior", "believed"),
    [(Ewens(1.3), Ewens(1.5)), (PitmanYor(1.0, 0.5), PitmanYor(1.0, 0.45))],
    ids=str,
)
def test_draws_of_another_prior_are_found_out(prior: PartitionPrior, believed: PartitionPrior) -> None:
    assert fit_of_draws(prior, believed).p_value < LEVEL


@every_prior
def test_draws_of_many_objects_are_canonical_and_have_the_right_number_of_clusters(
    prior: PartitionPrior,
) -> None:
    labels = prior.sample_partitions(60, 4000, np.random.default_rng(3))
    counts = np.bincount(labels.max(axis=1) + 1, minlength=61)
    assert chi_square(counts, 4000 * prior.count_pmf(60)).p_value > LEVEL
    for row in (*labels[:5], prior.sample(120, np.random.default_rng(0))):
        np.testing.assert_array_equal(row, canonical_labels(row))
    assert prior.sample(1, np.random.default_rng(0)).tolist() == [0]
    assert prior.sample_partitions(1, 3, np.random.default_rng(0)).tolist() == [[0]] * 3


def test_no_more_clusters_than_components() -> None:
    labels = DirichletMultinomial(3, 1e9).sample_partitions(200, 200, np.random.default_rng(0))
    assert labels.max() == 2
    assert FiniteMixture(50.0, Only(4)).sample(500, np.random.default_rng(0)).max() == 3


def test_the_functions_draw_what_they_always_drew() -> None:
    """The rule of `ew.ewens.sample` written out: chains that start from the prior depend on every draw."""
    labels, rng, n_clusters = [0], np.random.default_rng(11), 1
    for seated in range(1, 300):
        place = rng.random() * (seated + 2.5)
        labels.append(labels[int(place)] if place < seated else n_clusters)
        n_clusters += place >= seated
    assert ew.ewens.sample(300, 2.5, np.random.default_rng(11)).tolist() == labels
    prior, twin = np.random.default_rng(4), np.random.default_rng(4)
    drawn = Ewens(ew.Gamma(2.0, 0.5)).sample(50, prior)
    np.testing.assert_array_equal(drawn, ew.ewens.sample(50, twin.gamma(2.0, 2.0), twin))


# Values and errors ---------------------------------------------------------------------------------


@every_prior
def test_priors_are_values(prior: PartitionPrior) -> None:
    assert eval(repr(prior), vars(ew.priors) | {"Gamma": ew.Gamma}) == prior  # noqa: S307 - our own text
    assert pickle.loads(pickle.dumps(prior)) == prior  # noqa: S301 - our own bytes
    assert hash(prior) == hash(pickle.loads(pickle.dumps(prior)))  # noqa: S301 - the same
    assert len({prior, *PRIORS}) == len(PRIORS)
    assert repr(FiniteMixture()) == "FiniteMixture(gamma=1.0, count=Geometric(probability=0.6))"
    with pytest.raises(AttributeError):
        prior.concentration = 2.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Ewens(0.0), ValueError, "concentration must be positive and finite; got 0.0"),
        (lambda: Ewens("1"), TypeError, "concentration must be a number; got '1'"),
        (lambda: DirichletMultinomial(0, 1.0), ValueError, "number of components must be at least 1; got 0"),
        (lambda: DirichletMultinomial(2.5, 1.0), TypeError, "components must be a whole number; got 2.5"),
        (lambda: DirichletMultinomial(2**54, 1.0), ValueError, r"must not exceed 2\*\*53.*use Ewens"),
        (lambda: DirichletMultinomial(3, math.inf), ValueError, "concentration must be positive and finite"),
        (lambda: FiniteMixture(0.0), ValueError, "gamma must be positive and finite; got 0.0"),
        (lambda: FiniteMixture(1e308), ValueError, r"gamma must lie between 1e-100 and 1e\+100; got 1e\+308"),
        (lambda: FiniteMixture(1.0, 0.5), TypeError, r"such as Geometric\(0.5\) or Poisson\(3.0\); got 0.5"),
        (lambda: Geometric(0.0), ValueError, "probability of the geometric prior must be positive"),
        (lambda: Geometric(1.5), ValueError, "must lie between 0.001 and 1; got 1.5"),
        (lambda: Geometric(1e-6), ValueError, "must lie between 0.001 and 1; got 1e-06"),
        (lambda: Poisson(-1.0), ValueError, "rate of the Poisson prior must be positive and finite"),
        (lambda: Poisson(1e6), ValueError, "rate of the Poisson prior must not exceed 1000; got 1000000.0"),
        (lambda: PitmanYor(1.0, 1.0), ValueError, "discount must be at least 0 and less than 1; got 1.0"),
        (lambda: PitmanYor(1.0, -0.5), ValueError, "got -0.5. For finitely many .*DirichletMultinomial"),
        (lambda: PitmanYor(1.0, math.nan), ValueError, "at least 0 and less than 1; got nan"),
        (lambda: PitmanYor(-0.5, 0.5), ValueError, "larger than minus the discount, -0.5; got -0.5"),
        (lambda: PitmanYor(math.inf, 0.5), ValueError, "concentration must be finite and larger"),
        (lambda: PitmanYor("1", 0.5), TypeError, "concentration must be a number; got '1'"),
        (lambda: PitmanYor(1.0, True), TypeError, "discount must be a number; got True"),
    ],
)
def test_parameters_that_make_no_prior_are_refused(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


@every_prior
def test_wrong_arguments_are_named(prior: PartitionPrior) -> None:
    rng = np.random.default_rng(0)
    calls: list[Callable[[int], object]] = [
        prior.count_pmf,
        prior.expected_clusters,
        prior.log_count_weights,
        prior.log_count_steps,
        prior.log_size_weights,
        prior.log_size_steps,
        prior.expected_sizes,
        lambda n: prior.sample(n, rng),
        lambda n: prior.sample_partitions(n, 2, rng),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="number of objects must be at least 1; got 0"):
            call(0)
        with pytest.raises(TypeError, match=r"number of objects must be a whole number; got 2\.5"):
            call(2.5)
    with pytest.raises(ValueError, match="5 objects have at most 5 clusters; got most=6"):
        prior.log_count_weights(5, 6)
    with pytest.raises(ValueError, match="largest number of clusters must be at least 1; got 0"):
        prior.count_pmf(5, 0)
    with pytest.raises(ValueError, match="number of draws must be at least 1; got 0"):
        prior.sample_partitions(5, 0, rng)
    with pytest.raises(TypeError, match="number of draws must be a whole number"):
        prior.sample_partitions(5, 2.5, rng)
    with pytest.raises(ValueError, match="cluster sizes must be positive"):
        prior.seating_probabilities([2, 0])
    with pytest.raises(ValueError, match="labels are empty"):
        prior.log_pmf([])


def test_seats_of_what_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"has at most 2 clusters; got the sizes of 3"):
        DirichletMultinomial(2, 1.0).seating_probabilities([1, 1, 1])
    with pytest.raises(ValueError, match=r"has at most 1 clusters; got the sizes of 2"):
        FiniteMixture(1.0, Geometric(1.0)).seating_probabilities([1, 1])
    np.testing.assert_allclose(DirichletMultinomial(2, 1.0).seating_probabilities([3, 1]), [0.7, 0.3, 0.0])
    np.testing.assert_array_equal(FiniteMixture(1.0, Only(2)).seating_probabilities([3, 1])[-1], 0.0)
    assert DirichletMultinomial(2, 1.0).log_pmf([0, 1, 2]) == -math.inf
