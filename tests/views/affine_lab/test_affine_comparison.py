"""The two chains of each model, and what is said about them."""

import ewens_widgets as ew
from ewens_widgets.views.affine_lab.affine_comparison import ChainSettings, Comparison, verdict
from ewens_widgets.views.affine_lab.linear_map import PAPER_MATRICES


def test_a_chain_that_rounding_sent_astray_is_told_apart() -> None:
    X = ew.datasets.unit_square(per_cluster=5, seed=0).X
    comparison = Comparison(X, X @ PAPER_MATRICES["III"], ChainSettings(draws=30, burn_in=10), 4)
    while not comparison.is_done:
        comparison.advance(5)
    honest = verdict(comparison, ("III",))
    assert "rounding" not in honest
    # Where theory says that model I survives, its different answer must come from somewhere else.
    assert "Model I should have survived, but rounding" in verdict(comparison, ("I", "III"))


def test_progress_is_told() -> None:
    X = ew.datasets.unit_square(per_cluster=5, seed=0).X
    comparison = Comparison(X, X, ChainSettings(draws=30, burn_in=100), 4)
    assert verdict(comparison, ()).startswith("Preparing")
    comparison.advance(4)
    assert verdict(comparison, ()) == "Sampling both versions with the same seed: iteration 80 of 130."
