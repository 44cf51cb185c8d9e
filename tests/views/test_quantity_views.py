"""Bars of the number of clusters and θ, beside their priors; traces and acceptance rates."""

from dataclasses import replace

import numpy as np
import pytest
from views.chains import Chain, Wire, made

from ewens_widgets.model.priors.ewens import Ewens
from ewens_widgets.playback import PlayerState
from ewens_widgets.views import CountView, SharedState, ThetaView, TracesView
from ewens_widgets.views.headline_view import Headline
from ewens_widgets.views.quantity_views import thinned


def shown(chain: Chain, shared: SharedState) -> CountView:
    view = CountView(shared)
    view.prepare(chain.dataset, chain.posterior)
    return view


def test_bars_are_shares_of_the_draws_that_count(wire: Wire, chain: Chain, shared: SharedState) -> None:
    view = shown(chain, shared)
    frame = chain.frame(20)
    view.show(frame)
    counts = frame.summary.n_clusters[frame.summary.start :]
    values, times = np.unique(counts, return_counts=True)
    shares = dict(zip(np.asarray(view.bars.x).astype(int), np.asarray(view.bars.y), strict=True))
    for value, time in zip(values.tolist(), times.tolist(), strict=True):
        assert abs(shares[value] - time / counts.size) < 1e-4
    assert abs(sum(shares.values()) - 1.0) < 1e-3


def test_the_line_is_the_law_of_the_prior(wire: Wire, chain: Chain, shared: SharedState) -> None:
    view = shown(chain, shared)
    law = Ewens(chain.posterior.concentration).count_pmf(chain.posterior.n_objects)
    places = np.asarray(view.prior.x).astype(int)
    np.testing.assert_allclose(view.prior.y, law[places], atol=1e-4)


def test_before_the_first_draw_there_are_no_bars(wire: Wire, chain: Chain, shared: SharedState) -> None:
    view = shown(chain, shared)
    assert not np.asarray(view.bars.y).any()


def test_the_number_of_groups_is_marked_where_the_answer_is_on_display(
    wire: Wire, chain: Chain, shared: SharedState
) -> None:
    view, headline = shown(chain, shared), Headline(shared)
    headline.prepare(chain.dataset)
    view.show(chain.frame(30))
    assert not view.groups.y.any()
    end, answers = chain.frame(40, PlayerState.FINISHED), chain.answers(shared)
    answers.ask(end)
    for screen in (shared, view, headline):
        screen.show(answers.add_to(end))
    answer = chain.trace.answer()
    expected = [answer.shares.get(int(number), 0.0) for number in view.groups.x]
    np.testing.assert_allclose(view.groups.y, expected, atol=1e-4)
    assert view.groups.x[np.argmax(view.groups.y)] == answer.n_clusters
    assert view.groups.y.sum() == pytest.approx(1.0, abs=1e-3)
    assert "groups" in view.legend.value
    headline.colouring.value = "draw"
    assert not view.groups.y.any()
    assert "groups" not in view.legend.value


@pytest.mark.parametrize("n_objects", [30, 80, 1000])
def test_bars_stand_where_the_draws_are_however_many_clusters_they_have(wire: Wire, n_objects: int) -> None:
    chain = Chain(n_objects=n_objects, n_draws=3)
    view = shown(chain, SharedState())
    view._draw_bars(np.full(10, n_objects, dtype=np.intp), {4: 0.75, n_objects: 0.25})
    assert 1 <= view.bars.x.size <= 60
    place = int(np.argmax(view.bars.y))
    assert view.bars.y[place] == 1.0
    assert abs(view.bars.x[place] - n_objects) <= view._width, "all draws have every object alone"
    assert view._x_scale.max > n_objects
    assert view.groups.y[place] == 0.25
    assert abs(view.groups.x[np.argmax(view.groups.y)] - 4) <= view._width


class TestTheta:
    def test_bars_are_average_and_conditional(self, shared: SharedState, chain: Chain) -> None:
        view = made(ThetaView, shared, chain)
        view.show(chain.frame(10))
        np.testing.assert_allclose(view.bars.y[0], chain.trace.theta_weights[:10].mean(axis=0), atol=1e-4)
        np.testing.assert_allclose(view.bars.y[1], chain.events[9].theta_weights, atol=1e-4)
        np.testing.assert_allclose(np.sum(view.prior.y), 1.0)

    @pytest.mark.usefixtures("wire")
    def test_burn_in_is_left_out(self) -> None:
        chain = Chain(burn_in=8)
        view = made(ThetaView, SharedState(), chain)
        view.show(chain.frame(10))
        np.testing.assert_allclose(view.bars.y[0], chain.trace.theta_weights[8:10].mean(axis=0), atol=1e-4)


class TestTraces:
    def test_lines_are_the_traces(self, shared: SharedState, chain: Chain) -> None:
        view = made(TracesView, shared, chain)
        view.show(chain.frame(25))
        clusters, posterior, theta = view.panels
        np.testing.assert_array_equal(clusters.lines.x, np.arange(1, 26))
        np.testing.assert_array_equal(
            clusters.lines.y,
            np.clip(chain.trace.n_clusters[:25], clusters.axes[1].scale.min, clusters.axes[1].scale.max),
        )
        assert posterior.lines.visible
        assert theta.axes[0].scale.max == 40

    def test_the_axis_grows_with_the_run(self, shared: SharedState, chain: Chain) -> None:
        view = made(TracesView, shared, chain)
        frame = chain.frame(25)
        axis = view.panels[0].axes[0]
        for iteration, target, end, tick_format in (
            (25, 100_000, 50, "~g"),
            (51, 100_000, 100, "~g"),
            (3_000, 3_000, 3_000, "~g"),
            (60_000, 200_000, 100_000, "~s"),
        ):
            status = replace(frame.status, iteration=iteration, target=target)
            view.draw(replace(frame, status=status))
            assert (axis.scale.max, axis.tick_format) == (end, tick_format)

    def test_burn_in_is_marked(self, shared: SharedState, chain: Chain) -> None:
        shared.burn_in = 12
        view = made(TracesView, shared, chain)
        view.show(chain.frame(25))
        assert all(panel.behind.visible for panel in view.panels)
        np.testing.assert_array_equal(view.panels[0].behind.x, [12, 12])
        shared.burn_in = 0
        view.show(chain.frame(26))
        assert not any(panel.behind.visible for panel in view.panels)

    def test_acceptance_by_move(self, shared: SharedState, chain: Chain) -> None:
        view = made(TracesView, shared, chain)
        view.show(chain.frame(25))
        rate = chain.trace[:25].acceptance["gibbs"]
        assert f"{100 * rate:.1f} %" in view.acceptance.value

    def test_long_traces_are_thinned(self) -> None:
        places = thinned(100_001, 240)
        assert places.size <= 240
        assert places[-1] == 100_000
        assert np.all(np.diff(places) == np.diff(places)[0])
        np.testing.assert_array_equal(thinned(5), np.arange(5))
        assert thinned(0).size == 0
