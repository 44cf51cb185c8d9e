"""Input: what is refused, with which words, and what is taken as it comes."""

import warnings
from collections.abc import Callable

import numpy as np
import oracle
import pytest
from scipy import sparse

import ewens_widgets as ew
from ewens_widgets.arguments import check_positive
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import DataWarning, check_data, check_model

TABLE = np.array([[0, 3], [1, 5], [4, 2], [6, 6], [2, 9], [7, 1]])
LABELS = [0, 0, 1, 1, 0, 1]


def with_value(value: object) -> np.ndarray:
    table = TABLE.astype(object)
    table[2, 1] = value
    return table


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (np.where(TABLE > 6, np.inf, TABLE), ValueError, "contain infinity .* row 4, column 1; 2 such value"),
        (np.where(TABLE > 6, -np.inf, TABLE), ValueError, "contain infinity"),
        (TABLE[:1], ValueError, "at least 2 objects .* n_samples = 1"),
        (TABLE[:0], ValueError, "at least 2 objects .* n_samples = 0"),
        (TABLE[:, :0], ValueError, r"0 feature\(s\) \(shape=\(6, 0\)\) while a minimum of 1 is required"),
        ([], ValueError, "must be a table, n objects by d features; got 1 dimension"),
        (TABLE[:, 0], ValueError, r"got 1 dimension\(s\). Use X.reshape\(-1, 1\) for a single feature"),
        *(
            (data, ValueError, r"got 0 dimension\(s\)")
            for data in (7.0, None, "data", {"a": [1.0]}, iter([]))
        ),
        ([[1.0, 2.0], [3.0]], ValueError, "some rows have more entries than others"),
        (np.zeros(3, dtype=[("a", "f8"), ("b", "f8")]), ValueError, r"got 1 dimension\(s\)"),
        (TABLE[:, :, None], ValueError, r"got 3 dimension\(s\)"),
        (TABLE + 1j, ValueError, "Complex data not supported.*real and imaginary parts"),
        (
            [["red", "blue"], ["green", "red"]],
            ValueError,
            "numeric.*'red'.*encode the columns that hold text",
        ),
        (with_value("red"), ValueError, "must be numeric.*'red'"),
        (with_value({"a": 1}), TypeError, "must be numeric.*argument must be .* string.* number.*dict"),
        (with_value([1, 2]), ValueError, "must be numeric.*sequence"),
        (with_value(10**400), ValueError, "must be numeric.*too large"),
        (TABLE.astype("datetime64[D]"), TypeError, "must be numeric; got dates .*days"),
        (TABLE.astype("timedelta64[s]"), TypeError, "must be numeric; got dates"),
        (sparse.csr_matrix(TABLE), TypeError, r"sparse data are not supported; .*\.toarray\(\)"),
        (sparse.csr_array(TABLE), TypeError, "sparse data are not supported"),
    ],
)
def test_data_that_are_no_table_of_numbers_are_refused(
    data: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check_data(data)
    # The public functions use the same check.
    for model in oracle.MODELS:
        with pytest.raises(error, match=message):
            ew.log_likelihood(data, LABELS, 1.0, model)
        with pytest.raises(error, match=message):
            ew.Posterior.from_data(data, model=model)
    with pytest.raises(error, match=message):
        ew.exact_posterior(data)


@pytest.mark.parametrize(
    "data", [np.where(TABLE == 9, np.nan, TABLE), with_value(None), np.ma.masked_equal(TABLE, 9)]
)
def test_likelihoods_need_complete_tables(data: object) -> None:
    """Chains do not (see `sampling.test_gaps`)."""
    message = "contain NaN .* row [24], column 1; 1 such value.*fill the gaps"
    for refused in (check_data, lambda table: ew.log_likelihood(table, LABELS, 1.0)):
        with pytest.raises(ValueError, match=message):
            refused(data)
    with pytest.raises(ValueError, match="enumerated for tables without missing cells"):
        ew.exact_posterior(data)


def test_equal_rows_constant_columns_and_too_few_rows_are_refused(rng: np.random.Generator) -> None:
    for model in oracle.MODELS:
        with pytest.raises(ValueError, match="all rows are equal, so there is nothing to cluster"):
            ew.Posterior.from_data(np.ones((5, 2)) * [0.1, 7.0], model=model)
    X = np.column_stack([TABLE, np.full(6, 0.1), TABLE[:, 0] ** 2, np.zeros(6)])
    for model in ("II", "III"):
        with pytest.raises(ValueError, match=r'column\(s\) 2, 4 are constant; drop them, or use model "I"'):
            ew.Posterior.from_data(X, model=model)
    assert ew.Posterior.from_data(X, model="I").n_features == 5
    for n_objects in (2, 3, 4):
        few, needed = (
            rng.normal(size=(n_objects, 3)),
            rf"more than d \+ 1 = 4 objects; got n_samples = {n_objects}",
        )
        with pytest.raises(ValueError, match=rf'{needed}.*PCA, or drop some.*model "I" or "II"'):
            ew.Posterior.from_data(few, model="III")
        for model in ("I", "II"):
            assert ew.Posterior.from_data(few, model=model).n_objects == n_objects
    # The smallest data of each model.
    for model in ("I", "II"):
        ew.Posterior.from_data([[0.0], [1.0]], model=model)
    ew.Posterior.from_data(rng.normal(size=(5, 3)), model="III")


def test_rank_deficient_data_are_refused_with_a_way_out(rng: np.random.Generator) -> None:
    X = rng.normal(size=(30, 3))
    X = np.column_stack([X, X @ [1.0, -2.0, 0.5], X[:, 0]])
    message = (
        "rank 3, less than their 5 columns: column 3 is a linear combination of 0, 1, 2; 4 is a copy of 0.*"
        r"drop column\(s\) 3, 4 \(or reduce all by PCA, or drop columns that these follow from\)\.$"
    )
    with pytest.raises(ValueError, match=message):
        ew.Posterior.from_data(X, model="III")
    with pytest.warns(DataWarning, match="4 is a copy of 0.*model II counts"):
        assert ew.Posterior.from_data(X, model="II").n_features == 5


@pytest.mark.parametrize("model", oracle.MODELS)
@pytest.mark.parametrize(
    ("column", "finding"),
    [
        (lambda X: 2.54 * X[:, 0] + 3.0, "'extra' is a copy of 'length'"),
        (lambda X: -X[:, 2], "'extra' is a copy of 'depth'"),
        (lambda X: X[:, 0] + X[:, 1], "'extra' is a linear combination of 'length', 'width'"),
    ],
)
def test_a_copied_or_collinear_column_is_named_under_every_model(
    model: str, column: Callable[[np.ndarray], np.ndarray], finding: str, rng: np.random.Generator
) -> None:
    pandas = pytest.importorskip("pandas")
    X = rng.normal(size=(40, 3)) * [1.0, 30.0, 0.01]
    frame = pandas.DataFrame(X, columns=["length", "width", "depth"]).assign(extra=column(X))
    for data in (frame, Dataset(frame)):
        if model == "III":
            with pytest.raises(ValueError, match=rf"{finding}.*drop column\(s\) 'extra'") as caught:
                ew.Posterior.from_data(data, model=model)
            assert ("model" in str(caught.value)) == ("combination" in finding)
        else:
            with pytest.warns(DataWarning, match=rf"{finding}.*Drop column\(s\) 'extra'"):
                ew.Posterior.from_data(data, model=model)


def test_a_nearly_copied_column_is_named_and_few_rows_say_nothing(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 2))
    near = np.column_stack([X, X[:, 1] + 1e-3 * rng.normal(size=40)])
    with pytest.warns(DataWarning, match=r"2 is a copy of 1 \(nearly\)"):
        ew.Posterior.from_data(near, model="II")
    ew.Posterior.from_data(near[:9], model="II")
    far = np.vstack([X, [1e8, 1e8]])
    ew.Posterior.from_data(far, model="II")  # one row that is far away does not make columns alike
    with pytest.warns(DataWarning, match="2 is a copy of 0"):
        ew.Posterior.from_data(np.column_stack([far, far[:, 0]]), model="I")
    wide = rng.normal(size=(20, 30))
    with pytest.warns(DataWarning, match="30 is a copy of 2"):
        ew.Posterior.from_data(np.column_stack([wide, wide[:, 2]]), model="I")


@pytest.mark.parametrize("model", ["i", "IV", 2, None, "", "diagonal"])
def test_a_model_that_does_not_exist_is_refused(model: str) -> None:
    with pytest.raises(ValueError, match=f'"I" .*"II" .*"III" .*; got {model!r}'):
        check_model(model)


def test_numbers_of_any_kind_are_taken_as_parameters() -> None:
    for value in (2, np.float32(2.0), np.int8(2), np.array(2.0)):
        number = check_positive("it", value)
        assert number == 2.0
        assert type(number) is float


def test_places_and_ways_out_of_a_pandas_table_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE, columns=["width", "height"], index=list("uvwxyz"))
    ways = (
        r"row 'y', column 'height'; 1 such value.*\('height': 1 by column\).*frame\.dropna\(\), or these "
        r"columns, or fill the gaps"
    )
    for gaps in (frame.where(frame != 9), frame.astype("Int64").where(frame != 9)):
        with pytest.raises(ValueError, match=f"contain NaN .* at {ways}"):
            check_data(gaps)
    text = "must be numeric.*'kind' \\('a'\\).*frame\\.drop\\(columns=\\['kind'\\]\\).*read_table"
    with pytest.raises(ValueError, match=text):
        check_data(frame.assign(kind=["a"] * 6))
    with pytest.raises(ValueError, match=r"column\(s\) 'year', 'rest' are constant; drop them"):
        ew.Posterior.from_data(frame.assign(year=2024, rest=0.1), model="II")
    with pytest.raises(ValueError, match=r"column\(s\) 'c' are constant up to rounding"):
        ew.Posterior.from_data(frame.assign(c=1.0 + np.spacing(1.0) * (np.arange(6) % 2)), model="II")


def test_the_data_are_never_changed_nor_shared_with_a_posterior() -> None:
    X = TABLE.astype(np.float64)
    for model in oracle.MODELS:
        posterior = ew.Posterior.from_data(X, model=model)
        assert not np.shares_memory(posterior.coordinates, X)
    assert np.shares_memory(check_data(X), X)  # returned without a copy
    np.testing.assert_array_equal(X, TABLE)
    assert X.flags.writeable


@pytest.mark.parametrize("factor", [1e300, 1e-300, 2.0**-1070, 1.0])
@pytest.mark.parametrize("model", oracle.MODELS)
def test_no_magnitude_makes_noise(model: str, factor: float) -> None:
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        value = ew.log_likelihood(TABLE * factor, LABELS, 4.0, model)
    assert value == pytest.approx(oracle.log_likelihood(TABLE, LABELS, 4.0, model), rel=1e-10)
