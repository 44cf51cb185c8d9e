"""Run all experiments, on several processes, and write the page: tables, how to read them, and figures.

All numbers go to ``results.json`` first; `published_table` and `comparison_table` make the tables of this
page and of docs/results.md.
"""

import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ewens_widgets.analysis.agreement import adjusted_rand, error_rate
from ewens_widgets.analysis.convergence import GOOD_RHAT
from ewens_widgets.analysis.plots import plot_scatter, plot_theta
from ewens_widgets.arguments import check_count
from ewens_widgets.estimator import AffineClustering
from ewens_widgets.files import write_atomically
from ewens_widgets.model.checks import FloatArray
from ewens_widgets.paper.published import ALL, Experiment, run
from ewens_widgets.sampling.sampler import progress_bar

PAGE, RESULTS = "results.md", "results.json"
LENGTHS = (10_000, 100_000, 1_000_000)  # that the corrected algorithm is given until its chains agree
CORRECTED = "metropolis-hastings"
Found = dict[str, Any]
Labels = NDArray[np.intp]
Method = Callable[[Experiment, int, bool], Found]


def run_paper(
    folder: str | os.PathLike[str],
    *,
    seeds: int = 10,
    fast: bool = False,
    only: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    jobs: int | None = None,
) -> Path:
    """Run the paper's experiments, and write tables, numbers and figures.

    The Danish roads are read from the file that the environment variable EWENS_WIDGETS_ROADS names, or from
    the cache. Without either a stand-in is used, and the page says so.

    Parameters
    ----------
    folder
        Where to write; made if need be. Numbers of an earlier run with as many seeds are kept where they are
        not computed again.
    seeds
        How often each method is repeated.
    fast
        Two seeds and short runs, to see that everything works.
    only
        Short names of the experiments to run; all by default.
    methods
        Columns to compute; all by default, and the figures too.
    jobs
        Number of processes; as many as there are processors by default.

    Returns
    -------
    the path of the page
    """
    chosen = [ALL[key] for key in (ALL if only is None else only)]
    unknown = set(methods or ()) - set(METHODS)
    if not chosen or unknown:
        raise ValueError(f"choose experiments from {', '.join(ALL)} and methods from {', '.join(METHODS)}.")
    repeats = 2 if fast else check_count("seeds", seeds, 1)
    target, start = Path(folder), time.perf_counter()
    target.mkdir(parents=True, exist_ok=True)
    pool = Parallel(-1 if jobs is None else check_count("jobs", jobs, 1), return_as="generator")
    wanted = [(entry.key, name) for name in methods or METHODS for entry in chosen]
    drawn = [] if methods else chosen
    tasks = [delayed(METHODS[name])(ALL[key], repeats, fast) for key, name in wanted]
    tasks += [delayed(_draw)(entry.key, target) for entry in drawn]
    found = list(progress_bar(iterable=pool(tasks), total=len(tasks), unit="run", desc="paper"))
    results: Found = {"seeds": repeats, "experiments": {}}
    if (target / RESULTS).is_file():
        earlier = json.loads((target / RESULTS).read_text(encoding="utf-8"))
        results = earlier if earlier["seeds"] == repeats else results
    for (key, name), result in zip(wanted, found, strict=False):
        results["experiments"].setdefault(key, {"settings": ALL[key].settings()})[name] = result
    figures = dict(zip([entry.key for entry in drawn], found[len(wanted) :], strict=True))
    page = markdown_page(results, figures)
    versions = ", ".join(f"{name} {version(name)}" for name in ("ewens_widgets", "numpy", "scikit-learn"))
    page += f"\nMade by {versions}, in {(time.perf_counter() - start) / 60:.1f} minutes.\n"
    write_atomically(target / RESULTS, (json.dumps(results, indent=1) + "\n").encode())
    write_atomically(target / PAGE, page.encode())
    return target / PAGE


def _chains(acceptance: str, lengths: Sequence[int | None] = (None,)) -> Method:
    """The paper's settings with an acceptance ratio; the next length where starts still disagree."""

    def found(experiment: Experiment, seeds: int, fast: bool) -> Found:
        result: Found = {}
        for iterations in lengths[: 1 if fast else None] if experiment.draws else ():
            runs = run(experiment.key, acceptance, seeds, iterations=iterations)
            result = runs.plain()
            if runs.has_converged:
                break
        return result

    return found


def _default(experiment: Experiment, seeds: int, fast: bool) -> Found:
    short = 100 if fast else None
    return run(experiment.key, CORRECTED, seeds, moves="default", iterations=short).plain()


def k_means(X: FloatArray, n_clusters: int, seed: int) -> Labels:
    """Labels by k-means, best of ten starts, given the number of clusters."""
    from sklearn.cluster import KMeans

    return fit_predict(KMeans(n_clusters, n_init=10, random_state=seed), X)


def gaussian_mixture(X: FloatArray, n_clusters: int, seed: int) -> Labels:
    """Labels by a Gaussian mixture, best of five starts, given the number of clusters."""
    from sklearn.mixture import GaussianMixture

    return fit_predict(GaussianMixture(n_clusters, n_init=5, random_state=seed), X)


def our_answer(
    X: FloatArray,
    _n_clusters: int,
    seed: int,
    model: str = "III",
    **settings: Any,  # noqa: ANN401 - what `AffineClustering` takes
) -> Labels:
    """Labels by `AffineClustering`, given nothing but the model."""
    return fit_predict(AffineClustering(model, random_state=seed, **settings), X)


def fit_predict(method: Any, X: FloatArray) -> Labels:  # noqa: ANN401 - any of scikit-learn's kind
    """Fit and predict; rarely one of the starts stops early, and the best of them counts."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(method.fit_predict(X), dtype=np.intp)


def _told(method: Callable[[FloatArray, int, int], Labels]) -> Method:
    """Errors of a method that is given the number of clusters."""

    def errors(experiment: Experiment, seeds: int, _fast: bool) -> Found:
        found = []
        for seed in range(seeds):
            data = experiment.load(seed)
            labels = method(data.X, experiment.n_clusters, seed)
            found.append(round(error_rate(np.asarray(data.labels), labels), 4))
        return {"errors": found}

    return errors


def _answer(experiment: Experiment, seeds: int, fast: bool) -> Found:
    """Mean adjusted Rand index of our answer, and the smallest and the largest number of groups."""
    short = {"draws": 50, "burn_in": 50, "n_chains": 2} if fast else {}
    agreement, counts = [], []
    for seed in range(seeds):
        data = experiment.load(seed)
        labels = our_answer(data.X, 0, seed, experiment.model, **short)
        agreement.append(adjusted_rand(np.asarray(data.labels), labels))
        counts.append(len(np.unique(labels)))
    return {"adjusted_rand": round(float(np.mean(agreement)), 4), "groups": [min(counts), max(counts)]}


METHODS: Mapping[str, Method] = {
    "as printed": _chains("as-printed"),
    "corrected": _chains(CORRECTED),
    "converged": _chains(CORRECTED, LENGTHS),
    "default": _default,
    "k-means": _told(k_means),
    "Gaussian mixture": _told(gaussian_mixture),
    "our answer": _answer,
}


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body])


def published_table(results: Found) -> str:
    """The paper's settings beside ours: error, mean number of clusters and R-hat of each experiment."""
    names = ("as printed", "corrected", "converged", "default")
    rows = [["experiment", "the paper", "as printed", "corrected", "corrected, longer", "our default"]]
    for key, found in results["experiments"].items():
        if ALL[key].draws:
            cells = [_chain_cell(found.get(name, {})) for name in names]
            if found.get("converged"):
                cells[2] += f", {found['converged']['iterations']:,} iterations".replace(",000", " 000")
            rows.append([f"`{key}`", ALL[key].claim, *cells])
    return _markdown(rows)


def _chain_cell(found: Found) -> str:
    if not found:
        return "–"
    rhat = "∞" if found["rhat"] is None else f"{found['rhat']:.2f}"
    return f"{_spread(found['errors'])}; K {np.mean(found['n_clusters']):.1f}; R-hat {rhat}"


def comparison_table(results: Found) -> str:
    """Our default and other methods given the number of clusters; then those that are not given it.

    R's mclust is among these where its figures are stored (by scripts/store_mclust.py).
    """
    told, untold = ("default", "k-means", "Gaussian mixture"), ["our answer"]
    untold += ["mclust"] * any("mclust" in found for found in results["experiments"].values())
    rows = [["data", "model", "our default", "k-means, paper", "k-means", "Gaussian mixture", *untold]]
    for key, found in results["experiments"].items():
        if key != "half-moons-3-discussion":  # the data of half-moons-3 again
            entry = ALL[key]
            cells = [_spread(found.get(name, {}).get("errors", [])) for name in told]
            cells.insert(1, entry.k_means_claim)
            scores = [_answers(found.get(name, {})) for name in untold]
            title = entry.load(0).name if key == "roads-3" else entry.title
            rows.append([title, entry.model, *cells, *scores])
    return _markdown(rows)


def _spread(errors: Sequence[float]) -> str:
    if not errors:
        return "–"
    if np.ptp(errors) == 0.0:
        return f"{errors[0]:.3f}"
    return f"{np.mean(errors):.3f} ({min(errors):.3f}–{max(errors):.3f})"


def _answers(found: Found) -> str:
    """Mean adjusted Rand index, and the numbers of groups that were found."""
    if not found:
        return "–"
    least, most = found["groups"]
    return f"{found['adjusted_rand']:.2f} ({least if least == most else f'{least}–{most}'})"


def markdown_page(results: Found, figures: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """Write the page: what was done, the tables, how to read them, and the figures."""
    parts = [f"# The paper's experiments, run again\n\n{_METHOD.format(**results, good=GOOD_RHAT)}"]
    parts += [published_table(results), "## Other methods", _COMPARED, comparison_table(results)]
    roads = results["experiments"].get("roads-3")
    if roads and "stand-in" in ALL["roads-3"].load(0).name:
        parts.append(
            "The real Denmark roads were not at hand: their rows are for a stand-in, drawn from the means "
            "and standard deviations that the paper prints. Name the file of the road network with `--roads`."
        )
    for key, entries in figures.items():
        parts.append(f"## {ALL[key].title}, model {ALL[key].model}")
        parts += [f"![{caption}]({name})\n\n{caption}" for name, caption in entries]
    return "\n\n".join(parts) + "\n"


_METHOD = """\
Huang & Yang, *An Affine-Transformation Invariant Bayesian Cluster Process with Split-Merge Gibbs Sampler*
(arXiv 1611.09890). `ew.paper.experiments` lists the settings of each experiment.

- **as printed**: the paper's settings and iterations, with the acceptance ratio that it prints.
- **corrected**: the same with the Metropolis-Hastings ratio.
- **corrected, longer**: ten times longer until chains from four starts agree, at most 1 000 000 iterations.
- **our default**: 20 informed split-merge proposals and a Gibbs sweep per iteration.

Errors are shares of objects in the wrong cluster: the mean over {seeds} seeds, with the smallest and the
largest in parentheses. K is the mean number of clusters of the draws. R-hat compares four chains from
different starts; above {good} they have **not converged**, and errors depend on start and seed."""
_COMPARED = """\
Errors where the number of clusters is given, in the units of the data. Our answer is not given the number:
adjusted Rand index, and the numbers of groups that were found."""


def _draw(key: str, folder: Path) -> list[tuple[str, str]]:
    """Draw the pictures of an experiment with seed 0; return names of files, with captions."""
    experiment = ALL[key]
    ours = run(key, CORRECTED, 1, moves="default")
    cut = plot_scatter(ours.data, ours.labels[0], true=ours.data.labels)
    drawings = [("default", ours.plot(), "our default: distance between objects")]
    ratios = ("as-printed", CORRECTED) if experiment.draws else ()
    drawings += [(ratio, run(key, ratio, 1).plot(), f"Algorithm 2, {ratio}") for ratio in ratios]
    drawings.append(("clusters", cut, f"our default, cut at {experiment.n_clusters} clusters"))
    drawings.append(("theta", plot_theta(ours.trace), "variance ratio"))
    about = f"{ours.data.name}, model {experiment.model}"
    for kind, figure, _ in drawings:
        figure.savefig(folder / f"{key}-{kind}.png", dpi=150)
    return [(f"{key}-{kind}.png", f"{about}: {caption}") for kind, _, caption in drawings]
