#!/usr/bin/env python3
"""Write the handout for a class, one printed page: formulas, words, and how to read the pictures.

scripts/handout.py [FILE]      default: artefacts/handout.pdf
"""

import re
import sys
import textwrap
from pathlib import Path

import numpy as np
from check_lessons import GLOSSARY, REPOSITORY
from matplotlib.figure import Figure

import ewens_widgets as ew

FORMULAS = [
    ("Ewens prior", r"$p(B) = \frac{\Gamma(\lambda)}{\Gamma(n+\lambda)}\,\lambda^{K}\,\prod_b\,\Gamma(n_b)$"),
    ("Covariance", r"$Y \sim N(0,\ \Gamma\otimes\Sigma),\quad \Gamma = I+\theta B$"),
    ("Sums", r"$M = Y^T Y - \sum_b \frac{\theta}{1+\theta n_b}\, s_b s_b^T$"),
    ("Model I", r"$-\frac{d}{2}\log\det\Gamma - \frac{nd}{2}\,\log\,\mathrm{tr}\,M$"),
    ("Model II", r"$-\frac{d}{2}\log\det\Gamma - \frac{n}{2}\sum_r\log M_{rr}$"),
    ("Model III", r"$-\frac{d}{2}\log\det\Gamma - \frac{n}{2}\log\det M$"),
    ("Posterior", r"$p(B,\theta\,|\,Y)\ \propto\ p(\theta)\,p(B)\,L(B,\theta)$"),
    ("Acceptance", r"$r = \frac{\pi(B^*)}{\pi(B)}\cdot\frac{q(B\,|\,B^*)}{q(B^*\,|\,B)}$"),
    ("Similarity", r"$S_{ij} = $ share of draws with $i, j$ together,  $D = 1 - S$"),
]
WORDS = [
    "partition",
    "prior",
    "likelihood",
    "posterior",
    "Markov chain",
    "burn-in",
    "R-hat",
    "invariant to",
    "total variation",
    "nat",
]
ADVICE = """Trust a run if several chains agree (R-hat at most 1.05), the effective sample size is at least
100, and the report finds no misfit. Report the similarity, not only K."""
A4 = (8.27, 11.69)


def meanings() -> dict[str, str]:
    """What the glossary says about the words of the handout."""
    row = re.compile(r"^\| \*\*(.+?)\*\*.* \| (.+?) \| \d\d \|$", re.MULTILINE)
    rows = row.findall(GLOSSARY.read_text(encoding="utf-8"))
    return {name: meaning for name, meaning in rows if name in WORDS}


def write(target: Path) -> None:
    """Draw the page."""
    ew.plots.use_style()
    page = Figure(figsize=A4)
    page.text(0.07, 0.955, "Bayesian clustering on one page", fontsize=17, weight="bold")
    symbols = "n objects, d features, K clusters; λ concentration, θ variance ratio, Σ covariance"
    page.text(0.07, 0.935, symbols, fontsize=9)
    for place, (name, formula) in enumerate(FORMULAS):
        page.text(0.07, 0.9 - 0.036 * place, name, fontsize=10, weight="bold")
        page.text(0.22, 0.9 - 0.036 * place, formula, fontsize=12)
    height = 0.565
    for name, meaning in meanings().items():
        lines = textwrap.wrap(meaning, 92)
        page.text(0.07, height, name, fontsize=9.5, weight="bold", va="top")
        page.text(0.22, height, "\n".join(lines), fontsize=9, va="top")
        height -= 0.0145 * len(lines) + 0.008
    data = ew.datasets.unit_square(seed=0)
    exact = ew.exact_posterior(data.X[[0, 1, 2, 60, 61, 62]], model="I")
    left, right = page.add_axes((0.1, 0.08, 0.33, 0.2)), page.add_axes((0.56, 0.08, 0.3, 0.2))
    ew.plots.plot_scatter(data, ax=left)
    left.get_legend().remove()
    left.set(title="Clusters: a colour each, grey is alone", xlabel="", ylabel="")
    right.imshow(1 - exact.similarity(), vmin=0, vmax=1)
    right.set_title("Distance D: black is together, white is apart")
    right.set(xticks=np.arange(6), yticks=np.arange(6), xticklabels=range(1, 7), yticklabels=range(1, 7))
    page.text(0.07, 0.035, ADVICE, fontsize=9)
    target.parent.mkdir(parents=True, exist_ok=True)
    page.savefig(target)


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "artefacts" / "handout.pdf"
    write(chosen)
    print(chosen)
