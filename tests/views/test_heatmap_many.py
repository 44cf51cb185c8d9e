"""The heatmap of more objects than pairs can be counted of: some stand for all."""

import numpy as np
import pytest
from views.chains import Chain

from ewens_widgets.analysis.plots.heatmap_plot import LEVELS, spread_rows
from ewens_widgets.views import heatmap_view
from ewens_widgets.views.heatmap_view import HeatmapView
from ewens_widgets.views.stage import Stage


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> HeatmapView:
    monkeypatch.setattr(heatmap_view, "MOST_OBJECTS", 20)
    monkeypatch.setattr(heatmap_view, "spread_rows", lambda n_objects: spread_rows(n_objects, 10))
    return HeatmapView(Stage())


@pytest.mark.usefixtures("wire")
def test_evenly_spaced_objects_are_shown_in_the_order_of_their_own_tree(view: HeatmapView) -> None:
    chain = Chain()
    view.prepare(chain.dataset, chain.posterior)
    assert "10 of 30 objects" in view.note.value
    view.show(chain.frame(40))
    rows = spread_rows(30, 10)
    np.testing.assert_array_equal(np.sort(view._order), rows)
    levels = view._pixels[:, -10:]
    expected = 1.0 - chain.trace.similarity(rows=view._order)
    np.testing.assert_allclose(levels / (LEVELS - 1), expected, atol=0.01)
    assert view._pixels.shape[0] == 10


@pytest.mark.usefixtures("wire")
def test_selecting_there_selects_objects_that_are_shown(view: HeatmapView) -> None:
    chain = Chain()
    view.prepare(chain.dataset, chain.posterior)
    view.show(chain.frame(40))
    chosen = view._objects_in(np.array([[0.0, 0.75], [0.29, 1.0]]))
    np.testing.assert_array_equal(chosen, view._order[:3])


def test_spread_rows() -> None:
    np.testing.assert_array_equal(spread_rows(5, 10), np.arange(5))
    rows = spread_rows(1_000_000)
    assert rows.size == 400
    assert (rows[0], rows[-1]) == (0, 999_999)
    assert np.ptp(np.diff(rows)) <= 1


@pytest.mark.usefixtures("wire")
def test_pairs_of_the_rows_are_counted_as_the_chain_runs() -> None:
    chain = Chain(burn_in=3)
    rows = np.array([1, 5, 20])
    for iteration in (5, 12, 9, 40):
        found = chain.summaries.up_to(iteration).similarity(rows)
        np.testing.assert_allclose(found, chain.trace[3:iteration].similarity(rows=rows), atol=1e-6)
    whole = chain.summaries.up_to(40).similarity()
    np.testing.assert_allclose(whole, chain.trace[3:].similarity(), atol=1e-6)
