"""Several chains that are played as one, and recorded draws that are played again."""

import numpy as np
import pytest
from traces import blob_trace

from ewens_widgets.playback import Player, PlayerState
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.views.labs.ensemble import ChainsRecord, Ensemble, TraceReplay


def ensemble(n_chains: int = 3, n_draws: int = 40) -> Ensemble:
    traces = [blob_trace(n_objects=12, n_draws=n_draws) for _ in range(n_chains)]
    replays = [TraceReplay(trace) for trace in traces]
    recorders = [
        DrawTable(trace.posterior, one.move_names) for trace, one in zip(traces, replays, strict=True)
    ]
    return Ensemble(replays, recorders)


def lengths(together: Ensemble) -> list[int]:
    return [len(recorder) for recorder in together.recorders]


def test_blocks_and_steps_are_recorded_for_every_chain() -> None:
    together = ensemble()
    player = Player(together, together.recorders[0], target_iterations=40)
    player.step_sync(9)
    player.step_sync()
    assert lengths(together) == [10, 10, 10]
    assert together.iteration == 10
    player.run_to_end_sync()
    assert player.status.state is PlayerState.FINISHED
    assert lengths(together) == [40, 40, 40]
    for chain, recorder in zip(together.chains, together.recorders, strict=True):
        np.testing.assert_array_equal(recorder.labels, chain._draws.labels)
        np.testing.assert_array_equal(recorder.iterations, np.arange(1, 41))


def test_a_chain_that_is_behind_after_an_interrupt_catches_up(monkeypatch: pytest.MonkeyPatch) -> None:
    together = ensemble()
    player = Player(together, together.recorders[0], target_iterations=40)
    player.step_sync(4)
    with monkeypatch.context() as patched:
        patched.setattr(together.chains[2], "advance", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            player.step_sync(5)
    assert lengths(together)[0] == 4
    assert player.status.iteration == 4
    player.step_sync(8)
    assert lengths(together) == [12, 12, 12]


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_draws_that_are_used_up_end_the_run() -> None:
    together = ensemble(2, n_draws=6)
    player = Player(together, together.recorders[0], target_iterations=50)
    player.run_to_end_sync()
    assert player.status.state is PlayerState.FINISHED
    assert player.status.iteration == 6


def test_a_reset_takes_all_chains_back() -> None:
    together = ensemble()
    player = Player(together, together.recorders[0], target_iterations=40)
    player.step_sync(7)
    player.reset()
    assert lengths(together) == [0, 0, 0]
    assert [chain.iteration for chain in together.chains] == [0, 0, 0]
    assert together.runs == 2


def test_one_chain_is_no_ensemble() -> None:
    trace = blob_trace(n_objects=12, n_draws=5)
    with pytest.raises(ValueError, match="at least two chains"):
        Ensemble([TraceReplay(trace)], [DrawTable(trace.posterior, ())])


def test_what_counts_is_the_later_half_until_the_burn_in_is_over() -> None:
    together = ensemble()
    record = ChainsRecord(together, ("a", "b", "c"), target=40, burn_in=10)
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
