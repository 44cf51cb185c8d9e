from collections.abc import Callable, Iterator

import pytest
from playback.fakes import Stage


@pytest.fixture
def stage() -> Iterator[Callable[..., Stage]]:
    """Makes players on fake time, and closes their loops afterwards."""
    stages: list[Stage] = []

    def make(**options: object) -> Stage:
        stages.append(Stage(**options))
        return stages[-1]

    yield make
    for one in stages:
        one.close()
