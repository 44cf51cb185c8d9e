"""Data and settings at the edge of what is allowed."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray
from sampling.exact import MODELS, PRIORS, mixed

import ewens_widgets as ew
from ewens_widgets.model.own_shapes import SMALLEST_PIVOT, unpack_sigma

Floats = NDArray[np.float64]
SCHEDULES = ("default", "paper-1", "paper-2")
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
# M is found by a subtraction that costs a factor 1 + θn of precision.
GRIDS = {"default": (None, 1e-9), "to a million": ([1e-9, 1.0, 2.0**20], 1e-5), "largest": ([2.0**30], 1e-2)}
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
    """Also where clusters have no spread, and Σ of own shapes would go to zero: it is kept above a floor.

    Of the slow ones, each model has each schedule on one of the three grids.
    """
    X, (values, tolerance) = TABLES[name], GRIDS[grid]
    first, is_own = list(GRIDS).index(grid), shapes == "own"
    priors = itertools.islice(itertools.cycle(PRIORS.values()), first, None)
    pairs = itertools.product(MODELS, SCHEDULES)
    if is_own or centre == "unknown":
        pairs = zip(MODELS, SCHEDULES[first:] + SCHEDULES[:first], strict=True)
    for model, moves in pairs:
        if model == "III" and len(X) < X.shape[1] + (1 if is_own else 2):
            continue
        settings: dict[str, object] = {"shapes": "own", "prior": next(priors)} if is_own else {}
        sampler = ew.Sampler(
            X, model=model, moves=moves, theta_grid=values, seed=1, centre=centre, **settings
        )
        trace = sampler.sample(100, progress=False)
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
        for row in range(0, 100, 7):
            own = (int(trace.nu_index[row]), trace.sigma[row]) if is_own else ()
            expected = sampler.posterior.log_density(
                trace.labels[row], int(trace.theta_index[row]), None, *own
            )
            found = trace.log_posterior[row]
            assert found == pytest.approx(expected, abs=allowed, rel=relative), (model, moves)


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


@pytest.mark.parametrize("model", MODELS)
def test_volumes_of_many_columns_do_not_overflow(model: str) -> None:
    """The determinant of the squares of 300 rows and 140 columns is beyond the largest number."""
    X = np.random.default_rng(2).normal(size=(300, 140))
    sampler = ew.Sampler(X, model=model, shapes="own", moves=["gibbs"], seed=1, initial="k-means")
    for event in sampler.events(2):
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
        log_likelihood = oracle.exact_log_likelihood(X, event.labels.tolist(), 1024.0, model)
        expected = log_likelihood + ew.ewens.log_pmf(event.labels, 1.0)
        assert event.log_posterior == pytest.approx(expected, abs=1e-8)


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


def test_euclidean_distances_work_in_any_units() -> None:
    X = np.random.default_rng(1).normal(size=(10, 2)) * [1.0, 3.0]
    settings = {"moves": "paper-2", "metric": "euclidean", "seed": 3, "initial": "one-cluster"}
    expected = ew.Sampler(X, **settings).sample(300, progress=False).labels
    assert len(np.unique(expected, axis=0)) > 20
    for exponent in (-664, -99, 99, 664):
        found = ew.Sampler(X * 2.0**exponent, **settings).sample(300, progress=False).labels
        np.testing.assert_array_equal(found, expected)


def test_more_clusters_than_a_byte_can_count() -> None:
    X = np.random.default_rng(2).normal(size=(400, 1))
    trace = ew.Sampler(X, concentration=1e9, model="I").sample(3, progress=False)
    assert trace.n_clusters.max() > 390
    np.testing.assert_array_equal(trace.n_clusters, [len(set(row)) for row in trace.labels.tolist()])


def test_a_column_of_categories_separates_what_numbers_do_not() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 40)
    categories = np.column_stack([np.where(rng.random(80) < 0.05, 1 - labels, labels) for _ in range(6)])
    data = mixed(rng.normal(size=(80, 2)), categories.astype(float))
    trace = ew.Sampler(data, model="III", initial="one-cluster", seed=1).sample(400, 200, progress=False)
    assert ew.adjusted_rand(labels, trace.point_estimate().labels) > 0.85
    too_many = mixed(rng.normal(size=(6, 1)), rng.integers(0, 3, (6, 600)).astype(float))
    with pytest.raises(ValueError, match="600 categorical columns are too many for 6 rows under common"):
        ew.Sampler(too_many)
    ew.Sampler(too_many, shapes="own")


@pytest.mark.timing
def test_five_columns_of_categories_take_at_most_three_tenths_more(repository: Path) -> None:
    """The ratio of times from the same states, for every model and family."""
    command = [sys.executable, "benchmarks/sampler_rates.py", "categories"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=repository).stdout
    ratios = [float(line.split(" | ")[-1].strip(" |")) for line in output.splitlines() if "shapes" in line]
    assert len(ratios) == 6
    assert max(ratios) <= 1.3, output
    assert min(ratios) > 0.5, output
