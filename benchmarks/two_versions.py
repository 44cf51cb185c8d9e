"""How fast this version is beside another one, measured alternately in one run.

    .venv/bin/python benchmarks/two_versions.py OTHER_CHECKOUT

Each version is run in processes of its own, one after the other, several rounds; the best rate of each
counts. A change that should cost nothing has ratios near 1. Both must have the packages of this environment.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROUNDS = 4
# Data, model, schedule, iterations.
FIGURES = {
    "Gibbs sweeps, wine, I": ("wine", "I", ["gibbs"], 4_000),
    "Gibbs sweeps, wine, II": ("wine", "II", ["gibbs"], 4_000),
    "Gibbs sweeps, wine, III": ("wine", "III", ["gibbs"], 2_000),
    "paper-1, unit square, I": ("unit_square", "I", "paper-1", 400_000),
    "paper-2, unit square, I": ("unit_square", "I", "paper-2", 200_000),
    "paper-2, wine, II": ("wine", "II", "paper-2", 200_000),
    "default schedule, wine, II": ("wine", "II", "default", 3_000),
    "default schedule, wine, III": ("wine", "III", "default", 1_500),
    "default schedule, wine, III, own shapes": ("wine", "III", "default", 800),
    "events, default schedule, wine, II": ("wine", "II", "default", 3_000),
    "events, paper-2, wine, II": ("wine", "II", "paper-2", 100_000),
}


def measure() -> dict[str, float]:
    """Iterations a second of everything, of the version that is imported: the best of three runs."""
    import ewens_widgets as ew

    rates = {}
    for name, (data, model, moves, iterations) in FIGURES.items():
        own = {"shapes": "own", "prior": ew.priors.FiniteMixture()} if name.endswith("own shapes") else {}
        sampler = ew.Sampler(getattr(ew.datasets, data)(), model=model, moves=moves, **own, seed=0)
        sampler.sample(1, burn_in=iterations // 2, progress=False)
        best = 0.0
        for _ in range(3):
            start = time.process_time()
            if name.startswith("events"):
                for _event in sampler.events(iterations):
                    pass
            else:
                sampler.sample(1, burn_in=iterations - 1, progress=False)
            best = max(best, iterations / (time.process_time() - start))
        rates[name] = best
    return rates


def measured_in(checkout: Path) -> dict[str, float]:
    """What a fresh process that imports the package from a checkout measures."""
    result = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, __file__, "--measure"],
        env={**os.environ, "PYTHONPATH": str(checkout), "EWENS_WIDGETS_WAIT": "1"},
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout)
    assert Path(found.pop("package")).parent.parent.samefile(checkout), "another version was imported"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=Path, help="a checkout of the other version")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        import ewens_widgets

        print(json.dumps({"package": ewens_widgets.__file__, **measure()}))
        return
    if options.other is None:
        parser.error("name a checkout of the other version")
    rounds = [(measured_in(options.other.resolve()), measured_in(HERE)) for _ in range(ROUNDS)]
    print("| iterations a second of processor time | other | this | this over other |\n|---|---|---|---|")
    for name in FIGURES:
        other, this = max(pair[0][name] for pair in rounds), max(pair[1][name] for pair in rounds)
        print(f"| {name} | {other:,.0f} | {this:,.0f} | {this / other:.3f} |")


if __name__ == "__main__":
    main()
