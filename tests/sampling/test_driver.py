"""The driver: interrupts stay out of compiled calls, and what it may know."""

import ast
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import ewens_widgets as ew
from ewens_widgets.sampling import kernel, moves
from ewens_widgets.sampling.driver import Driver, interrupts_deferred


def interrupted_block(steps: list[str]) -> None:
    with interrupts_deferred():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        steps.append("finished")


def test_interrupts_come_through_at_the_end_or_to_the_users_own_handler() -> None:
    usual = signal.getsignal(signal.SIGINT)
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_block(steps)
    assert steps == ["finished"]
    with interrupts_deferred():
        assert signal.getsignal(signal.SIGINT) is not usual
    with pytest.raises(RuntimeError, match="fault"), interrupts_deferred():
        raise RuntimeError("fault")
    assert signal.getsignal(signal.SIGINT) is usual
    numbers: list[int] = []
    for handler, expected in (
        (lambda number, _: numbers.append(number), [signal.SIGINT]),
        (signal.SIG_IGN, [signal.SIGINT]),  # ignored interrupts stay ignored
    ):
        signal.signal(signal.SIGINT, handler)
        try:
            interrupted_block([])
            assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, usual)
        assert numbers == expected


def test_other_threads_leave_the_handler_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interrupts_deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_the_kernel_knows_no_move_and_moves_know_no_driver() -> None:
    for package, unknown in ((kernel, ("moves", "driver", "sampler")), (moves, ("driver", "sampler"))):
        for path in Path(package.__path__[0]).glob("*.py"):
            imported = [
                node.module or ""
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.ImportFrom)
            ]
            for name in unknown:
                prefix = f"ewens_widgets.sampling.{name}"
                assert not [found for found in imported if found.startswith(prefix)], (path, name)


def test_a_schedule_without_moves_draws_the_parameters_alone() -> None:
    sampler = ew.Sampler(ew.datasets.unit_square(seed=0), moves=["gibbs"], initial="k-means", seed=3)
    driver = Driver(sampler.posterior, (), None, as_printed=False)
    driver.load(sampler.state)
    records, _ = driver.advance(5)
    assert np.ptp(records.labels, axis=0).max() == 0
    assert len(set(records.theta_index.tolist())) > 1
    assert driver.iteration == 5
