"""Interrupts are held back during a compiled call, and come through after it."""

import signal
import threading

import pytest

from ewens_widgets.sampling.driver import interrupts_deferred


def interrupted_block(steps: list[str]) -> None:
    with interrupts_deferred():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        steps.append("finished")


def test_an_interrupt_comes_through_at_the_end() -> None:
    before = signal.getsignal(signal.SIGINT)
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_block(steps)
    assert steps == ["finished"]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_an_interrupt_nothing_happens() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts_deferred():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_fault_in_the_block_puts_the_handler_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError, match="fault"), interrupts_deferred():
        raise RuntimeError("fault")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_users_own_is_called() -> None:
    numbers: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: numbers.append(number))
    try:
        interrupted_block([])
    finally:
        signal.signal(signal.SIGINT, before)
    assert numbers == [signal.SIGINT]


def test_ignored_interrupts_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupted_block([])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_the_handler_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interrupts_deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
