"""The way of commands to the event loop."""

import asyncio
import threading

import pytest
from playback.fakes import FakeRecorder, FakeSource

from ewens_widgets.playback import Player
from ewens_widgets.playback.loop import Mailbox, running_loop


def test_without_a_loop_commands_are_carried_out_at_once() -> None:
    log: list[str] = []
    mailbox = Mailbox(after=lambda: log.append("after"))
    assert mailbox.loop is None
    mailbox.post(lambda: log.append("one"))
    assert log == ["one", "after"]


def test_commands_wait_while_held_and_keep_their_order() -> None:
    log: list[int] = []
    mailbox = Mailbox()
    with mailbox.held():
        mailbox.post(lambda: log.append(1))
        mailbox.post(lambda: log.append(2))
        assert log == []
        assert mailbox
    mailbox.deliver()
    assert log == [1, 2]
    assert not mailbox


def test_command_given_by_a_command_follows_it() -> None:
    log: list[str] = []
    mailbox = Mailbox()

    def outer() -> None:
        mailbox.post(lambda: log.append("inner"))
        log.append("outer")

    mailbox.post(outer)
    assert log == ["outer", "inner"]


def test_other_threads_commands_arrive_on_the_loops_thread_in_order() -> None:
    log: list[tuple[int, int]] = []

    async def main() -> None:
        mailbox = Mailbox()

        def from_elsewhere() -> None:
            assert mailbox.is_elsewhere
            for number in range(100):
                mailbox.post(lambda number=number: log.append((number, threading.get_ident())))

        await asyncio.to_thread(from_elsewhere)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert log == [(number, threading.get_ident()) for number in range(100)]


def test_thread_with_a_loop_of_its_own_is_elsewhere_too() -> None:
    threads: list[int] = []

    async def main() -> None:
        mailbox = Mailbox()

        async def subshell() -> None:
            mailbox.post(lambda: threads.append(threading.get_ident()))

        await asyncio.to_thread(lambda: asyncio.run(subshell()))
        await asyncio.sleep(0)

    asyncio.run(main())
    assert threads == [threading.get_ident()]


def test_loop_is_captured_again_after_the_first_one_ended() -> None:
    async def make() -> Mailbox:
        return Mailbox()

    mailbox = asyncio.run(make())
    assert not mailbox.capture_loop()

    async def use() -> None:
        assert mailbox.capture_loop()
        assert mailbox.loop is running_loop()

    asyncio.run(use())


def test_closed_loop_does_not_swallow_commands() -> None:
    log: list[int] = []

    async def make() -> Mailbox:
        return Mailbox()

    mailbox = asyncio.run(make())
    mailbox.post(lambda: log.append(1))
    assert log == [1]


def test_arguments_are_checked_where_the_command_is_given() -> None:
    async def main() -> None:
        source = FakeSource()
        player = Player(source, FakeRecorder(), target_iterations=10)

        def elsewhere() -> None:
            with pytest.raises(ValueError, match="iterations must be at least 1; got 0"):
                player.step(0)
            with pytest.raises(TypeError, match="iterations must be a whole number"):
                player.extend(iterations=2.5)
            with pytest.raises(ValueError, match="burn_in must be at least 0"):
                player.burn_in = -1
            with pytest.raises(TypeError, match="unexpected keyword argument 'steps'"):
                player.step(steps=3)
            player.step(iterations=2)

        await asyncio.to_thread(elsewhere)
        await player.wait()
        assert (source.iteration, player.target_iterations) == (2, 10)

    asyncio.run(main())
