"""The bars on the grid of θ."""

import numpy as np
import pytest
from views.chains import Chain, made

from ewens_widgets.views import Stage, ThetaView


class TestTheta:
    def test_bars_are_average_and_conditional(self, stage: Stage, chain: Chain) -> None:
        view = made(ThetaView, stage, chain)
        view.show(chain.frame(10))
        np.testing.assert_allclose(view.bars.y[0], chain.trace.theta_weights[:10].mean(axis=0), atol=1e-4)
        np.testing.assert_allclose(view.bars.y[1], chain.events[9].theta_weights, atol=1e-4)
        np.testing.assert_allclose(np.sum(view.prior.y), 1.0)

    @pytest.mark.usefixtures("wire")
    def test_burn_in_is_left_out(self) -> None:
        chain = Chain(burn_in=8)
        view = made(ThetaView, Stage(), chain)
        view.show(chain.frame(10))
        np.testing.assert_allclose(view.bars.y[0], chain.trace.theta_weights[8:10].mean(axis=0), atol=1e-4)
