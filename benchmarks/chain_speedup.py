"""How much faster several chains, and a fit, are on several cores.

Run ``python benchmarks/chain_speedup.py`` on an otherwise idle machine: four chains of 5000 iterations on
wine, and `AffineClustering().fit` on wine, in one thread, in threads and in processes. Compiled code is
loaded before; the processes are started before, as they stay for the next call.
"""

import argparse
import os
import time
from collections.abc import Callable

from joblib import parallel_config

import ewens_widgets as ew

WANTED = 0.6  # Time of a fit in threads on two cores, relative to one.


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=5000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    wine = ew.datasets.wine()

    def sample(iterations: int = options.iterations) -> object:
        return ew.sample_chains(wine, chains=options.chains, draws=iterations, burn_in=0, progress=False)

    def fit() -> object:
        return ew.AffineClustering(n_chains=options.chains, random_state=0).fit(wine.X)

    places = {
        "one thread": {"backend": "threading", "n_jobs": 1},
        f"{options.workers} threads": {"backend": "threading", "n_jobs": options.workers},
        f"{options.workers} processes": {"backend": "loky", "n_jobs": options.workers},
    }
    work = {f"{options.chains} chains of {options.iterations} iterations": sample, "fit": fit}
    for place in places.values():
        with parallel_config(**place):
            sample(10)
            fit()
    print(f"Wine, {os.cpu_count()} cores\n\n| | | seconds | relative |\n|---|---|---|---|")
    for task, function in work.items():
        best = dict.fromkeys(places, float("inf"))
        # In turns, so that a machine that gets slower or faster does so for all; the best of each.
        for _ in range(options.repeats):
            for name, place in places.items():
                with parallel_config(**place):
                    best[name] = min(best[name], seconds(function))
        for name, time_taken in best.items():
            print(f"| {task} | {name} | {time_taken:.2f} | {time_taken / best['one thread']:.2f} |")
    print(f"\nWanted of a fit in {options.workers} threads: at most {WANTED}.")


if __name__ == "__main__":
    main()
