r"""The experiments of Huang & Yang with the settings that they print (arXiv 1611.09890, section 5).

`experiments` is a table of them, and `run` runs one with its own settings, on as many seeds as wanted::

    ew.paper.run("half-moons-2", acceptance="as-printed", seeds=10)

`run_paper` runs all of them, as printed, corrected and with our default schedule, and writes the page with
`published_table`, which docs/results.md has too.

**What is printed** for all: concentration λ, of which no value is given (1 here); α = 1 and θ on 2⁻³ … 2¹⁰; a
start from singletons; split, merge and keep with probabilities (0.475, 0.475, 0.05), and a core jump of 0.01,
where nothing else is said; distances in the units of the data; the similarity tree by single linkage.

**What had to be decided.** "Minimum" is named among the within-cluster distances of three experiments, but
defined only between clusters. We read it as the smallest distance between two different members. The paper
does not say how its trees are cut: we cut into the true number of clusters, and clusters of fewer than 5 % of
the objects do not count where the tree allows this, as a reader of a heatmap would not count them. Section 5
and the discussion contradict each other on the sheared half-moons, and the heading and the text on the model
for wine: both versions are in the table. The number of half-moon points is not printed; with 200, every
printed error rate is a whole number of points.
"""

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ewens_widgets import datasets
from ewens_widgets.analysis.agreement import error_rate
from ewens_widgets.analysis.convergence import GOOD_RHAT, diagnose
from ewens_widgets.analysis.findings import html_table, text_table
from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset
from ewens_widgets.files import write_atomically
from ewens_widgets.paper.denmark import denmark_roads, denmark_roads_standin
from ewens_widgets.paper.moves.split_merge import SplitMerge
from ewens_widgets.sampling.sampler import Sampler, progress_bar
from ewens_widgets.sampling.state import INITIAL
from ewens_widgets.sampling.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROADS_VARIABLE = "EWENS_WIDGETS_ROADS"  # Where the file of the road network is, for worker processes too.
DEFAULT_DRAWS, DEFAULT_BURN_IN = 2000, 500  # of our default schedule
KEPT_DRAWS = 2000  # of longer runs, which are thinned
LENGTHS = (10_000, 100_000, 1_000_000)  # that the corrected algorithm is given until its chains agree
CORRECTED = "metropolis-hastings"
_SMALL = 20  # A cluster with fewer than one in so many objects is not counted where the tree allows it.


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, with its settings.

    Attributes
    ----------
    key
        Short name.
    title, model
        The data, and the covariance model.
    section
        Where the paper has it, by section and figure.
    claim, k_means_claim
        What the paper reports of its result, and of k-means.
    burn_in, draws
        Iterations that it drops and keeps; no draws for an experiment that is ours alone.
    within, between, probabilities, core_jump
        Options of Algorithm 2.
    n_clusters
        True number of clusters, into which the tree is cut.
    reading
        How chains of our default schedule are read: ``"single"`` linkage, or the ``"consensus"`` of evidence
        trees.
    thin
        Iterations of our default schedule for each draw.
    load
        Loads the data; the argument is the seed of those that are simulated.
    """

    key: str
    title: str
    model: str
    section: str
    claim: str
    burn_in: int
    draws: int
    n_clusters: int
    load: Callable[[int], Dataset] = field(repr=False)
    within: str = "average"
    between: str = "average"
    probabilities: tuple[float, float, float] = (0.475, 0.475, 0.05)
    core_jump: float = 0.01
    k_means_claim: str = "–"
    reading: str = "consensus"
    thin: int = 1

    def settings(self) -> dict[str, Any]:
        """The settings as plain values, as they are stored with results."""
        left_out = ("load", "title", "reading", "thin", "claim", "k_means_claim", "section")
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    def move(self) -> SplitMerge:
        """Algorithm 2 with the options of the experiment."""
        return SplitMerge(self.within, self.between, self.probabilities, self.core_jump)

    def cut(self, trace: Trace, reading: str = "single") -> NDArray[np.intp]:
        """Cut a tree of the draws into the true number of clusters."""
        if reading == "consensus":
            return trace.consensus_tree(self.n_clusters).cut(n_clusters=self.n_clusters)
        tree = trace.similarity_tree("single")
        # Chains that have not converged may have no large clusters to count.
        for size in (trace.n_objects // _SMALL, 5, 2):
            if np.any(tree.counts(size) == self.n_clusters):
                return tree.cut(n_clusters=self.n_clusters, min_size=size)
        return tree.cut(n_clusters=self.n_clusters)


class Experiments(dict[str, Experiment]):
    """A table of experiments, by key."""

    def __init__(self, *entries: Experiment) -> None:
        super().__init__({entry.key: entry for entry in entries})

    def __missing__(self, key: str) -> Experiment:
        raise ValueError(f"there is no experiment {key!r}; choose from {', '.join(self)}.")

    @property
    def table(self) -> list[list[str]]:
        """Rows of cells, the first with the names of the columns."""
        header = "key, data, model, within, between, split/merge/keep, core jump, burn-in, draws, cut"
        rows = [[*header.split(", "), "the paper reports", "section"]]
        for entry in self.values():
            steps = "/".join(f"{value:g}" for value in entry.probabilities)
            cells = [entry.key, entry.title, entry.model, entry.within, entry.between, steps]
            cells += [f"{entry.core_jump:g}", str(entry.burn_in), str(entry.draws)]
            rows.append([*cells, f"single, {entry.n_clusters}", entry.claim, entry.section])
        return rows

    def __repr__(self) -> str:
        return "\n".join(text_table(self.table, "ljust"))

    def _repr_html_(self) -> str:
        return html_table(self.table)


def _roads(seed: int) -> Dataset:
    """Load the real roads where their file is at hand, or draw the stand-in, whose name says so."""
    try:
        return denmark_roads(os.environ.get(ROADS_VARIABLE) or None, download=False)
    except FileNotFoundError:
        if os.environ.get(ROADS_VARIABLE):
            raise
        return denmark_roads_standin(seed=seed)


def _square(transform: str | None) -> Callable[[int], Dataset]:
    return lambda seed: datasets.unit_square(transform=transform, seed=seed)


def _moons(transformed: bool) -> Callable[[int], Dataset]:
    return lambda seed: datasets.half_moons(200, transformed=transformed, seed=seed)


# Rows in the order of the fields of `Experiment`, from the title on.
_MOST = "most points right"
_SQUARES = ("unit square, rescaled", "II", "5.1"), ("unit square, sheared", "III", "5.1, Figure 2")
_MOONS = ("half-moons", "II", "5.1 and 6", "error 0.115", 610, 1000, 2, _moons(False), "minimum")
_SHEARED = ("half-moons, sheared", "III", "5.1, Figure 4", "error 0.11", 400, 1000, 2, _moons(True))
_MERGING: dict[str, Any] = {"probabilities": (0.019, 0.98, 0.001), "reading": "single"}
_GENES = ("leukemia, 20 principal components", "I", "5.2, Figure 6", _MOST, 500, 1000, 2)
_ROADS = ("Denmark roads", "III", "5.2, Figure 9", "two clusters", 500, 1000, 2, _roads)
_MOONS_3 = Experiment("half-moons-3", *_SHEARED, "maximum", "minimum", k_means_claim="0.15", **_MERGING)
_WINE_1 = Experiment(
    *("wine-1", "wine", "I", "5.2, text; Figure 7", _MOST, 1350, 1500, 3, lambda _: datasets.wine()),
    within="minimum",
    probabilities=(0.09, 0.90, 0.01),
    thin=100,
)

experiments = Experiments(
    Experiment("unit-square-1", "unit square", "I", "5.1", _MOST, 500, 1000, 4, _square(None)),
    Experiment("unit-square-2", *_SQUARES[0], _MOST, 500, 2000, 4, _square("II")),
    Experiment("unit-square-3", *_SQUARES[1], _MOST, 500, 2000, 4, _square("III")),
    Experiment("half-moons-2", *_MOONS, k_means_claim="0.23", **_MERGING),
    _MOONS_3,
    replace(_MOONS_3, key="half-moons-3-discussion", section="6", within="minimum", between="maximum"),
    Experiment("leukemia-1", *_GENES, lambda _: datasets.leukemia(20)),
    _WINE_1,
    replace(_WINE_1, key="wine-2", model="II", section="5.2, heading", thin=1),
    Experiment("roads-3", *_ROADS, thin=10),
)
"""The paper's experiments, by key."""

ALL = Experiments(
    *experiments.values(),
    # Ours alone.
    replace(_WINE_1, key="wine-3", model="III", section="–", claim="–", burn_in=0, draws=0, thin=3),
)


@dataclass(frozen=True, eq=False)
class Runs:
    """An experiment, run on several seeds.

    Attributes
    ----------
    experiment, acceptance
        What was run.
    iterations
        Iterations of each chain, with those that were dropped.
    labels
        The clusters that were found, for each seed.
    errors
        Share of objects in the wrong cluster, for each seed.
    n_clusters
        Mean number of clusters of the draws, for each seed.
    rhat
        The largest R-hat of four chains from different starts, on the data of seed 0.
    trace
        The draws of seed 0.
    """

    experiment: Experiment
    acceptance: str
    iterations: int
    labels: tuple[NDArray[np.intp], ...] = field(repr=False)
    errors: NDArray[np.float64]
    n_clusters: NDArray[np.float64]
    rhat: float
    trace: Trace = field(repr=False)

    @property
    def data(self) -> Dataset:
        """The data of seed 0."""
        return self.experiment.load(0)

    @property
    def has_converged(self) -> bool:
        """Whether the chains from different starts agree."""
        return self.rhat <= GOOD_RHAT

    @property
    def table(self) -> list[list[str]]:
        """Rows of cells, the first with the names of the columns."""
        rows = [["seed", "error", "mean K"]]
        pairs = zip(self.errors, self.n_clusters, strict=True)
        rows += [[str(seed), f"{error:.3f}", f"{mean:.1f}"] for seed, (error, mean) in enumerate(pairs)]
        return [*rows, ["mean", f"{self.errors.mean():.3f}", f"{self.n_clusters.mean():.1f}"]]

    @property
    def _title(self) -> str:
        told = "converged" if self.has_converged else "not converged"
        return (
            f"{self.experiment.title}, model {self.experiment.model}, {self.acceptance}, {self.iterations} "
            f"iterations: R-hat {self.rhat:.2f}, {told}. The paper: {self.experiment.claim}."
        )

    def __repr__(self) -> str:
        return "\n".join([self._title, *text_table(self.table)])

    def _repr_html_(self) -> str:
        return f"<p>{self._title}</p>{html_table(self.table)}"

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the similarity of seed 0 as the paper does: distance in greys, single-linkage tree."""
        from ewens_widgets.analysis.plots import plot_heatmap

        return plot_heatmap(self.trace, labels=self.labels[0], true=self.data.labels, ax=ax)

    def plain(self) -> dict[str, Any]:
        """The numbers alone, as they are stored."""
        return {
            "iterations": self.iterations,
            "errors": self.errors.round(4).tolist(),
            "n_clusters": self.n_clusters.round(2).tolist(),
            "rhat": round(self.rhat, 3) if np.isfinite(self.rhat) else None,
        }


def run(
    key: str,
    acceptance: str = "as-printed",
    seeds: int = 10,
    *,
    iterations: int | None = None,
    moves: str | None = None,
) -> Runs:
    """Run an experiment of the paper with its settings.

    Parameters
    ----------
    key
        Short name of the experiment; see ``ew.paper.experiments``.
    acceptance
        ``"as-printed"``: the ratio that arXiv 1611.09890 prints in its Algorithm 2, whose proposal terms are
        inverted; ``"metropolis-hastings"``: the correct one.
    seeds
        How many chains to run, from singletons; data that are simulated are simulated for each.
    iterations
        A number of iterations in place of the paper's. The first half is dropped.
    moves
        A schedule in place of Algorithm 2, such as ``"default"``: then 2500 iterations, of which 500 are
        dropped, in canonical coordinates, and read by the consensus of evidence trees where this is better.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> found = ew.paper.run("half-moons-2", "metropolis-hastings", seeds=1)
    >>> found.iterations, found.has_converged
    (1610, False)
    """
    experiment = ALL[key]
    count = check_count("seeds", seeds, 1)
    draws, burn_in, thin = experiment.draws, experiment.burn_in, 1
    settings: dict[str, Any] = {"moves": [experiment.move()], "acceptance": acceptance, "metric": "euclidean"}
    if moves is not None:
        settings = {"moves": moves, "acceptance": acceptance}
        draws, burn_in, thin = DEFAULT_DRAWS, DEFAULT_BURN_IN * experiment.thin, experiment.thin
    if iterations is not None:
        half = check_count("iterations", iterations, 4) // 2
        thin = -(-half // KEPT_DRAWS)
        draws, burn_in = half // thin, iterations - half // thin * thin
    if not draws:
        raise ValueError(
            f"{key} is not in the paper and has no settings of its own; give moves or iterations."
        )

    def chain(data: Dataset, initial: str, seed: int) -> Trace:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The acceptance ratio")  # it was asked for by name
            sampler = Sampler(data, model=experiment.model, initial=initial, seed=seed, **settings)
        return sampler.sample(draws, burn_in, thin, progress=False)

    # The first of the starts is the paper's: this chain is seed 0 of the others too.
    chains = [chain(experiment.load(0), start, number) for number, start in enumerate(INITIAL)]
    labels, errors, counts = [], [], []
    for seed in range(count):
        data = experiment.load(seed)
        trace = chain(data, INITIAL[0], seed) if seed else chains[0]
        labels.append(experiment.cut(trace, "single" if moves is None else experiment.reading))
        errors.append(error_rate(np.asarray(data.labels), labels[-1]))
        counts.append(float(trace.n_clusters.mean()))
    return Runs(
        experiment,
        acceptance,
        burn_in + draws * thin,
        tuple(labels),
        np.array(errors),
        np.array(counts),
        diagnose(chains).worst_rhat,
        chains[0],
    )


def _published(key: str, seeds: int, fast: bool) -> dict[str, Any]:
    """Numbers of an experiment: as printed, corrected, corrected and longer, and of our default schedule."""
    found: dict[str, Any] = {"settings": ALL[key].settings()}
    if ALL[key].draws:
        found |= {"as printed": run(key, "as-printed", seeds).plain()}
        found |= {"corrected": run(key, CORRECTED, seeds).plain()}
        for iterations in LENGTHS[: 1 if fast else None]:
            runs = run(key, CORRECTED, seeds, iterations=iterations)
            found["converged"] = runs.plain()
            if runs.has_converged:
                break
    short = 100 if fast else None
    return found | {"default": run(key, CORRECTED, seeds, moves="default", iterations=short).plain()}


def _pictures(key: str, folder: Path) -> list[str]:
    """Draw the similarity of seed 0, by our default and by Algorithm 2 with both ratios."""
    chains = {"our default": run(key, CORRECTED, 1, moves="default")}
    for ratio in ("as-printed", CORRECTED) if ALL[key].draws else ():
        chains[f"Algorithm 2, {ratio}"] = run(key, ratio, 1)
    lines = []
    for caption, runs in chains.items():
        name = f"{key}-{caption.rpartition(' ')[2]}.png"
        runs.plot().savefig(folder / name, dpi=150)
        lines.append(f"![{ALL[key].title}, model {ALL[key].model}: {caption}]({name})")
    return lines


def run_paper(
    folder: str | os.PathLike[str],
    *,
    seeds: int = 10,
    fast: bool = False,
    only: Sequence[str] | None = None,
    jobs: int | None = None,
) -> Path:
    """Run the paper's experiments, and write a table, all numbers (``results.json``) and pictures.

    The Danish roads are read from the file that the environment variable EWENS_WIDGETS_ROADS names, or from
    the cache. Without either a stand-in is used, and the page says so.

    Parameters
    ----------
    folder
        Where to write; made if need be.
    seeds
        How often each experiment is repeated.
    fast
        Two seeds and short runs, to see that everything works.
    only
        Short names of the experiments to run; all by default.
    jobs
        Number of processes; as many as there are processors by default.

    Returns
    -------
    the path of the page
    """
    chosen = [ALL[key].key for key in (ALL if only is None else only)]
    if not chosen:
        raise ValueError(f"choose experiments from {', '.join(ALL)}.")
    repeats, target = 2 if fast else check_count("seeds", seeds, 1), Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    pool = Parallel(-1 if jobs is None else check_count("jobs", jobs, 1), return_as="generator")
    tasks = [delayed(_published)(key, repeats, fast) for key in chosen]
    tasks += [delayed(_pictures)(key, target) for key in chosen]
    found = list(progress_bar(iterable=pool(tasks), total=len(tasks), unit="run", desc="paper"))
    results = {"seeds": repeats, "experiments": dict(zip(chosen, found, strict=False))}
    parts = [_PAGE.format(seeds=repeats, good=GOOD_RHAT), published_table(results)]
    if "roads-3" in chosen and "stand-in" in ALL["roads-3"].load(0).name:
        parts.append(_STANDIN)
    parts += [line for lines in found[len(chosen) :] for line in lines]
    parts.append(f"Made by ewens_widgets {version('ewens_widgets')} and numpy {version('numpy')}.")
    write_atomically(target / "results.json", (json.dumps(results, indent=1) + "\n").encode())
    write_atomically(target / "results.md", ("\n\n".join(parts) + "\n").encode())
    return target / "results.md"


_PAGE = """\
# The paper's experiments, run again

Huang & Yang, *An Affine-Transformation Invariant Bayesian Cluster Process with Split-Merge Gibbs Sampler*
(arXiv 1611.09890). `ew.paper.experiments` lists the settings of each experiment.

- **as printed**: the paper's settings and iterations, with the acceptance ratio that it prints.
- **corrected**: the same with the Metropolis-Hastings ratio.
- **corrected, longer**: ten times longer until chains from four starts agree, at most 1 000 000 iterations.
- **our default**: 20 informed split-merge proposals and a Gibbs sweep per iteration.

Errors are shares of objects in the wrong cluster: the mean over {seeds} seeds, with the smallest and the
largest in parentheses. K is the mean number of clusters of the draws. R-hat compares four chains from
different starts; above {good} they have **not converged**, and errors depend on start and seed."""
_STANDIN = """\
The real Denmark roads were not at hand: their rows are for a stand-in, drawn from the means and standard
deviations that the paper prints. Name the file of the road network with `--roads`."""


def published_table(results: Mapping[str, Any]) -> str:
    """The paper's settings beside ours: error, mean number of clusters and R-hat of each experiment."""
    names = ("as printed", "corrected", "converged", "default")
    rows = [["experiment", "the paper", "as printed", "corrected", "corrected, longer", "our default"]]
    for key, found in results["experiments"].items():
        cells = [_cell(found[name]) if found.get(name) else "–" for name in names]
        if found.get("converged"):
            cells[2] += f", {found['converged']['iterations']:,} iterations".replace(",000", " 000")
        if ALL[key].draws:
            rows.append([f"`{key}`", ALL[key].claim, *cells])
    return markdown(rows)


def _cell(found: Mapping[str, Any]) -> str:
    rhat = "∞" if found["rhat"] is None else f"{found['rhat']:.2f}"
    return f"{spread(found['errors'])}; K {np.mean(found['n_clusters']):.1f}; R-hat {rhat}"


def spread(errors: Sequence[float]) -> str:
    """The mean of some errors, with the smallest and the largest where they differ."""
    mean = f"{np.mean(errors):.3f}"
    return mean if np.ptp(errors) == 0.0 else f"{mean} ({min(errors):.3f}–{max(errors):.3f})"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first row has the names of the columns."""
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body])
