"""Own shapes: the draw of their common scale Σ, their limit, and statistics that stay those of the partition.

(Their whole posterior is in `test_exact_chains`, their moves are in `test_exact_moves`.)
"""

from collections.abc import Sequence

import numpy as np
import oracle
import pytest
from sampling.exact import MODELS, PRIORS, Floats
from sampling.goodness import batch_score, limit
from sampling.test_exact_chains import DATA, THETAS
from scipy.special import digamma

import ewens_widgets as ew
from ewens_widgets.model.own_shapes import statistics_of, unpack_sigma
from ewens_widgets.sampling.kernel.workspace import CLUSTERS
from ewens_widgets.sampling.moves import SplitMerge

FIVE = DATA["column"]
KEEP = SplitMerge(probabilities=(0.0, 0.0, 1.0))


def test_likeness_without_limit_is_the_common_family() -> None:
    """ν → ∞ leaves one shape, and integrating over it leaves the profile likelihood: the gap falls as 1/ν."""
    common = oracle.exact_posterior(FIVE, "II", 1.3, 1.0, THETAS)
    likeness = (10.0, 100.0, 1e3, 1e4, 1e5)
    gaps = []
    for nu in likeness:
        own = oracle.exact_own_posterior(FIVE, PRIORS["Ewens"].log_pmf, 1.0, THETAS, (nu,))
        gaps.append(0.5 * sum(np.abs(own[labels][:, 0] - common[labels]).sum() for labels in common))
    assert gaps[0] > 0.01
    assert gaps[-1] < 1e-4
    np.testing.assert_allclose(np.diff(np.log(gaps[1:])), -np.log(10.0), atol=0.1)


LABELS = np.array([0, 0, 0, 1, 1, 2, 1, 0])


def keeping(model: str, n_features: int, labels: Sequence[int], nu: float) -> tuple[ew.Sampler, Floats]:
    """Scales that a chain draws for one partition, one θ and one ν."""
    X = np.random.default_rng(9).normal(size=(len(labels), n_features))
    settings = {"shapes": "own", "moves": [KEEP], "theta_grid": [2.0], "nu_grid": [nu], "seed": 5}
    sampler = ew.Sampler(X, model=model, initial=labels, **settings)
    return sampler, sampler.sample(30_000, burn_in=100, progress=False).sigma


@pytest.mark.parametrize(("model", "n_features"), [("I", 1), ("I", 3), ("II", 1), ("II", 2), ("III", 1)])
def test_each_variance_has_its_conditional_law(model: str, n_features: int) -> None:
    """Given all else, the variances of model II are independent, so that one integral each will do."""
    sampler, drawn = keeping(model, n_features, LABELS, 4.0)
    log_values = np.linspace(-12.0, 10.0, 1101)
    for column in range(drawn.shape[1]):
        log_density = np.empty_like(log_values)
        for k, log_value in enumerate(log_values):
            sigma = np.ones(drawn.shape[1])
            sigma[column] = np.exp(log_value)
            log_density[k] = sampler.posterior.log_likelihoods(LABELS, 0, sigma)[0]
        scores = {}
        for power in (0.0, 0.5):
            weights = np.exp(log_density - log_density.max() + power * log_values)
            law = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
            places = np.searchsorted(law, (0.1, 0.5, 0.9))
            scores[power] = [batch_score(np.log(drawn[:, column]) <= log_values[k], law[k]) for k in places]
        assert np.abs(scores[0.0]).max() < limit(), scores
        assert np.abs(scores[0.5]).max() > 2 * limit(), scores


@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_the_scale_of_one_cluster_is_a_beta_matrix(n_features: int) -> None:
    r"""With one cluster :math:`\nu\Sigma` is a matrix beta variate of the second kind with scale S.

    So are known :math:`E \log|\nu\Sigma S^{-1}| = \sum_i \psi(\tfrac{a-i}2) - \psi(\tfrac{n-i}2)` and
    :math:`E \operatorname{tr} \nu\Sigma S^{-1} = d a / (n - d - 1)`.
    """
    nu, n_objects = 3.0, 12
    sampler, drawn = keeping("III", n_features, [0] * n_objects, nu)
    squares = sampler.posterior.coordinates.T @ sampler.posterior.coordinates
    ratios = nu * np.linalg.solve(squares, unpack_sigma(drawn, n_features, "III"))
    columns = np.arange(n_features)

    def log_volume(degrees: float) -> float:
        return float(np.sum(digamma((degrees - columns) / 2.0) - digamma((n_objects - columns) / 2.0)))

    degrees = nu + n_features + 1.0
    volumes = np.linalg.slogdet(ratios)[1]
    assert abs(batch_score(volumes, log_volume(degrees))) < limit()
    assert abs(batch_score(volumes, log_volume(degrees - 1.0))) > 2 * limit()
    traces = np.trace(ratios, axis1=1, axis2=2)
    assert abs(batch_score(traces, n_features * degrees / (n_objects - n_features - 1.0))) < limit()


WALKS = [("gibbs", 40), ("informed-split-merge", 400), ("reassign", 800), ("split-merge", 400)]


def walk(model: str, iterations: int, moves: list[object]) -> None:
    """Many changes between two draws of Σ, after each of which the statistics are compared."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3)) * [1.0, 3.0, 0.2] + 2.0 * rng.integers(0, 3, (30, 1))
    sampler = ew.Sampler(X, model=model, shapes="own", moves=moves, seed=8, prior=PRIORS["Pitman–Yor"])
    changes = 0
    for event in sampler.events(iterations, block=1):
        changes += sum(move.acceptances for move in event.moves)
        kept, labels = sampler._driver._workspace, sampler.state.labels
        n_clusters = int(kept.integers[CLUSTERS])
        fresh = statistics_of(sampler.posterior.coordinates, labels, model)
        np.testing.assert_array_equal(kept.sizes[:n_clusters], fresh.sizes)
        np.testing.assert_array_equal(kept.sums[:n_clusters], fresh.sums)
        form = {"I": lambda s: s[:, 0, 0], "II": lambda s: s[:, 0], "III": lambda s: s}[model]
        np.testing.assert_allclose(form(kept.squares[:n_clusters]), fresh.squares, rtol=1e-9, atol=1e-9)
        kappa = 1.0 / event.theta + fresh.sizes
        sums, sigma = fresh.sums, unpack_sigma(event.sigma, 3, model)
        if model == "III":
            volume = (
                event.nu * sigma + fresh.squares - sums[:, :, None] * sums[:, None] / kappa[:, None, None]
            )
            np.testing.assert_allclose(kept.log_volume[:n_clusters], np.linalg.slogdet(volume)[1], atol=1e-9)
            products = kept.shape[:n_clusters] @ volume
            np.testing.assert_allclose(products, np.tile(np.eye(3), (n_clusters, 1, 1)), atol=1e-9)
        elif model == "II":
            volume = event.nu * sigma + fresh.squares - sums**2 / kappa[:, None]
            np.testing.assert_allclose(kept.shape[:n_clusters, 0], volume, rtol=1e-9)
        else:
            volume = 3.0 * event.nu * sigma + fresh.squares - np.sum(sums**2, axis=1) / kappa
            np.testing.assert_allclose(kept.shape[:n_clusters, 0, 0], volume, rtol=1e-9)
        expected = sampler.posterior.log_density(
            event.labels, event.theta_index, None, int(event.nu_index), event.sigma
        )
        assert event.log_posterior == pytest.approx(expected, abs=1e-8)
    assert changes > 20 * iterations


@pytest.mark.parametrize("model", MODELS)
def test_statistics_stay_those_of_the_partition(model: str) -> None:
    walk(model, 40, WALKS)


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS)
def test_statistics_stay_those_of_the_partition_for_long(model: str) -> None:
    """Ten million changes that were tried."""
    walk(model, 500, [(name, 8 * repeats) for name, repeats in WALKS])
