"""The rule behind the answer and its words, on draws made by hand; `tests/paper` judges it on data."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import kve
from traces import synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis.answer import (
    MergeStep,
    _log_bessel,
    choose_step,
    merge_by_switching,
    parameters_of_cluster,
    robust_memberships,
    shared_companions,
)
from ewens_widgets.analysis.evidence_tree import Evidence
from ewens_widgets.model.checks import ModelName
from ewens_widgets.model.own_shapes import ClusterStatistics
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.trace import Trace


def data(rng: np.random.Generator, pair: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Two groups of 40, the first of which is described by two components, and a pair apart."""
    true = np.repeat([0, 1, 2], [40, 40, 2])
    centres = np.array([[0.0, 0.0], [9.0, 0.0], pair])
    return rng.normal(size=(82, 2)) + centres[true], true


def made_trace(seed: int = 0, pair_together: bool = True, pair: tuple[float, float] = (0.0, 30.0)) -> Trace:
    rng = np.random.default_rng(seed)
    X, true = data(rng, pair)
    draws = []
    for _ in range(60):
        row = true.copy()
        half = X[:, 0] + rng.normal(scale=0.3, size=82) > 0.0
        row[(true == 0) & half] = 3
        if not pair_together:
            row[81] = 1
        draws.append(canonical_labels(row))
    return synthetic_trace(np.array(draws), Posterior.from_data(X, "III"), rng)


def test_components_of_a_group_are_merged_and_small_clusters_are_named() -> None:
    trace = made_trace()
    answer = trace.answer()
    assert answer.n_clusters == 2
    np.testing.assert_array_equal(answer.labels[:80], np.repeat([0, 1], 40))
    np.testing.assert_array_equal(answer.small_clusters, [80, 81])
    assert set(answer.labels) == {0, 1}
    assert answer.sizes.sum() == 82
    assert trace.levels() is answer.table
    assert trace.answer() is answer


@pytest.mark.parametrize(("place", "cluster"), [(-6.0, 0), (15.0, 1)])
def test_small_clusters_join_the_nearest_group_though_no_object_switches(place: float, cluster: int) -> None:
    trace = made_trace(pair=(place, 0.0))
    answer = trace.answer()
    np.testing.assert_array_equal(answer.small_clusters, [80, 81])
    np.testing.assert_array_equal(answer.labels[80:], cluster)
    np.testing.assert_array_equal(answer.labels[80:], trace.levels().labels(2)[80:])


def test_memberships_are_probabilities_and_the_labels_their_largest() -> None:
    answer = made_trace().answer()
    np.testing.assert_allclose(answer.memberships.sum(axis=1), 1.0)
    np.testing.assert_array_equal(answer.memberships.argmax(axis=1), answer.labels)
    np.testing.assert_array_equal(answer.second_choice, 1 - answer.labels)
    assert np.all(answer.certainty[answer.uncertain] < 0.8)
    assert np.all(np.diff(answer.certainty[answer.uncertain]) >= 0.0)
    for array in (answer.labels, answer.memberships, answer.small_clusters):
        assert not array.flags.writeable


def test_the_words_say_why() -> None:
    answer = made_trace().answer()
    text = str(answer)
    headline = f"2 groups of {answer.sizes[0]} and {answer.sizes[1]} objects (from 4 Gaussian components)"
    assert answer.headline == headline
    assert repr(answer) == f"Answer({headline})"
    assert headline in answer._repr_html_()
    assert f"{82 - answer.uncertain.size} of 82 objects are assigned with probability ≥ 0.8." in text
    assert "of their members switch between draws" in text
    assert "The two closest groups exchange" in text
    assert "merging them would lower the log posterior by" in text
    assert "In clusters too small to count as groups: objects 80 and 81." in text


def test_the_merge_table_has_a_row_for_each_number_of_groups() -> None:
    trace = made_trace()
    table, sizes = trace.levels(), sorted(trace.answer().sizes.tolist(), reverse=True)
    rows = table.rows()
    assert [row["groups"] for row in rows] == list(range(len(table), 0, -1))
    # Sizes in a row are sums of components; those of the answer, which moves objects, are in the note.
    note = "the answer, with 1 small cluster; sizes by most probable group: {} and {}"
    assert [row["note"] for row in rows].count(note.format(*sizes)) == 1
    assert rows[table.choice.chosen]["sizes"] != sizes
    assert list(table.placed) == sizes
    assert np.isnan(rows[-1]["loss"])
    assert all(sum(row["sizes"]) == 82 for row in rows)
    assert str(table).splitlines()[0].split()[:3] == ["groups", "switching", "rate"]
    assert table._repr_html_().count("<tr>") == len(table) + 1
    for count in range(1, len(table) + 1):
        assert table.labels(count).max() + 1 == count
    with pytest.raises(ValueError, match=f"rows for 1 to {len(table)} groups; got 99"):
        table.labels(99)


def test_tables_for_other_programs(tmp_path: Path) -> None:
    answer = made_trace().answer()
    answer.to_csv(tmp_path / "answer.csv")
    lines = (tmp_path / "answer.csv").read_text().splitlines()
    assert lines[0] == "object,cluster,probability,second_choice,small_cluster"
    assert len(lines) == 83
    assert lines[82].endswith("True")
    frame = answer.to_frame()
    assert list(frame.columns[:4]) == ["cluster", "probability", "second_choice", "small_cluster"]
    np.testing.assert_allclose(frame[["cluster 0", "cluster 1"]].sum(axis=1), 1.0)
    assert answer.table.to_frame().index.name == "groups"


def test_one_cluster() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 2))
    draws = np.array([canonical_labels((rng.random(50) < 0.1).astype(int)) for _ in range(50)])
    answer = synthetic_trace(draws, Posterior.from_data(X, "II"), rng).answer()
    assert answer.n_clusters == 1
    assert answer.headline == "1 group of 50 objects"
    assert np.all(answer.second_choice == -1)
    assert answer.uncertain.size == 0
    assert "All 50 objects are assigned" in str(answer)
    assert answer.second_level is None


def test_pooled_chains_and_other_names_of_clusters_give_the_same() -> None:
    trace = made_trace()
    pooled = Trace.concatenate([trace, trace])
    np.testing.assert_array_equal(pooled.answer().labels, trace.answer().labels)
    np.testing.assert_allclose(pooled.answer().memberships, trace.answer().memberships, atol=1e-12)


def test_a_trace_without_draws_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no draws"):
        made_trace()[:0].answer()


@pytest.mark.slow
@pytest.mark.parametrize("shapes", ["own", "common"])
def test_the_answer_is_affine_invariant(shapes: str) -> None:
    X = ew.datasets.unit_square(transform=None, seed=5).X
    rng = np.random.default_rng(0)
    answers = []
    for Y in (X, X @ rng.normal(size=(2, 2)) + 7.0):
        sampler = ew.Sampler(Y, model="III", shapes=shapes, prior=ew.priors.FiniteMixture(), seed=0)
        answers.append(sampler.sample(200, 100, progress=False).answer())
    np.testing.assert_array_equal(answers[0].labels, answers[1].labels)
    np.testing.assert_allclose(answers[0].memberships, answers[1].memberships, atol=1e-6)
    # Own shapes find the four; one shape for all, in so few draws, need not.
    assert answers[0].n_clusters == 4 or shapes == "common"


@pytest.mark.slow
def test_many_objects_need_no_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    true = np.repeat([0, 1, 2], 2000)
    X = rng.normal(size=(6000, 2)) + 8.0 * np.array([[0, 0], [1, 0], [0, 1]])[true]
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", str(40 * 2**20))  # all pairs would take 288 MB
    sampler = ew.Sampler(
        X, model="III", shapes="own", prior=ew.priors.FiniteMixture(), initial="k-means", seed=0
    )
    answer = sampler.sample(20, 10, progress=False).answer()
    assert answer.n_clusters == 3
    assert ew.adjusted_rand(true, answer.labels) > 0.99


def test_a_cut_finds_groups_where_single_linkage_splits_off_an_object() -> None:
    rng = np.random.default_rng(1)
    true = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 2)) + 6.0 * true[:, None]
    draws = np.repeat(true[None, :], 20, axis=0)
    draws[::2, 3] = 1  # a bridge between the groups
    draws[:15, 7] = 2  # one that is often alone
    rows = np.array([canonical_labels(row) for row in draws])
    trace = synthetic_trace(rows, Posterior.from_data(X, "III"), rng)
    assert sorted(np.bincount(trace.cut(2, method="single"))) == [1, 39]
    assert ew.error_rate(true, trace.cut(2)) <= 1 / 40
    np.testing.assert_array_equal(trace.cut(2), trace.consensus_tree(2).cut(n_clusters=2))
    assert trace.cut(2, method="evidence").max() == 1
    with pytest.raises(ValueError, match="the tree must be one of 'auto', 'consensus'"):
        trace.cut(2, method="ward")


def test_a_cut_without_room_for_pairs_is_of_the_evidence_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = made_trace()
    expected = trace.cut(2, method="evidence")
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "50000")  # the pairs of 82 rows need 161 376 bytes
    np.testing.assert_array_equal(trace.cut(2), expected)


def test_bent_clusters_are_cut_by_single_linkage(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = made_trace()
    monkeypatch.setattr(type(trace.answer()), "bent", property(lambda _: True))
    np.testing.assert_array_equal(trace.cut(2), trace.similarity_tree("single").cut(n_clusters=2, min_size=4))


class GivenLosses(Evidence):
    """Each merge loses the same, or, with those of the first cluster, so much instead."""

    def __init__(self, loss: float = 10.0, of_first: float | None = None) -> None:
        self.loss, self.of_first = loss, loss if of_first is None else of_first

    def losses(self, clusters: ClusterStatistics, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        del clusters, right
        return np.where(left == 0, self.of_first, self.loss)


def steps_of(
    draws: np.ndarray, start: np.ndarray, loss: float = 10.0, free_parameters: int = 5
) -> tuple[MergeStep, ...]:
    shares = shared_companions(draws, start)
    blank = np.zeros((int(start.max()) + 1, 1))
    clusters = ClusterStatistics(np.bincount(start).astype(float), blank, blank)
    return merge_by_switching(shares, start, clusters, GivenLosses(loss), free_parameters)


def three_components(moves: int, moving: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters of ten; in so many of 100 draws, some objects of the first two switch."""
    start = np.repeat(np.arange(3), 10)
    rng = np.random.default_rng(0)
    draws = np.tile(start, (100, 1))
    for row in draws[:moving]:
        row[rng.choice(10, moves, replace=False)] = 1
        row[10 + rng.choice(10, moves, replace=False)] = 0
    return np.array([canonical_labels(row) for row in draws]), start


def test_shares_are_those_of_companions_whatever_the_names_of_clusters() -> None:
    shares = shared_companions(np.array([[0, 0, 0, 1], [0, 0, 1, 1]]), np.array([0, 0, 1, 1]))
    # The first object has companions 1, 2 in the first draw and 1 in the second.
    np.testing.assert_allclose(shares, [[0.75, 0.25], [0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])
    # An object that is alone counts for its own cluster.
    np.testing.assert_allclose(shared_companions(np.array([[0, 1, 1]]), np.array([0, 0, 1]))[0], [1, 0])
    draws, start = three_components(3)
    swapped = np.array([canonical_labels(2 - row) for row in draws])
    np.testing.assert_array_equal(shared_companions(draws, start), shared_companions(swapped, start))


def test_components_that_switch_members_are_merged_and_others_are_not() -> None:
    draws, start = three_components(4)
    steps = steps_of(draws, start)
    assert [len(step.sizes) for step in steps] == [3, 2, 1]
    assert steps[0].pair == (0, 1)
    assert steps[0].switching_rate > 0.2
    assert steps[1].switching_rate == 0.0
    choice = choose_step(steps, 5)
    assert steps[choice.chosen].groups.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(steps[1].groups[start], np.repeat([0, 0, 1], 10))


def test_clusters_that_the_draws_keep_stay_apart() -> None:
    draws, start = three_components(0)
    steps = steps_of(draws, start)
    assert choose_step(steps, 5).chosen == 0
    assert choose_step(steps, 5).lost == 0.0


@pytest.mark.parametrize(
    ("loss", "free_parameters", "merged"),
    [(3.5, 5, True), (10.0, 5, False), (10.0, 9, False), (10.0, 14, True)],
)
def test_a_moderate_rate_is_enough_only_if_little_is_lost(
    loss: float, free_parameters: int, merged: bool
) -> None:
    draws, start = three_components(1, moving=80)
    steps = steps_of(draws, start, loss, free_parameters)
    assert steps[0].switching_rate == pytest.approx(0.16)
    assert (choose_step(steps, free_parameters).chosen == 1) is merged


def test_a_merge_excuses_the_next_one_that_loses_up_to_twice_as_much() -> None:
    def losing(second: float) -> list[MergeStep]:
        return [
            step(3, 0.4, 20.0, [0, 1, 2]),
            step(2, 0.16, second, [0, 0, 1]),
            step(1, float("nan"), float("nan"), [0, 0, 0]),
        ]

    assert choose_step(losing(39.0), 5).chosen == 2
    assert choose_step(losing(41.0), 5).chosen == 1


def test_a_pair_that_is_kept_apart_does_not_keep_others_from_being_merged() -> None:
    start = np.repeat(np.arange(4), 10)
    draws = np.tile(start, (100, 1))
    draws[:, [0, 10]] = [1, 0]  # The first two switch members in each draw,
    draws[:80, [20, 30]] = [3, 2]  # the last two not in all.
    shares = shared_companions(np.array([canonical_labels(row) for row in draws]), start)
    blank = np.zeros((4, 1))
    clusters = ClusterStatistics(np.full(4, 10.0), blank, blank)
    steps = merge_by_switching(shares, start, clusters, GivenLosses(2.0, of_first=50.0), 5)
    assert steps[0].pair == (2, 3)
    assert steps[1].pair == (0, 1)
    assert steps[1].switching_rate > steps[0].switching_rate >= 0.15
    choice = choose_step(steps, 5)
    assert steps[choice.chosen].groups.tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize(("model", "count"), [("I", 5), ("II", 8), ("III", 14)])
def test_free_parameters_are_those_of_centre_and_covariance(model: ModelName, count: int) -> None:
    assert parameters_of_cluster(4, model) == count


def step(count: int, rate: float, loss: float, groups: list[int]) -> MergeStep:
    pair = None if count == 1 else (0, 1)
    return MergeStep(np.array(groups), (10,) * count, pair, rate, loss)


def chain(last_loss: float, last_rate: float = 0.0) -> list[MergeStep]:
    """Four components; neighbours switch a few members: two and two."""
    return [
        step(4, 0.08, 30.0, [0, 1, 2, 3]),
        step(3, 0.06, 40.0, [0, 0, 1, 2]),
        step(2, last_rate, last_loss, [0, 0, 1, 1]),
        step(1, float("nan"), float("nan"), [0, 0, 0, 0]),
    ]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # No object switches, though as Gaussians they would be merged: bent groups.
        (chain(last_loss=-20.0), (True, 2, 0)),
        (chain(last_loss=-20.0, last_rate=0.03), (False, 0, None)),
        # A second level is one whose next merge loses far more.
        (chain(last_loss=300.0), (False, 0, 2)),
        (chain(last_loss=60.0), (False, 0, None)),
    ],
)
def test_bent_groups_and_second_levels(
    steps: list[MergeStep], expected: tuple[bool, int, int | None]
) -> None:
    choice = choose_step(steps, 5)
    assert (choice.bent, choice.chosen, choice.second) == expected


@pytest.mark.parametrize(("size", "bent"), [(10, True), (1, False)])
def test_beside_a_bent_group_may_lie_a_round_one_but_not_a_few_outliers(size: int, bent: bool) -> None:
    steps = [
        MergeStep(np.arange(4), (20, 20, 20, size), (0, 1), 0.08, 30.0),
        MergeStep(np.array([0, 0, 1, 2]), (40, 20, size), (0, 1), 0.06, 40.0),
        MergeStep(np.array([0, 0, 0, 1]), (60, size), (0, 1), 0.0, -5.0),
        MergeStep(np.zeros(4, dtype=int), (60 + size,), None, float("nan"), float("nan")),
    ]
    assert choose_step(steps, 5).bent is bent


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


@pytest.mark.parametrize("order", [3.0, 9.5, 60.0, 200.0])
def test_bessel_functions_follow_their_recurrence_also_where_scipy_overflows(order: float) -> None:
    x = np.geomspace(1e-3, 500.0, 40)
    below, here, above = (_log_bessel(order + step, x) for step in (-1.0, 0.0, 1.0))
    np.testing.assert_allclose(np.logaddexp(below, here + np.log(2.0 * order / x)), above, atol=0.01)
    assert np.isinf(kve(order, x)).any() == (order > 100)
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
