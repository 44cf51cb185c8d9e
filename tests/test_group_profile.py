"""What tells groups apart, summaries of anybody's labels, and words for a paper."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset

# A short run need not converge to be described.
pytestmark = pytest.mark.filterwarnings("ignore:the chains have not converged", "ignore:the draws separate")

Floats = NDArray[np.float64]


def test_a_profile_agrees_with_textbook_formulas() -> None:
    wine = ew.datasets.wine()
    found = ew.profile(wine.labels, wine)
    place = wine.feature_names.index("alcohol")
    groups = [wine.X[wine.labels == k, place] for k in range(3)]
    np.testing.assert_allclose(found.means[:, place], [g.mean() for g in groups])
    np.testing.assert_allclose(found.deviations[:, place], [g.std() for g in groups])
    total, within = (
        np.sum((wine.X[:, place] - wine.X[:, place].mean()) ** 2),
        sum(g.var() * g.size for g in groups),
    )
    assert found.alone[place] == pytest.approx(1.0 - within / total)
    pooled = np.sqrt(within / (178 - 3))
    rest = np.concatenate(groups[1:]).mean()
    assert found.differences[0, place] == pytest.approx((groups[0].mean() - rest) / pooled)
    # Wilks' lambda without a column, over that with it.
    others = np.delete(wine.X, place, axis=1)

    def wilks(X: Floats) -> float:
        inner = X - np.array([X[wine.labels == k].mean(axis=0) for k in range(3)])[wine.labels]
        outer = X - X.mean(axis=0)
        return float(np.linalg.slogdet(inner.T @ inner)[1] - np.linalg.slogdet(outer.T @ outer)[1])

    assert found.beyond_others[place] == pytest.approx(1.0 - np.exp(wilks(wine.X) - wilks(others)), rel=1e-4)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(wine.X, wine.labels)
    np.testing.assert_allclose(found.direction_shares, lda.explained_variance_ratio_[:2], rtol=1e-4)
    spread = np.sqrt(wine.X.var(axis=0) * 178 * (1.0 - found.alone) / 175)
    along = wine.X @ (found.directions[:, 0] / spread)
    assert abs(np.corrcoef(along, lda.transform(wine.X)[:, 0])[0, 1]) > 0.9999
    assert sum(along[wine.labels == k].var() * np.sum(wine.labels == k) for k in range(3)) == pytest.approx(
        175
    )


def groups_with_categories() -> tuple[Dataset, NDArray[np.intp]]:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [30, 50])
    colour = np.where(rng.random(80) < 0.1, 1 - labels, labels).astype(float)
    colour[5] = np.nan
    X = np.column_stack([labels * 3.0 + rng.normal(size=80), rng.normal(size=80), colour, np.arange(80)])
    names = ("size", "noise", "colour", "nr")
    return Dataset(X, feature_names=names, kinds=["number", "number", "category", "left out"]), labels


def test_categories_have_shares_and_columns_left_out_are_not_described() -> None:
    data, labels = groups_with_categories()
    found = ew.profile(labels, data)
    assert found.columns == ("size", "noise", "colour")
    levels, shares = found.shares["colour"]
    assert levels == ("0", "1")
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    first = data.X[:30, 2]
    assert shares[0, 0] == pytest.approx(np.mean(first[~np.isnan(first)] == 0.0))
    assert [row[0] for row in found.table()] == ["column", "size", "colour", "noise"]
    assert "Group 0 (30 objects): low size" in str(found)
    assert "colour mostly 0" in str(found)
    frame = found.to_frame()
    assert len(frame) == 6
    assert set(frame["column"]) == {"size", "noise", "colour"}
    assert found.plot().axes[0].get_yticklabels()[0].get_text() == "size"
    assert "<table" in found._repr_html_()
    with pytest.raises(ValueError, match="one group only"):
        ew.profile(np.zeros(80), data)
    fitted = ew.AffineClustering("II", n_chains=1, draws=60, n_clusters=2, random_state=0).fit(data)
    found = fitted.profile()
    assert found.columns == ("size", "noise", "colour")
    assert found.table() == fitted.profile(data).table()
    assert ew.adjusted_rand(labels, fitted.labels_) > 0.5


def test_draws_of_any_sampler_are_summarised_as_ours() -> None:
    data = ew.datasets.unit_square(seed=0)
    chains = [
        ew.Sampler(data, model="I", seed=k, initial="k-means").sample(80, burn_in=20, progress=False)
        for k in (1, 2)
    ]
    # Other names of the clusters in every draw.
    names = np.random.default_rng(0).permutation(1000)
    found = ew.summarize(np.stack([names[chain.labels + 7] for chain in chains]))
    whole = ew.Trace.concatenate(chains)
    np.testing.assert_array_equal(found.similarity(), whole.similarity())
    np.testing.assert_array_equal(found.n_clusters, whole.n_clusters)
    ours = found.point_estimate().expected_loss
    assert whole.point_estimate().expected_loss == pytest.approx(ours, rel=0.02)
    assert found.point_estimate("binder").credible_ball().radius > 0.0
    assert found.diagnostics().rhat["n_clusters"] == pytest.approx(ew.diagnose(whole).rhat["n_clusters"])
    sizes = [int(row.labels.max()) + 1 for row in found.merges()]
    assert sizes == list(range(sizes[0], 0, -1))
    assert "160 draws of 2 chains, 80 objects" in str(found)
    assert found.plot().axes
    assert len(ew.summarize(chains[0].labels)) == 80
    for labels, message in (
        ([[0.5, 1.0]], "whole numbers"),
        ([1, 2, 3], "draws × objects"),
        (np.zeros((0, 3), dtype=int), "draws ×"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ew.summarize(labels)


def test_methods_have_the_numbers_of_the_run() -> None:
    data, _ = groups_with_categories()
    trace = ew.Sampler(
        data, model="II", shapes="own", prior=ew.priors.FiniteMixture(), initial="k-means", seed=1
    ).sample(60, burn_in=40, thin=2, progress=False)
    text = trace.methods()
    for part in (
        "80 objects with 4 columns (2 number, 1 category, 1 left out)",
        "Model II, invariant to a separate scale for each column, had a covariance for each cluster",
        "FiniteMixture(",
        "One Markov chain of 60 draws, one every 2 iterations, after at least 41 iterations of burn-in",
        f"R-hat was {ew.diagnose(trace).worst_rhat:.3f}",
        f"{trace.answer().n_clusters} group",
        "Column 'colour' is a category",
    ):
        assert part in text
    entries = ew.cite()
    assert entries.count("@") == 7
    assert all(entry.count("{") == entry.count("}") for entry in entries.split("\n\n"))
    assert "escobar" not in ew.cite(trace)
    assert "miller2018" in ew.cite(trace)
