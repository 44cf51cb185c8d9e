import numpy as np
import pytest
from playback.fakes import N_OBJECTS, FakeRecorder, make_event

from ewens_widgets.analysis.similarity import similarity
from ewens_widgets.playback.frame import RunningSummaries


def recorder_with(count: int) -> FakeRecorder:
    recorder = FakeRecorder()
    recorder.extend([make_event(iteration) for iteration in range(1, count + 1)])
    return recorder


def test_before_the_first_draw() -> None:
    summary = RunningSummaries(FakeRecorder(), burn_in=3).up_to(0)
    assert len(summary) == summary.n_draws == 0
    assert np.array_equal(summary.similarity(), np.eye(N_OBJECTS))
    assert np.array_equal(summary.theta_posterior(), np.zeros(3))
    assert summary.best() is None
    assert len(summary.trace()) == 0
    assert np.isnan(summary.acceptance()["gibbs"])
    assert summary.is_burning_in


def test_traces_end_where_the_display_is() -> None:
    summary = RunningSummaries(recorder_with(20)).up_to(12)
    assert summary.iterations.tolist() == [*range(1, 13)]
    events = [make_event(iteration) for iteration in range(1, 13)]
    assert summary.n_clusters.tolist() == [event.n_clusters for event in events]
    assert summary.theta.tolist() == [event.theta for event in events]
    assert summary.log_posterior.tolist() == [event.log_posterior for event in events]
    assert summary.concentration.tolist() == [1.0] * 12


@pytest.mark.parametrize(
    ("length", "burn_in", "start"), [(20, 0, 0), (20, 5, 5), (12, 5, 5), (5, 5, 0), (3, 5, 0)]
)
def test_averages_leave_out_the_burn_in(length: int, burn_in: int, start: int) -> None:
    recorder = recorder_with(20)
    summary = RunningSummaries(recorder, burn_in).up_to(length)
    assert summary.start == start
    assert summary.is_burning_in == (start == 0 and burn_in > 0)
    assert np.allclose(summary.similarity(), similarity(recorder.labels[start:length]))
    assert np.allclose(summary.theta_posterior(), recorder.theta_weights[start:length].mean(axis=0))
    made = recorder.proposals[start:length].sum(axis=0)
    taken = recorder.acceptances[start:length].sum(axis=0)
    assert summary.acceptance() == pytest.approx(
        {"gibbs": taken[0] / made[0], "reassign": taken[1] / made[1]}
    )


def test_growing_and_looking_back_agree_with_counting_anew() -> None:
    recorder = FakeRecorder()
    summaries = RunningSummaries(recorder, burn_in=4)
    rng = np.random.default_rng(5)
    for iteration in range(1, 120):
        recorder.extend([make_event(iteration)])
        length = int(rng.integers(1, iteration + 1)) if iteration % 3 else iteration
        start = 4 if length > 4 else 0
        expected = similarity(recorder.labels[start:length])
        assert np.allclose(summaries.up_to(length).similarity(), expected)


def test_looking_back_does_not_undo_the_present() -> None:
    summaries = RunningSummaries(recorder_with(50))
    summary = summaries.up_to(50)
    assert summary.similarity() is summary.similarity()
    with pytest.raises(ValueError, match="read-only"):
        summary.similarity()[0, 0] = 2.0
    live = summaries._windows[True, None]
    summaries.up_to(10).similarity()
    assert summaries._windows[True, None] is live
    assert live.n_draws == 50


def test_summary_outlives_a_reset() -> None:
    recorder = recorder_with(9)
    summaries = RunningSummaries(recorder)
    summary = summaries.up_to(9)
    expected = similarity(recorder.labels)
    recorder.clear()
    summaries.clear()
    for iteration in range(100, 104):
        recorder.extend([make_event(iteration)])
    assert np.allclose(summary.similarity(), expected)
    assert np.allclose(summaries.up_to(4).similarity(), similarity(recorder.labels))
    summaries.burn_in = 2
    assert np.allclose(summaries.up_to(4).similarity(), similarity(recorder.labels[2:]))


def test_best_draw() -> None:
    recorder = recorder_with(30)
    best = RunningSummaries(recorder).up_to(30).best()
    assert best is not None
    assert best[0] == 11  # the first whose log posterior is 0, the highest
    assert np.array_equal(best[1], recorder.labels[10])
