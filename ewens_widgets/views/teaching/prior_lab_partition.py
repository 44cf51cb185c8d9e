"""Partitions as text, and their probability in words."""

import re

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model import ewens
from ewens_widgets.partition import canonical_labels, to_clusters

__all__ = ["MOST_TYPED", "format_partition", "parse_partition", "probability_text", "product_text"]

MOST_TYPED = 200
"""Most objects of a partition that is typed."""

_MOST_FACTORS = 8
_EXAMPLE = "write clusters such as 1 2 | 3, or labels such as 0 0 1"


def parse_partition(text: str) -> NDArray[np.intp]:
    """Read a partition: clusters of the objects 1, …, n with bars between them, or one label an object.

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
            number = _object_number(word, len(words))
            if number in owners:
                raise ValueError(f"object {number} is there twice; each belongs to one cluster.")
            owners[number] = place
    return canonical_labels([owners[number] for number in range(1, len(words) + 1)])


def _object_number(word: str, n: int) -> int:
    if not re.fullmatch(r"\d{1,6}", word):
        raise ValueError(f"{word!r} is not the number of an object; {_EXAMPLE}.")
    number = int(word)
    if not 1 <= number <= n:
        raise ValueError(
            f"these are {n} objects, so they are numbered from 1 to {n}, each once; got {number}."
        )
    return number


def format_partition(labels: NDArray[np.intp]) -> str:
    """Write a partition as clusters of the objects 1, …, n."""
    clusters = [" ".join(str(member + 1) for member in cluster) for cluster in to_clusters(labels)]
    # Without a bar it would be read as labels.
    return " | ".join(clusters) if len(clusters) > 1 else f"{clusters[0]} |"


def product_text(labels: NDArray[np.intp], concentration: float) -> str:
    """The probability as a product over the guests, such as λ/λ · 1/(λ+1); empty if it would be long."""
    if labels.size > _MOST_FACTORS:
        return ""
    factors = []
    sizes: dict[int, int] = {}
    for seated, label in enumerate(labels.tolist()):
        weight = str(sizes[label]) if label in sizes else "λ"
        factors.append(f"{weight}/(λ+{seated})" if seated else "λ/λ")
        sizes[label] = sizes.get(label, 0) + 1
    return f"{' · '.join(factors)} with λ = {concentration:.4g}"


def probability_text(labels: NDArray[np.intp], concentration: float, n_components: int) -> str:
    """Probability of a partition under Ewens' prior and under finitely many components, as HTML."""
    infinite = ewens.log_pmf(labels, concentration)
    finite = ewens.dirichlet_multinomial_log_pmf(labels, concentration, n_components)
    return (
        f'probability <b class="ew-probability">{_number(infinite)}</b> (log {infinite:.4f}), '
        f'with k = {n_components} components <b class="ew-finite-probability">{_number(finite)}</b>'
    )


def _number(log_value: float) -> str:
    if log_value == -np.inf:
        return "0"
    if log_value < -300.0:
        return f"10^{log_value / np.log(10.0):.1f}"
    return f"{np.exp(log_value):.6g}"
