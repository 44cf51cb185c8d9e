"""Traces and acceptance rates."""

from dataclasses import replace

import numpy as np
from views.chains import Chain, made

from ewens_widgets.views import SharedState, TracesView
from ewens_widgets.views.traces_view import thinned


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
