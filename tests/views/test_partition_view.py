"""The scatter of the objects."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from views.chains import Chain, Wire, made

from ewens_widgets.analysis.plots.palette import GREY, N_DISTINCT, changed_objects
from ewens_widgets.playback import PlayerState
from ewens_widgets.views import HeatmapView, PartitionView, SharedState, TreeView

THREE = np.arange(30) % 3


@pytest.fixture
def view(shared: SharedState, chain: Chain) -> PartitionView:
    shared.prepare(chain.posterior, chain.dataset.labels)
    return made(PartitionView, shared, chain)


@pytest.fixture
def outlined(view: PartitionView) -> PartitionView:
    """A view that shows ellipses."""
    view.ellipses.value = True
    return view


def brush_all(view: PartitionView) -> None:
    for side in ("selected_x", "selected_y"):
        setattr(view.brush.selector, side, np.array([-9.0, 9.0]))


class TestPartition:
    def test_colours_are_those_of_the_partition(self, view: PartitionView, chain: Chain) -> None:
        view.show(chain.frame(5))
        labels = chain.events[4].labels
        colours = np.array(view.points.colors)
        sizes = np.bincount(labels)[labels]
        assert len(colours) == labels.size
        assert all(colours[sizes == 1] == GREY)
        for label in np.unique(labels[sizes > 1]):
            assert len(set(colours[labels == label])) == 1
        assert len(set(colours[sizes > 1])) == len(np.unique(labels[sizes > 1]))

    def test_positions_are_not_sent_again(self, view: PartitionView, chain: Chain, wire: Wire) -> None:
        view.show(chain.frame(1))
        wire.clear()
        view.show(chain.frame(2))
        sent = [set(data["state"]) for sender, data in wire.messages if sender == view.points.comm.comm_id]
        assert sent == [{"colors"}]

    def test_another_feature_moves_the_objects(self, view: PartitionView, chain: Chain) -> None:
        view.show(chain.frame(1))
        view.plane.choosers[0].value = chain.dataset.feature_names[2]
        x, scale = view.points.x, view.plane.scales["x"]
        np.testing.assert_array_equal(x, chain.dataset.X[:, 2])
        assert view.plane.axes[0].label == chain.dataset.feature_names[2]
        assert scale.min < x.min() < x.max() < scale.max

    def test_points_grow_with_the_page(self, view: PartitionView) -> None:
        before = view.points.default_size, [cover.default_size for cover in view.dots.covers]
        view.enlarge(2.0)
        assert view.points.default_size == 4 * before[0]
        for cover, size in zip(view.dots.covers, before[1], strict=True):
            assert cover.default_size == pytest.approx(4 * size, abs=2)

    def test_legend_tells_sizes_and_singletons(self, view: PartitionView, chain: Chain) -> None:
        view.show(chain.frame(5, labels=np.array([0] * 20 + [1] * 8 + [2, 3])))
        assert all(text in view.legend.value for text in (">20<", ">8<", "2 single"))
        view.shared.set_colouring("cut")
        start = chain.events[0]._replace(labels=np.arange(30), n_clusters=30)
        view.show(replace(chain.frame(0), event=start))
        assert "30 single" in view.legend.value, "before the first draw there is no tree to cut"

    def test_brushing_selects_in_all_views(
        self, view: PartitionView, shared: SharedState, chain: Chain
    ) -> None:
        heatmap, frame = made(HeatmapView, shared, chain), chain.frame(20)
        view.show(frame)
        heatmap.show(frame)
        before = heatmap.image.image.value
        x, y = np.asarray(view.points.x), np.asarray(view.points.y)
        chosen = np.sort(np.argsort(x)[:5])
        view.brush.selector.selected_x = np.array([x.min(), np.sort(x)[4]])
        view.brush.selector.selected_y = np.array([y.min(), y.max()])
        np.testing.assert_array_equal(shared.selection.objects, chosen)
        np.testing.assert_array_equal(view.points.selected, chosen)
        assert heatmap.image.image.value != before
        assert "5 selected" in view.legend.value

    def test_clearing_takes_the_rectangle_away(
        self, view: PartitionView, shared: SharedState, chain: Chain
    ) -> None:
        view.show(chain.frame(20))
        assert view.clear.layout.display == "none"
        brush_all(view)
        assert view.clear.layout.display == ""
        assert len(shared.selection) == 30
        view.clear.click()
        assert len(shared.selection) == 0
        assert view.brush.selector.selected is None
        assert view.points.selected is None

    def test_another_brush_takes_over(self, view: PartitionView, shared: SharedState, chain: Chain) -> None:
        tree, frame = made(TreeView, shared, chain), chain.frame(30)
        view.show(frame)
        tree.show(frame)
        brush_all(view)
        tree.brush.selector.selected = np.array([0.0, 0.5])
        order = shared.live_tree.tree(frame).leaves_order
        np.testing.assert_array_equal(shared.selection.objects, np.sort(order[:15]))
        assert view.brush.selector.selected is None

    def test_a_proposed_split_is_ringed(self, view: PartitionView, chain: Chain) -> None:
        labels = np.zeros(30, dtype=int)
        proposed = np.where(np.arange(30) < 26, 0, 1)
        event = {"labels": labels, "n_clusters": 1, "proposed_labels": proposed, "log_ratio": -3.0}
        view.show(chain.frame(5, accepted=False, **event))
        np.testing.assert_array_equal(view.proposal.x, view.points.x[26:])
        assert "split rejected: 4 objects would have left their cluster (ringed)" in view.legend.value
        view.adapt(replace(chain.dataset, noun="wine"), chain.posterior)
        view.redraw()
        assert "split rejected: 4 wines would have left their cluster (ringed)" in view.legend.value
        view.show(chain.frame(9))
        assert view.proposal.x.size == 0

    def test_after_a_step_those_that_moved_are_ringed(self, view: PartitionView, chain: Chain) -> None:
        view.show(chain.frame(6))
        view.show(chain.frame(7))
        moved = changed_objects(chain.events[5].labels, chain.events[6].labels)
        assert moved.size
        np.testing.assert_array_equal(view.proposal.x, view.points.x[moved])
        assert f">{moved.size} object" in view.legend.value
        for frame in (chain.frame(8, PlayerState.PLAYING), chain.frame(20)):
            view.show(frame)
            assert view.proposal.x.size == 0

    def test_the_first_iteration_is_compared_with_the_start(self, view: PartitionView, chain: Chain) -> None:
        start = np.zeros(30, dtype=int)
        view.show(replace(chain.frame(0), event=chain.events[0]._replace(labels=start, n_clusters=1)))
        assert "ringed" not in view.legend.value  # nothing has happened yet
        view.show(chain.frame(1))
        moved = changed_objects(start, chain.events[0].labels)
        assert moved.size
        np.testing.assert_array_equal(view.proposal.x, view.points.x[moved])
        assert "changed cluster (ringed)" in view.legend.value

    def test_there_is_room_for_ellipses_where_they_are_shown(self, view: PartitionView, chain: Chain) -> None:
        view.show(chain.frame(9))
        x, y = view.plane.scales.values()
        before = (x.min, x.max, y.min, y.max)
        view.ellipses.value = True
        outlines = view.outlines.mark
        assert outlines.visible
        for scale, values, low, high in ((x, outlines.x, *before[:2]), (y, outlines.y, *before[2:])):
            assert scale.min < low < high < scale.max
            assert scale.min <= np.nanmin(values) < np.nanmax(values) <= scale.max
        view.ellipses.value = False
        assert (x.min, x.max, y.min, y.max) == before


class TestShapes:
    """Eight colours can be told apart by everybody; beyond them shapes do."""

    def test_up_to_eight_clusters_are_circles(self, view: PartitionView, chain: Chain) -> None:
        view.show(chain.frame(5, labels=np.arange(30) % N_DISTINCT))
        assert [cover.x.size for cover in view.dots.covers] == [0, 0, 0]

    def test_the_ninth_cluster_has_another_shape(
        self, view: PartitionView, shared: SharedState, chain: Chain
    ) -> None:
        labels = np.arange(30) % 10
        frame = chain.frame(5, labels=labels)
        view.show(frame)
        others = np.flatnonzero(shared.colours(frame) >= N_DISTINCT)
        assert len(set(labels[others])) == 2
        squares = view.dots.covers[0]
        assert squares.marker == "square"
        np.testing.assert_array_equal(squares.x, view.points.x[others])
        assert squares.colors == [view.points.colors[place] for place in others]
        # The legend has nine entries, and says how many more there are.
        assert [view.legend.value.count(f"ew-{shape}") for shape in ("circle", "square")] == [8, 1]
        assert "and 1 more" in view.legend.value
        drawn = Figure().subplots()
        view.paint(drawn)
        assert [len(points.get_offsets()) for points in drawn.collections] == [30, others.size]

    def test_each_shape_hides_the_circle_under_it(self, view: PartitionView) -> None:
        radius = np.sqrt(view.points.default_size / np.pi)
        # The radius of the largest circle within a shape of an area, as d3 draws them.
        inner = {
            "square": lambda area: np.sqrt(area) / 2,
            "triangle-up": lambda area: np.sqrt(area / (3 * np.sqrt(3))),
            "diamond": lambda area: np.sqrt(area * np.sqrt(3) / 8),
        }
        for cover in view.dots.covers:
            assert inner[cover.marker](cover.default_size) >= radius - 0.05

    def test_they_fade_and_move_along_with_the_objects(
        self, view: PartitionView, shared: SharedState, chain: Chain
    ) -> None:
        frame = chain.frame(5, labels=np.arange(30) % 10)
        view.show(frame)
        others = np.flatnonzero(shared.colours(frame) >= N_DISTINCT)
        squares = view.dots.covers[0]
        shared.selection.set(others[1:3])
        np.testing.assert_array_equal(squares.selected, [1, 2])
        view.plane.choosers[0].value = chain.dataset.feature_names[2]
        np.testing.assert_array_equal(squares.x, chain.dataset.X[others, 2])
        shared.selection.clear()
        assert squares.selected is None
        view.show(chain.frame(6, labels=np.zeros(30, dtype=int)))
        assert squares.x.size == 0


class TestGliding:
    def glides(self, view: PartitionView) -> bool:
        return "ew-glides" in view.figure._dom_classes

    def test_a_step_glides_and_a_jump_does_not(self, view: PartitionView, chain: Chain) -> None:
        for iteration, expected in ((6, False), (7, True), (20, False)):
            view.show(chain.frame(iteration))
            assert self.glides(view) == expected

    def test_slow_speeds_glide_and_others_do_not(self, view: PartitionView, chain: Chain) -> None:
        for iteration, speed, expected in ((5, 0.1, True), (6, 1.0, False), (7, None, False), (8, 0.1, True)):
            frame = chain.frame(iteration, PlayerState.PLAYING)
            view.show(replace(frame, status=replace(frame.status, speed=speed)))
            assert self.glides(view) == expected

    def test_what_is_chosen_at_rest_glides(
        self, view: PartitionView, shared: SharedState, chain: Chain
    ) -> None:
        view.show(chain.frame(20))
        shared.set_colouring("classes")
        assert self.glides(view)
        view.show(chain.frame(30, PlayerState.PLAYING))
        assert not self.glides(view)
        view.show(chain.frame(40))
        view.plane.choosers[0].value = chain.dataset.feature_names[2]
        assert self.glides(view)

    def test_the_class_is_sent_before_what_changes(
        self, view: PartitionView, chain: Chain, wire: Wire
    ) -> None:
        view.show(chain.frame(6))
        wire.clear()
        view.show(chain.frame(7))
        senders = [sender for sender, _ in wire.messages]
        assert senders.index(view.figure.comm.comm_id) < senders.index(view.points.comm.comm_id)

    def test_a_cluster_keeps_its_place_among_the_ellipses(
        self, outlined: PartitionView, chain: Chain
    ) -> None:
        labels, mark = np.repeat([0, 1, 2], [14, 9, 7]), outlined.outlines.mark
        outlined.show(chain.frame(5, labels=labels))
        first, _, third = mark.colors
        # The second joins the first: nothing may turn into something else.
        outlined.show(chain.frame(6, labels=np.repeat([0, 1], [23, 7])))
        assert mark.colors == [first, GREY, third]
        assert np.ptp(mark.y[1]) == 0.0, "one point, which is not seen; without any, bqplot reports errors"
        assert np.isfinite(mark.y[1]).all()
        assert np.nanmax(mark.y[2]) > np.nanmin(mark.y[2])
        # What is new takes a place that was empty.
        outlined.show(chain.frame(7, labels=labels))
        assert len(mark.colors) == 3
        assert mark.colors[2] == third


class TestEllipses:
    def test_each_cluster_of_three_or_more_has_two_in_its_colour(
        self, outlined: PartitionView, chain: Chain
    ) -> None:
        outlined.show(chain.frame(5, labels=np.array([0] * 20 + [1] * 6 + [2] * 2 + [3, 4])))
        mark = outlined.outlines.mark
        assert mark.visible
        assert mark.colors == [outlined.points.colors[0], outlined.points.colors[20]]
        assert np.isnan(mark.y).sum(axis=1).tolist() == [1, 1]
        assert not np.isnan(mark.y[:, -1]).any(), "the browser places something at the end of a line"

    def test_they_hold_what_they_say_in_what_is_shown(self, outlined: PartitionView, chain: Chain) -> None:
        labels = np.zeros(30, dtype=int)
        outlined.plane.choosers[0].value = chain.dataset.feature_names[2]
        outlined.show(chain.frame(5, labels=labels))
        shapes = chain.posterior.cluster_shapes(labels, outlined.frame.event.theta)
        # The data are the canonical coordinates; how wide an ellipse is says how much it holds.
        outer = np.sqrt(-2.0 * np.log(1.0 - 0.9))
        reach = np.nanmax(outlined.outlines.mark.x) - shapes.centres[0, 2]
        np.testing.assert_allclose(reach, outer * np.sqrt(shapes.covariances[0, 2, 2]), rtol=1e-6)

    def test_they_follow_the_chain_by_one_message(
        self, outlined: PartitionView, chain: Chain, wire: Wire
    ) -> None:
        outlined.show(chain.frame(5, labels=THREE))
        wire.clear()
        outlined.show(chain.frame(6, labels=np.arange(30) % 2))
        mark = outlined.outlines.mark
        (sent,) = [data for sender, data in wire.messages if sender == mark.comm.comm_id]
        assert {"x", "y"} <= set(sent["state"])
        assert len(mark.colors) == 2

    def test_they_are_those_of_what_the_colours_show(
        self, outlined: PartitionView, shared: SharedState, chain: Chain
    ) -> None:
        outlined.show(chain.frame(5, labels=np.zeros(30, dtype=int)))
        assert len(outlined.outlines.mark.colors) == 1
        shared.set_colouring("classes")
        assert len(outlined.outlines.mark.colors) == 3
        assert set(outlined.outlines.mark.colors) == set(outlined.points.colors)

    def test_they_can_be_switched_off_and_on(self, outlined: PartitionView, chain: Chain) -> None:
        mark = outlined.outlines.mark
        outlined.show(chain.frame(5, labels=THREE))
        outlined.ellipses.value = False
        assert not mark.visible
        outlined.show(chain.frame(6, labels=np.arange(30) % 2))
        assert not mark.visible
        outlined.ellipses.value = True
        assert mark.visible
        assert len(mark.colors) == 2

    def test_singletons_the_start_and_a_row_number_have_none(
        self, outlined: PartitionView, chain: Chain
    ) -> None:
        mark = outlined.outlines.mark
        for other in (chain.frame(6, labels=np.arange(30)), chain.frame(0)):
            outlined.show(chain.frame(5, labels=THREE))
            assert mark.visible
            outlined.show(other)
            assert not mark.visible
        outlined.show(chain.frame(5, labels=THREE))
        outlined.plane.choosers[0].value = "row number"
        assert not mark.visible
        outlined.plane.choosers[0].value = chain.dataset.feature_names[0]
        assert mark.visible

    def test_a_static_picture_has_them_too(self, outlined: PartitionView, chain: Chain) -> None:
        outlined.show(chain.frame(5, labels=THREE))
        for is_shown in (True, False):
            outlined.ellipses.value = is_shown
            drawn = Figure().subplots()
            outlined.paint(drawn)
            assert len(drawn.lines) == (3 if is_shown else 0)
