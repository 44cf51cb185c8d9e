"""Running several chains: all at once, task by task, or from a checkpoint.

joblib runs the tasks: in threads by default, as compiled loops release the interpreter's lock, and wherever
`joblib.parallel_config` says otherwise. Between rounds of tasks the stopping rule is checked.

All tasks of a round in threads share one deadline. A task that begins after it returns at once, so a round
takes a second however many chains there are, and the chain that is furthest behind goes first in the next
one. Tasks in other processes do not see the deadline; each has a second of its own.
"""

import copy
import inspect
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset
from ewens_widgets.sampling.chains.checkpoint import Checkpoint, Plan
from ewens_widgets.sampling.chains.result import Chains, ChainsError, Check, Until
from ewens_widgets.sampling.draws import DrawTable, draw_bytes
from ewens_widgets.sampling.sampler import Sampler, progress_bar
from ewens_widgets.sampling.state import INITIAL, State, first_state
from ewens_widgets.sampling.trace import Trace

Start = str | ArrayLike

_SECONDS = 1.0  # A round: long against its cost, short enough for a progress bar and a checkpoint.
_TASK_BYTES = 64 * 2**20  # Memory that the draws of a task may take.
_OWN_ARGUMENTS = {"self", "X", "initial", "seed"}


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
    n_jobs: int | None = None,
    chunk: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **settings: Any,  # noqa: ANN401 - of many types; Sampler has them
) -> Chains:
    """Run several chains side by side and return their draws.

    The chains start from different partitions and use independent streams of random numbers. The draws depend
    on data, settings and seed alone, not on where and in which order the chains run. They run in threads on
    all cores; `joblib.parallel_config` chooses processes or a cluster instead.

    Interrupted (Ctrl-C, or the stop button of a notebook), the call returns the draws so far, with a warning.

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
        Iterations per draw.
    until
        A stopping rule instead of a number of draws: ``ew.until(rhat=1.01, ess=400)``.
    initial
        None for ``"singletons"``, ``"one-cluster"``, ``"k-means"`` and ``"prior"`` in turn; one start for all
        chains (a name or labels); or a list with one for each.
    seed
        Seed of the run: an integer, a `numpy.random.SeedSequence`, or None for a fresh one.
    n_jobs
        Chains that run at the same time; None for what `joblib.parallel_config` says, or else all cores.
    chunk
        Iterations of a task, rounded up to a whole draw; None for about a second's worth.
    checkpoint
        A folder where draws and states are kept after each task. If the process ends, `resume_chains` or the
        same call goes on from there.
    progress
        Show a progress bar.
    **settings
        Everything else that `Sampler` takes: ``model``, ``concentration``, ``moves``, and so on.

    Raises
    ------
    ChainsError
        When a chain raises an error, a worker dies or a checkpoint cannot be written; its attribute
        ``chains`` has the draws so far.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> data = ew.datasets.unit_square(seed=0)
    >>> chains = ew.sample_chains(data, chains=2, draws=100, burn_in=50, progress=False)
    >>> len(chains), len(chains[0]), len(chains.pooled())
    (2, 100, 200)
    """
    plan = make_plan(data, chains, draws, burn_in, thin, until, initial, seed, settings)
    return _exhaust(Run(plan, n_jobs, chunk, checkpoint), progress)


def resume_chains(
    path: str | os.PathLike[str],
    *,
    draws: int | None = None,
    until: Until | None = None,
    n_jobs: int | None = None,
    chunk: int | None = None,
    progress: bool = True,
) -> Chains:
    """Go on with a run from its checkpoint; the draws are those of an undisturbed run.

    Parameters
    ----------
    path
        The folder that was given to `sample_chains` as its checkpoint.
    draws, until
        Another goal than that of the run, e.g. more draws.
    n_jobs, chunk, progress
        As for `sample_chains`; they need not be the same as before.
    """
    plan = Checkpoint.open(path).plan
    plan.goal = _goal(draws, until, plan.goal)
    return _exhaust(Run(plan, n_jobs, chunk, path), progress)


class Run:
    """A run of several chains, in rounds of tasks.

    Parameters
    ----------
    plan
        What to do.
    n_jobs, chunk, checkpoint
        As for `sample_chains`.
    """

    def __init__(
        self,
        plan: Plan,
        n_jobs: int | None = None,
        chunk: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.plan = plan
        self.chunk = None if chunk is None else check_count("chunk", chunk, 1)
        self.states = list(plan.first)
        self._goal = 0  # Draws of each chain.
        self._checks: list[Check] = []
        self._traces: list[list[Trace]] = [[] for _ in plan.first]
        self._parallel = _parallel(n_jobs)
        self.folder = None if checkpoint is None else str(checkpoint)
        self._checkpoint: Checkpoint | None = None

    @property
    def iterations(self) -> tuple[int, int]:
        """Iterations of all chains so far, and at the end or at the next check of a stopping rule."""
        each = self.plan.burn_in + self._goal * self.plan.thin
        return sum(state.iteration for state in self.states), each * len(self.states)

    def chains(self) -> Chains:
        """The draws so far of all chains."""
        nothing = [DrawTable(self.plan.sampler.posterior).trace()]
        self._traces = [[Trace.concatenate(each or nothing)] for each in self._traces]
        reached = None if isinstance(self.plan.goal, int) else any(check.reached for check in self._checks)
        traces = tuple(trace[: self._goal] for (trace,) in self._traces)
        if isinstance(self.plan.goal, Until) and self.plan.goal.drop_half:
            traces = tuple(trace[len(trace) // 2 :] for trace in traces)
        return Chains(traces, self.plan.starts, reached, tuple(self._checks))

    def stream(self) -> Iterator[Trace]:
        """Run all chains to the goal, yielding the draws of each task as it is done."""
        try:
            if self.folder is not None:
                self._checkpoint = Checkpoint.begin(self.folder, self.plan)
                for pieces in self._checkpoint.read():
                    for number, (trace, state) in pieces.items():
                        self._keep(number, trace, state)
            with self._parallel:
                for goal in self._goals():
                    self._goal = goal
                    while waiting := self._unfinished():
                        try:
                            yield from self._round(waiting)
                        except Exception as fault:
                            raise self._error(fault) from fault
        finally:
            if self._checkpoint is not None:
                self._checkpoint.close()

    def _goals(self) -> Iterator[int]:
        rule = self.plan.goal
        if isinstance(rule, int):
            yield rule
            return
        for draws in rule.counts():
            yield draws
            found = self.chains()
            numbers = found.diagnostics(similarity=False)
            rhat, ess = numbers.worst_rhat, numbers.least_ess
            self._checks.append(Check(found.draws, rhat, ess, rhat <= rule.rhat and ess >= rule.ess))
            if self._checks[-1].reached:
                return

    def _unfinished(self) -> list[int]:
        """Chains that have not reached the goal; the one that is furthest behind comes first."""
        numbers = [n for n, state in enumerate(self.states) if self.plan.kept(state) < self._goal]
        return sorted(numbers, key=lambda number: self.states[number].iteration)

    def _round(self, numbers: Sequence[int]) -> Iterator[Trace]:
        """Advance some chains by one task each."""
        plan, pieces = self.plan, dict[int, tuple[Trace, State]]()
        plan.deadline = time.monotonic() + _SECONDS if self.chunk is None else inf
        shares = [plan.share(self.states[number], self._goal, self.chunk) for number in numbers]
        results = self._parallel(
            delayed(_advance)(plan, number, self.states[number], *share)
            for number, share in zip(numbers, shares, strict=True)
        )

        def take(number: int, state: State, names: Any, columns: Any) -> Iterator[Trace]:  # noqa: ANN401
            if state.iteration > self.states[number].iteration:  # Otherwise it began after the deadline.
                trace = Trace(plan.sampler.posterior, names, columns)
                pieces[number] = trace, state
                self._keep(number, trace, state)
                yield trace

        try:
            for result in results:
                yield from take(*result)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, that not all results are used.
                getattr(results, "close", int)()
            plan.deadline = -inf
            patience = time.monotonic() + 2.0 * _SECONDS
            while plan.running and time.monotonic() < patience:
                time.sleep(0.01)  # Interrupted, threads end after the block that they are in.
            for result in plan.results:
                list(take(*result))
            plan.results.clear()
            if pieces and self._checkpoint is not None:
                self._checkpoint.write(pieces)

    def _keep(self, number: int, trace: Trace, state: State) -> None:
        self._traces[number].append(trace)
        self.states[number] = state

    def _error(self, fault: Exception) -> ChainsError:
        goes_on = ", with checkpoint=... to go on from where it stopped."
        if self.folder is not None:
            goes_on = f": ew.resume_chains({self.folder!r}) goes on from where it stopped."
        return ChainsError(
            f"the chains could not be finished ({type(fault).__name__}: {fault}). The draws so far are in "
            f"the attribute .chains of this error. Correct the cause and run it again{goes_on}",
            self.chains(),
        )


def _advance(plan: Plan, number: int, state: State, burn_in: int, draws: int) -> tuple[Any, ...]:
    """Advance a chain until its share is done or the time is over; return its number, state and draws.

    The draws come without their posterior, which would be the largest part of what a process sends back.
    """
    shared, own_deadline = plan.deadline is not None, time.monotonic() + _SECONDS

    def go_on() -> bool:
        return time.monotonic() < (own_deadline if plan.deadline is None else plan.deadline)

    plan.running.add(number)
    try:
        sampler = plan.sampler_at(number, state)
        recorder = DrawTable(sampler.posterior, sampler.move_names)
        most = max(1, _TASK_BYTES // draw_bytes(sampler.posterior))
        try:
            sampler.extend(recorder, min(draws, most), burn_in, plan.thin, go_on=go_on)
        finally:
            trace = recorder.trace()
            result = number, sampler.state, trace.move_names, trace.columns()
            if shared:
                plan.results.append(result)  # Kept even if an interrupt or an error comes now.
    except Exception as fault:
        raise RuntimeError(f"chain {number} raised {type(fault).__name__}: {fault}") from fault
    finally:
        plan.running.discard(number)
    return result


def _parallel(n_jobs: int | None) -> Parallel:
    """Make joblib's engine, as the user has configured it; threads on all cores by default."""
    backend, configured = get_active_backend()
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        n_jobs = 1  # A browser starts no threads; a single job runs in the thread that asks for it.
    if n_jobs is None:
        # A worker of joblib that runs chains has its neighbours on the other cores.
        n_jobs = configured if configured is not None else 1 if backend.nesting_level else -1
    return Parallel(
        n_jobs=n_jobs,
        prefer="threads",
        # Not all backends know the other way.
        return_as="generator_unordered" if backend.supports_return_generator else "list",
        pre_dispatch="all",
        batch_size=1,
    )


def _exhaust(run: Run, progress: bool) -> Chains:
    with progress_bar(disable=not progress, desc=f"{len(run.states)} chains") as bar:
        try:
            for _ in run.stream():
                done, bar.total = run.iterations
                bar.update(done - bar.n)
        except KeyboardInterrupt:
            found = run.chains()
            if not any(len(trace) for trace in found):
                raise
            counts = [len(trace) for trace in found]
            told = f"interrupted after {min(counts)} to {max(counts)} draws of each chain, which are returned"
            goes_on = f"; ew.resume_chains({run.folder!r}) goes on" if run.folder else ""
            warnings.warn(f"{told}{goes_on}.", stacklevel=3)
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


def make_plan(
    data: ArrayLike | Dataset,
    chains: int,
    draws: int | None,
    burn_in: int,
    thin: int,
    until: Until | None,
    initial: Start | Sequence[Start] | None,
    seed: int | np.random.SeedSequence | None,
    settings: Mapping[str, Any],
) -> Plan:
    """Check all arguments and find the state that each chain starts from.

    Starts are made here, not by the workers: k-means adds up in another order on another number of threads.
    """
    count = check_count("chains", chains, 1)
    goal = _goal(draws, until, 1000)
    burn_in, thin = check_count("burn_in", burn_in, 0), check_count("thin", thin, 1)
    known = set(inspect.signature(Sampler.__init__).parameters) - _OWN_ARGUMENTS
    if unknown := sorted(set(settings) - known):
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; besides its own arguments sample_chains takes "
            f"those of Sampler: {', '.join(sorted(known))}."
        )
    # One sampler checks data and settings for all.
    sampler = Sampler(data, **settings, initial="one-cluster")
    posterior = sampler.posterior
    starts = chain_starts(initial, count, posterior.prior.most_clusters >= posterior.n_objects)
    generators = [np.random.Generator(np.random.PCG64(each)) for each in chain_seeds(seed, count)]
    pairs = zip(starts, generators, strict=True)
    first = tuple(first_state(posterior, start, generator) for start, generator in pairs)
    return Plan(sampler, first, tuple(map(start_name, starts)), burn_in, thin, goal)


def _goal(draws: int | None, until: Until | None, default: int | Until) -> int | Until:
    """A number of draws or a stopping rule, whichever is given."""
    if until is None:
        return default if draws is None else check_count("draws", draws, 1)
    if draws is not None:
        raise ValueError(
            "draws and until exclude each other; to bound a stopping rule, use until(..., most=draws)."
        )
    if not isinstance(until, Until):
        raise TypeError(f"until must be a rule such as ew.until(rhat=1.01, ess=400); got {until!r}.")
    return until


def chain_starts(
    initial: Start | Sequence[Start] | None, chains: int, allows_singletons: bool = True
) -> list[Start]:
    """The initial partition of each chain, by name or as labels: different ones where `initial` is None.

    Chains that begin alike may agree without having seen the posterior. A prior that does not allow as many
    clusters as there are objects rules singletons out.
    """
    if initial is None:
        possible = [name for name in INITIAL if allows_singletons or name != "singletons"]
        return [possible[number % len(possible)] for number in range(chains)]
    given: Any = initial  # One start, which may be a sequence of labels, or a list of starts.
    if isinstance(given, np.ndarray):
        is_list = given.ndim == 2
    else:
        is_list = isinstance(given, list | tuple) and any(
            isinstance(e, str) or np.ndim(e) == 1 for e in given
        )
    starts: list[Start] = list(given) if is_list else [given] * chains
    if len(starts) != chains:
        raise ValueError(
            f"initial lists {len(starts)} starts for {chains} chains; give one for each, a single one for "
            "all, or None for dispersed ones."
        )
    return starts


def chain_seeds(seed: int | np.random.SeedSequence | None, chains: int) -> list[np.random.SeedSequence]:
    """Seeds of independent streams, one per chain; a seed sequence that is given stays as it is."""
    if isinstance(seed, np.random.SeedSequence):
        # Spawning counts the children in the parent: from a copy, the same call gives the same seeds again.
        return copy.copy(seed).spawn(chains)
    return np.random.SeedSequence(seed).spawn(chains)


def start_name(start: Start) -> str:
    """What to call a start."""
    return start if isinstance(start, str) else "labels"
