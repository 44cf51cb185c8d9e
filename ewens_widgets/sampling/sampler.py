"""The sampler: a Markov chain over partitions, run in blocks that are sequences of events.

The sampler puts together what the rest of this folder does: it checks its arguments, starts the chain
(`state`), has the driver run compiled blocks (`driver`), and gives them out as a `DrawTable`, as one event
after another, or as a `Trace`. The chain is the same in all three cases: one iteration draws θ (and λ, if it
has a prior) from its exact conditional and then makes the moves of the schedule, and all randomness comes
from the one generator in the state.

A block happens as a whole or not at all. Compiled code cannot be interrupted, so a signal that arrives
meanwhile is raised after it, when the chain has moved on; then the chain is taken back to where it was.

Where there is no machine code yet, the chain runs interpreted until it has been compiled in the background
(`compiled`): the draws are the same.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.arguments import check_count, check_fits
from ewens_widgets.datasets import Dataset
from ewens_widgets.datasets.kinds import Kinds
from ewens_widgets.model.checks import FloatArray, check_data
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors.ewens import Concentration
from ewens_widgets.model.priors.partition_prior import PartitionPrior
from ewens_widgets.partition import canonical_labels
from ewens_widgets.sampling import draws as tables
from ewens_widgets.sampling.archive import read_archive, refused, write_archive
from ewens_widgets.sampling.draws import DrawTable, Event, StepReport
from ewens_widgets.sampling.driver import Driver
from ewens_widgets.sampling.kernel.workspace import ACCEPTED, LOG_RATIO, PROPOSED, Outcome
from ewens_widgets.sampling.moves.move import PRINTED, pair_distances
from ewens_widgets.sampling.moves.schedule import Repeated, resolve_schedule
from ewens_widgets.sampling.state import State, first_state, pack_sampler, unpack_sampler
from ewens_widgets.sampling.trace import Trace

METRICS = ("canonical", "euclidean")
ACCEPTANCES = ("metropolis-hastings", "as-printed")
# Wanted time of a block: long enough to make calls cheap, short enough for an interrupt or a progress bar.
_WATCHED_SECONDS, _UNWATCHED_SECONDS = 0.02, 0.05
_RECORD_BYTES = 32 * 2**20  # Memory that the records of a block may take.
_KIND = "sampler"
_INTERPRETED = "compiling in the background; interpreted until then"
_WAITING = "compiling, once for all later runs"
_SLOW_SWEEP = 10**9  # Objects × clusters: from about here on a sweep takes longer than one likes to wait.


class Sampler:
    """Markov chain over the partitions of the rows of `X`.

    Parameters
    ----------
    X
        Data, n objects by d features, or a `Dataset`.
    model
        Covariance model: ``"I"``, ``"II"`` or ``"III"``.
    concentration
        Concentration λ of the Ewens prior, or ``Gamma(shape, rate)``: then it is sampled too.
    alpha
        Shape of the prior of the variance ratio θ.
    theta_grid
        Values of θ; powers of two from 1/8 to 1024 by default.
    moves
        ``"default"``, ``"paper-1"``, ``"paper-2"``, or a list of moves, each alone or in a pair with its
        repeats.
    initial
        ``"singletons"``, ``"one-cluster"``, ``"k-means"``, ``"prior"``, ``"mixture"`` (Gaussians with one
        covariance, for many columns), or labels. By default singletons, as in the paper; for own shapes, or
        priors other than Ewens', one cluster.
    metric
        Distances of the paper's split-merge move: in ``"canonical"`` coordinates, invariant like the model,
        or ``"euclidean"`` in the units of `X`.
    acceptance
        ``"metropolis-hastings"``, or ``"as-printed"``: the paper's printed ratio, which is wrong, for
        teaching.
    seed
        Seed of the chain: an integer, a `numpy.random.SeedSequence`, or None for a fresh one.
    shapes
        ``"common"``: all clusters have one covariance, as in the paper; ``"own"``: each has its own, pooled
        towards a common one.
    prior
        Prior on partitions from `ew.priors`, instead of a concentration, which is short for
        ``Ewens(concentration)``.
    nu_grid
        Values of the pooling ν of own shapes; powers of two from 2 to 256 by default.
    centre
        ``"mean"``: the centre of the data is treated as known, as in the paper; ``"unknown"``: it is drawn,
        so that the likelihood is that of the data up to the model's transformations.
    theta_prior
        Masses of θ on its grid: ``"as-printed"``, the density of the symmetric F distribution there, as
        in the paper; ``"symmetric-F"``: that density times the width of a step.
    kinds
        What each column is: "auto" proposes numbers and categories, with reasons; "numeric" takes all columns
        for numbers; or kinds by name, ``{"sex": "category"}``. With any of these, model III leaves out
        directions that are rounding. None: the kinds of the `Dataset`, if it has any; else numbers as they
        stand. See `docs/tables.md`.

    Examples
    --------
    >>> import ewens_widgets as ew
    >>> sampler = ew.Sampler(ew.datasets.unit_square(seed=0), model="I", seed=1)
    >>> trace = sampler.sample(draws=200, burn_in=100, progress=False)
    >>> len(trace), sampler.iteration
    (200, 300)
    """

    _pending: tuple[State, int] | None  # state before the last block, and how much of it has been given out

    def __init__(
        self,
        X: ArrayLike | Dataset,
        *,
        model: str = "II",
        concentration: Concentration = 1.0,
        alpha: float = 1.0,
        theta_grid: ArrayLike | None = None,
        moves: str | Sequence[Any] = "default",
        initial: str | ArrayLike | None = None,
        metric: str = "canonical",
        acceptance: str = "metropolis-hastings",
        seed: int | np.random.SeedSequence | None = 0,
        shapes: str = "common",
        prior: PartitionPrior | None = None,
        nu_grid: ArrayLike | None = None,
        centre: str = "mean",
        theta_prior: str = "as-printed",
        kinds: Kinds = None,
    ) -> None:
        settings: dict[str, Any] = {"prior": prior, "shapes": shapes, "nu_grid": nu_grid, "centre": centre}
        settings |= {"theta_prior": theta_prior, "kinds": kinds}
        posterior = Posterior.from_data(X, model, concentration, alpha, theta_grid, **settings)
        schedule = resolve_schedule(moves, posterior.shapes)
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}.")
        # A copy: the user's array may change, the chain's must not.
        raw = np.array(posterior.numbers_of(check_data(X, finite=False))) if metric == "euclidean" else None
        if raw is not None:  # Distances are fixed: those of missing cells are from the mean.
            raw = np.where(np.isnan(raw), np.nanmean(raw, axis=0), raw)
        generator = np.random.Generator(np.random.PCG64(seed))
        first = first_state(posterior, initial, generator)
        n_clusters = int(first.labels.max()) + 1
        is_slow = posterior.n_objects * n_clusters > _SLOW_SWEEP
        if is_slow and any(entry.move.is_sweep for entry in schedule):
            warnings.warn(
                f"starting from {n_clusters} clusters, the first sweeps compare each object with "
                "all of them, which takes long and cannot be interrupted; use "
                'initial="k-means".',
                stacklevel=2,
            )
        self._assemble(posterior, schedule, raw, acceptance, first, first)

    @classmethod
    def from_parts(
        cls,
        posterior: Posterior,
        schedule: tuple[Repeated, ...],
        raw: FloatArray | None,
        acceptance: str,
        *,
        first: State,
        current: State,
        warn: bool = True,
    ) -> "Sampler":
        """Put a sampler together from what a file or another process holds."""
        sampler = cls.__new__(cls)
        sampler._assemble(  # noqa: SLF001 - a constructor of the class itself
            posterior, schedule, raw, acceptance, first, current, warn=warn
        )
        return sampler

    def __repr__(self) -> str:
        """Tell data, model, schedule and iteration."""
        moves = " + ".join(f"{entry.repeats} × {entry.move.name}" for entry in self.schedule)
        return (
            f"Sampler({self.posterior.n_objects} objects × {self.posterior.n_features} features, "
            f'model "{self.posterior.model}", {moves}, iteration {self.iteration})'
        )

    @property
    def move_names(self) -> tuple[str, ...]:
        """Names of the moves of an iteration, in order; they say if the printed ratio decides."""
        printed = self.acceptance == "as-printed"
        moves = (entry.move for entry in self.schedule)
        return tuple(f"{m.name}{PRINTED if printed and m.has_printed_ratio else ''}" for m in moves)

    @property
    def metric(self) -> str:
        """Distances that the paper's split-merge move uses."""
        return "canonical" if self.raw_data is None else "euclidean"

    @property
    def compilation(self) -> str:
        """What there is to say about the compiler, for a status line; empty where the chain is compiled."""
        if self._driver.is_compiled:
            return ""
        return _INTERPRETED if self._driver.may_interpret else _WAITING

    @property
    def state(self) -> State:
        """The state after the last event that was given out."""
        self._stand_at_last_event()
        return self._driver.state()

    @property
    def iteration(self) -> int:
        """Number of iterations done, as far as they have been given out."""
        if self._pending is None:
            return self._driver.iteration
        before, given = self._pending
        return before.iteration + given

    @property
    def labels(self) -> NDArray[np.intp]:
        """Canonical labels of the current partition."""
        return canonical_labels(self.state.labels)

    def advance(self, n: int, thin: int = 1, report: bool | None = None) -> DrawTable:
        """Run the chain on and return the block of its next `n` records; interrupted, nothing has happened.

        Parameters
        ----------
        n
            Number of records.
        thin
            Iterations for each.
        report
            Also tell what the last iteration proposed and decided, where the schedule is a single Metropolis
            move. By default where one iteration is run.
        """
        rows, thin = check_count("the number of iterations", n, 1), check_count("thin", thin, 1)
        self._stand_at_last_event()
        return self._run(rows, thin, rows * thin == 1 if report is None else report)

    def prepare(self) -> bool:
        """Have the chain compiled in the background if need be; say whether it can be run now.

        It cannot while it is being compiled and an iteration would take more than about half a second
        interpreted. A block that is asked for all the same waits.
        """
        return self._driver.prepare()

    def compile(self, progress: bool = True) -> None:
        """Wait until the chain is compiled, which takes half a minute the first time on a machine.

        Without this, the chain runs interpreted until then, and the draws are the same.

        Parameters
        ----------
        progress
            Show a progress bar while there is something to wait for.
        """
        self._driver.prepare()
        if not self._driver.is_compiled:
            self._wait(lambda: self._driver.is_compiled, progress)

    def events(self, n: int | None = None, block: int | None = None) -> Iterator[Event]:
        """Run the chain and yield an event for each of the next `n` iterations (None: without end).

        The generator may be closed, or the sampler used otherwise, at any time: the sampler stands where
        the last event said.

        Parameters
        ----------
        n
            Number of iterations.
        block
            Iterations to run in one go; by default blocks grow to about 20 ms. With 1, the events of a
            schedule of a single Metropolis move also tell the proposal, the decision and the log ratio.
        """
        n = None if n is None else check_count("the number of iterations", n, 0)
        block = None if block is None else check_count("the block", block, 1)
        sizer = tables.BlockSizer(self._largest_block())
        done = 0
        while n is None or done < n:
            rows = block or sizer.size(_WATCHED_SECONDS)
            rows = rows if n is None else min(rows, n - done)
            self._stand_at_last_event()
            before, started = self._driver.state(), time.perf_counter()
            events = self._run(rows, report=block == 1)
            self._block += 1
            self._pending = (before, 0)
            sizer.measured(rows, time.perf_counter() - started)
            number = self._block
            for given, event in enumerate(events, start=1):
                self._pending = (self._pending[0], given) if self._pending and given < rows else None
                done += 1
                yield event
                if self._block != number:
                    break  # Somebody else used the sampler; go on from where it stands now.

    def sample(self, draws: int = 1000, burn_in: int = 0, thin: int = 1, progress: bool = True) -> Trace:
        """Run the chain and return its draws.

        Interrupted (Ctrl-C, or the stop button of a notebook), it returns the draws so far, with a warning;
        the chain can be continued.

        Parameters
        ----------
        draws
            Number of draws to keep.
        burn_in
            Iterations to run before the first, which are not kept.
        thin
            Iterations for each draw.
        progress
            Show a progress bar.
        """
        recorder = self.recorder(draws)
        try:
            self.extend(recorder, draws, burn_in, thin, progress=progress)
        except KeyboardInterrupt:
            if not len(recorder):
                raise
            warnings.warn(
                f"interrupted after {len(recorder)} of {draws} draws, which are returned; "
                "sample again to go on.",
                stacklevel=2,
            )
        return recorder.trace()

    def recorder(self, draws: int) -> DrawTable:
        """Make an empty recorder with room for so many draws; it is refused where they would not fit."""
        draws, n_objects = check_count("draws", draws, 1), self.posterior.n_objects
        check_fits(
            draws * n_objects * tables.label_type(n_objects)(0).itemsize,
            f"{draws} draws of the labels of {n_objects} objects",
            "Keep fewer draws, e.g. by a larger thin.",
        )
        recorder = DrawTable(self.posterior, self.move_names)
        recorder.reserve(draws)
        return recorder

    def extend(
        self,
        recorder: DrawTable,
        draws: int,
        burn_in: int = 0,
        thin: int = 1,
        progress: bool = False,
        go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Run the chain and add its draws to a recorder; interrupted, it holds the draws so far.

        Parameters
        ----------
        recorder
            Where the draws go.
        draws, burn_in, thin
            As for `sample`; here `draws` may be 0.
        progress
            Show a progress bar.
        go_on
            Asked before each block of a twentieth of a second; False ends the call with the draws so far.
        """
        draws, burn_in = check_count("draws", draws, 0), check_count("burn_in", burn_in, 0)
        thin = check_count("thin", thin, 1)
        if progress and not self.prepare():
            self._wait(self.prepare, progress)
        with (
            progress_bar(total=burn_in + draws * thin, desc="sampling") if progress else nullcontext() as bar
        ):

            def done(iterations: int) -> None:
                if bar is not None:
                    if bar.postfix != (self.compilation or None):
                        bar.set_postfix_str(self.compilation)
                    bar.update(iterations)

            self._stand_at_last_event()
            self._run_blocks(1, burn_in, None, done, go_on)
            self._run_blocks(draws, thin, recorder, done, go_on)

    def snapshot(self) -> Event:
        """Describe the current state as an event, without moving; θ has the weights of this partition."""
        state = self.state
        labels = canonical_labels(state.labels)
        shape = state.nu_index, state.sigma
        log_posterior = self.posterior.log_density(labels, state.theta_index, state.concentration, *shape)
        columns = {
            "iterations": state.iteration,
            "theta_index": state.theta_index,
            "theta_weights": self.posterior.theta_conditional(labels, *shape),
            "nu_index": state.nu_index,
            "sigma": state.sigma,
            "labels": labels,
            "log_posterior": log_posterior,
            "concentration": state.concentration,
        }
        if self.posterior.shapes == "own":
            weights = self.posterior.nu_conditional(labels, state.theta_index, state.sigma)
            columns["nu_weights"] = weights
        return DrawTable(self.posterior, (), {name: np.array([value]) for name, value in columns.items()})[0]

    def reset(self) -> None:
        """Go back to the initial state; the same chain will be run again."""
        self.restore(self.first_state)

    def restore(self, state: State) -> None:
        """Put the chain into a state of the same data and settings; it goes on from there, bit for bit."""
        n_objects, n_values = self.posterior.n_objects, self.posterior.theta_grid.size
        if state.labels.size != n_objects or not 0 <= state.theta_index < n_values:
            raise ValueError(
                f"this state is of another chain: it has {state.labels.size} objects and index "
                f"{state.theta_index} of θ; here are {n_objects} objects and {n_values} values of θ. "
                "Restore a state of this sampler."
            )
        self._block += 1
        self._pending = (state, 0)  # interrupted in the next line, it is done later
        self._driver.load(state)
        self._pending = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the sampler: data, settings and state, without pickle."""
        write_archive(path, _KIND, *pack_sampler(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Sampler":
        """Load a saved sampler; it continues bit for bit."""
        metadata, arrays = read_archive(path, _KIND)
        with refused(f"{str(path)!r} does not hold a complete sampler"):
            return unpack_sampler(metadata, arrays, cls)

    def _assemble(
        self,
        posterior: Posterior,
        schedule: tuple[Repeated, ...],
        raw: FloatArray | None,
        acceptance: str,
        first: State,
        current: State,
        warn: bool = True,
    ) -> None:
        if acceptance not in ACCEPTANCES:
            raise ValueError(f"acceptance must be one of {', '.join(ACCEPTANCES)}; got {acceptance!r}.")
        if acceptance == "as-printed" and warn:
            warnings.warn(
                'The acceptance ratio "as-printed" is the one of the paper, whose proposal terms are '
                "inverted: the chain does not sample the posterior. It exists for teaching.",
                stacklevel=3,
            )
        self.posterior = posterior
        self.schedule = schedule
        self.acceptance = acceptance
        self.raw_data = raw  # Only where distances are wanted in the units of the data.
        self.first_state = first
        pairs = None
        if any(entry.move.needs_distances for entry in schedule):
            pairs = pair_distances(posterior.coordinates if raw is None else raw)
        self._driver = Driver(posterior, schedule, pairs, acceptance == "as-printed")
        self._block = 0  # Number of the block that was run last; a generator of events checks it.
        self._pending = None
        self._driver.load(current)

    def _run(
        self, rows: int, thin: int = 1, report: bool = False, recorder: DrawTable | None = None
    ) -> DrawTable:
        """Run a block, and record it where there is a recorder; interrupted, neither has happened."""
        before, length = self._driver.state(), 0 if recorder is None else len(recorder)
        try:
            records, outcome = self._driver.advance(rows, thin, report and self._driver.reports)
            iterations = before.iteration + thin * np.arange(1, rows + 1)
            told = _report(outcome) if report else None
            columns = {**records._asdict(), "iterations": iterations}
            block = DrawTable(self.posterior, self.move_names, columns, told)
            if recorder is not None:
                recorder.extend(block)
        except BaseException:
            # A second interrupt must not keep the chain from going back. (Not in a function of its own: an
            # interrupt at its very beginning would pass by.)
            is_done = recorder is not None and len(recorder) != length
            while not is_done:
                try:
                    self._driver.load(before)
                    is_done = True
                except KeyboardInterrupt:
                    continue
            raise
        return block

    def _run_blocks(
        self,
        draws: int,
        thin: int,
        recorder: DrawTable | None,
        done: Callable[[int], object],
        go_on: Callable[[], bool],
    ) -> None:
        """Run draws × thin iterations in blocks, recording every thin-th if there is a recorder."""
        sizer = tables.BlockSizer(self._largest_block())
        remaining = draws * thin
        while remaining and go_on():
            grown, started = sizer.size(_UNWATCHED_SECONDS), time.perf_counter()
            rows = 1 if recorder is None else min(max(1, grown // thin), remaining // thin)
            step = min(grown, remaining) if recorder is None else thin
            self._run(rows, step, recorder=recorder)
            sizer.measured(rows * step, time.perf_counter() - started)
            remaining -= rows * step
            done(rows * step)

    def _wait(self, is_over: Callable[[], bool], progress: bool) -> None:
        """Wait for the compiler, with a bar that shows the time."""
        options = {"desc": _WAITING, "bar_format": "{desc} ({elapsed})"}
        with progress_bar(**options) if progress else nullcontext() as bar:
            while not is_over():
                self._driver.wait()
                if bar is not None:
                    bar.refresh()

    def _largest_block(self) -> int:
        return max(1, _RECORD_BYTES // tables.draw_bytes(self.posterior, len(self.schedule), written=True))

    def _stand_at_last_event(self) -> None:
        """Where events of the last block are still to be given out, go back to the last one that has been."""
        if self._pending is None:
            return
        before, given = self._pending
        self._block += 1
        self._driver.load(before)
        if given:
            self._run(given)
        self._pending = None


def progress_bar(**options: object) -> Any:  # noqa: ANN401 - tqdm has no types
    """A bar of tqdm's, without the thread that looks after bars that lag: a browser can start none."""
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc] # tqdm has no types
        monitor_interval = 0

    return Bar(**{"unit": "it", "miniters": 1, **options})  # with miniters=1 none lags


def _report(outcome: Outcome) -> StepReport | None:
    """What the single Metropolis move of an iteration proposed, if it proposed anything."""
    if not outcome.flags[PROPOSED]:
        return None
    return StepReport(
        proposed_labels=tables.read_only(canonical_labels(outcome.labels)),
        accepted=bool(outcome.flags[ACCEPTED]),
        log_ratio=float(outcome.reals[LOG_RATIO]),
    )
