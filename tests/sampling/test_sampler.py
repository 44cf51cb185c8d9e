"""The sampler as its users see it: sampling, burn-in and thinning, seeds, interrupts, refused settings."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from chain_runs import wrap_loops
from numpy.typing import NDArray

import ewens_widgets as ew
from ewens_widgets.sampling.moves import Gibbs

SCHEDULES: dict[str, object] = {
    "default": "default",
    "paper-1": "paper-1",
    "paper-2": "paper-2",
    "mixed": ["split-merge", "gibbs", "reassign"],
}


def data(n_objects: int = 12) -> NDArray[np.float64]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(n_objects, 2)) + 3.0 * rng.integers(0, 3, (n_objects, 1))


def make(name: str = "default", **settings: object) -> ew.Sampler:
    if name == "own shapes":
        own = {"model": "III", "shapes": "own", "prior": ew.priors.FiniteMixture(), "seed": 9}
        return ew.Sampler(data(), **{**own, **settings})
    return ew.Sampler(data(), **{"moves": SCHEDULES[name], "seed": 9, **settings})


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("burn_in", "thin"), [(0, 1), (10, 4)])
def test_draws_are_those_of_the_events(name: str, burn_in: int, thin: int) -> None:
    events = list(make(name).events(burn_in + 20 * thin))
    sampler = make(name)
    trace = sampler.sample(20, burn_in=burn_in, thin=thin, progress=False)
    kept = events[burn_in + thin - 1 :: thin]
    np.testing.assert_array_equal(trace.labels, [event.labels for event in kept])
    np.testing.assert_array_equal(trace.theta, [event.theta for event in kept])
    np.testing.assert_array_equal(trace.log_posterior, [event.log_posterior for event in kept])
    np.testing.assert_array_equal(trace.iterations, [event.iteration for event in kept])
    np.testing.assert_array_equal(trace.concentration, [event.concentration for event in kept])
    np.testing.assert_allclose(trace.theta_weights, [event.theta_weights for event in kept], rtol=1e-6)
    assert sampler.iteration == burn_in + 20 * thin
    for place, move in enumerate(sampler.move_names):
        proposals = sum(event.moves[place].proposals for event in events[burn_in:])
        acceptances = sum(event.moves[place].acceptances for event in events[burn_in:])
        assert sum(trace.move_counts[move][0]) == proposals
        assert trace.acceptance[move] == pytest.approx(acceptances / proposals)


def test_the_seed_decides_the_chain() -> None:
    def chain(seed: object) -> NDArray[np.integer]:
        return make("paper-2", seed=seed).sample(60, progress=False).labels

    np.testing.assert_array_equal(chain(5), chain(5))
    np.testing.assert_array_equal(chain(np.random.SeedSequence(5)), chain(5))
    assert not np.array_equal(chain(5), chain(6))
    assert not np.array_equal(chain(None), chain(None))


def test_the_sampler_describes_itself() -> None:
    sampler = make(concentration=2.0, metric="euclidean")
    sampler.sample(3, progress=False)
    assert repr(sampler) == (
        'Sampler(12 objects × 2 features, model "II", 20 × informed-split-merge + 1 × gibbs, iteration 3)'
    )
    assert sampler.move_names == ("informed-split-merge", "gibbs")
    assert (sampler.metric, make().metric) == ("euclidean", "canonical")
    assert sampler.posterior.concentration == 2.0


def test_a_progress_bar_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    make().sample(5, burn_in=5, progress=True)
    assert "10/10" in capsys.readouterr().err
    make().sample(5, progress=False)
    assert not capsys.readouterr().err


def test_a_block_may_be_thinned_and_may_report() -> None:
    expected = make("paper-2").sample(10, thin=3, progress=False)
    block = make("paper-2").advance(10, thin=3)
    np.testing.assert_array_equal(block.labels, expected.labels)
    np.testing.assert_array_equal(block.iterations, expected.iterations)
    assert all(event.accepted is None for event in block)
    stepped = list(make("paper-2").events(40, block=1))
    sampler = make("paper-2")
    for event in stepped:
        (found,) = sampler.advance(1)
        assert (found.accepted, found.log_ratio) == (event.accepted, event.log_ratio)
    sampler.reset()
    last = sampler.advance(40, report=True)[-1]
    assert (last.accepted, last.log_ratio) == (stepped[-1].accepted, stepped[-1].log_ratio)


def interrupt_later(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Make a later one of the compiled calls end in an interrupt, after it has done its work."""
    left = [calls]

    def wrapped(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            result = function(*arguments)
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return result

        return call

    wrap_loops(monkeypatch, wrapped)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("calls", [1, 2, 4, 6])
def test_an_interrupt_keeps_the_draws_and_the_chain(
    name: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal during compiled code is raised after it, when the chain has moved but nothing is recorded."""
    expected = make(name).sample(200, progress=False).labels
    sampler = make(name)
    interrupt_later(monkeypatch, calls)
    kept = 0
    try:
        with pytest.warns(UserWarning, match="interrupted after .* of 100 draws"):
            trace = sampler.sample(100, progress=False)
        kept = len(trace)
        np.testing.assert_array_equal(trace.labels, expected[:kept])
    except KeyboardInterrupt:
        assert calls <= len(sampler.schedule)  # Nothing had been recorded yet.
    monkeypatch.undo()
    assert sampler.iteration == kept < 100
    following = sampler.sample(50, progress=False)
    np.testing.assert_array_equal(following.labels, expected[kept : kept + 50])


STORM = """
import _thread, itertools, queue, sys, threading, time, warnings
import numpy as np
from sampling.test_sampler import make
warnings.simplefilter("ignore")
name = sys.argv[1]
make(name).sample(2, progress=False)  # Compiled before the storm.
sampler, asked, sent = make(name), queue.SimpleQueue(), []

def storm():
    # One interrupt for each that was asked for, now or some iterations later: none comes outside the `try`.
    for iterations in itertools.cycle(range(0, 25, 3)):
        asked.get()
        goal = sampler._driver.iteration + iterations
        while sampler._driver.iteration < goal:
            time.sleep(0)  # The chain goes on.
        _thread.interrupt_main()
        sent.append(iterations)

def raise_what_is_pending():
    pass  # Python looks for signals whenever a function is entered.

threading.Thread(target=storm, daemon=True).start()
interrupts = answered = 0
while interrupts < 60 or len(sent) < 90 or sampler.iteration < 100:
    try:
        while True:
            # Asked for again only when the last one is over, raised here or answered by `sample`.
            if len(sent) >= answered:
                raise_what_is_pending()
                answered = len(sent) + 1
                asked.put(None)
            for event in sampler.events(10, block=1 + interrupts % 3):
                pass
            sampler.sample(20, progress=False)
    except KeyboardInterrupt:
        interrupts += 1
again = make(name)
again.sample(1, burn_in=sampler.iteration - 1, progress=False)
assert again.iteration == sampler.iteration
assert again.state.generator == sampler.state.generator, "the chain is not where its iteration number says"
np.testing.assert_array_equal(again.state.labels, sampler.state.labels)
np.testing.assert_array_equal(again.state.sigma, sampler.state.sigma)
print("calm after", len(sent), "interrupts and", sampler.iteration, "iterations")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper-2", "mixed", "own shapes"])
def test_a_storm_of_interrupts_leaves_a_consistent_sampler(name: str) -> None:
    """What Ctrl-C does, many times and at any moment; in a process of its own, which must not crash."""
    tests = str(Path(__file__).resolve().parent.parent)
    paths = [tests, *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", STORM, name],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("calm")


BAD_SETTINGS = [
    ({"model": "IV"}, ValueError, "model must be"),
    ({"concentration": 0.0}, ValueError, "concentration must be positive"),
    ({"concentration": -1.0}, ValueError, "concentration must be positive"),
    ({"concentration": "large"}, TypeError, "concentration must be a number"),
    ({"alpha": 0.0}, ValueError, "alpha must be positive"),
    ({"theta_grid": []}, ValueError, "grid of theta"),
    ({"theta_grid": [1.0, -1.0]}, ValueError, "grid of theta"),
    ({"moves": "paper-3"}, ValueError, "no schedule 'paper-3'; use one of paper-1, paper-2, default"),
    ({"moves": []}, ValueError, "empty"),
    ({"moves": None}, TypeError, "moves must be"),
    ({"moves": 3}, TypeError, "moves must be"),
    ({"moves": ["split"]}, ValueError, "no move 'split'; the moves are gibbs"),
    ({"moves": [Gibbs]}, TypeError, "not a move"),
    ({"moves": [3]}, TypeError, "3 is not a move"),
    ({"moves": [("gibbs", 0)]}, ValueError, "repeats of gibbs"),
    ({"moves": [("gibbs", 1.5)]}, TypeError, "repeats of gibbs"),
    ({"moves": [("gibbs", True)]}, TypeError, "repeats of gibbs"),
    ({"initial": "kmeans"}, ValueError, "initial must be one of singletons, one-cluster, k-means, prior"),
    ({"initial": [0, 1]}, ValueError, "labels have length 2, but there are 12 objects"),
    ({"initial": np.full(12, 0.5)}, ValueError, "labels"),
    ({"initial": 3}, (TypeError, ValueError), "labels|initial"),
    ({"metric": "cosine"}, ValueError, "metric must be one of canonical, euclidean; got 'cosine'"),
    ({"acceptance": "always"}, ValueError, "acceptance must be one of metropolis-hastings, as-printed"),
    ({"seed": -1}, ValueError, "non-negative"),
    ({"seed": "today"}, TypeError, "today"),
]


@pytest.mark.parametrize(("settings", "kind", "message"), BAD_SETTINGS, ids=lambda value: str(value)[:40])
def test_bad_settings_are_refused(settings: dict[str, object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        ew.Sampler(data(), **settings)


def test_counts_that_are_none_are_refused_and_those_of_numpy_are_taken() -> None:
    sampler = make()
    for name in ("draws", "burn_in", "thin"):
        for bad in (-1, 2.0, 1.5, None, "5", np.inf, True):
            with pytest.raises((TypeError, ValueError), match=name):
                sampler.sample(**{"draws": 5, "progress": False, name: bad})
    for bad in ({"n": 0}, {"n": -1}, {"n": 2.0}, {"n": 3, "thin": 0}):
        with pytest.raises((TypeError, ValueError), match=r"number of iterations|thin"):
            sampler.advance(**bad)
    assert sampler.iteration == 0
    assert len(sampler.sample(np.int32(5), np.int64(2), np.uint8(2), progress=False)) == 5
    sampler = ew.Sampler(data(), moves=[("gibbs", np.int64(3))])
    assert next(sampler.events(1)).moves[0].proposals == 36


def test_distances_that_do_not_fit_in_memory_are_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWENS_WIDGETS_MEMORY_LIMIT", "10000")
    with pytest.raises(MemoryError, match="the distances between 40 objects would take"):
        ew.Sampler(data(40), moves="paper-2")
    ew.Sampler(data(40), moves="paper-1")
    ew.Sampler(data(40), moves="default")
