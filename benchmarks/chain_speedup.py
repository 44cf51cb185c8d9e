"""How much faster several chains are on several processes than one after another.

Run ``python benchmarks/chain_speedup.py`` on an otherwise idle machine: four chains of 5000 iterations on
wine, in this process, on local processes and on threads. Compiled code is loaded before; starting the
processes is timed apart, as they stay for the next call.
"""

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import ewens_widgets as ew
from ewens_widgets.sampling.chains.workers import ExecutorLike, InSequence, LocalProcesses

WANTED = 1.7


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
    processes = LocalProcesses(options.workers)

    class Processes:
        """The local processes as an executor, with the wanted number of them."""

        submit = staticmethod(processes.submit)

    def run(executor: ExecutorLike, iterations: int = options.iterations) -> ew.Chains:
        return ew.sample_chains(
            wine, chains=options.chains, draws=iterations, burn_in=0, executor=executor, progress=False
        )

    run(InSequence(), 10)
    start_up = seconds(partial(run, Processes(), 10))
    executors: dict[str, ExecutorLike] = {
        "one after another, in this process": InSequence(),
        f"on {options.workers} processes": Processes(),
        f"on {options.workers} threads": ThreadPoolExecutor(options.workers),
    }
    # In turns, so that a machine that gets slower or faster does so for all; the best of each.
    rounds = [
        [seconds(partial(run, executor)) for executor in executors.values()] for _ in range(options.repeats)
    ]
    best = [min(times) for times in zip(*rounds, strict=True)]
    print(f"{options.chains} chains of {options.iterations} iterations on wine, {os.cpu_count()} cores\n")
    print("| | seconds | speed-up |\n|---|---|---|")
    for name, time_taken in zip(executors, best, strict=True):
        print(f"| {name} | {time_taken:.2f} | {best[0] / time_taken:.2f} |")
    print(f"\nStarting the processes, once: {start_up:.2f} s. Wanted speed-up on processes: {WANTED}.")


if __name__ == "__main__":
    main()
