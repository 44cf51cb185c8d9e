"""Exact transition matrices of the moves on all partitions of a few objects, right and sabotaged.

A matrix is built from a move's pure proposal probabilities, without any random number: what is proved of it
is proved, not estimated. `acceptance` says which Metropolis–Hastings ratio decides: the right one, one
without the proposals ("dropped"), or the paper's printed one, with the proposals inverted ("printed").

Own shapes have more parameters: then all is given one place of ν on its grid and one scale Σ. Columns of
categories can stand beside the points.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sampling import by_hand
from sampling.goodness import LEVEL, Fit, chi_square, explain, partition_names
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

import ewens_widgets as ew
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.enumeration import ExactPosterior
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.paper.moves import split_merge_proposal
from ewens_widgets.partition import all_partitions
from ewens_widgets.sampling.moves import SplitMerge, gibbs, informed
from ewens_widgets.sampling.moves.move import pair_distances

Floats = NDArray[np.float64]
Labels = tuple[int, ...]

MODELS = ("I", "II", "III")
# Not symmetric in any way: a symmetric target cannot show a sign error.
FIVE = np.array([[0.0, 0.1], [0.9, -0.4], [1.3, 1.7], [-1.1, 2.2], [2.9, 0.6]])
SIX = np.vstack([FIVE, [-0.7, -1.5]])
# Of every kind one; the second allows three clusters at most.
PRIORS: dict[str, ew.priors.PartitionPrior] = {
    "Ewens": ew.priors.Ewens(1.3),
    "Dirichlet-multinomial": ew.priors.DirichletMultinomial(3, 1.3),
    "finite mixture": ew.priors.FiniteMixture(0.7),
    "Pitman–Yor": ew.priors.PitmanYor(1.3, 0.4),
}

# Categories beside the points, not in line with them, so that they matter; one cell is missing.
CATEGORIES = np.array([[7.0, 1.0], [3.0, 0.0], [7.0, np.nan], [5.0, 1.0], [3.0, 1.0]])
THETAS, NUS = (0.125, 1.0, 16.0), (3.0, 16.0)
SIGMAS = {"I": np.array([0.6]), "II": np.array([0.7, 0.3]), "III": np.array([0.7, 0.2, 0.4])}
POWERS = {"right": 1.0, "dropped": 0.0, "printed": -1.0}


def mixed(numbers: Floats, categories: Floats = CATEGORIES) -> Dataset:
    """Columns of categories beside columns of numbers."""
    kinds = ["number"] * numbers.shape[1] + ["category"] * categories.shape[1]
    return Dataset(np.column_stack([numbers, categories]), kinds=kinds)


def log_urn(labels: Sequence[int], categories: Floats = CATEGORIES) -> float:
    """Draw the categories of each cluster one after the other: each adds a ball of its colour to the urn."""
    total = 0.0
    for column in categories.T:
        levels = sorted(set(column[~np.isnan(column)]))
        for cluster in set(labels):
            balls = dict.fromkeys(levels, 0.5)
            for value, label in zip(column, labels, strict=True):
                if label == cluster and not math.isnan(value):
                    total += math.log(balls[value] / sum(balls.values()))
                    balls[value] += 1.0
    return total


def canonical(labels: ArrayLike) -> Labels:
    """Number the clusters in order of first appearance, one object after the other."""
    names: dict[int, int] = {}
    return tuple(names.setdefault(int(label), len(names)) for label in np.asarray(labels))


@dataclass(frozen=True, eq=False)
class Space:
    """All partitions of a few objects, with their exact posterior.

    The kernels are given `believed`, `nu_index` and `sigma`; where these are replaced by others than those
    that `exact` was made with, they are sabotaged.
    """

    exact: ExactPosterior
    nu_index: int = 0
    sigma: Floats | None = None
    believed: Posterior | None = None

    @property
    def posterior(self) -> Posterior:
        return self.exact.posterior if self.believed is None else self.believed

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Whether the prior allows a partition: some allow so many clusters only."""
        return self.exact.probabilities > 0.0

    @cached_property
    def labels(self) -> list[Labels]:
        return [canonical(row) for row in self.exact.labels]

    @cached_property
    def index(self) -> dict[Labels, int]:
        return {labels: place for place, labels in enumerate(self.labels)}

    @cached_property
    def pairs(self) -> Floats:
        return pair_distances(self.posterior.coordinates)

    @cached_property
    def merges(self) -> list[tuple[int, int]]:
        """Places of two partitions, the first with two clusters that the second has joined."""
        found = []
        for place, labels in enumerate(self.labels):
            for keep, drop in itertools.combinations(range(max(labels) + 1), 2):
                merged = canonical([keep if label == drop else label for label in labels])
                found.append((place, self.index[merged]))
        return found

    def places(self, labels: NDArray[np.integer]) -> NDArray[np.intp]:
        """Find many partitions (canonical labels, one a row)."""
        digits = self.posterior.n_objects ** np.arange(self.posterior.n_objects)
        codes = np.array(self.labels) @ digits
        order = np.argsort(codes)
        return order[np.searchsorted(codes[order], labels.astype(np.int64) @ digits)]

    def target(self, theta_index: int) -> Floats:
        """Posterior of the partitions given θ."""
        column = self.exact.joint[:, theta_index]
        return np.asarray(column / column.sum(), dtype=np.float64)


def make_space(
    X: ArrayLike | Dataset,
    model: str,
    concentration: float | ew.Gamma = 1.0,
    theta_grid: ArrayLike | None = None,
    prior: ew.priors.PartitionPrior | None = None,
    centre: str = "mean",
) -> Space:
    """Enumerate the posterior of a few objects."""
    return Space(
        ew.exact_posterior(X, model, concentration, theta_grid=theta_grid, prior=prior, centre=centre)
    )


@functools.cache
def space_of(
    model: str, shapes: str = "common", prior: str = "Ewens", points: int = 5, has_categories: bool = False
) -> Space:
    """All partitions of a few points; of own shapes given the first ν and a Σ. No kernel has a part in it."""
    X = mixed(SIX[:points]) if has_categories else SIX[:points]
    if shapes == "common":
        return make_space(X, model, theta_grid=THETAS, prior=PRIORS[prior])
    settings = {"theta_grid": THETAS, "prior": PRIORS[prior], "shapes": shapes, "nu_grid": NUS}
    posterior, sigma = Posterior.from_data(X, model, **settings), SIGMAS[model]
    labels = all_partitions(points)
    log_joint = posterior.log_theta_prior + np.array(
        [posterior.log_prior(row) + posterior.log_likelihoods(row, 0, sigma) for row in labels]
    )
    log_evidence = float(logsumexp(log_joint))
    exact = ExactPosterior(labels, np.exp(log_joint - log_evidence), log_evidence, posterior)
    return Space(exact, 0, sigma)


def metropolis(
    proposals: Floats, target: Floats, acceptance: str = "right", claimed: Floats | None = None
) -> Floats:
    """Transition matrix of a Metropolis move; `claimed` proposals enter its ratio, if given."""
    said = proposals if claimed is None else claimed
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log(target)[None, :] - np.log(target)[:, None]
        log_ratio = log_ratio + POWERS[acceptance] * (np.log(said.T) - np.log(said))
        moves = np.where(proposals > 0.0, proposals * np.exp(np.minimum(log_ratio, 0.0)), 0.0)
    # No chain is in a state that is impossible, so that it does not matter what it would do there.
    moves[target == 0.0] = 0.0
    return with_staying(moves)


def with_staying(moves: Floats) -> Floats:
    """Put on the diagonal what is missing to one."""
    matrix = np.array(moves)
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
    return matrix


@functools.cache
def split_merge_proposals(space: Space, move: SplitMerge) -> Floats:
    """Probabilities that split-merge proposes each partition at each other one."""
    proposals = np.zeros((len(space.labels),) * 2)
    for fine, coarse in space.merges:
        for start, end in ((fine, coarse), (coarse, fine)):
            log_probability = split_merge_proposal.log_proposal(
                space.posterior, space.labels[start], space.labels[end], move, space.pairs
            )
            proposals[start, end] = math.exp(log_probability)
    return proposals


@functools.cache
def reassign_proposals(space: Space) -> Floats:
    """Probabilities that reassign proposes each partition at each other one."""
    proposals = np.zeros((len(space.labels),) * 2)
    for start, labels in enumerate(space.labels):
        for end, probability in by_hand.reassign_proposals(labels).items():
            proposals[start, space.index[end]] = probability
    return proposals


@functools.cache
def gibbs_draw(space: Space, item: int, theta_index: int, concentration: float | None = None) -> Floats:
    """Transition matrix of drawing one object from its conditional."""
    matrix = np.zeros((len(space.labels),) * 2)
    np.fill_diagonal(matrix, ~space.possible)
    for place in np.flatnonzero(space.possible).tolist():
        labels = space.labels[place]
        probabilities = gibbs.conditional_probabilities(
            space.posterior, labels, item, theta_index, concentration, space.nu_index, space.sigma
        )
        for target, probability in enumerate(probabilities):
            end = space.index[canonical([*labels[:item], target, *labels[item + 1 :]])]
            matrix[place, end] += probability
    return matrix


def gibbs_sweep(space: Space, theta_index: int, concentration: float | None = None) -> Floats:
    """Transition matrix of a sweep over all objects in order."""
    matrix = np.eye(len(space.labels))
    for item in range(space.posterior.n_objects):
        matrix = matrix @ gibbs_draw(space, item, theta_index, concentration)
    return matrix


def informed_matrix(space: Space, theta_index: int, acceptance: str = "right") -> Floats:
    """Transition matrix of an informed split-merge move: the average over its pairs and orders."""
    with np.errstate(divide="ignore"):
        log_target = np.log(space.target(theta_index))
    matrix = np.zeros((len(space.labels),) * 2)
    for fine, coarse, weight, log_sides in informed_allocations(space, theta_index):
        if not space.possible[fine]:  # Never accepted, and never left.
            continue
        log_ratio = log_target[fine] - log_target[coarse] - POWERS[acceptance] * log_sides
        matrix[coarse, fine] += weight * math.exp(log_sides + min(0.0, log_ratio))
        matrix[fine, coarse] += weight * math.exp(min(0.0, -log_ratio))
    return with_staying(matrix)


@functools.cache
def informed_allocations(space: Space, theta_index: int) -> list[tuple[int, int, float, float]]:
    """Every way to split: places of the split and the merged partition, probability of pair and order, log
    probability of the sides.
    """
    n_objects = space.posterior.n_objects
    found = []
    for fine, coarse in space.merges:
        split, merged = space.labels[fine], space.labels[coarse]
        for pair, orders in informed_choices(split, merged):
            # A pair and its mirror image are equally likely and lead to the same (a test of its own).
            weight = 2.0 / (n_objects * (n_objects - 1)) / len(orders)
            for order in orders:
                log_sides = informed.log_proposal(
                    space.posterior, merged, split, theta_index, pair, order, space.nu_index, space.sigma
                )
                found.append((fine, coarse, weight, log_sides))
    return found


def informed_choices(fine: Labels, coarse: Labels) -> Iterator[tuple[tuple[int, int], list[Labels]]]:
    """Pairs of objects that lead from one partition to the other, with the orders of the other members."""
    items = range(len(fine))
    for first, second in itertools.combinations(items, 2):
        if coarse[first] == coarse[second] and fine[first] != fine[second]:
            rest = [k for k in items if coarse[k] == coarse[first] and k not in {first, second}]
            yield (first, second), list(itertools.permutations(rest))


def imbalance(matrix: Floats, target: Floats) -> float:
    """How much a step changes the target: the largest entry of |πP − π|."""
    return float(np.abs(target @ matrix - target).max())


def detailed_imbalance(matrix: Floats, target: Floats) -> float:
    """How far the flows between two states differ: the largest |π_a P_ab − π_b P_ba|."""
    flow = target[:, None] * matrix
    return float(np.abs(flow - flow.T).max())


def is_irreducible(matrix: Floats, target: Floats) -> bool:
    """Whether every possible state can be reached from every other, and no impossible one."""
    possible = target > 0.0
    if matrix[np.ix_(possible, ~possible)].any():
        return False
    matrix = matrix[np.ix_(possible, possible)]
    return bool(connected_components(matrix > 0.0, directed=True, connection="strong")[0] == 1)


def assert_stochastic(matrix: Floats) -> None:
    """Every row is a probability distribution; the diagonal was not forced to be negative."""
    assert matrix.min() >= -1e-13
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)


def count_transitions(space: Space, sampler: ew.Sampler, steps: int) -> NDArray[np.int64]:
    """Run a sampler and count how often each partition followed on each."""
    before = space.index[canonical(sampler.labels)]
    places = space.places(sampler.sample(steps, progress=False).labels)
    counts = np.zeros((len(space.labels),) * 2, dtype=np.int64)
    np.add.at(counts, (np.concatenate([[before], places[:-1]]), places), 1)
    return counts


def count_proposals(space: Space, sampler: ew.Sampler, start: Labels, steps: int) -> NDArray[np.int64]:
    """Step again and again from one partition, and count what is proposed (itself: nothing)."""
    counts = np.zeros(len(space.labels), dtype=np.int64)
    for _ in range(steps):
        # Only the generator goes on.
        sampler.first_state = dataclasses.replace(sampler.state, labels=np.array(start, dtype=np.int64))
        sampler.reset()
        event = next(sampler.events(1, block=1))
        counts[space.index[start if event.proposed_labels is None else canonical(event.proposed_labels)]] += 1
    return counts


def assert_proposes(space: Space, counts: NDArray[np.int64], probabilities: Floats) -> None:
    """The counted proposals have these probabilities."""
    expected = counts.sum() * probabilities
    fit = chi_square(counts, expected)
    assert fit.p_value > LEVEL, f"{fit}{explain(partition_names(space.labels), counts, expected)}"


def transition_fit(space: Space, counts: NDArray[np.int64], matrix: Floats) -> tuple[Fit, str]:
    """Compare counted transitions with a transition matrix; also give a table of what fits worst."""
    possible = np.where(matrix > 1e-13, matrix, 0.0)
    expected = counts.sum(axis=1, keepdims=True) * possible
    names = partition_names(space.labels)
    arrows = [f"{start} → {end}" for start in names for end in names]
    return chi_square(counts, expected), explain(arrows, counts, expected)


def assert_follows(space: Space, counts: NDArray[np.int64], matrix: Floats, least: int = 50) -> None:
    """The counted transitions are those of the matrix."""
    fit, table = transition_fit(space, counts, matrix)
    assert fit.freedom > least, "the chain visited too little to tell"
    assert fit.p_value > LEVEL, f"{fit}{table}"


def assert_does_not_follow(space: Space, counts: NDArray[np.int64], matrix: Floats) -> None:
    """The counted transitions cannot be those of the matrix."""
    assert transition_fit(space, counts, matrix)[0].p_value < 1e-3 * LEVEL
