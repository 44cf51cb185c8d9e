"""The clustering as a scikit-learn estimator."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ewens_widgets.analysis.answer import ANSWER_PRIOR, TREES, shared_companions, tree_to_cut
from ewens_widgets.analysis.estimates import LOSSES
from ewens_widgets.analysis.evidence_tree import check_consensus_fits
from ewens_widgets.analysis.predictive import Prediction, log_predictive_density, predict_clusters
from ewens_widgets.analysis.report import Report
from ewens_widgets.analysis.trees import Tree, check_tree_fits
from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.datasets._frames import as_pandas, column_names, is_frame, row_names
from ewens_widgets.group_profile import Profile, profile
from ewens_widgets.model.checks import check_data, check_finite
from ewens_widgets.model.mixed_columns import check_rows
from ewens_widgets.model.priors.ewens import Concentration
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.sampling.chains.result import Chains, Until, until
from ewens_widgets.sampling.chains.sample import Run, Start, chain_starts, make_plan
from ewens_widgets.sampling.sampler import progress_bar
from ewens_widgets.sampling.state import first_state

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

_STEPS = 20  # Chunks of a run with scikit-learn's callbacks.
_RHAT, _ESS = 1.05, 100.0  # Chains stop when both are reached.
_BURN_IN = 500  # Iterations, if `draws` is given; otherwise the first half of each chain is dropped.
# If `draws` is None: iterations of each chain up to the first check, and at most; fewest and most of both.
_FIRST, _LAST = (100, 800), (600, 4000)
_ROOT_WORK = 3e4  # Iterations up to the first check times the root of the cost of a sweep …
_WORK = 3e8  # … and most iterations times the cost of a sweep: several seconds of a processor core.
_MANY_ROWS = 5000
_MANY_COLUMNS = 10  # With four to ten rows for each, chains from other starts do not find the clusters.
_FEWEST_CHECKED = 8  # Draws; below that R-hat is not defined.


class AffineClustering(
    CallbackSupportMixin,  # type: ignore[misc] # scikit-learn has no types
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Bayesian clustering that is invariant to affine transformations, in scikit-learn's conventions.

    Fitting runs Markov chains over partitions until they agree. By default the result is the answer of their
    draws (`Trace.answer`): groups that the draws keep apart. With `n_clusters`, a tree of the draws is cut
    into that number of clusters. `ewens_widgets.compare` chooses model and shapes by predicting held-out
    rows.

    Parameters
    ----------
    model
        ``"III"``: invariant to every non-singular linear map of the features (needs more than d + 1 rows),
        ``"II"``: to a scale for each feature, ``"I"``: to rotations and one common scale.
    n_clusters
        Number of clusters, or None to infer it.
    tree
        The tree to cut if `n_clusters` is given. ``"consensus"``: the average of the evidence trees of many
        draws; ``"evidence"``: the evidence tree of the draw with the highest posterior; ``"single"``,
        ``"average"``, ``"complete"``: linkage of the share of draws that separate two rows. Use single
        linkage for long or bent clusters. All but the evidence tree need memory for all pairs of rows; if it
        is not available, they are refused before the chains are run. ``"auto"``: single linkage if the
        answer finds long or bent groups, else the consensus if it fits in memory, else the evidence tree.
    min_size
        Smaller clusters do not count towards `n_clusters`; their rows join the nearest cluster. Without
        `n_clusters` it is refused: the answer has its own rule for small clusters.
    loss
        If `n_clusters` is None: None for the answer; ``"vi"`` (variation of information) or ``"binder"``
        for the partition with the least expected loss, which has a cluster for each Gaussian component.
    shapes
        ``"own"``: each cluster has its own covariance; ``"common"``: one for all, as in the paper.
    prior
        Prior on partitions from ``ew.priors``. None: with own shapes a finite mixture with four components on
        average (``FiniteMixture(1.0, Poisson(3.0))``); with common shapes or a `concentration`, Ewens' prior.
    concentration
        Concentration λ of the Ewens prior, or ``Gamma(shape, rate)`` to sample it. None for 1.
    alpha
        Shape of the prior of the variance ratio θ.
    theta_grid
        Values of θ; powers of two from 1/8 to 1024 by default.
    centre
        ``"mean"``: the centre of the data is treated as known; ``"unknown"``: it is drawn (see `Sampler`).
    kinds
        What each column is. ``"auto"``: those of the `Dataset` if it has any, else proposed from the values:
        a column with few distinct values, or one value in most rows, is a category, and one that only counts
        the rows is left out; the report names these columns with the reason. ``"numeric"``: all columns are
        numbers. A mapping or list says it, ``{"sex": "category"}``. With any of these, model III leaves out
        directions that are rounding. None: numbers as they stand.
    moves
        Schedule of the chains: ``"default"``, ``"paper-1"``, ``"paper-2"``, or a list of moves.
    initial
        Partition that the chains start from: ``"singletons"``, ``"one-cluster"``, ``"k-means"``,
        ``"prior"``, ``"mixture"``, or labels; or a list with one for each chain. None: different starts;
        k-means for many rows, and mixtures for many columns with four to ten rows each; for a single chain
        the default of `Sampler`.
    n_chains
        Number of chains. A single chain is that of `Sampler`; it cannot show that it has converged.
    n_jobs
        Chains that run at the same time, in threads; None for all cores. `joblib.parallel_config` chooses
        another number, processes or a cluster. The draws do not depend on it.
    draws
        Draws to keep of each chain. None: until the chains agree (R-hat 1.05, effective sample size 100), but
        at most 2000 draws, fewer for large data.
    burn_in, thin
        Iterations before the first draw of each chain, and iterations for each draw. A `burn_in` of None is
        500 if `draws` is given, else the first half of each chain.
    random_state
        Seed. An int gives the same result each time, and the same chains as ``sample_chains(..., seed=...)``
        (a single chain: ``Sampler(..., seed=...)``) with the same settings.
    verbose
        Show a progress bar.

    Attributes
    ----------
    labels_
        Cluster of each row: 0, 1, … in order of first appearance. Fitted to a pandas DataFrame, or to a
        `Dataset` that was read from one, it is a Series with the index of its rows, which aligns with the
        original table even if rows were dropped.
    n_clusters_
        Number of clusters found. It may be less than `n_clusters`, with a warning, if no draw has more.
    memberships_
        Membership probability of each row for each cluster (n × K); rows sum to 1.
    answer_
        The answer with its reasons, merge table and small clusters; only if `n_clusters` and `loss` are None.
    chains_
        All chains; ``chains_.report()`` reports on their convergence and on the fit.
    trace_
        The draws of all chains together, with all their summaries.
    tree_
        The tree that was cut; only if `n_clusters` is given.
    estimate_
        The point estimate with its uncertainty; only if a `loss` is given and `n_clusters` is None.
    similarity_
        Share of draws in which each pair of rows is in one cluster (computed when first asked for).
    n_iter_
        Iterations done, by all chains together.
    interrupted_trace
        The draws so far (or None), if the last fit was interrupted; the estimator is then not fitted.
    n_features_in_, feature_names_in_
        Number of features, and their names if the data had any.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> moons = ew.datasets.half_moons(seed=0)
    >>> clustering = ew.AffineClustering(
    ...     model="II", n_clusters=2, tree="single", min_size=10, shapes="common", n_chains=1, draws=1000,
    ...     random_state=0,
    ... )
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
        loss: str | None = None,
        shapes: str = "own",
        prior: PartitionPrior | None = None,
        concentration: Concentration | None = None,
        alpha: float = 1.0,
        theta_grid: ArrayLike | None = None,
        centre: str = "mean",
        kinds: Any = "auto",  # noqa: ANN401 - what `Sampler` takes
        moves: Any = "default",  # noqa: ANN401 - what `Sampler` takes
        initial: Start | Sequence[Start] | None = None,
        n_chains: int = 4,
        n_jobs: int | None = None,
        draws: int | None = None,
        burn_in: int | None = None,
        thin: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.n_clusters = n_clusters
        self.tree = tree
        self.min_size = min_size
        self.loss = loss
        self.shapes = shapes
        self.prior = prior
        self.concentration = concentration
        self.alpha = alpha
        self.theta_grid = theta_grid
        self.centre = centre
        self.kinds = kinds
        self.moves = moves
        self.initial = initial
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.draws = draws
        self.burn_in = burn_in
        self.thin = thin
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn has no types
        """Missing cells are part of the model."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike | Dataset, y: object = None, **others: object) -> "AffineClustering":
        """Run the chains and report a partition.

        Interrupted (Ctrl-C), it raises KeyboardInterrupt, as searches and cross-validation expect; the draws
        so far are then in `interrupted_trace`.

        Parameters
        ----------
        X
            Data, n rows by d features: an array, a `Dataset`, or a DataFrame with numbers only.
        y
            Not used, present by convention.
        others
            Refused: rows have no weights.
        """
        if others:
            raise TypeError(
                f"fit takes no {', '.join(others)}: every row counts once. Do not repeat rows to give them "
                "weight; copies would count as independent observations. Leave rows out, or fit without."
            )
        # Results of an earlier fit are removed even if this fit is interrupted.
        for name in ("labels_", "interrupted_trace"):
            self.__dict__.pop(name, None)
        matrix = self._checked(X, reset=True)
        self._check_choices(len(matrix))
        self._check_tree_fits(len(matrix))
        named = _with_names(X, matrix)
        self._fitted = named
        self._index = named.index if isinstance(named, Dataset) else None
        run = self._open_run(named)
        chains = self._sample(run, matrix, y)
        for name, value in self._report(chains).items():
            setattr(self, name, value)
        self.n_iter_ = run.iterations[0]
        _warn_unless_converged(chains)
        return self

    def predict_proba(self, X: ArrayLike | Dataset) -> FloatArray:
        """Probability of each row, treated as a new object, for each cluster.

        The exact conditional of a new object over the clusters of a draw, averaged over draws. A cluster of a
        draw is divided among the reported clusters in proportion to its members in each. Probabilities are
        conditional on the row belonging to a cluster found, so rows sum to 1; `predict_novelty` gives the
        probability that it belongs to none. For fitted rows the result may differ from `labels_`, since
        they are treated as further objects.
        """
        return self._predicted(X).clusters

    def predict_novelty(self, X: ArrayLike | Dataset) -> FloatArray:
        """Probability of each row, treated as a new object, to form a new cluster."""
        return self._predicted(X).novelty

    def predict(self, X: ArrayLike | Dataset) -> IntArray:
        """Most probable cluster of each row, taken as a new object."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.intp)

    def score_samples(self, X: ArrayLike | Dataset) -> FloatArray:
        """Log predictive density of each row, treated as a new object, in the units of the data."""
        check_is_fitted(self)
        density = log_predictive_density(self.trace_, **self._new_rows(X))
        return density + float(self.trace_.posterior.map.log_jacobian)

    def score(self, X: ArrayLike | Dataset, y: object = None) -> float:  # noqa: ARG002 - there by convention
        """Mean log predictive density of the rows, treated as new objects: higher is better.

        It compares settings on rows that were not fitted, as searches and `ewens_widgets.compare` do.
        """
        return float(self.score_samples(X).mean())

    def transform(self, X: ArrayLike | Dataset) -> FloatArray:
        """Describe each row by its probabilities for the clusters, as `predict_proba` does."""
        return self.predict_proba(X)

    def report(self, data: ArrayLike | Dataset | None = None) -> Report:
        """Judge the chains and the model, as ``chains_.report()`` and ``trace_.report()`` do."""
        check_is_fitted(self)
        chains: Chains = self.chains_
        return chains.report(data)

    def profile(self, data: ArrayLike | Dataset | None = None) -> Profile:
        """What tells the groups apart, in the units of the data.

        Parameters
        ----------
        data
            The data that were fitted; by default those of the last fit, which the estimator refers to.
        """
        check_is_fitted(self)
        given = as_dataset(self._fitted if data is None else data)
        kinds = self.trace_.posterior.columns.kinds
        return profile(np.asarray(self.labels_), replace(given, kinds=kinds) if kinds else given)

    def groups(self, n_clusters: int) -> IntArray:
        """Labels with another number of groups: a row of the merge table of the answer."""
        check_is_fitted(self)
        if not hasattr(self, "answer_"):
            raise AttributeError("there is no answer: fit with n_clusters=None and loss=None.")
        return np.asarray(self.answer_.groups(n_clusters))

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
        options: dict[str, Any] = {"dtype": np.float64, "reset": reset, "ensure_all_finite": "allow-nan"}
        if reset:
            options["ensure_min_samples"] = 2
        if is_frame(given) or isinstance(X, Dataset):
            matrix = check_data(X, finite=False)  # whose errors name columns and rows
            check_finite(matrix, X, allow_gaps=True)
            if np.isnan(matrix).any() and is_frame(given):  # scikit-learn does not know every sign of a gap
                frame = as_pandas(given)
                given = type(frame)(matrix, index=frame.index, columns=frame.columns)
        elif isinstance(given, np.ma.MaskedArray):
            given = check_data(given, finite=False)
        try:
            return np.asarray(validate_data(self, given, **options))
        except TypeError as fault:
            if "NAType" not in str(fault):
                raise
            return np.asarray(validate_data(self, check_data(given, finite=False), **options))
        except ValueError as fault:
            if "could not convert" in str(fault):
                check_data(X)  # the same error with the way out
            if "infinity" in str(fault):
                check_finite(check_data(given, finite=False), given, allow_gaps=True)
            raise

    def _check_choices(self, n_rows: int) -> None:
        if self.tree not in TREES:
            raise ValueError(f"tree must be one of {', '.join(map(repr, TREES))}; got {self.tree!r}.")
        count: Any = self.n_clusters
        if count is not None and not (isinstance(count, int | np.integer) and count >= 1):
            raise ValueError(f"n_clusters must be None or a whole number of at least 1; got {count!r}.")
        if count is not None and count > n_rows:
            raise ValueError(f"n_samples={n_rows} should be >= n_clusters={count}.")
        if count is None and self.min_size != 1:
            raise ValueError(
                f"min_size={self.min_size!r} applies only if n_clusters is given; without it the answer "
                "has its own rule for small clusters, and lists their rows in answer_.small_clusters."
            )
        if self.loss not in (None, *LOSSES):
            raise ValueError(
                f"loss must be None or one of {', '.join(map(repr, LOSSES))}; got {self.loss!r}."
            )

    def _check_tree_fits(self, n_rows: int) -> None:
        """Refuse a tree that would not fit in memory before the chains are run."""
        if self.n_clusters is None or self.tree in {"auto", "evidence"}:
            return
        check = check_consensus_fits if self.tree == "consensus" else check_tree_fits
        check(n_rows, 'Use tree="evidence", which needs no pairs of rows, or fewer rows.')

    def _seed(self) -> int | None:
        if self.random_state is None or isinstance(self.random_state, int | np.integer):
            return None if self.random_state is None else int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _open_run(self, data: FloatArray | Dataset) -> Run:
        """Check all settings and prepare the run."""
        count = check_count("n_chains", self.n_chains, 1)
        settings: dict[str, Any] = {
            "model": self.model,
            "shapes": self.shapes,
            "prior": self.prior,
            "alpha": self.alpha,
            "theta_grid": self.theta_grid,
            "centre": self.centre,
            "kinds": self.kinds,
            "moves": self.moves,
        }
        if self.concentration is not None:
            settings["concentration"] = self.concentration
        elif self.prior is None and self.shapes == "own":
            settings["prior"] = ANSWER_PRIOR
        n_rows, n_columns = (data.X if isinstance(data, Dataset) else data).shape
        goal = _goal(n_rows, n_columns, self.burn_in is None) if self.draws is None else None
        burn_in = self.burn_in if self.burn_in is not None else 0 if goal else _BURN_IN
        initial, seed = self.initial, self._seed()
        if initial is None:
            initial = _starts(n_rows, n_columns, count, self.model, self.shapes)
        plan = make_plan(data, count, self.draws, burn_in, self.thin, goal, initial, seed, settings)
        if count == 1:
            # The chain of `Sampler`, whose seed is not spawned from another.
            generator = np.random.Generator(np.random.PCG64(seed))
            start = None if initial is None else chain_starts(initial, 1)[0]
            plan = replace(plan, first=(first_state(plan.sampler.posterior, start, generator),))
        chunk = None
        if hasattr(self, "_skl_callbacks"):  # They are called, and may stop the fit, after each chunk.
            draws = plan.goal.first if isinstance(plan.goal, Until) else plan.goal
            chunk = -(-count * (plan.burn_in + draws * plan.thin) // _STEPS)
        return Run(plan, self.n_jobs, chunk)

    def _sample(self, run: Run, X: FloatArray, y: object) -> Chains:
        """Run the chains; scikit-learn's callbacks see each step and may stop the run.

        An interrupt keeps the draws so far and is raised again, so that a search over many fits stops too.
        """
        watched = _HAS_CALLBACKS and hasattr(self, "_skl_callbacks")
        told = {"estimator": self, "X": X, "y": y}
        context = None
        if _HAS_CALLBACKS:
            context = self._init_callback_context(max_subtasks=_n_chunks(run) if watched else 0)
            context.call_on_fit_task_begin(**told)
        with progress_bar(disable=not self.verbose, desc=f"{len(run.states)} chains") as bar:
            try:
                for trace in run.stream():
                    done, bar.total = run.iterations
                    bar.update(done - bar.n)
                    if watched and context is not None:
                        step = context.subcontext(task_name="sampling" if len(trace) else "burn-in")
                        step.call_on_fit_task_begin(**told)
                        found = _drawn(run)
                        state = None if found is None else (lambda found=found: self._report(found))
                        if step.call_on_fit_task_end(**told, reconstruction_attributes=state):
                            break
            except KeyboardInterrupt:
                kept = _drawn(run)
                self.interrupted_trace = None if kept is None else kept.pooled()
                raise
        chains = _drawn(run) or _one_draw(run)
        if context is not None:
            context.call_on_fit_task_end(**told, reconstruction_attributes=lambda: self._report(chains))
        return chains

    def _report(self, chains: Chains) -> dict[str, Any]:
        """Attributes of the fitted estimator that depend on the draws."""
        trace = chains.pooled()
        extra: dict[str, Any] = {}
        memberships: FloatArray | None = None
        if self.n_clusters is not None:
            tree, least = tree_to_cut(trace, self.n_clusters, self.tree, self.min_size)
            labels, extra["tree_"] = _cut(tree, self.n_clusters, least), tree
        elif self.loss is not None:
            extra["estimate_"] = trace.point_estimate(self.loss)
            labels = extra["estimate_"].labels
        else:
            extra["answer_"] = trace.answer()
            labels, memberships = extra["answer_"].labels, extra["answer_"].memberships
        if memberships is None:
            memberships = shared_companions(trace.labels, np.asarray(labels))
        return {
            "chains_": chains,
            "trace_": trace,
            "labels_": np.array(labels) if self._index is None else _series(labels, self._index),
            "n_clusters_": int(labels.max()) + 1,
            "memberships_": np.array(memberships),
            "_index": self._index,
            **extra,
        }

    def _predicted(self, X: ArrayLike | Dataset) -> Prediction:
        check_is_fitted(self)
        return predict_clusters(self.trace_, np.asarray(self.labels_), **self._new_rows(X))

    def _new_rows(self, X: ArrayLike | Dataset) -> dict[str, Any]:
        """Canonical coordinates of rows, their numbers, and the places of their categories."""
        matrix, posterior = self._checked(X, reset=False), self.trace_.posterior
        check_finite(matrix, X, allow_gaps=True)
        numbers, categories = posterior.numbers_of(matrix), posterior.columns.places_of(matrix)
        check_rows(numbers, categories)
        return {"new": posterior.map(matrix), "numbers": numbers, "categories": categories}


def _with_names(X: ArrayLike | Dataset, matrix: FloatArray) -> FloatArray | Dataset:
    """The checked data with the names that they came with, for messages and for the labels."""
    if isinstance(X, Dataset):
        return X
    if not is_frame(X):
        return matrix
    frame = as_pandas(X)
    names, rows = column_names(frame), row_names(frame)
    return Dataset(X=matrix, feature_names=names, row_names=rows, index=frame.index)


def _series(labels: IntArray, index: Any) -> Any:  # noqa: ANN401 - pandas' own
    import pandas as pd

    return pd.Series(np.array(labels), index=index, name="cluster")


def _goal(n_rows: int, n_columns: int, drop_half: bool = True) -> Until:
    """Stopping rule; the cost of a sweep is about n (d + 2)²."""
    cost = n_rows * (n_columns + 2) ** 2
    first, most = np.clip(_ROOT_WORK / cost**0.5, *_FIRST), np.clip(_WORK / cost, *_LAST)
    return until(rhat=_RHAT, ess=_ESS, most=int(most), first=int(first), drop_half=drop_half)


def _starts(n_rows: int, n_columns: int, n_chains: int, model: str, shapes: str) -> list[Start] | None:
    """Different starts, without singletons for many rows (slow first sweep) or own shapes (no covariance)."""
    if n_chains == 1 and n_rows <= _MANY_ROWS:
        return None
    kinds: tuple[str, ...]
    if model == "III" and n_columns >= _MANY_COLUMNS and 4 * n_columns <= n_rows <= 10 * n_columns:
        kinds = ("mixture",)
    elif shapes == "own":
        kinds = ("one-cluster", "k-means", "prior") if n_rows <= _MANY_ROWS else ("k-means",)
    elif n_rows > _MANY_ROWS // 5:
        kinds = ("k-means",)
    else:
        return None
    return [kinds[number % len(kinds)] for number in range(n_chains)]


def _n_chunks(run: Run) -> int | None:
    """Number of chunks of a run; None if it is not known."""
    plan, state, count = run.plan, run.plan.first[0], 0
    if isinstance(plan.goal, Until) or run.chunk is None:
        return None
    while plan.kept(state) < plan.goal:
        burn_in, draws = plan.share(state, plan.goal, run.chunk)
        state = replace(state, iteration=state.iteration + burn_in + draws * plan.thin)
        count += 1
    return count * len(plan.first)


def _drawn(run: Run) -> Chains | None:
    """The chains so far that have draws, or None."""
    found = run.chains()
    kept = [number for number, trace in enumerate(found) if len(trace)]
    if not kept:
        return None
    starts = tuple(found.starts[number] for number in kept)
    return Chains(tuple(found[number] for number in kept), starts, found.reached, found.checks)


def _one_draw(run: Run) -> Chains:
    """One draw, for a run that was stopped before its first."""
    trace = run.plan.sampler_at(0, run.states[0]).sample(1, progress=False)
    return Chains((trace,), run.plan.starts[:1])


def _warn_unless_converged(chains: Chains) -> None:
    if len(chains) < 2:
        return
    rhat = ess = float("nan")
    if chains.checks and chains.checks[-1].draws == chains.draws:
        rhat, ess = chains.checks[-1].rhat, chains.checks[-1].ess
    elif chains.draws >= _FEWEST_CHECKED:
        numbers = chains.diagnostics(similarity=False)
        rhat, ess = numbers.worst_rhat, numbers.least_ess
    if not (rhat <= _RHAT and ess >= _ESS):
        warnings.warn(
            f"the chains have not converged after {chains.draws} draws of each: R-hat {rhat:.3f} (at most "
            f"{_RHAT} recommended), effective sample size {ess:.0f} (at least {_ESS:.0f} recommended). Take "
            "more draws, e.g. draws=10_000; see chains_.report().",
            ConvergenceWarning,
            stacklevel=3,
        )


def _cut(tree: Tree, n_clusters: int, min_size: int) -> IntArray:
    """Cut a tree, but not within clusters that no draw separates."""
    apart = tree.cut(height=0.0) if tree.kind == "similarity" else tree.cut(n_clusters=tree.n_start)
    most = int(apart.max()) + 1
    if most < n_clusters:
        warnings.warn(
            f"the draws separate {most} clusters, fewer than n_clusters={n_clusters}; these are reported. "
            "More draws, or a larger concentration, may separate more.",
            ConvergenceWarning,
            stacklevel=2,
        )
        return apart
    return tree.cut(n_clusters=n_clusters, min_size=min_size)
