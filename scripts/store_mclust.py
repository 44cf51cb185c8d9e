"""Compute mclust's figures with R, and store them for computers without it.

    .venv/bin/python scripts/store_mclust.py

To be run again when the simulations or the paper's data change; needs R with its package mclust.
"""

import json
import sys

from ewens_widgets.paper.published import ALL
from ewens_widgets.paper.reproduction import SIMULATED, known
from ewens_widgets.paper.simulations import SCENARIOS, SEEDS, STORED, Simulation, mclust_score, mclust_version


def main() -> None:
    """Write the file, a line for each kind of data."""
    version = mclust_version()
    if version is None:
        sys.exit("R with its package mclust is needed (Debian: apt-get install r-cran-mclust).")
    figures: dict[str, dict[str, list[float]]] = {}
    for scenario in SCENARIOS:
        seeds = SEEDS["held-out"][:SIMULATED]
        figures[scenario.key] = {
            str(seed): rounded(scenario.key, seed, scenario.draw(seed)) for seed in seeds
        }
    for key, experiment in ALL.items():
        figures[key] = {str(seed): rounded(key, seed, known(experiment, seed)) for seed in range(10)}
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(values)}" for key, values in figures.items())
    STORED.write_text(f'{{"version": "{version}", "figures": {{\n{lines}\n}}}}\n', encoding="utf-8")


def rounded(key: str, seed: int, data: Simulation) -> list[float]:
    """Score of mclust, to four digits."""
    agreement, count = mclust_score(key, seed, data)
    return [round(agreement, 4), count]


if __name__ == "__main__":
    main()
