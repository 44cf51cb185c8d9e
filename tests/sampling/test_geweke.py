r"""Geweke's test of the whole sampler: getting it right, data included.

Two simulators draw (λ, B, θ, Y) jointly. One draws forward: λ from its prior, B given λ, θ, then Y given B
and θ. The other alternates one iteration of the sampler, (λ, B, θ) given Y, with a fresh Y given B and θ. If
the sampler is right, both have the same law.

That needs a likelihood which is the density of something that can be drawn. A profile likelihood is not one
in general, but here it is, of the data up to the model's scale: with :math:`Y \sim N(0, \Gamma \otimes
\Sigma)`,

* I: :math:`|\Gamma|^{-d/2} (\operatorname{tr} M)^{-nd/2}` is the density of the direction
  :math:`Y / \|Y\|` (the angular central Gaussian law on a sphere);
* II: :math:`|\Gamma|^{-d/2} \prod_r M_{rr}^{-n/2}` is that of the directions of the columns;
* III: :math:`|\Gamma|^{-d/2} |M|^{-n/2}` is that of :math:`Y (Y^T Y)^{-1/2}` (the matrix angular central
  Gaussian law on the orthonormal frames; Chikuse 1990).

These are the canonical coordinates but for one thing: data are also centred, and the density of centred data
is another. So the posterior is built here from directions that have *not* been centred. Nothing in the
kernels relies on centring, and everything else, the normalising constants included, is tested as it is.

Own shapes have a common scale Σ with an improper prior, from which no draw can be made. But it is the
invariant measure μ of the model's group, and that is enough. Write :math:`Y = U R` with the direction U and,
for model III, :math:`R = (Y^T Y)^{1/2}`. For Σ = I, as :math:`dY = c \, |R|^n \, d\mu(R^2) \, dU` and μ does
not change by inversion,

.. math:: p(Y \mid I) \, dY = c \; p(U \mid \Sigma = R^{-2}) \, d\mu(R^{-2}) \, dU .

So data drawn with Σ = I are a draw of U and of :math:`\Sigma = R^{-2}` from their joint law given partition,
θ and ν, which is proper: that of the posterior that chains sample, given U. (I and II alike, with one scale
or one a column.) Both simulators then draw (B, θ, ν, Σ, U).
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling.goodness import LEVEL, batch_error, chi_square, limit
from scipy import stats

import ewens_widgets as ew
from ewens_widgets.model.coordinates import on_exact_grid
from ewens_widgets.model.own_shapes import pack_sigma, packed_length, unpack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.moves import SplitMerge
from ewens_widgets.sampling.state import State

pytestmark = pytest.mark.nightly

Floats = NDArray[np.float64]
Labels = NDArray[np.integer]
N_OBJECTS, N_FEATURES = 6, 2
PRIOR = ew.Gamma(3.0, 2.0)
GRID = np.array([0.25, 2.0, 16.0])
THETA_PRIOR = (1.0 + GRID) ** -2.0 / np.sum((1.0 + GRID) ** -2.0)
SCHEDULES: dict[str, object] = {
    "default": [("informed-split-merge", 3), "gibbs"],
    "paper-1": [("reassign", 5)],
    "paper-2": [(SplitMerge(core_jump=0.1), 5)],
}
ALL = list(itertools.product(("I", "II", "III"), SCHEDULES))


def direction(Y: Floats, model: str, centre: str = "mean") -> Floats:
    """Data up to the scale of the model, in the normalisation of canonical coordinates.

    With an unknown centre the likelihood is the density of the direction of centred data.
    """
    if centre == "unknown":
        Y = Y - Y.mean(axis=0)
    if model == "I":
        unit = Y / np.sqrt(np.sum(Y * Y) / N_FEATURES)
    elif model == "II":
        unit = Y / np.sqrt(np.sum(Y * Y, axis=0))
    else:
        unit = np.linalg.svd(Y, full_matrices=False)[0]
    return on_exact_grid(np.ascontiguousarray(unit * np.sqrt(N_OBJECTS)))


def draw_data(labels: Labels, theta: float, rng: np.random.Generator) -> Floats:
    """Y ~ N(0, (I + θB) ⊗ I): a mean for each cluster, and noise."""
    means = np.sqrt(theta) * rng.normal(size=(N_OBJECTS, N_FEATURES))
    return means[labels] + rng.normal(size=(N_OBJECTS, N_FEATURES))


def draw_parameters(rng: np.random.Generator) -> tuple[float, Labels, int]:
    concentration = rng.gamma(PRIOR.shape, 1.0 / PRIOR.rate)
    labels = ew.ewens.sample(N_OBJECTS, concentration, rng)
    return concentration, labels, int(rng.choice(GRID.size, p=THETA_PRIOR))


class Chain:
    """Runs the sampler a few iterations at a time, each time on other data; only its generator goes on.

    `settings` of the posterior sabotage it where they are not those of the simulators.
    """

    def __init__(
        self, model: str, name: str, acceptance: str = "metropolis-hastings", **settings: object
    ) -> None:
        template = ew.Sampler(np.eye(N_OBJECTS, N_FEATURES), moves=SCHEDULES[name], seed=23, theta_grid=GRID)
        self.schedule, self.state = template.schedule, template.state
        self.model, self.acceptance = model, acceptance
        self.settings = {"prior": ew.priors.Ewens(PRIOR), "alpha": 1.0, "centre": "mean", **settings}

    def advance(
        self,
        coordinates: Floats,
        labels: Labels,
        concentration: float,
        steps: int,
        **shape: Any,  # noqa: ANN401 - fields of a state
    ) -> State:
        posterior = Posterior(
            coordinates=coordinates, model=self.model, theta_grid=GRID.copy(), **self.settings
        )
        start = dataclasses.replace(
            self.state,
            labels=labels.astype(np.int64),
            log_concentration=float(np.log(concentration)),
            **shape,
        )
        sampler = ew.Sampler.from_parts(
            posterior, self.schedule, None, self.acceptance, first=start, current=start
        )
        for _ in sampler.events(steps, block=steps):
            pass
        self.state = sampler.state
        return self.state


def statistics(labels: Labels, theta: float, concentration: float, coordinates: Floats) -> list[float]:
    """Of the partition, of θ, of λ, and of all with the data."""
    sizes = np.bincount(labels)
    products = coordinates @ coordinates.T
    return [
        sizes.size,
        float(np.sum(sizes**2)),
        float(labels[0] == labels[1]),
        np.log(theta),
        np.log(concentration),
        np.log(theta) * sizes.size,
        float(products[np.equal.outer(labels, labels)].sum()),
        float(np.log1p(products[0, 1] ** 2)),
    ]


@functools.cache
def forward(model: str, draws: int, theta_factor: float = 1.0, centre: str = "mean") -> Floats:
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(draws):
        concentration, labels, g = draw_parameters(rng)
        coordinates = direction(draw_data(labels, theta_factor * GRID[g], rng), model, centre)
        rows.append(statistics(labels, GRID[g], concentration, coordinates))
    return np.array(rows)


def alternating(chain: Chain, steps: int, theta_factor: float = 1.0, centre: str = "") -> Floats:
    rng = np.random.default_rng(6)
    concentration, labels, g = draw_parameters(rng)
    rows = []
    for _ in range(steps):
        Y = draw_data(labels, theta_factor * GRID[g], rng)
        coordinates = direction(Y, chain.model, centre or chain.settings["centre"])
        state = chain.advance(coordinates, labels, concentration, 1)
        labels, g, concentration = canonical_labels(state.labels), state.theta_index, state.concentration
        rows.append(statistics(labels, GRID[g], concentration, coordinates))
    return np.array(rows)


def scores(independent: Floats, chained: Floats) -> Floats:
    """Differences of means in standard errors; those of the chain take its autocorrelation into account."""
    errors = independent.std(axis=0, ddof=1) / np.sqrt(len(independent))
    chain_errors = np.array([batch_error(column) for column in chained.T])
    return (chained.mean(axis=0) - independent.mean(axis=0)) / np.hypot(errors, chain_errors)


@pytest.mark.parametrize("centre", ["mean", "unknown"])
@pytest.mark.parametrize(("model", "name"), ALL)
def test_both_simulators_have_the_same_law(model: str, name: str, centre: str) -> None:
    chained = alternating(Chain(model, name, centre=centre), 5000)
    found = scores(forward(model, 20_000, centre=centre), chained)
    assert np.abs(found).max() < limit(), found


@pytest.mark.parametrize(
    ("settings", "theta_factor"),
    [({"alpha": 8.0}, 1.0), ({"prior": ew.priors.Ewens(ew.Gamma(3.0, 0.7))}, 1.0), ({}, 5.0)],
    ids=["another prior of θ", "another prior of λ", "another likelihood"],
)
def test_a_sampler_of_another_posterior_is_found(settings: dict[str, object], theta_factor: float) -> None:
    chain = Chain("II", "default", **settings)
    found = scores(forward("II", 2500, theta_factor), alternating(chain, 1200, theta_factor))
    assert np.abs(found).max() > limit(), found


def joint_draws(chain: Chain, starts: int, steps: int) -> list[State]:
    """States a few iterations after independent exact draws of everything."""
    rng = np.random.default_rng(8)
    states = []
    for _ in range(starts):
        concentration, labels, g = draw_parameters(rng)
        coordinates = direction(draw_data(labels, GRID[g], rng), chain.model)
        states.append(chain.advance(coordinates, labels, concentration, steps))
    return states


def misfits(states: list[State]) -> dict[str, float]:
    """p-values of the priors of partition, θ and λ."""
    counts = np.bincount([state.labels.max() + 1 for state in states], minlength=N_OBJECTS + 1)
    prior = ew.exact_posterior(np.eye(N_OBJECTS, 2), concentration=PRIOR, theta_grid=[1e-9])
    thetas = np.bincount([state.theta_index for state in states], minlength=GRID.size)
    drawn = [state.concentration for state in states]
    return {
        "clusters": chi_square(counts, len(states) * prior.cluster_count_probabilities).p_value,
        "theta": chi_square(thetas, len(states) * THETA_PRIOR).p_value,
        "concentration": stats.kstest(drawn, stats.gamma(PRIOR.shape, scale=1.0 / PRIOR.rate).cdf).pvalue,
    }


@pytest.mark.parametrize(("model", "name"), ALL)
def test_exact_joint_draws_stay_so(model: str, name: str) -> None:
    """Like Geweke's, but each start is independent of the others."""
    found = misfits(joint_draws(Chain(model, name), 3500, 4))
    assert min(found.values()) > LEVEL, found


@pytest.mark.filterwarnings("ignore:acceptance=")
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("default", {"alpha": 8.0}),
        ("default", {"prior": ew.priors.Ewens(ew.Gamma(3.0, 0.7))}),
        ("paper-2", {"acceptance": "as-printed"}),
    ],
    ids=["another prior of θ", "another prior of λ", "the printed ratio"],
)
def test_a_sampler_that_is_wrong_changes_joint_draws(name: str, settings: dict[str, object]) -> None:
    assert min(misfits(joint_draws(Chain("II", name, **settings), 1000, 3)).values()) < LEVEL


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_the_likelihood_is_a_density_of_directions(model: str) -> None:
    """Its mean over evenly distributed directions is one, for any partition and θ. Centred, it is not."""
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 1, 1, 2])
    means, errors = [], []
    for centring in (0.0, 1.0):
        weights = []
        for _ in range(2000):
            Y = rng.normal(size=(N_OBJECTS, N_FEATURES))
            coordinates = direction(Y - centring * Y.mean(axis=0), model)
            posterior = Posterior(coordinates, model, ew.priors.Ewens(PRIOR), 1.0, np.array([0.25]))
            weights.append(np.exp(posterior.log_likelihoods(labels)[0]))
        means.append(np.mean(weights))
        errors.append(np.std(weights) / np.sqrt(len(weights)))
    assert abs(means[0] - 1.0) < 4.5 * errors[0]
    assert abs(means[1] - 1.0) > 9.0 * errors[1]


NUS = np.array([2.0, 16.0])
MIXTURE = ew.priors.FiniteMixture(0.7)
OWN: dict[str, Any] = {"shapes": "own", "nu_grid": NUS, "prior": MIXTURE}


@dataclasses.dataclass(frozen=True)
class OwnDraw:
    """Everything that the simulators of own shapes draw."""

    labels: Labels
    theta_index: int
    nu_index: int
    sigma: Floats
    coordinates: Floats

    def statistics(self, model: str) -> list[float]:
        sizes, log_nu = np.bincount(self.labels), float(np.log(NUS[self.nu_index]))
        packed, centre = np.split(self.sigma, [packed_length(N_FEATURES, model)])  # often without a centre
        sigma = unpack_sigma(packed, N_FEATURES, model)
        volume = float(np.linalg.det(sigma) if model == "III" else np.prod(sigma))
        same = np.equal.outer(self.labels, self.labels)
        return [
            sizes.size,
            float(np.sum(sizes**2)),
            float(self.labels[0] == self.labels[1]),
            float(np.log(GRID[self.theta_index])),
            log_nu,
            log_nu * sizes.size,
            float(np.log(volume)),
            float(np.log(volume)) * sizes.size,
            float(np.log(volume)) * log_nu,
            float((self.coordinates @ self.coordinates.T)[same].sum()),
            *([float(np.log1p(centre @ centre)), *np.arctan(centre)] if centre.size else []),
        ]


def own_directions(
    labels: Labels,
    g: int,
    v: int,
    model: str,
    rng: np.random.Generator,
    missing: float = 0.0,
    centre: str = "mean",
) -> OwnDraw:
    """Data and Σ given the rest; degrees of freedom that are missing sabotage the shapes of the clusters.

    With an unknown centre :math:`Y = 1 \\bar y^T + U R`; the centre 0 of the data is
    :math:`-R^{-T} \\bar y` in the coordinates U, whose flat measure goes with those of U and R.
    """
    Y = np.empty((N_OBJECTS, N_FEATURES))
    nu, columns = NUS[v], N_FEATURES
    for cluster in range(labels.max() + 1):
        if model == "III":
            # Bartlett: L Lᵀ is a Wishart matrix, and ν times its inverse what is wanted.
            L = np.tril(rng.normal(size=(columns, columns)), -1)
            L += np.diag(np.sqrt(rng.chisquare(nu + columns + 1.0 - missing - np.arange(columns))))
            root = np.sqrt(nu) * np.linalg.inv(L).T
        elif model == "II":
            root = np.diag(np.sqrt(nu / 2.0 / rng.gamma((nu + 2.0 - missing) / 2.0, size=columns)))
        else:
            variance = nu * columns / 2.0 / rng.gamma((nu * columns + 2.0 - missing) / 2.0)
            root = np.sqrt(variance) * np.eye(columns)
        members = np.flatnonzero(labels == cluster)
        mean = np.sqrt(GRID[g]) * rng.normal(size=columns)
        Y[members] = (mean + rng.normal(size=(members.size, columns))) @ root.T
    mean = Y.mean(axis=0) if centre == "unknown" else np.zeros(columns)
    Y -= mean
    if model == "III":
        values, vectors = np.linalg.eigh(Y.T @ Y / N_OBJECTS)
        scale, sigma = (vectors / np.sqrt(values)) @ vectors.T, (vectors / values) @ vectors.T
    else:
        by_column = np.sum(Y * Y, axis=0) / N_OBJECTS
        variances = np.full(columns, by_column.mean()) if model == "I" else by_column
        scale, sigma = np.diag(1.0 / np.sqrt(variances)), 1.0 / variances
        sigma = sigma[0] if model == "I" else sigma
    coordinates = on_exact_grid(np.ascontiguousarray(Y @ scale))
    behind = -mean @ scale if centre == "unknown" else np.empty(0)
    return OwnDraw(labels, g, v, np.append(pack_sigma(sigma, model), behind), coordinates)


def own_prior(rng: np.random.Generator) -> tuple[Labels, int, int]:
    labels = MIXTURE.sample(N_OBJECTS, rng)
    return labels, int(rng.choice(GRID.size, p=THETA_PRIOR)), int(rng.integers(NUS.size))


@functools.cache
def own_forward(model: str, draws: int, missing: float = 0.0, centre: str = "mean") -> Floats:
    rng = np.random.default_rng(15)
    made = (own_directions(*own_prior(rng), model, rng, missing, centre) for _ in range(draws))
    return np.array([drawn.statistics(model) for drawn in made])


def own_alternating(chain: Chain, steps: int, missing: float = 0.0) -> Floats:
    rng = np.random.default_rng(16)
    current, rows = own_prior(rng), []
    for _ in range(steps):
        drawn = own_directions(*current, chain.model, rng, missing, chain.settings["centre"])
        state = chain.advance(
            drawn.coordinates, drawn.labels, 1.0, 1, nu_index=drawn.nu_index, sigma=drawn.sigma
        )
        current = canonical_labels(state.labels), state.theta_index, state.nu_index
        rows.append(OwnDraw(*current, state.sigma, drawn.coordinates).statistics(chain.model))
    return np.array(rows)


@pytest.mark.parametrize("centre", ["mean", "unknown"])
@pytest.mark.parametrize(("model", "name"), ALL)
def test_both_simulators_of_own_shapes_have_the_same_law(model: str, name: str, centre: str) -> None:
    chained = own_alternating(Chain(model, name, **OWN, centre=centre), 4000)
    found = scores(own_forward(model, 12_000, centre=centre), chained)
    assert np.abs(found).max() < limit(), found


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_a_chain_that_knows_the_centre_is_found(model: str) -> None:
    """Both simulators draw centred data, but the sampler treats their mean as known."""
    chained = alternating(Chain(model, "default"), 5000, centre="unknown")
    assert np.abs(scores(forward(model, 20_000, centre="unknown"), chained)).max() > limit()


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_a_sampler_with_other_degrees_of_freedom_is_found(model: str) -> None:
    """Both simulators draw data with other shapes than the sampler believes in."""
    missing = 1.8 * (N_FEATURES if model == "I" else 1)  # Model I has the degrees of all columns in one.
    chained = own_alternating(Chain(model, "default", **OWN), 2500, missing=missing)
    assert np.abs(scores(own_forward(model, 6000, missing=missing), chained)).max() > limit()


def test_a_sampler_of_own_shapes_with_another_prior_is_found() -> None:
    chain = Chain("III", "default", **{**OWN, "prior": ew.priors.PitmanYor(1.3, 0.4)})
    assert np.abs(scores(own_forward("III", 6000), own_alternating(chain, 2500))).max() > limit()
