"""The scatter of the objects."""

import numpy as np
from matplotlib.figure import Figure
from views.chains import Chain, Wire, made

from ewens_widgets.analysis.plots.palette import GREY, changed_objects
from ewens_widgets.playback import PlayerState
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

    def test_legend_tells_sizes_and_singletons(self, stage: Stage, chain: Chain) -> None:
        view = made(PartitionView, stage, chain)
        labels = np.array([0] * 20 + [1] * 8 + [2, 3])
        view.show(chain.frame(5, labels=labels))
        assert ">20<" in view.legend.value
        assert ">8<" in view.legend.value
        assert "2 alone" in view.legend.value

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
        view.show(chain.frame(9))
        assert view.proposal.x.size == 0

    def test_after_a_step_those_that_moved_are_ringed(self, stage: Stage, chain: Chain) -> None:
        view = made(PartitionView, stage, chain)
        view.show(chain.frame(6))
        before, after = chain.events[5].labels, chain.events[6].labels
        view.show(chain.frame(7))
        moved = changed_objects(before, after)
        assert moved.size
        np.testing.assert_array_equal(view.proposal.x, view.points.x[moved])
        assert f"{moved.size} object" in view.legend.value
        view.show(chain.frame(8, PlayerState.PLAYING))
        assert view.proposal.x.size == 0
        view.show(chain.frame(20))
        assert view.proposal.x.size == 0


def outlined(stage: Stage, chain: Chain) -> PartitionView:
    """A view that shows ellipses."""
    view = made(PartitionView, stage, chain)
    view.ellipses.value = True
    return view


class TestEllipses:
    def test_each_cluster_of_three_or_more_has_two_in_its_colour(self, stage: Stage, chain: Chain) -> None:
        view = outlined(stage, chain)
        labels = np.array([0] * 20 + [1] * 6 + [2] * 2 + [3, 4])
        view.show(chain.frame(5, labels=labels))
        mark = view.outlines.mark
        assert mark.visible
        assert mark.colors == [view.points.colors[0], view.points.colors[20]]
        assert np.isnan(mark.y).sum(axis=1).tolist() == [1, 1]
        assert not np.isnan(mark.y[:, -1]).any(), "the browser places something at the end of a line"

    def test_they_hold_what_they_say_in_what_is_shown(self, stage: Stage, chain: Chain) -> None:
        view = outlined(stage, chain)
        labels = np.zeros(30, dtype=int)
        view.plane.choosers[0].value = chain.dataset.feature_names[2]
        view.show(chain.frame(5, labels=labels))
        event = view.frame.event
        shapes = chain.posterior.cluster_shapes(labels, event.theta)
        # The data are the canonical coordinates; how wide an ellipse is says how much it holds.
        outer = np.sqrt(-2.0 * np.log(1.0 - 0.9))
        reach = np.nanmax(view.outlines.mark.x) - shapes.centres[0, 2]
        np.testing.assert_allclose(reach, outer * np.sqrt(shapes.covariances[0, 2, 2]), rtol=1e-6)

    def test_they_follow_the_chain_by_one_message(self, stage: Stage, chain: Chain, wire: Wire) -> None:
        view = outlined(stage, chain)
        view.show(chain.frame(5, labels=np.arange(30) % 3))
        wire.clear()
        view.show(chain.frame(6, labels=np.arange(30) % 2))
        sent = [data for sender, data in wire.messages if sender == view.outlines.mark.comm.comm_id]
        assert len(sent) == 1
        assert {"x", "y"} <= set(sent[0]["state"])
        assert len(view.outlines.mark.colors) == 2

    def test_they_are_those_of_what_the_colours_show(self, stage: Stage, chain: Chain) -> None:
        stage.prepare(chain.posterior, chain.dataset.labels)
        view = outlined(stage, chain)
        view.show(chain.frame(5, labels=np.zeros(30, dtype=int)))
        assert len(view.outlines.mark.colors) == 1
        stage.set_colouring("classes")
        assert len(view.outlines.mark.colors) == 3
        assert set(view.outlines.mark.colors) == set(view.points.colors)

    def test_they_can_be_switched_off_and_on(self, stage: Stage, chain: Chain) -> None:
        view = outlined(stage, chain)
        view.show(chain.frame(5, labels=np.arange(30) % 3))
        view.ellipses.value = False
        assert not view.outlines.mark.visible
        view.show(chain.frame(6, labels=np.arange(30) % 2))
        assert not view.outlines.mark.visible
        view.ellipses.value = True
        assert view.outlines.mark.visible
        assert len(view.outlines.mark.colors) == 2

    def test_there_are_none_of_singletons_nor_before_the_first_draw(self, stage: Stage, chain: Chain) -> None:
        view = outlined(stage, chain)
        view.show(chain.frame(5, labels=np.arange(30) % 3))
        view.show(chain.frame(6, labels=np.arange(30)))
        assert not view.outlines.mark.visible
        view.show(chain.frame(5, labels=np.arange(30) % 3))
        view.show(chain.frame(0))
        assert not view.outlines.mark.visible

    def test_the_number_of_a_row_has_no_ellipses(self, stage: Stage, chain: Chain) -> None:
        view = outlined(stage, chain)
        view.show(chain.frame(5, labels=np.arange(30) % 3))
        view.plane.choosers[0].value = "row number"
        assert not view.outlines.mark.visible
        view.plane.choosers[0].value = chain.dataset.feature_names[0]
        assert view.outlines.mark.visible

    def test_a_static_picture_has_them_too(self, stage: Stage, chain: Chain) -> None:
        view = outlined(stage, chain)
        view.show(chain.frame(5, labels=np.arange(30) % 3))
        drawn = Figure().subplots()
        view.paint(drawn)
        assert len(drawn.lines) == 3
        view.ellipses.value = False
        drawn = Figure().subplots()
        view.paint(drawn)
        assert len(drawn.lines) == 0
