"""Choosing and uploading data."""

from itertools import product

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
        [
            (b"\x00\x01", "not a text file"),
            (b"a\n1\n1\n", "equal"),
            (b"a,b\n1,7\n<0.5,3\n2,4\n", "row 2, column 'a' ('<0.5'). Correct these cells"),
        ],
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
        assert "6.0 MB; the limit is 5 MB" in explorer.data_panel.field.problem

    def test_nonsense_from_a_page_is_ignored(self, explorer: Explorer) -> None:
        odd = (None, 1.5, "x", [], {})
        messages = [*odd, 7, *({"kind": value, "name": value, "size": 7} for value in odd)]
        messages += [{"kind": kind, "size": value} for kind in ("file", "too-large") for value in odd]
        for content, buffers in product(messages, (None, [])):
            explorer.data_panel.upload._on_message(None, content, buffers)
            explorer.page._on_message(None, content, buffers)
        explorer.page._on_message(None, {"kind": "painted", "number": "x"}, [])
        assert explorer.data_panel.field.problem == ""

    @pytest.mark.slow
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


def upload(explorer: Explorer, content: bytes, name: str = "mine.csv") -> None:
    explorer.data_panel.upload._on_message(None, {"kind": "file", "name": name}, [memoryview(content)])


TWO_TEXTS = b"x,site,y,kind\n1.5,a,2,u\n2.5,b,7,v\n3.5,a,4,v\n9,b,1,u\n"


class TestColumns:
    def test_the_account_is_shown_and_can_be_changed(self, explorer: Explorer) -> None:
        upload(explorer, b"id,x,y,class\n1007,1,2,a\n1003,1.5,2.5,a\n1020,9,8,b\n1001,9.5,8.5,b\n")
        panel = explorer.data_panel.columns
        roles = {name: control.value for name, control in panel.controls.items()}
        assert roles == {"id": "names", "x": "feature", "y": "feature", "class": "classes"}
        assert explorer.dataset.row_names == ("1007", "1003", "1020", "1001")
        panel.controls["y"].value = "left out"
        panel.controls["id"].value = "left out"
        panel.use.click()
        assert explorer.dataset.feature_names == ("x",)
        assert explorer.dataset.row_names is None
        assert explorer.data_panel.columns.controls["y"].value == "left out"

    def test_where_the_reader_asks_the_panel_lets_choose(self, explorer: Explorer) -> None:
        upload(explorer, TWO_TEXTS)
        panel = explorer.data_panel
        assert panel.field.problem == (
            "it is not certain what to make of 'site' ('a', 'b'); 'kind' ('u', 'v'). "
            "Choose below, then use these columns."
        )
        assert explorer.dataset.name == "unit square"
        assert panel.columns.controls["site"].value == "please choose"
        panel.columns.controls["site"].value = "left out"
        panel.columns.use.click()
        assert panel.field.problem == "choose a role for 'kind' first."
        panel.columns.controls["kind"].value = "classes"
        panel.columns.use.click()
        assert panel.field.problem == ""
        assert explorer.dataset.name == "mine"
        assert explorer.dataset.classes == ("u", "v", "v", "u")

    def test_a_category_is_proposed_and_can_be_made_a_number(self, explorer: Explorer) -> None:
        rows = "".join(f"{k * 37 % 41 + 0.5},{k % 3},{k // 15 * k / 4},{'ab'[k % 2]}\n" for k in range(40))
        upload(explorer, f"x,stars,rain,site\n{rows}".encode())
        panel = explorer.data_panel.columns
        assert {name: control.value for name, control in panel.controls.items()} == {
            "x": "feature",
            "stars": "category",
            "rain": "two-part",
            "site": "classes",
        }
        step(explorer, 2)
        panel.controls["stars"].value = "feature"
        panel.controls["site"].value = "category"
        panel.use.click()
        found = {kind.name: kind.kind for kind in explorer.dataset.kinds}
        assert found == {"x": "number", "stars": "number", "rain": "two-part", "site": "category"}
        panel = explorer.data_panel.columns
        panel.controls["rain"].value = "feature"
        panel.use.click()
        assert explorer.dataset.kinds[2].kind == "number"
        assert explorer.data_panel.columns.controls["site"].value == "category"

    def test_two_columns_cannot_both_have_the_classes(self, explorer: Explorer) -> None:
        upload(explorer, TWO_TEXTS)
        for name in ("site", "kind"):
            explorer.data_panel.columns.controls[name].value = "classes"
        explorer.data_panel.columns.use.click()
        assert "only one column can have the role 'known classes'" in explorer.data_panel.field.problem

    def test_a_way_to_read_numbers_is_chosen(self, explorer: Explorer) -> None:
        upload(explorer, b'weight,y\n"1,007",2\n"2,150",7\n980,4\n"1,400",9\n')
        control = explorer.data_panel.columns.controls["weight"]
        assert [value for _, value in control.options][:3] == [
            "please choose",
            "feature:thousands",
            "feature:decimals",
        ]
        control.value = "feature:thousands"
        explorer.data_panel.columns.use.click()
        assert explorer.dataset.X[:, 0].tolist() == [1007, 2150, 980, 1400]
        explorer.data_panel.columns.controls["y"].value = "left out"
        explorer.data_panel.columns.use.click()
        assert explorer.dataset.X.tolist() == [[1007], [2150], [980], [1400]]

    def test_an_odd_unit_is_named(self, explorer: Explorer) -> None:
        upload(explorer, b"a,b\n1.5,2\n2.5,7\n1.3 cm,4\n3,1\n")
        texts = [one.value for one in explorer.data_panel.columns.children if isinstance(one, HTML)]
        assert any("not all cells have the same unit; row 3 has &#x27;1.3 cm&#x27;" in text for text in texts)

    def test_gaps_are_drawn_or_left_out_by_choice(self, explorer: Explorer) -> None:
        upload(explorer, b"x,y\n1,2\nNA,7\n3,4\n9,\n8,1\n")
        panel = explorer.data_panel
        assert explorer.dataset.n_objects == 5
        assert "2 missing values are drawn with the clusters." in panel.columns.remarks.value
        assert panel.columns.missing.options[0] == ("draw them with the clusters", "keep")
        panel.columns.missing.value = "drop rows"
        panel.columns.use.click()
        assert explorer.dataset.X.tolist() == [[1, 2], [3, 4], [8, 1]]
        assert "2 rows with missing values are left out." in panel.columns.remarks.value
        panel.columns.missing.value = "median"
        panel.columns.use.click()
        assert explorer.dataset.n_objects == 5

    def test_a_copied_column_is_warned_of_and_left_out(self, explorer: Explorer) -> None:
        rows = "".join(f"{k * 7 % 20}.5,{k * 11 % 20}.25,{2 * (k * 7 % 20) + 1}\n" for k in range(20))
        upload(explorer, f"x,y,double\n{rows}".encode())
        panel = explorer.data_panel
        assert "column &#x27;double&#x27; is a copy of &#x27;x&#x27;" in panel.columns.remarks.value
        explorer.panel.fields["model"].control.value = "III"
        assert "drop column(s) 'double'" in explorer.panel.fields["model"].problem
        panel.columns.controls["double"].value = "left out"
        panel.columns.use.click()
        assert explorer.dataset.feature_names == ("x", "y")

    def test_what_came_along_has_no_columns_to_choose(self, explorer: Explorer) -> None:
        upload(explorer, CSV)
        assert explorer.data_panel.columns.children
        explorer.data_panel.chooser.value = "wine"
        assert explorer.data_panel.columns.children == ()
        explorer.data_panel.chooser.value = "mine"
        assert set(explorer.data_panel.columns.controls) == {"height", "width", "class"}

    def test_a_data_frame_is_sorted_and_can_be_changed(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(
            {"Length": [1.0, 2.0, 9.0, 4.0], "kind": list("uvuv"), "Width": [3, 5, 4, 1]}, index=list("abcd")
        )
        explorer = Explorer(frame)
        assert explorer.dataset.feature_names == ("Length", "Width")
        assert explorer.dataset.row_names == tuple("abcd")
        explorer.data_panel.columns.controls["kind"].value = "left out"
        explorer.data_panel.columns.use.click()
        assert explorer.dataset.labels is None
        names = {
            name: make()[1] for name, make in explorer.files._makers.items() if "labels of the last" in name
        }
        assert names["labels of the last draw (CSV)"].startswith(b"object,cluster\na,0\nb,1\n")

    def test_classes_are_exported_by_name(self, explorer: Explorer) -> None:
        upload(explorer, b"name,x,class\nr1,1,a\nr2,2,b\nr3,4,a\n")
        text = explorer.files._makers["labels of the last draw (CSV)"]()[1].decode()
        assert text == "object,cluster,known_class\nr1,0,a\nr2,1,b\nr3,2,a\n"
