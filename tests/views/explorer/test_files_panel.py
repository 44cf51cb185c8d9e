"""Saving, loading and exporting."""

import csv
import json
import zipfile
from collections.abc import Callable
from html import escape
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from views.chains import Wire
from views.explorer.small_explorer import html_of, step

import ewens_widgets as ew
from ewens_widgets.views.explorer.explorer import Explorer

pytestmark = pytest.mark.usefixtures("wire")


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

    @pytest.mark.parametrize(
        ("initial", "centre"), [("k-means", "unknown"), (tuple(range(8)) * 2 + (0,) * 4, "mean")]
    )
    def test_seed_start_and_centre_come_back_so_a_restart_gives_the_saved_chain(
        self, tmp_path: Path, initial: object, centre: str
    ) -> None:
        square = ew.datasets.unit_square(per_cluster=5, seed=0)
        saved = Explorer(square, model="I", seed=7, initial=initial, centre=centre)
        step(saved, 10)
        saved.save(tmp_path / "chain.ewens")
        other = Explorer(seed=3)
        other.load(tmp_path / "chain.ewens")
        assert (other.settings.seed, other.settings.initial, other.settings.centre) == (7, initial, centre)
        assert other.python == saved.python
        assert ("centre" in saved.python) == (centre == "unknown")
        other.apply_settings()
        step(other, 10)
        np.testing.assert_array_equal(other.recorder.labels, saved.recorder.labels)

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

    @pytest.mark.slow
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

    def test_the_answer_comes_first_with_every_object_s_choices(self, explorer: Explorer) -> None:
        assert explorer.files.chooser.value.startswith("answer")
        explorer.files.button.click()
        assert "press Play first" in explorer.files.message.value
        step(explorer, 60)
        text = explorer.files._makers[explorer.files.chooser.value]()[1].decode()
        table = list(csv.DictReader(text.splitlines()))
        answer = explorer.trace.answer()
        assert list(table[0]) == [
            "object",
            "group",
            "probability",
            "second_choice",
            "second_probability",
            "component",
            "known_class",
        ]
        assert [int(row["group"]) for row in table] == answer.labels.tolist()
        assert [float(row["probability"]) for row in table] == pytest.approx(answer.certainty, abs=1e-4)
        both = [float(row["probability"]) + float(row["second_probability"]) for row in table]
        assert max(both) <= 1.0 + 1e-4
        components = explorer.trace.point_estimate().labels
        assert [int(row["component"]) for row in table] == components.tolist()
        page = explorer.files._makers["web page of the current state (HTML)"]()[1].decode()
        explorer.shared.set_colouring("answer")
        assert escape(explorer.headline.text(explorer.player.current_frame())) not in page
        page = explorer.files._makers["web page of the current state (HTML)"]()[1].decode()
        assert escape(explorer.headline.text(explorer.player.current_frame())) in page

    def test_the_methods_paragraph_has_the_numbers_of_the_run_and_references(
        self, explorer: Explorer
    ) -> None:
        explorer.files.chooser.value = "methods paragraph and references (TXT)"
        explorer.files.button.click()
        assert "no methods paragraph; press Play first" in explorer.files.message.value
        step(explorer, 60)
        name, content, _ = explorer.files._makers[explorer.files.chooser.value]()
        assert name == "unit-square-methods.txt"
        assert content.decode().startswith(explorer.trace.methods())
        assert "@article{huang2020affine" in content.decode()

    @pytest.mark.filterwarnings("ignore:The acceptance ratio")
    def test_a_run_by_the_printed_ratio_is_not_called_posterior_and_the_page_names_the_control(self) -> None:
        explorer = Explorer.from_preset("the printed ratio is wrong")
        step(explorer, 200)
        told = explorer.files._makers["methods paragraph and references (TXT)"]()[1].decode()
        assert "Algorithm 2, with the acceptance ratio inverted, as printed). With this ratio" in told
        assert "the chain does not sample the posterior, so no result below describes it" in told
        explorer.shared.set_colouring("answer")
        explorer.player.complete()
        said = explorer.headline.sentence.value
        assert "Not reliable yet" in said
        assert "Under More settings, Moves, set the ratio to “correct”, and restart." in said
        assert "acceptance=" not in said
        explorer.panel.fields["acceptance"].control.label = "correct"
        explorer.apply_settings()
        step(explorer, 200)
        assert "Algorithm 2, with the Hastings ratio corrected). The largest" in explorer.trace.methods()

    def test_the_trace_file_can_be_loaded(self, explorer: Explorer, tmp_path: Path) -> None:
        step(explorer, 30)
        path = tmp_path / "trace.npz"
        path.write_bytes(explorer.files._makers["all draws (trace file)"]()[1])
        np.testing.assert_array_equal(ew.Trace.load(path).labels, explorer.trace.labels)

    def test_a_cut_before_the_first_draw_is_explained(self, explorer: Explorer) -> None:
        explorer.files.chooser.value = "labels of the tree's cut (CSV)"
        explorer.files.button.click()
        assert "no draws yet" in explorer.files.message.value

    def test_a_large_file_is_downloaded_in_parts_and_nothing_is_left_on_the_server(
        self, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Wire
    ) -> None:
        monkeypatch.chdir(tmp_path)
        content = np.random.default_rng(0).bytes(1_300_000)
        explorer.files._makers["all views (PNG)"] = lambda: ("big.png", content, "image/png")
        explorer.files.chooser.value = "all views (PNG)"
        wire.clear()
        explorer.files.button.click()
        received = b""
        while len(received) < len(content):
            sent = [data for _, data in wire.messages if data.get("method") == "custom"]
            assert len(sent) == 1, "the next part waits until it is asked for"
            assert sent[0]["content"]["start"] == len(received)
            (part,) = wire.buffers
            assert len(part) < 1_000_000
            received += part
            wire.clear()
            explorer.page._on_message(None, {"kind": "more", "start": len(received)}, [])
        assert received == content
        assert not wire.messages
        assert not list(tmp_path.iterdir())

    def test_the_page_needs_nothing_but_itself(self, explorer: Explorer) -> None:
        step(explorer, 30)
        page = explorer.files._makers["web page of the current state (HTML)"]()[1].decode()
        assert page.count("<svg") == len(explorer.views)
        assert "iteration 30 of 200" in page
        outside = [text for text in ('src="http', 'href="http', "@import", "<script") if text in page]
        assert outside == []

    def test_closing_stops_the_chain(self, explorer: Explorer) -> None:
        explorer.close()
        assert explorer.player.views == ()


def _zip(parts: dict[str, bytes]) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()
