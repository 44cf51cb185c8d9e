"""What the labs have in common: still pictures, messages, names, hints, and errors that explain."""

import asyncio
import base64
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ipywidgets import Widget
from playback.fakes import empty_turns
from views.chains import Wire, widgets_below

import ewens_widgets as ew
from ewens_widgets.model.priors import Ewens
from ewens_widgets.playback.invariance import PAPER_MATRICES
from ewens_widgets.views.labs.affine_lab import MOST_OBJECTS
from ewens_widgets.views.page import Dashboard

pytestmark = pytest.mark.usefixtures("wire")

SCRIPT = "<script>alert(1)</script>"


def square() -> ew.datasets.Dataset:
    return ew.datasets.unit_square(per_cluster=4, seed=0)


def advance(lab: Dashboard, count: int) -> None:
    """Show a later state, by some iterations, guests or stages."""
    if isinstance(lab, ew.MoveInspector):
        lab.show_stage(lab.stage + count)
    elif hasattr(lab, "player"):
        lab.player.step_sync(count)
        lab.player.refresh()
    else:
        lab._worker.run_sync(count)
        lab._worker.refresh()


LABS: dict[str, Callable[[], Dashboard]] = {
    "affine": lambda: ew.AffineLab(square(), draws=100, burn_in=50),
    "chains": lambda: ew.ChainsView(square(), chains=3, model="I", iterations=120, burn_in=20),
    "inspector": lambda: ew.MoveInspector(square(), model="I", seed=3),
    "points": lambda: ew.PointsLab(square(), iterations=120, burn_in=20),
    "prior": lambda: ew.PriorLab(concentration=2.0, n=30),
}
every_lab = pytest.mark.parametrize("make", LABS.values(), ids=LABS)


@every_lab
def test_a_still_picture_is_part_of_the_output(make: Callable[[], Dashboard]) -> None:
    lab = make()
    for count in (0, 3, 60):
        if count:
            advance(lab, count)
        bundle = lab._repr_mimebundle_()
        assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
        assert bundle["text/plain"] == repr(lab)
        assert "application/vnd.jupyter.widget-view+json" in bundle
    with pytest.raises(ValueError, match="is a PNG"):
        lab.picture("pdf")


@every_lab
def test_a_frame_makes_no_widget_and_sends_one_message_a_widget_at_most(
    make: Callable[[], Dashboard], wire: Wire
) -> None:
    lab: Any = make()
    is_still = isinstance(lab, ew.MoveInspector)
    advance(lab, 9)
    before = len(Widget.get_manager_state()["state"])
    for _ in range(4):
        if is_still:
            wire.clear()
            advance(lab, -1)
        else:
            engine = getattr(lab, "player", None) or lab._worker
            (engine.step_sync if hasattr(lab, "player") else engine.run_sync)(1)
            wire.clear()
            engine.refresh()
        assert wire.updates()
        assert max(wire.updates().values()) == 1
    assert len(Widget.get_manager_state()["state"]) == before


@pytest.mark.parametrize("name", ["affine", "inspector", "prior"])
def test_the_same_state_again_sends_nothing(name: str, wire: Wire) -> None:
    lab = LABS[name]()
    advance(lab, 5)
    wire.clear()
    if name == "inspector":
        lab.show_stage(lab.stage)
    else:
        lab.show(SimpleNamespace(status=lab._worker.status))
    assert wire.messages == []


@every_lab
def test_every_control_has_a_hint(make: Callable[[], Dashboard]) -> None:
    for widget in widgets_below(make()):
        is_control = widget.has_trait("disabled") and widget.has_trait("tooltip")
        if is_control and type(widget).__name__ != "Play":
            assert widget.tooltip or getattr(widget, "tooltips", ()), widget


@pytest.mark.parametrize("kind", [ew.AffineLab, ew.ChainsView, ew.MoveInspector])
def test_hostile_names_are_escaped(kind: Callable[..., Any]) -> None:
    X = np.random.default_rng(0).normal(size=(9, 2))
    data = ew.datasets.Dataset(X=X, name=SCRIPT, feature_names=(SCRIPT, SCRIPT + "2"))
    lab = kind(data)
    shown = [lab]
    if kind is ew.AffineLab:
        lab.run_sync()
    elif kind is ew.ChainsView:
        advance(lab, 20)
        shown.append(ew.ChainsView(SimpleNamespace(traces=lab.traces, starts=(SCRIPT,) * 4)))
    for one in shown:
        html = [widget.value for widget in widgets_below(one) if type(widget).__name__ == "HTML"]
        assert html
        assert all("<script" not in text for text in html)


@pytest.mark.parametrize("name", ["affine", "prior"])
def test_messages_on_another_thread_are_handed_over(name: str) -> None:
    async def use() -> None:
        lab: Any = LABS[name]()
        is_prior = name == "prior"
        button = lab.buttons["Step"] if is_prior else lab.controls.presets["II"]
        thread = threading.Thread(target=button.click)
        thread.start()
        thread.join()
        assert lab.labels.size == 0 if is_prior else np.array_equal(lab.matrix, PAPER_MATRICES["III"])
        await empty_turns()
        await (lab._worker.wait() if is_prior else asyncio.sleep(0))
        assert lab.labels.size == 1 if is_prior else np.array_equal(lab.matrix, PAPER_MATRICES["II"])
        lab.close()

    asyncio.run(use())


FAULTS: dict[Callable[..., Any], list[tuple[dict[str, Any], type[Exception], str]]] = {
    ew.AffineLab: [
        ({"data": [[1.0], [2.0]]}, ValueError, "at least two columns"),
        ({"data": [[1.0, np.nan], [2.0, 1.0]]}, ValueError, "NaN"),
        ({"data": np.zeros((MOST_OBJECTS + 1, 2))}, ValueError, "at most 2000 objects"),
        ({"matrix": [[1, 2], [2, 4]]}, ValueError, "singular"),
        ({"matrix": np.eye(3)}, ValueError, "4 numbers, got 9"),
        ({"shift": (1.0, np.inf)}, ValueError, "shift must be two numbers"),
        ({"shift": [1.0, 2.0, 3.0]}, ValueError, "shift must be two numbers"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"concentration": -1}, ValueError, "concentration must be positive"),
    ],
    ew.PriorLab: [
        ({"concentration": 0}, ValueError, "concentration must be positive"),
        ({"concentration": float("inf")}, ValueError, "concentration must be positive and finite"),
        ({"prior": 2.0}, TypeError, r"prior must be one of ew.priors, such as .* got 2.0"),
        ({"prior": "ewens"}, TypeError, "prior must be one of ew.priors"),
        ({"compare": "ewens"}, TypeError, "compare must be one of ew.priors"),
        ({"concentration": 1.0, "prior": Ewens(2.0)}, ValueError, "give one of them; got both"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"n": 1}, ValueError, "n must be at least 2"),
        ({"n": 1001}, ValueError, "room for 1000 guests"),
        ({"n": 2.5}, TypeError, "n must be a whole number"),
    ],
    ew.ChainsView: [
        ({"chains": 1}, ValueError, "from 2 to 8 chains"),
        ({"chains": 9}, ValueError, "from 2 to 8 chains"),
        ({"chains": 3, "initial": ["prior", "k-means"]}, ValueError, "lists 2 starts"),
        ({"initial": "middle"}, ValueError, "initial must be one of"),
        ({"source": [[0.0, 1.0], [np.inf, 2.0], [1.0, 1.0]]}, ValueError, "contain infinity"),
    ],
    ew.PointsLab: [
        ({"points": [[1.0, 2.0, 3.0]]}, ValueError, "a table of two columns"),
        ({"points": [[1.0, np.nan]]}, ValueError, "finite numbers"),
        ({"points": np.zeros((501, 2))}, ValueError, "room for 500 points; got 501"),
        ({"points": "1 2 3"}, ValueError, "line 1 must be two numbers"),
    ],
    ew.MoveInspector: [
        ({"source": ew.datasets.unit_square(seed=0), "data": np.eye(2)}, TypeError, "data= is for a sampler"),
        ({"move": "jump"}, ValueError, "no move 'jump'"),
        ({"source": [[1.0, np.nan]] * 5}, ValueError, "NaN|missing|finite"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "message"),
    [
        (kind, *fault)
        for kind, faults in FAULTS.items()
        for fault in (*faults, ({"colour": "red"}, TypeError, "colour"))
    ],
)
def test_wrong_arguments_are_explained(
    kind: Callable[..., Any], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(**arguments)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda _, traces: ew.ChainsView(traces[0]), TypeError, "give several traces"),
        (lambda _, traces: ew.ChainsView(traces, model="I"), TypeError, "leave out model"),
        (lambda _, traces: ew.ChainsView([traces[0], traces[1][:0]]), ValueError, "no draws"),
        (lambda _, traces: ew.ChainsView([traces[0], traces[2]]), ValueError, "same data, model and prior"),
        (lambda sampler, _: ew.MoveInspector(sampler, model="I"), TypeError, "leave out model"),
        (lambda sampler, _: ew.MoveInspector(sampler, data=np.eye(7)), ValueError, "data has 7 rows"),
    ],
)
def test_chains_and_samplers_that_do_not_fit_are_explained(
    make: Callable[..., object], error: type[Exception], message: str
) -> None:
    samplers = [ew.Sampler(square(), model=model, seed=0) for model in ("I", "I", "II")]
    traces = [sampler.sample(20, progress=False) for sampler in samplers]
    with pytest.raises(error, match=message):
        make(samplers[0], traces)
