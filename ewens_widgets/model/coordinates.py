r"""Canonical coordinates: one representative for every orbit of the data under a model's group.

The likelihood of each model is constant on the orbits of a group of transformations, so the data may be
replaced by any other member of their orbit. The best conditioned one is used:

======  ==============================================  ==========================
model   group                                           canonical :math:`Y`
======  ==============================================  ==========================
I       shift, rotation, reflection, one common scale   :math:`\operatorname{tr} Y^T Y = nd`
II      shift, a scale (of either sign) for each column :math:`(Y^T Y)_{rr} = n`
III     shift, any non-singular linear map              :math:`Y^T Y = n I`
======  ==============================================  ==========================

Euclidean distances in these coordinates are invariant too; for model III they are Mahalanobis distances.

Whitened coordinates are unique up to a rotation, to which the likelihood of common shapes is invariant. Draws
of a covariance matrix depend on the rotation: for these the data also determine the *axes*. The first is
the direction of the object farthest from the centre, the second that of the object farthest from the first
axis, and so on: a Gram–Schmidt decomposition with pivots, the same for any rotation.

The map from the data to these coordinates is affine. It is kept with them (`AffineMap`): predictions need it
for new rows, densities for its Jacobian, and pictures for its inverse.

*Rounding.* Numbers are written with finitely many digits: those of column j are multiples of a step
:math:`\delta_j`, and rounding to it has variance :math:`\delta_j^2 / 12`. Where the columns of a table are
related, such as one that is the sum of two others, each rounded, a direction may vary by rounding only, and
whitening would make it one of d equal directions. With :math:`R = \operatorname{diag}(\delta_j^2/12)`,
directions with less than 10 times the variance of R (by the generalised eigenvalues of the covariance and R)
are left out of the coordinates of model III, and named.

*Missing cells.* They tie a table to its columns: a linear map of a row needs all its cells. Columns with gaps
are centred and scaled by their observed cells (I: by the one scale of all), and they are coordinates. For III
those without gaps are whitened as above, for themselves. In place of a direction of rounding a column is left
out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.model.checks import (
    FloatArray,
    ModelName,
    check_spread,
    constant_columns,
    dependence_error,
    named_columns,
    warn_of_dependence,
)

_SMALLEST_POWER = -1074  # Of two, that is not zero; all numbers are multiples of it.
_TILTED = 1e-9  # Mean of a whitened column above which it is centred once more.
_EQUALLY_FAR = 1e-6  # Relative difference of squared distances that does not count.
_ROUNDING = 1e-24  # Share of the largest squared distance that is rounding only.
_FROM_ROUNDING = 0.1  # A direction with more than this share of its variance from rounding is left out.
_NEGLIGIBLE = 0.05  # Part of a column, in standard deviations, that is not named in a relation.
_CANONICAL = 1e-6  # How far stored coordinates may be from canonical ones; rounding is far below.


@dataclass(frozen=True, eq=False)
class AffineMap:
    """The map y = ((x − centre) / scale) @ matrix from data to canonical coordinates; by default y = x.

    Attributes
    ----------
    centre, scale
        One number for each column, or one for all.
    matrix
        None for models I and II, which only shift and scale.
    n_kept
        The first of the coordinates that count; the others are directions of rounding. None: all of them.
    columns
        The columns of the data that are numbers to the model; None: all of them.
    rounding
        What is said of the directions of rounding.
    parted
        Which of the columns are missing where they are zero, because they are read in two parts; None: none.
    """

    centre: FloatArray = field(default_factory=lambda: np.zeros(1))
    scale: FloatArray = field(default_factory=lambda: np.ones(1))
    matrix: FloatArray | None = None
    n_kept: int | None = None
    columns: Sequence[int] | None = None
    rounding: tuple[str, ...] = ()
    parted: NDArray[np.bool_] | None = None

    def __call__(self, X: FloatArray) -> FloatArray:
        """Canonical coordinates of rows."""
        numbers = X if self.columns is None else X[:, self.columns]
        if self.parted is not None:
            numbers = np.where(self.parted & (numbers == 0.0), np.nan, numbers)
        scaled = (numbers - self.centre) / self.scale
        if self.matrix is None:
            return scaled
        missing = np.isnan(scaled)
        found = (np.where(missing, 0.0, scaled) @ self.matrix)[:, : self.n_kept]
        if missing.any():  # A coordinate is known where all columns are that it is made of.
            found[(missing @ (self.matrix != 0.0))[:, : self.n_kept]] = np.nan
        return np.asarray(found)

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        """Weights of y in linear functions of the data (d × any), given the weights of x in them."""
        scaled = self.scale[:, None] * (weights if self.columns is None else weights[self.columns])
        if self.matrix is None:
            return scaled
        return np.asarray(np.linalg.solve(self.matrix, scaled))[: self.n_kept]

    @property
    def log_jacobian(self) -> float:
        """Log volume in canonical coordinates of a unit volume of the data: densities differ by it.

        A direction of rounding, of variance 1, adds the mean log density of a normal distribution.
        """
        if self.matrix is None:
            return -float(np.log(self.scale).sum())
        n_left = 0 if self.n_kept is None else len(self.matrix) - self.n_kept
        log_rest = 0.5 * n_left * (1.0 + np.log(2.0 * np.pi))
        return float(np.linalg.slogdet(self.matrix)[1] - log_rest - np.log(self.scale).sum())


def canonical_coordinates(
    matrix: FloatArray,
    model: ModelName,
    names: Sequence[str] | None = None,
    has_axes: bool = False,
    is_oriented: bool = False,
    resolution: FloatArray | None = None,
) -> tuple[FloatArray, AffineMap]:
    """Centre and scale (I, II) or whiten (III) checked data; refuse too little spread for the model.

    Returned with the coordinates is the map to them. With `has_axes` the axes of model III are fixed by the
    data too, and d + 1 rows are enough. With `is_oriented` they are fixed for all models (for II, their
    signs), as draws of a direction need it. With the `resolution` of each column, model III leaves out
    directions that vary by rounding only.

    Messages use the `names` of the columns, or their numbers. Columns that depend linearly on others are
    refused by model III; I and II warn of them.
    """
    has_gaps = bool(np.isnan(matrix).any())
    check_spread(matrix, model, names, fewest=1 if has_axes and not has_gaps else 2)
    if has_gaps:
        return _with_gaps(matrix, model, names)
    centred, centre, exponents, precision = _centred(matrix, common_scale=model == "I")
    _check_precision(precision, model, names)
    n_objects, n_features = matrix.shape
    if model == "I":
        lengths = np.full(n_features, np.sqrt(np.sum(centred * centred) / n_features))
    else:
        lengths = np.sqrt(np.sum(centred * centred, axis=0))
    centred /= lengths
    # In extremely small units no float is near the scale; the smallest float replaces it.
    scale = np.maximum(np.ldexp(lengths / np.sqrt(n_objects), exponents), np.nextafter(0.0, 1.0))
    if model != "III":
        warn_of_dependence(centred, model, names)
        coordinates, turned = centred * np.sqrt(n_objects), None
        if is_oriented:
            turned = _axes(coordinates).T if model == "I" else np.diag(_signs(coordinates))
            coordinates = coordinates @ turned
        return np.ascontiguousarray(coordinates), AffineMap(centre, scale, turned)
    representative, whitening, shift = _whitened(centred, precision, names)
    n_kept: int | None = None
    rounding: tuple[str, ...] = ()
    if resolution is not None:
        turn, n_left = _rounding_last(whitening, resolution / scale)
        if n_left:
            whitening, n_kept = whitening @ turn, n_features - n_left
            representative = representative @ turn[:, :n_kept]
            relations = _relations((whitening[:, n_kept:] / scale[:, None]).T, scale, names)
            rounding = tuple(f"{relation}: this direction is left out" for _, relation in relations)
    if has_axes or is_oriented:
        axes = _axes(representative)
        representative, kept = np.asarray(representative @ axes.T), whitening[:, :n_kept] @ axes.T
        whitening = kept if n_kept is None else np.hstack([kept, whitening[:, n_kept:]])
    representative *= np.sqrt(n_objects)
    centre = centre + scale * shift * np.sqrt(n_objects)
    own_map = AffineMap(centre, scale, whitening, n_kept, rounding=rounding)
    return np.ascontiguousarray(representative), own_map


def _with_gaps(
    matrix: FloatArray, model: ModelName, names: Sequence[str] | None
) -> tuple[FloatArray, AffineMap]:
    """Coordinates of a table with missing cells, which are NaN in them too."""
    missing, has_gaps = np.isnan(matrix), np.isnan(matrix).any(axis=0)
    centred, centre, exponents, precision = _centred(matrix, common_scale=model == "I")
    _check_precision(precision, model, names)
    complete = matrix[~missing.any(axis=1)]
    if model != "III":
        warn_of_dependence(complete, model, names)
    else:
        try:
            canonical_coordinates(complete, model, names)
        except ValueError as fault:
            raise ValueError(f"among the rows without missing cells, {fault}") from fault
    squares = np.nanmean(centred * centred, axis=0)
    lengths = np.sqrt(np.full_like(squares, squares.mean()) if model == "I" else squares)
    if not lengths.all():
        raise ValueError(
            "the observed cells of each column are equal up to rounding error, so there is nothing to "
            "cluster; check the input."
        )
    coordinates = centred / lengths
    scale = np.maximum(np.ldexp(lengths, exponents), np.nextafter(0.0, 1.0))
    turn = np.diag(_signs(np.where(missing, 0.0, coordinates)))
    whole = np.flatnonzero(~has_gaps)
    if model == "III" and whole.size:
        own = None if names is None else [names[place] for place in whole.tolist()]
        block, own_map = canonical_coordinates(matrix[:, whole], model, own, has_axes=True)
        coordinates[:, whole], centre[whole], scale[whole] = block, own_map.centre, own_map.scale
        turn[np.ix_(whole, whole)] = own_map.matrix
        coordinates[:, has_gaps] *= np.diag(turn)[has_gaps]
    else:
        coordinates = coordinates * np.diag(turn)
    return coordinates, AffineMap(centre, scale, turn)


def columns_of_rounding(
    matrix: FloatArray, names: Sequence[str], resolution: FloatArray
) -> list[tuple[int, str]]:
    """Columns of a table with gaps that others determine up to rounding, each with what is said of it.

    Directions are found in the complete rows; of each, the column that it has most of is left out.
    """
    complete = matrix[~np.isnan(matrix).any(axis=1)]
    if len(complete) < matrix.shape[1] + 2 or constant_columns(complete):
        return []
    found = canonical_coordinates(complete, "III", names, resolution=resolution)[1]
    if found.n_kept is None or found.matrix is None:
        return []
    weights = (found.matrix[:, found.n_kept :] / found.scale[:, None]).T
    return [
        (lead, f"{relation}, and cells are missing")
        for lead, relation in _relations(weights, found.scale, names)
    ]


def _rounding_last(whitening: FloatArray, steps: FloatArray) -> tuple[FloatArray, int]:
    """A rotation of whitened coordinates that brings directions of rounding to the end, and their number.

    In whitened coordinates the covariance is the identity, and that of rounding WᵀRW: directions where it is
    more than a tenth are those where the covariance is less than ten times R. A column alone is never
    rounding, however coarse.
    """
    variances = np.minimum(steps**2 / 12.0, _FROM_ROUNDING / 2.0)
    shares, turn = np.linalg.eigh(whitening.T @ (variances[:, None] * whitening))
    n_left = int(np.sum(shares > _FROM_ROUNDING))
    return turn, min(n_left, len(shares) - 1)


def _relations(weights: FloatArray, scale: FloatArray, names: Sequence[str] | None) -> list[tuple[int, str]]:
    """Say which columns determine which, given functions of the columns (a row each) that are constant.

    Each sentence comes with the number of the column that it begins with.
    """
    rows, sentences = weights * scale, []
    leads: list[int] = []
    for place in range(len(rows)):
        lead = int(np.argmax(np.abs(rows[place])))
        rows[place] /= rows[place, lead]
        others = np.arange(len(rows)) != place
        rows[others] -= np.outer(rows[others, lead], rows[place])
        leads.append(lead)
    named = [named_columns([place], names) for place in range(rows.shape[1])]
    for row, lead in zip(rows, leads, strict=True):
        text = ""
        for place in np.flatnonzero(np.abs(row) > _NEGLIGIBLE).tolist():
            if place == lead:
                continue
            factor = -row[place] * scale[lead] / scale[place]
            size = "" if abs(abs(factor) - 1.0) < _NEGLIGIBLE else f"{abs(factor):.3g} "
            sign = ("−" if factor < 0.0 else "") if not text else (" − " if factor < 0.0 else " + ")
            text += f"{sign}{size}{named[place]}"
        sentences.append((lead, f"{named[lead]} = {text or 'a constant'}, up to rounding"))
    return sentences


def _centred(
    matrix: FloatArray, common_scale: bool
) -> tuple[FloatArray, FloatArray, NDArray[np.int32], FloatArray]:
    """Subtract the column means, and scale the columns to at most 1.

    All scaling is by powers of two, which is exact, so that very large or small units are safe. Also returned
    are the means, the exponents of the powers, and the input's rounding error.
    """
    scaled, outer = _scaled_to_one(matrix, common_scale)
    first = _means(scaled)
    scaled -= first
    # The mean itself was rounded; a second pass removes the rest.
    second = _means(scaled)
    scaled -= second
    centred, inner = _scaled_to_one(scaled, common_scale)
    return (
        centred,
        np.ldexp(first + second, outer),
        outer + inner,
        np.ldexp(np.finfo(np.float64).eps, -inner),
    )


def _means(matrix: FloatArray) -> FloatArray:
    """Means of the columns, over their observed cells."""
    return np.asarray(np.nanmean(matrix, axis=0) if np.isnan(matrix).any() else matrix.mean(axis=0))


def _scaled_to_one(matrix: FloatArray, common_scale: bool) -> tuple[FloatArray, NDArray[np.int32]]:
    """Divide each column, or all by the same, by the power of two above its largest absolute value."""
    peak = np.nanmax(np.abs(matrix), axis=0)
    if common_scale:
        peak = np.full_like(peak, peak.max())
    _, exponent = np.frexp(peak)
    return np.ldexp(matrix, -exponent), exponent


def _check_precision(precision: FloatArray, model: ModelName, names: Sequence[str] | None) -> None:
    """Refuse columns that vary only by rounding error: a few units of the last digit."""
    noise = np.flatnonzero(precision > 0.125)
    if model == "I" and noise.size:
        raise ValueError(
            "all rows are equal up to rounding error, so there is nothing to cluster; check the input."
        )
    if noise.size:
        listed = named_columns(noise.tolist(), names)
        raise ValueError(
            f'column(s) {listed} are constant up to rounding error; drop them, or use model "I".'
        )


def _whitened(
    unit: FloatArray, precision: FloatArray, names: Sequence[str] | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Orthonormal basis of the columns; refuse columns independent by rounding error alone.

    Returned with the basis are the matrix and the shift: basis = (unit − shift) @ matrix.
    """
    left, singular, right = np.linalg.svd(unit, full_matrices=False)
    # Bounds of two norms: error of the decomposition, and of a few roundings in every entry of the input.
    decomposition = singular[0] * max(unit.shape) * np.finfo(np.float64).eps
    rounding = 4.0 * np.sqrt(unit.shape[0]) * np.linalg.norm(precision * np.abs(unit).max(axis=0))
    rank = int(np.sum(singular > max(decomposition, rounding)))
    if rank < singular.size:
        # A residual can be larger than the singular value it belongs to, by about the number of columns.
        tolerance = (10.0 * np.sqrt(singular.size) * max(decomposition, rounding)) ** 2
        raise ValueError(dependence_error(unit, rank, tolerance, names))
    matrix, shift = right.T / singular, np.zeros(singular.size)
    if np.sqrt(left.shape[0]) * np.abs(left.mean(axis=0)).max() > _TILTED:
        # In almost dependent columns, rounding errors of the means are large against the smallest spread.
        means = left.mean(axis=0)
        left, again, turn = np.linalg.svd(left - means, full_matrices=False)
        matrix, shift = matrix @ (turn.T / again), (means * singular) @ right
    return left, matrix, shift


def _axes(whitened: FloatArray) -> FloatArray:
    """Orthonormal axes, one a row, that the farthest objects span, one after the other.

    Of objects that are equally far up to rounding, as in data on a grid, the first is used. Where the objects
    span fewer directions, any axes for the others will do.
    """
    axes = np.empty((whitened.shape[1],) * 2)
    rest, farthest = whitened.copy(), 0.0
    for number in range(len(axes)):
        squares = np.einsum("ir,ir->i", rest, rest)
        farthest = max(farthest, float(squares.max()))
        if squares.max() < _ROUNDING * farthest:
            whole = np.linalg.qr(np.vstack([axes[:number], np.eye(len(axes))]).T)[0].T
            axes[number:] = whole[number:]
            break
        axis = rest[int(np.argmax(squares > (1.0 - _EQUALLY_FAR) * squares.max()))]
        for _ in range(2):  # A second pass removes rounding errors.
            axis = axis - axes[:number].T @ (axes[:number] @ axis)
        axes[number] = axis / np.linalg.norm(axis)
        rest -= np.outer(rest @ axes[number], axes[number])
    return axes


def _signs(coordinates: FloatArray) -> FloatArray:
    """Signs that make the farthest object positive in each column; the first of those equally far."""
    squares = coordinates * coordinates
    places = np.argmax(squares > (1.0 - _EQUALLY_FAR) * squares.max(axis=0), axis=0)
    return np.where(coordinates[places, np.arange(coordinates.shape[1])] < 0.0, -1.0, 1.0)


def on_exact_grid(coordinates: FloatArray, is_shifted: bool = False) -> FloatArray:
    r"""Round coordinates to a dyadic grid so fine that it is harmless, and so coarse that sums are exact.

    With every entry a multiple of :math:`2^{-k}` and :math:`\sum_i |y_{ir}| \le 2^{52-k}`, the sum of any
    subset of rows is a double without rounding. Cluster sums that are updated object by object then equal
    recomputed ones bit for bit, whatever the order: no drift, and a resumed chain continues exactly. The step
    is about :math:`n \cdot 2^{-52}` standard deviations (4·10⁻¹⁴ for 178 objects).
    """
    step = exact_step(coordinates, is_shifted)
    rounded = coordinates / step
    np.round(rounded, out=rounded)
    rounded *= step
    return np.ascontiguousarray(rounded)


def exact_step(coordinates: FloatArray, is_shifted: bool = False) -> float:
    """Step of the finest grid on which sums are exact; eight times as long if rows will be shifted on it."""
    _, exponent = np.frexp(float(np.abs(coordinates).sum(axis=0).max()))
    return float(np.ldexp(1.0, max(int(exponent) - 52, _SMALLEST_POWER) + 3 * is_shifted))


def check_canonical(coordinates: FloatArray, model: ModelName, gaps: NDArray[np.int64]) -> None:
    """Refuse coordinates that are not canonical for a model; its formulas require that."""
    n_objects, n_features = coordinates.shape
    has_gaps = len(gaps) > 0
    observed = coordinates.copy()
    if has_gaps:
        is_sound = gaps.dtype == np.int64 and gaps.shape[1:] == (2,) and gaps.min() >= 0
        if not (is_sound and np.all(gaps.max(axis=0) < coordinates.shape)):
            raise ValueError("the missing cells are not among the coordinates")
        observed[tuple(gaps.T)] = np.nan
    fits = bool(np.nanmax(np.abs(observed)) <= 2.0 * np.sqrt(n_objects * n_features))
    if fits:  # squares cannot overflow
        squares = np.nanmean(observed * observed, axis=0)
        excess = (squares.mean() if model == "I" else squares) - 1.0
        if model == "III" and not has_gaps:
            excess = coordinates.T @ coordinates / n_objects - np.eye(n_features)
        means = np.nanmean(observed, axis=0)
        fits = bool(np.all(np.abs(means) < _CANONICAL) and np.all(np.abs(excess) < _CANONICAL))
    if not fits:
        raise ValueError(f"the coordinates are not canonical for model {model}")
