"""A posterior as settings and arrays that an archive can hold, and back, without changing a bit of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import check_data, check_model, check_positive, check_theta_grid
from ewens_widgets.model.concentration import Concentration, Gamma, check_concentration
from ewens_widgets.model.coordinates import check_canonical
from ewens_widgets.model.posterior import Posterior

__all__ = ["pack_posterior", "same_posterior", "unpack_posterior"]


def pack_posterior(posterior: Posterior) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a posterior into settings and arrays."""
    prior = posterior.concentration
    concentration: Any = {"shape": prior.shape, "rate": prior.rate} if isinstance(prior, Gamma) else prior
    settings = {"model": posterior.model, "concentration": concentration, "alpha": posterior.alpha}
    return settings, {"coordinates": posterior.coordinates, "theta_grid": posterior.theta_grid}


def unpack_posterior(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Posterior:
    """Put a posterior together again; its coordinates are taken as they are, not made canonical anew."""
    given = settings["concentration"]
    concentration: Concentration = Gamma(**given) if isinstance(given, dict) else given
    model = check_model(settings["model"])
    coordinates = np.ascontiguousarray(check_data(arrays["coordinates"]))
    check_canonical(coordinates, model)
    return Posterior(
        coordinates=coordinates,
        model=model,
        concentration=check_concentration(concentration),
        alpha=check_positive("alpha", settings["alpha"]),
        theta_grid=check_theta_grid(arrays["theta_grid"]),
    )


def same_posterior(first: Posterior, second: Posterior) -> bool:
    """Whether two posteriors are of the same data under the same settings."""
    if first is second:
        return True
    first_settings, first_arrays = pack_posterior(first)
    second_settings, second_arrays = pack_posterior(second)
    return first_settings == second_settings and all(
        np.array_equal(first_arrays[name], second_arrays[name]) for name in first_arrays
    )
