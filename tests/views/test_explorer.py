"""The dashboard without a browser: what its controls do to the chain, and what it shows."""

import asyncio
import base64
import json
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from ipywidgets import HTML
from views.chains import Wire, widgets_below

import ewens_widgets as ew
from ewens_widgets.playback import PlayerState
from ewens_widgets.views.explorer.data_panel import LOADERS
from ewens_widgets.views.explorer.explorer import Explorer
from ewens_widgets.views.explorer.settings import Settings

pytestmark = pytest.mark.usefixtures("wire")

CSV = b"height,width,class\n1,2,a\n1.5,2.5,a\n9,8,b\n9.5,8.5,b\n"


def square() -> ew.datasets.Dataset:
    return ew.datasets.unit_square(per_cluster=5, seed=0)


@pytest.fixture
def explorer() -> Explorer:
    return Explorer(square(), model="I", iterations=200, burn_in=20)


def html_of(explorer: Explorer) -> str:
    return explorer.transport.status.value


def step(explorer: Explorer, count: int) -> None:
    explorer.player.step_sync(count)
    explorer.player.refresh()


def set_text(field: object, text: str) -> None:
    field.control.value = text  # type: ignore[attr-defined]


class TestStart:
    def test_all_views_show_the_initial_state(self, explorer: Explorer) -> None:
        assert html_of(explorer) == "iteration 0 of 200 · 20 clusters"
        assert all(view.frame is not None for view in explorer.views.values())
        assert explorer.labels.tolist() == list(range(20))

    def test_parts_are_accessible(self, explorer: Explorer) -> None:
        step(explorer, 30)
        assert explorer.sampler.iteration == 30
        assert len(explorer.trace) == 10
        np.testing.assert_array_equal(explorer.labels, explorer.sampler.labels)
        assert repr(explorer) == "Explorer('unit square', model I, iteration 30 of 200)"

    def test_within_the_burn_in_the_trace_has_all_draws(self, explorer: Explorer) -> None:
        step(explorer, 7)
        assert len(explorer.trace) == 7

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


class TestTransport:
    def test_buttons_work_on_the_event_loop(self, explorer: Explorer) -> None:
        async def use() -> None:
            explorer.transport.buttons["Step"].click()
            await explorer.player.wait(60)
            assert explorer.player.status.iteration == 1
            explorer.transport.buttons["Run to end"].click()
            await explorer.player.wait(60)
            assert explorer.player.status.state is PlayerState.FINISHED
            explorer.transport.buttons["Reset"].click()
            assert explorer.player.status.iteration == 0
            explorer.transport.buttons["Play"].click()
            explorer.transport.buttons["Pause"].click()
            assert explorer.player.status.state is PlayerState.PAUSED

        asyncio.run(use())

    def test_seeking_shows_the_past_and_leaves_the_chain_alone(self, explorer: Explorer) -> None:
        step(explorer, 40)
        labels = explorer.labels
        explorer.transport.seek.value = 5
        explorer.player.refresh()
        assert explorer.player.status.shown_iteration == 5
        assert "looking back; the chain is at 40" in html_of(explorer)
        frame = explorer.views["partition"].frame
        assert frame is not None
        np.testing.assert_array_equal(frame.event.labels, explorer.recorder.labels[4])
        np.testing.assert_array_equal(explorer.labels, labels)
        explorer.transport.seek.value = 150
        assert explorer.player.status.is_following

    def test_showing_a_frame_seeks_nothing(self, explorer: Explorer) -> None:
        step(explorer, 10)
        assert explorer.transport.seek.value == 10
        assert explorer.player.status.is_following
        assert explorer.transport.progress.value == 10
        assert explorer.transport.progress.max == 200

    def test_speed(self, explorer: Explorer) -> None:
        explorer.transport.speed.label = "as fast as it goes"
        assert explorer.player.speed is None
        explorer.transport.speed.label = "5 iterations a frame"
        assert explorer.player.speed == 5

    def test_another_speed_is_offered_too(self) -> None:
        assert Explorer(square(), speed=7).transport.speed.label == "7 iterations a frame"
        assert Explorer(square(), speed=None).transport.speed.label == "as fast as it goes"

    def test_preparing_is_told(self, explorer: Explorer) -> None:
        told = []

        async def use() -> None:
            explorer.transport.status.observe(lambda change: told.append(change["new"]), "value")
            explorer.player.step()
            await explorer.player.wait(60)

        asyncio.run(use())
        assert "Preparing the sampler" in told[0]


class TestSettings:
    def test_at_the_start_they_take_effect_at_once(self, explorer: Explorer) -> None:
        explorer.panel.fields["model"].control.value = "III"
        set_text(explorer.panel.fields["concentration"], "2,5")
        assert explorer.sampler.posterior.model == "III"
        assert explorer.sampler.posterior.concentration == 2.5
        assert explorer.panel.apply.layout.display == "none"

    def test_a_chain_that_has_run_is_kept_until_the_user_agrees(self, explorer: Explorer) -> None:
        step(explorer, 10)
        set_text(explorer.panel.fields["concentration"], "2")
        assert explorer.player.status.iteration == 10
        assert explorer.panel.apply.layout.display == ""
        set_text(explorer.panel.fields["concentration"], "1")
        assert explorer.panel.apply.layout.display == "none"
        set_text(explorer.panel.fields["concentration"], "2")
        explorer.panel.apply.click()
        assert explorer.player.status.iteration == 0
        assert explorer.settings.concentration == 2.0
        assert html_of(explorer) == "iteration 0 of 200 · 20 clusters"

    @pytest.mark.parametrize(
        ("field", "text", "complaint"),
        [
            ("concentration", "-1", "λ must be positive"),
            ("concentration", "many", "not a number"),
            ("alpha", "0", "α must be positive"),
            ("grid", "1, -1", "positive"),
            ("seed", "-3", "between"),
            ("splits", "1.5", "whole number"),
        ],
    )
    def test_a_wrong_one_is_explained_and_the_chain_left_alone(
        self, explorer: Explorer, field: str, text: str, complaint: str
    ) -> None:
        step(explorer, 10)
        sampler = explorer.sampler
        set_text(explorer.panel.fields[field], text)
        assert complaint in explorer.panel.fields[field].problem
        explorer.panel.apply.click()
        assert explorer.sampler is sampler
        assert explorer.player.status.iteration == 10

    def test_what_the_data_do_not_allow_is_explained_too(self, rng: np.random.Generator) -> None:
        explorer = Explorer(rng.normal(size=(5, 6)), model="I")
        sampler = explorer.sampler
        explorer.panel.fields["model"].control.value = "III"
        assert "needs more than" in explorer.panel.fields["model"].problem
        assert explorer.sampler is sampler

    def test_no_move_at_all_is_refused(self, explorer: Explorer) -> None:
        set_text(explorer.panel.fields["sweeps"], "0")
        set_text(explorer.panel.fields["splits"], "0")
        assert "would never change" in explorer.panel.fields["splits"].problem

    def test_learning_the_concentration(self, explorer: Explorer) -> None:
        explorer.panel.fields["learn"].control.value = True
        assert explorer.sampler.posterior.concentration == ew.Gamma(1.0, 1.0)
        assert explorer.panel.fields["concentration"].layout.display == "none"
        assert explorer.panel.fields["shape"].layout.display == ""
        step(explorer, 5)
        assert "λ:" in explorer.views["traces"].acceptance.value

    def test_a_wrong_value_that_is_not_asked_for_does_no_harm(self, explorer: Explorer) -> None:
        step(explorer, 1)
        set_text(explorer.panel.fields["concentration"], "-1")
        explorer.panel.fields["learn"].control.value = True
        explorer.panel.apply.click()
        assert explorer.settings.concentration == ew.Gamma(1.0, 1.0)

    def test_the_paper_s_moves_and_their_options(self, explorer: Explorer) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        explorer.panel.fields["between"].control.value = "hausdorff"
        explorer.panel.fields["metric"].control.value = "euclidean"
        set_text(explorer.panel.fields["repeats"], "3")
        (entry,) = explorer.sampler.schedule
        assert (entry.repeats, entry.move.between, explorer.sampler.metric) == (3, "hausdorff", "euclidean")

    def test_the_printed_ratio_warns_on_the_page(self, explorer: Explorer) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        explorer.panel.fields["acceptance"].control.value = "as-printed"
        assert "does not sample the posterior" in explorer.panel.notice.value

    def test_stepping_the_paper_s_move_tells_its_proposal(self, explorer: Explorer) -> None:
        explorer.panel.fields["schedule"].control.value = "paper-2"
        texts = []
        for _ in range(12):
            step(explorer, 1)
            texts.append(html_of(explorer).rsplit(" · ", maxsplit=1)[-1])
        assert (
            {"merge accepted"}
            <= set(texts)
            <= {
                f"{kind} {decision}"
                for kind in ("split", "merge", "move")
                for decision in ("accepted", "rejected")
            }
            | {"nothing proposed"}
        )

    def test_iterations_and_burn_in_do_not_restart(self, explorer: Explorer) -> None:
        step(explorer, 30)
        set_text(explorer.run_panel.iterations, "500")
        set_text(explorer.run_panel.burn_in, "10")
        assert explorer.player.target_iterations == 500
        assert len(explorer.trace) == 20
        assert "of 500" in html_of(explorer)
        set_text(explorer.run_panel.burn_in, "500")
        assert "below the 500 iterations" in explorer.run_panel.burn_in.problem
        assert explorer.player.burn_in == 10

    def test_settings_are_equal_when_they_mean_the_same(self) -> None:
        assert Settings() == Settings(moves="default")
        assert Settings(theta_grid=np.array([1.0, 2.0])) == Settings(theta_grid=(1, 2))

    def test_every_control_has_a_help_text(self, explorer: Explorer) -> None:
        fields = (*explorer.panel.model_box.children, *explorer.panel.moves_box.children)
        for field in (
            *fields,
            explorer.run_panel.iterations,
            explorer.run_panel.burn_in,
            explorer.data_panel.field,
        ):
            assert field.control.tooltip
        for button in explorer.transport.buttons.values():
            assert button.tooltip


class TestData:
    @pytest.mark.parametrize("name", LOADERS)
    def test_every_data_set_can_be_chosen(self, explorer: Explorer, name: str) -> None:
        explorer.data_panel.chooser.value = name
        assert explorer.data_panel.field.problem == ""
        assert explorer.sampler.posterior.n_objects == explorer.dataset.n_objects
        assert str(explorer.dataset.n_objects) in explorer.data_panel.about.value

    def test_an_upload_becomes_the_data(self, explorer: Explorer) -> None:
        step(explorer, 5)
        explorer.data_panel.upload._on_message(None, {"kind": "file", "name": "mine.csv"}, [memoryview(CSV)])
        assert explorer.dataset.name == "mine"
        assert explorer.data_panel.chooser.value == "mine"
        assert explorer.player.status.iteration == 0
        assert "2 known classes" in explorer.data_panel.about.value
        explorer.data_panel.chooser.value = "unit square"
        explorer.data_panel.chooser.value = "mine"
        assert explorer.dataset.n_objects == 4

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [(b"\x00\x01", "not a text file"), (b"a,b\n1,\n2,3\n", "row 1, column 'b'"), (b"a\n1\n1\n", "equal")],
    )
    def test_what_cannot_be_used_is_explained(
        self, explorer: Explorer, content: bytes, complaint: str
    ) -> None:
        step(explorer, 5)
        explorer.data_panel.upload._on_message(None, {"kind": "file", "name": "x.csv"}, [content])
        assert complaint in explorer.data_panel.field.problem
        assert explorer.dataset.name == "unit square"
        assert explorer.player.status.iteration == 5

    def test_a_large_file_stays_where_it_is(self, explorer: Explorer) -> None:
        message = {"kind": "too-large", "name": "big.csv", "size": 6_000_000}
        explorer.data_panel.upload._on_message(None, message, [])
        assert "6.0 MB; at most 5 MB" in explorer.data_panel.field.problem

    def test_nonsense_from_a_page_is_ignored(self, explorer: Explorer) -> None:
        for content in (None, "x", {}, {"kind": "file"}, {"kind": "too-large", "size": "x"}):
            explorer.data_panel.upload._on_message(None, content, [])
            explorer.page._on_message(None, content, [])
        explorer.page._on_message(None, {"kind": "painted", "number": "x"}, [])
        assert explorer.data_panel.field.problem == ""

    def test_hostile_names_are_escaped_everywhere(self, explorer: Explorer) -> None:
        script = b"<script>alert(1)</script>"
        content = script + b"," + script + b"2,class\n1,2," + script + b"\n3,4,b\n5,7,b\n"
        explorer.data_panel.upload._on_message(
            None, {"kind": "file", "name": script.decode() + ".csv"}, [content]
        )
        assert explorer.dataset.name.startswith("script")
        step(explorer, 3)
        explorer.views["partition"].choosers[0].value = explorer.dataset.feature_names[0]
        texts = [widget.value for widget in widgets_below(explorer) if isinstance(widget, HTML)]
        assert len(texts) > 20
        assert all("<script" not in text for text in texts)
        for name, make in explorer.files._makers.items():
            if "HTML" in name or "SVG" in name:
                assert b"<script" not in make()[1]


class TestFrames:
    def test_frames_wait_for_the_page(self, explorer: Explorer) -> None:
        async def use() -> tuple[int, int]:
            explorer.page._on_message(None, {"kind": "here", "viewer": "tab"}, [])
            explorer.player.speed = None
            explorer.player.play()
            await explorer.player.wait(0.5)
            waiting = explorer.page.frame
            explorer.page._on_message(None, {"kind": "painted", "viewer": "tab", "number": waiting}, [])
            await explorer.player.wait(0.3)
            return waiting, explorer.page.frame

        explorer.player.target_iterations = 10**7
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
            await explorer.player.wait(60)

        before = explorer.page.frame
        asyncio.run(use())
        assert explorer.page.frame == before
        assert len(explorer.recorder) == 200

    def test_handlers_on_another_thread_leave_the_work_to_the_loop(self) -> None:
        threads: list[int] = []

        async def use() -> None:
            made = Explorer(square(), model="I")
            made.stage.observe(lambda: threads.append(threading.get_ident()))
            other = threading.Thread(
                target=lambda: setattr(made.views["tree"].shows, "value", True), name="messages"
            )
            other.start()
            other.join()
            assert threads == []
            await asyncio.sleep(0.05)

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

    def test_parts_are_named_for_screen_readers(self, explorer: Explorer) -> None:
        assert explorer.page.names[".ew-status"]["role"] == "status"
        for view in explorer.views.values():
            assert explorer.page.names[f".{view.css_class}"]["aria-label"] == view.description


class TestFiles:
    def test_saved_and_loaded_it_goes_on_bit_for_bit(self, explorer: Explorer, tmp_path: Path) -> None:
        step(explorer, 30)
        explorer.save(tmp_path / "chain.ewens")
        step(explorer, 20)
        other = Explorer()
        other.load(tmp_path / "chain.ewens")
        assert other.dataset.name == "unit square"
        assert other.dataset.n_objects == 20
        assert other.settings.model == "I"
        assert html_of(other).startswith("iteration 30 of 200")
        step(other, 20)
        np.testing.assert_array_equal(other.recorder.labels, explorer.recorder.labels)
        np.testing.assert_array_equal(other.recorder.proposals, explorer.recorder.proposals)
        assert other.player.burn_in == 20
        assert other.panel.apply.layout.display == "none"

    def test_an_explorer_without_draws_can_be_saved(self, explorer: Explorer, tmp_path: Path) -> None:
        explorer.save(tmp_path / "chain.ewens")
        other = Explorer()
        other.load(tmp_path / "chain.ewens")
        assert other.player.status.iteration == 0

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda _: b"nonsense",
            lambda content: content[:-40],
            lambda _: _zip({"session.json": b"{}"}),
            lambda _: _zip({"session.json": json.dumps({"kind": "other", "version": 1}).encode()}),
        ],
    )
    def test_a_damaged_file_is_refused(self, explorer: Explorer, spoil: Callable[[bytes], bytes]) -> None:
        step(explorer, 3)
        content = spoil(explorer.packed())
        explorer.files.upload._on_message(None, {"kind": "file", "name": "x.ewens"}, [content])
        assert "not a saved explorer" in explorer.files.message.value
        assert explorer.player.status.iteration == 3

    def test_everything_can_be_exported(self, explorer: Explorer, wire: Wire) -> None:
        step(explorer, 30)
        for name in explorer.files.chooser.options:
            wire.clear()
            explorer.files.chooser.value = name
            explorer.files.button.click()
            (message,) = wire.custom()
            assert message["kind"] == "download"
            assert message["name"].startswith("unit-square")
            assert message["name"] in explorer.files.message.value

    def test_labels_are_written_with_the_known_classes(self, explorer: Explorer) -> None:
        step(explorer, 30)
        _, content, media_type = explorer.files._makers["labels of the last draw (CSV)"]()
        lines = content.decode().splitlines()
        assert media_type == "text/csv"
        assert lines[0] == "object,cluster,known_class"
        assert [int(line.split(",")[1]) for line in lines[1:]] == explorer.labels.tolist()

    def test_the_trace_file_can_be_loaded(self, explorer: Explorer, tmp_path: Path) -> None:
        step(explorer, 30)
        path = tmp_path / "trace.npz"
        path.write_bytes(explorer.files._makers["all draws (trace file)"]()[1])
        np.testing.assert_array_equal(ew.Trace.load(path).labels, explorer.trace.labels)

    def test_a_cut_before_the_first_draw_is_explained(self, explorer: Explorer) -> None:
        explorer.files.chooser.value = "labels of the tree's cut (CSV)"
        explorer.files.button.click()
        assert "first draws" in explorer.files.message.value

    def test_what_is_too_large_for_a_message_is_written_beside_the_notebook(
        self, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Wire
    ) -> None:
        monkeypatch.chdir(tmp_path)
        explorer.files._makers["overview (PNG)"] = lambda: ("big.png", b"x" * 3_000_000, "image/png")
        explorer.files.chooser.value = "overview (PNG)"
        wire.clear()
        explorer.files.button.click()
        assert not wire.custom()
        assert (tmp_path / "big.png").stat().st_size == 3_000_000
        assert "beside the notebook" in explorer.files.message.value

    def test_the_page_needs_nothing_but_itself(self, explorer: Explorer) -> None:
        step(explorer, 30)
        page = explorer.files._makers["page of the current state (HTML)"]()[1].decode()
        assert page.count("<svg") == len(explorer.views)
        assert "iteration 30 of 200" in page
        outside = [text for text in ('src="http', 'href="http', "@import", "<script") if text in page]
        assert outside == []

    def test_where_widgets_cannot_run_there_is_a_picture(self, explorer: Explorer) -> None:
        step(explorer, 5)
        bundle = explorer._repr_mimebundle_()
        assert set(bundle) == {"text/plain", "image/png", "application/vnd.jupyter.widget-view+json"}
        assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
        assert bundle["text/plain"] == "Explorer('unit square', model I, iteration 5 of 200)"

    def test_closing_stops_the_chain(self, explorer: Explorer) -> None:
        explorer.close()
        assert explorer.player.views == ()


def _zip(parts: dict[str, bytes]) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()
