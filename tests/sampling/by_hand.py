"""The moves' proposals by brute force, from the words of their descriptions and from nothing else.

Distances are computed pair by pair, every assignment of every member and every core jump is enumerated, and
the probabilities of the partitions that they lead to are added up. Nothing here imports the package.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = tuple[int, ...]
Proposals = dict[Labels, float]

WITHIN: dict[str, Callable[[list[float]], float]] = {
    "average": lambda values: sum(values) / len(values),
    "maximum": max,
    "minimum": min,
}


def distance(Y: Floats, first: int, second: int) -> float:
    """Euclidean distance of two rows."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(Y[first], Y[second], strict=True)))


def _floored_distances(Y: Floats) -> Floats:
    n_objects = len(Y)
    table = np.array([[distance(Y, i, j) for j in range(n_objects)] for i in range(n_objects)])
    floor = 1e-12 * table.max()
    return np.where(np.eye(n_objects, dtype=bool), 0.0, np.maximum(table, floor))


def _canonical(labels: Sequence[int]) -> Labels:
    names: dict[int, int] = {}
    return tuple(names.setdefault(label, len(names)) for label in labels)


def _clusters(labels: Labels) -> list[list[int]]:
    return [[i for i, label in enumerate(labels) if label == b] for b in range(max(labels) + 1)]


def between_distance(table: Floats, first: list[int], second: list[int], kind: str) -> float:
    """Distance of two clusters."""
    values = [table[i, j] for i in first for j in second]
    if kind == "hausdorff":
        nearest = [min(table[i, j] for j in second) for i in first]
        return max(nearest + [min(table[i, j] for i in first) for j in second])
    return float(WITHIN[kind](values))


def farthest_pair(table: Floats, members: list[int]) -> tuple[int, int]:
    """The two members farthest apart; of equally distant pairs the one with the lowest indices."""
    return max(itertools.combinations(members, 2), key=lambda pair: (table[pair], -pair[0], -pair[1]))


def core_splits(
    table: Floats, members: list[int], core_jump: float, favour: str = "nearer", paths: int = 2
) -> list[tuple[frozenset[int], float]]:
    """Every side of the second core with its probability; an empty side may be among them.

    `favour` and `paths` sabotage it: "farther" turns the assignment round, one path leaves out that the
    second core may be the one that jumped.
    """
    first, second = farthest_pair(table, members)
    others = [i for i in members if i not in {first, second}]
    outcomes = []
    for joins_second in itertools.product((False, True), repeat=len(others)):
        probability = 1.0
        side = {second}
        for i, joined in zip(others, joins_second, strict=True):
            to_first, to_second = table[i, first], table[i, second]
            opposite = to_first if joined == (favour == "nearer") else to_second
            probability *= opposite / (to_first + to_second)
            if joined:
                side.add(i)
        outcomes.append((frozenset(side), probability * (1.0 - core_jump)))
        outcomes.append((frozenset(side | {first}), probability * core_jump / 2))
        if paths == 2:
            outcomes.append((frozenset(side - {second}), probability * core_jump / 2))
    return outcomes


def split_merge_proposals(
    Y: Floats,
    labels: Labels,
    within: str = "average",
    between: str = "average",
    probabilities: tuple[float, float, float] = (0.475, 0.475, 0.05),
    core_jump: float = 0.01,
    *,
    favour: str = "nearer",
    paths: int = 2,
) -> Proposals:
    """Probabilities of everything that the paper's Algorithm 2 may propose, the partition itself included."""
    table = _floored_distances(Y)
    clusters = _clusters(labels)
    split, merge, keep = probabilities
    proposals: Proposals = defaultdict(float)
    proposals[labels] += keep
    splittable = [members for members in clusters if len(members) > 1]
    if not splittable:
        proposals[labels] += split
    weights = [
        WITHIN[within]([float(table[pair]) for pair in itertools.combinations(members, 2)])
        for members in splittable
    ]
    for members, weight in zip(splittable, weights, strict=True):
        for side, probability in core_splits(table, members, core_jump, favour, paths):
            changed = [len(clusters) if i in side else label for i, label in enumerate(labels)]
            proposals[_canonical(changed)] += split * weight / sum(weights) * probability
    couples = list(itertools.combinations(range(len(clusters)), 2))
    if not couples:
        proposals[labels] += merge
    nearness = [1.0 / between_distance(table, clusters[a], clusters[b], between) for a, b in couples]
    for (a, b), weight in zip(couples, nearness, strict=True):
        joined = [a if label == b else label for label in labels]
        proposals[_canonical(joined)] += merge * weight / sum(nearness)
    return dict(proposals)


def reassign_proposals(labels: Labels) -> Proposals:
    """Probabilities of everything that the paper's Algorithm 1 may propose."""
    n_objects, n_clusters = len(labels), max(labels) + 1
    proposals: Proposals = defaultdict(float)
    for item in range(n_objects):
        alone = labels.count(labels[item]) == 1
        targets = [b for b in range(n_clusters) if b != labels[item]] + ([] if alone else [n_clusters])
        for target in targets:
            changed = _canonical([*labels[:item], target, *labels[item + 1 :]])
            proposals[changed] += 1.0 / (n_objects * len(targets))
    return dict(proposals)


def plug_in_covariance(Y: Floats, labels: Labels, theta: float, model: str) -> Floats:
    """M/n of a partition, from the dense Γ = I + θB, as the model has it."""
    n_objects, n_features = Y.shape
    same = np.equal.outer(labels, labels).astype(np.float64)
    scatter = Y.T @ np.linalg.solve(np.eye(n_objects) + theta * same, Y) / n_objects
    if model == "I":
        return np.eye(n_features) * np.trace(scatter) / n_features
    return np.diag(np.diag(scatter)) if model == "II" else scatter


def log_normal_density(y: Floats, mean: Floats, covariance: Floats) -> float:
    """Multivariate Gaussian log density."""
    difference = y - mean
    quadratic = float(difference @ np.linalg.solve(covariance, difference))
    return -0.5 * (len(y) * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] + quadratic)


def log_allocation(
    Y: Floats,
    merged: Labels,
    sides: tuple[set[int], set[int]],
    theta: float,
    model: str,
    order: Sequence[int],
) -> float:
    """Log probability of a sequential allocation: the first two of `order` found the sides, others follow."""
    covariance = plug_in_covariance(Y, merged, theta, model)
    found: list[list[int]] = [[order[0]], [order[1]]]
    if order[0] in sides[1]:
        sides = (sides[1], sides[0])
    total = 0.0
    for item in order[2:]:
        log_weights = []
        for present in found:
            size = len(present)
            pull = theta / (1.0 + theta * size)
            mean = pull * Y[present].sum(axis=0)
            log_weights.append(math.log(size) + log_normal_density(Y[item], mean, (1.0 + pull) * covariance))
        chosen = 0 if item in sides[0] else 1
        total += log_weights[chosen] - float(np.logaddexp(*log_weights))
        found[chosen].append(item)
    return total
