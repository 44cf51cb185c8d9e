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
from sampling.goodness import batch_error, limit

import ewens_widgets as ew
from ewens_widgets.model.coordinates import on_exact_grid
from ewens_widgets.model.own_shapes import pack_sigma, packed_length, unpack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.moves import SplitMerge

pytestmark = pytest.mark.nightly

Floats = NDArray[np.float64]
Labels = NDArray[np.integer]
MODELS = ("I", "II", "III")
N_OBJECTS, N_FEATURES = 6, 2
GAMMA = ew.Gamma(3.0, 2.0)
GRID, NUS = np.array([0.25, 2.0, 16.0]), np.array([2.0, 16.0])
THETA_PRIOR = (1.0 + GRID) ** -2.0 / np.sum((1.0 + GRID) ** -2.0)
PRIORS: dict[str, Any] = {"common": ew.priors.Ewens(GAMMA), "own": ew.priors.FiniteMixture(0.7)}
SCHEDULES: dict[str, object] = {
    "default": [("informed-split-merge", 3), "gibbs"],
    "paper-1": [("reassign", 5)],
    "paper-2": [(SplitMerge(core_jump=0.1), 5)],
}


@dataclasses.dataclass(frozen=True)
class Draw:
    """Everything that the simulators draw; Σ is packed, with an unknown centre behind it."""

    labels: Labels
    theta_index: int
    concentration: float = 1.0
    nu_index: int = 0
    sigma: Floats = dataclasses.field(default_factory=lambda: np.empty(0))
    coordinates: Floats = dataclasses.field(default_factory=lambda: np.empty((0, 0)))

    def statistics(self, model: str) -> list[float]:
        """Of the partition, of each parameter, and of all with the data."""
        sizes, products = np.bincount(self.labels), self.coordinates @ self.coordinates.T
        log_theta, log_nu = float(np.log(GRID[self.theta_index])), float(np.log(NUS[self.nu_index]))
        found = [sizes.size, float(np.sum(sizes**2)), float(self.labels[0] == self.labels[1])]
        found += [log_theta, log_theta * sizes.size]
        found.append(float(products[np.equal.outer(self.labels, self.labels)].sum()))
        if not self.sigma.size:
            return [*found, np.log(self.concentration), float(np.log1p(products[0, 1] ** 2))]
        packed, centre = np.split(self.sigma, [packed_length(N_FEATURES, model)])
        sigma = unpack_sigma(packed, N_FEATURES, model)
        log_volume = float(np.log(np.linalg.det(sigma) if model == "III" else np.prod(sigma)))
        found += [log_nu, log_nu * sizes.size, log_volume, log_volume * sizes.size, log_volume * log_nu]
        return found + ([float(np.log1p(centre @ centre)), *np.arctan(centre)] if centre.size else [])


@dataclasses.dataclass(frozen=True)
class Simulator:
    """Draws partition and parameters from their priors, and data given these; sabotaged by the last two."""

    model: str
    shapes: str = "common"
    centre: str = "mean"
    theta_factor: float = 1.0
    missing: float = 0.0

    def parameters(self, rng: np.random.Generator) -> Draw:
        if self.shapes == "common":
            concentration = rng.gamma(GAMMA.shape, 1.0 / GAMMA.rate)
            labels = ew.ewens.sample(N_OBJECTS, concentration, rng)
            return Draw(labels, int(rng.choice(GRID.size, p=THETA_PRIOR)), concentration)
        labels = PRIORS["own"].sample(N_OBJECTS, rng)
        place = int(rng.choice(GRID.size, p=THETA_PRIOR))
        return Draw(labels, place, nu_index=int(rng.integers(NUS.size)))

    def with_data(self, drawn: Draw, rng: np.random.Generator) -> Draw:
        if self.shapes == "own":
            return self._own_directions(drawn, rng)
        # Y ~ N(0, (I + θB) ⊗ I): a mean for each cluster, and noise.
        theta = self.theta_factor * GRID[drawn.theta_index]
        means = np.sqrt(theta) * rng.normal(size=(N_OBJECTS, N_FEATURES))
        Y = means[drawn.labels] + rng.normal(size=(N_OBJECTS, N_FEATURES))
        return dataclasses.replace(drawn, coordinates=direction(Y, self.model, self.centre))

    def _own_directions(self, drawn: Draw, rng: np.random.Generator) -> Draw:
        """Data and Σ given the rest; degrees of freedom that are missing sabotage the shapes of the clusters.

        With an unknown centre :math:`Y = 1 \\bar y^T + U R`; the centre 0 of the data is
        :math:`-R^{-T} \\bar y` in the coordinates U, whose flat measure goes with those of U and R.
        """
        labels, model, missing, columns = drawn.labels, self.model, self.missing, N_FEATURES
        nu, theta = NUS[drawn.nu_index], GRID[drawn.theta_index]
        Y = np.empty((N_OBJECTS, N_FEATURES))
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
            mean = np.sqrt(theta) * rng.normal(size=columns)
            Y[members] = (mean + rng.normal(size=(members.size, columns))) @ root.T
        mean = Y.mean(axis=0) if self.centre == "unknown" else np.zeros(columns)
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
        behind = -mean @ scale if self.centre == "unknown" else np.empty(0)
        packed = np.append(pack_sigma(sigma, model), behind)
        return dataclasses.replace(drawn, sigma=packed, coordinates=coordinates)


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


@functools.cache
def forward(simulator: Simulator, draws: int) -> Floats:
    rng = np.random.default_rng(5)
    made = (simulator.with_data(simulator.parameters(rng), rng) for _ in range(draws))
    return np.array([drawn.statistics(simulator.model) for drawn in made])


def alternating(simulator: Simulator, schedule: str, steps: int, acceptance: str, **believed: Any) -> Floats:  # noqa: ANN401 - settings of a posterior
    """One iteration on other data each time: only the generator goes on."""
    template = ew.Sampler(np.eye(N_OBJECTS, N_FEATURES), moves=SCHEDULES[schedule], seed=23, theta_grid=GRID)
    rng, state, rows = np.random.default_rng(6), template.state, []
    settings = {"prior": PRIORS[simulator.shapes], "alpha": 1.0, "centre": simulator.centre}
    if simulator.shapes == "own":
        settings |= {"shapes": "own", "nu_grid": NUS.copy()}
    current = simulator.parameters(rng)
    for _ in range(steps):
        drawn = simulator.with_data(current, rng)
        posterior = Posterior(
            coordinates=drawn.coordinates,
            model=simulator.model,
            theta_grid=GRID.copy(),
            **{**settings, **believed},
        )
        start = dataclasses.replace(
            state,
            labels=drawn.labels.astype(np.int64),
            log_concentration=float(np.log(drawn.concentration)),
            nu_index=drawn.nu_index,
            sigma=drawn.sigma,
        )
        parts = posterior, template.schedule, None, acceptance
        sampler = ew.Sampler.from_parts(*parts, first=start, current=start, warn=False)
        sampler.advance(1)
        state = sampler.state
        shape = state.nu_index, state.sigma
        current = Draw(
            canonical_labels(state.labels), state.theta_index, state.concentration, *shape, drawn.coordinates
        )
        rows.append(current.statistics(simulator.model))
    return np.array(rows)


def worst(
    simulator: Simulator,
    schedule: str = "default",
    draws: int = 6000,
    steps: int = 2500,
    acceptance: str = "metropolis-hastings",
    **believed: Any,  # noqa: ANN401 - settings of a posterior
) -> float:
    """Largest difference of means in standard errors; those of the chain know its autocorrelation."""
    independent = forward(simulator, draws)
    chained = alternating(simulator, schedule, steps, acceptance, **believed)
    errors = independent.std(axis=0, ddof=1) / np.sqrt(len(independent))
    chain_errors = np.array([batch_error(column) for column in chained.T])
    scores = (chained.mean(axis=0) - independent.mean(axis=0)) / np.hypot(errors, chain_errors)
    return float(np.abs(scores).max())


@pytest.mark.parametrize("centre", ["mean", "unknown"])
@pytest.mark.parametrize("shapes", ["common", "own"])
@pytest.mark.parametrize(("model", "schedule"), list(itertools.product(MODELS, SCHEDULES)))
def test_both_simulators_have_the_same_law(model: str, schedule: str, shapes: str, centre: str) -> None:
    assert worst(Simulator(model, shapes, centre), schedule, 15_000, 4500) < limit()


OTHER_LAMBDA = {"prior": ew.priors.Ewens(ew.Gamma(3.0, 0.7))}
WRONG: dict[str, tuple[Simulator, dict[str, Any]]] = {
    "another prior of θ": (Simulator("II"), {"alpha": 8.0}),
    "another prior of λ": (Simulator("II"), OTHER_LAMBDA),
    "another likelihood": (Simulator("II", theta_factor=5.0), {}),
    "the printed ratio": (Simulator("II"), {"schedule": "paper-2", "acceptance": "as-printed"}),
    "another prior of partitions": (Simulator("III", "own"), {"prior": ew.priors.PitmanYor(1.3, 0.4)}),
    # Both simulators draw centred data, but the sampler treats their mean as known.
    **{f"a known centre {m}": (Simulator(m, centre="unknown"), {"centre": "mean"}) for m in MODELS},
    # Data have other shapes than the sampler believes in; model I has the degrees of all columns in one.
    **{
        f"other degrees {m}": (Simulator(m, "own", missing=1.8 * (N_FEATURES if m == "I" else 1)), {})
        for m in MODELS
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_a_sampler_of_another_posterior_is_found(name: str) -> None:
    simulator, believed = WRONG[name]
    size = {"draws": 15_000, "steps": 5000} if "centre" in name else {}
    assert worst(simulator, **size, **believed) > limit()


@pytest.mark.parametrize("model", MODELS)
def test_the_likelihood_is_a_density_of_directions(model: str) -> None:
    """Its mean over evenly distributed directions is one, for any partition and θ. Centred, it is not."""
    rng, labels = np.random.default_rng(1), np.array([0, 0, 0, 1, 1, 2])
    means, errors = [], []
    for centring in (0.0, 1.0):
        weights = []
        for _ in range(2000):
            Y = rng.normal(size=(N_OBJECTS, N_FEATURES))
            coordinates = direction(Y - centring * Y.mean(axis=0), model)
            posterior = Posterior(coordinates, model, PRIORS["common"], 1.0, np.array([0.25]))
            weights.append(np.exp(posterior.log_likelihoods(labels)[0]))
        means.append(np.mean(weights))
        errors.append(np.std(weights) / np.sqrt(len(weights)))
    assert abs(means[0] - 1.0) < 4.5 * errors[0]
    assert abs(means[1] - 1.0) > 9.0 * errors[1]
