import dataclasses

import numpy as np
import pytest
from traces import blob_trace, blobs, synthetic_trace

import ewens_widgets as ew
from ewens_widgets.analysis import predictive
from ewens_widgets.analysis.predictive import log_predictive_density, masses_and_densities, predict_clusters
from ewens_widgets.model.likelihood import log_likelihood
from ewens_widgets.model.own_shapes import log_marginals, pack_sigma, statistics_of, unpack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import ewens

MODELS = ["I", "II", "III"]


def join_log_weights(*given: object) -> np.ndarray:
    masses, densities = masses_and_densities(*given)
    return masses + densities


def brute_force(
    X: np.ndarray, new: np.ndarray, labels: np.ndarray, theta: float, concentration: float, model: str
) -> np.ndarray:
    """Log p(B₊) L(B₊, θ) / p(B) / L(B, θ) from the whole data; for one new row up to a constant."""
    n_clusters = labels.max() + 1
    weights = []
    for label in range(n_clusters + 1):
        grown = np.append(labels, label)
        weights.append(
            ewens.log_pmf(grown, concentration)
            + log_likelihood(np.vstack([X, new]), grown, theta, model)
            - ewens.log_pmf(labels, concentration)
            - log_likelihood(X, labels, theta, model)
        )
    return np.array(weights)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("concentration", [0.4, 3.0])
def test_weights_equal_the_posterior_of_one_more_object(model: str, concentration: float) -> None:
    rng = np.random.default_rng(7)
    X, true = blobs(rng, n_objects=25)
    X = 10.0 * X + [5.0, -3.0, 100.0]
    posterior = Posterior.from_data(X, model=model)
    to_canonical = posterior.map
    draws = [(true, 4.0), (np.zeros(25, dtype=np.intp), 0.5), (np.arange(25), 64.0)]
    for row in np.vstack([X[3] + 1.0, X.mean(axis=0), X[0] + 200.0]):
        new = to_canonical(row[None])
        found = [join_log_weights(posterior, *draw, concentration, new)[0] for draw in draws]
        exact = [brute_force(X, row[None], *draw, concentration, model) for draw in draws]
        # The constant that the likelihood leaves open depends on the data alone: one for all draws.
        difference = np.concatenate(found) - np.concatenate(exact)
        np.testing.assert_allclose(difference, difference[0], atol=1e-7)


PRIORS = [
    ew.priors.Ewens(0.7),
    ew.priors.FiniteMixture(),
    ew.priors.PitmanYor(1.0, 0.3),
    ew.priors.DirichletMultinomial(3, 2.0),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
def test_the_next_seat_is_the_priors(prior: ew.priors.PartitionPrior) -> None:
    rng = np.random.default_rng(7)
    X, true = blobs(rng, n_objects=25)
    posterior = Posterior.from_data(X, model="II")
    new = posterior.coordinates[:2] * 1.1
    likelihood = join_log_weights(posterior, true, 4.0, 1.0, new) - np.log(
        posterior.prior.seating_probabilities(np.bincount(true))
    )
    other = dataclasses.replace(posterior, prior=prior)
    found = join_log_weights(other, true, 4.0, 0.7, new) - likelihood
    with np.errstate(divide="ignore"):
        exact = [
            prior.log_pmf(np.append(true, label)) - prior.log_pmf(true)
            if label < prior.most_clusters
            else -np.inf
            for label in range(4)
        ]
    np.testing.assert_allclose(found, np.tile(exact, (2, 1)), atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prior", PRIORS[1:], ids=lambda prior: type(prior).__name__)
def test_own_shapes_weigh_by_marginal_likelihoods_with_and_without(
    model: str, prior: ew.priors.PartitionPrior
) -> None:
    """Log p(B₊) Π m_b / p(B) / Π m_b over all n + 1 rows, exactly: own shapes leave no constant open."""
    rng = np.random.default_rng(3)
    X, true = blobs(rng, n_objects=25)
    posterior = Posterior.from_data(X, model=model, prior=prior, shapes="own")
    form = {"I": np.array(0.3), "II": np.array([0.2, 0.5, 0.4]), "III": np.eye(3) * 0.4 + 0.1}[model]
    sigma = pack_sigma(form, model)
    new = rng.normal(size=(3, 3))
    labels = np.where(true == 2, 1, true)
    found = join_log_weights(posterior, labels, 4.0, 1.0, new, 8.0, sigma)

    def log_joint(rows: np.ndarray, grown: np.ndarray) -> float:
        clusters = statistics_of(rows, grown, model)
        scale = unpack_sigma(sigma, 3, model)
        return prior.log_pmf(grown) + float(log_marginals(clusters, 4.0, 8.0, scale, model).sum())

    now = log_joint(posterior.coordinates, labels)
    exact = [
        [log_joint(np.vstack([posterior.coordinates, row]), np.append(labels, b)) - now for b in range(3)]
        for row in new
    ]
    np.testing.assert_allclose(found, exact, atol=1e-9)
    assert join_log_weights(posterior, labels, 4.0, 1.0, new[:0], 8.0, sigma).shape == (0, 3)
    with pytest.raises(ValueError, match="Σ"):
        join_log_weights(posterior, labels, 4.0, 1.0, new, 8.0)


@pytest.mark.parametrize("model", MODELS)
def test_a_wrong_width_is_noticed(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    X, true = blobs(rng, n_objects=25)
    posterior = Posterior.from_data(X, model=model)
    new = posterior.map(X[:1] + 1.0)
    exact = brute_force(X, X[:1] + 1.0, true, 4.0, 1.0, model)
    assert np.ptp(join_log_weights(posterior, true, 4.0, 1.0, new)[0] - exact) < 1e-7
    right = predictive._total
    monkeypatch.setattr(predictive, "_total", lambda v, w, model: right(v, w * (1.0 + 1e-3), model))
    assert np.ptp(join_log_weights(posterior, true, 4.0, 1.0, new)[0] - exact) > 1e-5


@pytest.mark.parametrize("model", MODELS)
def test_the_map_reproduces_the_coordinates_and_has_their_jacobian(model: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 2)) * [1e-3, 1.0 if model != "I" else 1e-3] + 7.0
    posterior = Posterior.from_data(X, model=model)
    np.testing.assert_allclose(posterior.map(X), posterior.coordinates, atol=1e-8)
    corners = posterior.map(np.array([[0.0, 0.0], [1e-3, 0.0], [0.0, 1e-3]]))
    volume = 1e6 * abs(np.linalg.det(corners[1:] - corners[0]))
    assert posterior.map.log_jacobian == pytest.approx(np.log(volume))


@pytest.mark.parametrize("model", MODELS)
def test_near_objects_join_and_far_ones_are_novel(model: str) -> None:
    trace = blob_trace(seed=0, n_objects=60, model=model, noise=0.02)
    X, true = blobs(np.random.default_rng(0), 60)
    to_canonical = trace.posterior.map
    centres = np.array([X[true == label].mean(axis=0) for label in range(3)])
    near = predict_clusters(trace, true, to_canonical(centres))
    np.testing.assert_array_equal(near.clusters.argmax(axis=1), [0, 1, 2])
    np.testing.assert_allclose(near.clusters.sum(axis=1), 1.0)
    assert np.all(near.clusters.max(axis=1) > 0.9)
    assert np.all(near.novelty < 0.1)
    far = predict_clusters(trace, true, to_canonical(X.mean(axis=0)[None] + 1e3))
    assert far.novelty[0] > near.novelty.max()
    np.testing.assert_allclose(far.clusters.sum(axis=1), 1.0)


def test_a_draw_that_merges_two_reported_clusters_shares_by_size() -> None:
    rng = np.random.default_rng(1)
    X, _ = blobs(rng, n_objects=30, n_clusters=1)
    trace = synthetic_trace(np.zeros((5, 30), dtype=np.intp), Posterior.from_data(X, model="I"), rng)
    reported = np.repeat([0, 1], [20, 10])
    prediction = predict_clusters(trace, reported, trace.posterior.coordinates[:4] * 0.5)
    np.testing.assert_allclose(prediction.clusters, np.tile([2 / 3, 1 / 3], (4, 1)))


def test_rows_do_not_depend_on_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = blob_trace(seed=3, model="III")
    new = np.random.default_rng(2).normal(size=(9, 3))
    labels = trace.best
    whole = predict_clusters(trace, labels, new)
    monkeypatch.setattr("ewens_widgets.analysis.predictive._BLOCK_ENTRIES", 1)
    parts = [predict_clusters(trace, labels, row[None]) for row in new]
    np.testing.assert_allclose(whole.clusters, np.vstack([part.clusters for part in parts]), atol=1e-12)
    np.testing.assert_allclose(predict_clusters(trace, labels, new).novelty, whole.novelty, atol=1e-12)
    assert predict_clusters(trace, labels, new[:0]).clusters.shape == (0, labels.max() + 1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_features", [1, 2])
def test_a_mass_is_the_integral_of_its_weights(model: str, n_features: int) -> None:
    X = np.random.default_rng(3).normal(size=(9, n_features))
    posterior = Posterior.from_data(X, model=model)
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    # A tangent spreads the whole line over a finite interval; its derivative is periodic, so sums converge.
    angles = (np.arange(400) + 0.5) / 400 * np.pi - np.pi / 2
    grids = np.meshgrid(*[np.tan(angles)] * n_features, indexing="ij")
    points = np.column_stack([grid.ravel() for grid in grids])
    log_volume = np.log1p(points**2).sum(axis=1) + n_features * np.log(np.pi / 400)
    densities = masses_and_densities(posterior, labels, 2.0, 1.0, points)[1]
    np.testing.assert_allclose(np.exp(densities + log_volume[:, None]).sum(axis=0), 1.0, atol=1e-6)


@pytest.mark.parametrize("shapes", ["common", "own"])
def test_predictive_densities_are_densities(shapes: str) -> None:
    X = np.random.default_rng(5).normal(size=(12, 1))
    X[6:] += 8.0
    trace = ew.Sampler(X, model="I", shapes=shapes, seed=0).sample(5, 5, progress=False)
    angles = (np.arange(4000) + 0.5) / 4000 * np.pi - np.pi / 2
    points = np.tan(angles)[:, None]
    density = np.exp(log_predictive_density(trace, points))
    # Own shapes have tails as heavy as their smallest ν allows, so that sums converge slowly.
    assert (density * (1.0 + points[:, 0] ** 2)).sum() * np.pi / 4000 == pytest.approx(1.0, abs=1e-4)
