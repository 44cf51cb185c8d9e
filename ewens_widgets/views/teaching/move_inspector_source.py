"""What a move inspector looks at: a sampler that was given, or one that is made for data."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.views.explorer.data_panel import as_dataset

__all__ = ["sampler_and_data"]


def sampler_and_data(
    source: Sampler | Dataset | ArrayLike | None, data: Dataset | ArrayLike | None, settings: dict[str, Any]
) -> tuple[Sampler, Dataset]:
    """Sampler to inspect, and the data to draw: those given, or what can be made of what is given."""
    if isinstance(source, Sampler):
        if settings:
            raise TypeError(
                f"the sampler has its settings already; leave out {', '.join(sorted(settings))}, or give "
                "data instead of a sampler."
            )
        return source, _shown_data(source, data)
    if data is not None:
        raise TypeError("data= is for a sampler, to draw it in other units; give the data alone instead.")
    dataset = as_dataset(source)
    return Sampler(dataset, **{"initial": "k-means", **settings}), dataset


def _shown_data(sampler: Sampler, data: Dataset | ArrayLike | None) -> Dataset:
    if data is None:
        X = sampler.posterior.coordinates if sampler.raw_data is None else sampler.raw_data
        names = tuple(f"coordinate {place + 1}" for place in range(X.shape[1]))
        return Dataset(X=np.array(X), name="the sampler's data", feature_names=names)
    shown = as_dataset(data)
    if shown.n_objects != sampler.posterior.n_objects:
        raise ValueError(
            f"data has {shown.n_objects} rows, but the sampler {sampler.posterior.n_objects} objects; give "
            "the data that the sampler was made from."
        )
    return shown
