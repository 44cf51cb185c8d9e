"""DataFrames of pandas and of others: the same columns, names and gaps, whoever made them."""

import copy
import datetime as dt
import pickle
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset
from ewens_widgets.datasets._frames import is_frame
from ewens_widgets.tables import TableError, read_table

FEW_DRAWS = {"shapes": "common", "n_chains": 1, "draws": 20, "burn_in": 20, "random_state": 0}


def measurements() -> Any:  # noqa: ANN401 - pandas has no types here
    return pd.DataFrame(
        {
            "Length": [1.5, 2.5, 3.5, 9.0],
            "Count": pd.array([4, None, 2, 8], dtype="Int64"),
            "kind": ["u", "v", None, "u"],
            "when": pd.to_datetime(["2024-01-31", "2024-02-01", None, "2024-03-01"]),
            "is_large": [True, False, True, False],
            "site": pd.Categorical(["a", "b", "a", None]),
        },
        index=["r1", "r2", "r3", "r4"],
    )


@pytest.mark.parametrize("library", ["pandas", "narwhals", "narwhals, lazy", "polars", "pyarrow"])
def test_frames_of_other_libraries_give_the_same(library: str) -> None:
    table = pd.DataFrame(
        {
            "x": [1, None, 3],
            "y": [1.5, 2.5, 2.5],
            "kind": ["a", "b", None],
            "is_large": [True, False, None],
            "when": [dt.date(2024, 1, 31), None, dt.date(2024, 2, 1)],
        }
    )
    content = {name: [None if pd.isna(cell) else cell for cell in table[name]] for name in table}
    if library in {"polars", "pyarrow"}:
        package = pytest.importorskip(library)
        given = package.DataFrame(content) if library == "polars" else package.table(content)
    else:
        given = table if library == "pandas" else nw.from_native(table)
        given = given.lazy() if library == "narwhals, lazy" else given
    assert is_frame(given)
    said: dict[str, Any] = {"missing": "drop rows", "read_as": {"is_large": "numbers"}}
    data = read_table(given, features=["x", "y", "when"], **said)
    np.testing.assert_array_equal(data.X, [[1, 1.5, 0], [3, 2.5, 1]])
    data = read_table(given, features=["is_large", "y"], classes="kind", **said)
    np.testing.assert_array_equal(data.X, [[1.5, 1], [2.5, 0]])
    assert data.classes == ("a", "b")
    assert data.row_names is None
    numbers = given[["x", "y"]] if library == "pandas" else given.select(["x", "y"])
    assert Dataset(numbers).feature_names == ("x", "y")
    np.testing.assert_array_equal(Dataset(numbers).X, [[1, 1.5], [np.nan, 2.5], [3, 2.5]])


def test_what_is_no_frame() -> None:
    for thing in (None, [[1]], np.eye(2), {"a": [1]}, pd.Series([1]), pd.DataFrame):
        assert not is_frame(thing)
    with pytest.raises(TypeError, match="path of a file, its bytes, or a DataFrame; got ndarray"):
        read_table(np.eye(3))


def test_the_types_of_columns_say_what_they_mean() -> None:
    data = read_table(measurements(), features=["Length", "Count", "when"], missing="drop rows")
    np.testing.assert_array_equal(data.X, [[1.5, 4, 0], [9, 8, 30]])
    assert data.row_names == ("r1", "r4")
    frame = pd.DataFrame(
        {
            "wait": pd.to_timedelta(["1 day", "36h", None]),
            "at": pd.to_datetime(["2024-01-31", "2024-02-01", None]).tz_localize("Europe/Paris"),
            "x": pd.Series([1, 2, 10**400], dtype=object),  # an old pandas cannot guess what this is
            "none": [None] * 3,
        }
    )
    data = read_table(frame.drop(columns="x"), features=["wait", "at"], missing="drop rows")
    np.testing.assert_array_equal(data.X, [[1, 0], [1.5, 1]])
    assert (data.summary["none"].reason, data.summary["none"].role) == ("empty", "left out")
    with pytest.raises(TableError, match=r"row 2, column 'x' \('10000"):
        read_table(frame)


def test_a_frame_is_read_with_its_names() -> None:
    question = r"'is_large' \('True', 'False'\): numbers, classes or neither\? Say read_as="
    with pytest.raises(TableError, match=question) as caught:
        read_table(measurements(), classes="kind", drop="site")
    assert caught.value.summary["is_large"].choices == ("numbers",)
    said = {"read_as": {"is_large": "numbers"}, "classes": "kind", "drop": "site", "missing": "drop rows"}
    data = read_table(measurements(), "plants", **said)
    assert data.name == "plants"
    assert data.feature_names == ("Length", "Count", "is_large")
    assert data.row_names == ("r1", "r4")
    assert data.classes == ("u", "u")
    roles = {column.name: column.role for column in data.summary.columns}
    assert roles.pop("site") == roles.pop("when") == "left out"
    assert roles == {"Length": "feature", "Count": "feature", "kind": "classes", "is_large": "feature"}
    assert data.summary.notes == (
        "2 rows with missing values are left out.",
        "The index of the frame names the rows.",
    )


def test_gaps_are_named_by_row_and_column() -> None:
    frame = measurements()[["Length", "Count"]]
    with pytest.raises(TableError, match=r"1 missing value: row 'r2', column 'Count'\. By .* 'Count' 1\."):
        read_table(frame, missing="refuse")
    assert read_table(frame, missing="median").X[1, 1] == 4.0


def test_text_in_a_frame_is_understood_like_that_of_a_file() -> None:
    frame = pd.DataFrame({"weight": ["1,007", "2,150.5", "980"], "dose": ["5 mg", "7 mg", "8 mg"]})
    data = read_table(frame)
    np.testing.assert_array_equal(data.X, [[1007, 5], [2150.5, 7], [980, 8]])
    assert data.summary["dose"].reason == "in mg"


def test_odd_names_of_columns() -> None:
    frame = pd.DataFrame(np.array([[1.0, 5.0, 2.0], [2.0, 1.0, 4.0]]), columns=[0, ("a", "b"), ""])
    data = read_table(frame, features=[0, ("a", "b")])
    assert data.feature_names == ("0", "a b")
    with pytest.raises(ValueError, match=r"features: there is no column 'a c'; did you mean 'a b'\?"):
        read_table(frame, features=["a c"])


def test_a_dataset_of_a_frame_keeps_its_names() -> None:
    frame = pd.DataFrame({"Length": [1.0, 2.0], "Diagonal": [3, 4]}, index=["a", "b"])
    data = Dataset(frame)
    assert data.feature_names == ("Length", "Diagonal")
    assert data.row_names == ("a", "b")
    assert data.series([1, 0]).to_dict() == {"a": 1, "b": 0}
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):  # noqa: S301 - our own
        assert other.row_names == data.row_names
        assert list(other.index) == list(data.index)
    assert Dataset(frame, feature_names=("u", "v"), row_names=("c", "d")).row_names == ("c", "d")
    with pytest.raises(ValueError, match=r"column\(s\) 'kind' \('x', 'y'\) hold text.*read_table"):
        Dataset(frame.assign(kind=["x", "y"]))
    with pytest.raises(ValueError, match="row_names has 1 names, but X has 2 rows"):
        Dataset(np.eye(2), row_names=("a",))
    with pytest.raises(ValueError, match=r"one value per row, 2 in all, got shape \(3,\)"):
        data.series([1, 2, 3])


def test_labels_come_back_with_the_index(rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"], index=[f"r{k}" for k in range(30)])
    frame.iloc[:15] += 20.0
    labels = ew.AffineClustering(model="II", n_clusters=2, **FEW_DRAWS).fit_predict(frame)
    assert isinstance(labels, pd.Series)
    assert labels.index.equals(frame.index)
    assert labels.name == "cluster"
    frame.loc["r3", "a"] = None
    data = read_table(frame, missing="drop rows")
    clustering = ew.AffineClustering(model="II", n_clusters=2, **FEW_DRAWS).fit(data)
    beside = frame.join(clustering.labels_)
    assert beside["cluster"].isna().sum() == 1
    assert beside["cluster"].groupby(np.arange(30) < 15).nunique().tolist() == [1, 1]
    assert clustering.predict(data.X[:3]).shape == (3,)


def test_text_is_refused_by_the_estimator_in_words() -> None:
    frame = pd.DataFrame({"code": ["CR0000", "CR0001", "CR0002"], "x": [1.0, 2.0, 4.0]})
    with pytest.raises(ValueError, match=r"'code' \('CR0000', 'CR0001', 'CR0002'\) hold text.*drop"):
        ew.AffineClustering().fit(frame)
    with pytest.raises(ValueError, match=r"must be numeric.*'CR0000'.*encode the columns"):
        ew.AffineClustering().fit(frame.to_numpy())
    with pytest.raises(ValueError, match=r"row 1 has no values.*Drop these rows"):
        ew.AffineClustering().fit(frame[["x"]].where(frame["x"] != 2.0))


def test_categories_that_look_like_numbers_are_no_numbers() -> None:
    frame = pd.DataFrame(
        {"x": [0.5, 1.5, 2.5, 3.5], "y": [3.0, 1.0, 4.0, 1.5], "kind": pd.Categorical([1, 2, 1, 2])}
    )
    with pytest.raises(ValueError, match=r"'kind' \('1', '2'\) hold categories"):
        ew.Sampler(frame)
    data = ew.read_table(frame)
    assert data.feature_names == ("x", "y")
    assert data.classes == ("1", "2", "1", "2")
