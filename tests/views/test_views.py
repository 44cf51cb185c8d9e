"""What each view shows."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from views.chains import Chain, Wire

from ewens_widgets.analysis.plots.charts import theta_text
from ewens_widgets.analysis.plots.heatmap_plot import ordered_means
from ewens_widgets.analysis.plots.palette import GREY, SELECTED, rgb
from ewens_widgets.analysis.plots.scatter_plot import projections
from ewens_widgets.datasets import Dataset
from ewens_widgets.playback import PlayerState
from ewens_widgets.views import HeatmapView, PartitionView, Stage, ThetaView, TracesView, TreeView, View
from ewens_widgets.views.figures import nice_limits, nice_ticks
from ewens_widgets.views.heatmap_view import band_share
from ewens_widgets.views.stage import Cut, LiveTree
from ewens_widgets.views.traces_view import thinned


@pytest.fixture
def stage(wire: Wire, chain: Chain) -> Stage:
    stage = Stage()
    stage.prepare(chain.posterior)
    return stage


def made(kind: type[View], stage: Stage, chain: Chain) -> View:
    view = kind(stage)
    view.prepare(chain.dataset, chain.posterior)
    return view


def pixels(view: HeatmapView) -> np.ndarray:
    with Image.open(BytesIO(view.image.image.value)) as picture:
        return np.asarray(picture.convert("RGB"))


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
        view.choosers[0].value = chain.dataset.feature_names[2]
        np.testing.assert_array_equal(view.points.x, chain.dataset.X[:, 2])
        assert view._x_axis.label == chain.dataset.feature_names[2]
        assert view._x_scale.min < view.points.x.min() < view.points.x.max() < view._x_scale.max

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

    def test_two_columns_are_shown_as_they_are(self, rng: np.random.Generator) -> None:
        assert list(projections(Dataset(X=rng.normal(size=(9, 2)))))[:2] == ["x1", "x2"]
        assert list(projections(Dataset(X=rng.normal(size=(9, 3)))))[:2] == ["PC 1", "PC 2"]
        assert list(projections(Dataset(X=rng.normal(size=(9, 1))))) == ["x1", "row number"]

    def test_principal_components_have_decreasing_spread(self, rng: np.random.Generator) -> None:
        X = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
        shown = projections(Dataset(X=X))
        spreads = [shown[f"PC {k}"].std() for k in range(1, 5)]
        assert spreads == sorted(spreads, reverse=True)
        np.testing.assert_allclose(np.square(spreads).sum(), 4.0)
        assert abs(np.corrcoef(shown["PC 1"], shown["PC 2"])[0, 1]) < 1e-9


class TestTheta:
    def test_bars_are_average_and_conditional(self, stage: Stage, chain: Chain) -> None:
        view = made(ThetaView, stage, chain)
        view.show(chain.frame(10))
        np.testing.assert_allclose(view.bars.y[0], chain.trace.theta_weights[:10].mean(axis=0), atol=1e-4)
        np.testing.assert_allclose(view.bars.y[1], chain.events[9].theta_weights, atol=1e-4)
        np.testing.assert_allclose(np.sum(view.prior.y), 1.0)

    @pytest.mark.usefixtures("wire")
    def test_burn_in_is_left_out(self) -> None:
        chain = Chain(burn_in=8)
        view = made(ThetaView, Stage(), chain)
        view.show(chain.frame(10))
        np.testing.assert_allclose(view.bars.y[0], chain.trace.theta_weights[8:10].mean(axis=0), atol=1e-4)

    @pytest.mark.parametrize(("value", "text"), [(0.125, "1/8"), (1.0, "1"), (1024.0, "1024"), (0.3, "0.3")])
    def test_values_are_short(self, value: float, text: str) -> None:
        assert theta_text(value) == text


class TestHeatmap:
    def test_picture_is_the_distance_in_tree_order(self, stage: Stage, chain: Chain) -> None:
        view = made(HeatmapView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        order = stage.live_tree.tree(frame).leaves_order
        distance = 1 - chain.trace.similarity()[np.ix_(order, order)]
        shown = pixels(view)
        side = distance.shape[0]
        np.testing.assert_allclose(shown[:, -side:, 0] / 255.0, distance, atol=0.005)
        assert shown.shape == (side, side + round(side * band_share(side)), 3)

    def test_the_band_has_the_clusters_colours(self, stage: Stage, chain: Chain) -> None:
        view, scatter = made(HeatmapView, stage, chain), made(PartitionView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        scatter.show(frame)
        order = stage.live_tree.tree(frame).leaves_order
        band = [tuple(colour) for colour in pixels(view)[:, 0].tolist()]
        assert band == [rgb(scatter.points.colors[item]) for item in order]

    def test_selected_objects_are_marked_in_the_band(self, stage: Stage, chain: Chain) -> None:
        view = made(HeatmapView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        order = stage.live_tree.tree(frame).leaves_order
        stage.selection.set(order[:3])
        width = round(30 * band_share(30))
        marks = [tuple(colour) == rgb(SELECTED) for colour in pixels(view)[:, width - 1].tolist()]
        assert marks == [True] * 3 + [False] * 27

    def test_brushing_selects_rows_and_columns(self, stage: Stage, chain: Chain) -> None:
        view = made(HeatmapView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        order = stage.live_tree.tree(frame).leaves_order
        view.brush.selector.selected_x = np.array([0.01, 3.9 / 30])
        view.brush.selector.selected_y = np.array([1 - 9.9 / 30, 1 - 7.1 / 30])
        np.testing.assert_array_equal(stage.selection.objects, np.sort(order[[0, 1, 2, 3, 7, 8, 9]]))

    def test_another_colour_map(self, stage: Stage, chain: Chain) -> None:
        view = made(HeatmapView, stage, chain)
        view.show(chain.frame(40))
        view.colours.value = "viridis"
        assert not np.array_equal(pixels(view)[:, -30:, 0], pixels(view)[:, -30:, 2])

    def test_many_objects_are_averaged_in_blocks(self, rng: np.random.Generator) -> None:
        matrix = rng.random((10, 10))
        matrix += matrix.T
        order = rng.permutation(10)
        ordered = matrix[np.ix_(order, order)]
        blocks = ordered_means(matrix, order, 4)
        assert blocks.shape == (4, 4)
        np.testing.assert_allclose(blocks[0, 1], ordered[:3, 3:6].mean())
        np.testing.assert_allclose(blocks[2, 3], ordered[6:9, 9].mean())
        np.testing.assert_allclose(blocks[3, 3], ordered[9, 9])
        np.testing.assert_array_equal(ordered_means(matrix, order, 10), ordered)

    @pytest.mark.usefixtures("wire")
    def test_large_pictures_stay_small(self) -> None:
        chain = Chain(n_objects=1001, n_draws=3)
        view = made(HeatmapView, Stage(), chain)
        view.stage.prepare(chain.posterior)
        view.show(chain.frame(3))
        height, width, _ = pixels(view).shape
        assert height == 334
        assert width <= 400


class TestTree:
    def test_outline_is_one_line_with_gaps(self, stage: Stage, chain: Chain) -> None:
        view = made(TreeView, stage, chain)
        view.show(chain.frame(40))
        x, y = np.asarray(view.lines.x), np.asarray(view.lines.y)
        assert x.size == y.size == 5 * 29 - 1
        assert np.isnan(y).sum() == 28
        assert 0.0 < np.nanmin(x) < np.nanmax(x) < 1.0
        assert np.isfinite(y[-1])

    def test_dragging_the_cut_recolours_the_scatter(self, stage: Stage, chain: Chain) -> None:
        view, scatter = made(TreeView, stage, chain), made(PartitionView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        scatter.show(frame)
        assert not stage.shows_cut
        height = 0.4
        view.handle.y = np.array([height])
        assert stage.shows_cut
        assert view.shows.value
        expected = stage.live_tree.tree(frame).cut(height=height)
        colours = np.array(scatter.points.colors)
        for label in np.unique(expected):
            assert len(set(colours[expected == label])) == 1
        assert view.count.value == expected.max() + 1
        np.testing.assert_allclose(view.cut_line.y, height)
        view.shows.value = False
        scatter_colours = np.array(scatter.points.colors)
        assert not stage.shows_cut
        assert len(set(scatter_colours)) >= len(set(colours)) - 1

    def test_cutting_by_number_and_least_size(self, stage: Stage, chain: Chain) -> None:
        view = made(TreeView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        view.least.value = 5
        view.count.value = 3
        labels = stage.cut_labels(frame)
        assert labels is not None
        np.testing.assert_array_equal(
            labels, stage.live_tree.tree(frame).cut(3, min_size=5, leftovers="mark")
        )
        assert stage.cut == Cut(n_clusters=3, min_size=5)

    def test_an_impossible_cut_is_explained(self, stage: Stage, chain: Chain) -> None:
        view = made(TreeView, stage, chain)
        view.show(chain.frame(40))
        view.least.value = 10
        view.count.value = 25
        assert "25 were asked for" in view.note.value

    def test_evidence_tree_keeps_the_number_of_clusters(self, stage: Stage, chain: Chain) -> None:
        view = made(TreeView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        view.count.value = 3
        view.kind.value = "evidence"
        tree = stage.live_tree.tree(frame)
        assert tree.kind == "evidence"
        assert view.count.value == 3
        assert view._y_axis.label == "nats lost"
        assert tree.heights[-3] <= view.cut_line.y[0] <= tree.heights[-2]

    def test_leaves_have_the_clusters_colours_and_can_be_brushed(self, stage: Stage, chain: Chain) -> None:
        view, scatter = made(TreeView, stage, chain), made(PartitionView, stage, chain)
        frame = chain.frame(40)
        view.show(frame)
        scatter.show(frame)
        order = stage.live_tree.tree(frame).leaves_order
        with Image.open(BytesIO(view.leaves.image.value)) as picture:
            strip = np.asarray(picture.convert("RGB"))
        assert [tuple(c) for c in strip[0].tolist()] == [rgb(scatter.points.colors[item]) for item in order]
        view.brush.selector.selected = np.array([10.1 / 30, 11.9 / 30])
        np.testing.assert_array_equal(stage.selection.objects, np.sort(order[10:12]))

    @pytest.mark.usefixtures("wire")
    def test_too_many_clusters_for_an_evidence_tree(self) -> None:
        chain = Chain(n_objects=70, n_draws=2)
        stage = Stage()
        stage.prepare(chain.posterior)
        chain.recorder.clear()
        chain.recorder.append(chain.events[0]._replace(labels=np.arange(70), n_clusters=70))
        view = made(TreeView, stage, chain)
        view.kind.value = "evidence"
        view.show(chain.frame(1))
        assert "still has 70 clusters" in view.note.value


class TestLiveTree:
    def test_a_running_chain_gets_a_new_tree_now_and_then(self, chain: Chain) -> None:
        now = 0.0
        live = LiveTree(rest=1.0, clock=lambda: now)
        live.prepare(chain.posterior)
        first = live.tree(chain.frame(5, PlayerState.PLAYING))
        assert live.tree(chain.frame(6, PlayerState.PLAYING)) is first
        now = 1.1
        second = live.tree(chain.frame(7, PlayerState.PLAYING))
        assert second is not first
        paused = chain.frame(9)
        third = live.tree(paused)
        assert third is not second, "where the chain rests the tree is up to date"
        assert live.tree(paused) is third

    def test_before_the_first_draw_there_is_none(self, chain: Chain) -> None:
        live = LiveTree()
        live.prepare(chain.posterior)
        assert live.tree(chain.frame(0)) is None
        assert "first draws" in live.reason


class TestTraces:
    def test_lines_are_the_traces(self, stage: Stage, chain: Chain) -> None:
        view = made(TracesView, stage, chain)
        view.show(chain.frame(25))
        clusters, posterior, theta = view.panels
        np.testing.assert_array_equal(clusters.lines.x, np.arange(1, 26))
        np.testing.assert_array_equal(
            clusters.lines.y,
            np.clip(chain.trace.n_clusters[:25], clusters.axes[1].scale.min, clusters.axes[1].scale.max),
        )
        assert posterior.lines.visible
        assert theta.axes[0].scale.max == 40

    def test_the_axis_grows_with_the_run(self, stage: Stage, chain: Chain) -> None:
        view = made(TracesView, stage, chain)
        frame = chain.frame(25)
        axis = view.panels[0].axes[0]
        for iteration, target, end, tick_format in (
            (25, 100_000, 50, "~g"),
            (51, 100_000, 100, "~g"),
            (3_000, 3_000, 3_000, "~g"),
            (60_000, 200_000, 100_000, "~s"),
        ):
            status = replace(frame.status, iteration=iteration, target=target)
            view.draw(replace(frame, status=status))
            assert (axis.scale.max, axis.tick_format) == (end, tick_format)

    def test_burn_in_is_marked(self, stage: Stage, chain: Chain) -> None:
        stage.burn_in = 12
        view = made(TracesView, stage, chain)
        view.show(chain.frame(25))
        assert all(panel.start.visible for panel in view.panels)
        np.testing.assert_array_equal(view.panels[0].start.x, [12, 12])
        stage.burn_in = 0
        view.show(chain.frame(26))
        assert not any(panel.start.visible for panel in view.panels)

    def test_acceptance_by_move(self, stage: Stage, chain: Chain) -> None:
        view = made(TracesView, stage, chain)
        view.show(chain.frame(25))
        rate = chain.trace[:25].acceptance["gibbs"]
        assert f"{100 * rate:.1f} %" in view.acceptance.value

    def test_long_traces_are_thinned(self) -> None:
        places = thinned(100_001, 240)
        assert places.size <= 240
        assert places[-1] == 100_000
        assert np.all(np.diff(places) == np.diff(places)[0])
        np.testing.assert_array_equal(thinned(5), np.arange(5))
        assert thinned(0).size == 0

    def test_limits_change_rarely(self) -> None:
        assert nice_limits(3.0, 7.0) == nice_limits(3.1, 7.05)
        low, high = nice_limits(5.0, 5.0)
        assert low < 5.0 < high
        assert nice_limits(float("-inf"), 0.0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.5, 1.0]),
        (-4.5, 4.9, [-4.0, -2.0, 0.0, 2.0, 4.0]),
        (0.0, 3000.0, [0.0, 1000.0, 2000.0, 3000.0]),
        (2.0, 2.0, [2.0]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high, 5 if low < 0 else 4).tolist() == ticks
