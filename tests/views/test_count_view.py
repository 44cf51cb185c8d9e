"""How many clusters: shares of draws beside the prior."""

import numpy as np
from views.chains import Chain, Wire

from ewens_widgets.model.priors.ewens import Ewens
from ewens_widgets.views import CountView, Stage


def shown(chain: Chain, stage: Stage) -> CountView:
    view = CountView(stage)
    view.prepare(chain.dataset, chain.posterior)
    return view


def test_bars_are_shares_of_the_draws_that_count(wire: Wire, chain: Chain, stage: Stage) -> None:
    view = shown(chain, stage)
    frame = chain.frame(20)
    view.show(frame)
    counts = frame.summary.n_clusters[frame.summary.start :]
    values, times = np.unique(counts, return_counts=True)
    shares = dict(zip(np.asarray(view.bars.x).astype(int), np.asarray(view.bars.y), strict=True))
    for value, time in zip(values.tolist(), times.tolist(), strict=True):
        assert abs(shares[value] - time / counts.size) < 1e-4
    assert abs(sum(shares.values()) - 1.0) < 1e-3


def test_the_line_is_the_law_of_the_prior(wire: Wire, chain: Chain, stage: Stage) -> None:
    view = shown(chain, stage)
    law = Ewens(chain.posterior.concentration).count_pmf(chain.posterior.n_objects)
    places = np.asarray(view.prior.x).astype(int)
    np.testing.assert_allclose(view.prior.y, law[places], atol=1e-4)


def test_before_the_first_draw_there_are_no_bars(wire: Wire, chain: Chain, stage: Stage) -> None:
    view = shown(chain, stage)
    assert not np.asarray(view.bars.y).any()
