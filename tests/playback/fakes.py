"""Stand-ins for what playback connects: time, a sampler, a recorder, a view with its browser."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from ewens_widgets.model.posterior import Posterior
from ewens_widgets.playback import Frame, Pacing, Player, PlayerState
from ewens_widgets.playback.loop import Worker
from ewens_widgets.sampling.draws import DrawTable, Event, MoveCount

Result = TypeVar("Result")

N_OBJECTS = 5
GRID = np.array([0.5, 1.0, 2.0])


async def empty_turns(count: int = 12) -> None:
    """Let all that waits for the loop have its turn; by default more than the empty turns of one rest."""
    for _ in range(count):
        await asyncio.sleep(0)


async def at_rest(player: Worker) -> None:
    """Wait until the background task has ended: nothing is left that could run anything."""
    while player._task is not None:
        await asyncio.sleep(0)


class FakeTime:
    """Time that passes when somebody works (`spend`) or when the test lets it (`advance`)."""

    def __init__(self) -> None:
        self.now = 100.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def clock(self) -> float:
        return self.now

    def pacing(self) -> Pacing:
        return Pacing(clock=self.clock, effort=self.clock, sleep=self.sleep)

    def spend(self, seconds: float) -> None:
        self.now += seconds

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        end = self.now + seconds
        await empty_turns()
        while self._sleepers and self._sleepers[0][0] <= end:
            wake, _, future = heapq.heappop(self._sleepers)
            self.now = max(self.now, wake)
            if not future.done():
                future.set_result(None)
            await empty_turns()
        self.now = max(self.now, end)


class QuickTime:
    """Time of a player that is there already: a look at the clock takes 0.1 ms, a nap is not waited for."""

    def __init__(self, player: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        for owner in (player, player._display):
            monkeypatch.setattr(owner, "_clock", self.clock)
        monkeypatch.setattr(player, "_sleep", self.sleep)

    def clock(self) -> float:
        self.now += 1e-4
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def labels_at(iteration: int) -> NDArray[np.intp]:
    """A partition that tells iterations apart."""
    labels = np.array([(iteration >> bit) & 1 for bit in range(N_OBJECTS)])
    return np.where(labels == labels[0], 0, 1).astype(np.intp)


def make_event(iteration: int) -> Event:
    labels = labels_at(iteration)
    weights = np.roll(np.array([0.5, 0.25, 0.25]), iteration)
    return Event(
        iteration=iteration,
        theta=float(GRID[iteration % 3]),
        theta_index=iteration % 3,
        theta_weights=weights,
        labels=labels,
        n_clusters=int(labels.max()) + 1,
        log_posterior=-float((iteration * 7) % 11),
        concentration=1.0,
        moves=(MoveCount("gibbs", 5, iteration % 5), MoveCount("reassign", 1, 1)),
    )


class FakeSource:
    """Runs blocks; where a fault lies ahead, up to there, and the next block raises it."""

    def __init__(
        self, time: FakeTime | None = None, *, seconds: float = 0.001, first_seconds: float = 0.0
    ) -> None:
        self.time = time
        self.seconds = seconds
        self.first_seconds = first_seconds
        self.iteration = 0
        self.ends_at: int | None = None
        self.blocks: list[int] = []
        self.resets = 0
        self.raise_at: dict[int, BaseException] = {}

    def advance(self, n: int) -> list[Event]:
        first = self.iteration + 1
        count = n if self.ends_at is None else min(n, self.ends_at - self.iteration)
        self.blocks.append(count)
        if self.time is not None:
            self.time.spend(count * self.seconds + (self.first_seconds if len(self.blocks) == 1 else 0.0))
        error = self.raise_at.pop(first, None)
        if error is not None:
            raise error
        stop = min([first + count, *(at for at in self.raise_at if at > first)])
        self.iteration = stop - 1
        return [make_event(iteration) for iteration in range(first, stop)]

    def snapshot(self) -> Event:
        return make_event(self.iteration)._replace(moves=())

    def reset(self) -> None:
        self.iteration = 0
        self.resets += 1


class FakeRecorder(DrawTable):
    """Keeps events in a list."""

    move_names = ("gibbs", "reassign")

    def __init__(self) -> None:
        self.kept: list[Event] = []
        self.fails_at: int | None = None

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def iterations_kept(self) -> list[int]:
        return [event.iteration for event in self.kept]

    def reserve(self, extra: int) -> None:
        assert extra > 0

    def extend(self, block: list[Event]) -> None:
        if self.fails_at is not None and len(self.kept) >= self.fails_at:
            raise MemoryError("no room")
        self.kept += block

    def __getitem__(self, index: int | slice) -> Event | DrawTable:
        return self.kept[index] if isinstance(index, int) else self._table()[index]

    def clear(self) -> None:
        self.kept = []

    def _table(self) -> DrawTable:
        names = ("labels", "n_clusters", "theta", "theta_weights", "log_posterior", "concentration")
        columns = {name: [getattr(event, name) for event in self.kept] for name in names}
        columns["iterations"] = [event.iteration for event in self.kept]
        for name in ("proposals", "acceptances"):
            columns[name] = [[getattr(move, name) for move in event.moves] for event in self.kept]
        widths = {"labels": N_OBJECTS, "theta_weights": len(GRID), "proposals": 2, "acceptances": 2}
        arrays = {
            name: np.array(values).reshape(len(self.kept), *([widths[name]] if name in widths else []))
            for name, values in columns.items()
        }
        arrays["labels"] = arrays["labels"].astype(np.uint8)
        return DrawTable(cast("Posterior", None), self.move_names, arrays)

    def column(self, name: str) -> NDArray[Any]:
        return self._table().column(name)


class FakeViewer:
    """A view together with the browser that paints it, and acknowledges when the test says so."""

    def __init__(self, time: FakeTime | None = None, *, seconds: float = 0.0) -> None:
        self.time = time
        self.seconds = seconds
        self.frames: list[Frame] = []
        self.times: list[float] = []

    def show(self, frame: Frame) -> None:
        if self.time is not None:
            self.times.append(self.time.now)
            self.time.spend(self.seconds)
        self.frames.append(frame)

    @property
    def shown(self) -> list[int]:
        return [frame.status.shown_iteration for frame in self.frames]

    @property
    def states(self) -> list[PlayerState]:
        return [frame.status.state for frame in self.frames]


class Stage:
    """A player with fake time on a loop of its own, driven from a synchronous test."""

    def __init__(
        self, *, seconds: float = 0.001, first_seconds: float = 0.0, watched: bool = True, **options: object
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.time = FakeTime()
        self.source = FakeSource(self.time, seconds=seconds, first_seconds=first_seconds)
        self.recorder = FakeRecorder()
        self.viewer = FakeViewer(self.time)
        self.acknowledged = 0
        self.acknowledges = watched
        options = {"target_iterations": 1_000_000, "strict": True, **options}
        pacing = self.time.pacing()
        self.player = self.do(lambda: Player(self.source, self.recorder, pacing=pacing, **options))
        self.do(lambda: self.player.attach(self.viewer))
        if watched:
            self.do(self.player.viewer_attached)

    def do(self, command: Callable[[], Result], seconds: float = 0.0) -> Result:
        """Give a command as a notebook cell does, on the thread of the loop; then let time pass."""

        async def cell() -> Result:
            return command()

        result = self.run(cell())
        self.advance(seconds)
        return result

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(coroutine)

    def advance(self, seconds: float, step: float = 0.01) -> None:
        """Let time pass; the browser paints and acknowledges every 10 ms."""
        end = self.time.now + seconds
        while self.time.now < end:
            self.run(self.time.advance(min(step, end - self.time.now)))
            if self.acknowledges:
                self.acknowledge()

    def acknowledge(self) -> None:
        number = self.viewer.frames[-1].number
        if number > self.acknowledged:
            self.acknowledged = number
            self.do(lambda: self.player.acknowledge(number))

    @property
    def state(self) -> PlayerState:
        return self.player.status.state

    @property
    def iterations(self) -> list[int]:
        return self.recorder.iterations_kept

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run(asyncio.sleep(0))
        self.loop.close()
