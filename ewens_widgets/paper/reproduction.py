"""Run all experiments, on several processes, and write the page: a table, how to read it, and figures."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from ewens_widgets._version import __version__
from ewens_widgets.analysis.convergence import GOOD_RHAT
from ewens_widgets.analysis.evidence_tree import consensus_tree
from ewens_widgets.analysis.plots import plot_heatmap, plot_scatter, plot_theta, plot_traces
from ewens_widgets.analysis.plots.palette import new_figure
from ewens_widgets.arguments import check_count
from ewens_widgets.files import write_atomically
from ewens_widgets.paper.experiments import (
    ANSWER,
    CHAINS,
    EXPERIMENTS,
    FAST,
    MCLUST,
    METHODS,
    PAPER_ITERATIONS,
    ROADS_VARIABLE,
    STARTS,
    Experiment,
    Settings,
    Trial,
    TrialResult,
    experiment_named,
    run_chain,
    run_trial,
)
from ewens_widgets.paper.simulations import ANSWERING, SCENARIOS, SEEDS, Score, run_rival, simulation_table
from ewens_widgets.sampling.sampler import progress_bar

PAGE = "results.md"
_HEADER = (
    "data",
    "n × d",
    "model",
    "clusters",
    "the paper says",
    "its Algorithm 2",
    "R-hat",
    "our default",
    "R-hat",
    "k-means (the paper's)",
    "k-means",
    "Gaussian mixture",
    "our answer, not told",
    "mclust, not told",
)


def run_paper(
    folder: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    fast: bool = False,
    only: Sequence[str] | None = None,
    figures: bool = True,
    roads: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> Path:
    """Run the paper's experiments and write a table and figures.

    Parameters
    ----------
    folder
        Where to write; made if need be. Files of an earlier run are replaced.
    settings
        How long everything runs; ten seeds by default.
    fast
        Run everything very briefly, to see that it works. The numbers mean nothing.
    only
        Short names of the experiments to run; all by default, and the simulations too.
    figures
        Draw the figures too.
    roads
        The UCI file of the Danish road network; without it, and without a copy in the cache, a stand-in is
        used, and the page says so.
    jobs
        Number of processes; as many as there are processors by default.
    progress
        Show a progress bar.

    Returns
    -------
    the path of the page
    """
    chosen = EXPERIMENTS if only is None else tuple(experiment_named(key) for key in only)
    if not chosen:
        raise ValueError("no experiment was chosen; leave `only` out to run all of them.")
    lengths = settings or (FAST if fast else Settings())
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    pool = Parallel(-1 if jobs is None else check_count("jobs", jobs, 1), return_as="generator")
    with _roads_at(roads):
        trials = list(_all_trials(chosen, lengths))
        simulated = [
            (scenario.key, method, seed)
            for scenario in SCENARIOS
            for method in ANSWERING
            for seed in SEEDS["held-out"][: lengths.simulations if chosen == EXPERIMENTS else 0]
        ]
        drawings = chosen if figures else ()
        tasks = [
            *(delayed(_task)(roads, run_trial, trial, lengths) for trial in trials),
            *(delayed(_task)(roads, run_rival, *each) for each in simulated),
            *(delayed(_task)(roads, draw_figures, entry.key, lengths, target) for entry in drawings),
        ]
        with progress_bar(total=len(tasks), disable=not progress, unit="run", desc="paper") as bar:
            found = []
            for result in pool(tasks):
                found.append(result)
                bar.update()
        rest = found[len(trials) :]
        results, scores = found[: len(trials)], rest[: len(simulated)]
        drawn = dict(zip([entry.key for entry in drawings], rest[len(simulated) :], strict=True))
        minutes = (time.perf_counter() - start) / 60
        page = markdown_page(chosen, results, lengths, drawn, _versions(minutes), scores)
    write_atomically(target / PAGE, page.encode())
    return target / PAGE


def _task(roads: str | os.PathLike[str] | None, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
    """Run a piece of work in a process that may have been started before the road network was named."""
    with _roads_at(roads):
        return function(*arguments)


def _all_trials(chosen: Sequence[Experiment], settings: Settings) -> Iterator[Trial]:
    """Everything to run_trial, the longest first, so that no process is left waiting at the end."""
    for experiment in chosen:
        for method in CHAINS:
            yield Trial(experiment.key, method, None)
    for method in METHODS:
        for experiment in chosen:
            for seed in range(settings.seeds):
                yield Trial(experiment.key, method, seed)


@contextmanager
def _roads_at(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Name the file of the road network to the experiments of this process."""
    if path is None:
        yield
        return
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r} with the road network.")
    before = os.environ.get(ROADS_VARIABLE)
    os.environ[ROADS_VARIABLE] = os.fspath(Path(path).resolve())
    try:
        yield
    finally:
        if before is None:
            del os.environ[ROADS_VARIABLE]
        else:
            os.environ[ROADS_VARIABLE] = before


def _versions(minutes: float) -> str:
    import numpy as np
    import scipy
    import sklearn

    versions = f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    return f"Made by ewens_widgets {__version__} with {versions}, in {minutes:.1f} minutes."


def markdown_table(experiments: Sequence[Experiment], results: Sequence[TrialResult]) -> str:
    """Draw the table: errors are shares of objects in the wrong cluster, averages over the seeds."""
    rows = [_HEADER, ("---",) * len(_HEADER)]
    for experiment in experiments:
        data = experiment.load(0)
        errors = {method: _errors(experiment, method, results) for method in METHODS}
        rhats = {method: _rhat(experiment, method, results) for method in ("paper", "default")}
        rows.append(
            (
                data.name if experiment.key.startswith("roads") else experiment.title,
                f"{data.n_objects} × {data.n_features}",
                experiment.model,
                str(experiment.n_clusters),
                experiment.claim,
                _spread(errors["paper"]),
                _verdict(rhats["paper"]),
                f"**{_spread(errors['default'])}**",
                _verdict(rhats["default"]),
                experiment.k_means_claim,
                _spread(errors["k-means"]),
                _spread(errors["Gaussian mixture"]),
                f"**{_answers(experiment, ANSWER, results)}**",
                _answers(experiment, MCLUST, results),
            )
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def markdown_page(
    experiments: Sequence[Experiment],
    results: Sequence[TrialResult],
    settings: Settings,
    figures: Mapping[str, Sequence[tuple[str, str]]],
    versions: str,
    scores: Sequence[Score] = (),
) -> str:
    """Write the page: what was done, the table, how to read it, and the figures."""
    parts = ["# The paper's experiments, run again", _method_text(experiments, settings)]
    parts.append(markdown_table(experiments, results))
    parts.append(_reading_text(experiments, results))
    if scores:
        parts += ["## Simulated data", _simulations_text(settings.simulations), simulation_table(scores)]
    for experiment in experiments:
        entries = figures.get(experiment.key, ())
        if entries:
            parts.append(f"## {experiment.title}, model {experiment.model}")
            parts += [f"![{caption}]({name})\n\n{caption}" for name, caption in entries]
    parts.append(versions)
    return "\n\n".join(parts) + "\n"


def _method_text(experiments: Sequence[Experiment], settings: Settings) -> str:
    draws, burn_in = settings.length("paper")
    starts = ", ".join(STARTS[: settings.chains])
    times = [f"{entry.thin} times on {entry.title} {entry.model}" for entry in experiments if entry.thin > 1]
    slow = f" Where chains mix slowly they are longer: {', '.join(times)}." if times else ""
    number = f"The paper runs {PAPER_ITERATIONS} on the unit square; we take this number for all its data."
    if draws + burn_in != PAPER_ITERATIONS:
        number = f"**Not the paper's number, which is {PAPER_ITERATIONS}: this page does not judge it.**"
    return f"""\
Huang & Yang, *An Affine-Transformation Invariant Bayesian Cluster Process with Split-Merge Gibbs Sampler*
(arXiv 1611.09890). Prior: concentration 1, α = 1, θ on 2⁻³ … 2¹⁰.

- **Its Algorithm 2** (`moves="paper-2"`, with the correct acceptance ratio): {draws + burn_in} iterations
  from all singletons. {number} The first {burn_in} are dropped, which is our choice.
- **Our default**: {settings.burn_in + settings.draws} iterations of 20 informed split-merge proposals and a
  Gibbs sweep, the first {settings.burn_in} dropped.{slow}
- Both are read in the same way and cut at the true number of clusters: the half-moons by single linkage of
  the distance between objects (clusters of fewer than 5 % of the objects do not count), the others by the
  consensus of the evidence trees of up to 100 draws.
- **k-means** (best of 10 starts) and **Gaussian mixture** (full covariances, best of 5 starts) are
  scikit-learn's, in the units of the data and told the true number of clusters.
- **Our answer** (`AffineClustering`, nothing told but the model) and **mclust** (R's, BIC) choose the number
  of clusters themselves: adjusted Rand index, mean over the seeds, and the numbers they found in brackets.
- Errors are shares of objects in the wrong cluster under the best matching: the mean over {settings.seeds}
  seeds, with the least and the largest in brackets. A seed draws the data too, where they are drawn.
- **R-hat** is the largest of those of the number of clusters, θ, log posterior and size of the largest
  cluster, for {settings.chains} chains from different starts ({starts}).
  Above {GOOD_RHAT} the chains have **not converged**; errors then depend on the start and the seed."""


def _reading_text(experiments: Sequence[Experiment], results: Sequence[TrialResult]) -> str:
    lines = []
    for method, name in (("paper", "The paper's Algorithm 2"), ("default", "Our default")):
        values = {entry.key: _rhat(entry, method, results) for entry in experiments}
        failed = [entry for entry in experiments if not values[entry.key] <= GOOD_RHAT]
        which = ", ".join(f"{entry.title} {entry.model} ({_number(values[entry.key])})" for entry in failed)
        count = f"{len(experiments) - len(failed)} of {len(experiments)}"
        lines.append(
            f"{name} has converged in {count} experiments" + (f"; not in {which}." if failed else ".")
        )
    if any(entry.key.startswith("roads") and "stand-in" in entry.load(0).name for entry in experiments):
        lines.append(
            "The real Denmark roads were not at hand: the row is for a stand-in, drawn from the means and "
            "standard deviations that the paper prints. Name the file of the road network with `--roads`."
        )
    return "\n".join(f"- {line}" for line in lines)


def _simulations_text(count: int) -> str:
    return f"""\
Adjusted Rand index and share of right numbers of clusters, over {count} seeds of each kind that no rule was
chosen on (`ewens_widgets.paper.simulations`): two to six clusters in 2 to 13 columns, 80 to 1 000 rows, at
most 2 % of which the true densities would misplace, multiplied by a random matrix. k-means is told the
number."""


def _errors(experiment: Experiment, method: str, results: Sequence[TrialResult]) -> list[float]:
    return [
        result.error
        for result in results
        if result.trial.key == experiment.key
        and result.trial.method == method
        and result.trial.seed is not None
    ]


def _answers(experiment: Experiment, method: str, results: Sequence[TrialResult]) -> str:
    """Mean adjusted Rand index, and the numbers of clusters that were found."""
    found = [
        result
        for result in results
        if (result.trial.key, result.trial.method) == (experiment.key, method)
        and not np.isnan(result.adjusted_rand)
    ]
    if not found:
        return "–"
    counts = [result.n_clusters for result in found]
    number = str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)}–{max(counts)}"
    return f"{np.mean([result.adjusted_rand for result in found]):.2f} ({number})"


def _rhat(experiment: Experiment, method: str, results: Sequence[TrialResult]) -> float:
    found = [
        result.rhat
        for result in results
        if result.trial.key == experiment.key and result.trial.method == method and result.trial.seed is None
    ]
    return found[0] if found else float("nan")


def _spread(errors: Sequence[float]) -> str:
    if not errors:
        return "–"
    if np.ptp(errors) == 0.0:
        return f"{errors[0]:.3f}"
    return f"{np.mean(errors):.3f} ({min(errors):.3f}–{max(errors):.3f})"


def _verdict(rhat: float) -> str:
    return _number(rhat) if rhat <= GOOD_RHAT else f"{_number(rhat)}, not converged"


def _number(rhat: float) -> str:
    if np.isnan(rhat):
        return "–"
    return "∞" if np.isinf(rhat) else f"{rhat:.2f}"


if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figures(key: str, settings: Settings, folder: Path) -> list[tuple[str, str]]:
    """Run the chains of one experiment again, with seed 0, and draw them.

    Parameters
    ----------
    key
        Short name of the experiment.
    settings
        How long the chains run.
    folder
        Where to write the pictures.

    Returns
    -------
    names of the files, with captions
    """
    experiment = experiment_named(key)
    data = experiment.load(0)
    trace = run_chain(experiment, "default", 0, settings)
    found = experiment.read(trace)
    tree = trace.similarity_tree("single")
    if experiment.reading == "consensus":
        tree = consensus_tree(trace, experiment.n_clusters)
    drawings = {
        "heatmap": (
            plot_heatmap(trace, tree=tree, labels=found, true=data.labels),
            "distance between objects",
        ),
        "clusters": (plot_scatter(data, found, true=data.labels), f"cut at {experiment.n_clusters} clusters"),
        "theta": (plot_theta(trace), "variance ratio"),
        "traces": (_both_traces(key, settings), "chains from different starts, with burn-in"),
    }
    entries = []
    for kind, (figure, caption) in drawings.items():
        name = f"{key}-{kind}.png"
        figure.savefig(folder / name, dpi=150)
        entries.append((name, f"{data.name}, model {experiment.model}: {caption}"))
    return entries


def _both_traces(key: str, settings: Settings) -> "Figure":
    """Traces of the paper's algorithm and of the default, burn-in included, side by side."""
    experiment = experiment_named(key)
    figure = new_figure(11.0, 4.4)
    grid = figure.add_gridspec(1, 2)
    parts = [figure.add_subfigure(grid[0, side]) for side in (0, 1)]
    for method, title, part in zip(("paper", "default"), ("Algorithm 2", "our default"), parts, strict=True):
        draws, burn_in = settings.length(method)
        whole = Settings(paper_iterations=draws + burn_in, paper_burn_in=0, draws=draws + burn_in, burn_in=0)
        starts = STARTS[: max(1, min(settings.chains, len(STARTS)))]
        chains = [
            run_chain(experiment, method, 0, whole, initial=start, chain_seed=k)
            for k, start in enumerate(starts)
        ]
        plot_traces(chains, burn_in=int(chains[0].iterations[burn_in - 1]), figure=part)
        part.suptitle(title, fontsize=10)
    return figure
