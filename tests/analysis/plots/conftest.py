"""A trace to draw."""

import pytest
from traces import blob_trace

from ewens_widgets.sampling.trace import Trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return blob_trace(seed=0)
