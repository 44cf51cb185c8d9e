"""What all tests share: reproducible random numbers and a hypothesis profile that never flickers."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Set before anything imports matplotlib: no test may need a screen.
os.environ.setdefault("MPLBACKEND", "Agg")

# What is tested is compiled code: with a cold cache it is waited for, and never interpreted in the meantime.
os.environ.setdefault("EWENS_WIDGETS_WAIT", "1")

# The same examples on each run and machine: a red build can be reproduced tomorrow. No deadline: the first
# call of a compiled function includes its compilation.
settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
settings.load_profile("reproducible")


# Started in the background, e.g. by nohup, Python ignores Ctrl-C; tests of interrupts would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(16110989)


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parent.parent
