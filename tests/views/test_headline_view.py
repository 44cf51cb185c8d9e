"""The sentence is about what is on display, and the buttons choose what that is."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from views.chains import Chain, Wire

from ewens_widgets.analysis.convergence import diagnose
from ewens_widgets.datasets import unit_square
from ewens_widgets.playback import Frame, PlayerState
from ewens_widgets.views import Explorer, PartitionView, SharedState
from ewens_widgets.views.headline_view import Headline, answer_line
from ewens_widgets.views.shared_state import Cut


@pytest.fixture
def headline(wire: Wire, chain: Chain) -> Headline:
    shared = SharedState()
    shared.prepare(chain.posterior, chain.dataset.labels)
    headline = Headline(shared)
    headline.prepare(chain.dataset)
    return headline


def shared_of(headline: Headline) -> SharedState:
    return headline._shared


def test_it_tells_the_clusters_of_the_draw(headline: Headline, chain: Chain) -> None:
    headline.show(chain.frame(5, labels=np.array([0] * 20 + [1] * 8 + [2, 3])))
    assert headline.sentence.value.startswith("This draw: 4 clusters, 2 of a single object")
    assert "adjusted Rand index with the known classes: " in headline.sentence.value


def test_it_tells_the_clusters_of_the_cut_where_colours_are_those(headline: Headline, chain: Chain) -> None:
    headline.show(chain.frame(20))
    shared_of(headline).set_cut(Cut(n_clusters=2))
    assert headline.sentence.value.startswith("Tree cut into 2 clusters")
    assert headline.colouring.value == "cut"


def test_the_buttons_colour_the_objects(headline: Headline, chain: Chain) -> None:
    shared = shared_of(headline)
    view = PartitionView(shared)
    view.prepare(chain.dataset, chain.posterior)
    frame = chain.frame(20)
    view.show(frame)
    headline.show(frame)
    headline.colouring.value = "classes"
    assert shared.colouring == "classes"
    classes, colours = chain.dataset.labels, np.array(view.points.colors)
    assert classes is not None
    for label in np.unique(classes):
        assert len(set(colours[classes == label].tolist())) == 1
    assert len(set(colours.tolist())) == np.unique(classes).size
    assert headline.sentence.value.startswith(f"{np.unique(classes).size} known classes.")
    headline.colouring.value = "draw"
    assert headline.sentence.value.startswith("This draw")


def test_without_known_classes_they_are_not_offered(wire: Wire, chain: Chain) -> None:
    shared = SharedState()
    shared.colouring = "classes"
    shared.prepare(chain.posterior)
    headline = Headline(shared)
    headline.prepare(replace(chain.dataset, labels=None, label_names=None))
    assert [kind for _, kind in headline.colouring.options] == ["draw", "answer", "cut"]
    assert headline.colouring.value == "draw"


def test_other_kinds_of_colours_are_refused(wire: Wire) -> None:
    with pytest.raises(ValueError, match="colours can show draw, answer, cut, classes"):
        SharedState().set_colouring("rainbow")


def test_a_frame_is_two_messages_at_most(headline: Headline, chain: Chain, wire: Wire) -> None:
    headline.show(chain.frame(5))
    wire.clear()
    headline.show(chain.frame(6))
    assert sum(wire.updates().values()) <= 2


@pytest.mark.usefixtures("wire")
def test_a_jump_of_the_log_posterior_is_reported() -> None:
    chain = Chain(n_draws=120)
    shared = SharedState()
    shared.prepare(chain.posterior)
    headline = Headline(shared)
    headline.prepare(chain.dataset)
    values = chain.recorder.log_posterior
    values.setflags(write=True)
    values[:] = np.random.default_rng(0).normal(size=values.size)
    headline.show(chain.frame(120))
    assert "jumped" not in headline.sentence.value
    values[64:] += 50.0
    headline.show(chain.frame(70))
    assert "jumped" not in headline.sentence.value, "a few draws may be luck"
    headline.show(chain.frame(100))
    sentence = headline.sentence.value
    found = int(sentence.rpartition("The log posterior jumped up at iteration ")[2].partition(",")[0])
    # The first run of twenty draws most of which are better.
    assert 50 <= found <= 65
    assert sentence.endswith(", after the burn-in</div>")
    chain.summaries.burn_in = 90
    headline.show(chain.frame(100))
    assert headline.sentence.value.endswith(f"at iteration {found}</div>")


class Screens:
    """A shared state and a headline that are shown frames with answers, as a player does it."""

    def __init__(
        self, chain: Chain, on_answer: Callable[[], None] = lambda: None, *, has_thread: bool = True
    ) -> None:
        self.shared = SharedState()
        self.shared.prepare(chain.posterior, chain.dataset.labels)
        self.headline = Headline(self.shared)
        self.headline.prepare(chain.dataset)
        self.answers = chain.answers(self.shared, on_answer, has_thread=has_thread)
        self.shared.renew = lambda: self.show(self.frame)
        self.drawn: list[str] = []
        self.shared.observe(lambda: self.drawn.append("again"))

    def show(self, frame: Frame) -> Frame:
        self.answers.ask(frame)
        self.frame = self.answers.add_to(frame)
        self.shared.show(self.frame)
        self.headline.show(self.frame)
        return self.frame

    @property
    def sentence(self) -> str:
        return str(self.headline.sentence.value)


@pytest.mark.usefixtures("wire")
class TestAnswer:
    @pytest.fixture
    def screens(self, chain: Chain) -> Screens:
        return Screens(chain)

    def test_at_the_end_the_colours_turn_to_it(self, screens: Screens, chain: Chain) -> None:
        screens.show(chain.frame(39))
        assert screens.shared.colouring == "draw"
        end = screens.show(chain.frame(40, PlayerState.FINISHED))
        assert screens.shared.colouring == screens.headline.colouring.value == "answer"
        answer = chain.trace.answer()
        np.testing.assert_array_equal(screens.shared.labels(end), answer.labels)
        sure = diagnose(chain.trace).verdict == "agree"
        begin = f"{answer.n_clusters} group"
        assert screens.sentence.startswith(begin if sure else f"Not reliable yet: {begin}")
        assert ("both halves of the chain agree" in screens.sentence) is sure
        words = diagnose(chain.trace).sentence().removeprefix("Both halves of the chain agree: the ")
        assert words in screens.sentence
        assert not screens.drawn, "the frame draws the views, and nothing draws them again"

    def test_when_the_chain_goes_on_they_turn_back(self, screens: Screens, chain: Chain) -> None:
        screens.show(chain.frame(20, PlayerState.FINISHED, target=20))
        assert screens.shared.colouring == "answer"
        screens.show(chain.frame(21, PlayerState.PLAYING))
        assert screens.shared.colouring == "draw"
        screens.show(chain.frame(40, PlayerState.FINISHED))
        assert screens.shared.colouring == "answer"

    def test_it_keeps_the_colours_of_the_draw_and_has_distinct_ones(
        self, screens: Screens, chain: Chain
    ) -> None:
        labels = chain.trace.answer().labels
        for count in (20, 12):
            screens.shared.colours(chain.frame(39, labels=np.arange(30) % count))
        before = screens.shared.colours(chain.frame(39, labels=labels))
        colours = screens.shared.colours(screens.show(chain.frame(40, PlayerState.FINISHED)))
        assert colours is not None
        assert before is not None
        kept = before < 4
        np.testing.assert_array_equal(colours[kept], before[kept])
        assert set(colours.tolist()) <= set(range(4)), "and few groups the most distinct ones"
        assert np.unique(colours).size == np.unique(labels).size

    @pytest.mark.parametrize("verdict", ["unknown", "apart", "not yet", "agree"])
    def test_it_is_praised_only_where_the_chain_supports_it(
        self, screens: Screens, chain: Chain, verdict: str
    ) -> None:
        frame = screens.show(chain.frame(40, PlayerState.FINISHED))
        assert frame.answer is not None
        reading = replace(frame.answer, verdict=verdict, sentence="The chain has not moved.")
        line = answer_line(reading, chain.dataset)
        assert ("agree" in line) is (verdict == "agree")
        assert line.startswith("Not reliable yet: ") is (verdict != "agree")
        screens.headline.show(replace(frame, answer=reading))
        assert "The chain has not moved." in screens.sentence
        assert ("ew-problem" in screens.sentence) is (verdict != "agree")

    def test_what_the_user_chose_stays(self, screens: Screens, chain: Chain) -> None:
        end = chain.frame(40, PlayerState.FINISHED)
        screens.show(end)
        screens.headline.colouring.value = "draw"
        screens.show(end)
        assert screens.shared.colouring == "draw"
        screens.headline.colouring.value = "classes"
        screens.show(chain.frame(40, PlayerState.FINISHED))
        assert screens.shared.colouring == "classes"

    def test_what_was_restored_stays(self, screens: Screens, chain: Chain) -> None:
        screens.shared.restore("draw", "single", Cut(height=0.5), (), 40)
        screens.show(chain.frame(40, PlayerState.FINISHED))
        assert screens.shared.colouring == "draw"

    def test_at_a_pause_it_is_that_of_the_draws_so_far(self, screens: Screens, chain: Chain) -> None:
        screens.show(chain.frame(20))
        screens.headline.colouring.value = "answer"
        found = screens.frame.answer
        assert found is not None
        assert found.iteration == 20
        np.testing.assert_array_equal(found.answer.labels, chain.trace[:20].answer().labels)
        assert "After" not in screens.sentence
        # While the chain runs nothing is computed here, and the sentence says how old the answer is.
        screens.show(chain.frame(21, PlayerState.PLAYING))
        assert screens.sentence.startswith("After 20 iterations: ")

    @pytest.mark.usefixtures("wire")
    def test_before_the_first_draw_it_says_what_to_do(self) -> None:
        explorer = Explorer(unit_square(per_cluster=5, seed=0))
        explorer.headline.colouring.value = "answer"
        assert explorer.headline.sentence.value.startswith(
            "There is no answer before the first draws. Press Play"
        )
        explorer.headline.colouring.value = "draw"
        assert "Press Play to start" in explorer.headline.sentence.value

    def test_with_few_draws_there_is_none(self, screens: Screens, chain: Chain) -> None:
        screens.show(chain.frame(3))
        screens.headline.colouring.value = "answer"
        assert screens.sentence.startswith("This draw")
        assert screens.sentence.endswith("An answer needs some more draws.")

    def test_a_fault_is_told_and_nothing_stops(
        self, screens: Screens, chain: Chain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(trace: object) -> None:
            raise ValueError("no memory for pairs")

        monkeypatch.setattr("ewens_widgets.playback.frame.diagnose", fail)
        screens.show(chain.frame(20))
        screens.headline.colouring.value = "answer"
        assert screens.sentence.endswith("no memory for pairs")
        screens.show(chain.frame(40, PlayerState.FINISHED))
        assert screens.sentence.startswith("This draw")

    def test_a_reset_forgets_it(self, screens: Screens, chain: Chain) -> None:
        screens.show(chain.frame(40, PlayerState.FINISHED))
        chain.summaries.clear()
        frame = screens.show(chain.frame(12))
        assert screens.shared.shown(frame) == "draw"
        assert frame.answer is None

    def test_on_an_event_loop_it_is_worked_out_aside(self, chain: Chain) -> None:
        async def run() -> list[str]:
            arrived = asyncio.Event()
            screens = Screens(chain, arrived.set)
            end = chain.frame(40, PlayerState.FINISHED)
            screens.show(end)
            texts = [screens.sentence]
            await arrived.wait()
            screens.show(end)
            return [*texts, screens.sentence]

        before, after = asyncio.run(run())
        assert before.startswith("This draw")
        assert before.endswith("computing the answer …")
        assert "group" in after

    def test_without_a_thread_it_comes_with_the_frame(self) -> None:
        chain = Chain(n_draws=80)

        async def run() -> tuple[str, str]:
            screens = Screens(chain, has_thread=False)
            playing = chain.frame(60, PlayerState.PLAYING)
            assert screens.show(playing).answer is None, "too early for an answer that was not asked for"
            screens.answers._started -= 60.0
            brief = screens.show(playing)
            assert brief.answer is not None
            assert not brief.answer_is_complete
            assert not brief.answer_is_coming
            running = screens.sentence
            assert screens.show(chain.frame(80, PlayerState.FINISHED)).answer_is_complete
            return running, screens.sentence

        running, ended = asyncio.run(run())
        assert "Answer after 60 iterations: " in running
        assert "group" in ended
        assert "on its way" not in ended

    def test_while_the_chain_runs_a_brief_one_is_told_and_colours_stay(self) -> None:
        chain = Chain(n_draws=80)

        async def run() -> tuple[str, str]:
            arrived = asyncio.Event()
            screens = Screens(chain, arrived.set)
            frame = chain.frame(60, PlayerState.PLAYING)
            assert not screens.show(frame).answer_is_coming, "too early to speak unasked"
            screens.answers._started -= 60.0
            few = screens.show(chain.frame(40, PlayerState.PLAYING))
            assert not few.answer_is_coming, "too few draws to speak unasked"
            assert screens.show(frame).answer_is_coming
            await arrived.wait()
            assert screens.shared.shown(screens.show(frame)) == "draw"
            told = screens.sentence
            # The same draws at the end: then all of them count.
            end = chain.frame(60, PlayerState.FINISHED, target=60)
            arrived.clear()
            assert not screens.show(end).answer_is_complete
            await arrived.wait()
            assert screens.show(end).answer_is_complete
            return told, screens.sentence

        running, ended = asyncio.run(run())
        assert running.startswith("This draw")
        assert "Answer after 60 iterations: " in running
        assert "Answer after" not in ended
        assert "group" in ended

    def test_an_old_one_is_not_told_beside_a_later_draw(self, screens: Screens, chain: Chain) -> None:
        found = screens.show(chain.frame(20, PlayerState.FINISHED, target=20)).answer
        assert found is not None
        told = {}
        for iteration, of, burn_in in ((39, 9, 0), (40, 10, 0), (40, 20, 40), (40, 20, 20), (40, 21, 20)):
            chain.summaries.burn_in = burn_in
            frame = replace(
                chain.frame(iteration, PlayerState.PLAYING, target=80), answer=replace(found, iteration=of)
            )
            screens.shared.show(frame)
            told[of, burn_in] = screens.headline.aside(frame).partition(" iterations")[0]
        expected = {(10, 0): "Answer after 10", (21, 20): "Answer after 21"}
        assert told == {key: expected.get(key, "") for key in told}

    def test_a_brief_one_waits_for_half_as_many_draws_again(self) -> None:
        chain = Chain(n_draws=100)

        async def run() -> list[bool]:
            arrived = asyncio.Event()
            screens = Screens(chain, arrived.set)
            live = screens.answers
            live._started -= 60.0
            screens.show(chain.frame(60, PlayerState.PLAYING))
            await arrived.wait()
            asked = []
            for iteration in (89, 90):
                live._due, live._started = 0.0, live._started - 60.0
                asked.append(screens.show(chain.frame(iteration, PlayerState.PLAYING)).answer_is_coming)
            live.wait()
            return asked

        assert asyncio.run(run()) == [False, True]
