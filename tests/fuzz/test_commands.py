"""Any calls in any order, on a sampler and on the Explorer, against a simple model: the chain is one list.

With given data, settings and seed there is one chain. Whatever is called, the sampler stands at an iteration
of it, and the Explorer has recorded a beginning of it. (The player has a machine of its own, with fake time:
`tests/playback/test_player_commands.py`.) A few sequences here; thousands with `make nightly`.
"""

import asyncio
import contextlib
import functools
import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import comm
import numpy as np
import pytest
from comm.base_comm import BaseComm
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ipywidgets import Widget
from playback.test_player_commands import Commands

import ewens_widgets as ew
from ewens_widgets.sampling.draws import DrawTable, Event
from ewens_widgets.views.explorer.explorer import Explorer
from ewens_widgets.views.explorer.settings import SamplerSettings

LENGTH = 400
DATA = ew.datasets.unit_square(per_cluster=3, seed=0)
SAMPLERS: dict[str, dict[str, Any]] = {
    "default": {"model": "II", "seed": 1},
    "paper-2": {"model": "I", "moves": "paper-2", "seed": 2},
    "mixed": {
        "model": "III",
        "moves": [("gibbs", 1), "reassign", ("informed-split-merge", 2)],
        "concentration": ew.Gamma(1.0, 1.0),
        "initial": "k-means",
        "seed": 3,
    },
}
FEW = {
    "sampler": settings(max_examples=40, stateful_step_count=20),
    "explorer": settings(max_examples=8, stateful_step_count=20),
}
# A sabotaged twin has to fail; its shortest example is not needed.
TWIN = settings(max_examples=300, stateful_step_count=25, phases=[Phase.generate], report_multiple_bugs=False)


@functools.cache
def chain(name: str) -> ew.Trace:
    return ew.Sampler(DATA, **SAMPLERS[name]).sample(LENGTH, progress=False)


def assert_are(found: DrawTable | ew.Trace, expected: ew.Trace, iterations: range) -> None:
    """The draws of these iterations of the chain, and no others."""
    rows = [iteration - 1 for iteration in iterations]
    np.testing.assert_array_equal(found.iterations, list(iterations))
    for column in ("labels", "theta_index", "log_posterior", "concentration"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column)[rows])


class SamplerCommands(RuleBasedStateMachine):
    """A sampler, and the iteration at which it should stand."""

    @initialize(name=st.sampled_from(sorted(SAMPLERS)))
    def make(self, name: str) -> None:
        self.sampler = ew.Sampler(DATA, **SAMPLERS[name])
        self.chain = chain(name)
        self.at = 0
        self.kept = [(0, self.sampler.state)]
        self.watched: list[Iterator[Event]] = []
        self.folder = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        if hasattr(self, "sampler"):
            self.folder.cleanup()
            self.advance(3, 1)

    def room(self, wanted: int) -> int:
        """As many iterations as the known chain still has; where it ends, begin again."""
        if self.at + wanted > LENGTH:
            self.reset()
        return wanted

    def expect_event(self, event: Event) -> None:
        self.at += 1
        assert event.iteration == self.at
        assert event.log_posterior == self.chain.log_posterior[self.at - 1]
        np.testing.assert_array_equal(event.labels, self.chain.labels[self.at - 1])

    @rule(count=st.integers(0, 12), taken=st.integers(0, 12), block=st.sampled_from([None, 1, 3, 5]))
    def watch(self, count: int, taken: int, block: int | None) -> None:
        events = self.sampler.events(self.room(count), block)
        for event in itertools.islice(events, taken):
            self.expect_event(event)
        self.watched.append(events)

    @precondition(lambda self: self.watched)
    @rule(place=st.integers(0, 30), taken=st.integers(1, 4))
    def watch_on(self, place: int, taken: int) -> None:
        events = self.watched[place % len(self.watched)]
        self.room(taken)
        for event in itertools.islice(events, taken):
            self.expect_event(event)

    @precondition(lambda self: self.watched)
    @rule(place=st.integers(0, 30))
    def stop_watching(self, place: int) -> None:
        self.watched.pop(place % len(self.watched)).close()

    @rule(draws=st.integers(1, 8), burn_in=st.integers(0, 8), thin=st.integers(1, 4))
    def sample(self, draws: int, burn_in: int, thin: int) -> None:
        self.room(burn_in + draws * thin)
        trace = self.sampler.sample(draws, burn_in, thin, progress=False)
        first = self.at + burn_in + thin
        self.at += burn_in + draws * thin
        assert_are(trace, self.chain, range(first, self.at + 1, thin))

    @rule(count=st.integers(1, 8), thin=st.integers(1, 4))
    def advance(self, count: int, thin: int) -> None:
        self.room(count * thin)
        block = self.sampler.advance(count, thin)
        first = self.at + thin
        self.at += count * thin
        assert_are(block, self.chain, range(first, self.at + 1, thin))

    @rule()
    def look(self) -> None:
        state, event = self.sampler.state, self.sampler.snapshot()
        assert state.iteration == event.iteration == self.at
        if self.at:
            np.testing.assert_array_equal(self.sampler.labels, self.chain.labels[self.at - 1])
            assert event.log_posterior == pytest.approx(self.chain.log_posterior[self.at - 1], rel=1e-9)

    @rule()
    def remember(self) -> None:
        self.kept.append((self.at, self.sampler.state))

    @rule(place=st.integers(0, 30))
    def restore(self, place: int) -> None:
        self.at, state = self.kept[place % len(self.kept)]
        self.sampler.restore(state)

    @rule()
    def reset(self) -> None:
        self.sampler.reset()
        self.at = 0

    @rule()
    def save_and_load(self) -> None:
        path = Path(self.folder.name) / "sampler.npz"
        self.sampler.save(path)
        self.sampler = ew.Sampler.load(path)
        self.watched.clear()  # They belong to the other one, which goes its own way.

    @rule(blocks=st.integers(0, 2), is_late=st.booleans(), draws=st.integers(1, 8))
    def interrupt_sampling(self, blocks: int, is_late: bool, draws: int) -> None:
        """An interrupt before or after a block is run: the draws of the blocks before it are kept."""
        self.room(draws)
        recorder = self.sampler.recorder(draws)
        with self.interrupt(blocks, is_late), contextlib.suppress(KeyboardInterrupt):
            self.sampler.extend(recorder, draws)
        first, self.at = self.at + 1, self.at + len(recorder)
        if len(recorder):
            assert_are(recorder.trace(), self.chain, range(first, self.at + 1))

    @rule(call=st.sampled_from(["sample", "advance", "events", "restore", "load"]))
    def call_wrongly(self, call: str) -> None:
        calls: dict[str, Callable[[], object]] = {
            "sample": lambda: self.sampler.sample(0),
            "advance": lambda: self.sampler.advance(3, thin=0),
            "events": lambda: next(self.sampler.events(-1)),
            "restore": lambda: self.sampler.restore(ew.Sampler(np.eye(5)[:, :2], model="I").state),
            "load": lambda: ew.Sampler.load(Path(self.folder.name) / "nothing.npz"),
        }
        with pytest.raises((ValueError, OSError)):
            calls[call]()

    @contextlib.contextmanager
    def interrupt(self, blocks: int, is_late: bool) -> Iterator[None]:
        """Interrupt the driver once, in the block after so many."""
        driver = self.sampler._driver
        original, left = driver.advance, [blocks]

        def advance(*arguments: Any) -> Any:  # noqa: ANN401 - whatever it is
            result = None if left[0] == 0 and not is_late else original(*arguments)
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return result

        driver.advance = advance  # type: ignore[method-assign]
        try:
            yield
        finally:
            del driver.advance

    @invariant()
    def stands_where_it_should(self) -> None:
        if hasattr(self, "sampler"):
            assert self.sampler.iteration == self.at


class Silent(BaseComm):
    """A connection to a page that does not exist."""

    def publish_msg(self, *_: object, **__: object) -> None:
        pass


TABLES = {"square": DATA, "moons": ew.datasets.half_moons(n=14, seed=1)}
BAD_FILE = b"PK nothing of ours"


@functools.cache
def explorer_chain(data: str, model: str, concentration: float, length: int = 120) -> ew.Trace:
    sampler = ew.Sampler(TABLES[data], model=model, concentration=concentration, seed=0)
    return sampler.sample(length, progress=False)


class Saved(NamedTuple):
    """A file, and what was in it."""

    content: bytes
    chain: tuple[str, str, float]
    recorded: int
    run: tuple[int, int]


def chosen(settings: SamplerSettings) -> tuple[str, float]:
    """What the machine changes of the settings."""
    assert isinstance(settings.prior, ew.priors.Ewens)
    assert isinstance(settings.prior.concentration, float)
    return settings.model, settings.prior.concentration


class ExplorerCommands(RuleBasedStateMachine):
    """An Explorer without a page, on an event loop; what it should have recorded, and of which chain."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(comm, "create_comm", Silent)
        self.loop = asyncio.new_event_loop()
        self.data, self.model, self.concentration = "square", "II", 1.0
        self.wanted = (self.model, self.concentration)
        self.recorded, self.target, self.burn_in, self.texts = 0, 60, 5, ("60", "5")
        self.explorer = self.do(lambda: Explorer(DATA, iterations=60, burn_in=5, speed=None))
        self.saved = [self.save_now()]

    def teardown(self) -> None:
        self.do(self.explorer.player.close)
        self.finish()
        self.loop.close()
        Widget.close_all()
        self.patch.undo()

    def do(self, command: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the command returns
        """Do something as a message from the page would, on the running loop."""

        async def cell() -> object:
            return command()

        return self.loop.run_until_complete(cell())

    def finish(self) -> None:
        """Let the background task run until it rests."""

        async def rest() -> None:
            await self.explorer.player.wait()
            while self.explorer.player._task is not None:
                await asyncio.sleep(0)

        self.loop.run_until_complete(rest())

    def click(self, name: str) -> None:
        self.do(self.explorer.transport.buttons[name].click)

    @property
    def chain(self) -> ew.Trace:
        return explorer_chain(self.data, self.model, self.concentration)

    def save_now(self) -> Saved:
        content = self.do(self.explorer.packed)
        return Saved(
            content, (self.data, self.model, self.concentration), self.recorded, (self.target, self.burn_in)
        )

    def start_new(self) -> None:
        """The chain that the settings ask for has begun."""
        self.model, self.concentration = self.wanted
        self.recorded = 0

    # The chain.

    @rule(count=st.integers(1, 3))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.click("Step")
        self.finish()
        self.recorded = max(self.recorded, min(self.recorded + count, self.target))

    @rule(turns=st.integers(0, 30))
    def play_a_little(self, turns: int) -> None:
        async def turn() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        # At the end of a run the large button adds iterations instead.
        if self.recorded < self.target:
            self.click("Play")
        else:
            self.do(self.explorer.player.play)
        self.loop.run_until_complete(turn())
        self.do(self.explorer.player.pause)
        self.finish()
        # How far it came is its own affair; what it recorded is not.
        assert self.recorded <= self.explorer.player.status.iteration <= max(self.recorded, self.target)
        self.recorded = self.explorer.player.status.iteration

    @rule()
    def run_to_end(self) -> None:
        self.click("Run to end")
        self.finish()
        self.recorded = max(self.recorded, self.target)

    @rule()
    def reset(self) -> None:
        self.click("Reset")
        self.recorded = 0

    @rule(share=st.floats(0.0, 1.0))
    def look_back(self, share: float) -> None:
        self.do(lambda: setattr(self.explorer.transport.timeline, "value", round(share * self.recorded)))
        status = self.explorer.player.status
        # The start of a chain is not in a file.
        assert status.first_iteration in ({0, 1} if self.recorded else {0})
        assert status.shown_iteration == max(round(share * self.recorded), status.first_iteration)

    @rule(text=st.sampled_from(["20", "60", "100", "4", "-3", "many"]))
    def type_iterations(self, text: str) -> None:
        self.do(lambda: setattr(self.explorer.run_panel.iterations.control, "value", text))
        self.texts = (text, self.texts[1])
        self.run_was_changed()

    @rule(text=st.sampled_from(["0", "5", "50", "x", ""]))
    def type_burn_in(self, text: str) -> None:
        self.do(lambda: setattr(self.explorer.run_panel.burn_in.control, "value", text))
        self.texts = (self.texts[0], text)
        self.run_was_changed()

    def run_was_changed(self) -> None:
        """Both fields count, once both can be read."""
        if all(map(str.isdigit, self.texts)) and int(self.texts[1]) < int(self.texts[0]):
            self.target, self.burn_in = map(int, self.texts)

    # Settings.

    @rule(model=st.sampled_from(["I", "II", "III"]))
    def choose_model(self, model: str) -> None:
        self.do(lambda: setattr(self.explorer.panel.fields["model"].control, "value", model))
        self.settings_are_to_be(model, self.wanted[1])

    @rule(concentration=st.sampled_from([0.5, 1.0, 4.0]))
    def choose_concentration(self, concentration: float) -> None:
        field = self.explorer.panel.fields["concentration"]
        self.do(lambda: setattr(field.control, "value", f"{concentration:g}"))
        self.settings_are_to_be(self.wanted[0], concentration)

    def settings_are_to_be(self, model: str, concentration: float) -> None:
        """What a field holds already is no change."""
        if self.wanted != (model, concentration):
            self.wanted = (model, concentration)
            self.settings_were_changed()

    def settings_were_changed(self) -> None:
        if self.wanted != (self.model, self.concentration) and self.recorded == 0:
            self.start_new()

    @rule(text=st.sampled_from(["", "-1", "nan", "much"]))
    def mistype_the_concentration(self, text: str) -> None:
        """It is explained, and changes nothing; then the user writes what was there.

        That is a change like any other: what was chosen before a reset, and waits, begins.
        """
        field = self.explorer.panel.fields["concentration"]
        before = field.control.value
        self.do(lambda: setattr(field.control, "value", text))
        assert field.problem
        self.do(lambda: setattr(field.control, "value", before))
        assert not field.problem
        self.settings_were_changed()

    @rule()
    def start_anew(self) -> None:
        self.do(self.explorer.apply_settings)
        self.start_new()

    @rule(name=st.sampled_from(sorted(TABLES)))
    def use_other_data(self, name: str) -> None:
        self.do(lambda: self.explorer._use_data(TABLES[name]))
        self.data = name
        self.start_new()

    # Files.

    @rule()
    def save(self) -> None:
        self.saved.append(self.save_now())

    @rule(place=st.integers(0, 20))
    def load(self, place: int) -> None:
        saved = self.saved[place % len(self.saved)]
        self.do(lambda: self.explorer._load(saved.content))
        self.data, self.model, self.concentration = saved.chain
        self.recorded, (self.target, self.burn_in) = saved.recorded, saved.run
        self.texts = (str(self.target), str(self.burn_in))
        self.wanted = (self.model, self.concentration)

    @rule(cut=st.integers(0, 2000))
    def load_what_is_no_file(self, cut: int) -> None:
        for content in (BAD_FILE, self.saved[0].content[:cut]):
            with pytest.raises(ValueError):  # noqa: PT011 - of any kind; that nothing has changed is the point
                self.do(lambda content=content: self.explorer._load(content))

    # What always holds.

    @invariant()
    def the_record_is_the_beginning_of_the_chain(self) -> None:
        explorer = self.explorer
        assert explorer.player.status.iteration == len(explorer.recorder) == self.recorded
        assert (explorer.player.target_iterations, explorer.player.burn_in) == (self.target, self.burn_in)
        assert explorer.player.error is None
        if self.recorded:
            assert_are(explorer.recorder.trace(), self.chain, range(1, self.recorded + 1))

    @invariant()
    def the_settings_are_those_that_were_chosen(self) -> None:
        explorer = self.explorer
        assert chosen(explorer.settings) == (self.model, self.concentration)
        assert explorer.dataset.name == TABLES[self.data].name
        assert chosen(explorer.panel.read()) == self.wanted

    @invariant()
    def no_view_has_failed(self) -> None:
        assert {view._error.layout.display for view in self.explorer.views.values()} == {"none"}
        for view in self.explorer.views.values():
            assert view in self.explorer.player.views


MACHINES = {"sampler": SamplerCommands, "explorer": ExplorerCommands}
LONG = {
    "sampler": (SamplerCommands, 10_000),
    "explorer": (ExplorerCommands, 300),
    "player": (Commands, 10_000),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ew.DataWarning)
        yield


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_any_calls_in_any_order(name: str) -> None:
    run_state_machine_as_test(MACHINES[name], settings=FEW[name])


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(LONG))
def test_many_sequences_of_calls(name: str) -> None:
    machine, count = LONG[name]
    long = settings(max_examples=count, stateful_step_count=25)
    run_state_machine_as_test(machine, settings=long)


@pytest.mark.nightly
def test_twin_whose_abandoned_events_count_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ew.Sampler, "_stand_at_last_event", lambda _: None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(SamplerCommands, settings=TWIN)


@pytest.mark.nightly
def test_twin_that_loses_an_iteration_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = DrawTable.extend

    def forgetful(self: DrawTable, block: DrawTable) -> None:
        keep(self, block)
        if len(self) == 2:
            self._length = 1

    monkeypatch.setattr(DrawTable, "extend", forgetful)
    with pytest.raises((AssertionError, RuntimeError)):
        run_state_machine_as_test(ExplorerCommands, settings=TWIN)
