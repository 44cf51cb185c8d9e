"""Tables from strangers: read when there is one way to read them, refused with a place otherwise."""

import re
import warnings
from pathlib import Path
from typing import Any

import messy_tables
import numpy as np
import pandas as pd
import pytest

from ewens_widgets.tables import DataWarning, TableError, read_table


@pytest.mark.parametrize(
    ("content", "X", "names", "classes"),
    [
        (b"1,2\n3,4\n", [[1, 2], [3, 4]], ("x1", "x2"), None),
        (b"x,y,species\n1,2,u\n3,4,v\n5,6.5,u\n", [[1, 2], [3, 4], [5, 6.5]], ("x", "y"), ("u", "v", "u")),
        (b"1.5,a\n2.5,b\n3.5,a\n", [[1.5], [2.5], [3.5]], ("x1",), ("a", "b", "a")),
        (b"Class,x\n1,10\n2,20\n2,30\n", [[10], [20], [30]], ("x",), ("1", "2", "2")),
        (b"country,x,class\nA,1,u\nB,2,v\nC,3,u\n", [[1], [2], [3]], ("x",), ("u", "v", "u")),
        (b"a;b\n1,5;2\n-3;4,25e1\n", [[1.5, 2], [-3, 42.5]], ("a", "b"), None),
        (b"a\tb\n1,5\t2\n-3\t4,25e1\n", [[1.5, 2], [-3, 42.5]], ("a", "b"), None),
        ("größe,b\r\n1,2\r\n3,4\r\n".encode("utf-8-sig"), [[1, 2], [3, 4]], ("größe", "b"), None),
        ("größe,b\r\n1,2\r\n3,4\r\n".encode("cp1252"), [[1, 2], [3, 4]], ("größe", "b"), None),
        (b'"a, b",c\n\n1,"2"\n,\n3,4\n\n', [[1, 2], [3, 4]], ("a, b", "c"), None),
        (b"a,a,\n1,2,3\n4,5,6\n", [[1, 2, 3], [4, 5, 6]], ("a", "a (2)", "x3"), None),
    ],
)
def test_small_tables(
    content: bytes, X: list[list[float]], names: tuple[str, ...], classes: tuple[str, ...] | None
) -> None:
    data = read_table(content, "small.csv")
    np.testing.assert_array_equal(data.X, X)
    assert (data.name, data.feature_names) == ("small", names)
    assert f"{len(X)} rows, {len(names)} numeric columns" in data.description
    assert data.classes == classes
    assert ("column country names the objects" in data.description) == content.startswith(b"country")


def test_missing_values_are_left_to_the_model() -> None:
    data = read_table(b"id,a,b\nu,1,NA\nv,,5\nw,,\nx,7,8\ny,2,3\n")
    np.testing.assert_array_equal(data.X, [[1, np.nan], [np.nan, 5], [7, 8], [2, 3]])
    assert data.summary.notes == (
        "1 row without any value is left out.",
        "2 missing values are drawn with the clusters.",
    )


@pytest.mark.parametrize(
    ("cells", "kinds", "expected"),
    [
        ([""] * 30, {}, "  c  left out   empty"),
        ([""] * 30, {"c": "number"}, "column 'c' is empty and cannot be a feature. Say drop='c'."),
        ([f"level {k}" for k in range(30)], {"c": "category"}, "'c' has 30 categories in 30 rows.*Group"),
        (
            [f"{k % 10_000}" for k in range(19_999)],
            {"c": "category"},
            "'c' has 10000 categories .*leave it out",
        ),
        ([*"123", "inf"], {}, "1 value .*row 4, column 'c' .'inf'.*Correct these cells or empty them"),
    ],
    ids=["only gaps", "only gaps as a feature", "a level per row", "10 000 levels", "infinite"],
)
def test_a_column_that_cannot_be_used_is_named_with_a_way_out(
    cells: list[str], kinds: dict[str, str], expected: str
) -> None:
    content = "a,b,c\n" + "".join(
        f"{k * 7 % 31 / 2},{k * 11 % 23 / 4},{cell}\n" for k, cell in enumerate(cells)
    )
    try:
        found = str(read_table(content.encode(), kinds=kinds).summary)
    except ValueError as error:
        found = str(error)
    assert re.search(expected, found), found


def test_a_category_may_hold_numbers_and_text() -> None:
    rows = "".join(f"{k * 7 % 31 / 2},{(4, 6, 'rotary', '')[k % 4]}\n" for k in range(30))
    kind = read_table(f"a,cylinders\n{rows}".encode(), kinds={"cylinders": "category"}).kinds[1]
    assert kind.level_names == ("4", "6", "rotary")


def test_a_column_is_left_out_by_its_kind() -> None:
    data = read_table(b"a,b,c\n1,2,9\n3,1,4\n5,7,2\n", kinds={"b": "left out", "c": "number"})
    assert data.summary["b"].role == "left out"
    assert data.feature_names == ("a", "c")


def test_rows_of_gaps_are_left_out_with_a_note() -> None:
    data = read_table(b"a,b\n1,2\n,\n3,7\n ,\n5,4\n,\n")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 7], [5, 4]])
    assert data.summary.notes == ("2 rows are left out: all cells are empty.",)
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [2.0, np.nan, 5.0]})
    assert read_table(frame).summary.notes[0] == "1 row without any value is left out."


def test_many_missing_values_are_counted() -> None:
    rows = "".join(f"{k},\n" if k % 2 else f"{k},{k * k}\n" for k in range(21))
    with pytest.raises(TableError, match=r"10 missing values: .*; and 5 more"):
        read_table(("a,b\n" + rows).encode(), missing="refuse")


@pytest.mark.parametrize("value", [b"inf", b"1e999", b"0x10", b"=1+1", b"1_000", b"1.2.3"])
def test_what_python_might_take_for_a_number_is_none(value: bytes) -> None:
    with pytest.raises(TableError, match=r"1 value that cannot be read .*row 2, column 'a'"):
        read_table(b"a,b\n1,2\n" + value + b",4\n5,6\n7,8\n")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"a,b\n", "0 row"),
        (b"a,b\n1,2\n", "1 row"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "not a text file"),
        (",".join(["1"] * 1001).encode(), "1001 columns"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        read_table(content)


def test_too_large_a_file_is_refused_before_it_is_read() -> None:
    with pytest.raises(TableError, match=r"6\.0 MB; at most 5 MB"):
        read_table(b"\x00" * 6_000_000)
    with pytest.raises(TableError, match="more than 20000 rows"):
        read_table(b"1,2\n" * 20_001)


def test_hostile_names_stay_text_and_short() -> None:
    script = "<script>alert(1)</script>"
    data = read_table(f"{script},{'y' * 500}\n1,2\n3,4\n".encode(), f"{script}.csv")
    assert data.feature_names[0] == script
    assert len(data.feature_names[1]) == 60
    assert "<script>" not in data._repr_html_()


@pytest.mark.parametrize("case", messy_tables.UNDERSTOOD, ids=lambda case: case.title)
def test_a_messy_table_is_understood(case: messy_tables.Messy) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_table(case.content, "messy.csv", **case.options)
    np.testing.assert_allclose(data.X, case.X, rtol=1e-14)
    assert {column.name: column.role for column in data.summary.columns} == case.roles
    assert data.feature_names == data.summary.named("feature")
    assert data.row_names == case.row_names
    assert data.classes == case.found
    assert data.summary.notes == case.notes
    for name, reason in case.reasons.items():
        assert data.summary[name].reason == reason
    assert tuple(str(warning.message) for warning in caught) == case.warnings == data.summary.warnings
    assert "<script" not in data._repr_html_() + data.summary._repr_html_()


@pytest.mark.parametrize("case", messy_tables.REFUSED, ids=lambda case: case.title)
def test_a_messy_table_is_refused_with_the_choices(case: messy_tables.Messy) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_table(case.content, "messy.csv", **case.options)
    assert str(caught.value) == case.message


@pytest.mark.parametrize("case", messy_tables.WARNED, ids=lambda case: case.title)
def test_what_may_mislead_is_warned_of_by_name(case: messy_tables.Messy) -> None:
    with pytest.warns(DataWarning) as caught:
        data = read_table(case.content, "messy.csv", **case.options)
    (text,) = [str(warning.message) for warning in caught]
    assert text.startswith(case.warnings[0])
    assert data.summary.warnings == (text,)
    assert "Note: " in repr(data.summary)


def test_there_are_enough_messy_tables() -> None:
    cases = [*messy_tables.UNDERSTOOD, *messy_tables.WARNED, *messy_tables.REFUSED]
    assert len({case.title for case in cases}) == len(cases) >= 60


def test_a_table_is_read_from_a_path_an_open_file_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x,y\n1,2\n3,5\n4,1\n")
    with path.open("rb") as binary, path.open(encoding="utf-8") as text:
        found = [read_table(source) for source in (path, str(path), path.read_bytes(), binary, text)]
    assert [data.X.tolist() for data in found] == [[[1, 2], [3, 5], [4, 1]]] * 5
    assert [data.name for data in found] == ["rows", "rows", "table", "table", "table"]
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(tmp_path / "other.csv")
    with pytest.raises(TypeError, match=r"for the table itself give text\.encode\(\)"):
        read_table("x,y\n1,2\n")
    (tmp_path / "large.csv").write_bytes(b"1,2\n" * 1_300_000)
    with pytest.raises(TableError, match="at most 5 MB"):
        read_table(tmp_path / "large.csv")
    path.write_bytes(b"x,y\n1,\n3,5\n4,1\n")
    with pytest.raises(TableError, match=re.escape(f'ew.read_table("{path}", missing="drop rows")')):
        read_table(path, missing="refuse")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "guess"}, "missing must be one of 'keep', 'drop rows', 'median', 'refuse'; got 'guess'"),
        ({"read_as": {"x": "roman"}}, "read_as of column 'x' must be one of 'thousands', .*; got 'roman'"),
        ({"features": ["x"], "drop": ["x"]}, "column 'x' is given two roles"),
        ({"names": "x", "classes": "x"}, "column 'x' is given two roles"),
        ({"names": "lengths"}, r"names: there is no column 'lengths'; did you mean 'length'\?"),
        ({"missing": "drop rows", "header": 2}, r"has 1 row\(s\) of data"),
    ],
)
def test_arguments_that_contradict_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(b"x,length\n1,2\n3,5\n", **options)


def test_an_account_is_asked_by_name() -> None:
    data = read_table(b"x,note\n1,\n3,\n")
    assert data.summary["note"].reason == "empty"
    assert data.summary.named("feature") == ("x",)
    with pytest.raises(KeyError, match="no column 'y'; there are x, note"):
        data.summary["y"]
