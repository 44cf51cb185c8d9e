"""Data and settings at the edge of what is allowed."""

import itertools
import math

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray
from oracle import exact_log_likelihood
from sampling.exact import (
    PRIORS,
    Space,
    assert_stochastic,
    count_transitions,
    detailed_imbalance,
    imbalance,
    is_irreducible,
    make_space,
    metropolis,
    split_merge_proposals,
    transition_fit,
)
from sampling.goodness import LEVEL, batch_score, chi_square, explain, limit, partition_names

import ewens_widgets as ew
from ewens_widgets.model.checks import LARGEST_THETA
from ewens_widgets.model.own_shapes import SMALLEST_PIVOT, unpack_sigma
from ewens_widgets.sampling.compiled import interpreted
from ewens_widgets.sampling.kernel import common_family, scatter
from ewens_widgets.sampling.kernel.partition_changes import gather_members, single_split
from ewens_widgets.sampling.kernel.workspace import make_problem, make_workspace
from ewens_widgets.sampling.moves import SplitMerge

Floats = NDArray[np.float64]
SCHEDULES = ("default", "paper-1", "paper-2")
MODELS = ("I", "II", "III")
RNG = np.random.default_rng(3)

TABLES: dict[str, Floats] = {
    "two rows": np.array([[0.0], [1.0]]),
    "two rows, three columns": RNG.normal(size=(2, 3)),
    "three rows, one column": np.array([[0.0], [1.0], [5.0]]),
    "duplicate rows": np.repeat(RNG.normal(size=(3, 2)), 4, axis=0),
    "two values": np.repeat([[0.0], [1.0]], 6, axis=0),
    "a grid": np.array(list(itertools.product(range(4), range(4))), dtype=float),
    "d + 2 rows": RNG.normal(size=(5, 3)),
    "d + 2 rows, many columns": RNG.normal(size=(12, 10)),
    "one column": RNG.normal(size=(15, 1)),
    "nearly collinear": np.column_stack([np.arange(10.0), np.arange(10.0) + 1e-7 * RNG.normal(size=10)]),
    "an outlier": np.vstack([RNG.normal(size=(9, 2)), [1e8, 1e8]]),
    "clusters far apart": np.repeat(100 * RNG.normal(size=(4, 3)), 10, axis=0) + RNG.normal(size=(40, 3)),
    "almost duplicates": np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 8, axis=0)
    + 1e-9 * RNG.normal(size=(24, 2)),
    "huge units": 1e150 * RNG.normal(size=(8, 2)),
    "tiny units": 1e-150 * RNG.normal(size=(8, 2)),
}
GRIDS: dict[str, tuple[list[float] | None, float]] = {
    "default": (None, 1e-9),
    # M is found by a subtraction that costs a factor 1 + θn of precision.
    "to a million": ([1e-9, 1.0, 2.0**20], 1e-5),
    "largest": ([2.0**30], 1e-2),
}


FLOORED = {"two values", "duplicate rows", "almost duplicates", "an outlier", "nearly collinear", "a grid"}


@pytest.mark.filterwarnings(
    "ignore::ewens_widgets.model.checks.DataWarning"
)  # some columns are all but copies
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(
    ("shapes", "centre"),
    [
        ("common", "mean"),
        pytest.param("common", "unknown", marks=pytest.mark.slow),
        pytest.param("own", "mean", marks=pytest.mark.slow),
    ],
)
def test_chains_stay_valid(shapes: str, centre: str, name: str, grid: str) -> None:
    """Also where clusters have no spread, and Σ of own shapes would go to zero: it is kept above a floor."""
    X, (values, tolerance) = TABLES[name], GRIDS[grid]
    priors, is_own = itertools.cycle(PRIORS.values()), shapes == "own"
    for model, moves in itertools.product(MODELS, SCHEDULES):
        if model == "III" and len(X) < X.shape[1] + (1 if is_own else 2):
            continue
        settings: dict[str, object] = {"shapes": "own", "prior": next(priors)} if is_own else {}
        sampler = ew.Sampler(
            X, model=model, moves=moves, theta_grid=values, seed=1, centre=centre, **settings
        )
        trace = sampler.sample(150, progress=False)
        assert trace.n_clusters.max() <= len(X)
        for column in (trace.theta_weights, trace.nu_weights, trace.log_posterior, trace.sigma):
            assert np.all(np.isfinite(column)), (model, moves)
        allowed, relative = tolerance, 0.0
        if is_own:
            scales, is_full = unpack_sigma(trace.sigma, X.shape[1], model), model == "III"
            pivots = np.diagonal(np.linalg.cholesky(scales), axis1=1, axis2=2) ** 2 if is_full else scales
            assert pivots.min() > (0.5 if is_full else 1.0) * SMALLEST_PIVOT, (model, moves)
            # Volumes of clusters without spread are differences; what is left of them loses as many digits.
            allowed = relative = max(tolerance, 1e-5 if name in FLOORED else 1e-8)
        for row in range(0, 150, 7):
            own = (int(trace.nu_index[row]), trace.sigma[row]) if is_own else ()
            expected = sampler.posterior.log_density(
                trace.labels[row], int(trace.theta_index[row]), None, *own
            )
            found = trace.log_posterior[row]
            assert found == pytest.approx(expected, abs=allowed, rel=relative), (model, moves)


EQUAL_ROWS = {
    "two of each": [[0.0], [0.0], [1.0], [1.0], [5.0], [5.0]],
    "three and one": [[0.0], [0.0], [0.0], [2.0], [7.0], [7.0]],
    "in a plane": [[0.0, 0.0], [0.0, 0.0], [1.0, 0.2], [1.0, 0.2], [0.3, 1.0], [0.3, 1.0]],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL_ROWS)
@pytest.mark.parametrize("model", MODELS)
def test_splits_and_merges_of_equal_rows_are_exact_with_the_largest_theta(name: str, model: str) -> None:
    """Where clusters of equal rows leave no scatter but 1/θ, determinants are differences of equal numbers.

    With those from products alone, the right split was refused in model III, as its ratio was not a number.
    """
    X, theta = np.array(EQUAL_ROWS[name]), LARGEST_THETA
    space = make_space(X, model, 1.0, [theta])
    exact = [
        exact_log_likelihood(X, labels, theta, model) + ew.ewens.log_pmf(labels, 1.0)
        for labels in space.labels
    ]
    problem = make_problem(space.posterior)
    of_split, of_merge = (
        interpreted(common_family.log_change_of_split),
        interpreted(common_family.log_change_of_merge),
    )
    for fine, coarse in space.merges:
        slot, other, moved = single_split(np.array(space.labels[fine]), np.array(space.labels[coarse]))  # type: ignore[misc]
        apart, together = (
            make_workspace(problem, np.array(space.labels[place]), 0, 0.0) for place in (fine, coarse)
        )
        for workspace in (apart, together):
            interpreted(scatter.refresh)(problem, workspace)
        whole = space.labels[coarse][int(np.argmax(moved))]
        count = interpreted(gather_members)(together, whole, whole)
        together.sides[:count] = moved[together.members[:count]]
        interpreted(common_family.weigh_sides)(problem, together, count)
        split = of_split(problem, together, whole, int(moved.sum()))
        merge = of_merge(problem, apart, slot, other)
        assert split == pytest.approx(exact[fine] - exact[coarse], abs=1e-4)
        assert merge == pytest.approx(exact[coarse] - exact[fine], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_two_objects_with_own_shapes_by_quadrature(model: str) -> None:
    """One column, one θ and one ν: together or apart, by an integral over the common variance."""
    table = oracle.exact_own_posterior([[0.0], [5.0]], PRIORS["Ewens"].log_pmf, 1.0, [3.0], [4.0])
    settings = {"shapes": "own", "theta_grid": [3.0], "nu_grid": [4.0], "prior": PRIORS["Ewens"], "seed": 2}
    for moves in (*SCHEDULES, ["gibbs"]):
        trace = ew.Sampler([[0.0], [1.0]], model=model, moves=moves, **settings).sample(
            6000, burn_in=50, thin=4, progress=False
        )
        assert abs(batch_score(trace.n_clusters == 1, float(table[0, 0].sum()))) < limit()


def test_own_shapes_need_one_row_more_than_columns() -> None:
    """The common family needs two; with fewer than this there is no scale that could be whitened."""
    X = np.random.default_rng(1).normal(size=(6, 4))
    for rows, possible in ((6, {"common", "own"}), (5, {"own"}), (4, set()), (3, set())):
        for shapes in ("common", "own"):
            if shapes in possible:
                trace = ew.Sampler(X[:rows], model="III", shapes=shapes).sample(60, progress=False)
                assert np.all(np.isfinite(trace.log_posterior))
                assert len(np.unique(trace.labels, axis=0)) > 3
            else:
                with pytest.raises(
                    ValueError, match=rf"needs more than d \+ {1 if shapes == 'common' else 0} ="
                ):
                    ew.Sampler(X[:rows], model="III", shapes=shapes)
        for model in ("I", "II"):
            trace = ew.Sampler(X[:rows], model=model, shapes="own").sample(60, progress=False)
            assert np.all(np.isfinite(trace.log_posterior))


@pytest.mark.parametrize(("model", "shape"), [("III", (300, 140)), ("II", (300, 140)), ("I", (300, 140))])
def test_volumes_of_many_columns_do_not_overflow(model: str, shape: tuple[int, int]) -> None:
    """The determinant of the squares of 300 rows and 140 columns is beyond the largest number."""
    X = np.random.default_rng(2).normal(size=shape)
    sampler = ew.Sampler(X, model=model, shapes="own", moves=["gibbs"], seed=1)
    for event in sampler.events(3):
        expected = sampler.posterior.log_density(
            event.labels, event.theta_index, None, int(event.nu_index), event.sigma
        )
        assert event.log_posterior == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shapes", ["common", "own"])
def test_reassign_moves_objects_where_no_cluster_more_is_allowed(shapes: str) -> None:
    """From one of k clusters to another there is no way over k + 1; the steps of the prior are infinite."""
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [9.0]])
    prior = ew.priors.DirichletMultinomial(2, 1.0)
    settings = {"prior": prior, "shapes": shapes, "moves": ["reassign"], "initial": [0, 0, 0, 1, 1, 1, 0]}
    sampler = ew.Sampler(X, model="I", seed=3, **settings)
    before, taken = sampler.labels, 0
    for event in sampler.events(400, block=1):
        assert event.n_clusters <= 2
        after = event.proposed_labels
        if after is not None:
            parameters = event.theta_index, None, int(event.nu_index), event.sigma
            expected = sampler.posterior.log_density(after, *parameters)
            expected -= sampler.posterior.log_density(before, *parameters)
            assert event.log_ratio == pytest.approx(expected, abs=1e-8)
            taken += bool(event.accepted) and before.max() == after.max() == 1
        before = event.labels
    assert taken > 5


@pytest.mark.parametrize("model", MODELS)
def test_the_log_posterior_of_separated_clusters_is_that_of_rational_arithmetic(model: str) -> None:
    """Both the kernel and the posterior might lose the same digits; fractions lose none."""
    rng = np.random.default_rng(5)
    X = np.repeat(100 * rng.normal(size=(3, 2)), 4, axis=0) + rng.normal(size=(12, 2))
    sampler = ew.Sampler(X, model=model, theta_grid=[1024.0], seed=1)
    events = list(sampler.events(60))
    seen = {event.labels.tobytes(): event for event in events}
    for event in list(seen.values())[:6]:
        log_likelihood = exact_log_likelihood(X, event.labels.tolist(), 1024.0, model)
        expected = log_likelihood + ew.ewens.log_pmf(event.labels, 1.0)
        assert event.log_posterior == pytest.approx(expected, abs=1e-8)


TIES = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])
DUPLICATES = np.array([[1.0], [1.0], [1.0], [1.0], [3.0]])
SMALL: dict[str, Floats] = {
    "two rows": TABLES["two rows"],
    "a square": np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 0.0], [1.0, 1.0]]),
    "d + 2 rows": RNG.normal(size=(4, 2)),
    "one column": RNG.normal(size=(5, 1)),
    "ties and duplicates": TIES,
    "four of the same": DUPLICATES,
}
# The distances of duplicates are all but zero, so the paper's move all but never parts them: exact in the
# limit (see below), but of no use there.
HARD = {("ties and duplicates", "paper-2"), ("four of the same", "paper-2")}


@pytest.mark.parametrize(
    ("name", "moves"), [pair for pair in itertools.product(SMALL, SCHEDULES) if pair not in HARD]
)
def test_small_tables_are_sampled_exactly(name: str, moves: str) -> None:
    """Against enumeration, with the largest model that the table allows."""
    X = SMALL[name]
    model = "III" if len(X) > X.shape[1] + 1 else "II"
    space = Space(ew.exact_posterior(X, model=model, theta_grid=[0.5, 4.0]))
    sampler = ew.Sampler(X, model=model, moves=moves, theta_grid=[0.5, 4.0], seed=6)
    trace = sampler.sample(2000, burn_in=500, thin=3 if moves == "default" else 40, progress=False)
    counts = np.bincount(space.places(trace.labels), minlength=len(space.labels))
    expected = len(trace) * space.exact.probabilities
    fit = chi_square(counts, expected)
    assert fit.p_value > LEVEL, explain(partition_names(space.labels), counts, expected)


@pytest.mark.parametrize("X", [TIES, DUPLICATES], ids=["ties and duplicates", "four of the same"])
@pytest.mark.parametrize(("within", "between"), [("average", "average"), ("minimum", "hausdorff")])
def test_split_merge_is_exact_with_duplicates(X: Floats, within: str, between: str) -> None:
    move = SplitMerge(within, between, core_jump=0.2)
    space = make_space(X, "I", 1.3, [1.0])
    target = space.target(0)
    proposals = split_merge_proposals(space, move)
    matrix = metropolis(proposals, target)
    assert_stochastic(matrix)
    assert imbalance(matrix, target) < 1e-12
    assert detailed_imbalance(matrix, target) < 1e-12
    assert is_irreducible(matrix, target)
    assert imbalance(metropolis(proposals, target, "dropped"), target) > 1e-3
    sampler = ew.Sampler(X, model="I", concentration=1.3, theta_grid=[1.0], moves=[move], seed=4)
    counts = count_transitions(space, sampler, 20_000)
    fit, table = transition_fit(space, counts, matrix)
    assert fit.p_value > LEVEL, table


def test_two_objects_by_hand() -> None:
    """One θ, λ = 1: the odds of together against apart are the ratio of the likelihoods."""
    theta = 3.0
    log_odds = ew.log_likelihood([[0.0], [1.0]], [0, 0], theta, model="II") - ew.log_likelihood(
        [[0.0], [1.0]], [0, 1], theta, model="II"
    )
    for moves in (*SCHEDULES, ["gibbs"]):
        sampler = ew.Sampler([[0.0], [1.0]], model="II", theta_grid=[theta], moves=moves, seed=2)
        together = np.mean(sampler.sample(4000, thin=5, progress=False).n_clusters == 1)
        probability = 1.0 / (1.0 + math.exp(-log_odds))
        assert abs(together - probability) < 5.0 * math.sqrt(probability * (1.0 - probability) / 4000)


@pytest.mark.parametrize(("concentration", "n_clusters"), [(1e-12, 1), (1e-300, 1), (1e12, 8), (1e300, 8)])
def test_an_extreme_concentration_decides_the_number_of_clusters(
    concentration: float, n_clusters: int
) -> None:
    X = np.random.default_rng(0).normal(size=(8, 2))
    for moves in SCHEDULES:
        sampler = ew.Sampler(X, concentration=concentration, moves=moves, theta_grid=[0.5, 1.0])
        trace = sampler.sample(50, burn_in=3000, progress=False)
        assert np.all(trace.n_clusters == n_clusters)
        expected = sampler.posterior.log_density(trace.labels[-1], int(trace.theta_index[-1]))
        assert trace.log_posterior[-1] == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e200])
def test_euclidean_distances_work_in_any_units(scale: float) -> None:
    X = np.random.default_rng(1).normal(size=(10, 2)) * [1.0, 3.0]
    settings = {"moves": "paper-2", "metric": "euclidean", "seed": 3, "initial": "one-cluster"}
    expected = ew.Sampler(X, **settings).sample(300, progress=False).labels
    assert len(np.unique(expected, axis=0)) > 20
    found = ew.Sampler(X * 2.0 ** round(math.log2(scale)), **settings).sample(300, progress=False).labels
    np.testing.assert_array_equal(found, expected)


def test_all_distances_equal() -> None:
    """The corners of a simplex: every choice by distance is even."""
    sampler = ew.Sampler(np.eye(4), model="I", moves=[SplitMerge(core_jump=0.2)], seed=1)
    assert len(np.unique(sampler.sample(2000, progress=False).labels, axis=0)) == 15


def test_more_clusters_than_a_byte_can_count() -> None:
    X = np.random.default_rng(2).normal(size=(400, 1))
    trace = ew.Sampler(X, concentration=1e9, model="I").sample(3, progress=False)
    assert trace.n_clusters.max() > 390
    np.testing.assert_array_equal(trace.n_clusters, [len(set(row)) for row in trace.labels.tolist()])
