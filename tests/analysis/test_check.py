"""What misleads the model is found, and what it was made for is left in peace."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.stats import skew
from sklearn.mixture import GaussianMixture
from traces import altered, own_trace, synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis.check import ModelCheck, _large_clusters, _within
from ewens_widgets.analysis.report import Report
from ewens_widgets.model.checks import skewness_of
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.trace import Trace

N_DRAWS = 200


def resting(X: np.ndarray, labels: np.ndarray, model: str = "III", shapes: str = "own") -> Trace:
    """A good chain that stays at one partition: its answer is these labels."""
    posterior, rng = Posterior.from_data(X, model=model, shapes=shapes), np.random.default_rng(0)
    draws = np.tile(labels, (N_DRAWS, 1))
    made = own_trace(posterior, rng, N_DRAWS) if shapes == "own" else synthetic_trace(draws, posterior, rng)
    noise = rng.normal(size=N_DRAWS)
    counts = {"proposals": np.full((N_DRAWS, 1), 6), "acceptances": np.full((N_DRAWS, 1), 3)}
    return altered(made, ("gibbs",), labels=draws, log_posterior=noise, **counts)


def gaussians(
    seed: int, n_clusters: int, n_features: int, per_cluster: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """Clusters with shapes of their own, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_clusters * per_cluster) % n_clusters
    roots = np.eye(n_features) + 0.3 * rng.normal(size=(n_clusters, n_features, n_features))
    rows = np.einsum("ij,ijk->ik", rng.normal(size=(labels.size, n_features)), roots[labels])
    # Apart in every column, so that no single column determines the clusters.
    centres = np.column_stack([10.0 * rng.permutation(n_clusters) for _ in range(n_features)])
    return rows + centres[labels], labels


def kinds(found: ModelCheck, severity: str = "warning") -> set[str]:
    return {finding.kind for finding in found.findings if finding.severity == severity}


def run(X: np.ndarray | ew.datasets.Dataset, draws: int = 60, **options: object) -> Trace:
    return ew.Sampler(X, model="III", seed=0, **options).sample(draws, burn_in=draws, progress=False)


OWN = {"shapes": "own", "prior": ew.priors.FiniteMixture()}
CLEAN = [(1, 1, 3), (2, 2, 2), (3, 3, 3), (4, 3, 4), (5, 4, 2)]


@pytest.mark.parametrize(("seed", "n_clusters", "n_features"), CLEAN)
def test_clean_gaussian_clusters_fit(seed: int, n_clusters: int, n_features: int) -> None:
    X, true = gaussians(seed, n_clusters, n_features)
    trace = run(X, initial=true, **OWN)
    assert ew.adjusted_rand(trace.answer().labels, true) > 0.95
    found = trace.report(X)
    assert found.check.fits, str(found.check)
    assert found.verdict != "model misfit"
    assert found.check.headline in found.reasons


def test_common_shapes_are_not_trusted_on_wine() -> None:
    wine = ew.datasets.wine()
    trace = run(wine)
    found = trace.report(wine)
    assert "shapes" in kinds(found.check)
    text = str(found)
    assert "Trust this run" not in text
    assert "The clusters do not have one common shape" in text
    assert 'shapes="own"' in text


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_the_skewness_of_a_column_has_no_unit(unit: float) -> None:
    column = np.random.default_rng(0).lognormal(size=200)
    assert skewness_of(unit * column) == pytest.approx(skew(column), rel=1e-12)
    assert skewness_of(np.full(5, unit)) == 0.0


@pytest.mark.slow
def test_a_lognormal_sample_is_told_to_take_logarithms() -> None:
    X = np.exp(np.random.default_rng(0).normal(size=(300, 3)))
    trace = run(X, draws=1_000, **OWN)
    found = trace.report(X)
    assert "skewed columns" in kinds(found.check)
    assert any("Take logarithms of column(s) 0, 1, 2" in step for step in found.advice)
    assert "Trust this run" not in str(found)
    assert not trace.check().fits, "without the data too"
    after = run(np.log(X), **OWN)
    assert after.answer().n_clusters == 1
    assert after.check(np.log(X)).fits


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [3, 6])
def test_a_long_tail_that_was_cut_is_still_one(n_clusters: int) -> None:
    logs = np.random.default_rng(0).normal(size=(300, 3))
    # Cut across the tail, so that no piece is very skewed.
    labels = GaussianMixture(n_clusters, random_state=0).fit_predict(np.exp(logs))
    found = resting(np.exp(logs), canonical_labels(labels)).check(np.exp(logs))
    assert "skewed columns" in kinds(found)
    assert any("Take logarithms of column(s)" in finding.way_out for finding in found.findings)
    # The same pieces of Gaussian columns are no tail.
    assert "skewed columns" not in kinds(resting(logs, canonical_labels(labels)).check(logs))


def assert_doubted(found: Report, kind: str) -> None:
    assert kind in kinds(found.check)
    assert found.verdict == "model misfit"
    assert "the number of clusters is unreliable" in found.headline
    text, html = str(found), found._repr_html_()
    for finding in found.check.findings:
        assert finding.sentence in text
        assert finding.way_out in text
    assert "the number of clusters is unreliable" in html


def batch(noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    labels = np.arange(150) % 2
    return np.column_stack([rng.normal(size=(150, 2)), 9.0 * labels + noise * rng.normal(size=150)]), labels


@pytest.mark.parametrize("shapes", ["common", "own"])
@pytest.mark.parametrize(("noise", "kind"), [(0.0, "few values"), (1.0, "deciding column")])
def test_a_batch_column_is_named(noise: float, kind: str, shapes: str) -> None:
    X, labels = batch(noise)
    trace = resting(X, labels, shapes=shapes)
    assert_doubted(trace.report(X), kind)
    (finding,) = [finding for finding in trace.check(X).findings if finding.kind == kind]
    assert finding.columns == (2,)
    assert finding.way_out.startswith("Drop column")
    # Without the data, model III can only see that a direction has no spread at all within clusters.
    assert kinds(trace.check()) == ({"constant"} if noise == 0.0 else set())


def test_a_single_group_without_spread_is_found() -> None:
    X, labels = gaussians(0, 3, 3)
    assert "constant" not in kinds(resting(X, labels).check())
    X[labels == 1, 2] = 4.0
    assert kinds(resting(X, labels).check()) == {"constant"}


def test_columns_that_share_the_decision_are_left_in_peace() -> None:
    X, labels = batch(1.0)
    X[:, 0] += 3.0 * labels
    assert resting(X, labels).check(X).fits


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_a_duplicated_column_is_named(model: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    X = np.column_stack([X, X[:, 1] + 1e-4 * rng.normal(size=120)])
    with pytest.warns(ew.DataWarning) if model != "III" else nullcontext():
        trace = resting(X, np.zeros(120, dtype=np.intp), model=model)
    found = trace.report(X)
    assert_doubted(found, "dependent columns")
    (finding,) = [finding for finding in found.check.findings if finding.kind == "dependent columns"]
    assert finding.columns == (3,)
    assert "3 is a copy of 1" in finding.sentence
    # Models I and II have the columns as coordinates.
    assert ("dependent columns" in kinds(trace.check())) == (model != "III")


def test_row_numbers_and_coarse_columns_are_named() -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=(100, 2)), np.arange(100.0), np.round(3 * rng.normal(size=100))])
    found = resting(X, np.zeros(100, dtype=np.intp)).check(X)
    assert {finding.kind: finding.columns for finding in found.findings if finding.columns} == {
        "row numbers": (2,),
        "coarse values": (3,),
    }


def test_tails_are_not_taken_for_skewness() -> None:
    X = np.random.default_rng(5).standard_t(3, size=(300, 3))
    found = resting(X, np.zeros(300, dtype=np.intp)).check(X)
    assert kinds(found) == {"tails"}
    assert kinds(found, "note") == {"outliers"}


def test_a_single_outlier_is_a_note() -> None:
    X = np.random.default_rng(6).normal(size=(400, 4))
    X[17] = 6.0 * np.array([1.0, -1.0, 0.0, 0.0])
    found = resting(X, np.zeros(400, dtype=np.intp)).check()
    assert found.fits
    assert [finding.objects for finding in found.findings if finding.kind == "outliers"] == [(17,)]


@pytest.mark.parametrize("model", ["I", "II"])
def test_forms_that_the_model_leaves_out_are_found(model: str) -> None:
    rng = np.random.default_rng(8)
    long = rng.normal(size=(150, 2)) @ np.array([[1.0, 0.9], [0.0, 0.4]])
    kind = "uneven variances" if model == "I" else "correlation"
    assert kinds(resting(long, np.zeros(150, dtype=np.intp), model=model).check()) == {kind}
    assert resting(rng.normal(size=(150, 2)), np.zeros(150, dtype=np.intp), model=model).check().fits


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_common_shapes_are_compared(model: str) -> None:
    rng = np.random.default_rng(9)
    labels = np.arange(160) % 2
    X = rng.normal(size=(160, 2)) + 10.0 * labels[:, None]
    assert resting(X, labels, model=model, shapes="common").check().fits
    X[labels == 1] = 10.0 + 3.0 * (X[labels == 1] - 10.0)
    assert kinds(resting(X, labels, model=model, shapes="common").check()) == {"shapes"}
    assert resting(X, labels, model=model, shapes="own").check().fits


MAPS = {
    "I": 3.0 * np.array([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, -1.0]]),
    "II": np.diag([1e3, -2.0, 0.01]),
    "III": np.array([[4.1, 1.1, 0.0], [2.1, 1.1, -3.0], [0.5, 0.0, 1.0]]),
}


@pytest.mark.parametrize("model", MAPS)
def test_what_is_said_of_shapes_is_invariant(model: str) -> None:
    rng = np.random.default_rng(10)
    labels = np.arange(200) % 2
    X = rng.gamma(1.5, size=(200, 3)) * (1.0 + 2.0 * labels[:, None]) + 20.0 * labels[:, None]

    def said(rows: np.ndarray) -> list[tuple[object, ...]]:
        # Before columns are looked at, which model I may see rotated.
        posterior = Posterior.from_data(rows, model=model)
        clusters = _large_clusters(posterior, labels)
        assert clusters is not None
        return [
            (finding.kind, finding.severity, finding.sentence, finding.objects)
            for finding in _within(posterior, clusters)
        ]

    before = said(X)
    assert {kind for kind, *_ in before} >= {"shapes", "skewness"}
    assert said(X @ MAPS[model].T + 5.0) == before


def test_foreign_data_are_refused() -> None:
    X, labels = gaussians(0, 2, 3)
    trace = resting(X, labels)
    with pytest.raises(ValueError, match="120 × 3"):
        trace.check(X[:, :2])
    with pytest.raises(ValueError, match="not the data that the trace is of"):
        trace.check(X[::-1])
    with pytest.raises(ValueError, match="no draws"):
        trace[:0].check()


def test_text_and_html_say_the_same() -> None:
    X, labels = batch(0.0)
    data = ew.datasets.Dataset(name="made", X=X, feature_names=("height", "width", "<batch>"))
    found = resting(X, labels).check(data)
    text, html = str(found), found._repr_html_()
    assert text.startswith(found.headline)
    assert "'<batch>'" in text
    assert "&lt;batch&gt;" in html
    assert "<batch>" not in html
    assert html.count("<tr>") == 1 + len(found.findings)
    assert "needs the data" in str(resting(X, labels).check())
    assert "needs the data" not in text


def test_too_few_rows_are_told() -> None:
    rng = np.random.default_rng(11)
    found = resting(rng.normal(size=(7, 6)), np.zeros(7, dtype=int), model="II").check()
    assert not found.knows_forms
    assert found.fits
    assert "too few rows" in str(found)
