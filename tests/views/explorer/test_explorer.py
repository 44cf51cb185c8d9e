"""The dashboard without a browser: what it shows, and how frames travel."""

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest
from playback.fakes import QuickTime, empty_turns
from views.chains import Wire, widgets_below
from views.explorer.small_explorer import html_of, square, step

import ewens_widgets as ew
from ewens_widgets.playback import PlayerState
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.views.explorer.explorer import Explorer
from ewens_widgets.views.explorer.settings import SamplerSettings

pytestmark = pytest.mark.usefixtures("wire")


class TestStart:
    def test_all_views_show_the_initial_state(self, explorer: Explorer) -> None:
        assert html_of(explorer) == "iteration 0 of 200"
        assert explorer.headline.sentence.value.startswith(
            "20 points × 2 features; initially every point is its own"
        )
        assert "<b>unit square</b> · 20 points · model I · invariant to shifts, rot" in explorer.title.value
        assert all(view.frame is not None for view in explorer.views.values())
        assert explorer.labels.tolist() == list(range(20))

    def test_parts_are_accessible_and_within_the_burn_in_the_trace_has_all_draws(
        self, explorer: Explorer
    ) -> None:
        step(explorer, 7)
        assert len(explorer.trace) == 7
        step(explorer, 23)
        assert explorer.sampler.iteration == 30
        assert len(explorer.trace) == 10
        np.testing.assert_array_equal(explorer.labels, explorer.sampler.labels)
        assert repr(explorer) == "Explorer('unit square', model I, iteration 30 of 200)"

    def test_arrays_and_nothing_are_data_too(self, rng: np.random.Generator) -> None:
        assert Explorer(rng.normal(size=(9, 2))).dataset.n_objects == 9
        assert Explorer().dataset.name == "unit square"

    def test_unknown_keywords_and_wrong_values_raise(self) -> None:
        with pytest.raises(TypeError, match="colour"):
            Explorer(square(), colour="red")
        with pytest.raises(ValueError, match="concentration must be positive"):
            Explorer(square(), concentration=-1)

    def test_the_chain_is_the_sampler_s(self, explorer: Explorer) -> None:
        step(explorer, 25)
        draws = ew.Sampler(square(), model="I", seed=0).sample(25, progress=False)
        np.testing.assert_array_equal(explorer.recorder.labels, draws.labels)

    def test_other_schedules_are_kept_as_given(self) -> None:
        moves = [("gibbs", 2), "reassign"]
        explorer = Explorer(square(), moves=moves, initial=[0, 1] * 10)
        assert explorer.panel.read() == explorer.settings
        assert [entry.move.name for entry in explorer.sampler.schedule] == ["gibbs", "reassign"]


class TestOpening:
    """What has to reach a page before anything is seen, and what is made later."""

    def test_it_takes_few_widgets_and_messages(self, wire: Wire) -> None:
        Explorer(ew.datasets.wine())
        assert len(wire.opened) <= 300
        assert len(wire.opened) + len(wire.messages) <= 400

    def test_panels_are_made_when_they_are_opened(self, explorer: Explorer) -> None:
        step(explorer, 3)
        assert not {"ew-alpha", "ew-seed", "ew-burn-in", "ew-export"} & names_in(explorer)
        explorer.sections.selected_index = 1
        assert "ew-export" in names_in(explorer)
        explorer.sections.selected_index = 0
        inner = explorer.more.content
        for place, expected in enumerate(("ew-seed", "ew-burn-in", "ew-alpha")):
            inner.selected_index = place
            assert expected in names_in(explorer)
        inner.selected_index = None
        assert explorer.panel.read() == explorer.settings
        assert explorer.player.status.iteration == 3

    def test_settings_are_read_before_the_moves_are_opened(self) -> None:
        explorer = Explorer(square(), model="I", seed=7, moves="paper-2", metric="euclidean")
        explorer.panel.model_box.fields["model"].control.value = "III"
        assert explorer.settings == SamplerSettings(
            model="III", seed=7, moves=resolve_schedule("paper-2", "common"), metric="euclidean"
        )

    def test_a_data_panel_that_is_opened_late_offers_the_first_data_too(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"x": [1.0, 2.0, 9.0, 4.0], "y": [3.0, 5.0, 4.0, 1.0]})
        explorer = Explorer(frame)
        first = explorer.dataset.name
        explorer.use_preset("four corners")
        panel = explorer.data_panel
        assert panel.chooser.value == explorer.dataset.name != first
        assert panel.columns.children == ()
        panel.chooser.value = first
        assert explorer.dataset.feature_names == ("x", "y")
        assert set(panel.columns.controls) == {"x", "y"}

    def test_three_pictures_come_first_and_the_others_at_a_click(self, explorer: Explorer) -> None:
        shown = {"ew-partition", "ew-heatmap", "ew-counts"}
        others = {"ew-tree", "ew-theta", "ew-traces"}
        assert names_in(explorer) & (shown | others) == shown
        explorer.pictures_shown.value = True
        assert names_in(explorer) & (shown | others) == shown | others
        explorer.pictures_shown.value = False
        assert names_in(explorer) & (shown | others) == shown

    def test_machine_code_is_loaded_before_the_first_play(
        self, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done, advance = [], ew.Sampler.advance
        monkeypatch.setattr(
            ew.Sampler, "advance", lambda self, n, **more: done.append(self) or advance(self, n, **more)
        )
        for scale in (1, 2):
            explorer.page._on_message(None, {"kind": "room", "scale": scale, "sizes": {}}, [])
        assert len(done) == 1
        assert done[0] is not explorer.sampler
        assert explorer.player.status.iteration == explorer.sampler.iteration == 0

    def test_it_plays_when_it_is_first_seen(self) -> None:
        async def use() -> None:
            made = Explorer(square(), iterations=30, burn_in=5, autoplay="visible")
            assert made.page.announces
            made.page._on_message(None, {"kind": "seen"}, [])
            assert (await made.player.wait()).state is PlayerState.FINISHED
            made.page._on_message(None, {"kind": "seen"}, [])
            assert not made.player.status.is_running

        asyncio.run(use())
        with pytest.raises(ValueError, match='autoplay must be None or "visible"'):
            Explorer(square(), autoplay="always")


def names_in(explorer: Explorer) -> set[str]:
    """Classes of everything on the page."""
    return {name for one in widgets_below(explorer) for name in getattr(one, "_dom_classes", ())}


class TestFrames:
    def test_frames_wait_for_the_page(self, explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
        async def use() -> tuple[int, int]:
            explorer.page._on_message(None, {"kind": "here", "viewer": "tab"}, [])
            explorer.player.speed = 1  # few iterations: what is measured is frames
            explorer.player.play()
            await explorer.player.wait(0.5)
            waiting = explorer.page.frame
            explorer.page._on_message(None, {"kind": "painted", "viewer": "tab", "number": waiting}, [])
            for _ in range(100):  # how soon the next one comes depends on how late this answer was
                await explorer.player.wait(0.3)
                if explorer.page.frame > waiting:
                    break
            return waiting, explorer.page.frame

        QuickTime(explorer.player, monkeypatch)
        explorer.player.target_iterations = 100_000
        first, second = asyncio.run(use())
        assert first <= 3
        assert second > first

    def test_the_page_learns_whether_the_chain_runs_in_the_same_message(
        self, explorer: Explorer, wire: Wire
    ) -> None:
        frame = explorer.player.current_frame()
        running = replace(frame, number=99, status=replace(frame.status, state=PlayerState.PLAYING))
        wire.clear()
        explorer.page.show(running)
        ((_, data),) = wire.messages
        assert data["state"] == {"frame": 99, "is_running": True}

    def test_without_a_page_no_frame_is_sent(self, explorer: Explorer) -> None:
        async def use() -> None:
            explorer.player.run_to_end()
            await explorer.player.wait()

        before = explorer.page.frame
        asyncio.run(use())
        assert explorer.page.frame == before
        assert len(explorer.recorder) == 200

    def test_handlers_on_another_thread_leave_the_work_to_the_loop(self) -> None:
        threads: list[int] = []

        async def use() -> None:
            made = Explorer(square(), model="I")
            made.shared.observe(lambda: threads.append(threading.get_ident()))
            other = threading.Thread(
                target=lambda: setattr(made.views["tree"].shows, "value", True), name="messages"
            )
            other.start()
            other.join()
            assert threads == []
            await empty_turns()

        asyncio.run(use())
        assert threads == [threading.get_ident()]

    def test_a_fault_of_one_view_leaves_the_others(
        self, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        theta = explorer.views["theta"]
        monkeypatch.setattr(theta, "draw", lambda _: 1 / 0)
        step(explorer, 5)
        assert "ZeroDivisionError" in theta._error.value
        assert "iteration 5" in html_of(explorer)
        monkeypatch.undo()
        explorer.apply_settings()
        step(explorer, 2)
        assert theta._error.layout.display == "none"
        assert theta.frame is not None
        assert theta.frame.status.iteration == 2
        assert explorer.player.views[-1] is explorer.page
