"""The state of a chain, the states that chains start from, and how a chain is saved.

A state is what the next iteration needs, and nothing else. Everything else that a sampler holds is a function
of the state. So the state is small, it can be saved without pickle, and a chain that goes on from it is the
same bit for bit. The first state has a partition (the paper's singletons, one cluster, k-means, a draw from
the prior, or given labels), θ and ν in the middle of their grids, the mean of λ, and half the total variance
for Σ. Chains from dispersed starts show whether a run has converged.

A saved sampler is its posterior, its schedule, the state that it started from and the one that it has
reached. A saved session adds the data as they were given, every recorded iteration, and the settings of the
page.
"""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset
from ewens_widgets.model.checks import FloatArray, check_data
from ewens_widgets.model.own_shapes import SMALLEST_PIVOT, pack_sigma
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Ewens, Gamma
from ewens_widgets.partition import check_labels
from ewens_widgets.sampling import archive
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.kernel.workspace import AnyProblem, AnyWorkspace, make_workspace
from ewens_widgets.sampling.moves.schedule import from_plain, resolve_schedule, to_plain
from ewens_widgets.sampling.trace import pack_draws, unpack_draws

if TYPE_CHECKING:
    from ewens_widgets.sampling.sampler import Sampler

INITIAL = ("singletons", "one-cluster", "k-means", "prior")
MIXTURE = "mixture"
LARGEST_K_MEANS = 50
_MIXTURES, _STARTS, _ROUNDS, _STEPS = (2, 3, 4), 100, 5, 60
_WORK = 1e8  # Most additions of a step of all starts.
LAST_ITERATION = 2**62  # Iterations are counted in 64 bits.
LOG_RANGE = (-745.0, 709.7)  # Logarithms of positive numbers.


@dataclass(frozen=True, eq=False)
class State:
    """Where a chain stands between two iterations.

    Everything else that a sampler holds (cluster sums, scatter, cached distances) is a function of this,
    computed without rounding that depends on the past; a chain resumed from a state continues bit for bit.

    Attributes
    ----------
    labels
        Cluster of each object, as a row of the kernel's arrays. Their order decides the order of summation,
        so it is part of the state.
    theta_index
        Index of θ on its grid.
    log_concentration
        Logarithm of λ.
    iteration
        Number of iterations done.
    generator
        State of the random number generator (PCG64).
    nu_index, sigma
        Of own shapes: index of ν on its grid, and the packed scale Σ, which is empty for common shapes;
        behind it an unknown centre (of own shapes) and imputed cells (of both).
    """

    labels: NDArray[np.int64]
    theta_index: int
    log_concentration: float
    iteration: int
    generator: dict[str, Any]
    nu_index: int = 0
    sigma: FloatArray = field(default_factory=lambda: np.empty(0))

    def workspace(self, problem: AnyProblem) -> AnyWorkspace:
        """A workspace of the kernels that stands where the chain does."""
        return make_workspace(
            problem, self.labels, self.theta_index, self.log_concentration, self.nu_index, self.sigma
        )

    @property
    def concentration(self) -> float:
        """Concentration λ of the Ewens prior."""
        return float(np.exp(self.log_concentration))


def initial_labels(
    posterior: Posterior, initial: str | ArrayLike | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Canonical labels of the partition that a chain starts from.

    Parameters
    ----------
    posterior
        The posterior to be sampled.
    initial
        ``"singletons"`` (the paper's), ``"one-cluster"``, ``"k-means"`` (k-means++ in canonical coordinates
        with about as many clusters as the prior expects), ``"prior"`` (a draw from the prior), ``"mixture"``
        (two to four Gaussians with one covariance, for tables with many columns; k-means if one Gaussian is
        better), or labels; None for singletons under the paper's family and prior, and for one cluster under
        others.
    rng
        Used by ``"k-means"``, ``"prior"`` and ``"mixture"``.
    """
    n_objects, most = posterior.n_objects, posterior.prior.most_clusters
    if initial is None:
        # One cluster falls apart in few iterations where clusters have own shapes; singletons have none yet.
        is_papers = posterior.shapes == "common" and posterior.concentration is not None
        initial = "singletons" if is_papers else "one-cluster"
    if not isinstance(initial, str):
        labels = check_labels(initial, n_objects)
    elif initial == "prior":
        return posterior.prior.sample(n_objects, rng)
    elif initial == MIXTURE:
        return _mixture(posterior, rng)
    elif initial == "k-means":
        return _k_means(posterior, rng)
    elif initial in INITIAL:
        labels = np.arange(n_objects) * (initial == "singletons")
    else:
        raise ValueError(
            f"initial must be one of {', '.join([*INITIAL, MIXTURE])}, or one label an object; "
            f"got {initial!r}."
        )
    if (n_clusters := int(labels.max()) + 1) > most:
        raise ValueError(
            f"the prior allows at most {most:.0f} clusters, but the chain is to start from {n_clusters}; use "
            'initial="one-cluster", "k-means" or "prior".'
        )
    return labels


def first_state(posterior: Posterior, initial: str | ArrayLike | None, rng: np.random.Generator) -> State:
    """State before the first iteration: a partition, and parameters in the middle of what they can be."""
    labels, nu_index = initial_labels(posterior, initial, rng), posterior.nu_grid.size // 2
    sigma = np.zeros(posterior.sigma_length)  # with a centre of zero behind Σ, if that is unknown
    if posterior.shapes == "own":  # Half of the total variance, which is 1 in canonical coordinates.
        scale = 0.5 * np.eye(posterior.n_features)
        if isinstance(initial, str) and initial == MIXTURE:
            scale, nu_index = _within(posterior.coordinates, labels), posterior.nu_grid.size - 1
        form = {"I": np.trace(scale) / len(scale), "II": np.diag(scale), "III": scale}[posterior.model]
        packed = pack_sigma(form, posterior.model)
        sigma[: packed.size] = packed
    cells = sigma[sigma.size - len(posterior.gaps) :]
    for column in np.unique(posterior.gaps[:, 1]):
        among = posterior.gaps[:, 1] == column
        observed = np.delete(posterior.coordinates[:, column], posterior.gaps[among, 0])
        cells[among] = rng.choice(observed, int(among.sum()))
    return State(
        labels=labels.astype(np.int64),
        theta_index=posterior.theta_grid.size // 2,
        log_concentration=posterior.first_log_concentration,
        iteration=0,
        generator=dict(rng.bit_generator.state),
        nu_index=nu_index,
        sigma=sigma,
    )


def _k_means(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.intp]:
    """Cluster by k-means, whose seeding depends on distances alone, so it is invariant like the model."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    prior, value = posterior.prior, posterior.concentration
    mean = Ewens(value.mean) if isinstance(value, Gamma) else prior
    expected = round(mean.expected_clusters(posterior.n_objects))
    count = int(min(max(2, expected), LARGEST_K_MEANS, prior.most_clusters, posterior.n_objects))
    seed = int(rng.integers(2**31 - 1))
    method = KMeans(n_clusters=count, init="k-means++", n_init=1, max_iter=20, random_state=seed)
    with warnings.catch_warnings():
        # Rows that are equal, or equal but for rounding, may leave fewer clusters: as good a start.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = method.fit(posterior.coordinates)
    return check_labels(found.labels_)


def _mixture(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.intp]:
    """Cluster by a mixture of Gaussians with one covariance, fitted by expectation and maximisation.

    With many columns, partitions that separate nothing but noise are local maxima, and about one random start
    in a hundred leads to the clusters. So there are many, all at once, until the Bayesian information
    criterion prefers one of them to a single Gaussian.
    """
    Y, most = posterior.coordinates, posterior.prior.most_clusters
    n_objects, d = Y.shape
    starts = min(_STARTS, int(_WORK / (d * (n_objects + d) * d)))
    counts = [count for count in _MIXTURES if starts and count <= min(most, n_objects)]
    for _ in range(_ROUNDS):
        found = [_best_mixture(Y, count, starts, rng) for count in counts]
        least = min(found, key=lambda each: each[0], default=(0.0, np.empty(0)))
        if least[0] < 0.0:
            return check_labels(least[1])
    return _k_means(posterior, rng)


def _best_mixture(
    Y: FloatArray, count: int, starts: int, rng: np.random.Generator
) -> tuple[float, NDArray[np.intp]]:
    """The best of some fits, and how much larger its criterion is than that of one Gaussian."""
    n_objects, d = Y.shape
    total, ridge = Y.T @ Y / n_objects, 1e-6 * np.eye(d)
    shares = rng.dirichlet(np.ones(count), size=(starts, n_objects))
    for step in range(_STEPS + 1):
        sizes = shares.sum(axis=1) + 1e-9
        sums = shares.swapaxes(1, 2) @ Y
        scaled = sums / np.sqrt(sizes * n_objects)[:, :, None]
        within = total - scaled.swapaxes(1, 2) @ scaled + ridge
        if step == _STEPS:
            break
        centres = sums / sizes[:, :, None]
        slopes = np.linalg.solve(within, centres.swapaxes(1, 2))
        logs = Y @ slopes - 0.5 * np.einsum("skd,sdk->sk", centres, slopes)[:, None]
        shares = softmax(logs + np.log(sizes)[:, None], axis=2)
    # The criterion of the classification likelihood; whitened, the total variance has determinant 1.
    gains = np.linalg.slogdet(within)[1] - np.linalg.slogdet(total + ridge)[1]
    entropy = -2.0 * (sizes * np.log(sizes / n_objects)).sum(axis=1)
    criteria = n_objects * gains + entropy + (count - 1) * (d + 1) * np.log(n_objects)
    best = int(criteria.argmin())
    return float(criteria[best]), np.asarray(shares[best].argmax(axis=1), dtype=np.intp)


def _within(Y: FloatArray, labels: NDArray[np.integer]) -> FloatArray:
    """Covariance within clusters, of which a thousandth is the total variance, 1."""
    members = np.eye(int(labels.max()) + 1)[labels]
    gaps = Y - (members @ (members.T @ Y / members.sum(axis=0)[:, None]))
    return np.asarray(0.999 * gaps.T @ gaps / len(Y) + 0.001 * np.eye(Y.shape[1]), dtype=np.float64)


def pack_state(state: State) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Settings and array that a file needs to hold a state."""
    settings = {
        "theta_index": state.theta_index,
        "log_concentration": state.log_concentration.hex(),
        "iteration": state.iteration,
        "generator": state.generator,
        "nu_index": state.nu_index,
        "sigma": [value.hex() for value in state.sigma.tolist()],
    }
    return settings, state.labels


def unpack_state(settings: Mapping[str, Any], labels: NDArray[Any], posterior: Posterior) -> State:
    """Put a state together again, or say which part does not fit."""
    n_objects = posterior.n_objects
    log_concentration = float.fromhex(settings["log_concentration"])
    low, high = (
        LOG_RANGE
        if posterior.samples_concentration
        else posterior.first_log_concentration + np.array([-1e-9, 1e-9])
    )
    theta_index, nu_index, iteration = (
        int(settings[name]) for name in ("theta_index", "nu_index", "iteration")
    )
    sigma = np.array([float.fromhex(number) for number in settings["sigma"]], dtype=np.float64)
    generator: Any = np.random.PCG64(0)
    generator.state = settings["generator"]  # raises for anything but the state of one
    sound = {
        "labels": labels.shape == (n_objects,)
        and labels.dtype.kind in "iu"
        and 0 <= labels.min() <= labels.max() < n_objects
        and bool(np.all(np.bincount(labels.astype(np.intp)) > 0)),
        "θ": 0 <= theta_index < posterior.theta_grid.size,
        "λ": low < log_concentration < high,
        "ν": 0 <= nu_index < posterior.nu_grid.size,
        "Σ": _is_scale(sigma, posterior),
        "iteration": 0 <= iteration < LAST_ITERATION,
    }
    if wrong := [name for name, is_sound in sound.items() if not is_sound]:
        raise ValueError(
            f"its state is inconsistent: {', '.join(wrong)} cannot be those of a chain on its data"
        )
    own = dict(settings["generator"])
    return State(labels.astype(np.int64), theta_index, log_concentration, iteration, own, nu_index, sigma)


def _is_scale(sigma: FloatArray, posterior: Posterior) -> bool:
    """Whether this is a packed scale of the posterior: positive definite, and of the right length."""
    if sigma.shape != (posterior.sigma_length,) or not np.all(np.isfinite(sigma)):
        return False
    if posterior.shapes == "common":
        return True
    form = posterior.scale(sigma)
    if posterior.model != "III":
        return bool(np.all(form >= SMALLEST_PIVOT))
    try:
        pivots = np.diag(np.linalg.cholesky(form)) ** 2
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() >= 0.5 * SMALLEST_PIVOT)  # half: it may have been rounded differently


def pack_sampler(sampler: "Sampler") -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a sampler into settings and arrays: posterior, schedule, first and current state."""
    settings, arrays = archive.pack_posterior(sampler.posterior)
    current, labels = pack_state(sampler.state)
    first, first_labels = pack_state(sampler.first_state)
    metadata = {
        "posterior": settings,
        "moves": to_plain(sampler.schedule),
        "acceptance": sampler.acceptance,
        "state": current,
        "first": first,
    }
    raw = {} if sampler.raw_data is None else {"raw": sampler.raw_data}
    return metadata, {**arrays, "labels": labels, "first_labels": first_labels, **raw}


def unpack_sampler(
    settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], kind: "type[Sampler]"
) -> "Sampler":
    """Put a sampler together again; what does not fit together is refused by one of several errors."""
    posterior, raw = archive.unpack_posterior(settings["posterior"], arrays), None
    if "raw" in arrays:  # other rows would lead the kernels astray
        raw = np.ascontiguousarray(check_data(arrays["raw"]))
        if len(raw) != posterior.n_objects:
            raise ValueError(f"its data have {len(raw)} rows, but its coordinates {posterior.n_objects}")
    first, current = (
        unpack_state(settings[part], arrays[labels], posterior)
        for part, labels in (("first", "first_labels"), ("state", "labels"))
    )
    schedule = resolve_schedule(from_plain(settings["moves"]))
    return kind.from_parts(posterior, schedule, raw, settings["acceptance"], first=first, current=current)


@dataclass(frozen=True)
class Session:
    """A run that can be continued: data, sampler, recorded draws, and settings of the page."""

    dataset: Dataset
    sampler: "Sampler"
    draws: DrawTable
    settings: dict[str, Any]


_TEXTS = ("name", "description", "feature_names", "label_names", "row_names", "same_units", "noun")


def pack_session(session: Session) -> bytes:
    """Write a session."""
    data = session.dataset
    known = {"X": data.X} | ({} if data.labels is None else {"labels": data.labels})
    (sampler, arrays), (_, draws) = pack_sampler(session.sampler), pack_draws(session.draws)
    texts = {name: getattr(data, name) for name in _TEXTS}
    if data.kinds is not None:
        texts["kinds"] = [asdict(kind) for kind in data.kinds]
    metadata = {
        "data": texts,
        "sampler": sampler,
        "settings": session.settings,
    }
    parts = {
        **archive.prefixed("data", known),
        **archive.prefixed("sampler", arrays),
        **archive.prefixed("draws", draws),
    }
    return archive.archive_bytes("session", metadata, parts)


def unpack_session(content: bytes) -> Session:
    """Read what `pack_session` wrote; anything else raises an `ArchiveError`."""
    from ewens_widgets.sampling.sampler import Sampler

    with archive.refused("this is not a saved explorer, or it is damaged"):
        metadata, arrays = archive.parse_archive(content, "session", "it")
        sampler = unpack_sampler(metadata["sampler"], archive.under("sampler", arrays), Sampler)
        trace = unpack_draws({"moves": sampler.move_names}, archive.under("draws", arrays), sampler.posterior)
        draws = DrawTable(sampler.posterior, sampler.move_names)
        draws.extend(trace)
        dataset = _dataset(metadata["data"], archive.under("data", arrays))
        if dataset.X.shape != sampler.posterior.data_shape:
            raise ValueError("its data are not those of its sampler")
        return Session(dataset, sampler, draws, _run_settings(metadata["settings"], dataset.n_objects))


def _dataset(texts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Dataset:
    if not all(isinstance(texts[name], str) for name in ("name", "description")):
        raise TypeError("the name or the description of its data is no text")
    given: dict[str, Any] = {
        name: tuple(texts[name]) if isinstance(texts[name], list) else texts[name] for name in _TEXTS
    }
    given["same_units"] = texts["same_units"] is True
    given["kinds"] = archive.unpack_kinds(texts["kinds"]) if "kinds" in texts else None
    return Dataset(X=arrays["X"], labels=arrays.get("labels"), **given)


def _run_settings(given: Mapping[str, Any], n_objects: int) -> dict[str, Any]:
    """Settings of the run, of which those that the page shows or restarts with are checked."""
    settings, initial = dict(given), given["initial"]
    for name, least in (("iterations", 1), ("burn_in", 0)):
        settings[name] = check_count(name, given[name], least)
    if given["seed"] is not None:
        check_count("seed", given["seed"], 0)
    if isinstance(initial, str) and initial not in INITIAL:
        raise ValueError(f"its chain starts from {initial!r}, which is no initial state")
    if initial is not None and not isinstance(initial, str):
        check_labels(initial, n_objects)
    return settings
