"""Which part of a table is Gaussian: directions of rounding, categories, and what is said of them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

import ewens_widgets as ew
from ewens_widgets.datasets import LOADERS, Dataset
from ewens_widgets.model.posterior import Posterior

# A short run need not converge to be described.
pytestmark = pytest.mark.filterwarnings("ignore:the chains have not converged")

Floats = NDArray[np.float64]
NAMES = ("tilt", "slope", "incidence", "size")


def rounded_sum(places: int = 1, n: int = 200) -> Floats:
    """A column that is the sum of two others, each rounded by itself, and one more."""
    rng = np.random.default_rng(0)
    tilt, slope = rng.normal(20.0, 8.0, n), rng.normal(30.0, 9.0, n)
    return np.column_stack([*(c.round(places) for c in (tilt, slope, tilt + slope)), rng.normal(size=n)])


@pytest.mark.parametrize("shapes", ["common", "own"])
@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ((1.0, 1.0, 1.0, 1.0), "'incidence' = 'tilt' + 'slope', up to rounding"),
        ((1.0, -1.0, 1.0, 1.0), "'incidence' = 'tilt' − 'slope', up to rounding"),
        ((2.0, 10.0, 1.0, 0.1), "'incidence' = 0.5 'tilt' + 0.1 'slope', up to rounding"),
    ],
)
def test_a_rounded_sum_is_left_out_and_named(shapes: str, factors: tuple[float, ...], said: str) -> None:
    X = rounded_sum() * factors + 100.0
    data = Dataset(X, feature_names=NAMES, kinds="auto")
    posterior = Posterior.from_data(data, "III", shapes=shapes)
    assert posterior.columns.sentences == (f"{said}: this direction is left out.",)
    np.testing.assert_allclose(posterior.map(X), posterior.coordinates, atol=1e-9)
    np.testing.assert_allclose(posterior.coordinates.T @ posterior.coordinates / 200, np.eye(3), atol=1e-9)
    # The same in other units, and the plain chain where nothing is examined.
    first, other = (ew.Sampler(x, model="III", kinds="auto", seed=3) for x in (rounded_sum(), X))
    np.testing.assert_array_equal(
        first.sample(30, progress=False).labels, other.sample(30, progress=False).labels
    )
    assert Posterior.from_data(X, "III").n_features == 4
    with pytest.warns(ew.DataWarning, match="'incidence' is a linear combination"):
        assert Posterior.from_data(data, "II").n_features == 4


@pytest.mark.parametrize("shapes", ["common", "own"])
def test_tables_without_rounding_keep_their_coordinates(shapes: str) -> None:
    rng = np.random.default_rng(1)
    coarse = np.column_stack([rng.integers(0, 9, 80), rng.normal(size=(80, 2)).round(1)]).astype(float)
    for X in (coarse, rounded_sum(places=9), *(load().X for load in LOADERS.values())):
        if len(X) <= X.shape[1] + 2:
            continue
        plain, examined = (
            Posterior.from_data(X, "III", shapes=shapes, kinds=kinds) for kinds in (None, "auto")
        )
        np.testing.assert_array_equal(plain.coordinates, examined.coordinates)
        assert examined.columns.sentences == ()


def mixed_table(n: int = 90) -> tuple[Floats, NDArray[np.intp]]:
    rng = np.random.default_rng(2)
    groups = np.repeat([0, 1, 2], n // 3)
    kind = np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), groups).astype(float)
    kind[::17] = np.nan
    return np.column_stack([rng.normal(size=(n, 2)) + 4.0 * groups[:, None], np.arange(n), kind]), groups


@pytest.mark.parametrize("shapes", ["common", "own"])
def test_the_estimator_examines_the_columns_and_says_so(shapes: str) -> None:
    X, groups = mixed_table()
    settings: dict[str, Any] = {"shapes": shapes, "draws": 120, "n_chains": 2, "random_state": 0}
    fitted = ew.AffineClustering(**settings, n_clusters=3).fit(X)
    assert ew.adjusted_rand(groups, fitted.labels_) > 0.9
    report = str(fitted.report())
    assert "Column 'x4' is a category: it has 3 distinct values (0, 1, 2)." in report
    assert "Column 'x3' is left out: it only counts the rows, 0 to 89." in report
    # A category that is missing, or was never seen, is not counted: the sum over all of them.
    new = np.array([[4.2, 3.7, 0.0, kind] for kind in (0.0, 1.0, 2.0, np.nan, 9.0)])
    density = fitted.score_samples(new)
    np.testing.assert_allclose(density[3:], logsumexp(density[:3]), rtol=1e-9)
    between = np.array([[2.0, 2.0, 0.0, kind] for kind in (0.0, 1.0)])
    known = fitted.predict_proba(between)
    of_first, of_second = fitted.labels_[0], fitted.labels_[30]
    assert known[0, of_first] > known[1, of_first]
    assert known[1, of_second] > known[0, of_second]
    with pytest.raises(ValueError, match="row 0 has no values"):
        fitted.predict(np.full((1, 4), np.nan))
    plain = np.nan_to_num(X)
    np.testing.assert_array_equal(
        ew.AffineClustering(**settings, kinds=None).fit(plain).trace_.posterior.coordinates,
        Posterior.from_data(plain, "III", shapes=shapes).coordinates,
    )


@pytest.mark.parametrize(
    ("change", "kinds", "message"),
    [
        ((0, slice(None), np.nan), "auto", "column 'x1' has no values, all its cells are missing; drop it"),
        ((0, slice(None), 7.0), "auto", "'x1' are constant"),
        ((0, 3, np.inf), "auto", "data contain infinity .* at row 3, column 0"),
        ((0, 0, 0.0), {"x1": "category"}, "categories in 90 rows; at most 50 that repeat"),
        ((0, 0, 0.0), ["category"] * 4, "categories in 90 rows"),
        ((0, 0, 0.0), ["left out"] * 3 + ["category"], "no column is a number"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    change: tuple[Any, Any, float],
    kinds: Any,  # noqa: ANN401 - as it is given
    message: str,
) -> None:
    X, _ = mixed_table()
    X[change[1], change[0]] = change[2]
    with pytest.raises(ValueError, match=message):
        ew.Sampler(X, model="III", kinds=kinds)
    with pytest.raises(ValueError, match=message):
        ew.AffineClustering(kinds=kinds).fit(X)


def test_weights_of_rows_are_refused() -> None:
    with pytest.raises(TypeError, match="no sample_weight: every row counts once"):
        ew.AffineClustering().fit_predict(mixed_table()[0], sample_weight=np.ones(90))


def test_categories_alone_are_clustered_as_numbers() -> None:
    X = np.random.default_rng(3).integers(0, 4, (60, 2)).astype(float)
    assert Posterior.from_data(X, "II", kinds="auto").n_features == 2


def test_a_table_with_text_categories_and_a_counter() -> None:
    rng = np.random.default_rng(4)
    lines = [f"{rng.normal():.3f},{('red', 'blue')[k % 2]},{k + 1},{k % 15}" for k in range(40)]
    content = "\n".join(["size,colour,nr,stars", *lines]).encode()
    data = ew.read_table(content, kinds={"colour": "category", "stars": "number"})
    assert data.feature_names == ("size", "colour", "stars")
    assert [kind.kind for kind in data.kinds] == ["number", "category", "number"]
    assert data.kinds[1].level_names == ("blue", "red")
    assert data.summary["colour"].reason == "category: as you said"
    assert data.summary["nr"].role == "left out"
    assert data.summary["nr"].reason == "it only counts the rows, 1 to 40"
    sampler = ew.Sampler(data, seed=0)
    assert sampler.posterior.coordinates.shape == (40, 2)
    assert ew.Sampler(data, kinds="numeric").posterior.coordinates.shape == (40, 3)
    gaps = content.replace(b"blue,4,", b",4,")
    found = ew.read_table(gaps, kinds={"colour": "category", "stars": "number"})
    assert np.isnan(found.X[3, 1])
    assert sampler.posterior.log_categories(np.zeros(40, dtype=np.intp)) < ew.Sampler(
        found
    ).posterior.log_categories(np.zeros(40, dtype=np.intp))
