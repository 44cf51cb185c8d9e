"""The clustering as a scikit-learn estimator."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ewens_widgets.analysis.evidence_tree import check_consensus_fits, consensus_tree, evidence_tree
from ewens_widgets.analysis.predictive import CanonicalMap, Prediction, predict_clusters
from ewens_widgets.analysis.trees import Tree, check_tree_fits
from ewens_widgets.datasets import Dataset
from ewens_widgets.datasets._frames import frame_of, is_frame
from ewens_widgets.memory import TooLargeError
from ewens_widgets.model.checks import check_data
from ewens_widgets.model.priors.ewens import Concentration
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    _HAS_CALLBACKS = True
except ImportError:  # scikit-learn before 1.9
    _HAS_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    Method = TypeVar("Method", bound=Callable[..., Any])

    def with_callbacks(method: Method) -> Method:
        """Leave the method as it is."""
        return method


__all__ = ["AffineClustering"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_TREES = ("auto", "consensus", "evidence", "single", "average", "complete")
_STEPS = 20  # What a progress bar moves in.


class AffineClustering(
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn has no types
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Bayesian clustering that is invariant to affine transformations, in scikit-learn's conventions.

    Fitting runs a Markov chain over partitions. Without `n_clusters` the partition with the least expected
    loss is reported; with it, trees of the draws are cut into so many clusters.

    Parameters
    ----------
    model
        ``"III"``: invariant to every non-singular linear map of the features (needs more than d + 1 rows),
        ``"II"``: to a scale for each feature, ``"I"``: to rotations and one common scale.
    n_clusters
        Number of clusters, or None to have it found.
    tree
        What is cut if `n_clusters` is given. ``"consensus"``: the average of the evidence trees of many
        draws; ``"evidence"``: the evidence tree of the draw with the highest posterior; ``"single"``,
        ``"average"``, ``"complete"``: linkage of how often the draws keep two rows apart. Single linkage is
        the choice for long or bent clusters. All but the evidence tree need memory for all pairs of rows,
        and are refused before the chain is run where there is not enough. ``"auto"``: the consensus where
        it fits in memory, else the evidence tree.
    min_size
        Smaller clusters do not count towards `n_clusters`; their rows join the nearest cluster.
    loss
        Loss of the point estimate where `n_clusters` is None: ``"vi"`` (variation of information) or
        ``"binder"``.
    concentration
        Concentration λ of the Ewens prior, or ``Gamma(shape, rate)``: then it is sampled too.
    alpha
        Shape of the prior of the variance ratio θ.
    theta_grid
        Values of θ; powers of two from 1/8 to 1024 by default.
    moves
        Schedule of the chain: ``"default"``, ``"paper-1"``, ``"paper-2"``, or a list of moves.
    initial
        Partition that the chain starts from: ``"singletons"``, ``"one-cluster"``, ``"k-means"``, ``"prior"``,
        or labels.
    draws, burn_in, thin
        Draws to keep, iterations before the first, and iterations for each.
    random_state
        Seed: an int gives the same result each time (and the same chain as ``Sampler(..., seed=...)``).
    verbose
        Show a progress bar.

    Attributes
    ----------
    labels_
        Cluster of each row: 0, 1, … in order of first appearance. Fitted to a pandas DataFrame, or to a
        `Dataset` that was read from one, it is a Series with the labels of its rows: it can be put beside
        the original table, also where rows were left out.
    n_clusters_
        Number of clusters found. It may be less than `n_clusters`, with a warning, where no draw tells more
        clusters apart.
    trace_
        The draws, with all their summaries: ``trace_.report()`` says whether to trust them.
    tree_
        The tree that was cut; only where `n_clusters` is given.
    estimate_
        The point estimate with its uncertainty; only where `n_clusters` is None.
    similarity_
        Share of draws in which each pair of rows is in one cluster (computed when first asked for).
    n_iter_
        Iterations done.
    interrupted_trace
        The draws so far, or None, where the last fit was interrupted while it drew; the estimator is then not
        fitted.
    n_features_in_, feature_names_in_
        Number of features, and their names if the data had any.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> moons = ew.datasets.half_moons(seed=0)
    >>> clustering = ew.AffineClustering(model="II", n_clusters=2, tree="single", min_size=10, random_state=0)
    >>> ew.error_rate(moons.labels, clustering.fit_predict(moons.X))
    0.0
    """

    def __init__(
        self,
        model: str = "III",
        *,
        n_clusters: int | None = None,
        tree: str = "auto",
        min_size: int = 1,
        loss: str = "vi",
        concentration: Concentration = 1.0,
        alpha: float = 1.0,
        theta_grid: ArrayLike | None = None,
        moves: Any = "default",  # noqa: ANN401 - what `Sampler` takes
        initial: str | ArrayLike = "singletons",
        draws: int = 1000,
        burn_in: int = 500,
        thin: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.n_clusters = n_clusters
        self.tree = tree
        self.min_size = min_size
        self.loss = loss
        self.concentration = concentration
        self.alpha = alpha
        self.theta_grid = theta_grid
        self.moves = moves
        self.initial = initial
        self.draws = draws
        self.burn_in = burn_in
        self.thin = thin
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike | Dataset, y: object = None) -> "AffineClustering":
        """Run the chain and report a partition.

        Interrupted (Ctrl-C), it raises KeyboardInterrupt, as searches and cross-validation expect; the draws
        so far are then in `interrupted_trace`.

        Parameters
        ----------
        X
            Data, n rows by d features: an array, a `Dataset`, or a DataFrame with numbers only.
        y
            Not used; there by convention.
        """
        # What an earlier fit found does not belong to these data, even if this one is not finished.
        for name in ("labels_", "interrupted_trace"):
            self.__dict__.pop(name, None)
        matrix = self._checked(X, reset=True)
        self._check_choices(len(matrix))
        self._cut_tree = self._fitting_tree(len(matrix))
        named = _with_names(X, matrix)
        self._index = named.index if isinstance(named, Dataset) else None
        sampler = Sampler(
            named,
            model=self.model,
            concentration=self.concentration,
            alpha=self.alpha,
            theta_grid=self.theta_grid,
            moves=self.moves,
            initial=self.initial,
            seed=self._seed(),
        )
        self._map = CanonicalMap.between(matrix, sampler.posterior)
        if _HAS_CALLBACKS:
            trace = self._sample_with_callbacks(sampler, matrix, y)
        else:
            trace = self._draw(sampler, self.draws, self.burn_in, self.verbose)
        for name, value in self._report(trace).items():
            setattr(self, name, value)
        self.n_iter_ = sampler.iteration
        return self

    def predict_proba(self, X: ArrayLike | Dataset) -> FloatArray:
        """Probability of each row, taken as a new object, for each cluster.

        The exact conditional of a new object over the clusters of a draw, averaged over draws; a cluster of a
        draw stands for the reported ones in proportion to its members in each. Probabilities are given that
        the row belongs to one of the clusters found, so rows sum to 1; `predict_novelty` says how probable it
        is that it belongs to none. For rows that were fitted, the result may differ from `labels_`, since
        they are taken as further objects.
        """
        return self._predicted(X).clusters

    def predict_novelty(self, X: ArrayLike | Dataset) -> FloatArray:
        """Probability of each row, taken as a new object, to open a cluster of its own."""
        return self._predicted(X).novelty

    def predict(self, X: ArrayLike | Dataset) -> IntArray:
        """Most probable cluster of each row, taken as a new object."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.intp)

    def transform(self, X: ArrayLike | Dataset) -> FloatArray:
        """Describe each row by its probabilities for the clusters, as `predict_proba` does."""
        return self.predict_proba(X)

    @property
    def similarity_(self) -> FloatArray:
        """Share of draws in which each pair of rows is in one cluster."""
        check_is_fitted(self)
        return np.asarray(self.trace_.similarity(), dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)

    def _checked(self, X: ArrayLike | Dataset, reset: bool) -> FloatArray:
        given = X.X if isinstance(X, Dataset) else X
        least = {"ensure_min_samples": 2} if reset else {}
        if is_frame(given) or isinstance(X, Dataset):
            check_data(X)  # which names columns and rows, as scikit-learn does not
        try:
            return np.asarray(validate_data(self, given, dtype=np.float64, reset=reset, **least))
        except ValueError as fault:
            if "could not convert" in str(fault):
                check_data(X)  # says the same with the way out
            raise

    def _check_choices(self, n_rows: int) -> None:
        if self.tree not in _TREES:
            raise ValueError(f"tree must be one of {', '.join(map(repr, _TREES))}; got {self.tree!r}.")
        count: Any = self.n_clusters
        if count is not None and not (isinstance(count, int | np.integer) and count >= 1):
            raise ValueError(f"n_clusters must be None or a whole number of at least 1; got {count!r}.")
        if count is not None and count > n_rows:
            raise ValueError(f"n_samples={n_rows} should be >= n_clusters={count}.")

    def _fitting_tree(self, n_rows: int) -> str:
        """Which tree will be cut, settled before the chain is run: no draws are lost for lack of memory."""
        kind = "consensus" if self.tree == "auto" else self.tree
        if self.n_clusters is None or kind == "evidence":
            return kind
        check = check_consensus_fits if kind == "consensus" else check_tree_fits
        try:
            check(n_rows, 'Use tree="evidence", which needs no pairs of rows, or fewer rows.')
        except TooLargeError:
            if self.tree != "auto":
                raise
            return "evidence"
        return kind

    def _seed(self) -> int | None:
        if self.random_state is None or isinstance(self.random_state, int | np.integer):
            return None if self.random_state is None else int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _sample_with_callbacks(self, sampler: Sampler, X: FloatArray, y: object) -> Trace:
        """Run the chain in steps, telling scikit-learn's callbacks about each; they may stop it."""
        plan = list(_steps(self.draws, self.burn_in)) if hasattr(self, "_skl_callbacks") else []
        context = self._init_callback_context(max_subtasks=len(plan))
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        traces: list[Trace] = []
        for name, draws, burn_in in plan:
            step = context.subcontext(task_name=name)
            step.call_on_fit_task_begin(estimator=self, X=X, y=y)
            if draws:
                traces.append(self._draw(sampler, draws, earlier=traces))
            for _ in sampler.events(burn_in):
                pass
            state = (lambda: self._report(Trace.concatenate(traces))) if traces else None
            if step.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=state):
                break
        if not plan:
            traces = [self._draw(sampler, self.draws, self.burn_in, self.verbose)]
        elif not traces:
            traces = [self._draw(sampler, 1)]
        trace = traces[0] if len(traces) == 1 else Trace.concatenate(traces)
        context.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes=lambda: self._report(trace)
        )
        return trace

    def _draw(
        self,
        sampler: Sampler,
        draws: int,
        burn_in: int = 0,
        progress: bool = False,
        earlier: Sequence[Trace] = (),
    ) -> Trace:
        """Run the chain; interrupted, keep the draws so far, and let the interrupt through.

        A search over many fits would otherwise go on with the next one.
        """
        recorder = sampler.recorder(draws)
        try:
            sampler.extend(recorder, draws, burn_in, self.thin, progress=progress)
        except KeyboardInterrupt:
            made = [*earlier, *([recorder.trace()] if len(recorder) else [])]
            self.interrupted_trace = Trace.concatenate(made) if made else None
            raise
        return recorder.trace()

    def _report(self, trace: Trace) -> dict[str, Any]:
        """Attributes of the fitted estimator that the draws decide."""
        extra: tuple[str, Any]
        if self.n_clusters is None:
            estimate = trace.point_estimate(self.loss)
            labels, extra = estimate.labels, ("estimate_", estimate)
        else:
            tree = self._tree(trace, self.n_clusters)
            labels, extra = _cut(tree, self.n_clusters, self.min_size), ("tree_", tree)
        return {
            "trace_": trace,
            "labels_": np.array(labels) if self._index is None else _series(labels, self._index),
            "n_clusters_": int(labels.max()) + 1,
            "_map": self._map,
            "_index": self._index,
            **dict([extra]),
        }

    def _tree(self, trace: Trace, n_clusters: int) -> Tree:
        if self._cut_tree == "consensus":
            return consensus_tree(trace, n_clusters)
        if self._cut_tree == "evidence":
            # The highest posterior among the draws that have enough clusters, or nearly.
            enough = trace.n_clusters >= min(n_clusters, int(trace.n_clusters.max()))
            best = int(np.argmax(np.where(enough, trace.log_posterior, -np.inf)))
            return evidence_tree(trace.posterior, trace.labels[best])
        return trace.similarity_tree(self._cut_tree)

    def _predicted(self, X: ArrayLike | Dataset) -> Prediction:
        check_is_fitted(self)
        coordinates = self._map(self._checked(X, reset=False))
        return predict_clusters(self.trace_, np.asarray(self.labels_), coordinates)


def _with_names(X: ArrayLike | Dataset, matrix: FloatArray) -> FloatArray | Dataset:
    """The checked data with the names that they came with, for messages and for the labels."""
    if isinstance(X, Dataset):
        return X
    if not is_frame(X):
        return matrix
    frame = frame_of(X)
    return Dataset(X=matrix, feature_names=frame.names, row_names=frame.row_names, index=frame.index)


def _series(labels: IntArray, index: Any) -> Any:  # noqa: ANN401 - pandas' own
    import pandas as pd

    return pd.Series(np.array(labels), index=index, name="cluster")


def _steps(draws: int, burn_in: int) -> Iterator[tuple[str, int, int]]:
    """Names, draws and burn-in iterations of about `_STEPS` parts of a run."""
    for name, total in (("burn-in", burn_in), ("sampling", draws)):
        parts = max(1, round(_STEPS * total / (draws + burn_in))) if total else 0
        for part in range(min(parts, total)):
            size = total * (part + 1) // min(parts, total) - total * part // min(parts, total)
            yield name, size * (name == "sampling"), size * (name == "burn-in")


def _cut(tree: Tree, n_clusters: int, min_size: int) -> IntArray:
    """Cut a tree, but not where it only has rows that no draw keeps apart."""
    apart = tree.cut(height=0.0) if tree.kind == "similarity" else tree.cut(n_clusters=tree.n_start)
    most = int(apart.max()) + 1
    if most < n_clusters:
        warnings.warn(
            f"the draws tell {most} clusters apart, fewer than n_clusters={n_clusters}; these are reported. "
            "More draws, or a larger concentration, may tell more.",
            ConvergenceWarning,
            stacklevel=2,
        )
        return apart
    return tree.cut(n_clusters=n_clusters, min_size=min_size)
