"""Traits, listeners and single views: what code outside the Explorer and the Watcher can rely on."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ipywidgets import IntSlider, jslink, link
from traitlets import TraitError
from views.chains import Wire, widgets_below

import ewens_widgets as ew
from ewens_widgets.views.programmed import LoneView, Programmed

pytestmark = pytest.mark.usefixtures("wire")

DATA = ew.datasets.unit_square(per_cluster=5, seed=0)


def explorer(speed: float | None = 1.0) -> ew.Explorer:
    return ew.Explorer(DATA, model="I", iterations=300, burn_in=20, speed=speed)


def watcher() -> Programmed:
    rng = np.random.default_rng(0)
    return ew.watch((rng.integers(3, size=20) for _ in range(300)), DATA, iterations=300)


@pytest.fixture(params=[explorer, watcher])
def one(request: pytest.FixtureRequest) -> Iterator[Programmed]:
    made = request.param()
    yield made
    made.close()


def test_traits_follow_the_chain_and_can_be_linked(one: Programmed) -> None:
    slider, seen = IntSlider(max=10), []
    link((one, "iteration"), (slider, "value"))
    jslink((one, "iteration"), (IntSlider(), "value"))
    one.observe(lambda change: seen.append(change["new"]), "iteration")
    for count in (4, 30):
        one.player.step_sync(count)
        one.player.refresh()
    # A slider that ends earlier does not hold the chain back.
    assert (seen[-1], slider.value) == (34, 10)
    assert one.player.status.is_following
    one.iteration = 7
    assert one.player.status.shown_iteration == 7
    assert slider.value == 7
    with pytest.raises(ValueError, match="iteration 99 is not recorded; choose one from"):
        one.iteration = 99
    assert one.iteration == 7


def test_running_is_a_trait_too(one: Programmed) -> None:
    with pytest.raises(RuntimeError, match="needs a running event loop"):
        one.is_running = True
    assert not one.is_running

    async def use() -> None:
        made = explorer(speed=None)
        told = []
        made.observe(lambda change: told.append(change["new"]), "is_running")
        made.player.target_iterations = 1_000_000
        made.is_running = True
        while made.iteration < 5:  # without any page
            await asyncio.sleep(0.01)
        made.is_running = False
        assert made.player.status.state == "paused"
        made.player.target_iterations = made.iteration
        made.is_running = True  # at the end there is nothing to run
        assert told == [True, False]
        assert made.player.status.state == "finished"
        made.close()

    asyncio.run(use())


def test_the_selection_goes_both_ways(one: Programmed) -> None:
    seen = []
    one.observe(lambda change: seen.append(change["new"]), "selection")
    one.selection = np.array([5, 3, 3])
    assert one.shared.selection.objects.tolist() == one.selection == [3, 5]
    one.shared.selection.set([0])
    assert seen == [[3, 5], [0]]
    assert one.selected_index == [0]
    for wrong, words in (
        ([20], "positions from 0 to 19"),
        ([-1], "positions from"),
        ("ab", "a list of positions"),
    ):
        with pytest.raises(TraitError, match=words):
            one.selection = wrong
    assert one.selection == [0]


def test_rows_with_names_are_selected_by_name() -> None:
    roads = ew.datasets.denmark_roads_standin(seed=0)
    named = ew.Explorer(
        ew.datasets.Dataset(roads.X, row_names=tuple(f"road {k}" for k in range(len(roads.X))))
    )
    named.selection = [2, 0]
    assert named.selected_index == ["road 0", "road 2"]


def test_the_answer_is_told_and_forgotten_with_its_chain() -> None:
    made, told = explorer(), []
    made.observe(lambda change: told.append(change["new"]), "n_groups")
    assert made.answer is None
    made.player.run_to_end_sync()
    found = made.answer
    assert found is not None
    assert found.labels.tolist() == made.answer_labels
    assert told == [found.n_clusters] == [made.n_groups]
    made.use_preset("data=square&model=II")
    assert (made.n_groups, made.answer_labels, made.answer) == (None, [], None)


def test_every_iteration_is_told_in_order_until_the_listener_is_removed(one: Programmed) -> None:
    seen: list[int] = []

    def stop_after_thirty(event: ew.Event) -> None:
        seen.append(event.iteration)
        if len(seen) == 30:
            remove()

    remove = one.on_event(stop_after_thirty)
    one.player.step_sync(1)
    one.player.step_sync(200)
    assert seen == list(range(1, 31))
    remove()


def test_frames_are_told(one: Programmed) -> None:
    lengths: list[int] = []
    remove = one.on_frame(lambda frame: lengths.append(len(frame.summary)))
    one.player.step_sync(9)
    one.player.refresh()
    remove()
    one.player.refresh()
    assert lengths == [0, 9]


@pytest.mark.parametrize("kind", ["on_event", "on_frame"])
def test_a_listener_that_raises_is_removed_and_shown(one: Programmed, kind: str) -> None:
    calls, others = [], []

    def wrong(_: object) -> None:
        calls.append(1)
        raise ValueError("<script>")

    getattr(one, kind)(wrong)
    getattr(one, kind)(lambda _: others.append(1))
    for _ in range(3):
        one.player.step_sync(2)
        one.player.refresh()
    assert len(calls) == 1 < len(others)
    assert one.player.status.iteration == 6
    shown = [
        widget.value
        for widget in widgets_below(one)
        if "ew-listener-error" in getattr(widget, "_dom_classes", ())
    ]
    assert len(shown) == 1
    assert "wrong was removed</b> because it raised ValueError: &lt;script&gt;" in shown[0]
    with pytest.raises(TypeError, match=f"{kind} takes a function"):
        getattr(one, kind)("print")


def test_a_view_alone_follows_chain_selection_and_data() -> None:
    made = explorer()
    names = ("partition", "similarity", "tree", "counts", "theta", "traces")
    alone = {name: made.view(name) for name in names}
    made.player.step_sync(40)
    made.player.refresh()
    both = [(made.views["partition"], alone["partition"].view), (made.views["counts"], alone["counts"].view)]
    (partition, lone), (counts, other) = both
    assert lone.points.colors == partition.points.colors
    np.testing.assert_array_equal(other.bars.y, counts.bars.y)
    made.selection = [1, 2]
    assert lone.points.selected.tolist() == [1, 2]
    assert all(view.picture().startswith(b"\x89PNG") for view in alone.values())
    made.use_preset("data=moons&model=II")
    assert lone.points.x.size == made.dataset.n_objects != DATA.n_objects
    with pytest.raises(ValueError, match="no view 'heat'; choose one of partition"):
        made.view("heat")


def test_a_view_that_fails_comes_back_with_other_data_and_one_that_is_closed_leaves_the_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = explorer()
    alone: LoneView = made.view("counts")

    def fail(_: object) -> None:
        raise ValueError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(alone.view, "draw", fail)
        made.player.step_sync(3)
        made.player.refresh()
    assert "no room" in alone.view._error.value
    made.use_preset("data=square&model=II")
    assert alone.view._error.value == ""
    frame = alone.view.frame
    alone.close()
    made.player.step_sync(3)
    made.player.refresh()
    made.selection = [0]
    assert alone.view.frame is frame
    assert made.iteration == 3


def test_traits_cost_one_message_a_frame(one: Programmed, wire: Wire) -> None:
    one.player.step_sync(3)
    one.player.refresh()
    one.player.step_sync(1)
    wire.clear()
    one.player.refresh()
    assert wire.updates()[one.comm.comm_id] <= 1


ITEMS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ew.watch("aab"), TypeError, "a list or a generator of label vectors"),
    (lambda: ew.watch([]), ValueError, "nothing to watch: the list"),
    (lambda: ew.watch(iter(())), ValueError, "nothing to watch: the source"),
    (lambda: ew.watch([3]), ValueError, "one label for each of at least two objects"),
    (lambda: ew.watch([[0, 1]], iterations=-1), ValueError, "iterations must be at least 1"),
]


@pytest.mark.parametrize(("make", "error", "message"), ITEMS)
def test_what_cannot_be_watched_is_explained(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


def test_names_and_pairs_are_labels_too_and_a_reset_shows_them_again() -> None:
    items = [(["a", "b", "a"], -3.0), (["x", "x", "x"], -1.0)]
    watched = ew.watch(iter(items))
    watched.player.run_to_end_sync()
    assert watched.trace.labels.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert watched.trace.log_posterior.tolist() == [-3.0, -1.0]
    assert "partition" not in watched.views
    watched.player.reset()
    watched.player.run_to_end_sync()
    assert watched.trace.best.tolist() == [0, 0, 0]
    assert watched.trace.similarity()[0].tolist() == [1.0, 0.5, 1.0]


def test_a_source_that_breaks_stops_the_player_with_its_message() -> None:
    watched = ew.watch([[0, 1, 1]] * 5 + [[0, 1]])
    with pytest.raises(ValueError, match="item 6 has the labels of 2 objects; 3 are expected"):
        watched.player.run_to_end_sync()
    assert watched.player.status.iteration == 5, "what came before is kept"
