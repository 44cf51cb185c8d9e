import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.model_choice import ComparedModel, ModelComparison

TINY = {"folds": 2, "draws": 8, "burn_in": 8}


@pytest.fixture(scope="module")
def pairs() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(24, 2))
    X[12:] += 9.0
    return X


def test_every_row_is_predicted_once_in_the_units_of_the_data(pairs: np.ndarray) -> None:
    plain = ew.compare(pairs, models=["III"], shapes=["common"], **TINY)
    mixed = ew.compare(pairs @ [[2.0, 1.0], [0.0, 3.0]] + 5.0, models=["III"], shapes=["common"], **TINY)
    assert plain.best.log_densities.shape == (24,)
    # A volume six times as large makes all densities six times smaller.
    np.testing.assert_allclose(
        mixed.best.log_densities, plain.best.log_densities - np.log(6.0), rtol=0, atol=1e-6
    )
    again = ew.compare(pairs, models=["III"], shapes=["common"], **TINY)
    np.testing.assert_array_equal(again.best.log_densities, plain.best.log_densities)


def row(model: str, values: list[float], n_clusters: int | None = 2, problem: str = "") -> ComparedModel:
    return ComparedModel(model, "own", np.array(values), n_clusters, problem)


def test_words_about_a_clear_winner() -> None:
    found = ModelComparison((row("II", [1.0, 2.0, 3.0]), row("I", [0.0, 1.1, 1.9], 3)), 5)
    assert found.best.model == "II"
    assert found.settings == {"model": "II", "shapes": "own"}
    assert found.equally_good == ()
    gap, error = found.difference(found.rows[1])
    assert (gap, error) == (pytest.approx(1.0), pytest.approx(0.1 / np.sqrt(3)))
    assert "Use model II, own shapes" in found.advice
    assert "1.00 ± 0.06 nats per row behind" in str(found)
    assert found.best.standard_error == pytest.approx(1 / np.sqrt(3))


def test_words_about_a_draw() -> None:
    found = ModelComparison((row("II", [1.0, 2.0, 3.0]), row("I", [3.0, 1.0, 1.9], 3)), 5)
    assert found.equally_good == (found.rows[1],)
    assert "The difference from model I, own shapes is within two standard errors" in found.advice
    assert "different numbers of clusters" in found.advice


def test_what_cannot_be_fitted_comes_last_with_the_reason() -> None:
    X = np.random.default_rng(1).normal(size=(8, 7))
    found = ew.compare(X, models=["III", "I"], shapes=["common"], **TINY)
    assert [entry.model for entry in found.rows] == ["I", "III"]
    assert "needs more than d + 1 = 8 objects" in found.rows[1].problem
    assert np.isnan(found.rows[1].log_density)
    assert "model III estimates a full covariance" in found._repr_html_()
    assert "model III estimates a full covariance" in str(found)
    with pytest.raises(ValueError, match="none of these can be fitted"):
        ew.compare(X, models=["III"], shapes=["common"], **TINY)


def test_as_a_frame_and_in_a_notebook() -> None:
    pytest.importorskip("pandas")
    found = ModelComparison((row("II", [1.0, 2.0, 3.0]), row("III", [], None, "too few rows & more")), 5)
    frame = found.to_frame()
    assert frame.loc[("II", "own"), "n_clusters"] == 2
    assert frame.loc[("III", "own"), "problem"] == "too few rows & more"
    html = found._repr_html_()
    assert "too few rows &amp; more" in html
    assert "Use model II, own shapes" in html
    assert repr(found) == "ModelComparison(best: model II, own shapes; 2 compared)"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"models": ["IV"]}, "models must list some of"),
        ({"models": "III"}, "models must list some of"),
        ({"shapes": []}, "shapes must list some of"),
        ({"folds": 1}, "folds"),
        ({"folds": 25}, "cannot be divided into 25 folds"),
        ({"draws": 0}, "draws"),
    ],
)
def test_wrong_arguments(settings: dict[str, object], message: str, pairs: np.ndarray) -> None:
    with pytest.raises(ValueError, match=message):
        ew.compare(pairs, **{**TINY, **settings})


def test_a_model_is_not_an_argument(pairs: np.ndarray) -> None:
    with pytest.raises(TypeError, match="takes no 'model'"):
        ew.compare(pairs, model="I")


@pytest.mark.slow
def test_shapes_that_differ_are_recognised() -> None:
    rng = np.random.default_rng(2)
    X = np.vstack(
        [rng.normal(size=(60, 2)) * [8.0, 0.3], rng.normal(size=(60, 2)) * [0.3, 8.0] + [30.0, 0.0]]
    )
    found = ew.compare(X, models=["III"], draws=100, burn_in=100, folds=3)
    assert found.best.shapes == "own"
    assert found.best.n_clusters == 2
    assert found.equally_good == ()
