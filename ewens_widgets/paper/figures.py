"""The figures of the experiments: heatmap with its tree, clusters, θ, and traces of both algorithms."""

from pathlib import Path
from typing import TYPE_CHECKING

from ewens_widgets.analysis.evidence_tree import consensus_tree
from ewens_widgets.analysis.plots import plot_heatmap, plot_scatter, plot_theta, plot_traces
from ewens_widgets.analysis.plots.canvas import new_figure
from ewens_widgets.paper.experiments import experiment_named
from ewens_widgets.paper.methods import STARTS, Settings, run_chain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_figures"]


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
