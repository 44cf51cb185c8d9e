"""The tree and its cut."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from views.chains import Chain, made

from ewens_widgets.analysis.plots.palette import rgb
from ewens_widgets.views import PartitionView, SharedState, TreeView
from ewens_widgets.views.shared_state import Cut


class TestTree:
    def test_outline_is_one_line_with_gaps(self, shared: SharedState, chain: Chain) -> None:
        view = made(TreeView, shared, chain)
        view.show(chain.frame(40))
        x, y = np.asarray(view.lines.x), np.asarray(view.lines.y)
        assert x.size == y.size == 5 * 29 - 1
        assert np.isnan(y).sum() == 28
        assert 0.0 < np.nanmin(x) < np.nanmax(x) < 1.0
        assert np.isfinite(y[-1])

    def test_dragging_the_cut_recolours_the_scatter(self, shared: SharedState, chain: Chain) -> None:
        view, scatter = made(TreeView, shared, chain), made(PartitionView, shared, chain)
        frame = chain.frame(40)
        view.show(frame)
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

    def test_cutting_by_number_and_least_size(self, shared: SharedState, chain: Chain) -> None:
        view = made(TreeView, shared, chain)
        frame = chain.frame(40)
        view.show(frame)
        view.least.value = 5
        view.count.value = 3
        labels = shared.cut_labels(frame)
        assert labels is not None
        np.testing.assert_array_equal(
            labels, shared.live_tree.tree(frame).cut(3, min_size=5, leftovers="mark")
        )
        assert shared.cut == Cut(n_clusters=3, min_size=5)

    def test_an_impossible_cut_is_explained(self, shared: SharedState, chain: Chain) -> None:
        view = made(TreeView, shared, chain)
        view.show(chain.frame(40))
        view.least.value = 10
        view.count.value = 25
        assert "25 were asked for" in view.note.value

    def test_evidence_tree_keeps_the_number_of_clusters(self, shared: SharedState, chain: Chain) -> None:
        view = made(TreeView, shared, chain)
        frame = chain.frame(40)
        view.show(frame)
        view.count.value = 3
        view.kind.value = "evidence"
        tree = shared.live_tree.tree(frame)
        assert tree.kind == "evidence"
        assert view.count.value == 3
        assert view._y_axis.label == "nats lost"
        assert tree.heights[-3] <= view.cut_line.y[0] <= tree.heights[-2]

    def test_leaves_have_the_clusters_colours_and_can_be_brushed(
        self, shared: SharedState, chain: Chain
    ) -> None:
        view, scatter = made(TreeView, shared, chain), made(PartitionView, shared, chain)
        frame = chain.frame(40)
        view.show(frame)
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
        chain.recorder.append(chain.events[0]._replace(labels=np.arange(70), n_clusters=70))
        view = made(TreeView, shared, chain)
        view.kind.value = "evidence"
        view.show(chain.frame(1))
        assert "still has 70 clusters" in view.note.value
