"""Compute the figures of R's mclust on the paper's data and on the simulations, and store them.

    .venv/bin/python scripts/store_mclust.py

To be run again when the paper's data or the simulations change; needs R with its package mclust
(Debian: apt-get install r-cran-mclust). scripts/store_results.py then puts them into docs/results.md.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from store_results import STORED, write_results

from ewens_widgets.paper.published import ALL

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))
import simulations

VERSION = 'cat(as.character(packageVersion("mclust")))'
CLUSTER = (
    'suppressPackageStartupMessages(library(mclust)); X <- as.matrix(read.csv("data.csv", header=FALSE)); '
    'fit <- Mclust(X, verbose=FALSE); write(fit$classification, "labels.csv", 1)'
)


def main() -> None:
    """Write both files."""
    figures = {}
    for scenario in simulations.SCENARIOS:
        seeds = simulations.SEEDS["held-out"][: simulations.SIMULATED]
        found = {seed: scored(scenario.draw(seed)) for seed in seeds}
        figures[scenario.key] = {
            seed: [round(agreement, 4), count] for seed, (agreement, count) in found.items()
        }
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(values)}" for key, values in figures.items())
    text = f'{{"version": "{in_r(VERSION)}", "figures": {{\n{lines}\n}}}}\n'
    simulations.STORED.write_text(text, encoding="utf-8")
    results = json.loads(STORED.read_text(encoding="utf-8"))
    for key in ALL:
        results["experiments"][key]["mclust"] = on_experiment(key)
    write_results(results)


def on_experiment(key: str) -> dict[str, object]:
    """Mean adjusted Rand index over ten seeds, and the smallest and the largest number of groups."""
    data = map(ALL[key].load, range(10))
    drawn = [simulations.Simulation(each.X, each.labels, ALL[key].n_clusters, np.nan) for each in data]
    agreement, counts = zip(*map(scored, drawn), strict=True)
    return {"adjusted_rand": round(float(np.mean(agreement)), 4), "groups": [min(counts), max(counts)]}


def scored(data: simulations.Simulation) -> tuple[float, int]:
    """Score of mclust, which chooses the number of clusters and their shapes by BIC."""
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(Path(folder) / "data.csv", data.X, delimiter=",", fmt="%.17g")
        in_r(CLUSTER, folder)
        return simulations.score(data, np.loadtxt(Path(folder) / "labels.csv", dtype=np.intp))


def in_r(script: str, folder: str | None = None) -> str:
    """What a script of R's prints."""
    command = ["Rscript", "--vanilla", "-e", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
