"""The random choices of an iteration, made again from the same stream of random numbers.

The kernels draw from a generator in a fixed order. From a copy of its state the same numbers come again, and
what is written here in plain NumPy chooses the same as the kernels did; the tests compare the two.
"""

import math
from typing import Any

import numpy as np

from ewens_widgets.analysis.explanation.proposal import Parameters
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Gamma
from ewens_widgets.sampling.state import State

__all__ = ["choose", "draw_parameters", "generator_at"]


def generator_at(state: dict[str, Any]) -> np.random.Generator:
    """Generator in a given state; drawing from it leaves the chain's own alone."""
    generator = np.random.Generator(np.random.PCG64(0))
    generator.bit_generator.state = state
    return generator


def choose(weights: FloatArray, uniform: float) -> int:
    """Pick a place in proportion to its weight; places of weight 0 are never picked."""
    places = np.flatnonzero(weights > 0.0)
    if not places.size:
        raise ValueError("there is nothing to choose from: no weight is positive.")
    sums = np.cumsum(weights[places])
    first = int(np.searchsorted(sums, uniform * sums[-1], side="right"))
    return int(places[min(first, places.size - 1)])


def draw_parameters(posterior: Posterior, state: State, rng: np.random.Generator) -> Parameters:
    """Draw θ from its conditional, and λ where it has a prior, as every iteration begins."""
    weights = posterior.theta_conditional(state.labels)
    theta_index = choose(weights, rng.random())
    log_concentration = state.log_concentration
    if isinstance(posterior.concentration, Gamma):
        n_clusters = int(state.labels.max()) + 1
        log_concentration = _draw_log_concentration(
            posterior.concentration, posterior.n_objects, n_clusters, state.concentration, rng
        )
    weights.setflags(write=False)
    theta = float(posterior.theta_grid[theta_index])
    return Parameters(theta, theta_index, weights, log_concentration)


def _draw_log_concentration(
    prior: Gamma, n_objects: int, n_clusters: int, concentration: float, rng: np.random.Generator
) -> float:
    """Draw λ with the auxiliary variable of Escobar & West (see `sampling.kernel.parameters`)."""
    auxiliary = rng.beta(concentration + 1.0, float(n_objects))
    inverse_scale = prior.rate - math.log(auxiliary)
    odds = (prior.shape + n_clusters - 1.0) / (n_objects * inverse_scale)
    extra = 1.0 if rng.random() * (1.0 + odds) < odds else 0.0
    drawn = rng.standard_gamma(prior.shape + n_clusters - 1.0 + extra) / inverse_scale
    return math.log(max(drawn, 1e-300))
