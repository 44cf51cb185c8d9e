"""Other methods on the paper's data, and the second table of docs/results.md.

    .venv/bin/python benchmarks/other_methods.py artefacts/paper        (part of make paper)

adds their figures to those in ``results.json`` of the folder, which ``ewens-widgets paper`` has written, and
prints the table. k-means and a Gaussian mixture are given the number of clusters, our answer is not. R's
mclust is in the table where its figures are stored (by scripts/store_mclust.py).
"""

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import ewens_widgets as ew
from ewens_widgets.paper.published import ALL, Experiment, markdown, spread

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Found = dict[str, Any]


def k_means(X: Array, n_clusters: int, seed: int) -> Labels:
    """Labels by k-means, best of ten starts, given the number of clusters."""
    return fit_predict(KMeans(n_clusters, n_init=10, random_state=seed), X)


def gaussian_mixture(X: Array, n_clusters: int, seed: int) -> Labels:
    """Labels by a Gaussian mixture, best of five starts, given the number of clusters."""
    return fit_predict(GaussianMixture(n_clusters, n_init=5, random_state=seed), X)


def our_answer(X: Array, _: int, seed: int, model: str = "III", **settings: Any) -> Labels:  # noqa: ANN401
    """Labels by `AffineClustering`, given nothing but the model."""
    return fit_predict(ew.AffineClustering(model, random_state=seed, **settings), X)


def fit_predict(method: Any, X: Array) -> Labels:  # noqa: ANN401 - any of scikit-learn's kind
    """Fit and predict; rarely one of the starts stops early, and the best of them counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(method.fit_predict(X), dtype=np.intp)


TOLD = {"k-means": k_means, "Gaussian mixture": gaussian_mixture}
METHODS = (*TOLD, "our answer")


def figures(experiment: Experiment, seeds: int, **settings: Any) -> Found:  # noqa: ANN401 - of our answer
    """Errors of those that are given the number; adjusted Rand index and numbers of groups of our answer."""
    data = [experiment.load(seed) for seed in range(seeds)]
    found: Found = {}
    for name, method in TOLD.items():
        labels = [method(one.X, experiment.n_clusters, seed) for seed, one in enumerate(data)]
        errors = [ew.error_rate(one.labels, given) for one, given in zip(data, labels, strict=True)]
        found[name] = {"errors": [round(error, 4) for error in errors]}
    labels = [our_answer(one.X, 0, seed, experiment.model, **settings) for seed, one in enumerate(data)]
    agreement = [ew.adjusted_rand(one.labels, given) for one, given in zip(data, labels, strict=True)]
    counts = [len(np.unique(given)) for given in labels]
    found["our answer"] = {
        "adjusted_rand": round(float(np.mean(agreement)), 4),
        "groups": [min(counts), max(counts)],
    }
    return found


def comparison_table(results: Found) -> str:
    """Our default and other methods given the number of clusters; then those that are not given it."""
    told, untold = ("default", *TOLD), ["our answer"]
    untold += ["mclust"] * any("mclust" in found for found in results["experiments"].values())
    rows = [["data", "model", "our default", "k-means, paper", "k-means", "Gaussian mixture", *untold]]
    for key, found in results["experiments"].items():
        if key != "half-moons-3-discussion":  # the data of half-moons-3 again
            entry = ALL[key]
            cells = [spread(found[name]["errors"]) if found.get(name) else "–" for name in told]
            cells.insert(1, entry.k_means_claim)
            scores = [_answers(found.get(name, {})) for name in untold]
            title = entry.load(0).name if key == "roads-3" else entry.title
            rows.append([title, entry.model, *cells, *scores])
    return markdown(rows)


def _answers(found: Found) -> str:
    """Mean adjusted Rand index, and the numbers of groups that were found."""
    if not found:
        return "–"
    least, most = found["groups"]
    return f"{found['adjusted_rand']:.2f} ({least if least == most else f'{least}–{most}'})"


def main(arguments: Sequence[str]) -> None:
    """Add the figures to the folder's results, and print the table."""
    path = Path(arguments[0]) / "results.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    for key, found in results["experiments"].items():
        found.update(figures(ALL[key], results["seeds"]))
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(comparison_table(results))


if __name__ == "__main__":
    main(sys.argv[1:])
