"""Short chains of every schedule and model, family and prior, to be compared between ways of running them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sampling.exact import PRIORS

import ewens_widgets as ew
from ewens_widgets.sampling.moves import SplitMerge

SCHEDULES: dict[str, Any] = {
    "default": "default",
    "paper-1": "paper-1",
    "paper-2": "paper-2",
    "mixed": [
        ("split-merge", 3),
        "gibbs",
        (SplitMerge("minimum", "hausdorff", core_jump=0.3), 5),
        "reassign",
    ],
    "maximum": [(SplitMerge("maximum", "minimum"), 4), (SplitMerge("average", "maximum"), 4)],
}
LENGTHS = {"default": 12, "paper-1": 80, "paper-2": 80, "mixed": 20, "maximum": 20}


def all_settings() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Names, schedules and settings of the chains: every schedule and model, family and prior."""
    for model in ("I", "II", "III"):
        for name in SCHEDULES:
            for kind, concentration in (("fixed", 1.5), ("gamma", ew.Gamma(2.0, 1.0))):
                yield f"{model} {name} {kind}", name, {"model": model, "concentration": concentration}
            yield f"{model} {name} own", name, {"model": model, "shapes": "own"}
        for shapes in ("common", "own"):
            for kind, prior in PRIORS.items():
                settings = {"model": model, "shapes": shapes, "prior": prior, "initial": "one-cluster"}
                yield f"{model} mixed {shapes} {kind}", "mixed", settings


def all_chains() -> dict[str, dict[str, list[Any]]]:
    """Short chains of all settings; the parameters are drawn too."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 2)) + 3.0 * rng.integers(0, 2, (9, 1))
    found = {}
    for title, name, settings in all_settings():
        sampler = ew.Sampler(X, moves=SCHEDULES[name], seed=12, **settings)
        events = list(sampler.events(LENGTHS[name], block=1))
        found[title] = {
            "labels": [event.labels.tolist() for event in events],
            "theta_index": [event.theta_index for event in events],
            "nu_index": [int(event.nu_index) for event in events],
            "sigma": [event.sigma.tolist() for event in events],
            "log_posterior": [event.log_posterior for event in events],
            "concentration": [event.concentration for event in events],
            "theta_weights": [event.theta_weights.tolist() for event in events],
            "moves": [[list(move) for move in event.moves] for event in events],
            "log_ratio": [event.log_ratio for event in events],
            "generator": [sampler.state.generator["state"]["state"]],
        }
    return found
