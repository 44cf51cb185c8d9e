"""One piece of work: a method on one data set with one seed, or several chains to judge convergence."""

import time
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand, error_rate
from ewens_widgets.analysis.convergence import diagnose
from ewens_widgets.paper.experiments import Experiment, experiment_named
from ewens_widgets.sampling.initial import INITIAL
from ewens_widgets.sampling.sampler import Sampler
from ewens_widgets.sampling.trace import Trace

__all__ = [
    "CHAINS",
    "FAST",
    "METHODS",
    "PAPER_ITERATIONS",
    "STARTS",
    "Outcome",
    "Settings",
    "Work",
    "do",
    "run_chain",
]

CHAINS = {"paper": "paper-2", "default": "default"}
RIVALS = ("k-means", "Gaussian mixture")
METHODS = (*CHAINS, *RIVALS)
PAPER_ITERATIONS = 1500
_THINNED_FROM = 1000  # Shorter runs are only there to see that all works.
STARTS = INITIAL


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
    """

    seeds: int = 10
    paper_iterations: int = PAPER_ITERATIONS
    paper_burn_in: int = 500
    draws: int = 2000
    burn_in: int = 500
    chains: int = 4

    def length(self, method: str) -> tuple[int, int]:
        """Draws to keep and iterations before them."""
        if method == "paper":
            return self.paper_iterations - self.paper_burn_in, self.paper_burn_in
        return self.draws, self.burn_in


FAST = Settings(seeds=2, paper_iterations=150, paper_burn_in=50, draws=100, burn_in=50, chains=2)


class Work(NamedTuple):
    """What to do; small enough to be sent to another process. Without a seed, convergence is judged."""

    key: str
    method: str
    seed: int | None


class Outcome(NamedTuple):
    """What came of it; R-hat for convergence, the other numbers for a run with a seed."""

    work: Work
    error: float = float("nan")
    adjusted_rand: float = float("nan")
    rhat: float = float("nan")
    seconds: float = 0.0


def do(work: Work, settings: Settings) -> Outcome:
    """Do one piece of work."""
    experiment = experiment_named(work.key)
    start = time.process_time()
    if work.seed is None:
        chains = [
            run_chain(experiment, work.method, 0, settings, initial=STARTS[k % len(STARTS)], chain_seed=k)
            for k in range(settings.chains)
        ]
        return Outcome(work, rhat=diagnose(chains).worst_rhat, seconds=time.process_time() - start)
    data = experiment.load(work.seed)
    if work.method in CHAINS:
        found = experiment.read(run_chain(experiment, work.method, work.seed, settings))
    else:
        found = _rival(work.method, data.X, experiment.n_clusters, work.seed)
    true = np.asarray(data.labels)
    return Outcome(
        work,
        error=error_rate(true, found),
        adjusted_rand=adjusted_rand(true, found),
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


def _rival(name: str, X: NDArray[np.float64], n_clusters: int, seed: int) -> NDArray[np.intp]:
    """Labels by scikit-learn's k-means or Gaussian mixture, told the true number of clusters."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    method: KMeans | GaussianMixture
    if name == "k-means":
        method = KMeans(n_clusters=n_clusters, n_init=10, random_state=seed)
    else:
        method = GaussianMixture(n_components=n_clusters, n_init=5, random_state=seed)
    with warnings.catch_warnings():
        # Rarely one of the mixture's starts stops early; the best of them counts.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(method.fit_predict(X), dtype=np.intp)
