"""The tree and its cut; the heatmap, of all objects and of more than pairs can be counted of."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from traces import altered
from views.chains import Chain, made

from ewens_widgets.analysis.plots.heatmap_plot import LEVELS, spread_rows
from ewens_widgets.analysis.plots.palette import SELECTED, rgb
from ewens_widgets.playback import PlayerState
from ewens_widgets.views import PartitionView, SharedState, TreeView, similarity_views
from ewens_widgets.views.shared_state import Cut
from ewens_widgets.views.similarity_views import HeatmapView, band_share


@pytest.fixture
def tree_view(shared: SharedState, chain: Chain) -> TreeView:
    view = made(TreeView, shared, chain)
    view.show(chain.frame(40))
    return view


@pytest.fixture
def heatmap(shared: SharedState, chain: Chain) -> HeatmapView:
    view = made(HeatmapView, shared, chain)
    view.show(chain.frame(40))
    return view


class TestTree:
    def test_outline_is_one_line_with_gaps(self, tree_view: TreeView) -> None:
        x, y = np.asarray(tree_view.lines.x), np.asarray(tree_view.lines.y)
        assert x.size == y.size == 5 * 29 - 1
        assert np.isnan(y).sum() == 28
        assert 0.0 < np.nanmin(x) < np.nanmax(x) < 1.0
        assert np.isfinite(y[-1])

    def test_dragging_the_cut_recolours_the_scatter(
        self, tree_view: TreeView, shared: SharedState, chain: Chain
    ) -> None:
        view, scatter, frame = tree_view, made(PartitionView, shared, chain), tree_view.frame
        scatter.show(frame)
        assert not shared.shows_cut
        height = 0.4
        view.handle.y = np.array([height])
        assert shared.shows_cut
        assert view.shows.value
        expected = shared.live_tree.tree(frame).cut(height=height)
        colours = np.array(scatter.points.colors)
        for label in np.unique(expected):
            assert len(set(colours[expected == label])) == 1
        assert view.count.value == expected.max() + 1
        np.testing.assert_allclose(view.cut_line.y, height)
        view.shows.value = False
        scatter_colours = np.array(scatter.points.colors)
        assert not shared.shows_cut
        assert len(set(scatter_colours)) >= len(set(colours)) - 1

    def test_cutting_by_number_and_least_size_and_an_impossible_cut(
        self, tree_view: TreeView, shared: SharedState
    ) -> None:
        view, frame = tree_view, tree_view.frame
        view.least.value = 5
        view.count.value = 3
        labels = shared.cut_labels(frame)
        assert labels is not None
        np.testing.assert_array_equal(
            labels, shared.live_tree.tree(frame).cut(3, min_size=5, small_clusters="mark")
        )
        assert shared.cut == Cut(n_clusters=3, min_size=5)
        view.least.value = 10
        view.count.value = 25
        assert "25 were asked for" in view.note.value

    def test_beside_the_answer_it_says_what_is_cut(
        self, tree_view: TreeView, shared: SharedState, chain: Chain
    ) -> None:
        answers, frame = chain.answers(shared), chain.frame(40, PlayerState.FINISHED)
        answers.ask(frame)
        tree_view.show(frame := answers.add_to(frame))
        assert tree_view.note.value == ""
        shared.set_colouring("answer")
        assert frame.answer is not None
        groups = frame.answer.answer.n_clusters
        assert tree_view.note.value == f"components of the draws; the answer has {groups} groups"

    def test_evidence_tree_keeps_the_number_of_clusters(
        self, tree_view: TreeView, shared: SharedState
    ) -> None:
        view, frame = tree_view, tree_view.frame
        view.count.value = 3
        view.kind.value = "evidence"
        tree = shared.live_tree.tree(frame)
        assert tree.kind == "evidence"
        assert view.count.value == 3
        assert view._y_axis.label == "nats lost"
        assert tree.heights[-3] <= view.cut_line.y[0] <= tree.heights[-2]

    def test_leaves_have_the_clusters_colours_and_can_be_brushed(
        self, tree_view: TreeView, shared: SharedState, chain: Chain
    ) -> None:
        view, scatter, frame = tree_view, made(PartitionView, shared, chain), tree_view.frame
        scatter.show(frame)
        order = shared.live_tree.tree(frame).leaves_order
        with Image.open(BytesIO(view.leaves.image.value)) as picture:
            strip = np.asarray(picture.convert("RGB"))
        assert [tuple(c) for c in strip[0].tolist()] == [rgb(scatter.points.colors[item]) for item in order]
        view.brush.selector.selected = np.array([10.1 / 30, 11.9 / 30])
        np.testing.assert_array_equal(shared.selection.objects, np.sort(order[10:12]))

    @pytest.mark.usefixtures("wire")
    def test_too_many_clusters_for_an_evidence_tree(self) -> None:
        chain = Chain(n_objects=70, n_draws=2)
        shared = SharedState()
        shared.prepare(chain.posterior)
        chain.recorder.clear()
        chain.recorder.extend(altered(chain.trace[:1], labels=np.arange(70)[None]))
        view = made(TreeView, shared, chain)
        view.kind.value = "evidence"
        view.show(chain.frame(1))
        assert "has 70 clusters" in view.note.value


def pixels(view: HeatmapView) -> np.ndarray:
    with Image.open(BytesIO(view.image.image.value)) as picture:
        return np.asarray(picture.convert("RGB"))


class TestHeatmap:
    def test_picture_is_the_distance_in_tree_order_beside_the_clusters_colours(
        self, heatmap: HeatmapView, shared: SharedState, chain: Chain
    ) -> None:
        frame, scatter = heatmap.frame, made(PartitionView, shared, chain)
        scatter.show(frame)
        order = shared.live_tree.tree(frame).leaves_order
        distance = 1 - chain.trace.similarity()[np.ix_(order, order)]
        shown, side = pixels(heatmap), order.size
        width = round(side * band_share(side))
        assert shown.shape == (side, side + width, 3)
        np.testing.assert_allclose(shown[:, -side:, 0] / 255.0, distance, atol=0.005)
        band = [tuple(colour) for colour in shown[:, 0].tolist()]
        assert band == [rgb(scatter.points.colors[item]) for item in order]
        shared.selection.set(order[:3])
        marks = [tuple(colour) == rgb(SELECTED) for colour in pixels(heatmap)[:, width - 1].tolist()]
        assert marks == [True] * 3 + [False] * 27
        heatmap.colours.value = "viridis"
        assert not np.array_equal(pixels(heatmap)[:, -30:, 0], pixels(heatmap)[:, -30:, 2])

    def test_brushing_selects_rows_and_columns(self, heatmap: HeatmapView, shared: SharedState) -> None:
        order = shared.live_tree.tree(heatmap.frame).leaves_order
        heatmap.brush.selector.selected_x = np.array([0.01, 3.9 / 30])
        heatmap.brush.selector.selected_y = np.array([1 - 9.9 / 30, 1 - 7.1 / 30])
        np.testing.assert_array_equal(shared.selection.objects, np.sort(order[[0, 1, 2, 3, 7, 8, 9]]))

    @pytest.mark.usefixtures("wire")
    def test_large_pictures_stay_small(self) -> None:
        chain = Chain(n_objects=1001, n_draws=3)
        view = made(HeatmapView, SharedState(), chain)
        view.shared.prepare(chain.posterior)
        view.show(chain.frame(3))
        height, width, _ = pixels(view).shape
        assert height == 334
        assert width <= 400


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> HeatmapView:
    monkeypatch.setattr(similarity_views, "MOST_OBJECTS", 20)
    monkeypatch.setattr(similarity_views, "spread_rows", lambda n_objects: spread_rows(n_objects, 10))
    return HeatmapView(SharedState())


@pytest.mark.usefixtures("wire")
def test_evenly_spaced_objects_are_shown_in_the_order_of_their_own_tree_and_selected(
    view: HeatmapView,
) -> None:
    chain = Chain()
    view.prepare(chain.dataset, chain.posterior)
    assert "10 of 30 objects" in view.note.value
    view.show(chain.frame(40))
    np.testing.assert_array_equal(np.sort(view._order), spread_rows(30, 10))
    expected = 1.0 - chain.trace.similarity(rows=view._order)
    np.testing.assert_allclose(view._pixels[:, -10:] / (LEVELS - 1), expected, atol=0.01)
    assert view._pixels.shape[0] == 10
    chosen = view._objects_in(np.array([[0.0, 0.75], [0.29, 1.0]]))
    np.testing.assert_array_equal(chosen, view._order[:3])


@pytest.mark.usefixtures("wire")
def test_pairs_of_the_rows_are_counted_as_the_chain_runs() -> None:
    chain = Chain(burn_in=3)
    rows = np.array([1, 5, 20])
    for iteration in (5, 12, 9, 40):
        found = chain.summaries.up_to(iteration).similarity(rows)
        np.testing.assert_allclose(found, chain.trace[3:iteration].similarity(rows=rows), atol=1e-6)
    whole = chain.summaries.up_to(40).similarity()
    np.testing.assert_allclose(whole, chain.trace[3:].similarity(), atol=1e-6)
