"""Which data the paper clusters, with which model, what it says of the result, and how that is tried again.

The unit of work is a trial: a method on one data set with one seed, or several chains to judge convergence.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets import datasets
from ewens_widgets.analysis.agreement import adjusted_rand, error_rate
from ewens_widgets.analysis.convergence import diagnose
from ewens_widgets.analysis.evidence_tree import consensus_tree
from ewens_widgets.datasets import Dataset
from ewens_widgets.paper.denmark import denmark_roads, denmark_roads_standin
from ewens_widgets.paper.simulations import Simulation, gaussian_mixture, k_means, mclust_score, our_answer
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.state import INITIAL
from ewens_widgets.sampling.trace import Trace

ROADS_VARIABLE = "EWENS_WIDGETS_ROADS"  # Where the file of the road network is, for worker processes too.

CHAINS = {"paper": "paper-2", "default": "default"}
TOLD = {"k-means": k_means, "Gaussian mixture": gaussian_mixture}  # the true number of clusters
ANSWER, MCLUST = "our answer", "mclust"  # These choose the number of clusters themselves.
METHODS = (*CHAINS, ANSWER, *TOLD, MCLUST)
PAPER_ITERATIONS = 1500
_THINNED_FROM = 1000  # Shorter runs are only there to see that all works.
STARTS = INITIAL

_MOST = "most objects right"


@dataclass(frozen=True)
class Experiment:
    """One data set with one model.

    Attributes
    ----------
    key
        Short name, for files.
    title
        Name of the data, for the table.
    model
        Covariance model.
    load
        Gives the data; the argument is the seed of those that are drawn.
    drawn
        Whether the data differ by seed.
    n_clusters
        True number of clusters.
    reading
        How clusters are read off the draws: ``"consensus"`` of evidence trees, or ``"single"`` linkage of the
        distance between the objects, as in the paper.
    claim
        What the paper says of its result.
    k_means_claim
        What it says of k-means.
    thin
        Iterations of the default schedule for each draw; more than one where chains mix slowly.
    """

    key: str
    title: str
    model: str
    load: Callable[[int], Dataset]
    drawn: bool
    n_clusters: int
    reading: str
    claim: str
    k_means_claim: str = "–"
    thin: int = 1

    def known(self, seed: int) -> Simulation:
        """The data of a seed with their true clusters, as methods that are told nothing are scored on."""
        data = self.load(seed)
        labels = canonical_labels(np.asarray(data.labels))
        return Simulation(np.asarray(data.X), labels, self.n_clusters, float("nan"))

    def read(self, trace: Trace) -> NDArray[np.intp]:
        """Cut a tree of the draws into the true number of clusters."""
        if self.reading == "consensus":
            return consensus_tree(trace, self.n_clusters).cut(n_clusters=self.n_clusters)
        tree = trace.similarity_tree("single")
        # Chains that have not converged may have no large clusters to count.
        for size in (trace.n_objects // 20, 5, 2):
            if np.any(tree.counts(size) == self.n_clusters):
                return tree.cut(n_clusters=self.n_clusters, min_size=size)
        return tree.cut(n_clusters=self.n_clusters)


def _roads(seed: int) -> Dataset:
    """Load the real roads where their file is at hand, or draw the stand-in, whose name says so."""
    try:
        return denmark_roads(os.environ.get(ROADS_VARIABLE) or None, download=False)
    except FileNotFoundError:
        if os.environ.get(ROADS_VARIABLE):
            raise
        return denmark_roads_standin(seed=seed)


def _wine(_seed: int) -> Dataset:
    return datasets.wine()


def _leukemia(_seed: int) -> Dataset:
    return datasets.leukemia(20)


def _square(transform: str | None) -> Callable[[int], Dataset]:
    return lambda seed: datasets.unit_square(transform=transform, seed=seed)


def _moons(transformed: bool) -> Callable[[int], Dataset]:
    return lambda seed: datasets.half_moons(200, transformed=transformed, seed=seed)


EXPERIMENTS = (
    Experiment("unit-square-1", "unit square", "I", _square(None), True, 4, "consensus", _MOST),
    Experiment("unit-square-2", "unit square, rescaled", "II", _square("II"), True, 4, "consensus", _MOST),
    Experiment("unit-square-3", "unit square, sheared", "III", _square("III"), True, 4, "consensus", _MOST),
    Experiment("half-moons-2", "half-moons", "II", _moons(False), True, 2, "single", "error 0.115", "0.23"),
    Experiment(
        "half-moons-3", "half-moons, sheared", "III", _moons(True), True, 2, "single", "error 0.11", "0.15"
    ),
    Experiment("leukemia-1", "leukemia, 20 PCs", "I", _leukemia, False, 2, "consensus", _MOST),
    Experiment("wine-1", "wine, raw units", "I", _wine, False, 3, "consensus", _MOST, thin=15),
    Experiment("wine-2", "wine, raw units", "II", _wine, False, 3, "consensus", _MOST),
    Experiment("wine-3", "wine, raw units", "III", _wine, False, 3, "consensus", "–", thin=3),
    Experiment("roads-3", "Denmark roads", "III", _roads, False, 2, "consensus", "two clusters", thin=10),
)


def experiment_named(key: str) -> Experiment:
    """The experiment of this short name."""
    for experiment in EXPERIMENTS:
        if experiment.key == key:
            return experiment
    names = ", ".join(experiment.key for experiment in EXPERIMENTS)
    raise ValueError(f"there is no experiment {key!r}; choose from {names}.")


@dataclass(frozen=True)
class Settings:
    """How long everything runs.

    Attributes
    ----------
    seeds
        How often each method is repeated.
    paper_iterations, paper_burn_in
        Iterations of the paper's Algorithm 2, and how many of them are dropped.
    draws, burn_in
        Draws of the default schedule, and iterations before them.
    chains
        Chains from different starts that R-hat compares.
    simulations
        Seeds of each kind of simulated data that our answer and other methods are tried on.
    answer
        Arguments of `AffineClustering` besides the model; none for its own choice of length.
    """

    seeds: int = 10
    paper_iterations: int = PAPER_ITERATIONS
    paper_burn_in: int = 500
    draws: int = 2000
    burn_in: int = 500
    chains: int = 4
    simulations: int = 5
    answer: Mapping[str, int] = field(default_factory=dict)

    def length(self, method: str) -> tuple[int, int]:
        """Draws to keep and iterations before them."""
        if method == "paper":
            return self.paper_iterations - self.paper_burn_in, self.paper_burn_in
        return self.draws, self.burn_in


FAST = Settings(
    seeds=2,
    paper_iterations=150,
    paper_burn_in=50,
    draws=100,
    burn_in=50,
    chains=2,
    simulations=0,
    answer={"draws": 50, "burn_in": 50, "n_chains": 2},
)


class Trial(NamedTuple):
    """What to do; small enough to be sent to another process. Without a seed, convergence is judged."""

    key: str
    method: str
    seed: int | None


class TrialResult(NamedTuple):
    """What came of it; R-hat for convergence, the other numbers for a run with a seed."""

    trial: Trial
    error: float = float("nan")
    adjusted_rand: float = float("nan")
    n_clusters: int = 0
    rhat: float = float("nan")
    seconds: float = 0.0


def run_trial(trial: Trial, settings: Settings) -> TrialResult:
    """Make one trial."""
    experiment = experiment_named(trial.key)
    start = time.process_time()
    if trial.seed is None:
        chains = [
            run_chain(experiment, trial.method, 0, settings, initial=STARTS[k % len(STARTS)], chain_seed=k)
            for k in range(settings.chains)
        ]
        return TrialResult(trial, rhat=diagnose(chains).worst_rhat, seconds=time.process_time() - start)
    if trial.method == MCLUST:
        agreement, count = mclust_score(trial.key, trial.seed, experiment.known(trial.seed))
        seconds = time.process_time() - start
        return TrialResult(trial, adjusted_rand=agreement, n_clusters=count, seconds=seconds)
    data = experiment.load(trial.seed)
    true = np.asarray(data.labels)
    if trial.method == ANSWER:
        found = our_answer(data.X, 0, trial.seed, experiment.model, **settings.answer)
    elif trial.method in CHAINS:
        found = experiment.read(run_chain(experiment, trial.method, trial.seed, settings))
    else:
        found = TOLD[trial.method](data.X, experiment.n_clusters, trial.seed)
    return TrialResult(
        trial,
        error=error_rate(true, found),
        adjusted_rand=adjusted_rand(true, found),
        n_clusters=len(np.unique(found)),
        seconds=time.process_time() - start,
    )


def run_chain(
    experiment: Experiment,
    method: str,
    seed: int,
    settings: Settings,
    initial: str = "singletons",
    chain_seed: int | None = None,
) -> Trace:
    """Run one chain on the data of a seed, with this seed unless it has one of its own."""
    draws, burn_in = settings.length(method)
    sampler = Sampler(
        experiment.load(seed),
        model=experiment.model,
        moves=CHAINS[method],
        initial=initial,
        seed=seed if chain_seed is None else chain_seed,
    )
    thin = experiment.thin if method == "default" and draws >= _THINNED_FROM else 1
    return sampler.sample(draws, burn_in * thin, thin, progress=False)
