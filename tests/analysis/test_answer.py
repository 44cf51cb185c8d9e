"""The answer and its words, on draws made by hand; `tests/paper` judges it on data."""

from pathlib import Path

import numpy as np
import pytest
from traces import synthetic_trace

import ewens_widgets as ew
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.trace import Trace


def data(rng: np.random.Generator, pair: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Two groups of 40, the first of which is described by two clusters, and a pair apart."""
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


def test_parts_of_a_group_are_merged_and_leftovers_are_named() -> None:
    trace = made_trace()
    answer = trace.answer()
    assert answer.n_clusters == 2
    np.testing.assert_array_equal(answer.labels[:80], np.repeat([0, 1], 40))
    np.testing.assert_array_equal(answer.leftovers, [80, 81])
    assert set(answer.labels) == {0, 1}
    assert answer.sizes.sum() == 82
    assert trace.levels() is answer.table
    assert trace.answer() is answer


@pytest.mark.parametrize(("place", "cluster"), [(-6.0, 0), (15.0, 1)])
def test_leftovers_join_what_they_are_nearest_to_though_nothing_is_exchanged(
    place: float, cluster: int
) -> None:
    trace = made_trace(pair=(place, 0.0))
    answer = trace.answer()
    np.testing.assert_array_equal(answer.leftovers, [80, 81])
    np.testing.assert_array_equal(answer.labels[80:], cluster)
    np.testing.assert_array_equal(answer.labels[80:], trace.levels().labels(2)[80:])


def test_memberships_are_probabilities_and_the_labels_their_largest() -> None:
    answer = made_trace().answer()
    np.testing.assert_allclose(answer.memberships.sum(axis=1), 1.0)
    np.testing.assert_array_equal(answer.memberships.argmax(axis=1), answer.labels)
    np.testing.assert_array_equal(answer.second_choice, 1 - answer.labels)
    assert np.all(answer.certainty[answer.doubtful] < 0.8)
    assert np.all(np.diff(answer.certainty[answer.doubtful]) >= 0.0)
    for array in (answer.labels, answer.memberships, answer.leftovers):
        assert not array.flags.writeable


def test_the_words_say_why() -> None:
    answer = made_trace().answer()
    text = str(answer)
    assert text.startswith("2 clusters of ")
    assert "parts of one" in text
    assert "nats of log posterior" in text
    assert "too small to count: 80 and 81." in text
    assert "2 clusters of" in repr(answer)
    assert "<strong>2 clusters" in answer._repr_html_()


def test_the_table_has_a_row_for_each_number_of_clusters() -> None:
    trace = made_trace()
    levels, sizes = trace.levels(), sorted(trace.answer().sizes.tolist(), reverse=True)
    rows = levels.rows()
    assert [row["clusters"] for row in rows] == list(range(len(levels), 0, -1))
    # Sizes of the level are those of its parts; those of the answer, leftovers placed, are told beside them.
    note = "the answer: 2 of a size that counts; {} and {} with each object where it most probably belongs"
    assert [row["note"] for row in rows].count(note.format(*sizes)) == 1
    assert rows[levels.reading.chosen]["sizes"] != sizes
    assert list(levels.placed) == sizes
    assert np.isnan(rows[-1]["loss"])
    assert all(sum(row["sizes"]) == 82 for row in rows)
    assert str(levels).splitlines()[0].split()[:2] == ["clusters", "exchanged"]
    assert levels._repr_html_().count("<tr>") == len(levels) + 1
    for count in range(1, len(levels) + 1):
        assert levels.labels(count).max() + 1 == count
    with pytest.raises(ValueError, match=f"levels of 1 to {len(levels)} clusters; got 99"):
        levels.labels(99)


def test_tables_for_other_programs(tmp_path: Path) -> None:
    answer = made_trace().answer()
    answer.to_csv(tmp_path / "answer.csv")
    lines = (tmp_path / "answer.csv").read_text().splitlines()
    assert lines[0] == "object,cluster,probability,second_choice,leftover"
    assert len(lines) == 83
    assert lines[82].endswith("True")
    pandas = pytest.importorskip("pandas")
    frame = answer.to_frame()
    assert list(frame.columns[:4]) == ["cluster", "probability", "second_choice", "leftover"]
    np.testing.assert_allclose(frame[["cluster 0", "cluster 1"]].sum(axis=1), 1.0)
    assert isinstance(answer.table.to_frame(), pandas.DataFrame)


def test_one_cluster() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 2))
    draws = np.array([canonical_labels((rng.random(50) < 0.1).astype(int)) for _ in range(50)])
    answer = synthetic_trace(draws, Posterior.from_data(X, "II"), rng).answer()
    assert answer.n_clusters == 1
    assert answer.headline == "1 cluster of 50 objects"
    assert np.all(answer.second_choice == -1)
    assert answer.doubtful.size == 0
    assert "one cluster" in str(answer)
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
