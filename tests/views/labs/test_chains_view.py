"""Several chains played as one, and their view, without a browser."""

import asyncio
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from playback.fakes import at_rest
from traces import blob_trace

import ewens_widgets as ew
from ewens_widgets.playback import Player, PlayerState
from ewens_widgets.playback.player import Replay
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.views.figures import horizon
from ewens_widgets.views.labs.chain_panels import Ensemble
from ewens_widgets.views.labs.chains_view import ChainsView

pytestmark = pytest.mark.usefixtures("wire")


@pytest.fixture
def square() -> ew.datasets.Dataset:
    return ew.datasets.unit_square(per_cluster=4, seed=0)


@pytest.fixture
def view(square: ew.datasets.Dataset) -> ChainsView:
    return ChainsView(square, chains=3, model="I", iterations=120, burn_in=20)


def run(view: ChainsView, count: int = 10**6) -> None:
    view.player.step_sync(min(count, view.player.status.target - view.player.status.iteration))
    view.player.refresh()


def clusters(view: ChainsView) -> np.ndarray:
    return np.stack([recorder.n_clusters for recorder in view.record.recorders])


def printed(view: ChainsView) -> dict[str, float]:
    cells = re.findall(r'data-(rhat|ess)="(\w+)" data-value="([^"]*)"', view.views["diagnostics"].table.value)
    return {f"{kind} {name}": float(value) for kind, name, value in cells}


def test_chains_start_apart_and_nothing_is_said_yet(view: ChainsView) -> None:
    assert view.record.names == ("chain 1, singletons", "chain 2, one-cluster", "chain 3, k-means")
    assert "Will they agree?" in view.sentence.value
    assert view.player.status.iteration == 0
    run(view, 5)
    assert "Too early to say" in view.sentence.value
    assert view.transport.status.value == "iteration 5 of 120", "nothing of one chain alone"
    assert view.agreement.verdict == "unknown"
    assert printed(view) == {}


def test_numbers_and_pictures_are_those_of_the_draws(view: ChainsView) -> None:
    run(view)
    assert [len(trace) for trace in view.traces] == [100] * 3
    expected = ew.diagnose(list(view.traces))
    numbers = printed(view)
    for name in ("n_clusters", "log_posterior", "theta"):
        assert numbers[f"rhat {name}"] == pytest.approx(expected.rhat[name], rel=1e-6)
        assert numbers[f"ess {name}"] == pytest.approx(expected.ess_bulk[name], rel=1e-6)
    assert view.agreement.similarity_gap == pytest.approx(expected.similarity_gap, abs=1e-6)
    rhat, ess = (curves.lines for curves in view.views["diagnostics"].curves)
    assert rhat.visible
    assert rhat.x[-1] == 120
    assert np.all(np.diff(rhat.x) > 0)
    earlier = ew.diagnose([recorder.trace()[: int(ess.x[-5])][20:] for recorder in view.record.recorders])
    np.testing.assert_allclose(ess.y[0, -5], earlier.ess_bulk["n_clusters"], rtol=1e-6)
    heatmaps = view.views["similarities"]
    assert list(heatmaps.images) == [*view.record.names, "pooled"]
    assert all(bytes(image.value).startswith(b"\x89PNG") for image in heatmaps.images.values())
    pooled = np.mean([trace.similarity() for trace in view.traces], axis=0)
    pooled = pooled[np.ix_(heatmaps._order, heatmaps._order)]
    np.testing.assert_allclose(heatmaps.images["pooled"].pixels / 199, 1.0 - pooled, atol=0.003)


def test_each_chain_is_the_sampler_with_its_start_and_seed(
    square: ew.datasets.Dataset, view: ChainsView
) -> None:
    view.player.run_to_end_sync()
    seeds = np.random.SeedSequence(0).spawn(3)
    for trace, start, seed in zip(view.traces, ("singletons", "one-cluster", "k-means"), seeds, strict=True):
        sampler = ew.Sampler(square, model="I", initial=start, seed=seed)
        expected = sampler.sample(100, burn_in=20, progress=False)
        np.testing.assert_array_equal(trace.labels, expected.labels)


def test_traces_of_all_chains_are_drawn_over_each_other(view: ChainsView) -> None:
    run(view, 1)
    panel = view.views["traces"].traces[0]
    np.testing.assert_array_equal(panel.lines.y, np.repeat(clusters(view), 2, axis=1))
    run(view, 29)
    assert panel.lines.y.shape == (3, 30)
    scale = panel.axes[1].scale
    np.testing.assert_array_equal(panel.lines.y, np.clip(clusters(view), scale.min, scale.max))
    assert len(set(panel.lines.colors)) == 3


def test_looking_back_shows_what_was_known_then_and_a_reset_forgets_it(view: ChainsView) -> None:
    run(view, 40)
    then = view.sentence.value, printed(view)
    run(view, 60)
    assert (view.sentence.value, printed(view)) != then
    view.player.seek(40)
    view.player.refresh()
    assert (view.sentence.value, printed(view)) == then
    assert view.views["traces"].traces[0].lines.y.shape == (3, 40)
    view.player.reset()
    view.player.refresh()
    assert all(len(recorder) == 0 for recorder in view.record.recorders)
    assert "Press Play" in view.sentence.value
    assert not view.views["traces"].traces[0].lines.visible
    run(view, 40)
    assert (view.sentence.value, printed(view)) == then, "the same seed gives the same run"


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
    assert shown.views["traces"].traces[0].lines.y.shape == (3, 50)
    shown.player.reset()
    shown.player.step_sync(7)
    assert [len(recorder) for recorder in shown.record.recorders] == [7, 7, 7]
    np.testing.assert_array_equal(shown.record.recorders[1].labels, view.traces[1].labels[:7])
    shown.player.run_to_end_sync()
    assert repr(shown) == "ChainsView('recorded chains', 3 chains, iteration 100 of 100)"
    one, two, _ = view.traces
    shown = ChainsView([one[30:], two])
    assert shown.record.names == ("chain 1", "chain 2")
    np.testing.assert_array_equal(shown.record.recorders[1].labels, two.labels[30:], "the last draws")


def test_starts_can_be_chosen_and_a_warning_is_given_once(square: ew.datasets.Dataset) -> None:
    given = ChainsView(square, chains=2, initial=[np.arange(16) % 2, "k-means"])
    assert given.record.names == ("chain 1, labels", "chain 2, k-means")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        same = ChainsView(square, chains=2, initial="prior", moves="paper-2", acceptance="as-printed")
    assert same.record.names == ("chain 1, prior", "chain 2, prior")
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


@pytest.fixture
def together() -> Ensemble:
    return ensemble(n_chains=3, n_draws=40)


def ensemble(n_chains: int, n_draws: int, burn_in: int = 0) -> Ensemble:
    traces = [blob_trace(n_objects=12, n_draws=n_draws) for _ in range(n_chains)]
    replays = [Replay(trace) for trace in traces]
    recorders = [DrawTable(trace.posterior, trace.move_names) for trace in traces]
    return Ensemble(replays, [str(place) for place in range(n_chains)], recorders, 40, burn_in)


def lengths(together: Ensemble) -> list[int]:
    return [len(recorder) for recorder in together.recorders]


def test_blocks_and_steps_are_recorded_for_every_chain_until_a_reset(together: Ensemble) -> None:
    player = Player(together, together.recorders[0], target_iterations=40)
    player.step_sync(9)
    player.step_sync()
    assert lengths(together) == [10, 10, 10]
    assert together.iteration == 10
    player.run_to_end_sync()
    assert player.status.state is PlayerState.FINISHED
    assert lengths(together) == [40, 40, 40]
    for chain, recorder in zip(together.chains, together.recorders, strict=True):
        np.testing.assert_array_equal(recorder.labels, chain.draws.labels)
        np.testing.assert_array_equal(recorder.iterations, np.arange(1, 41))
    player.reset()
    assert lengths(together) == [0, 0, 0]
    assert [chain.iteration for chain in together.chains] == [0, 0, 0]


def test_a_chain_that_is_behind_after_an_interrupt_catches_up(
    together: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    player = Player(together, together.recorders[0], target_iterations=40)
    player.step_sync(4)
    with monkeypatch.context() as patched:
        patched.setattr(together.chains[2], "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            player.step_sync(5)
    assert lengths(together)[0] == 4
    assert player.status.iteration == 4
    player.step_sync(8)
    assert lengths(together) == [12, 12, 12]


def test_draws_that_are_used_up_end_the_run() -> None:
    together = ensemble(2, n_draws=6)
    player = Player(together, together.recorders[0], target_iterations=50)
    player.run_to_end_sync()
    assert player.status.state is PlayerState.FINISHED
    assert player.status.iteration == 6


def test_what_counts_is_the_later_half_until_the_burn_in_is_over() -> None:
    record = together = ensemble(3, 40, burn_in=10)
    player = Player(together, together.recorders[0], target_iterations=40)
    player.run_to_end_sync()
    assert [record.start(length) for length in (0, 8, 19, 20, 40)] == [0, 4, 9, 10, 10]
    assert record.agreement(40).n_draws == 30
    assert record.agreement(12).is_known is False
    places = [place for place, _ in record.course(40)]
    assert places[-1] == 40
    assert places == sorted(places)
    similarity = record.summaries(40)[0].similarity()
    labels = together.recorders[0].labels[10:]
    np.testing.assert_allclose(
        similarity, np.mean(labels[:, :, None] == labels[:, None, :], axis=0), atol=1e-6
    )
    assert record.course(0) == []
