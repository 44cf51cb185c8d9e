r"""Invariance to a change of coordinates: the three models and k-means on two versions of the data.

A model is invariant to a group of maps y → y A + a if its posterior of partitions is the same before and
after every map of that group. All three are invariant to shifts a. Besides,

* model I is invariant to rotations, reflections and one common scale, that is :math:`A A^\top = c \, I`;
* model II is invariant to a scale for each column, that is a diagonal A, and to a permutation of columns;
* model III is invariant to every invertible A.

`invariant_models` returns the models that are invariant to a matrix in theory. `Comparison` tests it by a
chain of each model on both versions with the same seed. The sampler works in canonical coordinates, so the
whole chain is invariant, draw by draw, and the largest difference of the two similarities is exactly 0.
Rounding can separate two such chains where two choices are almost equally probable; `verdict` distinguishes
that from results that depend on the coordinates.

A comparison runs in small steps, in the background. Chains of the original data depend on the data and the
settings alone, so they are reused by the next comparison.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.analysis.plots.palette import changed_objects
from ewens_widgets.analysis.similarity import RunningSimilarity
from ewens_widgets.datasets import SCALING, SQUARE_SHEAR
from ewens_widgets.model.checks import FloatArray, ModelName
from ewens_widgets.model.posterior import ShapesName
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.sampling.sampler import Sampler

MODELS: tuple[ModelName, ...] = ("I", "II", "III")

PAPER_MATRICES: dict[str, FloatArray] = {"I": np.eye(2), "II": SCALING, "III": SQUARE_SHEAR}
"""The transformations of the unit square, by the model that they are meant for."""

SAME = 1e-6
"""Similarities that differ by less are the same."""

# Iterations × objects of one step: some milliseconds.
_STEP = 1600


DrawnChain = tuple[Sampler, DrawTable]
"""A chain and its draws so far."""


@dataclass(frozen=True)
class ChainSettings:
    """Length, model settings and seed of the chains."""

    draws: int = 300
    burn_in: int = 100
    concentration: float = 1.0
    seed: int = 0
    shapes: ShapesName = "common"
    prior: PartitionPrior | None = None


def mapped(
    X: FloatArray, columns: tuple[int, int], matrix: FloatArray, shift: tuple[float, float]
) -> FloatArray:
    """Map two columns of the data; the others are unchanged."""
    result = np.array(X)
    result[:, columns] = X[:, columns] @ matrix + np.asarray(shift)
    return result


def invariant_models(matrix: FloatArray, n_features: int) -> tuple[ModelName, ...]:
    """Models with the same posterior, by theory, if some of `n_features` columns are mapped by a matrix."""
    names: list[ModelName] = []
    gram = matrix @ matrix.T
    is_similarity = np.allclose(gram, gram[0, 0] * np.eye(len(gram)), rtol=0.0, atol=1e-9 * gram.max())
    if is_similarity and (n_features == len(matrix) or abs(gram[0, 0] - 1.0) < 1e-9):
        names.append("I")
    size = 1e-9 * np.abs(matrix).max()
    # One entry in each row and column: the columns are scaled, mirrored or swapped.
    if np.all((np.abs(matrix) > size).sum(axis=0) == 1) and np.all((np.abs(matrix) > size).sum(axis=1) == 1):
        names.append("II")
    return (*names, "III")


class ModelPair:
    """One model on both versions of the data.

    Attributes
    ----------
    original
        The chain of the original data, which the next comparison reuses.
    problem
        Why the model cannot be used on these data; empty if it can.
    done
        Iterations run so far.
    is_done
        Whether both chains are at their end, or cannot be run.
    n_draws
        Draws that the similarities are averages of; within the burn-in, all so far.
    last_labels
        Labels of the last iteration of both chains.
    """

    def __init__(
        self,
        model: ModelName,
        sides: tuple[FloatArray, FloatArray],
        run: ChainSettings,
        original: DrawnChain | None = None,
    ) -> None:
        self.original = original
        self.problem = ""
        self.done = self.n_draws = 0
        self.is_done = False
        self.last_labels: tuple[NDArray[np.integer], ...] = ()
        self._model, self._sides, self._run = model, sides, run
        self._transformed: DrawnChain | None = None
        self._similarities = tuple(RunningSimilarity(len(X)) for X in sides)

    def advance(self) -> None:
        """Run both chains for the same few iterations."""
        run = self._run
        try:
            self.original = self.original or self._chain(self._sides[0])
            self._transformed = self._transformed or self._chain(self._sides[1])
        except ValueError as error:
            self.problem, self.is_done = str(error), True
            return
        if self.done == run.burn_in:
            for similarity in self._similarities:
                similarity.clear()
        end = run.burn_in if self.done < run.burn_in else run.burn_in + run.draws
        stop = min(self.done + max(1, _STEP // len(self._sides[0])), end)
        chains = self.original, self._transformed
        for similarity, (sampler, draws) in zip(self._similarities, chains, strict=True):
            if stop > len(draws):
                sampler.extend(draws, stop - len(draws))
            similarity.add_block(draws.labels[self.done : stop])
        self.last_labels = tuple(draws.labels[stop - 1] for _, draws in chains)
        self.done, self.n_draws = stop, self._similarities[0].n_draws
        self.is_done = stop >= run.burn_in + run.draws

    def _chain(self, X: FloatArray) -> DrawnChain:
        run = self._run
        sampler = Sampler(
            X,
            model=self._model,
            seed=run.seed,
            concentration=run.concentration,
            shapes=run.shapes,
            prior=run.prior,
        )
        return sampler, DrawTable(sampler.posterior, sampler.move_names)

    def similarity(self) -> tuple[FloatArray, FloatArray]:
        """Similarity of the draws so far, original and transformed."""
        first, second = (similarity.similarity() for similarity in self._similarities)
        return first, second

    def difference(self) -> float | None:
        """Largest difference of the two similarities; None before the first draw or after an error."""
        if self.problem or not self.n_draws:
            return None
        first, second = self.similarity()
        return float(np.abs(first - second).max())


@dataclass
class KMeansPair:
    """k-means on both versions: labels, adjusted Rand index of the two, and objects that change clusters.

    Clusters are matched so that as few objects as possible change.
    """

    sides: tuple[FloatArray, FloatArray]
    n_clusters: int
    seed: int
    labels: tuple[NDArray[np.intp], ...] = ()
    agreement: float | None = None
    moved: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def find(self) -> None:
        """Cluster both."""
        from sklearn.cluster import KMeans

        found = []
        for X in self.sides:
            count = min(self.n_clusters, len(np.unique(X, axis=0)))
            fitted = KMeans(n_clusters=count, n_init=10, random_state=self.seed).fit(X)
            found.append(fitted.labels_.astype(np.intp))
        self.labels = tuple(found)
        self.agreement = adjusted_rand(*found)
        self.moved = changed_objects(*found)


class Comparison:
    """All models and k-means on the original and on the transformed data, run in the background.

    Chains of an earlier comparison with the same original data and settings are reused.
    """

    def __init__(
        self,
        original: FloatArray,
        transformed: FloatArray,
        run: ChainSettings,
        n_clusters: int,
        before: "Comparison | None" = None,
    ) -> None:
        sides = original, transformed
        self.run = run
        self.original = original
        self.k_means = KMeansPair(sides, n_clusters, run.seed)
        kept = {} if before is None else {model: pair.original for model, pair in before.models.items()}
        self.models: dict[ModelName, ModelPair] = {
            model: ModelPair(model, sides, run, kept.get(model)) for model in MODELS
        }

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to run."""
        return self.k_means.agreement is not None and all(pair.is_done for pair in self.models.values())

    def advance(self, steps: int) -> int:
        """Run at most `steps` steps, each of the model that is furthest behind; returns how many were run."""
        for step in range(steps):
            if self.is_done:
                return step
            if self.k_means.agreement is None:
                self.k_means.find()
            else:
                behind = (pair for pair in self.models.values() if not pair.is_done)
                min(behind, key=lambda pair: pair.done).advance()
        return steps


def verdict(comparison: Comparison, expected: tuple[ModelName, ...]) -> str:
    """Say which results are invariant to the transformation; `expected` are the models that are in theory."""
    pairs = comparison.models
    if not comparison.is_done:
        done = min((pair.done for pair in pairs.values() if not pair.problem), default=0)
        if done == 0:
            return "Preparing the sampler. Its first use compiles it, which can take some seconds."
        iterations = comparison.run.burn_in + comparison.run.draws
        return f"Sampling both versions with the same seed: iteration {done} of {iterations}."
    groups: dict[str, list[str]] = {
        "{} {} invariant: same result before and after.": [],
        "{} changed: the result depends on the coordinates.": [],
        "{} {} invariant in theory, but rounding separated the two chains; try another seed.": [],
    }
    same, changed, astray = groups.values()
    for model, pair in pairs.items():
        difference = pair.difference()
        if difference is not None:
            (same if difference < SAME else astray if model in expected else changed).append(model)
    agreement = comparison.k_means.agreement
    if agreement is not None:
        (same if agreement > 1.0 - SAME else changed).append("k-means")
    sentences = []
    for sentence, names in groups.items():
        if names:
            models = sum(name in MODELS for name in names)
            if models:
                names[0] = f"{'Model' if models == 1 else 'Models'} {names[0]}"
            listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
            sentences.append(sentence.format(listed, "is" if len(names) == 1 else "are"))
    return " ".join(sentences)
