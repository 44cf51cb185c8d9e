r"""Data with known clusters, and how well methods find them that are not told how many there are.

    python benchmarks/simulations.py        (or, with the paper's experiments, make paper)

prints the table of docs/results.md: about an hour on two cores.

A cluster k is y = m_k + L_k z, where z has mean zero and unit covariance: Gaussian, Student's t (heavy
tails), or centred Gamma columns (skewed). Its density is known, so the share of objects that even the true
densities misplace, the Bayes error, is known too: the centres are spread until it is at most
:data:`BAYES_ERROR` and no two of them are nearer than :data:`NEAREST` in the metric of the mean covariance
(clusters that differ in shape alone would otherwise lie on top of each other in many columns). In the end the
rows are multiplied by a random matrix: who looks at the columns one by one, or at Euclidean distances, sees
units and mixtures of no meaning.

A seed belongs either to `tune` or to `held-out`: rules are chosen on the former, and judged on the latter.

**Methods.** Ours is `AffineClustering`, told nothing. k-means is told the number of clusters, a gift;
the others choose it: Gaussian mixtures by the Bayesian information criterion (scikit-learn's, full
covariances, and R's mclust, which also tries 13 restricted covariances; Scrucca et al. 2016), scikit-learn's
variational mixture with ten components, and HDBSCAN (Campello et al. 2013). All get the data as they are.
mclust needs R: its figures were computed by scripts/store_mclust.py and are read from :data:`STORED`, which
says the version. The comparison on the paper's own data, `other_methods`, shares k-means and our own answer.
"""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from other_methods import fit_predict, k_means, our_answer
from scipy import stats
from sklearn.cluster import HDBSCAN
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from ewens_widgets.analysis.agreement import adjusted_rand

BAYES_ERROR = 0.02
NEAREST = 3.0
MOST_CLUSTERS = 9  # as mclust tries by default
SIMULATED = 5  # seeds of each kind in the table
STORED = Path(__file__).with_name("mclust.json")
SEEDS = {"tune": range(1005), "held-out": range(1005, 2000)}

_FREEDOM = 4.0  # degrees of freedom of the heavy tails
_SHAPE = 2.0  # of the Gamma columns: skewness 1.4
_PER_COLUMN = 5  # objects of a cluster for each column, about as in wine
_OUTLIERS = 0.05
_TRIALS = 4000  # objects drawn to estimate a Bayes error: standard error 0.002 at 0.02

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Method = Callable[[Array, int, int], Labels]


class Simulation(NamedTuple):
    """Drawn data: rows, their clusters (−1: an outlier, of none), and the Bayes error (NaN where unknown)."""

    X: Array
    labels: NDArray[np.intp]
    n_clusters: int
    bayes_error: float


@dataclass(frozen=True)
class Scenario:
    """A kind of data.

    Attributes
    ----------
    key
        Short name.
    title
        What makes it easy or hard, for the table.
    make
        Draws data from a generator.
    """

    key: str
    title: str
    make: Callable[[np.random.Generator], Simulation]

    def draw(self, seed: int) -> Simulation:
        """Draw the data of a seed."""
        return self.make(np.random.default_rng([*self.key.encode(), seed]))


class _Distribution(NamedTuple):
    """A distribution of z with mean zero and unit covariance: draws of a shape, and log density of rows."""

    draw: Callable[[np.random.Generator, tuple[int, int]], Array]
    log_density: Callable[[Array], Array]


def _draw_student(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    mixing = rng.chisquare(_FREEDOM, (shape[0], 1)) / (_FREEDOM - 2.0)
    return np.asarray(rng.standard_normal(shape) / np.sqrt(mixing))


def _log_student_density(z: Array) -> Array:
    scale = (1.0 - 2.0 / _FREEDOM) * np.eye(z.shape[1])
    return np.asarray(stats.multivariate_t.logpdf(z, shape=scale, df=_FREEDOM))


def _draw_gamma(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.asarray((rng.gamma(_SHAPE, size=shape) - _SHAPE) / np.sqrt(_SHAPE))


def _log_gamma_density(z: Array) -> Array:
    densities = stats.gamma.logpdf(z, _SHAPE, loc=-np.sqrt(_SHAPE), scale=1.0 / np.sqrt(_SHAPE))
    return np.asarray(densities.sum(axis=1))


_GAUSSIAN = _Distribution(
    lambda rng, shape: rng.standard_normal(shape), lambda z: stats.norm.logpdf(z).sum(axis=1)
)
_STUDENT = _Distribution(_draw_student, _log_student_density)
_GAMMA = _Distribution(_draw_gamma, _log_gamma_density)


class _Clusters(NamedTuple):
    """Shares, centres (K × d, before they are spread) and roots of covariances (K × d × d) of one law."""

    law: _Distribution
    shares: Array
    centres: Array
    roots: Array

    def log_densities(self, X: Array) -> Array:
        """Log of share times density, objects × clusters."""
        columns = []
        for share, centre, root in zip(self.shares, self.centres, self.roots, strict=True):
            z = np.linalg.solve(root, (X - centre).T).T
            columns.append(np.log(share) - np.linalg.slogdet(root)[1] + self.law.log_density(z))
        return np.column_stack(columns)

    def place(self, z: Array, labels: NDArray[np.intp]) -> Array:
        """Objects of these clusters from standard ones."""
        return np.asarray(self.centres[labels] + np.einsum("nij,nj->ni", self.roots[labels], z))

    def spread_apart(self, rng: np.random.Generator) -> tuple["_Clusters", float]:
        """Multiply the centres by the least factor that is enough; also the Bayes error there."""
        count, d = self.centres.shape
        labels = rng.choice(count, _TRIALS, p=self.shares)
        z = self.law.draw(rng, (_TRIALS, d))

        def at(factor: float) -> tuple["_Clusters", float]:
            wide = self._replace(centres=factor * self.centres)
            found = np.argmax(wide.log_densities(wide.place(z, labels)), axis=1)
            return wide, float(np.mean(found != labels))

        mean = np.einsum("kij,klj->il", self.roots, self.roots) / count
        first, second = np.triu_indices(count, 1)
        gaps = self.centres[first] - self.centres[second]
        distances = np.sqrt(np.einsum("pi,pi->p", gaps, np.linalg.solve(mean, gaps.T).T))
        low = NEAREST / distances.min()
        if at(low)[1] <= BAYES_ERROR:
            return at(low)
        high = 2 * low
        while at(high)[1] > BAYES_ERROR:
            low, high = high, 2 * high
        for _ in range(20):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if at(middle)[1] <= BAYES_ERROR else (middle, high)
        return at(high)


def _root(rng: np.random.Generator, d: int) -> Array:
    """Root of a covariance: random axes, lengths that differ by a factor of about e."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(axes * np.exp(0.5 * rng.standard_normal(d)))


def _mixed(rng: np.random.Generator, X: Array) -> Array:
    """Rows times a random matrix, in random order of columns' units, shifted."""
    d = X.shape[1]
    units = 10.0 ** rng.uniform(-1.0, 1.0, d)
    return np.asarray((X @ rng.standard_normal((d, d))) * units + 10.0 * rng.standard_normal(d))


def _several(
    rng: np.random.Generator,
    law: _Distribution = _GAUSSIAN,
    common: bool = False,
    unequal: bool = False,
    outliers: float = 0.0,
    noise: bool = False,
) -> Simulation:
    """Two to six clusters in 2 to 13 columns, 80 to 1 000 objects, small numbers of both being likelier."""
    count = int(rng.integers(2, 7))
    d = int(np.exp(rng.uniform(np.log(2.0), np.log(8.0 if noise else 14.0))))
    shares = np.full(count, 1.0 / count)
    if unequal:
        shares = 0.6 ** np.arange(count)
        shares /= shares.sum()
    least = max(80, int(np.ceil(_PER_COLUMN * d / shares.min())))
    n = int(np.exp(rng.uniform(np.log(min(least, 1000)), np.log(1000.0))))
    # Sizes as announced, not drawn: a cluster of no object would not be one.
    labels = np.sort(np.minimum(np.searchsorted(np.cumsum(shares), (np.arange(n) + 0.5) / n), count - 1))
    roots = np.array([_root(rng, d)] * count if common else [_root(rng, d) for _ in range(count)])
    clusters, error = _Clusters(law, shares, rng.standard_normal((count, d)), roots).spread_apart(rng)
    X = clusters.place(law.draw(rng, (n, d)), labels)
    if noise:
        X = np.column_stack([X, rng.standard_normal((n, int(rng.integers(2, 7))))])
    strangers = round(outliers * n)
    if strangers:
        centre, deviation = X.mean(axis=0), X.std(axis=0)
        X = np.vstack([X, centre + 4.0 * deviation * rng.uniform(-1.0, 1.0, (strangers, d))])
        labels = np.concatenate([labels, np.full(strangers, -1)])
    order = rng.permutation(len(X))
    return Simulation(_mixed(rng, X)[order], labels[order].astype(np.intp), count, error)


def _single(rng: np.random.Generator, law: _Distribution, n: int = 300, d: int = 3) -> Simulation:
    return Simulation(_mixed(rng, law.draw(rng, (n, d))), np.zeros(n, dtype=np.intp), 1, 0.0)


def _lognormal(rng: np.random.Generator, n: int = 300, d: int = 3) -> Simulation:
    """Not mixed: its logarithms are Gaussian as long as the columns are what was measured."""
    X = np.exp(rng.standard_normal((n, d))) * 10.0 ** rng.uniform(-1.0, 1.0, d)
    return Simulation(X, np.zeros(n, dtype=np.intp), 1, 0.0)


SCENARIOS = (
    Scenario("gaussian", "Gaussian, a shape for each cluster", _several),
    Scenario("common", "Gaussian, one common shape", partial(_several, common=True)),
    Scenario("heavy", "heavy tails (t, 4 degrees of freedom)", partial(_several, law=_STUDENT)),
    Scenario("skewed", "skewed (Gamma)", partial(_several, law=_GAMMA)),
    Scenario("unequal", "Gaussian, unequal sizes", partial(_several, unequal=True)),
    Scenario("outliers", "Gaussian, 5 % outliers", partial(_several, outliers=_OUTLIERS)),
    Scenario("noise", "Gaussian, 2 to 6 columns of noise", partial(_several, noise=True)),
    Scenario("one-gaussian", "one Gaussian, 300 × 3", partial(_single, law=_GAUSSIAN)),
    Scenario("one-heavy", "one t with 4 degrees of freedom, 300 × 3", partial(_single, law=_STUDENT)),
    Scenario("one-lognormal", "one lognormal, 300 × 3", _lognormal),
)


def scenario_named(key: str) -> Scenario:
    """The scenario of this short name."""
    for scenario in SCENARIOS:
        if scenario.key == key:
            return scenario
    raise ValueError(f"there is no scenario {key!r}; choose from {', '.join(s.key for s in SCENARIOS)}.")


def mixture_by_bic(X: Array, _n_clusters: int, seed: int) -> Labels:
    """Labels by the Gaussian mixture of least BIC among those of 1 to 9 components."""
    counts = range(1, min(MOST_CLUSTERS + 1, len(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [GaussianMixture(count, n_init=3, random_state=seed).fit(X) for count in counts]
    return np.asarray(min(fits, key=lambda fit: fit.bic(X)).predict(X), dtype=np.intp)


def variational_mixture(X: Array, _n_clusters: int, seed: int) -> Labels:
    """Labels by scikit-learn's BayesianGaussianMixture with ten components, some of which stay empty."""
    return fit_predict(BayesianGaussianMixture(n_components=10, n_init=3, random_state=seed), X)


def hdbscan(X: Array, _n_clusters: int, _seed: int) -> Labels:
    """Labels by HDBSCAN as scikit-learn sets it up; −1 is noise."""
    return fit_predict(HDBSCAN(copy=True), X)


MCLUST = "mclust, BIC"
METHODS: Mapping[str, Method] = {
    "our answer": our_answer,
    "k-means, told K": k_means,
    "Gaussian mixture, BIC": mixture_by_bic,
    "variational mixture": variational_mixture,
    "HDBSCAN": hdbscan,
}


class Score(NamedTuple):
    """How well a method did on one simulation."""

    scenario: str
    method: str
    seed: int
    adjusted_rand: float
    n_clusters: int
    right: bool


def score(simulation: Simulation, found: Labels) -> tuple[float, int]:
    """Adjusted Rand index, and the number of clusters that were found.

    Outliers belong nowhere: they do not count in the index, and a cluster made mostly of them is not one.
    What a method calls noise (−1) is one more group for the index, and no cluster.
    """
    inside = simulation.labels >= 0
    names = [
        name
        for name in np.unique(found)
        if name >= 0 and 2 * np.sum(inside[found == name]) >= np.sum(found == name)
    ]
    return adjusted_rand(simulation.labels[inside], found[inside]), len(names)


def run_method(scenario: str, method: str, seed: int) -> Score:
    """Try one of `METHODS` on the simulation of a seed, or look up what `MCLUST` found there."""
    simulation = scenario_named(scenario).draw(seed)
    if method == MCLUST:
        agreement, count = stored_mclust(scenario, seed)
    else:
        agreement, count = score(simulation, METHODS[method](simulation.X, simulation.n_clusters, seed))
    return Score(scenario, method, seed, agreement, count, count == simulation.n_clusters)


def stored_mclust(key: str, seed: int) -> tuple[float, int]:
    """Score of mclust on the data of a scenario; NaN and 0 if it was not computed."""
    agreement, count = _stored()["figures"].get(key, {}).get(str(seed), (float("nan"), 0))
    return float(agreement), int(count)


@cache
def _stored() -> dict[str, Any]:
    return dict(json.loads(STORED.read_text(encoding="utf-8")))


def simulation_table(scores: Sequence[Score]) -> str:
    """Markdown: a row for each scenario, a column for each method, mean index and share of right numbers."""
    methods = list(dict.fromkeys(entry.method for entry in scores))
    rows = [["simulation", *methods], ["---"] * (len(methods) + 1)]
    for scenario in SCENARIOS:
        cells = [scenario.title]
        for method in methods:
            here = [entry for entry in scores if (entry.scenario, entry.method) == (scenario.key, method)]
            known = [(entry.adjusted_rand, 100 * entry.right) for entry in here if entry.n_clusters]
            cells.append("{:.2f}, {:.0f} %".format(*np.mean(known, axis=0)) if known else "–")
        rows.append(cells)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    tasks = [
        delayed(run_method)(scenario.key, method, seed)
        for scenario in SCENARIOS
        for method in (*METHODS, MCLUST)
        for seed in SEEDS["held-out"][:SIMULATED]
    ]
    print(simulation_table(Parallel(-1, verbose=1)(tasks)))


if __name__ == "__main__":
    main()
