"""Two versions of the data: how they are mapped, the two chains of each model, and what is said of them."""

import numpy as np

import ewens_widgets as ew
from ewens_widgets.playback.invariance import PAPER_MATRICES, ChainSettings, Comparison, mapped, verdict


def test_the_paper_s_matrices_are_those_of_the_data_sets() -> None:
    plain = ew.datasets.unit_square(seed=3).X
    for transform, name in ((None, "I"), ("II", "II"), ("III", "III")):
        changed = ew.datasets.unit_square(transform, seed=3).X
        np.testing.assert_allclose(mapped(plain, (0, 1), PAPER_MATRICES[name], (0.0, 0.0)), changed)


def test_other_columns_stay_as_they_are(rng: np.random.Generator) -> None:
    X = rng.normal(size=(6, 4))
    result = mapped(X, (3, 1), PAPER_MATRICES["III"], (5.0, -1.0))
    np.testing.assert_array_equal(result[:, [0, 2]], X[:, [0, 2]])
    np.testing.assert_allclose(result[:, [3, 1]], X[:, [3, 1]] @ PAPER_MATRICES["III"] + [5.0, -1.0])


def test_a_chain_that_rounding_sent_astray_is_told_apart() -> None:
    X = ew.datasets.unit_square(per_cluster=5, seed=0).X
    comparison = Comparison(X, X @ PAPER_MATRICES["III"], ChainSettings(draws=30, burn_in=10), 4)
    while not comparison.is_done:
        comparison.advance(5)
    honest = verdict(comparison, ("III",))
    assert "rounding" not in honest
    # If model I is invariant in theory, the difference must have another cause.
    assert "Model I is invariant in theory, but rounding" in verdict(comparison, ("I", "III"))


def test_progress_is_told() -> None:
    X = ew.datasets.unit_square(per_cluster=5, seed=0).X
    comparison = Comparison(X, X, ChainSettings(draws=30, burn_in=100), 4)
    assert verdict(comparison, ()).startswith("Preparing")
    comparison.advance(4)
    assert verdict(comparison, ()) == "Sampling both versions with the same seed: iteration 80 of 130."
