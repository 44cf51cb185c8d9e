"""Partitions of n objects: canonical labels, enumeration, conversions and text.

A partition is an array of labels, one per object. Any integers may name the clusters; the *canonical*
labels number them 0, 1, 2, … in the order in which they first appear, so that two arrays describe the same
partition exactly when their canonical labels are equal. Canonical labels are the restricted growth strings of
combinatorics.
"""

import re
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "all_partitions",
    "bell_number",
    "canonical_labels",
    "check_labels",
    "cluster_sizes",
    "format_partition",
    "parse_partition",
    "to_clusters",
]

LARGEST_ENUMERATION = 10

MOST_TYPED = 200
"""Most objects of a typed partition."""

_EXAMPLE = "write clusters such as 1 2 | 3, or labels such as 0 0 1"


def canonical_labels(labels: ArrayLike) -> NDArray[np.intp]:
    """Return labels that number the clusters 0, 1, 2, … in order of first appearance."""
    given = np.asarray(labels)
    _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.intp)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]


def check_labels(labels: ArrayLike, n_objects: int | None = None) -> NDArray[np.intp]:
    """Return canonical labels; refuse `labels` that are not a partition.

    Parameters
    ----------
    labels
        One label per object: integers, booleans, or strings.
    n_objects
        Number of objects, if known.
    """
    given = np.asarray(labels)
    if given.ndim != 1:
        raise ValueError(f"labels must be one-dimensional, one label per object; got shape {given.shape}.")
    if given.size == 0:
        raise ValueError("labels are empty; a partition needs at least one object.")
    if given.dtype.kind == "f":
        if not np.all(np.isfinite(given)) or np.any(given != np.round(given)):
            raise ValueError(
                "labels must name clusters by whole numbers or strings; got fractions, NaN or infinity."
            )
    # An array of objects, such as a column of a table, may hold only strings or only integers.
    elif given.dtype.kind not in "iubUS" and not (
        given.dtype.kind == "O"
        and any(all(isinstance(label, kind) for label in given) for kind in (str, int))
    ):
        raise TypeError(
            f"labels must be all integers or all strings; got dtype {given.dtype}. Convert them, "
            "e.g. with np.unique(labels, return_inverse=True)[1]."
        )
    if n_objects is not None and given.size != n_objects:
        raise ValueError(
            f"labels have length {given.size}, but there are {n_objects} objects; give one label per object."
        )
    return canonical_labels(given)


def cluster_sizes(labels: ArrayLike) -> NDArray[np.intp]:
    """Sizes of the clusters, in the order of the canonical labels."""
    return np.bincount(canonical_labels(labels)).astype(np.intp)


def bell_number(n: int) -> int:
    """Count the partitions of n objects (Bell's triangle)."""
    if n < 0:
        raise ValueError(f"the number of objects must not be negative; got {n}.")
    row = [1]
    for _ in range(n):
        row = list(accumulate([row[-1], *row]))
    return row[0]


def all_partitions(n: int) -> NDArray[np.int8]:
    """Enumerate the partitions of n ≤ 10 objects as canonical labels, one a row, in lexicographic order."""
    if not 1 <= n <= LARGEST_ENUMERATION:
        many = f" ({bell_number(n)} partitions). Use a sampler instead." if 0 < n <= 300 else "."
        raise ValueError(
            f"partitions can be enumerated for 1 to {LARGEST_ENUMERATION} objects; {n} objects were asked "
            f"for{many}"
        )
    rows = np.zeros((1, 1), dtype=np.int8)
    for _ in range(1, n):
        # A restricted growth string goes on with any cluster so far, or with the next new one.
        choices = rows.max(axis=1).astype(np.intp) + 2
        last = np.concatenate([np.arange(count, dtype=np.int8) for count in choices])
        rows = np.column_stack([np.repeat(rows, choices, axis=0), last])
    return rows


def to_clusters(labels: ArrayLike) -> list[list[int]]:
    """List the members of each cluster, clusters in order of their first member."""
    canonical = check_labels(labels)
    clusters: list[list[int]] = [[] for _ in range(int(canonical.max()) + 1)]
    for item, label in enumerate(canonical):
        clusters[label].append(item)
    return clusters


def parse_partition(text: str) -> NDArray[np.intp]:
    """Read a partition: clusters of the objects 1, …, n with bars between them, or one label per object.

    Examples
    --------
    >>> parse_partition("1 2 | 3").tolist(), parse_partition("0 0 1").tolist()
    ([0, 0, 1], [0, 0, 1])
    """
    words = re.findall(r"[^\s,;|]+", text)
    if not words:
        raise ValueError(f"there is nothing here yet; {_EXAMPLE}.")
    if len(words) > MOST_TYPED:
        raise ValueError(f"at most {MOST_TYPED} objects can be typed; got {len(words)}.")
    if "|" not in text:
        names = {word: place for place, word in enumerate(dict.fromkeys(words))}
        return canonical_labels([names[word] for word in words])
    clusters = [re.findall(r"[^\s,;]+", part) for part in text.split("|")]
    owners: dict[int, int] = {}
    for place, cluster in enumerate(clusters):
        for word in cluster:
            if not re.fullmatch(r"\d{1,6}", word):
                raise ValueError(f"{word!r} is not the number of an object; {_EXAMPLE}.")
            number = int(word)
            if not 1 <= number <= len(words):
                raise ValueError(
                    f"these are {len(words)} objects, so they are numbered from 1 to {len(words)}, each "
                    f"once; got {number}."
                )
            if number in owners:
                raise ValueError(f"object {number} is there twice; each belongs to one cluster.")
            owners[number] = place
    return canonical_labels([owners[number] for number in range(1, len(words) + 1)])


def format_partition(labels: NDArray[np.intp]) -> str:
    """Write a partition as clusters of the objects 1, …, n."""
    clusters = [" ".join(str(member + 1) for member in cluster) for cluster in to_clusters(labels)]
    # Without a bar it would be read as labels.
    return " | ".join(clusters) if len(clusters) > 1 else f"{clusters[0]} |"
