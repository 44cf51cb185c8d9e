"""Missing cells: exact by closed forms and quadrature, Geweke's test, invariance, and where they are kept.

Rows whose cells are missing at random leave, in each column, the likelihood of its observed rows. For models
I and II this is a closed form, and for model III an integral over the missing cell. Two twins must fail: one
fills the cell once and draws it no more, the other ignores the category.
"""

import copy
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pandas as pd
import pytest
from chain_runs import assert_same_trace
from sampling.exact import FIVE, MODELS, PRIORS, Floats, Labels, canonical, log_urn, mixed
from sampling.goodness import LEVEL, chi_square, explain, limit, partition_names
from scipy import stats

import ewens_widgets as ew
from ewens_widgets.analysis.predictive import log_predictive_density
from ewens_widgets.datasets import Dataset
from ewens_widgets.datasets.kinds import ColumnKind
from ewens_widgets.model.coordinates import canonical_coordinates
from ewens_widgets.model.mixed_columns import Columns
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import all_partitions, canonical_labels
from ewens_widgets.sampling.driver import Driver
from ewens_widgets.sampling.moves.schedule import resolve_schedule
from ewens_widgets.sampling.state import State, first_state

SHAPES, THETAS, NUS = ("common", "own"), (0.5, 4.0), (3.0, 16.0)
GAP = np.nan
CATEGORY = np.array([[7.0], [3.0], [7.0], [GAP], [3.0]])
STEPS = np.sinh(np.linspace(-9.0, 9.0, 1201))  # Values of a missing cell.


def table_of(model: str, shapes: str) -> Floats:
    """Numbers with gaps: several for models I and II, one for III; own shapes of one column."""
    X = FIVE[:, :1].copy() if shapes == "own" and model != "II" else FIVE.copy()
    X[1, 0] = GAP
    if model != "III" and X.shape[1] > 1:
        X[[0, 2], [1, 1]] = GAP
    return X


def log_gamma_terms(y: Floats, labels: Floats, theta: float, centre: str) -> tuple[float, float, int]:
    """Log det Γ (with log c), the quadratic form of a column's observed rows, and its degrees of freedom."""
    seen = ~np.isnan(y)
    y, labels, ones = y[seen], labels[seen], np.ones(int(seen.sum()))
    gamma = np.eye(y.size) + theta * np.equal.outer(labels, labels)
    inverse, log_det = np.linalg.inv(gamma), float(np.linalg.slogdet(gamma)[1])
    if centre == "mean":
        return log_det, float(y @ inverse @ y), y.size
    total, pull = float(ones @ inverse @ ones), float(ones @ inverse @ y)
    return log_det + math.log(total), float(y @ inverse @ y) - pull**2 / total, y.size - 1


def log_observed(X: Floats, labels: Floats, theta: float, model: str, centre: str) -> float:
    """Log likelihood of the observed cells under common shapes."""
    Y = X - np.nanmean(X, axis=0)
    if model != "III":
        log_dets, forms, degrees = np.array(
            [log_gamma_terms(column, labels, theta, centre) for column in Y.T]
        ).T
        scale = degrees.sum() * np.log(forms.sum()) if model == "I" else degrees @ np.log(forms)
        return float(-0.5 * (log_dets.sum() + scale))
    [(row, column)] = np.argwhere(np.isnan(Y))
    gamma = np.eye(len(Y)) + theta * np.equal.outer(labels, labels)
    inverse, log_det, degrees = np.linalg.inv(gamma), 2.0 * np.linalg.slogdet(gamma)[1], len(Y)
    if centre == "unknown":
        ones = inverse.sum(axis=1)
        inverse, degrees = inverse - np.outer(ones, ones) / ones.sum(), degrees - 1
        log_det += 2.0 * math.log(ones.sum())
    tables = np.repeat(Y[None], STEPS.size, axis=0)
    tables[:, row, column] = STEPS
    forms = np.linalg.slogdet(np.swapaxes(tables, 1, 2) @ inverse @ tables)[1]
    steps = np.log(np.sqrt(1.0 + STEPS**2))
    return float(np.logaddexp.reduce(steps - 0.5 * degrees * forms) - 0.5 * log_det)


def exact(shapes: str, model: str, centre: str, category: Floats = CATEGORY) -> dict[Labels, Floats]:
    """Joint probabilities of partition and θ (own shapes: and ν)."""
    X, weights, log_joint = table_of(model, shapes), np.log(oracle.theta_weights(THETAS, 1.0)), {}
    for labels in map(tuple, all_partitions(5).tolist()):
        log_prior = PRIORS["Ewens"].log_pmf(labels) + log_urn(labels, category)
        if shapes == "common":
            likelihoods = [log_observed(X, np.array(labels), theta, model, centre) for theta in THETAS]
            log_joint[labels] = log_prior + weights + likelihoods
            continue
        values = np.zeros((len(THETAS), len(NUS)))
        for (g, theta), (v, nu) in itertools.product(enumerate(THETAS), enumerate(NUS)):
            for column in X.T:
                seen = ~np.isnan(column)
                own = oracle.own_log_likelihoods(column[seen, None], np.array(labels)[seen], theta, nu)
                values[g, v] += np.logaddexp.reduce(own)
        log_joint[labels] = log_prior + weights[:, None] + values
    return oracle.normalised(log_joint)


def fit(table: dict[Labels, Floats], data: object, shapes: str, model: str, centre: str) -> tuple[float, str]:
    """How probable so large a difference of draws from the table is, and what is shown of it."""
    settings: dict[str, Any] = {"model": model, "theta_grid": THETAS, "prior": PRIORS["Ewens"], "seed": 3}
    settings |= {"shapes": shapes, "centre": centre, "moves": [("informed-split-merge", 3), "gibbs"]}
    settings |= {"nu_grid": NUS} if shapes == "own" else {}
    trace = ew.Sampler(data, **settings).sample(8000, 200, 10, progress=False)
    rows, times = np.unique(trace.labels, axis=0, return_counts=True)
    seen = {canonical(row): count for row, count in zip(rows, times.tolist(), strict=True)}
    counts = [seen.get(labels, 0) for labels in table]
    expected = len(trace) * np.array([values.sum() for values in table.values()])
    return chi_square(counts, expected).p_value, explain(partition_names(list(table)), counts, expected)


CASES = [("common", model, centre) for model in MODELS for centre in ("mean", "unknown")]
CASES += [("own", model, "mean") for model in MODELS]


@pytest.mark.slow
@pytest.mark.parametrize(("shapes", "model", "centre"), CASES)
def test_chains_sample_the_posterior_of_the_observed_cells(shapes: str, model: str, centre: str) -> None:
    case = shapes, model, centre
    X, table = table_of(model, shapes), exact(*case)
    found, shown = fit(table, mixed(X, CATEGORY), *case)
    assert found > LEVEL, shown
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    assert fit(table, mixed(filled, CATEGORY), *case)[0] < 1e-3 * LEVEL
    if X.shape[1] > 1:  # Without the category a single column has a row with nothing observed.
        assert fit(table, X, *case)[0] < 1e-3 * LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [("common", "III", "mean"), ("common", "II", "unknown"), ("own", "II", "mean")]
)
def test_two_part_columns_are_a_category_and_a_number(case: tuple[str, str, str]) -> None:
    """Where the first column is zero its number is missing; the other rows are shifted to be positive."""
    X = table_of(case[1], case[0])
    is_zero = np.isnan(X[:, :1])
    table = exact(*case, is_zero.astype(float))
    parts = np.column_stack([np.where(is_zero, 0.0, X[:, :1] + 2.0), X[:, 1:]])
    found, shown = fit(table, Dataset(parts, kinds=["two-part", "number"]), *case)
    assert found > LEVEL, shown
    for twin in (parts, X):  # Zero as a number like any other, and as a gap that is no category.
        assert fit(table, twin, *case)[0] < 1e-3 * LEVEL


def gapped(gaps: Sequence[tuple[int, int]]) -> Floats:
    """Eight rows of three columns in two clusters of four."""
    centres = np.repeat([[0.0, 2.0, -1.0], [3.0, 1.0, 1.0]], 4, axis=0)
    X = np.random.default_rng(3).normal(size=(8, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, -0.7], [0.2, 0.0, 1.0]]
    X += centres
    for row, column in gaps:
        X[row, column] = GAP
    return X


TOGETHER, LABELS = [(1, 0), (1, 2)], np.repeat([0, 1], 4)
GRIDS = np.sinh(np.linspace(-4.5, 4.5, 61))


def drawn_cells(posterior: Posterior, draws: int) -> Floats:
    """Imputed cells for one partition, θ and ν; Σ of own shapes (and m) is set back before each draw."""
    driver = Driver(posterior, (), None, False)
    start = first_state(posterior, LABELS, np.random.default_rng(8))
    driver.load(start)
    if posterior.shapes == "common":
        return np.asarray(driver.advance(draws, 2)[0].sigma)
    found = np.empty((draws, 2))
    for row in found:
        driver.advance(1)
        state = driver.state()
        row[:] = state.sigma[-2:]
        driver.load(dataclasses.replace(state, sigma=np.append(start.sigma[:-2], row)))
    return found


@pytest.mark.parametrize("centre", ["mean", "unknown"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_imputed_cells_have_their_conditional_distribution(shapes: str, model: str, centre: str) -> None:
    """Two cells of a row by quadrature over both, given the partition; another θ is found."""
    settings = {"shapes": shapes, "centre": centre, "nu_grid": [4.0] if shapes == "own" else None}
    p_values = []
    for theta in (2.0, 0.02):
        posterior = Posterior.from_data(gapped(TOGETHER), model, theta_grid=[theta], **settings)
        assert posterior.gaps.tolist() == [list(gap) for gap in TOGETHER]
        if theta == 2.0:
            cells = drawn_cells(posterior, 4000)
        start = first_state(posterior, LABELS, np.random.default_rng(8)).sigma[:-2]
        log_density = np.array(
            [[posterior.log_likelihoods(LABELS, 0, [*start, one, two])[0] for two in GRIDS] for one in GRIDS]
        )
        weights = np.exp(log_density - log_density.max()) * np.sqrt(1.0 + GRIDS**2)
        weights *= np.sqrt(1.0 + GRIDS[:, None] ** 2)
        weights /= weights.sum()
        edges = (GRIDS[1:] + GRIDS[:-1]) / 2.0
        cuts = [np.searchsorted(np.cumsum(weights.sum(axis=axis)), [0.25, 0.5, 0.75]) for axis in (1, 0)]
        places = [np.searchsorted(edges[cut], cells[:, axis]) for axis, cut in enumerate(cuts)]
        seen = np.bincount(4 * places[0] + places[1], minlength=16)
        sums = np.add.reduceat(weights, [0, *(cuts[0] + 1)], axis=0)
        expected = np.add.reduceat(sums, [0, *(cuts[1] + 1)], axis=1)
        p_values.append(chi_square(seen, len(cells) * expected.ravel()).p_value)
    assert p_values[0] > LEVEL, p_values
    assert p_values[1] < LEVEL, p_values


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_shifts_and_scales_of_columns_change_nothing(model: str, shapes: str) -> None:
    """Model I has one scale for all columns; model III also any linear map of complete columns."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 40)
    X = rng.normal(size=(40, 4)) + 3.0 * labels[:, None] * [1.0, 0.5, -1.0, 0.0]
    X[rng.random(40) < 0.3, 2], X[rng.random(40) < 0.2, 3] = GAP, GAP
    matrix = np.diag([0.1, -7.0, 30.0, -2.0])
    if model == "I":
        matrix = np.diag([-3.0, 3.0, 3.0, -3.0])
    elif model == "III":
        matrix[:2, :2] = [[2.0, 1.0], [0.3, -4.0]]
    other = np.where(np.isnan(X), GAP, np.nan_to_num(X) @ matrix + [5.0, -2.0, 0.0, 1.0])
    for centre in ("mean", "unknown"):
        settings = {"model": model, "shapes": shapes, "seed": 17, "initial": "k-means", "centre": centre}
        first, second = (ew.Sampler(Y, **settings).sample(40, progress=False) for Y in (X, other))
        assert len(np.unique(first.labels, axis=0)) > 10
        np.testing.assert_array_equal(first.labels, second.labels)
        np.testing.assert_array_equal(first.theta_index, second.theta_index)
        np.testing.assert_allclose(first.sigma, second.sigma, rtol=1e-6, atol=1e-8)
        found, again = (trace.imputed()["mean"].to_numpy() for trace in (first, second))
        columns = first.posterior.gaps[:, 1]
        np.testing.assert_allclose(
            again, found * np.diag(matrix)[columns] + [0.0, 0.0, 0.0, 1.0] @ np.eye(4)[:, columns], rtol=1e-6
        )


@pytest.mark.parametrize("centre", ["mean", "unknown"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_files_copies_and_blocks_go_on_bit_for_bit(
    model: str, shapes: str, centre: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3)) + 3.0 * rng.integers(0, 2, (30, 1))
    X[rng.random(30) < 0.3, 1] = GAP
    data = mixed(X, rng.integers(0, 3, (30, 1)).astype(float))
    settings: dict[str, Any] = {"model": model, "shapes": shapes, "centre": centre, "seed": 5}
    whole = ew.Sampler(data, **settings).sample(30, progress=False)
    sampler = ew.Sampler(data, **settings)
    sampler.sample(15, progress=False)
    sampler.save(tmp_path / "chain.npz")
    copied = copy.deepcopy(sampler)
    for other in (sampler, ew.Sampler.load(tmp_path / "chain.npz"), copied):
        assert_same_trace(other.sample(15, progress=False), whole[15:])
    stepped = ew.Sampler(data, **settings)
    for event, expected in zip(stepped.events(20, block=1), whole, strict=False):
        assert event.log_posterior == expected.log_posterior
        np.testing.assert_array_equal(event.sigma, expected.sigma)
    # What is recorded is the posterior of the completed table.
    assert stepped.snapshot().log_posterior == pytest.approx(whole.log_posterior[19], abs=1e-8)
    whole.save(tmp_path / "draws.npz")
    assert_same_trace(ew.Trace.load(tmp_path / "draws.npz"), whole)
    again = ew.sample_chains(data, chains=2, draws=8, burn_in=4, chunk=4, progress=False, **settings)
    for one, another in zip(
        ew.sample_chains(data, chains=2, draws=8, burn_in=4, progress=False, **settings), again, strict=True
    ):
        assert_same_trace(one, another)
    assert "imputed_cells" in again.rhat()


@pytest.mark.parametrize("shapes", SHAPES)
def test_cells_of_a_column_that_a_cluster_has_no_value_of_move_freely(shapes: str) -> None:
    """Drawn given the last ones, their mean would have an autocorrelation of 0.99."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3))
    X[40:, :2] += 12.0
    X[40:, 2] = GAP
    settings: dict[str, Any] = {"model": "III", "shapes": shapes, "seed": 1, "initial": "k-means"}
    cells = ew.Sampler(X, **settings).sample(800, 100, progress=False).imputed()
    means = stats.rankdata(np.stack(cells["draws"]).mean(axis=0))
    assert np.corrcoef(means[1:], means[:-1])[0, 1] < 0.4


def test_every_sign_of_a_gap_is_understood() -> None:
    X = FIVE.copy()
    X[1, 0] = GAP
    objects = X.astype(object)
    objects[1, 0] = None
    missing = objects.copy()
    missing[1, 0] = pd.NA
    frame = pd.DataFrame(X, columns=["a", "b"]).convert_dtypes()
    masked = np.ma.masked_invalid(X)
    expected = ew.Sampler(X).sample(5, progress=False)
    for data in (objects, missing, frame, masked):
        assert_same_trace(ew.Sampler(data).sample(5, progress=False), expected)
        found = ew.AffineClustering("II", n_chains=1, draws=10, burn_in=0, random_state=0).fit(data)
        assert found.trace_.posterior.gaps.tolist() == [[1, 0]]
    np.testing.assert_array_equal(expected.imputed()[["row"]], [[1]])
    # A column with one value is one that model I takes.
    ew.Sampler([[1.0, GAP], [2.0, 3.0], [4.0, GAP]], model="I").sample(2, progress=False)
    assert ew.Sampler(frame, kinds="numeric").sample(5, progress=False).imputed()["column"].tolist() == ["a"]


@pytest.mark.parametrize(
    ("places", "value", "settings", "message"),
    [
        (
            [(1, 0), (1, 1), (1, 2)],
            GAP,
            {},
            "row 1 has no values, all its cells are missing, and so 0 other.*Drop",
        ),
        (
            [(row, 1) for row in range(8)],
            GAP,
            {},
            "column 1 has no values, all its cells are missing; drop it",
        ),
        ([(2, 1)], np.inf, {}, "contain infinity .* row 2, column 1.*make the cells missing"),
        (
            [(row, row % 3) for row in range(4)],
            GAP,
            {"model": "III"},
            'model III needs at least d \\+ 2 = 5 rows without a missing cell.*there are 4.*use model "II"',
        ),
        ([(row, 0) for row in range(7)], GAP, {}, r"column\(s\) 0 are constant"),
    ],
)
def test_tables_without_enough_cells_are_refused(
    places: list[tuple[int, int]], value: float, settings: dict[str, Any], message: str
) -> None:
    X = gapped([])
    X[tuple(np.transpose(places))] = value
    with pytest.raises(ValueError, match=message):
        ew.Sampler(X, **settings)


@pytest.mark.parametrize("centre", ["mean", "unknown"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_rows_with_gaps_have_the_margin_of_complete_ones(model: str, shapes: str, centre: str) -> None:
    X, steps = gapped([]) * [1.0, 10.0, 0.1] + 5.0, np.linspace(-900.0, 900.0, 20_001)
    for data in (X, np.where(np.eye(8, 3, 1, dtype=bool), GAP, X)):
        trace = ew.Sampler(data, model=model, shapes=shapes, centre=centre).sample(3, progress=False)
        rows = np.repeat(X[3:4], steps.size, axis=0)
        rows[:, 1] = steps
        gone = rows[:1].copy()
        gone[0, 1] = GAP
        along, there = (
            log_predictive_density(trace, trace.posterior.map(Y), numbers=Y) for Y in (rows, gone)
        )
        assert np.log(np.trapezoid(np.exp(along - along.max()), steps)) + along.max() == pytest.approx(
            float(there[0]), abs=2e-3
        )


GRID, NU_GRID = np.array([0.25, 2.0, 16.0]), np.array([2.0, 16.0])
THETA_PRIOR = (1.0 + GRID) ** -2.0 / np.sum((1.0 + GRID) ** -2.0)
FIRST_SETTINGS, MOVES = (ew.priors.Ewens(1.0), 1.0, GRID), [("informed-split-merge", 3), "gibbs"]
KINDS = (
    ColumnKind("x", "number"),
    ColumnKind("y", "number"),
    ColumnKind("z", "category", levels=(0.0, 1.0, 2.0)),
)
Start = tuple[Posterior, State, Floats]


def chain_start(
    model: str,
    shapes: str,
    Y: Floats,
    hidden: Sequence[tuple[int, int]],
    drawn: tuple[Floats, int, int, Floats],
    rng: np.random.Generator,
) -> Start:
    """Draw categories, hide cells, and put together what was drawn: partition, θ, ν and Σ."""
    labels, g, v, scale = drawn
    codes, urns = np.empty(6), np.full((6, 3), 0.5)
    for item, label in enumerate(labels):
        codes[item] = rng.choice(3, p=urns[label] / urns[label].sum())
        urns[label, int(codes[item])] += 1.0
    codes[5] = GAP  # The last ball of its urn, which the others do not depend on.
    seen, columns = np.ones((6, 2)), Columns(KINDS)
    seen[tuple(np.transpose(hidden))] = 0.0
    posterior = Posterior(
        seen * Y,
        model,
        *FIRST_SETTINGS,
        shapes,
        NU_GRID.copy() if shapes == "own" else np.array([np.inf]),
        columns=Columns(KINDS, columns.places_of(np.column_stack([Y, codes]))),
        gaps=np.array(hidden),
    )
    sigma = np.append(scale if shapes == "own" else [], Y[tuple(np.transpose(hidden))])
    return posterior, State(labels.astype(np.int64), g, 0.0, 0, {}, v, sigma), codes


def drawn_jointly(model: str, shapes: str, rng: np.random.Generator) -> Start:
    """Partition, parameters and a whole table, in the scale of its observed cells (see `test_geweke`)."""
    labels, hidden = ew.ewens.sample(6, 1.0, rng), [(0, 0), (2, 1), (3, 0), (5, 1)]
    g, v = int(rng.choice(3, p=THETA_PRIOR)), int(rng.integers(2))
    nu, variances = NU_GRID[v], np.ones((6, 2))
    if shapes == "own" and model == "II":
        variances = nu / 2.0 / rng.gamma((nu + 2.0) / 2.0, size=(6, 2))
    elif shapes == "own":
        variances = np.repeat(nu / rng.gamma(nu + 1.0, size=(6, 1)), 2, axis=1)
    means = np.sqrt(GRID[g]) * rng.normal(size=(6, 2))
    Y = (means[labels] + rng.normal(size=(6, 2))) * np.sqrt(variances)[labels]
    seen = np.ones((6, 2))
    seen[tuple(np.transpose(hidden))] = 0.0
    squares = np.sum(seen * Y * Y, axis=0) / seen.sum(axis=0)
    if model == "I":
        squares[:] = np.sum(seen * Y * Y) / seen.sum()
    scale = (1.0 / squares)[: 1 if model == "I" else 2]
    return chain_start(model, shapes, Y / np.sqrt(squares), hidden, (labels, g, v, scale), rng)


def given_complete_rows(shapes: str, draws: int, rng: np.random.Generator) -> Iterator[Start]:
    """Model III: everything else given d + 2 complete rows, after which the prior of Σ is proper.

    A chain on these rows draws their partition, θ, ν and Σ. Two rows join by Ewens' prior, and have the
    covariance and mean of their cluster, drawn from the conditionals given its complete rows.
    """
    U = canonical_coordinates(rng.normal(size=(4, 2)), "III")[0]
    base = Posterior(U, "III", *FIRST_SETTINGS, shapes, NU_GRID if shapes == "own" else np.array([np.inf]))
    driver = Driver(base, resolve_schedule(MOVES, shapes), None, False)
    driver.load(first_state(base, None, rng))
    for _ in range(draws):
        driver.advance(10)
        state = driver.state()
        labels, theta = canonical_labels(state.labels), GRID[state.theta_index]
        for _ in range(2):
            sizes = np.append(np.bincount(labels), 1.0)
            labels = np.append(labels, rng.choice(sizes.size, p=sizes / sizes.sum()))
        inner = np.linalg.inv(np.eye(4) + theta * np.equal.outer(labels[:4], labels[:4]))
        omega, rows = stats.wishart.rvs(4, np.linalg.inv(U.T @ inner @ U), random_state=rng), np.empty((6, 2))
        for label in range(labels.max() + 1):
            members = U[labels[:4] == label]
            total, kappa = members.sum(axis=0), 1.0 / theta + len(members)
            if shapes == "own":
                nu = NU_GRID[state.nu_index]
                A = nu * base.scale(state.sigma) + members.T @ members - np.outer(total, total) / kappa
                omega = stats.wishart.rvs(nu + 3.0 + len(members), np.linalg.inv(A), random_state=rng)
            root = np.linalg.cholesky(np.linalg.inv(omega))
            mean = total / kappa + root @ rng.normal(size=2) / np.sqrt(kappa)
            rows[labels == label] = mean + rng.normal(size=(int(np.sum(labels == label)), 2)) @ root.T
        drawn = labels, state.theta_index, state.nu_index, state.sigma
        yield chain_start("III", shapes, np.vstack([U, rows[4:]]), [(4, 0), (5, 1)], drawn, rng)


def statistics(posterior: Posterior, state: State, codes: Floats) -> list[float]:
    labels, (scale, cells) = state.labels, np.split(state.sigma, [-len(posterior.gaps)])
    same = np.equal.outer(labels, labels)
    Y = posterior.table(state.sigma)
    log_theta = np.log(GRID[state.theta_index])
    near = np.exp(-((Y[:, None] - Y[None]) ** 2))
    return [
        float(labels.max()),
        float(same.sum()),
        float(same[0, 1]),
        log_theta,
        log_theta * labels.max(),
        float(state.nu_index),
        float(state.nu_index * labels.max()),
        float(np.arctan(scale).sum()),
        float((same & np.equal.outer(codes, codes)).sum()),
        *np.arctan(cells),
        *np.abs(np.arctan(cells)),
        float(near[0, 1, 0] * same[0, 1]),
        float(near[2, 3].prod() * same[2, 3]),
        float(near[0, :, 0].sum()),
        float((near.prod(axis=2) * same).sum()),
    ]


def geweke_scores(model: str, shapes: str, draws: int, factor: float = 1.0) -> Floats:
    """Changes of the statistics by an iteration that begins with an exact joint draw, in standard errors.

    A `factor` that is not 1 begins it with wrong values of the missing cells.
    """
    rng, changes = np.random.default_rng(9), []
    schedule = resolve_schedule(MOVES, shapes)
    generator: Any = np.random.Generator(np.random.PCG64(4)).bit_generator.state
    starts = (drawn_jointly(model, shapes, rng) for _ in range(draws))
    for posterior, state, codes in given_complete_rows(shapes, draws, rng) if model == "III" else starts:
        before = statistics(posterior, state, codes)
        sigma = state.sigma.copy()
        sigma[-len(posterior.gaps) :] *= factor
        driver = Driver(posterior, schedule, None, False)
        driver.load(dataclasses.replace(state, generator=generator, sigma=sigma))
        driver.advance(1)
        after = driver.state()
        generator = after.generator
        after = dataclasses.replace(after, labels=canonical_labels(after.labels))
        changes.append(np.subtract(statistics(posterior, after, codes), before))
    moved = np.array(changes)
    spread = moved.std(axis=0)
    return moved.mean(axis=0)[spread > 0.0] / spread[spread > 0.0] * np.sqrt(draws)


@pytest.mark.nightly
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_an_iteration_leaves_the_joint_distribution_invariant(model: str, shapes: str) -> None:
    """Geweke's test with gaps and categories; of model III given its complete rows."""
    found = geweke_scores(model, shapes, 20_000)
    assert np.abs(found).max() < limit(), found
    wrong = geweke_scores(model, shapes, 10_000, factor=4.0)
    assert np.abs(wrong).max() > limit(), wrong
