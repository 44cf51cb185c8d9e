"""Tables that anybody may upload: read, or refused in words."""

import csv
import io
import tracemalloc
import warnings

import numpy as np
import pytest
from fuzz.hostile import mutated, seeded
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ewens_widgets.datasets import Dataset
from ewens_widgets.tables import DataWarning, TableError, read_table

EXAMPLES = [
    b"length,width,species\n1,2,setosa\n3,4,virginica\n5,6.5,setosa\n",
    b'"a, b";c\r\n1,5;2\r\n-3;4,25e1\r\n\r\n7;"8"\r\n',
    b"country\tx\tclass\nA\t1\tu\nB\t2\tv\nC\t3\tu\n",
    "größe,größe,\n1,2,3\n4,5,6\n".encode("cp1252"),
    b"1,2\n3,4\n",
]
# Letters, and cells, that mean something to some reader of tables.
LETTERS = "0123456789.,;\t\n\r\"'eE+-=@ aNn/?\x85\u2028\x00\ufeff٣é"
CELLS = [
    *["1", "2.5", "-3e4", "1e999", "", "NA", "a", "a", "class", "a (2)", "x1", "1,5", '"', "=1+1", "٣"],
    "9" * 400,
]


def read(content: bytes) -> Dataset | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # what a table warns of is tested elsewhere
            data = read_table(content, "some file.csv")
    except TableError as fault:
        assert 20 < len(str(fault)) < 2000  # noqa: PT017 - in words, and not the whole file
        return None
    assert not np.isinf(data.X).any()  # gaps may be there, but no column of them
    assert np.isfinite(data.X).any(axis=0).all()
    assert data.X.shape[0] >= 2
    assert data.X.shape[1] == len(data.feature_names) == len(set(data.feature_names))
    assert all(0 < len(name) < 80 for name in data.feature_names)
    if data.labels is not None:
        assert data.labels.shape == (len(data.X),)
        assert sorted(set(data.labels.tolist())) == list(range(len(data.label_names)))
        assert len(set(data.label_names)) == len(data.label_names)
    assert "Dataset" in repr(data)
    assert "<table>" in data._repr_html_()
    assert set(data.summary.named("feature")) == set(data.feature_names)
    assert "Columns of" in repr(data.summary)
    return data


@pytest.mark.parametrize("count", [20, pytest.param(2000, marks=pytest.mark.nightly)])
def test_arbitrary_bytes_cells_and_changes(count: int) -> None:
    for seed in range(count):
        rng = seeded(seed)
        read(rng.randbytes(rng.randrange(120)))
        read("".join(rng.choices(LETTERS, k=rng.randrange(60))).encode())
        example = rng.choice(EXAMPLES)
        assert read(example) is not None
        read(mutated(example, rng))
        width, end = rng.randint(1, 4), rng.choice(["\n", "\r\n", "\r", "\n\n"])
        rows = [rng.choice(",;\t").join(rng.choices(CELLS, k=width)) for _ in range(rng.randrange(6))]
        read(end.join(rows).encode())


def test_empty_cells_names_and_sizes() -> None:
    for content in (b",,,\n", b'""', b'"",""\n\n', b";\n;\n"):
        with pytest.raises(TableError, match="no filled cells"):
            read_table(content)
    with pytest.raises(TableError, match=r"only 1 row\(s\) have any value"):
        read_table(b"1,5\n\n1")  # the first column is constant
    names = read_table(b"a,a,a (2)\n1,1,1\n2,2,2\n").feature_names
    assert names == ("a", "a (2)", "a (2) (2)")  # a numbered name may be taken
    start = "q" * 70  # long names of classes are not mixed up
    data = read_table(f"x,class\n1,{start}a\n2,{start}b\n3,{start}a\n".encode())
    np.testing.assert_array_equal(data.labels, [0, 1, 0])
    assert len(set(data.label_names)) == 2


def test_one_long_cell_does_not_make_all_long() -> None:
    """As an array of text, these classes would take ten gigabytes."""
    rows = "".join(f"{k},{'q' * (100_000 if k == 7 else 1 + k % 3)}\n" for k in range(15_000))
    tracemalloc.start()
    try:
        with pytest.warns(DataWarning, match="'x' looks like a number of the row"):
            data = read_table(f"x,class\n{rows}".encode())
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    assert len(data.label_names) == 4


# Ways to write one number: each takes a value with two decimals, the digits of which are certain.
POINTS = {
    "plain": lambda value: f"{value:.2f}",
    "thousands": lambda value: f"{value:,.2f}",
    "apostrophes": lambda value: f"{value:,.2f}".replace(",", "'"),
    "spaces": lambda value: f"{value:,.2f}".replace(",", "\u202f"),
    "unit": lambda value: f"{value:.2f} mg",
    "per cent": lambda value: f"{value:,.2f}%",
    "currency": lambda value: f"${value:,.2f}" if value >= 0 else f"-${-value:,.2f}",
    "exponent": lambda value: f"{value:.8e}",
    "real minus": lambda value: f"{value:.2f}".replace("-", "−"),
}
SWAPPED = str.maketrans(".,", ",.")


@pytest.mark.slow
@settings(max_examples=80)
@given(
    values=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(-(10**9), 10**9), min_size=width, max_size=width), min_size=2, max_size=8
        )
    ),
    ways=st.lists(st.sampled_from(sorted(POINTS)), min_size=4, max_size=4),
    has_commas=st.booleans(),
    separator=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
    has_names=st.booleans(),
)
def test_numbers_in_any_format_come_back(
    values: list[list[int]],
    ways: list[str],
    has_commas: bool,
    separator: str,
    encoding: str,
    end: str,
    has_names: bool,
) -> None:
    X = np.array(values) / 100.0
    # Two decimals are certain; whole hundreds would be written so too, and constant columns are left out.
    X += 0.01 * (np.round(X) == X)
    rows = [[POINTS[way](value) for way, value in zip(ways, row, strict=False)] for row in X.tolist()]
    if has_commas:
        rows = [[cell.translate(SWAPPED) for cell in row] for row in rows]
    header = [f"column {place}" for place in range(X.shape[1])]
    if has_names:
        header, rows = ["name", *header], [[f"row {place}", *row] for place, row in enumerate(rows)]
    assume(len(header) > 1 or not has_commas)  # in one column, a comma might as well separate two
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator=end).writerows([header, *rows])
    varies = np.ptp(X, axis=0) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        if not varies.any():
            with pytest.raises(TableError, match="all rows are equal"):
                read_table(buffer.getvalue().encode(encoding))
            return
        data = read_table(buffer.getvalue().encode(encoding))
    np.testing.assert_allclose(data.X, X[:, varies], rtol=1e-8)
    names = None if not has_names else tuple(f"row {place}" for place in range(len(X)))
    assert data.row_names == names
