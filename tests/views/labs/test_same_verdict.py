"""The live view, the report and the stopping rule judge the same draws alike."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from traces import blobs, random_partitions, wandering_partitions

import ewens_widgets as ew
from ewens_widgets.analysis import convergence
from ewens_widgets.analysis import report as report_module
from ewens_widgets.analysis.convergence import Diagnostics
from ewens_widgets.analysis.findings import Finding
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.views.labs import chain_panels
from ewens_widgets.views.labs.chains_view import ChainsView

pytestmark = pytest.mark.usefixtures("wire", "chains_alone")

OBJECTS = 9
DATA = blobs(np.random.default_rng(0), OBJECTS)[0]
POSTERIORS = {
    "fixed": Posterior.from_data(DATA, model="II"),
    "sampled": Posterior.from_data(DATA, model="II", concentration=ew.Gamma(2.0, 1.0)),
    "uneven": Posterior.from_data(DATA, model="II", theta_grid=[0.1, 1.0, 3.0, 50.0]),
}


@pytest.fixture
def chains_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The view knows no groups; what the report says of them is in its own tests."""
    monkeypatch.setattr(report_module, "_about_groups", lambda _: iter(()))


SAME = {"agree": "trust", "not yet": "run longer", "apart": "do not trust"}


def partitions(rng: np.random.Generator, kind: str, n_draws: int, n_clusters: int) -> np.ndarray:
    if kind == "stuck":
        return np.tile(random_partitions(rng, 1, OBJECTS, n_clusters), (n_draws, 1))
    if kind == "wandering":
        return wandering_partitions(rng, n_draws, OBJECTS, n_clusters, 1)
    return random_partitions(rng, n_draws, OBJECTS, n_clusters)


def chain(
    rng: np.random.Generator,
    posterior: Posterior,
    kind: str = "mixing",
    n_draws: int = 400,
    n_clusters: int = 3,
    rises: float = 0.0,
    accepts: bool = True,
    is_constant: bool = False,
) -> Trace:
    """A trace that need not be one of any sampler."""
    n_values = posterior.theta_grid.size
    made = rng.integers(1, 20, n_draws)
    taken = made // 2 + 1 if accepts else np.zeros_like(made)
    early = np.arange(n_draws) < n_draws // 4
    columns = {
        "labels": partitions(rng, kind, n_draws, n_clusters),
        "theta_index": np.full(n_draws, 1) if is_constant else rng.integers(0, n_values, n_draws),
        "theta_weights": np.full((n_draws, n_values), 1.0 / n_values),
        "log_posterior": np.zeros(n_draws) if is_constant else rng.normal(size=n_draws) - rises * early,
        "concentration": rng.gamma(2.0, 1.0, n_draws),
        "iterations": np.arange(1, n_draws + 1),
        "proposals": made[:, None],
        "acceptances": taken[:, None],
    }
    return Trace(posterior, ("gibbs",), columns)


# What chains may be like: they mix or not, differ or not, are long or short, have moved or not.
_CASES: list[tuple[str, list[dict[str, Any]]]] = [
    ("agree", [{}, {"n_draws": 413}, {}]),
    ("not yet", [{}, {"rises": 3.0}]),
    ("not yet", [{"n_draws": 40, "n_clusters": 1}] * 2),
    ("apart", [{"n_clusters": 2}, {"n_clusters": 6}]),
    ("apart", [{"kind": "stuck", "is_constant": True, "n_draws": 40}] * 2),
    ("apart", [{"accepts": False}, {"accepts": False}]),
    ("apart", [{"kind": "wandering", "n_draws": 120}] * 3),
    ("unknown", [{"n_draws": 7}, {}]),
]
CASES = [(posterior, *case) for posterior, case in zip(cycle(POSTERIORS), _CASES, strict=False)]


def chains(posterior: str, options: list[dict[str, Any]]) -> list[Trace]:
    rng = np.random.default_rng(3)
    return [chain(rng, POSTERIORS[posterior], **one) for one in options]


def assert_same_verdict(given: Sequence[Trace]) -> str:
    """Compare what the view and the report say."""
    view = ChainsView(list(given))
    try:
        shown = view.agreement
        sentence = view.sentence.value
    finally:
        view.close()
    if min(map(len, given)) < convergence.FEWEST_DRAWS:
        assert shown.verdict == "unknown"
        assert "Too early" in sentence
        with pytest.raises(ValueError, match="at least 8 draws"):
            ew.report(list(given))
        return shown.verdict
    told = ew.report(list(given))
    # The view speaks of the chains alone; the report asks, too, whether the model fits.
    resting = {each.kind for each in shown.findings} == {"resting"}
    doubted = (resting or shown.verdict == "agree") and not told.check.fits
    expected = "unconfirmed" if resting else SAME[shown.verdict]
    assert told.verdict == ("model misfit" if doubted else expected)
    assert shown.verdict == told.diagnostics.verdict
    assert shown.findings == told.diagnostics.findings
    assert sentence.startswith("The chains agree:") == (shown.verdict == "agree")
    # Not only the verdict: every number that it rests on.
    numbers = told.diagnostics
    for name in ("rhat", "ess_bulk", "ess_tail", "acceptance"):
        np.testing.assert_equal(dict(getattr(shown, name)), dict(getattr(numbers, name)))
    assert shown.similarity_gap == numbers.similarity_gap
    rule = ew.until(rhat=convergence.GOOD_RHAT, ess=convergence.WANTED_ESS)
    is_met = numbers.worst_rhat <= rule.rhat and numbers.least_ess >= rule.ess
    assert is_met or told.verdict not in {"trust", "model misfit"}
    return shown.verdict


@pytest.mark.parametrize(("posterior", "verdict", "options"), CASES)
@pytest.mark.slow
def test_view_and_report_say_the_same(posterior: str, verdict: str, options: list[dict[str, Any]]) -> None:
    given = chains(posterior, options)
    assert assert_same_verdict(given) == verdict
    with pytest.raises(ValueError, match="from 2 to 8 chains"):
        ChainsView(given[:1])
    if len(given[0]) >= convergence.FEWEST_DRAWS:
        assert ew.report(given[0]).verdict != "trust", "one chain alone is never said to agree"


def twin() -> None:
    for posterior, _, options in CASES:
        assert_same_verdict(chains(posterior, options))


class OtherThreshold(Diagnostics):
    """A copy of the verdict with a threshold of its own."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """As they are, but for few effective draws."""
        return tuple(found for found in super().findings if found.kind != "few" or self.least_ess < 20.0)


def other_threshold(found: Diagnostics) -> Diagnostics:
    return OtherThreshold(**{name: getattr(found, name) for name in Diagnostics.__dataclass_fields__})


def without_the_largest(found: Diagnostics) -> Diagnostics:
    """A verdict that follows one quantity less."""
    numbers = ("rhat", "ess_bulk", "ess_tail")
    filled = {name: {**getattr(found, name), "largest_cluster": np.nan} for name in numbers}
    return replace(found, **filled) if found.is_known else found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (chain_panels, "compare", other_threshold),
        pytest.param(chain_panels, "compare", without_the_largest, marks=pytest.mark.nightly),
    ],
)
def test_another_threshold_or_another_list_of_quantities_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, fault: Callable[..., Diagnostics]
) -> None:
    honest = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **named: fault(honest(*given, **named)))
    with pytest.raises(AssertionError):
        twin()
