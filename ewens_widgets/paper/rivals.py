r"""Our answer and other methods on the same data: which clusters they find, and how that is scored.

Ours is `AffineClustering`, told nothing. k-means is told the number of clusters, which is a gift; the others
choose it: Gaussian mixtures by the Bayesian information criterion (scikit-learn's, full covariances, and R's
mclust, which also tries 13 restricted covariances; Scrucca et al. 2016), scikit-learn's variational mixture
with ten components, and HDBSCAN (Campello et al. 2013). All get the data as they are. mclust needs R; where
it is missing, figures that were computed with it (by scripts/store_mclust.py) are read from :data:`STORED`,
which says the version.
"""

import json
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand
from ewens_widgets.estimator import AffineClustering
from ewens_widgets.paper.simulations import SCENARIOS, Simulation, scenario_named

__all__ = [
    "ANSWERING",
    "MOST_CLUSTERS",
    "RIVALS",
    "STORED",
    "Score",
    "mclust",
    "mclust_score",
    "mclust_version",
    "our_answer",
    "run_rival",
    "score",
    "simulation_table",
]

MOST_CLUSTERS = 9  # as mclust tries by default
STORED = Path(__file__).with_name("mclust.json")

Labels = NDArray[np.intp]
Method = Callable[[NDArray[np.float64], int, int], Labels]


def k_means(X: NDArray[np.float64], n_clusters: int, seed: int) -> Labels:
    """Labels by k-means, best of ten starts, told the number of clusters."""
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(X), dtype=np.intp)


def gaussian_mixture(X: NDArray[np.float64], n_clusters: int, seed: int) -> Labels:
    """Labels by a Gaussian mixture, best of five starts, told the number of clusters."""
    from sklearn.mixture import GaussianMixture

    return _quietly(GaussianMixture(n_clusters, n_init=5, random_state=seed), X)


def mixture_by_bic(X: NDArray[np.float64], _n_clusters: int, seed: int) -> Labels:
    """Labels by the Gaussian mixture of least BIC among those of 1 to 9 components."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [
            GaussianMixture(count, n_init=3, random_state=seed).fit(X)
            for count in range(1, MOST_CLUSTERS + 1)
            if count < len(X)
        ]
    return np.asarray(min(fits, key=lambda fit: fit.bic(X)).predict(X), dtype=np.intp)


def variational_mixture(X: NDArray[np.float64], _n_clusters: int, seed: int) -> Labels:
    """Labels by scikit-learn's BayesianGaussianMixture with ten components, some of which stay empty."""
    from sklearn.mixture import BayesianGaussianMixture

    return _quietly(BayesianGaussianMixture(n_components=10, n_init=3, random_state=seed), X)


def hdbscan(X: NDArray[np.float64], _n_clusters: int, _seed: int) -> Labels:
    """Labels by HDBSCAN as scikit-learn sets it up; −1 is noise."""
    from sklearn.cluster import HDBSCAN

    return np.asarray(HDBSCAN(copy=True).fit_predict(X), dtype=np.intp)


def mclust(X: NDArray[np.float64], _n_clusters: int = 0, _seed: int = 0) -> Labels:
    """Labels by R's mclust, number of clusters and shapes chosen by BIC; needs R with the package mclust."""
    program = shutil.which("Rscript")
    if program is None:
        raise FileNotFoundError("Rscript was not found; install R and its package mclust.")
    with tempfile.TemporaryDirectory() as folder:
        data, found = Path(folder) / "data.csv", Path(folder) / "labels.csv"
        np.savetxt(data, X, delimiter=",", fmt="%.17g")
        script = (
            'suppressPackageStartupMessages(library(mclust)); X <- as.matrix(read.csv("data.csv", '
            'header=FALSE)); fit <- Mclust(X, verbose=FALSE); write(fit$classification, "labels.csv", 1)'
        )
        _run_r(program, script, folder)
        return np.loadtxt(found, dtype=np.intp)


def _run_r(program: str, script: str, folder: str | None = None) -> str:
    # The script is ours, and the program is R's own.
    done = subprocess.run(  # noqa: S603
        [program, "--vanilla", "-e", script], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"mclust failed: {done.stderr.strip()[-500:]}")
    return done.stdout


@cache
def mclust_version() -> str | None:
    """Version of mclust that R has here, or None."""
    program = shutil.which("Rscript")
    if program is None:
        return None
    try:
        return _run_r(program, 'cat(as.character(packageVersion("mclust")))').strip()
    except RuntimeError:
        return None


def _quietly(method: object, X: NDArray[np.float64]) -> Labels:
    """Fit and predict; rarely one of the starts stops early, and the best of them counts."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(method.fit_predict(X), dtype=np.intp)  # type: ignore[attr-defined]


def our_answer(
    X: NDArray[np.float64],
    _n_clusters: int,
    seed: int,
    model: str = "III",
    **settings: Any,  # noqa: ANN401 - what `AffineClustering` takes
) -> Labels:
    """Labels by `AffineClustering`, told nothing but the model."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = AffineClustering(model, random_state=seed, **settings).fit_predict(X)
    return np.asarray(found, dtype=np.intp)


RIVALS: Mapping[str, Method] = {
    "k-means, told K": k_means,
    "Gaussian mixture, BIC": mixture_by_bic,
    "variational mixture": variational_mixture,
    "HDBSCAN": hdbscan,
    "mclust, BIC": mclust,
}
ANSWERING: Mapping[str, Method] = {"our answer": our_answer, **RIVALS}


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


def run_rival(scenario: str, method: str, seed: int, methods: Mapping[str, Method] = ANSWERING) -> Score:
    """Try a method on the simulation of a seed; without R, mclust's figures are the stored ones."""
    simulation = scenario_named(scenario).draw(seed)
    if methods[method] is mclust:
        agreement, count = mclust_score(scenario, seed, simulation)
    else:
        agreement, count = score(simulation, methods[method](simulation.X, simulation.n_clusters, seed))
    return Score(scenario, method, seed, agreement, count, count == simulation.n_clusters)


def mclust_score(key: str, seed: int, data: Simulation) -> tuple[float, int]:
    """Score mclust on data; without R the stored one of that key and seed, or NaN and 0 if there is none."""
    if mclust_version() is not None:
        return score(data, mclust(data.X))
    agreement, count = _stored().get(key, {}).get(str(seed), (float("nan"), 0))
    return float(agreement), int(count)


@cache
def _stored() -> dict[str, dict[str, tuple[float, int]]]:
    figures: dict[str, dict[str, tuple[float, int]]] = json.loads(STORED.read_text(encoding="utf-8"))[
        "figures"
    ]
    return figures


def simulation_table(scores: Sequence[Score]) -> str:
    """Markdown: a row for each scenario, a column for each method, mean index and share of right numbers."""
    methods = list(dict.fromkeys(entry.method for entry in scores))
    rows = [("simulation", *methods), ("---",) * (len(methods) + 1)]
    for scenario in SCENARIOS:
        cells = []
        for method in methods:
            here = [entry for entry in scores if (entry.scenario, entry.method) == (scenario.key, method)]
            known = [entry for entry in here if not np.isnan(entry.adjusted_rand)]
            cells.append(
                f"{np.mean([entry.adjusted_rand for entry in known]):.2f}, "
                f"{100 * np.mean([entry.right for entry in known]):.0f} %"
                if known
                else "–"
            )
        rows.append((scenario.title, *cells))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
