"""Brute-force answers to compare the package with, written from the formulas and from nothing else.

Γ = I + θB is formed as a dense n × n matrix, Σ is profiled out by the textbook formula, partitions are
enumerated as sets of sets, and canonical coordinates are never computed: the constant that separates them
from raw data is the same likelihood with M = YᵀY, and is subtracted. `exact_log_likelihood` does the same
in rational arithmetic. Own shapes of one column are integrated over the common variance by quadrature.
Nothing here imports the package.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
MODELS = ("I", "II", "III")


def same_cluster(labels: Sequence[int]) -> Floats:
    """Make the n × n 0/1 matrix of a partition, entry by entry."""
    return np.array([[1.0 if first == second else 0.0 for second in labels] for first in labels])


def log_likelihood(X: ArrayLike, labels: Sequence[int], theta: float, model: str) -> float:
    """Profile likelihood less the constant of the orbit: unchanged by the model's transformations."""
    Y = _centre(X)
    n_objects, n_features = Y.shape
    gamma = np.eye(n_objects) + theta * same_cluster(labels)
    sign, log_det_gamma = np.linalg.slogdet(gamma)
    assert sign == 1.0
    change = [
        _log_scale_term(scatter, n_objects, model) for scatter in (Y.T @ np.linalg.solve(gamma, Y), Y.T @ Y)
    ]
    return float(-n_features / 2 * log_det_gamma + change[0] - change[1])


def _centre(X: ArrayLike) -> Floats:
    table = np.asarray(X, dtype=np.float64)
    return table - table.mean(axis=0)


def _log_scale_term(scatter: Floats, n_objects: int, model: str) -> float:
    n_features = len(scatter)
    if model == "I":
        return float(-n_objects * n_features / 2 * np.log(np.trace(scatter)))
    if model == "II":
        return float(-n_objects / 2 * np.sum(np.log(np.diag(scatter))))
    return float(-n_objects / 2 * np.linalg.slogdet(scatter)[1])


def maximised_log_density(X: ArrayLike, labels: Sequence[int], theta: float, model: str) -> float:
    """Gaussian log density at the best Σ of the model, no constant left out: larger models do no worse."""
    Y = _centre(X)
    n_objects, n_features = Y.shape
    gamma = np.eye(n_objects) + theta * same_cluster(labels)
    scatter = Y.T @ np.linalg.solve(gamma, Y)
    best = {
        "I": np.eye(n_features) * np.trace(scatter) / (n_objects * n_features),
        "II": np.diag(np.diag(scatter)) / n_objects,
        "III": scatter / n_objects,
    }[model]
    quadratic = np.trace(np.linalg.solve(best, scatter))
    log_det = n_features * np.linalg.slogdet(gamma)[1] + n_objects * np.linalg.slogdet(best)[1]
    return float(-0.5 * (n_objects * n_features * math.log(2 * math.pi) + log_det + quadratic))


def exact_log_likelihood(X: ArrayLike, labels: Sequence[int], theta: float, model: str) -> float:
    """Like `log_likelihood`, in rational arithmetic: floats are fractions, so only the logarithms round."""
    table = [[Fraction(float(value)) for value in row] for row in np.asarray(X, dtype=np.float64)]
    n_objects, n_features = len(table), len(table[0])
    means = [sum(column, Fraction(0)) / n_objects for column in zip(*table, strict=True)]
    Y = [[value - mean for value, mean in zip(row, means, strict=True)] for row in table]
    gamma = [
        [Fraction(i == j) + Fraction(theta) * (labels[i] == labels[j]) for j in range(n_objects)]
        for i in range(n_objects)
    ]
    solved, det_gamma = _eliminate(gamma, Y)
    ratio = _scale_ratio(_product(Y, solved), _product(Y, Y), model)
    power = n_objects * n_features if model == "I" else n_objects
    with localcontext() as context:
        context.prec = 60
        return float(-(n_features * _log(det_gamma) + power * _log(ratio)) / 2)


def _log(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).ln()


def _product(left: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    return [
        [sum((a * b for a, b in zip(u, v, strict=True)), Fraction(0)) for v in zip(*right, strict=True)]
        for u in zip(*left, strict=True)
    ]


def _scale_ratio(scatter: list[list[Fraction]], total: list[list[Fraction]], model: str) -> Fraction:
    diagonals = range(len(scatter))
    if model == "I":
        return sum((scatter[r][r] for r in diagonals), Fraction(0)) / sum(
            (total[r][r] for r in diagonals), Fraction(0)
        )
    if model == "II":
        return math.prod((scatter[r][r] / total[r][r] for r in diagonals), start=Fraction(1))
    return _eliminate(scatter, [[] for _ in scatter])[1] / _eliminate(total, [[] for _ in total])[1]


def _eliminate(
    matrix: list[list[Fraction]], right: list[list[Fraction]]
) -> tuple[list[list[Fraction]], Fraction]:
    """Solve and take the determinant by Gauss–Jordan elimination of a positive definite matrix."""
    rows = [list(a) + list(b) for a, b in zip(matrix, right, strict=True)]
    size = len(rows)
    determinant = Fraction(1)
    for pivot in range(size):
        determinant *= rows[pivot][pivot]
        rows[pivot] = [value / rows[pivot][pivot] for value in rows[pivot]]
        for other in range(size):
            factor = rows[other][pivot]
            if other != pivot and factor:
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[pivot], strict=True)]
    return [row[size:] for row in rows], determinant


def set_partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every way to divide the items into clusters, by putting the first one everywhere it can go."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in set_partitions(rest):
        for position, cluster in enumerate(smaller):
            yield [*smaller[:position], [first, *cluster], *smaller[position + 1 :]]
        yield [[first], *smaller]


def labels_of(clusters: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Label clusters by the order of their lowest members."""
    ordered = sorted(clusters, key=min)
    return tuple(
        next(label for label, cluster in enumerate(ordered) if item in cluster)
        for item in range(sum(map(len, clusters)))
    )


def ewens_probability(clusters: Sequence[Sequence[int]], concentration: float) -> float:
    """Ewens' formula with factorials."""
    n_objects = sum(map(len, clusters))
    rising = math.prod(concentration + seated for seated in range(n_objects))
    return concentration ** len(clusters) * math.prod(math.factorial(len(c) - 1) for c in clusters) / rising


def theta_weights(grid: Sequence[float], alpha: float) -> Floats:
    """Prior probabilities of the values of θ."""
    weights = np.array([theta ** (alpha - 1.0) / (1.0 + theta) ** (2.0 * alpha) for theta in grid])
    return weights / weights.sum()


def normalised(log_joint: dict[tuple[int, ...], Floats]) -> dict[tuple[int, ...], Floats]:
    """Probabilities from their logarithms, but for a constant."""
    highest = max(values.max() for values in log_joint.values())
    total = sum(np.exp(values - highest).sum() for values in log_joint.values())
    return {labels: np.exp(values - highest) / total for labels, values in log_joint.items()}


def exact_posterior(
    X: ArrayLike, model: str, concentration: float, alpha: float, grid: Sequence[float]
) -> dict[tuple[int, ...], Floats]:
    """Joint probabilities of every partition (its labels) and every θ."""
    n_objects = len(np.asarray(X))
    prior = theta_weights(grid, alpha)
    log_joint = {}
    for clusters in set_partitions(range(n_objects)):
        labels = labels_of(clusters)
        values = np.array([log_likelihood(X, labels, theta, model) for theta in grid])
        log_joint[labels] = math.log(ewens_probability(clusters, concentration)) + np.log(prior) + values
    return normalised(log_joint)


# Common variances σ² of one column, evenly spaced in their logarithm, in units of the variance of the data.
LOG_VARIANCES = np.linspace(-30.0, 30.0, 1201)


def own_log_likelihoods(X: ArrayLike, labels: Sequence[int], theta: float, nu: float) -> Floats:
    """Log density of one column with own shapes for each of the common variances.

    The variance of a cluster is inverse Gamma with shape (ν + 2)/2 and scale νσ²/2, its mean Gaussian with
    variance θ times that; both are integrated out.
    """
    y = _centre(X)[:, 0] / np.std(np.asarray(X, dtype=np.float64))
    base = nu * np.exp(LOG_VARIANCES)
    total = np.zeros_like(base)
    for cluster in sorted(set(labels)):
        members = y[np.array(labels) == cluster]
        size, degrees = len(members), nu + 2.0
        rest = float(members @ members - members.sum() ** 2 / (1.0 / theta + size))
        total += math.lgamma((degrees + size) / 2.0) - math.lgamma(degrees / 2.0)
        total += degrees / 2.0 * np.log(base) - (degrees + size) / 2.0 * np.log(base + rest)
        total -= 0.5 * math.log1p(theta * size)
    return total


def exact_own_posterior(
    X: ArrayLike,
    log_prior: Callable[[Sequence[int]], float],
    alpha: float,
    thetas: Sequence[float],
    nus: Sequence[float],
    log_variance_power: float = 0.0,
) -> dict[tuple[int, ...], Floats]:
    """Joint probabilities of every partition (its labels), θ and ν of one column with own shapes.

    The prior 1/σ² of the common variance is even in its logarithm, so that the integral is a sum; another
    power of σ² makes another posterior.
    """
    weights = np.log(theta_weights(thetas, alpha))
    log_joint = {}
    for clusters in set_partitions(range(len(np.asarray(X)))):
        labels = labels_of(clusters)
        values = np.array(
            [
                [
                    np.logaddexp.reduce(
                        own_log_likelihoods(X, labels, theta, nu) + log_variance_power * LOG_VARIANCES
                    )
                    for nu in nus
                ]
                for theta in thetas
            ]
        )
        log_joint[labels] = log_prior(labels) + weights[:, None] + values
    return normalised(log_joint)
