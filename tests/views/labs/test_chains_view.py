"""The view of several chains without a browser."""

import asyncio
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from playback.fakes import at_rest

import ewens_widgets as ew
from ewens_widgets.playback import PlayerState
from ewens_widgets.views.figures import horizon
from ewens_widgets.views.labs.chains_view import ChainsView

pytestmark = pytest.mark.usefixtures("wire")


@pytest.fixture
def square() -> ew.datasets.Dataset:
    return ew.datasets.unit_square(per_cluster=4, seed=0)


@pytest.fixture
def view(square: ew.datasets.Dataset) -> ChainsView:
    return ChainsView(square, chains=3, model="I", iterations=120, burn_in=20)


def run(view: ChainsView, count: int) -> None:
    view.player.step_sync(count)
    view.player.refresh()


def printed(view: ChainsView) -> dict[str, float]:
    cells = re.findall(r'data-(rhat|ess)="(\w+)" data-value="([^"]*)"', view.views["diagnostics"].table.value)
    return {f"{kind} {name}": float(value) for kind, name, value in cells}


def test_chains_start_apart_and_nothing_is_said_yet(view: ChainsView) -> None:
    assert view.record.names == ("chain 1, singletons", "chain 2, one-cluster", "chain 3, k-means")
    assert "Will they agree?" in view.sentence.value
    assert view.player.status.iteration == 0
    run(view, 5)
    assert "Too early to say" in view.sentence.value
    assert view.agreement.verdict == "unknown"
    assert printed(view) == {}


def test_what_is_printed_are_the_diagnostics_of_the_draws(view: ChainsView) -> None:
    view.player.run_to_end_sync()
    view.player.refresh()
    assert [len(trace) for trace in view.traces] == [100] * 3
    expected = ew.diagnose(list(view.traces))
    numbers = printed(view)
    for name in ("n_clusters", "log_posterior", "theta"):
        assert numbers[f"rhat {name}"] == pytest.approx(expected.rhat[name], rel=1e-6)
        assert numbers[f"ess {name}"] == pytest.approx(expected.ess_bulk[name], rel=1e-6)
    assert view.agreement.similarity_gap == pytest.approx(expected.similarity_gap, abs=1e-6)


def test_each_chain_is_the_sampler_with_its_start_and_seed(
    square: ew.datasets.Dataset, view: ChainsView
) -> None:
    view.player.run_to_end_sync()
    seeds = np.random.SeedSequence(0).spawn(3)
    starts = ("singletons", "one-cluster", "k-means")
    for trace, start, seed in zip(view.traces, starts, seeds, strict=True):
        sampler = ew.Sampler(square, model="I", initial=start, seed=seed)
        expected = sampler.sample(100, burn_in=20, progress=False)
        np.testing.assert_array_equal(trace.labels, expected.labels)


def test_traces_of_all_chains_are_drawn_over_each_other(view: ChainsView) -> None:
    run(view, 30)
    panel = view.views["traces"].panels[0]
    assert panel.lines.y.shape == (3, 30)
    drawn = np.stack([recorder.n_clusters for recorder in view.record.recorders])
    low, high = panel.axes[1].scale.min, panel.axes[1].scale.max
    np.testing.assert_array_equal(panel.lines.y, np.clip(drawn, low, high))
    assert len(set(panel.lines.colors)) == 3


def test_after_one_iteration_there_is_a_line_for_every_chain(view: ChainsView) -> None:
    run(view, 1)
    panel = view.views["traces"].panels[0]
    drawn = np.array([recorder.n_clusters[0] for recorder in view.record.recorders])
    np.testing.assert_array_equal(panel.lines.y, np.stack([drawn, drawn], axis=1))


def test_stepping_one_by_one_gives_the_same_chains_as_running(square: ew.datasets.Dataset) -> None:
    settings = {"chains": 2, "model": "I", "iterations": 12, "burn_in": 0}
    one, other = ChainsView(square, **settings), ChainsView(square, **settings)
    for _ in range(12):
        one.player.step_sync()
    other.player.run_to_end_sync()
    for first, second in zip(one.traces, other.traces, strict=True):
        np.testing.assert_array_equal(first.labels, second.labels)
        np.testing.assert_array_equal(first.log_posterior, second.log_posterior)


def test_the_curves_show_how_the_numbers_evolved(view: ChainsView) -> None:
    view.player.run_to_end_sync()
    view.player.refresh()
    diagnostics = view.views["diagnostics"]
    assert diagnostics.rhat.lines.visible
    assert diagnostics.rhat.lines.x[-1] == 120
    assert np.all(np.diff(diagnostics.rhat.lines.x) > 0)
    place = int(diagnostics.ess.lines.x[-5])
    expected = ew.diagnose([recorder.trace()[:place][20:] for recorder in view.record.recorders])
    np.testing.assert_allclose(diagnostics.ess.lines.y[0, -5], expected.ess_bulk["n_clusters"], rtol=1e-6)


def test_similarities_of_each_chain_and_pooled_are_pictures(view: ChainsView) -> None:
    view.player.run_to_end_sync()
    view.player.refresh()
    images = view.views["similarities"].images
    assert list(images) == [*view.record.names, "pooled"]
    assert all(bytes(image.value).startswith(b"\x89PNG") for image in images.values())
    order = view.views["similarities"]._order
    pooled = np.mean([trace.similarity() for trace in view.traces], axis=0)[np.ix_(order, order)]
    np.testing.assert_allclose(view.views["similarities"]._pixels["pooled"] / 199, 1.0 - pooled, atol=0.003)


def test_looking_back_shows_what_was_known_then(view: ChainsView) -> None:
    run(view, 40)
    then = view.sentence.value, printed(view)
    run(view, 60)
    assert (view.sentence.value, printed(view)) != then
    view.player.seek(40)
    view.player.refresh()
    assert (view.sentence.value, printed(view)) == then
    assert view.views["traces"].panels[0].lines.y.shape == (3, 40)


def test_a_reset_forgets_the_run(view: ChainsView) -> None:
    run(view, 60)
    first = printed(view)
    view.player.reset()
    view.player.refresh()
    assert all(len(recorder) == 0 for recorder in view.record.recorders)
    assert "Press Play" in view.sentence.value
    assert not view.views["traces"].panels[0].lines.visible
    run(view, 60)
    assert printed(view) == first, "the same seed gives the same run"


def test_numbers_of_an_earlier_run_do_not_survive_an_unseen_reset(square: ew.datasets.Dataset) -> None:
    view = ChainsView(square, chains=2, model="I", iterations=60, burn_in=0)
    run(view, 60)
    view.record.agreement(60)
    view.player.reset()
    with pytest.raises(ValueError, match="more than the draws of the shortest chain"):
        view.record.agreement(60)


def test_recorded_chains_are_shown_finished_and_can_be_played_again(view: ChainsView) -> None:
    view.player.run_to_end_sync()
    chains = SimpleNamespace(traces=view.traces, starts=("a", "b", "c"))
    shown = ChainsView(chains)
    assert shown.is_recorded
    assert shown.record.names == ("chain 1, a", "chain 2, b", "chain 3, c")
    assert shown.player.status.state is PlayerState.FINISHED
    expected = ew.diagnose(list(view.traces))
    assert shown.agreement.rhat["theta"] == pytest.approx(expected.rhat["theta"], rel=1e-6)
    shown.player.seek(50)
    shown.player.refresh()
    assert shown.views["traces"].panels[0].lines.y.shape == (3, 50)
    shown.player.reset()
    shown.player.step_sync(7)
    assert [len(recorder) for recorder in shown.record.recorders] == [7, 7, 7]
    np.testing.assert_array_equal(shown.record.recorders[1].labels, view.traces[1].labels[:7])
    shown.player.run_to_end_sync()
    assert repr(shown) == "ChainsView('recorded chains', 3 chains, iteration 100 of 100)"
    assert ChainsView(list(view.traces)).record.names == ("chain 1", "chain 2", "chain 3")


def test_traces_of_different_lengths_are_cut_to_their_last_draws(view: ChainsView) -> None:
    view.player.run_to_end_sync()
    one, two, _ = view.traces
    shown = ChainsView([one[30:], two])
    np.testing.assert_array_equal(shown.record.recorders[1].labels, two.labels[30:])


def test_starts_can_be_chosen(square: ew.datasets.Dataset) -> None:
    same = ChainsView(square, chains=2, initial="prior")
    assert same.record.names == ("chain 1, prior", "chain 2, prior")
    given = ChainsView(square, chains=2, initial=[np.arange(16) % 2, "k-means"])
    assert given.record.names == ("chain 1, labels", "chain 2, k-means")


def test_a_warning_is_given_once_and_not_for_each_chain(square: ew.datasets.Dataset) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ChainsView(square, chains=3, moves="paper-2", acceptance="as-printed")
    assert len([one for one in caught if "as-printed" in str(one.message)]) == 1


def test_it_plays_in_the_background_and_pauses(square: ew.datasets.Dataset) -> None:
    async def play() -> None:
        view = ChainsView(square, chains=2, model="I", iterations=100_000, speed=None)
        view.transport.buttons["Play"].click()
        while view.player.status.iteration <= 20:
            await asyncio.sleep(0)
        view.transport.buttons["Play"].click()  # it says Pause
        stopped = view.player.status.iteration
        await at_rest(view.player)
        assert view.player.status.iteration == stopped > 20
        assert len(view.record.recorders[1]) == stopped
        view.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("length", "target", "end"),
    [(0, 1000, 50), (50, 1000, 50), (51, 1000, 100), (700, 800, 800), (3, 2, 2), (2e5, 3e5, 3e5)],
)
def test_the_axis_grows_with_the_run(length: int, target: int, end: float) -> None:
    assert horizon(int(length), int(target)) == end


def test_the_status_tells_nothing_of_one_chain_alone(view: ChainsView) -> None:
    run(view, 30)
    assert view.transport.status.value == "iteration 30 of 120"
