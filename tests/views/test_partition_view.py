"""The scatter of the objects."""

import numpy as np
from views.chains import Chain, Wire, made

from ewens_widgets.analysis.plots.palette import GREY
from ewens_widgets.views import HeatmapView, PartitionView, Stage, TreeView


class TestPartition:
    def test_colours_are_those_of_the_partition(self, stage: Stage, chain: Chain) -> None:
        view = made(PartitionView, stage, chain)
        view.show(chain.frame(5))
        labels = chain.events[4].labels
        colours = np.array(view.points.colors)
        sizes = np.bincount(labels)[labels]
        assert len(colours) == labels.size
        assert all(colours[sizes == 1] == GREY)
        for label in np.unique(labels[sizes > 1]):
            assert len(set(colours[labels == label])) == 1
        assert len(set(colours[sizes > 1])) == len(np.unique(labels[sizes > 1]))

    def test_positions_are_not_sent_again(self, stage: Stage, chain: Chain, wire: Wire) -> None:
        view = made(PartitionView, stage, chain)
        view.show(chain.frame(1))
        wire.clear()
        view.show(chain.frame(2))
        sent = [set(data["state"]) for sender, data in wire.messages if sender == view.points.comm.comm_id]
        assert sent == [{"colors"}]

    def test_another_feature_moves_the_objects(self, stage: Stage, chain: Chain) -> None:
        view = made(PartitionView, stage, chain)
        view.show(chain.frame(1))
        view.plane.choosers[0].value = chain.dataset.feature_names[2]
        np.testing.assert_array_equal(view.points.x, chain.dataset.X[:, 2])
        assert view.plane.axes[0].label == chain.dataset.feature_names[2]
        assert (
            view.plane.scales["x"].min
            < view.points.x.min()
            < view.points.x.max()
            < view.plane.scales["x"].max
        )

    def test_legend_tells_sizes_singletons_and_agreement(self, stage: Stage, chain: Chain) -> None:
        view = made(PartitionView, stage, chain)
        labels = np.array([0] * 20 + [1] * 8 + [2, 3])
        view.show(chain.frame(5, labels=labels))
        assert ">20<" in view.legend.value
        assert ">8<" in view.legend.value
        assert "2 alone" in view.legend.value
        assert "agreement with known classes" in view.legend.value

    def test_brushing_selects_in_all_views(self, stage: Stage, chain: Chain) -> None:
        view, heatmap = made(PartitionView, stage, chain), made(HeatmapView, stage, chain)
        frame = chain.frame(20)
        view.show(frame)
        heatmap.show(frame)
        before = heatmap.image.image.value
        x, y = np.asarray(view.points.x), np.asarray(view.points.y)
        chosen = np.argsort(x)[:5]
        view.brush.selector.selected_x = np.array([x.min(), np.sort(x)[4]])
        view.brush.selector.selected_y = np.array([y.min(), y.max()])
        np.testing.assert_array_equal(stage.selection.objects, np.sort(chosen))
        np.testing.assert_array_equal(view.points.selected, np.sort(chosen))
        assert heatmap.image.image.value != before
        assert "5 selected" in view.legend.value

    def test_clearing_takes_the_rectangle_away(self, stage: Stage, chain: Chain) -> None:
        view = made(PartitionView, stage, chain)
        view.show(chain.frame(20))
        assert view.clear.layout.display == "none"
        view.brush.selector.selected_x = np.array([-9.0, 9.0])
        view.brush.selector.selected_y = np.array([-9.0, 9.0])
        assert view.clear.layout.display == ""
        assert len(stage.selection) == 30
        view.clear.click()
        assert len(stage.selection) == 0
        assert view.brush.selector.selected is None
        assert view.points.selected is None

    def test_another_brush_takes_over(self, stage: Stage, chain: Chain) -> None:
        view, tree = made(PartitionView, stage, chain), made(TreeView, stage, chain)
        frame = chain.frame(30)
        view.show(frame)
        tree.show(frame)
        view.brush.selector.selected_x = np.array([-9.0, 9.0])
        view.brush.selector.selected_y = np.array([-9.0, 9.0])
        tree.brush.selector.selected = np.array([0.0, 0.5])
        order = stage.live_tree.tree(frame).leaves_order
        np.testing.assert_array_equal(stage.selection.objects, np.sort(order[:15]))
        assert view.brush.selector.selected is None

    def test_a_proposed_split_is_ringed(self, stage: Stage, chain: Chain) -> None:
        view = made(PartitionView, stage, chain)
        labels = np.zeros(30, dtype=int)
        proposed = np.where(np.arange(30) < 26, 0, 1)
        view.show(chain.frame(5, labels=labels, proposed_labels=proposed, accepted=False, log_ratio=-3.0))
        np.testing.assert_array_equal(view.proposal.x, view.points.x[26:])
        assert "4 objects that the rejected proposal moves" in view.legend.value
        view.show(chain.frame(6))
        assert view.proposal.x.size == 0
