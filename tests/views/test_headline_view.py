"""The sentence is about what is on display, and the buttons choose what that is."""

import asyncio

import numpy as np
import pytest
from views.chains import Chain, Wire

from ewens_widgets.analysis.convergence import diagnose
from ewens_widgets.playback import PlayerState
from ewens_widgets.views import PartitionView, SharedState
from ewens_widgets.views.headline_view import Headline
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
    assert "agreement with classes" in headline.sentence.value


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
    assert headline.sentence.value.startswith(f"Known classes: {np.unique(classes).size}")
    headline.colouring.value = "draw"
    assert headline.sentence.value.startswith("This draw")


def test_without_known_classes_they_are_not_offered(wire: Wire, chain: Chain) -> None:
    from dataclasses import replace

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
def test_a_leap_is_told() -> None:
    chain = Chain(n_draws=120)
    shared = SharedState()
    shared.prepare(chain.posterior)
    headline = Headline(shared)
    headline.prepare(chain.dataset)
    values = chain.recorder.log_posterior
    values.setflags(write=True)
    values[:] = np.random.default_rng(0).normal(size=values.size)
    headline.show(chain.frame(120))
    assert "leap" not in headline.sentence.value
    values[64:] += 50.0
    headline.show(chain.frame(70))
    assert "leap" not in headline.sentence.value, "a few draws may be luck"
    headline.show(chain.frame(100))
    sentence = headline.sentence.value
    found = int(sentence.rpartition("A leap to better draws at iteration ")[2].partition(",")[0])
    # The first run of twenty draws most of which are better.
    assert 50 <= found <= 65
    assert sentence.endswith(", after the burn-in</div>")
    chain.summaries.burn_in = 90
    headline.show(chain.frame(100))
    assert headline.sentence.value.endswith(f"at iteration {found}</div>")


class TestAnswer:
    def test_at_the_end_the_colours_turn_to_it(self, headline: Headline, chain: Chain) -> None:
        shared = shared_of(headline)
        headline.show(chain.frame(39))
        assert shared.colouring == "draw"
        end = chain.frame(40, PlayerState.FINISHED)
        headline.show(end)
        assert shared.colouring == headline.colouring.value == "answer"
        answer = chain.trace.answer()
        np.testing.assert_array_equal(shared.labels(end), answer.labels)
        sentence = headline.sentence.value
        assert f" {answer.n_clusters} groups" in sentence or "one group" in sentence
        assert diagnose(chain.trace).sentence() in sentence

    def test_when_the_chain_goes_on_they_turn_back(self, headline: Headline, chain: Chain) -> None:
        shared = shared_of(headline)
        headline.show(chain.frame(20, PlayerState.FINISHED, target=20))
        assert shared.colouring == "answer"
        headline.show(chain.frame(21, PlayerState.PLAYING))
        assert shared.colouring == "draw"
        headline.show(chain.frame(40, PlayerState.FINISHED))
        assert shared.colouring == "answer"

    def test_it_has_the_best_colours(self, headline: Headline, chain: Chain) -> None:
        shared = shared_of(headline)
        # Many clusters before, of which some have lost their colours to others.
        for count in (10, 9, 8):
            shared.colours(chain.frame(39, labels=np.arange(30) % count))
        end = chain.frame(40, PlayerState.FINISHED)
        headline.show(end)
        colours = shared.colours(end)
        assert colours is not None
        assert set(colours.tolist()) == set(range(chain.trace.answer().n_clusters))

    def test_what_the_user_chose_stays(self, headline: Headline, chain: Chain) -> None:
        shared = shared_of(headline)
        end = chain.frame(40, PlayerState.FINISHED)
        headline.show(end)
        headline.colouring.value = "draw"
        headline.show(end)
        assert shared.colouring == "draw"
        headline.colouring.value = "classes"
        headline.show(chain.frame(40, PlayerState.FINISHED))
        assert shared.colouring == "classes"

    def test_what_was_restored_stays(self, headline: Headline, chain: Chain) -> None:
        shared = shared_of(headline)
        shared.restore("draw", "single", Cut(height=0.5), (), 40)
        headline.show(chain.frame(40, PlayerState.FINISHED))
        assert shared.colouring == "draw"

    def test_at_a_pause_it_is_that_of_the_draws_so_far(self, headline: Headline, chain: Chain) -> None:
        shared = shared_of(headline)
        headline.show(chain.frame(20))
        headline.colouring.value = "answer"
        reading = shared.live_answer.reading(chain.frame(20))
        assert reading is not None
        assert reading.iteration == 20
        np.testing.assert_array_equal(reading.answer.labels, chain.trace[:20].answer().labels)
        assert "After" not in headline.sentence.value
        # While the chain runs nothing is computed here, and the sentence says how old the answer is.
        headline.show(chain.frame(21, PlayerState.PLAYING))
        assert headline.sentence.value.startswith("After 20 iterations: ")

    def test_with_few_draws_there_is_none(self, headline: Headline, chain: Chain) -> None:
        headline.show(chain.frame(3))
        headline.colouring.value = "answer"
        assert headline.sentence.value.startswith("This draw")
        assert headline.sentence.value.endswith("An answer needs some more draws.")

    def test_a_fault_is_told_and_nothing_stops(
        self, headline: Headline, chain: Chain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(trace: object) -> None:
            raise ValueError("no memory for pairs")

        monkeypatch.setattr("ewens_widgets.views.shared_state._read", fail)
        headline.show(chain.frame(20))
        headline.colouring.value = "answer"
        assert headline.sentence.value.endswith("no memory for pairs")
        headline.show(chain.frame(40, PlayerState.FINISHED))
        assert headline.sentence.value.startswith("This draw")

    def test_a_reset_forgets_it(self, headline: Headline, chain: Chain) -> None:
        shared = shared_of(headline)
        headline.show(chain.frame(40, PlayerState.FINISHED))
        chain.summaries.clear()
        frame = chain.frame(12)
        headline.show(frame)
        assert shared.shown(frame) == "draw"
        assert shared.live_answer.reading(frame) is None

    @pytest.mark.usefixtures("wire")
    def test_on_an_event_loop_it_is_worked_out_aside(self, chain: Chain) -> None:
        async def run() -> list[str]:
            shared = SharedState()
            shared.prepare(chain.posterior, chain.dataset.labels)
            headline = Headline(shared)
            headline.prepare(chain.dataset)
            headline.show(chain.frame(40, PlayerState.FINISHED))
            texts = [headline.sentence.value]
            arrived = asyncio.Event()
            shared.observe(arrived.set)
            await arrived.wait()
            texts.append(headline.sentence.value)
            return texts

        before, after = asyncio.run(run())
        assert before.startswith("This draw")
        assert before.endswith("the answer is on its way")
        assert "group" in after

    @pytest.mark.usefixtures("wire")
    def test_while_the_chain_runs_a_brief_one_is_told_and_colours_stay(self) -> None:
        chain = Chain(n_draws=80)

        async def run() -> tuple[str, str]:
            shared = SharedState()
            shared.prepare(chain.posterior, chain.dataset.labels)
            headline = Headline(shared)
            headline.prepare(chain.dataset)
            arrived = asyncio.Event()
            shared.observe(arrived.set)
            frame = chain.frame(60, PlayerState.PLAYING)
            headline.show(frame)
            assert not shared.live_answer.is_busy, "too early to speak unasked"
            shared.live_answer._started -= 60.0
            headline.show(chain.frame(40, PlayerState.PLAYING))
            assert not shared.live_answer.is_busy, "too few draws to speak unasked"
            headline.show(frame)
            await arrived.wait()
            told = headline.sentence.value
            assert shared.shown(frame) == "draw"
            # The same draws at the end: then all of them count.
            end = chain.frame(60, PlayerState.FINISHED, target=60)
            assert not shared.live_answer.is_of(end)
            arrived.clear()
            headline.show(end)
            await arrived.wait()
            assert shared.live_answer.is_of(end)
            return told, headline.sentence.value

        running, ended = asyncio.run(run())
        assert running.startswith("This draw")
        assert "All draws up to iteration 60: " in running
        assert "All draws" not in ended
        assert "group" in ended

    @pytest.mark.usefixtures("wire")
    def test_a_brief_one_waits_for_half_as_many_draws_again(self) -> None:
        chain = Chain(n_draws=100)

        async def run() -> list[bool]:
            shared = SharedState()
            shared.prepare(chain.posterior, chain.dataset.labels)
            live = shared.live_answer
            live._started -= 60.0
            arrived = asyncio.Event()
            shared.observe(arrived.set)
            shared.follow(chain.frame(60, PlayerState.PLAYING))
            await arrived.wait()
            asked = []
            for iteration in (89, 90):
                live._due, live._started = 0.0, live._started - 60.0
                shared.follow(chain.frame(iteration, PlayerState.PLAYING))
                asked.append(live.is_busy)
            live.wait()
            return asked

        assert asyncio.run(run()) == [False, True]
