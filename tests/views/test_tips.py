"""What is said of the place under the mouse, by the views that show it."""

import numpy as np
import pytest
from views.chains import Chain, Wire, made

from ewens_widgets.playback import PlayerState
from ewens_widgets.views import CountView, HeatmapView, PartitionView, SharedState, ThetaView, TreeView, View
from ewens_widgets.views.figures import Canvas
from ewens_widgets.views.page import Page

SIZE = (500.0, 400.0)


def laid_out(kind: type[View], shared: SharedState, chain: Chain) -> tuple[View, Canvas]:
    """A view that shows the chain, and its figure on a page."""
    view = made(kind, shared, chain)
    view.show(chain.frame(40))
    figure = view.figure
    figure.fit(1.0, SIZE)
    return view, figure


def pixel(figure: Canvas, x: float, y: float) -> tuple[float, float]:
    """Pixel of a place that is given as shares of the plot, from the left and from below."""
    margin = figure.fig_margin
    width = SIZE[0] - margin["left"] - margin["right"]
    height = SIZE[1] - margin["top"] - margin["bottom"]
    return margin["left"] + x * width, margin["top"] + (1.0 - y) * height


def object_pixel(view: PartitionView, number: int) -> tuple[float, float]:
    scales, point = view.plane.scales, (view.points.x[number], view.points.y[number])
    shares = [
        (value - scale.min) / (scale.max - scale.min)
        for value, scale in zip(point, (scales["x"], scales["y"]), strict=True)
    ]
    return pixel(view.figure, *shares)


class TestPartition:
    def test_an_object_has_a_name_a_class_and_a_cluster(self, shared: SharedState, chain: Chain) -> None:
        view, figure = laid_out(PartitionView, shared, chain)
        text = figure.point(object_pixel(view, 7))
        name, known, cluster = text.splitlines()
        assert name == "object 7"
        assert known == "class: 1"
        labels = chain.events[39].labels
        mates = np.flatnonzero(labels == labels[7])
        assert cluster.startswith(f"in a cluster of {mates.size} objects; together")
        together = chain.trace.similarity()[7, mates[mates != 7]].mean()
        assert cluster.endswith(f"{100 * together:.0f} % of draws on average")

    def test_the_answer_tells_a_probability(self, shared: SharedState, chain: Chain) -> None:
        view, figure = laid_out(PartitionView, shared, chain)
        end, answers = chain.frame(40, PlayerState.FINISHED), chain.answers(shared)
        answers.ask(end)
        for screen in (shared, view):
            screen.show(answers.add_to(end))
        expected = chain.trace.answer().certainty[7]
        assert figure.point(object_pixel(view, 7)).endswith(f"membership probability {expected:.2f}")

        assert figure.point(pixel(figure, 0.001, 0.999)) == ""
        assert figure.point((1.0, 1.0)) == ""
        assert figure.point(None) == ""


def test_the_heatmap_rings_both_objects(shared: SharedState, chain: Chain) -> None:
    scatter, _ = laid_out(PartitionView, shared, chain)
    view, figure = laid_out(HeatmapView, shared, chain)
    band = -view._scales["x"].min
    row, column, size = 3, 20, len(view._order)
    text = figure.point(
        pixel(figure, (band + (column + 0.5) / size) / (1.0 + band), 1.0 - (row + 0.5) / size)
    )
    one, other = int(view._order[row]), int(view._order[column])
    share = chain.trace.similarity()[one, other]
    assert text == f"object {one} and object {other}\ntogether in {100 * share:.0f} % of draws"
    assert sorted(scatter.pointed.x) == sorted(scatter.points.x[[one, other]])
    figure.point(None)
    assert len(scatter.pointed.x) == 0


def test_nodes_of_the_tree(shared: SharedState, chain: Chain) -> None:
    view, figure = laid_out(TreeView, shared, chain)
    tree = shared.live_tree.tree(chain.frame(40))
    assert tree is not None
    links = tree.links()
    band, top = -view._x_scale.min, view._y_scale.max
    x = (links[-1, 1:3, 0].mean() + 0.5) / tree.n_leaves
    text = figure.point(pixel(figure, (band + x) / (1.0 + band), links[-1, 1, 1] / top))
    assert text.startswith("node of 30 objects\n")
    assert text.endswith("% of draws")


@pytest.mark.parametrize(("kind", "word"), [(CountView, "of draws"), (ThetaView, "probability")])
def test_bars(shared: SharedState, chain: Chain, kind: type[View], word: str) -> None:
    _, figure = laid_out(kind, shared, chain)
    assert word in figure.point(pixel(figure, 0.5, 0.5))
    assert figure.point(None) == ""


def test_a_page_is_answered(wire: Wire) -> None:
    asked: list[tuple[str, str, tuple[float, float] | None]] = []
    page = Page(None, lambda *where: asked.append(where))
    page._handle_custom_msg({"kind": "point", "viewer": "me", "figure": "ew-scatter", "x": 3, "y": 4.5}, [])
    page._handle_custom_msg({"kind": "point", "viewer": "me", "figure": "ew-scatter"}, [])
    page._handle_custom_msg({"kind": "point", "viewer": "me", "figure": "ew-scatter", "x": "?", "y": 1}, [])
    assert asked == [("me", "ew-scatter", (3.0, 4.5)), ("me", "ew-scatter", None), ("me", "ew-scatter", None)]
    page.tip("me", "object 3")
    assert wire.custom() == [{"kind": "tip", "viewer": "me", "text": "object 3"}]
