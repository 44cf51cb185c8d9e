"""Run all experiments, on several processes, and write the page with its figures."""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ewens_widgets._version import __version__
from ewens_widgets.files import write_atomically
from ewens_widgets.paper.experiments import (
    CHAINS,
    EXPERIMENTS,
    FAST,
    METHODS,
    ROADS_VARIABLE,
    Experiment,
    Settings,
    Trial,
    TrialResult,
    experiment_named,
    run_trial,
)
from ewens_widgets.paper.results import draw_figures, markdown_page

__all__ = ["PAGE", "run_paper"]

PAGE = "results.md"


def run_paper(
    folder: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    fast: bool = False,
    only: Sequence[str] | None = None,
    figures: bool = True,
    roads: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: bool = True,
) -> Path:
    """Run the paper's experiments and write a table and figures.

    Parameters
    ----------
    folder
        Where to write; made if need be. Files of an earlier run are replaced.
    settings
        How long everything runs; ten seeds by default.
    fast
        Run everything very briefly, to see that it works. The numbers mean nothing.
    only
        Short names of the experiments to run; all by default.
    figures
        Draw the figures too.
    roads
        The UCI file of the Danish road network; without it, and without a copy in the cache, a stand-in is
        used, and the page says so.
    jobs
        Number of processes; as many as there are processors by default.
    progress
        Show a progress bar.

    Returns
    -------
    the path of the page
    """
    chosen = EXPERIMENTS if only is None else tuple(experiment_named(key) for key in only)
    if not chosen:
        raise ValueError("no experiment was chosen; leave `only` out to run all of them.")
    lengths = settings or (FAST if fast else Settings())
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with _roads_at(roads), _workers(jobs) as pool:
        results, drawn = _run_all(pool, chosen, lengths, target if figures else None, progress)
        minutes = (time.perf_counter() - start) / 60
        page = markdown_page(chosen, results, lengths, drawn, _versions(minutes))
    write_atomically(target / PAGE, page.encode())
    return target / PAGE


def _run_all(
    pool: Executor,
    chosen: Sequence[Experiment],
    settings: Settings,
    folder: Path | None,
    progress: bool,
) -> tuple[list[TrialResult], dict[str, list[tuple[str, str]]]]:
    from tqdm.auto import tqdm

    tasks: list[Future[Any]] = [
        pool.submit(run_trial, trial, settings) for trial in _all_trials(chosen, settings)
    ]
    pictures: dict[Future[Any], str] = {}
    if folder is not None:
        pictures = {pool.submit(draw_figures, entry.key, settings, folder): entry.key for entry in chosen}
    try:
        everything = [*tasks, *pictures]
        with tqdm(total=len(everything), disable=not progress, unit="run", desc="paper") as bar:
            for task in as_completed(everything):
                task.result()
                bar.update()
    except BaseException:
        # An error, or Ctrl-C: what has not begun need not.
        for task in [*tasks, *pictures]:
            task.cancel()
        raise
    return [task.result() for task in tasks], {key: task.result() for task, key in pictures.items()}


def _all_trials(chosen: Sequence[Experiment], settings: Settings) -> Iterator[Trial]:
    """Everything to run_trial, the longest first, so that no process is left waiting at the end."""
    for experiment in chosen:
        for method in CHAINS:
            yield Trial(experiment.key, method, None)
    for method in METHODS:
        for experiment in chosen:
            for seed in range(settings.seeds):
                yield Trial(experiment.key, method, seed)


@contextmanager
def _workers(jobs: int | None) -> Iterator[Executor]:
    count = (os.cpu_count() or 1) if jobs is None else jobs
    if count < 1:
        raise ValueError(f"the number of processes must be at least 1; got {jobs}.")
    if count == 1:
        with ThreadPoolExecutor(1) as here:
            yield here
        return
    # Fresh processes rather than forked ones: compiled code and threads do not mix with forks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        yield pool


@contextmanager
def _roads_at(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Tell this process and its workers where the file of the road network is."""
    if path is None:
        yield
        return
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r} with the road network.")
    before = os.environ.get(ROADS_VARIABLE)
    os.environ[ROADS_VARIABLE] = os.fspath(Path(path).resolve())
    try:
        yield
    finally:
        if before is None:
            del os.environ[ROADS_VARIABLE]
        else:
            os.environ[ROADS_VARIABLE] = before


def _versions(minutes: float) -> str:
    import numpy as np
    import scipy
    import sklearn

    versions = f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    return f"Made by ewens_widgets {__version__} with {versions}, in {minutes:.1f} minutes."
