"""The rule behind the answer, on partitions whose exchange is known by hand."""

import numpy as np
import pytest
from scipy.special import kve

from ewens_widgets.analysis.answer import (
    Level,
    _log_bessel,
    merge_by_exchange,
    parameters_of_cluster,
    read_levels,
    robust_memberships,
    shared_companions,
)
from ewens_widgets.analysis.evidence_tree import Evidence, OwnEvidence
from ewens_widgets.model.checks import ModelName
from ewens_widgets.model.own_shapes import ClusterStatistics, statistics_of
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import FiniteMixture
from ewens_widgets.partition import canonical_labels


class GivenLosses(Evidence):
    """Each merge loses the same, or, with those of the first cluster, so much instead."""

    def __init__(self, loss: float = 10.0, of_first: float | None = None) -> None:
        self.loss, self.of_first = loss, loss if of_first is None else of_first

    def losses(self, clusters: ClusterStatistics, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        del clusters, right
        return np.where(left == 0, self.of_first, self.loss)


def levels_of(
    draws: np.ndarray, start: np.ndarray, loss: float = 10.0, free_parameters: int = 5
) -> tuple[Level, ...]:
    shares = shared_companions(draws, start)
    blank = np.zeros((int(start.max()) + 1, 1))
    clusters = ClusterStatistics(np.bincount(start).astype(float), blank, blank)
    return merge_by_exchange(shares, start, clusters, GivenLosses(loss), free_parameters)


def three_parts(moves: int, moving: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters of ten; in so many of 100 draws, some objects of the first two change places."""
    start = np.repeat(np.arange(3), 10)
    rng = np.random.default_rng(0)
    draws = np.tile(start, (100, 1))
    for row in draws[:moving]:
        row[rng.choice(10, moves, replace=False)] = 1
        row[10 + rng.choice(10, moves, replace=False)] = 0
    return np.array([canonical_labels(row) for row in draws]), start


def test_shares_are_those_of_companions() -> None:
    draws = np.array([[0, 0, 0, 1], [0, 0, 1, 1]])
    shares = shared_companions(draws, np.array([0, 0, 1, 1]))
    # The first object has companions 1, 2 in the first draw and 1 in the second.
    np.testing.assert_allclose(shares, [[0.75, 0.25], [0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])


def test_an_object_alone_counts_for_its_own_cluster() -> None:
    shares = shared_companions(np.array([[0, 1, 1]]), np.array([0, 0, 1]))
    np.testing.assert_allclose(shares[0], [1.0, 0.0])


def test_shares_do_not_depend_on_the_names_of_clusters() -> None:
    draws, start = three_parts(3)
    swapped = np.array([canonical_labels(2 - row) for row in draws])
    np.testing.assert_array_equal(shared_companions(draws, start), shared_companions(swapped, start))


def test_what_is_exchanged_is_merged_and_what_is_not_stays() -> None:
    draws, start = three_parts(4)
    levels = levels_of(draws, start)
    assert [len(level.sizes) for level in levels] == [3, 2, 1]
    assert levels[0].pair == (0, 1)
    assert levels[0].exchanged > 0.2
    assert levels[1].exchanged == 0.0
    reading = read_levels(levels, 5)
    assert levels[reading.chosen].parts.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(levels[1].parts[start], np.repeat([0, 0, 1], 10))


def test_clusters_that_the_draws_keep_stay_apart() -> None:
    draws, start = three_parts(0)
    levels = levels_of(draws, start)
    assert read_levels(levels, 5).chosen == 0
    assert read_levels(levels, 5).lost == 0.0


@pytest.mark.parametrize(
    ("loss", "free_parameters", "merged"),
    [(3.5, 5, True), (10.0, 5, False), (10.0, 9, False), (10.0, 14, True)],
)
def test_a_little_exchange_is_enough_only_where_little_is_lost(
    loss: float, free_parameters: int, merged: bool
) -> None:
    draws, start = three_parts(1, moving=80)
    levels = levels_of(draws, start, loss, free_parameters)
    assert levels[0].exchanged == pytest.approx(0.16)
    assert (read_levels(levels, free_parameters).chosen == 1) is merged


def test_a_merge_excuses_the_next_one_that_loses_up_to_twice_as_much() -> None:
    def losing(second: float) -> list[Level]:
        return [
            level(3, 0.4, 20.0, [0, 1, 2]),
            level(2, 0.16, second, [0, 0, 1]),
            level(1, float("nan"), float("nan"), [0, 0, 0]),
        ]

    assert read_levels(losing(39.0), 5).chosen == 2
    assert read_levels(losing(41.0), 5).chosen == 1


def test_a_pair_that_is_kept_apart_does_not_keep_others_from_being_merged() -> None:
    start = np.repeat(np.arange(4), 10)
    draws = np.tile(start, (100, 1))
    draws[:, [0, 10]] = [1, 0]  # The first two exchange in each draw,
    draws[:80, [20, 30]] = [3, 2]  # the last two not in all.
    shares = shared_companions(np.array([canonical_labels(row) for row in draws]), start)
    blank = np.zeros((4, 1))
    clusters = ClusterStatistics(np.full(4, 10.0), blank, blank)
    levels = merge_by_exchange(shares, start, clusters, GivenLosses(2.0, of_first=50.0), 5)
    assert levels[0].pair == (2, 3)
    assert levels[1].pair == (0, 1)
    assert levels[1].exchanged > levels[0].exchanged >= 0.15
    reading = read_levels(levels, 5)
    assert levels[reading.chosen].parts.tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize(("model", "count"), [("I", 5), ("II", 8), ("III", 14)])
def test_free_parameters_are_those_of_centre_and_covariance(model: ModelName, count: int) -> None:
    assert parameters_of_cluster(4, model) == count


def level(count: int, exchanged: float, loss: float, parts: list[int]) -> Level:
    pair = None if count == 1 else (0, 1)
    return Level(np.array(parts), (10,) * count, pair, exchanged, loss)


def chain(last_loss: float, last_exchanged: float = 0.0) -> list[Level]:
    """Four parts, neighbours of which exchange a little: two and two."""
    return [
        level(4, 0.08, 30.0, [0, 1, 2, 3]),
        level(3, 0.06, 40.0, [0, 0, 1, 2]),
        level(2, last_exchanged, last_loss, [0, 0, 1, 1]),
        level(1, float("nan"), float("nan"), [0, 0, 0, 0]),
    ]


def test_bent_groups_are_what_is_never_exchanged_though_gaussians_would_merge_it() -> None:
    reading = read_levels(chain(last_loss=-20.0), 5)
    assert reading.bent
    assert reading.chosen == 2
    assert reading.second == 0


@pytest.mark.parametrize(("size", "bent"), [(10, True), (1, False)])
def test_beside_a_bent_group_may_lie_a_round_one_but_not_a_few_outliers(size: int, bent: bool) -> None:
    levels = [
        Level(np.arange(4), (20, 20, 20, size), (0, 1), 0.08, 30.0),
        Level(np.array([0, 0, 1, 2]), (40, 20, size), (0, 1), 0.06, 40.0),
        Level(np.array([0, 0, 0, 1]), (60, size), (0, 1), 0.0, -5.0),
        Level(np.zeros(4, dtype=int), (60 + size,), None, float("nan"), float("nan")),
    ]
    assert read_levels(levels, 5).bent is bent


@pytest.mark.parametrize("levels", [chain(300.0), chain(-20.0, 0.03)])
def test_round_groups_are_not_bent(levels: list[Level]) -> None:
    reading = read_levels(levels, 5)
    assert not reading.bent
    assert reading.chosen == 0


def test_a_second_level_is_one_that_costs_far_more_to_leave() -> None:
    reading = read_levels(chain(300.0), 5)
    assert reading.second == 2
    assert read_levels(chain(60.0), 5).second is None


def blobs(rng: np.random.Generator, gap: float = 8.0) -> tuple[np.ndarray, np.ndarray]:
    start = np.repeat(np.arange(3), 20)
    return rng.normal(size=(60, 2)) + gap * start[:, None], start


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_losses_with_own_shapes_are_those_of_the_posterior(model: str) -> None:
    X, start = blobs(np.random.default_rng(1))
    posterior = Posterior.from_data(X, model, prior=FiniteMixture(), shapes="own")
    n_numbers = posterior.sigma_length
    packed = {"I": [0.5], "II": [0.5, 0.7], "III": [0.5, 0.1, 0.7]}[model]
    assert len(packed) == n_numbers
    sigma = {"I": np.array([0.5]), "II": np.array([packed]), "III": np.array([[[0.5, 0.1], [0.1, 0.7]]])}[
        model
    ]
    evidence = OwnEvidence(
        posterior, np.array([posterior.theta_grid[4]]), np.array([posterior.nu_grid[2]]), sigma
    )
    clusters = statistics_of(posterior.coordinates, start, posterior.model)
    losses = evidence.losses(clusters, np.array([0, 1]), np.array([1, 2]))
    before = posterior.log_density(start, 4, nu_index=2, sigma=packed)
    for loss, (a, b) in zip(losses, ((0, 1), (1, 2)), strict=True):
        merged = canonical_labels(np.where(start == b, a, start))
        after = posterior.log_density(merged, 4, nu_index=2, sigma=packed)
        np.testing.assert_allclose(loss, before - after, rtol=1e-10)


def test_losses_of_common_shapes_are_those_of_the_posterior() -> None:
    X, start = blobs(np.random.default_rng(2))
    posterior = Posterior.from_data(X, "III")
    clusters = statistics_of(posterior.coordinates, start, posterior.model)
    loss = Evidence(posterior).losses(clusters, np.array([0]), np.array([1]))[0]
    merged = np.repeat([0, 0, 1], 20)
    np.testing.assert_allclose(
        loss, posterior.log_marginal(start) - posterior.log_marginal(merged), rtol=1e-9
    )


def test_memberships_are_the_shares_where_gaussians_fit() -> None:
    shares = np.random.default_rng(3).dirichlet([1.0, 1.0], 30)
    Y = np.random.default_rng(4).normal(size=(30, 2))
    np.testing.assert_allclose(robust_memberships(Y, shares, "III", lost=1.0), shares, rtol=1e-14)


def heavy_clusters(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    true = np.repeat([0, 1], 100)
    noise = rng.standard_t(3, size=(200, 3))
    return noise + np.array([6.0, 0.0, 0.0]) * true[:, None], true


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_the_student_mixture_mends_shares_that_tails_have_spoilt(model: str) -> None:
    rng = np.random.default_rng(5)
    X, true = heavy_clusters(rng)
    posterior = Posterior.from_data(X, model)
    shares = np.where(np.arange(2) == true[:, None], 0.7, 0.3)
    far = np.abs(X[:, 0] - 6.0 * true) > 1.5
    shares[far] = 0.5 + rng.uniform(-0.05, 0.05, (int(far.sum()), 1)) * [1.0, -1.0]
    plain = np.mean(shares.argmax(axis=1) == true)
    mended = robust_memberships(posterior.coordinates, shares, posterior.model, lost=100.0)
    np.testing.assert_allclose(mended.sum(axis=1), 1.0)
    assert np.mean(mended.argmax(axis=1) == true) > plain + 0.03


def test_a_tail_on_one_side_goes_to_the_cluster_that_it_comes_from() -> None:
    rng = np.random.default_rng(7)
    true = np.repeat([0, 1], 150)
    # The tail of the first ends beside the second, whose own tail points away from it.
    X = np.column_stack([rng.exponential(2.0, 300), rng.normal(size=300)]) + np.outer(true, [5.0, 4.0])
    posterior = Posterior.from_data(X, "III")
    shares = np.where(np.arange(2) == true[:, None], 0.7, 0.3)
    tail = (true == 0) & (X[:, 0] > 4.0)
    shares[tail] = [0.4, 0.6]
    mended = robust_memberships(posterior.coordinates, shares, posterior.model, lost=100.0)
    right = mended.argmax(axis=1) == true
    assert np.mean(right[tail]) > 0.9  # 0.55 without skewness
    assert np.mean(right) > 0.98


@pytest.mark.parametrize("order", [2.0, 3.5, 9.0, 30.0])
def test_bessel_functions_are_those_of_scipy_also_where_these_overflow(order: float) -> None:
    x = np.geomspace(1e-3, 500.0, 40)
    np.testing.assert_allclose(_log_bessel(order, x), np.log(kve(order, x)) - x, atol=0.01)
    assert np.isfinite(_log_bessel(order, np.array([1e-200, 1e6]))).all()


def test_memberships_are_affine_invariant() -> None:
    rng = np.random.default_rng(6)
    X, true = heavy_clusters(rng)
    shares = rng.dirichlet([2.0, 1.0], 200)
    shares = np.where(true[:, None] == 0, shares, shares[:, ::-1])
    found = [
        robust_memberships(Posterior.from_data(data, "III").coordinates, shares, "III", lost=100.0)
        for data in (X, X @ rng.normal(size=(3, 3)) + 5.0)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
