"""Running several chains: all at once, chunk by chunk, or from a checkpoint."""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ewens_widgets.arguments import check_count, check_positive
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.chains.checkpoint import Checkpoint
from ewens_widgets.sampling.chains.plan import Plan, Start, Until, check_goal, make_plan
from ewens_widgets.sampling.chains.result import Chains
from ewens_widgets.sampling.chains.run import Chunk, Run
from ewens_widgets.sampling.chains.workers import ExecutorLike, open_workers
from ewens_widgets.sampling.sampler import progress_bar

__all__ = ["resume_chains", "sample_chains", "stream_chains"]


def sample_chains(
    data: ArrayLike | Dataset,
    *,
    chains: int = 4,
    draws: int | None = None,
    burn_in: int = 500,
    thin: int = 1,
    until: Until | None = None,
    initial: Start | Sequence[Start] | None = None,
    seed: int | np.random.SeedSequence | None = 0,
    executor: ExecutorLike | None = None,
    chunk: int | None = None,
    timeout: float | None = None,
    tries: int = 3,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **settings: Any,  # noqa: ANN401 - of many types; Sampler has them
) -> Chains:
    """Run several chains side by side and return their draws.

    The chains start from different partitions and use independent streams of random numbers. The draws depend
    on data, settings and seed alone: not on the executor, the size of the chunks, or the order in which these
    come back.

    A chunk whose worker dies is run again. Interrupted (Ctrl-C, or the stop button of a notebook), the call
    returns the draws so far, with a warning.

    Parameters
    ----------
    data
        Data, n objects by d features, or a `Dataset`.
    chains
        Number of chains.
    draws
        Draws to keep of each chain; 1000 by default.
    burn_in
        Iterations of each chain before its first draw.
    thin
        Iterations for each draw.
    until
        A stopping rule instead of a number of draws: ``ew.until(rhat=1.01, ess=400)``.
    initial
        None for ``"singletons"``, ``"one-cluster"``, ``"k-means"`` and ``"prior"`` in turn; one start for all
        chains (a name or labels); or a list with one for each.
    seed
        Seed of the run: an integer, a `numpy.random.SeedSequence`, or None for a fresh one.
    executor
        Where to run: any `concurrent.futures.Executor`, such as Dask's ``Client().get_executor()``. None uses
        processes on this machine, as many as there are cores or chains.
    chunk
        Iterations of a task, rounded up to a whole draw; None for about a second's worth.
    timeout
        Seconds after which a chunk is given up and run again. Waiting for a free worker does not count,
        starting one does.
    tries
        How often a chunk is run at most before the chain is given up.
    checkpoint
        A folder where draws and states are kept after each chunk. If the process ends, `resume_chains` or the
        same call goes on from there.
    progress
        Show a progress bar.
    **settings
        Everything else that `Sampler` takes: ``model``, ``concentration``, ``moves``, and so on.

    Raises
    ------
    ChainsError
        When a chain could not be finished; its attribute ``chains`` has the draws of the others.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import ewens_widgets as ew
    >>> data = ew.datasets.unit_square(seed=0)
    >>> chains = ew.sample_chains(
    ...     data, chains=2, draws=100, burn_in=50, executor=ThreadPoolExecutor(2), progress=False
    ... )
    >>> len(chains), len(chains[0]), len(chains.pooled())
    (2, 100, 200)
    """
    plan = make_plan(data, chains, draws, burn_in, thin, until, initial, seed, settings)
    return _exhaust(_open_run(plan, executor, chunk, timeout, tries, checkpoint), progress)


def stream_chains(
    data: ArrayLike | Dataset,
    *,
    chains: int = 4,
    draws: int | None = None,
    burn_in: int = 500,
    thin: int = 1,
    until: Until | None = None,
    initial: Start | Sequence[Start] | None = None,
    seed: int | np.random.SeedSequence | None = 0,
    executor: ExecutorLike | None = None,
    chunk: int | None = None,
    timeout: float | None = None,
    tries: int = 3,
    checkpoint: str | os.PathLike[str] | None = None,
    **settings: Any,  # noqa: ANN401 - of many types; Sampler has them
) -> Iterator[Chunk]:
    """Run several chains as `sample_chains` does, and yield each chunk as soon as it is done.

    The order of the chunks of different chains is not fixed; those of one chain come in order. Closing the
    generator ends the run. Chunks that a checkpoint has from an earlier call are not yielded again.

    Parameters
    ----------
    data, chains, draws, burn_in, thin, until, initial, seed, executor, chunk, timeout, tries, checkpoint
        As for `sample_chains`.
    **settings
        Everything else that `Sampler` takes.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import ewens_widgets as ew
    >>> data = ew.datasets.unit_square(seed=0)
    >>> stream = ew.stream_chains(
    ...     data, chains=1, draws=100, burn_in=0, chunk=50, executor=ThreadPoolExecutor(1)
    ... )
    >>> [(piece.chain, piece.iteration, piece.kept, piece.wanted) for piece in stream]
    [(0, 50, 50, 100), (0, 100, 100, 100)]
    """
    plan = make_plan(data, chains, draws, burn_in, thin, until, initial, seed, settings)
    return _open_run(plan, executor, chunk, timeout, tries, checkpoint).stream()


def resume_chains(
    path: str | os.PathLike[str],
    *,
    draws: int | None = None,
    until: Until | None = None,
    executor: ExecutorLike | None = None,
    chunk: int | None = None,
    timeout: float | None = None,
    tries: int = 3,
    progress: bool = True,
) -> Chains:
    """Go on with a run from its checkpoint; the draws are those of a run that was never disturbed.

    Parameters
    ----------
    path
        The folder that was given to `sample_chains` as its checkpoint.
    draws, until
        Another goal than that of the run, e.g. more draws.
    executor, chunk, timeout, tries, progress
        As for `sample_chains`; they need not be the same as before.
    """
    found = Checkpoint.open(path).plan
    plan = found.towards(check_goal(draws, until, found.goal))
    return _exhaust(_open_run(plan, executor, chunk, timeout, tries, path), progress)


def _open_run(
    plan: Plan,
    executor: ExecutorLike | None,
    chunk: int | None,
    timeout: float | None,
    tries: int,
    checkpoint: str | os.PathLike[str] | None,
) -> Run:
    size = None if chunk is None else check_count("chunk", chunk, 1)
    seconds = None if timeout is None else check_positive("timeout", timeout)
    most = check_count("tries", tries, 1)
    kept = None if checkpoint is None else Checkpoint.begin(checkpoint, plan)
    workers = open_workers(executor, len(plan.first), seconds)
    return Run(plan, workers, chunk=size, timeout=seconds, tries=most, checkpoint=kept)


def _exhaust(run: Run, progress: bool) -> Chains:
    with progress_bar(disable=not progress, desc=f"{len(run.courses)} chains") as bar:
        try:
            for chunk in run.stream():
                bar.total = len(run.courses) * (run.plan.burn_in + chunk.wanted * run.plan.thin)
                bar.update(run.iterations - bar.n)
        except KeyboardInterrupt:
            found = run.chains()
            if not any(len(trace) for trace in found):
                raise
            warnings.warn(_interrupted(run, found), stacklevel=3)
            return found
    found = run.chains()
    if found.reached is False:
        last = found.checks[-1]
        warnings.warn(
            f"the stopping rule was not met by {last.draws} draws of each chain: R-hat {last.rhat:.3f}, "
            f"effective sample size {last.ess:.0f}. Allow more with until(..., most=...), or look at "
            "chains.report().",
            stacklevel=3,
        )
    return found


def _interrupted(run: Run, found: Chains) -> str:
    counts = [len(trace) for trace in found]
    told = f"interrupted after {min(counts)} to {max(counts)} draws of each chain, which are returned"
    if run.checkpoint is None:
        return f"{told}."
    return f"{told}; ew.resume_chains({str(run.checkpoint.path)!r}) goes on."
