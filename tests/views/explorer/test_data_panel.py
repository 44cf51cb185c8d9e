"""Choosing and uploading data."""

import pytest
from ipywidgets import HTML
from views.chains import widgets_below
from views.explorer.small_explorer import step

from ewens_widgets.datasets import LOADERS
from ewens_widgets.views.explorer.explorer import Explorer

pytestmark = pytest.mark.usefixtures("wire")


CSV = b"height,width,class\n1,2,a\n1.5,2.5,a\n9,8,b\n9.5,8.5,b\n"


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
        explorer.views["partition"].plane.choosers[0].value = explorer.dataset.feature_names[0]
        texts = [widget.value for widget in widgets_below(explorer) if isinstance(widget, HTML)]
        assert len(texts) > 20
        assert all("<script" not in text for text in texts)
        for name, make in explorer.files._makers.items():
            if "HTML" in name or "SVG" in name:
                assert b"<script" not in make()[1]
