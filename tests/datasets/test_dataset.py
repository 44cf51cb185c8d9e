import copy
import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from ewens_widgets.datasets import Dataset, as_dataset

X = np.arange(6.0).reshape(3, 2)


def test_only_the_matrix_is_needed() -> None:
    data = Dataset([[1, 2], [3, 4], [5, 6]])  # type: ignore[arg-type]
    assert data.X.dtype == np.float64
    assert (data.n_objects, data.n_features) == (3, 2)
    assert data.feature_names == ("x1", "x2")
    assert (data.labels, data.label_names) == (None, None)
    assert Dataset(X, np.array([0, 1, 1], dtype=np.int8)).labels.dtype == np.intp


@pytest.mark.parametrize(
    "given",
    [
        np.ma.masked_equal([[0, 1], [2, 9], [4, 5]], 9),
        [[0, 1], [2, None], [4, 5]],
        np.array([[0, 1], [2, pd.NA], [4, 5]], dtype=object),
    ],
)
def test_cells_marked_as_missing_are_missing(given: object) -> None:
    expected = np.where(X == 3.0, np.nan, X)
    np.testing.assert_array_equal(Dataset(given).X, expected)  # type: ignore[arg-type]
    np.testing.assert_array_equal(as_dataset(given).X, expected)  # type: ignore[arg-type]


def test_objects_are_called_by_the_data_s_own_word() -> None:
    data = Dataset(X, noun="wine")
    assert (data.counted(1), data.counted(5), data.row_name(2)) == ("1 wine", "5 wines", "wine 2")
    assert Dataset(X, row_names=("a", "b", "c"), noun="wine").row_name(2) == "c"
    assert Dataset(X).counted(2) == "2 objects"
    assert pickle.loads(pickle.dumps(data)).noun == "wine"  # noqa: S301
    with pytest.raises(ValueError, match="what one object is called"):
        Dataset(X, noun=" ")


@pytest.mark.parametrize(
    "duplicate",
    [lambda data: data, copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))],  # noqa: S301
)
def test_arrays_are_read_only_copies(duplicate: Callable[[Dataset], Dataset]) -> None:
    matrix, labels = X.copy(), np.array([0, 1, 1])
    data = Dataset(matrix, labels, "name", ("a", "b"), "text", ("first", "second"))
    matrix[0, 0] = labels[0] = 99
    again = duplicate(data)
    assert repr(again) == repr(data)
    assert (again.name, again.feature_names, again.description) == ("name", ("a", "b"), "text")
    assert again.label_names == ("first", "second")
    np.testing.assert_array_equal(again.X, X)
    np.testing.assert_array_equal(again.labels, [0, 1, 1])
    for array in (again.X, again.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        again.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"X": np.arange(3.0)}, ValueError, r"a table.*got 1 dimension\(s\).*reshape"),
        ({"X": np.empty((0, 2))}, ValueError, r"at least one row.*got shape \(0, 2\)"),
        ({"X": np.empty((2, 0))}, ValueError, r"one column, got shape \(2, 0\)"),
        ({"X": [["a", "b"]]}, ValueError, "numeric.*'a'.*encode the columns that hold text"),
        ({"X": [[1j, 2.0]]}, ValueError, "Complex data not supported"),
        ({"X": np.array([[1.0, "b"]], dtype=object)}, ValueError, "could not convert string to float: 'b'"),
        ({"X": X, "feature_names": ("a",)}, ValueError, "1 names, but X has 2 columns"),
        ({"X": X, "feature_names": "ab"}, TypeError, "feature_names must be a sequence.*'ab'"),
        ({"X": X, "feature_names": ("a", 2)}, TypeError, "feature_names must hold strings, got 2"),
        ({"X": X, "labels": [0, 1]}, ValueError, r"row of X \(3\), got shape \(2,\)"),
        ({"X": X, "labels": [[0, 1, 1]]}, ValueError, r"got shape \(1, 3\)"),
        ({"X": X, "labels": [0.0, 1.0, 1.0]}, TypeError, "whole numbers, got float64"),
        ({"X": X, "labels": ["a", "b", "b"]}, TypeError, "return_inverse"),
        ({"X": X, "label_names": ("a",)}, ValueError, "without labels"),
        ({"X": X, "labels": [0, 1, 2], "label_names": ("a", "b")}, ValueError, "from 0 to 2.*labels 0 to 1"),
        ({"X": X, "labels": [-1, 0, 0], "label_names": ("a", "b")}, ValueError, "from -1 to 0"),
        ({"X": X, "labels": [0, 1, 1], "label_names": "ab"}, TypeError, "label_names must be a sequence"),
    ],
)
def test_inconsistent_fields_are_refused(
    fields: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Dataset(**fields)  # type: ignore[arg-type]


def test_repr_tells_what_it_is() -> None:
    data = Dataset(X, np.array([0, 1, 1]), "toy", ("a", "b"), "Made up. " * 20, ("first", "second"))
    lines = repr(data).splitlines()
    assert lines[:3] == [
        "Dataset 'toy': 3 objects × 2 features",
        "  features: a, b",
        "  labels: 2 classes: first (1), second (2)",
    ]
    assert len(lines) > 4
    assert max(map(len, lines)) <= 88


def test_repr_of_the_smallest_and_of_wide_data() -> None:
    smallest = "Dataset 'data': 1 object × 1 feature\n  features: x1\n  labels: none"
    assert repr(Dataset(np.ones((1, 1)))) == smallest
    wide = repr(Dataset(np.ones((50, 300)), np.arange(50)))
    assert "x1, x2, x3, x4, x5, …, x300" in wide
    assert "50 classes: 0 (1), 1 (1), 2 (1), 3 (1), 4 (1), …, 49 (1)" in wide
    assert "1 class: 0 (50)" in repr(Dataset(np.ones((50, 1)), np.zeros(50, dtype=int)))
    unused = Dataset(X, np.array([1, 1, 1]), label_names=("a", "b", "c"))
    assert "1 class: b (3)" in repr(unused)


def test_html_escapes_every_text() -> None:
    hostile = "<script>alert('&')</script>"
    data = Dataset(X, np.array([0, 1, 1]), hostile, (hostile, "b"), hostile, (hostile, "second"))
    shown = data._repr_html_()
    assert "<script" not in shown
    assert "alert('" not in shown
    assert shown.count("&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;") == 4
    assert "3 objects × 2 features" in shown
