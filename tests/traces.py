"""Synthetic traces: draws that scatter around a known partition, made without a sampler."""

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.own_shapes import pack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Concentration
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.draws import Event
from ewens_widgets.sampling.trace import Trace


def random_partitions(
    rng: np.random.Generator, n_draws: int, n_objects: int, n_clusters: int
) -> NDArray[np.intp]:
    """Independent draws of labels, in canonical form."""
    return np.array(
        [canonical_labels(rng.integers(0, n_clusters, n_objects)) for _ in range(n_draws)], dtype=np.intp
    )


def wandering_partitions(
    rng: np.random.Generator, n_draws: int, n_objects: int, n_clusters: int, n_moved: int
) -> NDArray[np.intp]:
    """Draws like those of a chain: each moves a few objects of the one before it, or none."""
    labels, draws = rng.integers(0, n_clusters, n_objects), []
    for _ in range(n_draws):
        if rng.random() < 0.7:
            labels = labels.copy()
            labels[rng.integers(0, n_objects, n_moved)] = rng.integers(0, n_clusters + 1, n_moved)
        draws.append(canonical_labels(labels))
    return np.array(draws, dtype=np.intp)


def blobs(
    rng: np.random.Generator,
    n_objects: int = 30,
    n_features: int = 3,
    n_clusters: int = 3,
    spread: float = 4.0,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Gaussian clusters and their labels."""
    true = np.arange(n_objects, dtype=np.intp) % n_clusters
    centres = spread * rng.normal(size=(n_clusters, n_features))
    return rng.normal(size=(n_objects, n_features)) + centres[true], true


def synthetic_trace(
    labels: NDArray[np.integer],
    posterior: Posterior,
    rng: np.random.Generator,
    moves: tuple[str, ...] = ("gibbs", "split-merge"),
) -> Trace:
    """A trace with the given labels and their log posterior; the rest is drawn at random."""
    n_draws, n_values = len(labels), posterior.theta_grid.size
    made = rng.integers(1, 20, (len(moves), n_draws))
    columns = {
        "labels": labels,
        "theta_index": rng.integers(0, n_values, n_draws),
        "theta_weights": rng.dirichlet(np.ones(n_values), n_draws),
        "log_posterior": np.array([posterior.log_marginal(row) for row in labels]),
        "concentration": rng.gamma(2.0, 1.0, n_draws),
        "iterations": np.arange(1, n_draws + 1),
    }
    return Trace(posterior, moves, {**columns, "proposals": made.T, "acceptances": made.T // 2})


def own_trace(posterior: Posterior, rng: np.random.Generator, n_draws: int) -> Trace:
    """Draws of labels and parameters of own shapes at random, unlike each other."""
    d = posterior.n_features
    roots = 0.4 * np.eye(d) + 0.2 * rng.normal(size=(n_draws, d, d))
    full = roots @ np.swapaxes(roots, 1, 2) + 0.05 * np.eye(d)
    form = {"I": full[:, 0, 0], "II": np.diagonal(full, axis1=1, axis2=2), "III": full}[posterior.model]
    n_values = posterior.nu_grid.size
    columns = {
        "labels": random_partitions(rng, n_draws, posterior.n_objects, 6),
        "theta_index": rng.integers(4, 10, n_draws),
        "theta_weights": rng.dirichlet(np.ones(posterior.theta_grid.size), n_draws),
        "log_posterior": rng.normal(size=n_draws),
        "concentration": np.ones(n_draws),
        "iterations": np.arange(1, n_draws + 1),
        "nu_index": rng.integers(0, n_values, n_draws),
        "nu_weights": rng.dirichlet(np.ones(n_values), n_draws),
        "sigma": pack_sigma(form, posterior.model),
    }
    return Trace(posterior, (), columns)


def altered(trace: Trace, move_names: tuple[str, ...] | None = None, **columns: object) -> Trace:
    """A trace with other columns; other moves need their counts."""
    names = trace.move_names if move_names is None else move_names
    return Trace(trace.posterior, names, {**trace.columns(), **columns})


def blob_trace(
    seed: int = 0,
    n_objects: int = 30,
    n_draws: int = 40,
    model: str = "II",
    concentration: Concentration = 1.0,
    noise: float = 0.1,
) -> Trace:
    """Draws that scatter around the true clusters of three blobs."""
    rng = np.random.default_rng(seed)
    X, true = blobs(rng, n_objects)
    draws = np.repeat(true[None, :], n_draws, axis=0)
    moved = rng.random(draws.shape) < noise
    draws[moved] = rng.integers(0, 5, int(moved.sum()))
    labels = np.array([canonical_labels(row) for row in draws])
    return synthetic_trace(labels, Posterior.from_data(X, model=model, concentration=concentration), rng)


def events_of(trace: Trace) -> list[Event]:
    """The events that would have made a trace."""
    return list(trace)
