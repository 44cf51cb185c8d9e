r"""The joint posterior of partition and parameters: p(θ, B | Y) ∝ p(θ) p(B) L(B, θ).

The prior of the partition B is in `model.priors`, its likelihood L in `model.likelihood` where all clusters
have one shape (the paper's family), and in `model.own_shapes` where each has its own; then the pooling ν and
the common scale Σ are parameters too. The prior of the variance ratio θ is

.. math:: p(\theta) \propto \frac{\theta^{\alpha-1}}{(1+\theta)^{2\alpha}}

on a discrete grid, by default :math:`2^{-3}, 2^{-2}, …, 2^{10}`, as arXiv 1611.09890 prints it
(``theta_prior="as-printed"``). These masses are no discrete symmetric F distribution, since the grid is even
in log θ; ``"symmetric-F"`` multiplies each by the width of its step, which is proportional to θ. ν is uniform
on a grid, by default :math:`2, 4, …, 256`. Every conditional of θ or ν is then a short exact sum.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ewens_widgets.arguments import check_positive
from ewens_widgets.datasets import Dataset
from ewens_widgets.datasets.kinds import Kinds
from ewens_widgets.model.checks import FloatArray, ModelName, check_model, check_theta_grid, column_names
from ewens_widgets.model.coordinates import (
    AffineMap,
    canonical_coordinates,
    columns_of_rounding,
    on_exact_grid,
)
from ewens_widgets.model.likelihood import (
    CentreName,
    check_centre,
    cluster_statistics,
    log_likelihoods_from_statistics,
)
from ewens_widgets.model.mixed_columns import Columns, read_columns
from ewens_widgets.model.own_shapes import (
    ClusterStatistics,
    MixedStatistics,
    Shapes,
    cluster_shapes,
    log_marginals,
    log_sigma_prior,
    packed_length,
    statistics_of,
    unpack_sigma,
)
from ewens_widgets.model.priors import ewens
from ewens_widgets.model.priors.ewens import Concentration, Ewens, Gamma, check_concentration
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.partition import check_labels

IntArray = NDArray[np.int64]
ShapesName = Literal["common", "own"]
THETA_PRIORS = ("as-printed", "symmetric-F")

_FEW_OBJECTS = 1000  # Up to here all weights of the number of clusters are computed at once.
_LARGEST_NU = 1e6  # Above it shapes are equal to all relevant digits.


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of one data set under one model; build it with `from_data`.

    Attributes
    ----------
    coordinates
        Canonical coordinates of the data (n × d), rounded so that cluster sums are exact; read-only.
    model
        Covariance model.
    prior
        Prior of the partition.
    alpha
        Shape of the prior of θ.
    theta_grid
        Values that θ can take (G).
    shapes
        ``"common"``: one covariance for all clusters, profiled out; ``"own"``: one for each, pooled.
    nu_grid
        Values that the pooling ν of own shapes can take; one infinite value where shapes are common.
    map
        The map from the data to the coordinates; the identity where only coordinates were given.
    theta_prior
        ``"as-printed"`` or ``"symmetric-F"``: the masses of θ on its grid.
    centre
        ``"mean"``: that of the data is treated as known; ``"unknown"``: it is integrated out, or, with own
        shapes, a parameter that stands behind Σ wherever that is packed.
    columns
        What the columns of the data are; the categorical ones are part of the likelihood.
    gaps
        Row and column of each missing cell among the coordinates, row by row (cells × 2). The imputed cells
        are parameters, which stand behind Σ and the centre wherever these are packed; the coordinates have
        the mean of the observed cells in their places.
    """

    coordinates: FloatArray = field(repr=False)
    model: ModelName
    prior: PartitionPrior
    alpha: float
    theta_grid: FloatArray = field(repr=False)
    shapes: ShapesName = "common"
    nu_grid: FloatArray = field(default_factory=lambda: np.array([np.inf]), repr=False)
    map: AffineMap = field(default_factory=AffineMap, repr=False)
    theta_prior: str = "as-printed"
    centre: CentreName = "mean"
    columns: Columns = field(default_factory=Columns, repr=False)
    gaps: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64), repr=False)

    def __post_init__(self) -> None:
        """Make the arrays read-only: a posterior is shared by samplers, traces and views."""
        for array in (self.coordinates, self.theta_grid, self.nu_grid):
            _read_only(array)
        self.columns.places.setflags(write=False)
        self.gaps.setflags(write=False)
        _ = self.log_theta_prior  # refuses a grid and an alpha that do not go together

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                _read_only(value)

    @classmethod
    def from_data(
        cls,
        X: ArrayLike | Dataset,
        model: str = "II",
        concentration: Concentration = 1.0,
        alpha: float = 1.0,
        theta_grid: ArrayLike | None = None,
        *,
        prior: PartitionPrior | None = None,
        shapes: str = "common",
        nu_grid: ArrayLike | None = None,
        centre: str = "mean",
        theta_prior: str = "as-printed",
        kinds: Kinds = None,
    ) -> "Posterior":
        """Check everything and bring the data to canonical coordinates."""
        name, family, checked_centre = check_model(model), check_shapes(shapes), check_centre(centre)
        if family == "common" and nu_grid is not None:
            raise ValueError('nu_grid goes with shapes="own"; with common shapes there is no pooling ν.')
        matrix, used, columns = read_columns(X, kinds)
        if name == "III" and used is not None and np.isnan(matrix).any():
            matrix, used, columns = _without_rounding(X, matrix, used, columns)
        names, resolution = column_names(X), None
        if used is not None:
            names = tuple(columns.kinds[place].name for place in used)
            resolution = np.array([columns.kinds[place].resolution for place in used])
        coordinates, own_map = canonical_coordinates(
            matrix,
            name,
            names,
            has_axes=family == "own",
            is_oriented=checked_centre == "unknown",
            resolution=resolution,
        )
        is_shifted = checked_centre == "unknown" and family == "common"
        return cls(
            coordinates=on_exact_grid(np.nan_to_num(coordinates), is_shifted),
            model=name,
            prior=resolve_prior(prior, concentration),
            alpha=check_positive("alpha", alpha),
            theta_grid=default_theta_grid() if theta_grid is None else check_theta_grid(theta_grid),
            shapes=family,
            nu_grid=np.array([np.inf]) if family == "common" else check_nu_grid(nu_grid),
            map=replace(own_map, columns=used, parted=columns.parted),
            centre=checked_centre,
            theta_prior=theta_prior,
            columns=replace(columns, rounding=own_map.rounding),
            gaps=np.argwhere(np.isnan(coordinates)).astype(np.int64),  # 32 bits in a browser
        )

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return int(self.coordinates.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features, those of the coordinates."""
        return int(self.coordinates.shape[1])

    @property
    def data_shape(self) -> tuple[int, int]:
        """Number of rows and columns of the data."""
        return self.n_objects, len(self.columns.kinds) or self.n_features

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a report says about columns that are not Gaussian, and about missing cells."""
        if not len(self.gaps):
            return self.columns.sentences
        share = len(self.gaps) / self.coordinates.size
        many = "number is" if len(self.gaps) == 1 else "numbers are"
        said = f"missing at random ({share:.1%}), and drawn with the clusters."
        return (*self.columns.sentences, f"{len(self.gaps)} {many} {said}")

    def numbers_of(self, X: FloatArray) -> FloatArray:
        """The columns of a table that are numbers to the model."""
        return self.columns.numbers_of(X)

    @property
    def sigma_length(self) -> int:
        """Length of the packed parameters: Σ and an unknown centre (own shapes only), and imputed cells."""
        if self.shapes == "common":
            return len(self.gaps)
        length = packed_length(self.n_features, self.model) + self.n_features * (self.centre == "unknown")
        return length + len(self.gaps)

    @property
    def concentration(self) -> Concentration | None:
        """Concentration λ of Ewens' prior, or its Gamma prior; None under another prior."""
        return self.prior.concentration if isinstance(self.prior, Ewens) else None

    @property
    def samples_concentration(self) -> bool:
        """Whether λ is a parameter that is sampled."""
        return isinstance(self.concentration, Gamma)

    @property
    def first_log_concentration(self) -> float:
        """Logarithm of λ, or of its mean if it has a prior; 0 without λ."""
        value = self.concentration
        return 0.0 if value is None else float(np.log(value.mean if isinstance(value, Gamma) else value))

    @cached_property
    def log_theta_prior(self) -> FloatArray:
        """Log prior probabilities of the grid's values."""
        return _read_only(log_theta_prior(self.theta_grid, self.alpha, self.theta_prior))

    @cached_property
    def log_count_weights(self) -> FloatArray:
        """Log V(K) for K = 0, …, n, with log p(B) = log V(K) + Σ_b log W(n_b)."""
        return _read_only(self.prior.log_count_weights(self.n_objects))

    @cached_property
    def log_size_weights(self) -> FloatArray:
        """Log W(m) for m = 0, …, n."""
        return _read_only(self.prior.log_size_weights(self.n_objects))

    def count_weights(self, most: int) -> FloatArray:
        """Log V(0), …, log V(most); for many objects some priors would take very long to compute all."""
        if self.n_objects <= _FEW_OBJECTS or not self.prior.has_slow_count_weights:
            return self.log_count_weights[: most + 1]
        known: FloatArray = self.__dict__.get("_first_count_weights", np.empty(0))
        if known.size <= most:
            known = _read_only(self.prior.log_count_weights(self.n_objects, min(2 * most, self.n_objects)))
            self.__dict__["_first_count_weights"] = known
        return known[: most + 1]

    def log_prior(self, labels: ArrayLike) -> float:
        """Log prior probability of a partition."""
        sizes = np.bincount(self._checked(labels))
        return float(self.count_weights(sizes.size)[-1] + self.log_size_weights[sizes].sum())

    def log_likelihoods(
        self, labels: ArrayLike, nu_index: int = 0, sigma: ArrayLike | None = None
    ) -> FloatArray:
        """Log-likelihoods of a partition over the grid of θ.

        Parameters
        ----------
        labels
            A partition.
        nu_index, sigma
            Of own shapes: index of ν on its grid, and the packed scale Σ. Common shapes, whose scale is
            profiled out, do not use them.
        """
        checked = self._checked(labels)
        if self.shapes == "own":
            clusters, scale = self.statistics(checked, sigma), self.scale(sigma)
            nu = np.full(self.theta_grid.size, self.nu_grid[nu_index])
            scales = np.broadcast_to(scale, (nu.size, *scale.shape))
            by_cluster = log_marginals(clusters, self.theta_grid, nu, scales, self.model)
            return np.asarray(by_cluster.sum(axis=-1) + self.log_categories(checked))
        table = self.table(sigma)
        sizes, sums = cluster_statistics(table, checked)
        total = table.T @ table / self.n_objects if len(self.gaps) else None
        values = log_likelihoods_from_statistics(
            sizes, sums, self.n_objects, self.theta_grid, self.model, self.centre, total
        )
        return values + self.log_categories(checked)

    def mixed_statistics(self, labels: NDArray[np.intp]) -> ClusterStatistics | MixedStatistics:
        """Statistics of the clusters of a partition, with the counts of categories if there are any."""
        numbers = statistics_of(self.coordinates, labels, self.model)
        if not self.columns.has_categories:
            return numbers
        return MixedStatistics(*numbers, self.columns.counts(labels))

    def log_categories(self, labels: NDArray[np.integer]) -> float:
        """Log marginal likelihood of the categorical columns, given canonical labels; 0 if there are none."""
        if not self.columns.has_categories:
            return 0.0
        return float(self.columns.log_marginals(self.columns.counts(labels)).sum())

    def log_density(
        self,
        labels: ArrayLike,
        theta_index: int,
        concentration: float | None = None,
        nu_index: int = 0,
        sigma: ArrayLike | None = None,
    ) -> float:
        """Unnormalised log posterior of (B, θ), of own shapes (B, θ, ν, Σ); with λ, if it has a prior."""
        log_likelihood = float(self.log_likelihoods(labels, nu_index, sigma)[theta_index])
        log_joint = log_likelihood + float(self.log_theta_prior[theta_index])
        if self.shapes == "own":
            log_joint += float(log_sigma_prior(self.scale(sigma), self.model)) - np.log(self.nu_grid.size)
        prior = self.concentration
        if concentration is None or not isinstance(prior, Gamma):
            return log_joint + self.log_prior(labels)
        return log_joint + ewens.log_pmf(labels, concentration) + prior.log_density(concentration)

    def log_marginal(self, labels: ArrayLike) -> float:
        """Unnormalised log posterior of a partition under common shapes, θ summed out."""
        log_joint = self.log_theta_prior + self.log_likelihoods(labels)
        return float(self.log_prior(labels) + logsumexp(log_joint))

    def theta_conditional(
        self, labels: ArrayLike, nu_index: int = 0, sigma: ArrayLike | None = None
    ) -> FloatArray:
        """Exact conditional probabilities of θ given a partition (own shapes: and ν and Σ)."""
        return _normalised(self.log_theta_prior + self.log_likelihoods(labels, nu_index, sigma))

    def nu_conditional(self, labels: ArrayLike, theta_index: int, sigma: ArrayLike | None) -> FloatArray:
        """Exact conditional probabilities of ν given a partition, θ and Σ; 1 for common shapes."""
        if self.shapes == "common":
            return np.ones(1)
        clusters = self.statistics(self._checked(labels), sigma)
        scale, theta = self.scale(sigma), np.full(self.nu_grid.size, self.theta_grid[theta_index])
        scales = np.broadcast_to(scale, (theta.size, *scale.shape))
        return _normalised(log_marginals(clusters, theta, self.nu_grid, scales, self.model).sum(axis=-1))

    def cluster_shapes(
        self, labels: ArrayLike, theta: float, nu: float = np.inf, sigma: ArrayLike | None = None
    ) -> Shapes:
        """Centres and covariances of the clusters in canonical coordinates, given the parameters.

        Those of own shapes are posterior means. Common shapes have the covariance that was profiled out, M/n
        (model I: its trace, model II: its diagonal).
        """
        checked = self._checked(labels)
        if self.shapes == "own":
            clusters = self.statistics(checked, sigma)
            found = cluster_shapes(clusters, theta, nu, self.scale(sigma), self.model)
            return found._replace(centres=found.centres + self.shift(sigma))
        table = self.table(sigma)
        sizes, sums = cluster_statistics(table, checked)
        pull, weights = theta / (1.0 + theta * sizes), 1.0 / (1.0 + theta * sizes)
        shift, n_degrees = np.zeros(self.n_features), self.n_objects
        if self.centre == "unknown":  # Its posterior mean, v/c.
            shift, n_degrees = weights @ sums / (weights @ sizes), self.n_objects - 1
            sums = sums - sizes[:, None] * shift
        own = table - shift
        common = (own.T @ own - (pull[:, None] * sums).T @ sums) / n_degrees
        if self.model == "I":
            common = np.trace(common) / self.n_features * np.eye(self.n_features)
        elif self.model == "II":
            common = np.diag(np.diag(common))
        covariances = np.broadcast_to(common, (sizes.size, *common.shape))
        return Shapes(shift + pull[:, None] * sums, np.asarray(covariances))

    def scale(self, sigma: ArrayLike | None) -> FloatArray:
        """The scale Σ, or several along leading axes, in the form of the model."""
        if sigma is None:
            raise ValueError("own shapes need the scale Σ besides the partition.")
        packed = np.asarray(sigma, dtype=np.float64)[..., : packed_length(self.n_features, self.model)]
        return unpack_sigma(packed, self.n_features, self.model)

    def shift(self, sigma: ArrayLike | None) -> FloatArray:
        """The centre that is packed behind Σ; zero where it is known."""
        if sigma is None or self.centre == "mean" or self.shapes == "common":
            return np.zeros(self.n_features)
        first = packed_length(self.n_features, self.model)
        return np.asarray(sigma, dtype=np.float64)[..., first : first + self.n_features]

    def table(self, sigma: ArrayLike | None = None) -> FloatArray:
        """The coordinates with the imputed cells that are packed behind Σ, if these are given."""
        if sigma is None or not len(self.gaps):
            return self.coordinates
        filled = self.coordinates.copy()
        filled[tuple(self.gaps.T)] = np.asarray(sigma, dtype=np.float64)[-len(self.gaps) :]
        return filled

    def imputed_values(self, sigma: ArrayLike) -> FloatArray:
        """The imputed cells of draws (T × cells), packed behind Σ, in the units of the data."""
        packed = np.asarray(sigma, dtype=np.float64)
        rows, columns = self.gaps.T
        signs = 1.0 if self.map.matrix is None else np.diag(self.map.matrix)[columns]
        centre, scale = (
            np.broadcast_to(values, self.n_features)[columns] for values in (self.map.centre, self.map.scale)
        )
        return np.asarray(centre + scale * signs * packed[..., packed.shape[-1] - rows.size :])

    @property
    def total(self) -> FloatArray | None:
        """YᵀY/n of a table with gaps; None where it is that of canonical coordinates."""
        return self.coordinates.T @ self.coordinates / self.n_objects if len(self.gaps) else None

    def filled(self, sigma: ArrayLike | None) -> "Posterior":
        """The same posterior whose coordinates have the imputed cells of a draw."""
        return self if not len(self.gaps) else replace(self, coordinates=self.table(sigma))

    def statistics(self, labels: NDArray[np.intp], sigma: ArrayLike | None) -> ClusterStatistics:
        """Statistics of the clusters of a partition, about the centre of own shapes."""
        coordinates = self.table(sigma)
        if self.centre == "unknown":
            coordinates = coordinates - self.shift(sigma)
        return statistics_of(coordinates, labels, self.model)

    def _checked(self, labels: ArrayLike) -> NDArray[np.intp]:
        return check_labels(labels, self.n_objects)


def _without_rounding(
    X: ArrayLike | Dataset, matrix: FloatArray, used: list[int], columns: Columns
) -> tuple[FloatArray, list[int] | None, Columns]:
    """What `read_columns` gives, less columns that others determine up to rounding."""
    kinds = list(columns.kinds)
    names, steps = zip(*((kinds[place].name, kinds[place].resolution) for place in used), strict=True)
    for lead, relation in columns_of_rounding(matrix, names, np.array(steps)):
        kinds[used[lead]] = replace(kinds[used[lead]], kind="left out", reason=relation)
    return read_columns(X, kinds)


def _normalised(log_weights: FloatArray) -> FloatArray:
    return np.asarray(np.exp(log_weights - logsumexp(log_weights)), dtype=np.float64)


def _read_only(values: FloatArray) -> FloatArray:
    values.setflags(write=False)
    return values


def check_shapes(shapes: str) -> ShapesName:
    """Return the name of a family of shapes; refuse other names."""
    if shapes not in get_args(ShapesName):
        raise ValueError(
            f'shapes must be "common" (one for all clusters) or "own" (one for each); got {shapes!r}.'
        )
    return cast("ShapesName", shapes)


def resolve_prior(prior: PartitionPrior | None, concentration: Concentration = 1.0) -> PartitionPrior:
    """Return the prior of the partition, given as such or by the concentration of Ewens' prior."""
    checked = check_concentration(concentration)
    if prior is None:
        return Ewens(checked)
    if not isinstance(prior, PartitionPrior):
        raise TypeError(
            "prior must be a prior on partitions, such as ew.priors.FiniteMixture() or "
            f"ew.priors.Ewens(1.0); got {prior!r}."
        )
    if checked != 1.0:
        raise ValueError(
            f"give either the concentration or the prior, not both; got {concentration!r} and {prior!r}."
        )
    return prior


def default_nu_grid() -> FloatArray:
    """Powers of two from 2 to 256."""
    return np.asarray(np.exp2(np.arange(1.0, 9.0)), dtype=np.float64)


def check_nu_grid(grid: ArrayLike | None) -> FloatArray:
    """Return the grid of the pooling ν, increasing and positive; the default for None."""
    if grid is None:
        return default_nu_grid()
    values = check_theta_grid(grid, "nu")
    if values[-1] > _LARGEST_NU:
        raise ValueError(
            f"every value of the grid of nu must be at most {_LARGEST_NU:g}, above which shapes are "
            f'equal to all relevant digits; got {values[-1]:g}. For one shape use shapes="common".'
        )
    return values


def default_theta_grid() -> FloatArray:
    """Powers of two from 1/8 to 1024."""
    return np.asarray(np.exp2(np.arange(-3.0, 11.0)), dtype=np.float64)


def log_theta_prior(theta_grid: ArrayLike, alpha: float = 1.0, kind: str = "as-printed") -> FloatArray:
    """Log prior probabilities of the grid's values, normalised over the grid."""
    if kind not in THETA_PRIORS:
        raise ValueError(f"theta_prior must be one of {', '.join(THETA_PRIORS)}; got {kind!r}.")
    grid = check_theta_grid(theta_grid)
    shape = check_positive("alpha", alpha)
    with np.errstate(over="ignore", invalid="ignore"):
        log_density = (shape - 1.0) * np.log(grid) - 2.0 * shape * np.log1p(grid)
        if kind == "symmetric-F" and grid.size > 1:  # dθ = θ d(log θ)
            log_density += np.log(grid) + np.log(np.gradient(np.log(grid)))
    if not np.all(np.isfinite(log_density)):
        raise ValueError(f"alpha is too large for this grid of theta; got {alpha!r}.")
    return np.asarray(log_density - logsumexp(log_density), dtype=np.float64)
