import signal
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import ewens_widgets as ew
from ewens_widgets import estimator as module
from ewens_widgets.arguments import TooLargeError
from ewens_widgets.estimator import AffineClustering
from ewens_widgets.sampling.sampler import Sampler

try:
    from sklearn.callback import CallbackContext
except ImportError:  # scikit-learn before 1.9
    CallbackContext = object

# One chain with the family of shapes that is compiled fastest, and its point estimate.
SHORT = {
    "draws": 100,
    "burn_in": 50,
    "random_state": 0,
    "shapes": "common",
    "n_chains": 1,
    "loss": "vi",
}
# What nothing is told about, but on few draws.
PLAIN = {"draws": 12, "burn_in": 6, "random_state": 0}


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(n_samples=60, n_features=3, centers=3, cluster_std=1.0, random_state=1)
    return X, y


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_finds_blobs_and_their_number(model: str, blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    clustering = AffineClustering(model=model, **SHORT).fit(X)
    assert clustering.n_clusters_ == 3
    assert ew.error_rate(y, clustering.labels_) == 0.0
    assert clustering.estimate_.n_clusters == 3
    assert clustering.similarity_.shape == (60, 60)
    assert clustering.n_iter_ == 150
    assert clustering.n_features_in_ == 3
    assert len(clustering.trace_) == 100


@pytest.mark.parametrize("n_clusters", [None, 2])
def test_own_shapes_and_other_priors(n_clusters: int | None, blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    settings = {**SHORT, "shapes": "own", "prior": ew.priors.FiniteMixture(), "n_clusters": n_clusters}
    clustering = clone(AffineClustering(model="II", **settings)).fit(X)
    assert clustering.trace_.posterior.shapes == "own"
    assert isinstance(clustering.trace_.posterior.prior, ew.priors.FiniteMixture)
    assert clustering.n_clusters_ == (3 if n_clusters is None else 2)
    if n_clusters is None:
        assert ew.error_rate(y, clustering.predict(X)) == 0.0
        assert clustering.predict_novelty(X.mean(axis=0)[None] + 1e4)[0] > clustering.predict_novelty(X).max()


def test_is_the_chain_of_the_sampler(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = blobs
    trace = ew.Sampler(X, model="III", seed=5).sample(60, 30, progress=False)
    fitted = AffineClustering(**{**SHORT, "draws": 60, "burn_in": 30, "random_state": 5}).fit(X)
    np.testing.assert_array_equal(fitted.trace_.labels, trace.labels)
    np.testing.assert_array_equal(fitted.labels_, trace.point_estimate("vi").labels)


@pytest.fixture(scope="module")
def two_groups() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(16, 2))
    X[8:] += 12.0
    return X


def test_several_chains_of_own_shapes_by_default(two_groups: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = AffineClustering(**PLAIN).fit(two_groups)
    assert fitted.trace_.posterior.shapes == "own"
    assert isinstance(fitted.trace_.posterior.prior, ew.priors.FiniteMixture)
    assert [len(trace) for trace in fitted.chains_] == [12] * 4
    assert fitted.chains_.starts == ("one-cluster", "k-means", "prior", "one-cluster")
    assert fitted.n_iter_ == 4 * 18
    np.testing.assert_array_equal(fitted.labels_, fitted.chains_.pooled().answer().labels)
    np.testing.assert_array_equal(fitted.memberships_, fitted.answer_.memberships)
    assert fitted.n_clusters_ == fitted.answer_.n_clusters
    assert fitted.predict_proba(two_groups).shape == (16, fitted.n_clusters_)
    # Densities are in the units of the data.
    wider = fitted.score_samples(two_groups[:3])
    assert np.isfinite(wider).all()
    assert fitted.score(two_groups) > fitted.score(two_groups + 100.0)


def test_chains_that_disagree_come_with_a_warning(two_groups: np.ndarray) -> None:
    with pytest.warns(ConvergenceWarning, match="have not converged after 4 draws of each"):
        AffineClustering(shapes="common", n_chains=2, draws=4, burn_in=0, random_state=0).fit(two_groups)


def test_the_default_run_has_a_bound_that_depends_on_the_size() -> None:
    assert list(module._goal(178, 13).counts())[:2] == [149, 223]
    assert module._goal(178, 13).most == 4000
    assert module._goal(2000, 10).most == 1041
    assert list(module._goal(20_000, 10).counts()) == [100, 150, 225, 337, 505, 600]
    assert module._starts(20_000, 3, 2, "III", "own") == ["k-means", "k-means"]
    assert module._starts(20_000, 3, 1, "III", "common") == ["k-means"]
    assert module._starts(100, 3, 2, "III", "common") is None
    assert module._starts(200, 30, 2, "III", "own") == ["mixture", "mixture"]
    assert module._starts(200, 30, 2, "II", "own") == ["one-cluster", "k-means"]


def test_by_default_the_first_half_of_each_chain_is_its_burn_in(two_groups: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = AffineClustering(random_state=0).fit(two_groups)
        given = AffineClustering(random_state=0, burn_in=30).fit(two_groups)
    done = fitted.n_iter_ // 4
    assert [trace.iterations.tolist() for trace in fitted.chains_] == [
        list(range(done // 2 + 1, done + 1))
    ] * 4
    assert fitted.chains_.reached
    # A burn-in that is given stays, and every later draw is kept; the chains are the same.
    assert given.chains_[0].iterations[0] == 31
    assert given.n_iter_ == 4 * (30 + given.chains_.draws)
    both = slice(max(done // 2, 30), min(done, 30 + given.chains_.draws))
    early, late = (
        given.chains_[1].labels[both.start - 30 :],
        fitted.chains_[1].labels[both.start - done // 2 :],
    )
    np.testing.assert_array_equal(early[: both.stop - both.start], late[: both.stop - both.start])


def test_three_clusters_in_thirty_columns_are_found() -> None:
    """Chains from one cluster stay hundreds of nats below; those from mixtures do not."""
    rng = np.random.default_rng(0)
    known = np.repeat([0, 1, 2], 67)
    X = rng.standard_normal((201, 30))
    X[known == 1, 0] += 6.0
    X[known == 2, 1] += 6.0
    settings = {"n_chains": 2, "draws": 50, "burn_in": 50, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = AffineClustering(**settings).fit(X @ rng.standard_normal((30, 30)))
        other = AffineClustering(initial="one-cluster", **settings).fit(X)
    assert found.chains_.starts == ("mixture", "mixture")
    assert ew.adjusted_rand(known, found.labels_) > 0.9
    assert found.trace_.log_posterior.max() > other.trace_.log_posterior.max() + 100.0


def test_scores_follow_the_units(two_groups: np.ndarray) -> None:
    settings = {**SHORT, "draws": 10, "burn_in": 10}
    plain = AffineClustering(**settings).fit(two_groups).score(two_groups)
    wide = AffineClustering(**settings).fit(two_groups * 10.0).score(two_groups * 10.0)
    assert wide == pytest.approx(plain - 2 * np.log(10.0))


@pytest.mark.parametrize("tree", ["consensus", "evidence", "average", "complete"])
@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_a_number_cuts_a_tree(tree: str, n_clusters: int, blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    clustering = AffineClustering(n_clusters=n_clusters, tree=tree, **SHORT).fit(X)
    assert clustering.n_clusters_ == n_clusters == len(set(clustering.labels_.tolist()))
    np.testing.assert_array_equal(
        clustering.labels_, clustering.tree_.cut(n_clusters=n_clusters), strict=True
    )
    if n_clusters == 3:
        assert ew.error_rate(y, clustering.labels_) == 0.0


def test_the_evidence_tree_starts_from_a_draw_with_enough_clusters() -> None:
    X = ew.datasets.unit_square(seed=3).X
    settings = {"model": "I", "tree": "evidence", **SHORT}
    more = int(AffineClustering(n_clusters=1, **settings).fit(X).trace_.best.max()) + 2
    clustering = AffineClustering(n_clusters=more, **settings).fit(X)
    assert int(clustering.trace_.best.max()) + 1 < more
    assert clustering.n_clusters_ == more


def test_a_tree_that_fits_in_memory_is_chosen(
    monkeypatch: pytest.MonkeyPatch, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = blobs
    roomy = AffineClustering(n_clusters=3, **SHORT).fit(X)
    assert roomy.tree_.method.startswith("consensus")
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "50000")  # the pairs of 60 rows need 86 400 bytes
    narrow = AffineClustering(n_clusters=3, **SHORT).fit(X)
    assert narrow.tree_.kind == "evidence"
    assert ew.error_rate(y, narrow.labels_) == 0.0


@pytest.mark.parametrize("tree", ["consensus", "single", "average", "complete"])
def test_a_tree_that_does_not_fit_is_refused_before_sampling(
    tree: str, monkeypatch: pytest.MonkeyPatch, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    def sampled(*_: object, **__: object) -> None:
        raise AssertionError("the chain was run")

    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "50000")
    monkeypatch.setattr(Sampler, "_run", sampled)
    with pytest.raises(TooLargeError, match='Use tree="evidence"'):
        AffineClustering(n_clusters=3, tree=tree, **SHORT).fit(blobs[0])


def test_small_clusters_do_not_count() -> None:
    moons = ew.datasets.half_moons(seed=1)
    settings = {**SHORT, "draws": 1000, "burn_in": 500, "random_state": 1}
    clustering = AffineClustering("II", n_clusters=2, tree="single", min_size=10, **settings)
    assert ew.error_rate(moons.labels, clustering.fit_predict(moons)) == 0.0


@pytest.mark.parametrize("tree", ["consensus", "evidence", "single"])
def test_fewer_clusters_than_asked_for_come_with_a_warning(tree: str) -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 9.0]], 4, axis=0) + 1e-9 * np.arange(24).reshape(12, 2) ** 2
    clustering = AffineClustering("II", n_clusters=11, tree=tree, **{**SHORT, "draws": 20, "burn_in": 20})
    with pytest.warns(ConvergenceWarning, match="fewer than n_clusters=11"):
        clustering.fit(X)
    assert clustering.n_clusters_ < 11
    assert clustering.predict_proba(X).shape == (12, clustering.n_clusters_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "at least 1; got 0"),
        ({"n_clusters": 2.5}, "got 2.5"),
        ({"n_clusters": 61}, "n_samples=60 should be >= n_clusters=61"),
        ({"tree": "ward"}, "tree must be one of"),
        ({"model": "IV"}, "model"),
        ({"draws": 0}, "draws"),
        ({"loss": "rand"}, "loss"),
        ({"min_size": 3}, "min_size=3 applies only if n_clusters is given"),
        ({"n_chains": 0}, "n_chains"),
        ({"concentration": -1.0}, "concentration"),
    ],
)
def test_wrong_settings_are_refused_when_fitting(
    settings: dict[str, object], message: str, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match=message):
        AffineClustering(**{**SHORT, **settings}).fit(blobs[0])


def test_random_states(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = blobs
    first = AffineClustering(**{**SHORT, "random_state": np.random.RandomState(3)}).fit(X)
    second = AffineClustering(**{**SHORT, "random_state": np.random.RandomState(3)}).fit(X)
    np.testing.assert_array_equal(first.trace_.labels, second.trace_.labels)
    fresh = [AffineClustering(**{**SHORT, "random_state": None}).fit(X).trace_.labels for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_probabilities_of_new_rows(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = blobs
    clustering = AffineClustering(**SHORT).fit(X)
    more, true = make_blobs(n_samples=200, n_features=3, centers=3, cluster_std=1.0, random_state=1)
    probabilities = clustering.predict_proba(more)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clustering.predict(more), probabilities.argmax(axis=1))
    assert ew.error_rate(true, clustering.predict(more)) == 0.0
    # The names of the clusters are those of `labels_`.
    np.testing.assert_array_equal(clustering.predict(X), clustering.labels_)
    novelty = clustering.predict_novelty(np.vstack([X[:5], X[:5] + 100.0]))
    assert novelty[:5].max() < 0.2
    assert novelty[5:].min() > 0.5
    np.testing.assert_array_equal(clustering.transform(more), probabilities)


def test_new_rows_in_other_coordinates(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = blobs
    mix = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -3.0], [5.0, 0.0, 1.0]])
    new = X[:20] + 0.7
    plain = AffineClustering(**SHORT).fit(X)
    mixed = AffineClustering(**SHORT).fit(X @ mix + 4.0)
    np.testing.assert_array_equal(plain.labels_, mixed.labels_)
    np.testing.assert_allclose(plain.predict_proba(new), mixed.predict_proba(new @ mix + 4.0), atol=1e-6)


def test_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        AffineClustering().predict_proba([[1.0, 2.0]])
    assert not hasattr(AffineClustering(), "similarity_")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of clusters that touch
def test_four_small_clusters_that_touch_are_found_without_a_number() -> None:
    """Data of the first five seeds: mclust's BIC, with the same four, has a mean index of 0.85."""
    scores = []
    for seed in range(5):
        data = ew.datasets.unit_square(transform="III", seed=seed)
        found = AffineClustering(random_state=seed).fit(data.X)
        assert found.n_clusters_ == 4, f"seed {seed}"
        scores.append(ew.adjusted_rand(data.labels, found.labels_))
    assert np.mean(scores) >= 0.85
    # A prior that has one component most probably loses them in one of the five.
    data = ew.datasets.unit_square(transform="III", seed=3)
    assert AffineClustering(prior=ew.priors.FiniteMixture(), random_state=3).fit(data.X).n_clusters_ < 4


@pytest.mark.slow
@pytest.mark.parametrize(("load", "at_least"), [(load_wine, 0.9), (load_iris, 0.85)], ids=["wine", "iris"])
def test_known_kinds_are_found_without_a_number(load: Callable[..., tuple], at_least: float) -> None:
    X, kinds = load(return_X_y=True)
    found = AffineClustering(random_state=0).fit_predict(X)
    assert found.max() == 2
    assert ew.adjusted_rand(kinds, found) >= at_least


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of a dozen draws
@pytest.mark.parametrize("settings", [PLAIN, {"n_clusters": 3, **SHORT}, {"model": "I", **SHORT}])
def test_scikit_learn_is_content(settings: dict[str, object]) -> None:
    results = check_estimator(AffineClustering(**settings), on_skip=None)
    assert len(results) > 40
    assert {result["status"] for result in results} <= {"passed", "skipped"}


def test_clone_pipeline_and_search(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    clustering = AffineClustering(
        "II", concentration=ew.Gamma(1.0, 1.0), theta_grid=[1.0, 4.0, 16.0], **SHORT
    )
    copy = clone(clustering)
    assert copy.get_params() == clustering.get_params()
    assert copy.set_params(n_clusters=2).n_clusters == 2
    pipeline = make_pipeline(StandardScaler(), PCA(2), clustering)
    assert ew.error_rate(y, pipeline.fit_predict(X)) == 0.0
    assert pipeline.predict_proba(X).shape == (60, 3)
    search = GridSearchCV(
        AffineClustering(**SHORT),
        {"n_clusters": [2, 3], "model": ["I", "III"]},
        scoring=make_scorer(adjusted_rand_score),
        cv=2,
    )
    assert search.fit(X, y).best_params_["n_clusters"] == 3


def test_data_frames_and_output_names(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    pandas = pytest.importorskip("pandas")
    X, _ = blobs
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    clustering = AffineClustering(**SHORT).set_output(transform="pandas").fit(frame)
    assert clustering.feature_names_in_.tolist() == ["a", "b", "c"]
    names = [f"affineclustering{number}" for number in range(3)]
    assert clustering.get_feature_names_out().tolist() == names
    out = clustering.transform(frame)
    assert out.columns.tolist() == names
    assert len(out) == 60


def test_a_long_run_without_room_for_pairs(
    monkeypatch: pytest.MonkeyPatch, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "25000")
    clustering = AffineClustering(**{**SHORT, "draws": 10}).fit(blobs[0])
    assert clustering.estimate_.source.endswith(("draws", "the evidence tree"))


class Recorder:
    """A callback of scikit-learn that writes down what it is told."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.told: list[str] = []
        self.fitted: list[AffineClustering | None] = []
        self.steps: int | None = None
        self.stop_after = stop_after

    def setup(self, estimator: AffineClustering, context: CallbackContext) -> None:
        self.hear("setup", estimator, context)

    def teardown(self, estimator: AffineClustering, context: CallbackContext) -> None:
        self.hear("teardown", estimator, context)

    def hear(self, what: str, estimator: AffineClustering, context: CallbackContext) -> None:
        assert context.estimator_name == type(estimator).__name__ == "AffineClustering"
        self.told.append(what)

    def on_fit_task_begin(self, estimator: AffineClustering, context: CallbackContext) -> None:
        self.hear(f"begin {context.task_name}", estimator, context)
        if context.parent is None:
            self.steps = context.max_subtasks

    def on_fit_task_end(
        self,
        estimator: AffineClustering,
        context: CallbackContext,
        *,
        fitted_estimator: AffineClustering | None = None,
    ) -> bool:
        self.hear(f"end {context.task_name}", estimator, context)
        self.fitted.append(fitted_estimator)
        return self.stop_after is not None and self.told.count(f"end {context.task_name}") >= self.stop_after


callbacks = pytest.mark.skipif(not module._HAS_CALLBACKS, reason="scikit-learn before 1.9 has no callbacks")


@callbacks
def test_callbacks_hear_of_each_step(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = blobs
    recorder = Recorder()
    watched = AffineClustering(**SHORT).set_callbacks(recorder).fit(X)
    assert recorder.told[:2] == ["setup", "begin fit"]
    assert recorder.told[-2:] == ["end fit", "teardown"]
    steps = [entry for entry in recorder.told if entry in {"end burn-in", "end sampling"}]
    assert len(steps) == recorder.steps == 19
    assert steps == sorted(steps)
    # Watching does not change the chain.
    alone = AffineClustering(**SHORT).fit(X)
    np.testing.assert_array_equal(watched.trace_.labels, alone.trace_.labels)
    np.testing.assert_array_equal(watched.labels_, alone.labels_)
    assert watched.n_iter_ == alone.n_iter_
    # What it would have been if it had stopped there: nothing during burn-in, usable from then on.
    assert recorder.fitted[0] is None
    assert recorder.fitted[-1].predict(X[:2]).shape == (2,)
    assert len(recorder.fitted[-3].trace_) < 100


@callbacks
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_callback_may_stop_the_chain(stop_after: int, blobs: tuple[np.ndarray, np.ndarray]) -> None:
    burned = AffineClustering(**SHORT).set_callbacks(Recorder(stop_after)).fit(blobs[0])
    assert len(burned.trace_) == 1
    short = AffineClustering(**{**SHORT, "burn_in": 0}).set_callbacks(Recorder(stop_after)).fit(blobs[0])
    assert len(short.trace_) == 5 * stop_after


def press_ctrl_c(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Send one interrupt, as Ctrl-C does, when recorders have got so many draws, in blocks of at most 5."""
    pressed: list[int] = []
    kept: dict[int, tuple[object, int]] = {}  # with the recorder itself, so that no other gets its number
    run = Sampler._run

    def run_and_press(self: Sampler, *arguments: int, **named: Any) -> object:  # noqa: ANN401 - whatever it takes
        block = run(self, *arguments, **named)
        recorder = named.get("recorder")
        if recorder is not None:
            kept[id(recorder)] = recorder, len(recorder)
        total = sum(count for _, count in kept.values())
        if not pressed and total >= after:
            pressed.append(total)
            signal.raise_signal(signal.SIGINT)
        return block

    monkeypatch.setattr(Sampler, "_largest_block", lambda _: 5)
    monkeypatch.setattr(Sampler, "_run", run_and_press)


@pytest.mark.parametrize("has_callbacks", [False, pytest.param(True, marks=callbacks)])
def test_an_interrupt_goes_through_and_the_draws_are_kept(
    has_callbacks: bool, monkeypatch: pytest.MonkeyPatch, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    monkeypatch.setattr(module, "_HAS_CALLBACKS", has_callbacks)
    X, _ = blobs
    whole = AffineClustering(**SHORT).fit(X).trace_
    # In the main thread, which gets the signal: a thread would be at its end by then.
    clustering = AffineClustering(**SHORT, n_jobs=1).fit(X[:30])
    press_ctrl_c(monkeypatch, 30)
    with pytest.raises(KeyboardInterrupt):
        clustering.fit(X)
    kept = clustering.interrupted_trace
    assert 20 <= len(kept) < 100
    np.testing.assert_array_equal(kept.labels, whole.labels[: len(kept)])
    with pytest.raises(NotFittedError):
        clustering.predict(X)
    assert clustering.fit(X).n_clusters_ == 3
    assert not hasattr(clustering, "interrupted_trace")


@callbacks
def test_an_interrupt_goes_through_while_callbacks_watch(
    monkeypatch: pytest.MonkeyPatch, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    watched = AffineClustering(**SHORT, n_jobs=1).set_callbacks(Recorder())
    press_ctrl_c(monkeypatch, 20)
    with pytest.raises(KeyboardInterrupt):
        watched.fit(blobs[0])
    assert watched.interrupted_trace is not None
    assert len(watched.interrupted_trace) >= 5


def test_an_interrupt_ends_a_cross_validation(
    monkeypatch: pytest.MonkeyPatch, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    press_ctrl_c(monkeypatch, 20)
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(AffineClustering(**SHORT), *blobs, scoring=make_scorer(adjusted_rand_score), cv=3)


@pytest.mark.parametrize(
    "text",
    [
        [[1.0, "x"], [2.0, "y"], [3.0, "z"]],
        np.array([["1", "x"], ["2", "y"], ["3", "z"]]),
        np.array([[1.0, "x"], [2.0, "y"], [3.0, "z"]], dtype=object),
        pd.DataFrame({"length": [1.0, 2.0, 3.0], "kind": ["x", "y", "z"]}),
        pd.DataFrame({"length": [1.0, 2.0, 3.0], "kind": pd.Categorical(["x", "y", "z"])}),
    ],
    ids=["list", "array", "objects", "frame", "categories"],
)
def test_text_is_refused_with_the_way_out(text: object, blobs: tuple[np.ndarray, np.ndarray]) -> None:
    message = r"data must be numeric, but a value could not be read as a number.*Drop or encode the columns"
    with pytest.raises(ValueError, match=message):
        AffineClustering(**SHORT).fit(text)
    with pytest.raises(ValueError, match=message):
        AffineClustering(**SHORT).fit(blobs[0][:, :2]).predict(text)


@callbacks
def test_the_progress_bar_of_scikit_learn(
    capsys: pytest.CaptureFixture[str], blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    from sklearn.callback import ProgressBar

    AffineClustering(**SHORT).set_callbacks(ProgressBar()).fit(blobs[0])
    shown = capsys.readouterr().out
    assert "AffineClustering - fit" in shown
    assert "100%" in shown


def test_works_without_callbacks(
    monkeypatch: pytest.MonkeyPatch, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    expected = AffineClustering(**SHORT).fit(blobs[0]).labels_
    monkeypatch.setattr(module, "_HAS_CALLBACKS", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(AffineClustering(**SHORT).fit(blobs[0]).labels_, expected)
