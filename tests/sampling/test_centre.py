"""An unknown centre: its likelihood, its chains, what is computed from their draws, and where it is kept.

Chains are compared with the enumerated posterior (common shapes), or with quadrature over the centre and the
common variance (own shapes, one column, for which all three models are the same). The twin leaves the draw of
the shift out: chains that treat the centre as known must fail.
"""

import copy
import functools
import itertools
import math
from pathlib import Path

import numpy as np
import oracle
import pytest
from chain_runs import assert_same_trace
from sampling.exact import MODELS, PRIORS, SIX, Floats, Labels, make_space
from sampling.goodness import LEVEL, chi_square, explain, partition_names
from sampling.test_invariance import data, own_map

import ewens_widgets as ew
from ewens_widgets.analysis.evidence_tree import evidence_of
from ewens_widgets.analysis.explanation import explain as explain_proposal
from ewens_widgets.analysis.predictive import masses_and_densities
from ewens_widgets.model.own_shapes import statistics_of
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import all_partitions
from ewens_widgets.sampling.moves import Gibbs
from ewens_widgets.sampling.state import Session, pack_session, unpack_session

GRID = [0.25, 1.0, 8.0]
SHAPES = ("common", "own")


def orbit_log_likelihood(X: Floats, labels: Floats, theta: float, model: str) -> float:
    """The definition, with the inverse of Γ: S is what generalised least squares leaves of the data."""
    (n_objects, n_features), ones = X.shape, np.ones(len(X))
    gamma = np.eye(n_objects) + theta * np.equal.outer(labels, labels)
    inverse = np.linalg.inv(gamma)
    total = float(ones @ inverse @ ones)
    rest = inverse - np.outer(inverse @ ones, inverse @ ones) / total
    forms = X.T @ rest @ X, (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    scale = {
        "I": lambda S: n_features * np.log(np.trace(S)),
        "II": lambda S: np.log(np.diag(S)).sum(),
        "III": lambda S: np.linalg.slogdet(S)[1],
    }[model]
    log_det = np.linalg.slogdet(gamma)[1] + math.log(total)
    return float(-0.5 * (n_features * log_det + (n_objects - 1) * (scale(forms[0]) - scale(forms[1]))))


@pytest.mark.parametrize("model", MODELS)
def test_the_likelihood_is_its_definition(model: str) -> None:
    posterior = Posterior.from_data(SIX, model, theta_grid=GRID, centre="unknown")
    for labels in all_partitions(6)[::7]:
        expected = [orbit_log_likelihood(SIX, labels, theta, model) for theta in GRID]
        np.testing.assert_allclose(posterior.log_likelihoods(labels), expected, atol=1e-11)
        found = [ew.log_likelihood(SIX, labels, theta, model, centre="unknown") for theta in GRID]
        np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("model", MODELS)
def test_one_cluster_says_nothing_of_theta(model: str) -> None:
    X, together = ew.datasets.unit_square(seed=0).X, np.zeros(80, dtype=int)
    grid = np.exp2(np.arange(-3.0, 11.0))
    flat, tilted = (
        np.ptp([ew.log_likelihood(X, together, theta, model, centre) for theta in grid])
        for centre in ("unknown", "mean")
    )
    assert flat < 1e-10
    assert tilted > 8.0


def test_the_mean_favours_more_clusters() -> None:
    """The figures of docs/sampler.md: four clusters against one on the unit square."""
    square, together = ew.datasets.unit_square(seed=0), [0] * 80
    for centre, gain in (("mean", 115.9), ("unknown", 112.9)):
        four, one = (ew.log_likelihood(square, B, 16.0, "III", centre) for B in (square.labels, together))
        assert four - one == pytest.approx(gain, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("n_objects", "moves", "thin"), [(6, "default", 2), (5, "paper-2", 40)])
def test_chains_sample_the_posterior_of_the_orbit(model: str, n_objects: int, moves: str, thin: int) -> None:
    X, settings = SIX[:n_objects], {"model": model, "concentration": 1.3, "theta_grid": GRID}
    space = make_space(X, model, 1.3, GRID, centre="unknown")
    p_values = []
    for centre in ("unknown", "mean"):
        sampler = ew.Sampler(X, **settings, moves=moves, seed=26, centre=centre)
        trace = sampler.sample(6000, burn_in=500, thin=thin, progress=False)
        joint = np.zeros_like(space.exact.joint)
        np.add.at(joint, (space.places(trace.labels), trace.theta_index), 1.0)
        fits = [
            chi_square(joint.sum(axis=axis), len(trace) * space.exact.joint.sum(axis=axis)).p_value
            for axis in (0, 1)
        ]
        p_values.append(min(fits))
        if centre == "unknown":
            expected = len(trace) * space.exact.probabilities
            table = explain(partition_names(space.labels), joint.sum(axis=1), expected)
            assert min(fits) > LEVEL, table
            exact = [space.posterior.log_density(row.labels, row.theta_index) for row in trace[:20]]
            np.testing.assert_allclose(trace.log_posterior[:20], exact, atol=1e-9)
    assert p_values[1] < 1e-3 * LEVEL


THETAS, NUS = (0.5, 16.0), (2.0, 24.0)
COLUMN = np.array([[-2.0], [-1.9], [0.6], [3.1], [4.3]])
STEPS = np.linspace(-7.0, 7.0, 211)  # of the centre m = sinh(u), in standard deviations


@functools.cache
def own_posterior(centre: str) -> dict[Labels, Floats]:
    """Joint probabilities of partition, θ and ν, with m and the common variance summed out."""
    if centre == "mean":
        return oracle.exact_own_posterior(COLUMN, PRIORS["Ewens"].log_pmf, 1.0, THETAS, NUS)
    y = (COLUMN[:, 0] - COLUMN.mean()) / COLUMN.std()
    weights, log_joint = np.log(oracle.theta_weights(THETAS, 1.0)), {}
    base = np.exp(oracle.LOG_VARIANCES[::4])
    for labels in map(tuple, all_partitions(5).tolist()):
        values = np.zeros((2, 2))
        for (g, theta), (v, nu) in itertools.product(enumerate(THETAS), enumerate(NUS)):
            total = np.log(np.cosh(STEPS))[:, None] + np.zeros(base.size)
            for cluster in range(max(labels) + 1):
                members = y[np.array(labels) == cluster] - np.sinh(STEPS)[:, None]
                size, degrees = members.shape[1], nu + 2.0
                rest = np.sum(members**2, axis=1) - members.sum(axis=1) ** 2 / (1.0 / theta + size)
                total += math.lgamma((degrees + size) / 2.0) - math.lgamma(degrees / 2.0)
                total += degrees / 2.0 * np.log(nu * base) - 0.5 * math.log1p(theta * size)
                total -= (degrees + size) / 2.0 * np.log(nu * base + rest[:, None])
            values[g, v] = np.logaddexp.reduce(total.ravel())
        log_joint[labels] = PRIORS["Ewens"].log_pmf(labels) + weights[:, None] + values
    highest = max(values.max() for values in log_joint.values())
    whole = sum(np.exp(values - highest).sum() for values in log_joint.values())
    return {labels: np.exp(values - highest) / whole for labels, values in log_joint.items()}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_own_shapes_have_the_posterior_of_quadrature(model: str) -> None:
    found = {}
    for centre in ("unknown", "mean"):
        settings = {"model": model, "shapes": "own", "prior": PRIORS["Ewens"], "centre": centre}
        sampler = ew.Sampler(COLUMN, **settings, theta_grid=THETAS, nu_grid=NUS, seed=31)
        trace = sampler.sample(20_000, burn_in=100, progress=False)
        counts = {labels: np.zeros((2, 2)) for labels in own_posterior("mean")}
        for row, g, v in zip(trace.labels.tolist(), trace.theta_index, trace.nu_index, strict=True):
            counts[tuple(row)][g, v] += 1.0 / len(trace)
        found[centre] = sum(
            0.5 * np.abs(counts[labels] - due).sum() for labels, due in own_posterior("unknown").items()
        )
        if centre == "unknown":
            for event in trace[:20]:
                shape = event.theta_index, None, int(event.nu_index), event.sigma
                expected = sampler.posterior.log_density(event.labels, *shape)
                assert event.log_posterior == pytest.approx(expected, abs=1e-8)
    assert found["unknown"] < 0.04, found
    assert found["mean"] > 1.5 * found["unknown"], found


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_chains_are_invariant_draw_by_draw(model: str, shapes: str) -> None:
    """(Model II draws the shift in the order of the columns.)"""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        matrix = np.diag(rng.choice([-1.0, 1.0], 3) * 10.0 ** rng.uniform(-2, 2, 3))
        if model != "II":
            matrix = own_map(model, rng)
        settings = {"model": model, "shapes": shapes, "centre": "unknown", "seed": 17, "initial": "k-means"}
        first, second = (
            ew.Sampler(X, **settings).sample(60, progress=False)
            for X in (data(), data() @ matrix + rng.normal(size=3))
        )
        assert len(np.unique(first.labels, axis=0)) > 15
        np.testing.assert_array_equal(first.labels, second.labels)
        np.testing.assert_array_equal(first.theta_index, second.theta_index)
        np.testing.assert_allclose(first.sigma, second.sigma, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:column .* is a linear combination")
def test_model_one_takes_columns_that_do_not_vary() -> None:
    """The axes that the objects do not span may be any."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    X = np.column_stack([data(), np.ones(18)])
    first, second = (
        ew.Sampler(Y, model="I", centre="unknown", seed=3).sample(40, progress=False) for Y in (X, X @ turn)
    )
    np.testing.assert_array_equal(first.labels, second.labels)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_files_copies_and_blocks_go_on_bit_for_bit(model: str, shapes: str, tmp_path: Path) -> None:
    settings = {"model": model, "shapes": shapes, "centre": "unknown", "seed": 5}
    whole = ew.Sampler(data(), **settings).sample(40, progress=False)
    sampler = ew.Sampler(data(), **settings)
    sampler.sample(20, progress=False)
    sampler.save(tmp_path / "chain.npz")
    copied = copy.deepcopy(sampler)
    for other in (sampler, ew.Sampler.load(tmp_path / "chain.npz"), copied):
        assert other.posterior.centre == "unknown"
        assert_same_trace(other.sample(20, progress=False), whole[20:])
    stepped = ew.Sampler(data(), **settings)
    for event, expected in zip(stepped.events(30, block=1), whole, strict=False):
        assert event.log_posterior == expected.log_posterior
    snapshot = stepped.snapshot()
    assert snapshot.log_posterior == pytest.approx(whole.log_posterior[29], abs=1e-8)
    whole.save(tmp_path / "draws.npz")
    assert_same_trace(ew.Trace.load(tmp_path / "draws.npz"), whole)
    chains = ew.sample_chains(data(), chains=2, draws=10, burn_in=5, progress=False, **settings)
    again = ew.sample_chains(data(), chains=2, draws=10, burn_in=5, chunk=4, progress=False, **settings)
    for one, another in zip(chains, again, strict=True):
        assert_same_trace(one, another)


def test_sessions_keep_it() -> None:
    dataset = ew.datasets.unit_square(seed=0)
    sampler = ew.Sampler(dataset, centre="unknown")
    draws = sampler.recorder(5)
    sampler.extend(draws, 5)
    run = {"iterations": 10, "burn_in": 0, "seed": 0, "initial": None}
    restored = unpack_session(pack_session(Session(dataset, sampler, draws, run)))
    assert restored.sampler.posterior.centre == "unknown"


def test_another_centre_is_refused() -> None:
    with pytest.raises(ValueError, match=r'centre must be "mean".*or "unknown"'):
        ew.Sampler(data(), centre="median")
    sampler = ew.Sampler(data(), centre="unknown")
    with pytest.raises(ValueError, match='use centre="mean" here'):
        explain_proposal(sampler.posterior, sampler.state, Gibbs())


@pytest.mark.parametrize("model", MODELS)
def test_a_new_object_has_the_density_that_one_more_row_makes(model: str) -> None:
    X, labels = data(), np.arange(18) % 3
    posterior = Posterior.from_data(X, model, centre="unknown")
    row = X[0] + [0.3, -1.0, 0.5]
    differences = []
    for partition, theta in ((labels, 4.0), (np.arange(18), 0.5), (np.zeros(18, dtype=int), 64.0)):
        masses, densities = masses_and_densities(posterior, partition, theta, 1.0, posterior.map(row[None]))
        found = masses + densities[0]
        for label in range(partition.max() + 2):
            grown = np.append(partition, label)
            likelihoods = [
                ew.log_likelihood(Y, B, theta, model, "unknown")
                for Y, B in ((np.vstack([X, row]), grown), (X, partition))
            ]
            priors = ew.ewens.log_pmf(grown, 1.0) - ew.ewens.log_pmf(partition, 1.0)
            differences.append(found[label] - priors - likelihoods[0] + likelihoods[1])
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)


def test_the_density_of_a_new_object_is_one() -> None:
    X = data()[:, :1]
    for model, shapes in itertools.product(MODELS, SHAPES):
        trace = ew.Sampler(X, model=model, shapes=shapes, centre="unknown").sample(5, progress=False)
        places = np.sinh(np.linspace(-9.0, 9.0, 4001))
        masses, densities = masses_and_densities(
            trace.posterior, trace.labels[-1].astype(np.intp), float(trace.theta[-1]), 1.0,
            places[:, None], float(trace.nu[-1]), trace.sigma[-1],
        )  # fmt: skip
        log_density = np.logaddexp.reduce(masses + densities, axis=1)
        assert np.trapezoid(np.exp(log_density), places) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_merges_lose_what_the_posterior_says(model: str, shapes: str) -> None:
    sampler = ew.Sampler(data(), model=model, shapes=shapes, centre="unknown", seed=2)
    trace, labels = sampler.sample(30, progress=False)[29:], np.arange(18) % 4
    posterior = sampler.posterior
    clusters = statistics_of(posterior.coordinates, labels, model)
    found = evidence_of(posterior, trace).all_losses(clusters)
    shape = int(trace.nu_index[0]), trace.sigma[0]

    def log_posterior(labels: Floats) -> float:
        if shapes == "common":
            return posterior.log_marginal(labels)
        g = int(trace.theta_index[0])
        return posterior.log_prior(labels) + float(posterior.log_likelihoods(labels, *shape)[g])

    for a, b in itertools.combinations(range(4), 2):
        merged = np.where(labels == b, a, labels)
        assert found[a, b] == pytest.approx(log_posterior(labels) - log_posterior(merged), abs=1e-8)


def test_clusters_and_estimates_know_it() -> None:
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(25, 2)), rng.normal([9.0, 0.0], size=(15, 2))])
    for shapes in SHAPES:
        found = ew.AffineClustering(
            shapes=shapes, centre="unknown", n_chains=2, draws=300, burn_in=50, random_state=0
        ).fit(X)
        assert found.trace_.posterior.centre == "unknown"
        assert found.n_clusters_ == 2
        sigma = found.trace_.sigma[-1] if shapes == "own" else None
        made = found.trace_.posterior.cluster_shapes(found.labels_, 16.0, 64.0, sigma)
        centres = found.trace_.posterior.map(np.array([X[:25].mean(axis=0), X[25:].mean(axis=0)]))
        np.testing.assert_allclose(made.centres, centres, atol=0.2)
        assert np.isfinite(found.score_samples(X[:3])).all()
    compared = ew.compare(X, models=["II"], folds=2, draws=40, burn_in=40, centre="unknown")
    assert all(not row.problem for row in compared.rows)
