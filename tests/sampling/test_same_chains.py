"""Chains are the same, draw by draw, as those of the first version.

The digests in `same_chains.json` were taken before the package was put in order; nothing that only tidies the
code may change one. A change that is meant to alter chains (another order of random numbers, say) stores them
anew with ``python tests/sampling/test_same_chains.py``, and says so in its message.
"""

import hashlib
import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ewens_widgets as ew

STORED = Path(__file__).with_name("same_chains.json")
DATA = {
    "unit square": lambda: ew.datasets.unit_square(seed=0).X @ np.array([[4.1, 1.1], [2.1, 1.1]]),
    "half-moons": lambda: ew.datasets.half_moons(n=120, seed=1),
    "wine": ew.datasets.wine,
}
SCHEDULES = {"default": 60, "paper-1": 4000, "paper-2": 4000}  # with the number of iterations
CONCENTRATIONS = {"1": 1.0, "Gamma(2, 1)": ew.Gamma(2.0, 1.0)}
CASES = list(product(DATA, ("I", "II", "III"), SCHEDULES, CONCENTRATIONS))


def digest(data: str, model: str, schedule: str, concentration: str) -> str:
    """Digest of the labels and the θ of every iteration of a chain."""
    sampler = ew.Sampler(
        DATA[data](), model=model, concentration=CONCENTRATIONS[concentration], moves=schedule, seed=7
    )
    trace = sampler.sample(draws=SCHEDULES[schedule], progress=False)
    summed = hashlib.sha256(np.ascontiguousarray(trace.labels, dtype="<i4").tobytes())
    summed.update(np.ascontiguousarray(trace.theta, dtype="<f8").tobytes())
    return summed.hexdigest()


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_a_chain_is_what_it_was(case: tuple[str, str, str, str]) -> None:
    assert digest(*case) == json.loads(STORED.read_text())[" | ".join(case)]


def test_a_digest_sees_a_single_draw() -> None:
    # The twin: another seed, or one draw less, is another chain.
    assert len(set(json.loads(STORED.read_text()).values())) == len(CASES)


if __name__ == "__main__":
    STORED.write_text(json.dumps({" | ".join(case): digest(*case) for case in CASES}, indent=1) + "\n")
