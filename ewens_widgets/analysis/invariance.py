r"""Whose answer survives a change of coordinates: the three models and k-means on two versions of the data.

A model is invariant to a group of maps y → y A + a: its posterior of partitions is the same before and after
every map of that group. All three survive shifts a; besides,

* model I survives rotations, mirrorings and one common scale, that is :math:`A A^\top = c \, I`;
* model II survives a scale for each column, that is a diagonal A (its columns may be swapped, too);
* model III survives every invertible A.

`invariant_models` says this of a matrix; `Comparison` sees for itself. It runs a chain of each model on both
versions with the same seed. As the sampler works in canonical coordinates, not only the posterior survives
but the whole chain, draw by draw; the largest difference of the two similarities is then exactly 0, not just
small. Rounding can send two such chains different ways all the same, at a decision that hung by a thread;
`verdict` tells that apart from an answer that depends on the coordinates.

Everything is done in small steps, so that it can be done in the background. The chains of the original data
are kept from one comparison to the next, since they depend on the data and the settings alone: whoever moves
a slider waits for half of the chains only.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.analysis.plots.palette import changed_objects
from ewens_widgets.analysis.similarity import RunningSimilarity
from ewens_widgets.datasets._loaders import SCALING, SHEAR
from ewens_widgets.model.checks import FloatArray, ModelName
from ewens_widgets.model.posterior import ShapesName
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.sampling.recorder import Recorder
from ewens_widgets.sampling.sampler import Sampler

__all__ = [
    "MODELS",
    "PAPER_MATRICES",
    "SAME",
    "ChainSettings",
    "Comparison",
    "KMeansPair",
    "ModelPair",
    "SideChain",
    "invariant_models",
    "mapped",
    "verdict",
]

MODELS: tuple[ModelName, ...] = ("I", "II", "III")

PAPER_MATRICES: dict[str, FloatArray] = {"I": np.eye(2), "II": SCALING, "III": SHEAR}
"""The transformations of the unit square, by the model that they are meant for."""

SAME = 1e-6
"""Similarities that differ by less are the same."""

# Iterations × objects of one step: some milliseconds.
_STEP = 1600


@dataclass(frozen=True)
class ChainSettings:
    """How long the chains are, what they sample, and what they start from."""

    draws: int = 300
    burn_in: int = 100
    concentration: float = 1.0
    seed: int = 0
    shapes: ShapesName = "common"
    prior: PartitionPrior | None = None

    @property
    def iterations(self) -> int:
        """Iterations in all."""
        return self.burn_in + self.draws


def mapped(
    X: FloatArray, columns: tuple[int, int], matrix: FloatArray, shift: tuple[float, float]
) -> FloatArray:
    """Map two columns of the data; the others stay as they are."""
    result = np.array(X)
    result[:, columns] = X[:, columns] @ matrix + np.asarray(shift)
    return result


def invariant_models(matrix: FloatArray, n_features: int) -> tuple[ModelName, ...]:
    """Which models give the same posterior by theory, if two of so many columns are mapped like this."""
    names: list[ModelName] = []
    gram = matrix @ matrix.T
    is_similarity = np.allclose(gram, gram[0, 0] * np.eye(2), rtol=0.0, atol=1e-9 * gram.max())
    if is_similarity and (n_features == 2 or abs(gram[0, 0] - 1.0) < 1e-9):
        names.append("I")
    size = 1e-9 * np.abs(matrix).max()
    # One entry in each row and column: the columns are scaled, mirrored or swapped.
    if np.all((np.abs(matrix) > size).sum(axis=0) == 1) and np.all((np.abs(matrix) > size).sum(axis=1) == 1):
        names.append("II")
    return (*names, "III")


class SideChain:
    """One chain, run as far as somebody asks."""

    def __init__(self, X: FloatArray, model: ModelName, run: ChainSettings) -> None:
        self._sampler = Sampler(
            X,
            model=model,
            concentration=run.concentration,
            seed=run.seed,
            shapes=run.shapes,
            prior=run.prior,
        )
        self._recorder = Recorder(self._sampler.posterior, self._sampler.move_names)

    def labels(self, start: int, stop: int) -> NDArray[np.integer]:
        """Labels of some iterations, a row each."""
        missing = stop - len(self._recorder)
        if missing > 0:
            self._sampler.extend(self._recorder, missing)
        return self._recorder.labels[start:stop]


class ModelPair:
    """One model on both versions of the data.

    Parameters
    ----------
    model
        Name of the model.
    sides
        Original and transformed data.
    run
        Settings of both chains.
    original
        A chain of the original data with these settings, to be used again.

    Attributes
    ----------
    model
        Name of the model.
    problem
        Why the model cannot be used on these data; empty if it can.
    done
        Iterations run so far.
    """

    def __init__(
        self,
        model: ModelName,
        sides: tuple[FloatArray, FloatArray],
        run: ChainSettings,
        original: SideChain | None = None,
    ) -> None:
        self.model = model
        self.problem = ""
        self.done = 0
        self._run = run
        self._data = sides
        self._chains = [] if original is None else [original]
        self._similarities = tuple(RunningSimilarity(len(X)) for X in sides)
        self.last_labels: tuple[NDArray[np.integer], ...] = ()

    @property
    def original(self) -> SideChain | None:
        """The chain of the original data, to be used again."""
        return self._chains[0] if self._chains else None

    @property
    def is_done(self) -> bool:
        """Whether both chains are at their end, or cannot be run."""
        return bool(self.problem) or self.done >= self._run.iterations

    @property
    def n_draws(self) -> int:
        """Draws that the similarities are averages of; within the burn-in, all so far."""
        return self._similarities[0].n_draws

    def advance(self) -> None:
        """Run both chains for the same few iterations."""
        try:
            while len(self._chains) < 2:
                self._chains.append(SideChain(self._data[len(self._chains)], self.model, self._run))
        except ValueError as error:
            self.problem = str(error)
            return
        burn_in = self._run.burn_in
        end = burn_in if self.done < burn_in else self._run.iterations
        stop = min(self.done + max(1, _STEP // len(self._data[0])), end)
        last = []
        for chain, similarity in zip(self._chains, self._similarities, strict=True):
            if self.done == burn_in:
                similarity.clear()
            labels = chain.labels(self.done, stop)
            similarity.add_block(labels)
            last.append(labels[-1])
        self.last_labels = tuple(last)
        self.done = stop

    def similarity(self) -> tuple[FloatArray, FloatArray]:
        """Similarity of the draws so far, original and transformed."""
        first, second = (similarity.similarity() for similarity in self._similarities)
        return first, second

    def difference(self) -> float | None:
        """Largest difference of the two similarities; None before the first draw, or with a problem."""
        if self.problem or not self.n_draws:
            return None
        first, second = self.similarity()
        return float(np.abs(first - second).max())


@dataclass
class KMeansPair:
    """k-means on both versions of the data.

    Attributes
    ----------
    labels
        Labels of original and transformed data, once found.
    agreement
        Adjusted Rand index of the two.
    moved
        Objects that are in another cluster, clusters being matched as well as possible.
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
    """All models and k-means on the original and on the transformed data: work for the background.

    Parameters
    ----------
    original, transformed
        The two versions of the data.
    run
        Length, concentration and seed of the chains.
    n_clusters
        Number of clusters for k-means.
    before
        An earlier comparison with the same original data and run, whose chains can be used again.
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
        self.original, self.transformed = sides
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
        """Run the model that is furthest behind, so many times."""
        for step in range(steps):
            if self.is_done:
                return step
            if self.k_means.agreement is None:
                self.k_means.find()
                continue
            behind = (pair for pair in self.models.values() if not pair.is_done)
            min(behind, key=lambda pair: pair.done).advance()
        return steps


def verdict(comparison: Comparison, expected: tuple[ModelName, ...]) -> str:
    """Which models survived the transformation, in plain text.

    Parameters
    ----------
    comparison
        The chains.
    expected
        Models that survive it by theory.
    """
    pairs = comparison.models.values()
    if not comparison.is_done:
        done = min((pair.done for pair in pairs if not pair.problem), default=0)
        if done == 0:
            return "Preparing the sampler. Its first use compiles it, which can take some seconds."
        return f"Sampling both versions with the same seed: iteration {done} of {comparison.run.iterations}."
    same, changed, astray = _sorted_out(comparison, expected)
    sentences = []
    if same:
        sentences.append(f"{_listed(same)} survived: the same answer before and after.")
    if changed:
        sentences.append(f"{_listed(changed)} did not: the answer depends on the coordinates.")
    if astray:
        sentences.append(
            f"{_listed(astray)} should have survived, but rounding sent the two chains different ways; "
            "try another seed."
        )
    return " ".join(sentences)


def _sorted_out(
    comparison: Comparison, expected: tuple[ModelName, ...]
) -> tuple[list[str], list[str], list[str]]:
    """Methods whose answer is the same, changed as it must, and changed although it should not."""
    same: list[str] = []
    changed: list[str] = []
    astray: list[str] = []
    for model, pair in comparison.models.items():
        difference = pair.difference()
        if difference is not None:
            group = same if difference < SAME else astray if model in expected else changed
            group.append(f"model {model}")
    agreement = comparison.k_means.agreement
    if agreement is not None:
        (same if agreement > 1.0 - SAME else changed).append("k-means")
    return same, changed, astray


def _listed(names: list[str]) -> str:
    """Model I, model II and k-means; with a capital letter."""
    models = [name.removeprefix("model ") for name in names if name.startswith("model ")]
    others = [name for name in names if not name.startswith("model ")]
    parts = (
        [f"{'model' if len(models) == 1 else 'models'} {models[0]}", *models[1:]] if models else []
    ) + others
    text = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return text if text.startswith("k-means") else text[0].upper() + text[1:]
