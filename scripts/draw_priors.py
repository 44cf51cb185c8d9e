#!/usr/bin/env python
"""Draw the figure of the page on priors: distributions of the number of clusters, and how its mean grows.

.venv/bin/python scripts/draw_priors.py docs/priors.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import ewens_widgets as ew

N_OBJECTS, MOST_SHOWN = 200, 40
PRIORS = {
    "Ewens, λ = 1": ew.priors.Ewens(1.0),
    "Ewens, λ ~ Gamma(1, 1)": ew.priors.Ewens(ew.Gamma(1.0, 1.0)),
    "finite mixture": ew.priors.FiniteMixture(),
    "Dirichlet-multinomial, k = 10, λ = 1": ew.priors.DirichletMultinomial(10, 1.0),
    "Pitman–Yor, λ = 1, σ = 0.5": ew.priors.PitmanYor(1.0, 0.5),
}


def draw() -> Figure:
    """Laws on the left, growth on the right."""
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    law, growth = figure.subplots(1, 2)
    guests = np.unique(np.geomspace(1, 10_000, 60).round().astype(int))
    counts = np.arange(1, MOST_SHOWN + 1)
    for (name, prior), colour in zip(PRIORS.items(), ew.plots.OKABE_ITO, strict=False):
        law.plot(counts, prior.count_pmf(N_OBJECTS, MOST_SHOWN)[1:], ".-", color=colour, label=name)
        growth.plot(guests, [prior.expected_clusters(int(n)) for n in guests], color=colour)
    law.set(xlabel=f"clusters K of {N_OBJECTS} objects", ylabel="probability")
    growth.set(xlabel="objects n", ylabel="mean of K", xscale="log", yscale="log")
    law.legend(frameon=False)
    for axes in (law, growth):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    draw().savefig(sys.argv[1], dpi=110, metadata={"Software": None})
