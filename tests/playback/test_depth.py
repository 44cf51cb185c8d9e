"""How deep the stack is between the asyncio task and the kernel: who reads a traceback pays for each
frame."""

import asyncio
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from chain_runs import wrap_loops

from ewens_widgets import Sampler
from ewens_widgets.datasets import unit_square
from ewens_widgets.playback import Player, PlayerState
from ewens_widgets.playback.loop import Engine
from ewens_widgets.sampling.draws import DrawTable

MOST_FRAMES = 9

Stack = list[FrameType]


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> list[Stack]:
    """The stacks below each call of a kernel entry from now on, innermost frame first."""
    seen: list[Stack] = []

    def watched(entry: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            frame, stack = sys._getframe(1), []
            while frame is not None:
                stack.append(frame)
                frame = frame.f_back
            seen.append(stack)
            return entry(*args)

        return call

    wrap_loops(monkeypatch, watched)
    return seen


def play(iterations: int, speed: float | None, moves: str) -> None:
    async def main() -> None:
        sampler = Sampler(unit_square(per_cluster=4, seed=3), model="I", moves=moves, seed=5)
        recorder = DrawTable(sampler.posterior, sampler.move_names)
        player = Player(sampler, recorder, target_iterations=iterations, speed=speed)
        player.play()
        assert (await player.wait()).state is PlayerState.FINISHED

    asyncio.run(main())


def told(frames: Stack) -> str:
    return "\n".join(f"{frame.f_code.co_filename}: {frame.f_code.co_qualname}" for frame in frames)


@pytest.mark.parametrize("moves", ["default", "paper-1", "paper-2"])
def test_from_the_task_to_the_kernel(stacks: list[Stack], moves: str) -> None:
    play(6, speed=1.0, moves=moves)
    depths = []
    for stack in stacks:
        codes = [frame.f_code for frame in stack]
        assert Engine._run.__code__ in codes, f"not called by the task:\n{told(stack)}"
        between = stack[: codes.index(Engine._run.__code__)]
        assert len(between) <= MOST_FRAMES, f"{len(between)} frames:\n{told(between)}"
        depths.append(len(between))
    assert depths
