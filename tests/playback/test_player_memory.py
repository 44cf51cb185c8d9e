"""Half an hour of frames leaves memory as it was."""

import gc
import tracemalloc

import pytest
from playback.fakes import FakeRecorder, FakeSource, FakeTime

from ewens_widgets.playback import Frame, Player


@pytest.mark.slow
def test_memory_stays_flat_over_20_000_frames() -> None:
    class Looking:
        last = 0

        def show(self, frame: Frame) -> None:
            frame.summary.similarity()
            frame.summary.theta_posterior()
            self.last = frame.number

    passing = FakeTime()
    player = Player(FakeSource(), FakeRecorder(), target_iterations=8, pacing=passing.pacing())
    view = Looking()
    player.attach(view)
    player.viewer_attached()
    player.run_to_end_sync()

    def show_frames(count: int) -> None:
        for number in range(count):
            passing.spend(0.05)
            player.seek(number % 8)
            player.refresh()
            player.acknowledge(view.last)

    show_frames(10)  # compiles what the frames need
    tracemalloc.start()
    show_frames(500)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    show_frames(20_000)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert view.last == 20_510
    assert after - before < 50_000
