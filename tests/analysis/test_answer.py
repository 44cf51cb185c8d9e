"""Groups of draws, the answer and its words, on draws made by hand; `tests/paper` judges it on data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import kve
from traces import synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis import groups
from ewens_widgets.analysis.answer import (
    _log_bessel,
    core_memberships,
    robust_memberships,
    shared_companions,
)
from ewens_widgets.analysis.groups import EVEN, DrawGroups, Level, MergePath, companion_shares, merge_path
from ewens_widgets.analysis.predictive import member_log_weights
from ewens_widgets.model.own_shapes import ClusterStatistics, log_predictive, statistics_of
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.trace import Trace


def data(rng: np.random.Generator, pair: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Two groups of 40, the first of which is described by two components, and a pair apart."""
    true = np.repeat([0, 1, 2], [40, 40, 2])
    centres = np.array([[0.0, 0.0], [9.0, 0.0], pair])
    return rng.normal(size=(82, 2)) + centres[true], true


def made_trace(seed: int = 0, pair: tuple[float, float] = (0.0, 30.0)) -> Trace:
    rng = np.random.default_rng(seed)
    X, true = data(rng, pair)
    draws = []
    for _ in range(60):
        row = true.copy()
        half = X[:, 0] + rng.normal(scale=0.3, size=82) > 0.0
        row[(true == 0) & half] = 3
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
    np.testing.assert_array_equal(answer.groups(2), answer.labels)
    np.testing.assert_array_equal(answer.groups(3), answer.table.labels(3))


def test_memberships_are_probabilities_and_the_labels_their_largest() -> None:
    answer = made_trace().answer()
    np.testing.assert_allclose(answer.memberships.sum(axis=1), 1.0)
    np.testing.assert_array_equal(answer.memberships.argmax(axis=1), answer.labels)
    np.testing.assert_array_equal(answer.second_choice, 1 - answer.labels)
    assert np.all(answer.certainty[answer.uncertain] < 0.8)
    assert np.all(np.diff(answer.certainty[answer.uncertain]) >= 0.0)
    for array in (answer.labels, answer.memberships, answer.small_clusters, answer.draws):
        assert not array.flags.writeable
    assert sum(answer.probabilities.values()) == pytest.approx(1.0)
    ball = answer.credible_ball(0.9)
    assert ball.share >= 0.9


def test_memberships_include_the_uncertainty_about_the_number() -> None:
    apart, joined = np.repeat([0, 1, 2], 10), np.repeat([0, 0, 1], 10)
    draws = np.array([apart] * 6 + [joined] * 4, dtype=np.int16)
    memberships, small = core_memberships(draws, apart)
    assert small.size == 0
    # In 0.4 of the draws the first two are one group, which counts for both.
    np.testing.assert_allclose(memberships[0], [0.8, 0.2, 0.0], atol=1e-6)
    np.testing.assert_allclose(memberships[29], [0.0, 0.0, 1.0], atol=1e-6)
    # A group that a draw cuts counts for the one that its parts come from.
    cut = apart.copy()
    cut[:5] = 3
    np.testing.assert_allclose(core_memberships(cut[None], apart)[0].argmax(axis=1), apart)
    # Two objects alone are no group, and are in none of the others more than in another.
    pair = np.concatenate([apart, [3, 3]])
    memberships, small = core_memberships(pair[None], pair)
    np.testing.assert_array_equal(small, [30, 31])
    np.testing.assert_allclose(memberships[30], [1 / 3] * 3, atol=1e-6)


def test_the_words_say_how_many_how_probable_and_whether_to_trust() -> None:
    answer = made_trace().answer()
    text = str(answer)
    headline = f"2 groups (probability {answer.probability:.2f}"
    assert answer.headline.startswith(headline)
    assert f"of {answer.sizes[0]} and {answer.sizes[1]} objects" in answer.headline
    assert "from 4 Gaussian components" in answer.headline
    assert repr(answer) == f"Answer({answer.headline})"
    assert answer.headline in answer._repr_html_()
    unlikely = replace(answer, probabilities={3: 0.7, 2: 0.26, 1: 0.04})
    other = "2 groups (at its threshold of overlap; over all thresholds 2: 0.26; 3: 0.70) of "
    assert unlikely.headline.startswith(other)
    assert "overlap" in answer.reason
    assert "would lower the log posterior by" in text
    assert "In clusters too small to count as groups: objects 80 and 81." in text
    assert text.endswith(made_trace().report().headline)


@pytest.mark.parametrize("disagree", [False, True])
def test_an_answer_of_chains_that_disagree_says_so_first(disagree: bool) -> None:
    trace = made_trace()
    others = np.array([canonical_labels(row % 2 if disagree else row) for row in trace.labels])
    other = synthetic_trace(others, trace.posterior, np.random.default_rng(1))
    answer = Trace.concatenate([trace, other]).answer()
    assert str(answer).startswith("This run does not converge: ") == disagree
    assert ("This run does not converge" in answer._repr_html_()) == disagree


def test_the_merge_table_has_a_row_for_each_number_of_groups() -> None:
    trace = made_trace()
    table = trace.levels()
    rows = table.rows()
    assert [row["groups"] for row in rows] == list(range(len(table), 0, -1))
    assert sum(row["note"].startswith("the answer, with 1 small cluster") for row in rows) == 1
    assert list(table.placed) == sorted(trace.answer().sizes.tolist(), reverse=True)
    assert np.isnan(rows[-1]["loss"])
    assert all(sum(row["sizes"]) == 82 for row in rows)
    assert str(table).splitlines()[0].split()[:2] == ["groups", "overlap"]
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


def test_one_group() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 2))
    draws = np.array([canonical_labels((rng.random(50) < 0.1).astype(int)) for _ in range(50)])
    answer = synthetic_trace(draws, Posterior.from_data(X, "II"), rng).answer()
    assert answer.headline.startswith("1 group (probability 1.00) of 50 objects")
    assert np.all(answer.second_choice == -1)
    assert answer.uncertain.size == 0
    assert "All 50 objects are assigned" in str(answer)
    assert answer.second_level is None


def test_pooled_chains_and_other_names_of_clusters_give_the_same() -> None:
    trace = made_trace()
    pooled = Trace.concatenate([trace, trace])
    np.testing.assert_array_equal(pooled.answer().labels, trace.answer().labels)
    np.testing.assert_allclose(pooled.answer().memberships, trace.answer().memberships, atol=1e-9)


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


def test_bent_clusters_are_cut_by_single_linkage() -> None:
    trace = made_trace()
    object.__setattr__(trace.answer(), "bent", True)
    np.testing.assert_array_equal(trace.cut(2), trace.similarity_tree("single").cut(n_clusters=2, min_size=4))


def test_shares_are_those_of_companions_whatever_the_names_of_clusters() -> None:
    shares = shared_companions(np.array([[0, 0, 0, 1], [0, 0, 1, 1]]), np.array([0, 0, 1, 1]))
    # The first object has companions 1, 2 in the first draw and 1 in the second.
    np.testing.assert_allclose(shares, [[0.75, 0.25], [0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])
    # An object that is alone counts for its own cluster.
    np.testing.assert_allclose(shared_companions(np.array([[0, 1, 1]]), np.array([0, 0, 1]))[0], [1, 0])


def test_companions_have_rows_that_sum_to_one() -> None:
    draws = np.array([[0, 0, 0, 1], [0, 0, 1, 1]])
    expected = [[0, 0.75, 0.25, 0], [0.75, 0, 0.25, 0], [0.25, 0.25, 0, 0.5], [0, 0, 0.5, 0.5]]
    np.testing.assert_allclose(companion_shares(draws), expected)


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_the_density_of_a_member_is_that_given_the_other_members(model: str) -> None:
    rng = np.random.default_rng(0)
    Y, labels = rng.normal(size=(20, 3)), canonical_labels(np.append(rng.integers(0, 4, 19), 9))
    sigma = {"I": 0.7, "II": np.array([0.5, 1.0, 2.0]), "III": np.cov(Y.T) + np.eye(3)}[model]
    found = log_predictive(Y, statistics_of(Y, labels, model), 2.0, 4.0, sigma, model, labels)
    for row, y in enumerate(Y):
        left = statistics_of(Y, labels, model)
        own = statistics_of(y[None], np.zeros(1, dtype=np.intp), model)
        for values, removed in zip(left, own, strict=True):
            values[labels[row]] -= removed[0]
        expected = log_predictive(y[None], ClusterStatistics(*left), 2.0, 4.0, sigma, model)[0]
        np.testing.assert_allclose(found[row], expected, atol=1e-9)


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_members_of_clusters_far_apart_belong_to_their_own(model: str) -> None:
    rng = np.random.default_rng(1)
    true = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + 12.0 * true[:, None]
    trace = synthetic_trace(np.tile(true, (10, 1)), Posterior.from_data(X, model), rng)
    weights = member_log_weights(trace, 3, np.arange(0, 60, 7))
    np.testing.assert_array_equal(weights.argmax(axis=1), true[::7])


def three(overlap: float, shared: float = 0.0) -> MergePath:
    """Three components of ten objects, of which the first two overlap."""
    labels = np.repeat([0, 1, 2], 10)
    sources = []
    for share in (overlap, shared):
        shares = np.eye(3)[labels]
        shares[:20, :2] = np.where(shares[:20, :2] > 0, 1.0 - share, share)
        sources.append(shares)
    return merge_path(*sources, labels)


@pytest.mark.parametrize(("given", "shared", "expected"), [(0.2, 0.0, 0.2), (0.05, 0.3, 0.15)])
def test_the_overlap_is_the_larger_of_both_kinds(given: float, shared: float, expected: float) -> None:
    path = three(given, shared)
    assert path.overlaps[0] == pytest.approx(expected)
    assert tuple(path.pairs[0]) == (0, 1)
    assert path.at(expected - 0.01).tolist() == [0, 0, 1]
    assert path.at(expected + 0.01).tolist() == [0, 1, 2]
    assert path.at(0.0).tolist() == [0, 0, 0]


def test_a_chain_of_components_is_one_group_though_its_ends_do_not_overlap() -> None:
    labels = np.repeat([0, 1, 2], 10)
    shares = np.eye(3)[labels]
    shares[:10, 1] = shares[10:20, 0] = shares[10:20, 2] = shares[20:, 1] = 0.25
    path = merge_path(shares, np.eye(3)[labels], labels)
    assert path.at(0.1).tolist() == [0, 0, 0]


def path_of(*overlaps: float) -> MergePath:
    """Merges, one after the other, of one component more than there are overlaps."""
    count = len(overlaps) + 1
    groups = np.maximum(np.arange(count) - np.arange(count)[:, None], 0)
    pairs = np.zeros((count - 1, 2), dtype=np.intp)
    return MergePath(np.array(overlaps), pairs, groups, np.zeros(count - 1, dtype=np.bool_))


def test_a_row_of_a_path_has_the_thresholds_between_two_overlaps() -> None:
    prior = np.array([EVEN / (EVEN + overlap) for overlap in (0.2, 0.1, 0.001)])
    expected = [prior[0], prior[1] - prior[0], prior[2] - prior[1], 1.0 - prior[2]]
    np.testing.assert_allclose(path_of(0.2, 0.1, 0.001).shares(), expected)
    # A later merge with a larger overlap leaves no threshold to the row before it.
    assert path_of(0.05, 0.3).shares()[1] == 0.0
    # One component is one group, and components that never overlap are separate.
    assert path_of().shares().tolist() == [1.0]
    assert path_of(0.0).shares().tolist() == [1.0, 0.0]
    assert path_of(EVEN).shares().tolist() == [0.5, 0.5]


def test_a_number_of_groups_counts_by_the_thresholds_at_which_it_holds() -> None:
    labels = np.repeat(np.arange(3), 10)  # ten objects for each component
    paths = (path_of(0.25, 0.05), path_of(0.1, 0.02))
    found = DrawGroups(np.arange(2), np.array([labels, labels]), paths, np.arange(30)).probabilities()
    (a, b, c), (d, e, f) = np.array([path.shares() for path in paths])
    first = np.array([a * (a + d), b * (b + e), c * (c + f)])
    second = np.array([d * (a + d), e * (b + e), f * (c + f)])
    expected = 0.5 * (first / first.sum() + second / second.sum())
    np.testing.assert_allclose([found[number] for number in (3, 2, 1)], expected)
    assert list(found) == [1, 2, 3]
    # Three large components and a pair: rows with the same number of large groups count together.
    four = np.concatenate([labels, [3, 3]])
    pair = MergePath(
        np.array([0.3, 0.2, 0.1]),
        np.zeros((3, 2), dtype=np.intp),
        np.array([[0, 1, 2, 3], [0, 1, 2, 2], [0, 1, 1, 1], [0, 0, 0, 0]]),
        np.zeros(3, dtype=np.bool_),
    )
    joined = DrawGroups(np.arange(1), four[None], (pair,), np.arange(32)).probabilities()
    squares = np.array([pair.shares()[3], pair.shares()[2], pair.shares()[:2].sum()]) ** 2
    np.testing.assert_allclose(list(joined.values()), squares / squares.sum())


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        (((4, 0.95), (2, 0.99)), 0),
        (((6, 0.85), (2, 0.95), (1, 1.0)), 1),  # several groups, at a smaller threshold
        (((4, 0.75), (1, 1.0)), 0),  # one group is found at a small threshold in any data …
        (((4, 0.3), (1, 1.0)), 1),  # … and counts if the others are arbitrary
        (((4, 0.75), (3, 0.8), (2, 0.7)), 0),  # none qualifies
        (((1, 0.95), (1, 1.0)), 0),
    ],
)
def test_the_choice_of_the_threshold(rows: tuple[tuple[int, float], ...], chosen: int) -> None:
    levels = (Level(0.1 * 2.0 ** (-k / 2), number, 1.0, index) for k, (number, index) in enumerate(rows))
    assert groups._choice(tuple(levels)) == chosen


@pytest.mark.slow
def test_half_moons_are_two_groups_and_a_box_is_one() -> None:
    moons = ew.datasets.half_moons(n=200, seed=0)
    box = np.random.default_rng(0).uniform(size=(300, 2))
    for X, number in ((moons.X, 2), (box, 1)):
        sampler = ew.Sampler(X, model="III", shapes="own", prior=ew.priors.FiniteMixture(), seed=0)
        answer = sampler.sample(300, 200, progress=False).answer()
        assert answer.n_clusters == number
        assert answer.level.threshold < groups.LARGEST
        assert not answer.levels[0].is_stable


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
