"""Labels, enumeration and conversions of partitions."""

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewens_widgets import partition

label_lists = st.lists(st.integers(-3, 6), min_size=1, max_size=12)
BELL = [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975]


@given(label_lists, st.permutations(range(10)))
def test_canonical_labels_name_the_same_partition_in_order_of_first_appearance(
    labels: list[int], names: list[int]
) -> None:
    canonical = partition.canonical_labels(labels)
    assert canonical.dtype == np.intp
    np.testing.assert_array_equal(oracle.same_cluster(canonical), oracle.same_cluster(labels))
    seen = list(dict.fromkeys(canonical.tolist()))
    assert seen == list(range(len(seen)))
    for same in (canonical, [names[label + 3] for label in labels]):
        np.testing.assert_array_equal(partition.canonical_labels(same), canonical)


@given(label_lists)
def test_clusters_and_their_sizes(labels: list[int]) -> None:
    clusters = partition.to_clusters(labels)
    assert [len(cluster) for cluster in clusters] == partition.cluster_sizes(labels).tolist()
    for label, cluster in enumerate(clusters):
        assert cluster == np.flatnonzero(partition.canonical_labels(labels) == label).tolist()


def test_bell_numbers() -> None:
    assert [partition.bell_number(n) for n in range(11)] == BELL
    assert partition.bell_number(25) == 4638590332229999353
    with pytest.raises(ValueError, match="must not be negative; got -1"):
        partition.bell_number(-1)


@pytest.mark.parametrize("n", range(1, 9))
def test_enumeration_finds_each_partition_once(n: int) -> None:
    found = [tuple(row) for row in partition.all_partitions(n).tolist()]
    assert found == sorted(oracle.labels_of(clusters) for clusters in oracle.set_partitions(range(n)))
    assert len(set(found)) == len(found) == BELL[n]


def test_the_largest_enumeration() -> None:
    rows = partition.all_partitions(10)
    assert rows.shape == (BELL[10], 10)
    assert rows.dtype == np.int8
    highest_so_far = np.maximum.accumulate(rows, axis=1)
    assert np.all(rows[:, 0] == 0)
    assert np.all(rows[:, 1:] <= highest_so_far[:, :-1] + 1)
    assert len(np.unique(rows, axis=0)) == BELL[10]


@pytest.mark.parametrize("n", [0, -2, 11, 1000])
def test_enumeration_refuses_what_it_cannot_hold(n: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 10 objects; {n} objects were asked for"):
        partition.all_partitions(n)
    if n == 11:
        with pytest.raises(ValueError, match=r"678570 partitions.*Use a sampler"):
            partition.all_partitions(n)


@pytest.mark.parametrize(
    "labels",
    [
        [5, 5, 2],
        [5.0, 5.0, -2.0],
        [True, True, False],
        ["x", "x", "yy"],
        np.array([255, 255, 0], dtype=np.uint8),
        np.array(["x", "x", "y"], dtype=object),
        np.array([7, 7, 10**30], dtype=object),
        (0, 0, 1),
        pd.Series([4, 4, 2], index=[9, 8, 7]),
        pd.Series(["x", "x", "y"]),
        pd.Series(["x", "x", "y"]).astype("category"),
    ],
)
def test_any_names_of_clusters_are_taken(labels: list[object]) -> None:
    checked = partition.check_labels(labels, n_objects=3)
    assert checked.tolist() == [0, 0, 1]
    assert checked.dtype == np.intp


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 1], ValueError, "length 2, but there are 3 objects; give one label per object"),
        ([0, 1, 1, 0], ValueError, "length 4, but there are 3 objects"),
        ([[0, 1, 1]], ValueError, r"one-dimensional.*got shape \(1, 3\)"),
        (3, ValueError, r"one-dimensional.*got shape \(\)"),
        ([], ValueError, "labels are empty"),
        ([0.5, 1.0, 1.0], ValueError, "whole numbers.*fractions"),
        ([np.nan, 1.0, 1.0], ValueError, "NaN or infinity"),
        ([np.inf, 1.0, 1.0], ValueError, "NaN or infinity"),
        ([1j, 0, 0], TypeError, "all integers or all strings; got dtype complex128"),
        ([None, 1, 1], TypeError, "all integers or all strings; got dtype object"),
        (np.array(["x", 1, 1], dtype=object), TypeError, r"np\.unique\(labels, return_inverse=True\)\[1\]"),
    ],
)
def test_labels_that_are_no_partition_are_refused(
    labels: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        partition.check_labels(labels, n_objects=3)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1 2 | 3", [0, 0, 1]),
        ("3 | 1, 2", [0, 0, 1]),
        ("1 2 3 |", [0, 0, 0]),
        ("|2||1", [0, 1]),
        ("0 0 1", [0, 0, 1]),
        ("7,7,-1", [0, 0, 1]),
        ("ann ann bob", [0, 0, 1]),
        ("1 2 3", [0, 1, 2]),
        ("5", [0]),
    ],
)
def test_clusters_and_labels_are_read(text: str, labels: list[int]) -> None:
    assert partition.parse_partition(text).tolist() == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing here yet; write clusters such as 1 2 | 3"),
        (" | ", "nothing here yet"),
        ("1 2 | 2", "object 2 is there twice"),
        ("1 2 | 4", "numbered from 1 to 3, each once; got 4"),
        ("0 1 | 2", "numbered from 1 to 3, each once; got 0"),
        ("1 b | 2", "'b' is not the number of an object"),
        ("1 -2 | 3", "'-2' is not the number of an object"),
        ("0 " * 201, "at most 200 objects"),
    ],
)
def test_what_is_no_partition_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        partition.parse_partition(text)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_what_is_written_can_be_read(labels: list[int]) -> None:
    expected = partition.canonical_labels(labels)
    assert partition.parse_partition(partition.format_partition(expected)).tolist() == expected.tolist()
