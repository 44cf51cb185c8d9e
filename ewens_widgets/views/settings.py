"""What a chain is made from, as one frozen value."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.datasets import Dataset
from ewens_widgets.model.concentration import Concentration
from ewens_widgets.model.theta import default_theta_grid
from ewens_widgets.sampling.moves.schedule import Repeated, resolve_schedule
from ewens_widgets.sampling.sampler import Sampler

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Arguments of the sampler. Equal settings and data give the same chain."""

    model: str = "II"
    concentration: Concentration = 1.0
    alpha: float = 1.0
    theta_grid: Any = None
    moves: tuple[Repeated, ...] = ()
    initial: Any = "singletons"
    metric: str = "canonical"
    acceptance: str = "metropolis-hastings"
    seed: int | None = 0

    def __post_init__(self) -> None:
        """Bring equal settings to equal values."""
        grid: ArrayLike = default_theta_grid() if self.theta_grid is None else self.theta_grid
        object.__setattr__(self, "theta_grid", tuple(np.ravel(grid).astype(float).tolist()))
        object.__setattr__(self, "moves", resolve_schedule(self.moves or "default"))
        if not isinstance(self.initial, str):
            object.__setattr__(self, "initial", tuple(np.ravel(self.initial).tolist()))

    def make_sampler(self, data: Dataset) -> tuple[Sampler, str]:
        """Make the sampler; return it with what it warned about."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sampler = Sampler(
                data,
                model=self.model,
                concentration=self.concentration,
                alpha=self.alpha,
                theta_grid=self.theta_grid,
                moves=self.moves,
                initial=self.initial,
                metric=self.metric,
                acceptance=self.acceptance,
                seed=self.seed,
            )
        return sampler, " ".join(str(warning.message) for warning in caught)
