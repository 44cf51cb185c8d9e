"""What all tests share: reproducible random numbers and a hypothesis profile that never flickers."""

import importlib.util
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

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


@pytest.fixture(scope="session")
def script(repository: Path) -> Callable[[str], ModuleType]:
    """Loads a file of `scripts` as a module."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, repository / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)  # dataclasses look there
        spec.loader.exec_module(module)
        return module

    return load
