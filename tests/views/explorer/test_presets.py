"""States of an explorer as short texts, presets, and saved sessions that look the same again."""

import re
import sys
from html import unescape
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from views.explorer.small_explorer import square, step

import ewens_widgets as ew
from ewens_widgets.views import Cut, Explorer
from ewens_widgets.views.explorer.presets import DATA, PRESETS, Shown, parse_state, state_text

pytestmark = pytest.mark.usefixtures("wire")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_shown(name: str) -> None:
    arguments, shown = parse_state(name)
    explorer = Explorer.from_preset(name)
    assert explorer.dataset.name == arguments["data"].name
    assert explorer.shared.colouring == shown.colours
    step(explorer, 2)
    explorer.close()


def test_a_text_says_data_settings_and_what_to_look_at() -> None:
    explorer = Explorer.from_preset("?data=moons&model=III&lambda=2.5&seed=7&cut=2&tree=average&speed=fast")
    assert explorer.dataset.name == "half-moons"
    settings = explorer.settings
    assert (settings.model, settings.prior, settings.seed) == ("III", ew.priors.Ewens(2.5), 7)
    assert explorer.shared.cut == Cut(n_clusters=2)
    assert explorer.shared.colouring == "cut"
    assert explorer.shared.live_tree.method == "average"
    assert explorer.player.speed is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nothing", "there is no example 'nothing'"),
        ("data=mars", "data must be one of square"),
        ("colour=red", "a state may have data"),
        ("seed=one", "seed must be a number; got 'one'"),
        ("cut=0", "cut must be at least 1"),
        ("tree=oak", "tree must be one of single"),
        ("colours=red", "colours must be one of draw"),
        ("height=-1", "must not be negative"),
    ],
)
def test_what_a_text_cannot_say_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Explorer.from_preset(text)


def test_state_and_text_go_back_and_forth() -> None:
    explorer = Explorer.from_preset("data=square&model=I&lambda=2&cut=4&least=3")
    again = Explorer.from_preset(explorer.state)
    assert again.state == explorer.state
    assert again.shared.cut == Cut(n_clusters=4, min_size=3)
    assert "data=square" in explorer.state
    assert "lambda=2" in explorer.state
    assert state_text({}, Shown()) == ""
    assert "height" not in Explorer().state
    assert parse_state(state_text({}, Shown(cut=2)))[1] == Shown(cut=2)
    explorer.use_preset("four corners")
    assert (explorer.shared.cut, explorer.state) == (Cut(height=0.5), "data=square&model=I")


def test_the_code_makes_the_same_explorer() -> None:
    explorer = Explorer.from_preset("data=square&model=I&cut=4")
    names: dict[str, object] = {}
    exec(explorer.python, names)  # noqa: S102 - it is our own
    made = names["explorer"]
    assert isinstance(made, Explorer)
    assert made.state == explorer.state
    own = Explorer(np.arange(12.0).reshape(6, 2) ** 2, model="I", seed=3, iterations=700)
    assert "ew.Explorer(data, model='I', seed=3, iterations=700)" in own.python


def test_data_of_one_s_own_are_not_taken_for_others() -> None:
    own = DATA["moons"]()
    assert "data=" not in Explorer(own.X, model="II").state
    assert "data=moons" in Explorer(own).state


def test_an_example_is_explained_at_a_click() -> None:
    explorer = Explorer(square())
    step(explorer, 5)
    explorer.example.value = "the moons"
    assert explorer.dataset.name == "half-moons"
    assert explorer.player.status.iteration == 0
    assert explorer.shared.cut.n_clusters == 2
    assert "bent" in explorer.title.value
    assert explorer.example.label == "example: the moons"
    assert explorer.panel.fields["model"].control.value == "II"
    explorer.panel.fields["model"].control.value = "I"
    explorer.player.target_iterations = 77
    explorer.example.value = "the moons"
    assert explorer.settings.model == "II", "chosen again, it is what it was"
    assert explorer.player.target_iterations == 3000
    explorer.data_panel.chooser.value = "wine"
    assert "bent" not in explorer.title.value
    assert explorer.example.label == "choose an example"


@pytest.mark.slow
def test_a_loaded_session_looks_the_same(tmp_path: Path) -> None:
    explorer = Explorer(square(), model="I", iterations=200, burn_in=20)
    step(explorer, 60)
    explorer.views["tree"].kind.value = "average"
    explorer.shared.set_cut(Cut(n_clusters=3, min_size=2))
    explorer.views["heatmap"].colours.value = "viridis"
    explorer.views["partition"].plane.choosers[0].value = "PC 1"
    explorer.save(tmp_path / "session.ewens")
    again = Explorer()
    again.load(tmp_path / "session.ewens")
    assert again.shown == explorer.shown
    assert again.views["partition"].points.colors == explorer.views["partition"].points.colors
    assert again.views["tree"].kind.value == "average"
    assert again.views["tree"].least.value == 2
    for name in explorer.views:
        assert again.views[name].picture() == explorer.views[name].picture(), name


@pytest.mark.slow
def test_a_session_that_shows_nonsense_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    explorer = Explorer(square())
    step(explorer, 3)
    with pytest.raises(ValueError, match="colours must be one of"):
        Shown.of_plain({"colours": "red"})
    with pytest.raises(ValueError, match="must be a str"):
        Shown.of_plain({"tree": 3})
    assert Shown.of_plain(None) == Shown()
    assert Shown.of_plain(Shown(cut=3).plain()) == Shown(cut=3)
    assert explorer.player.status.iteration == 3


@pytest.mark.parametrize(
    ("module", "name"), [("google.colab", "Google Colab"), ("marimo._runtime", "marimo")]
)
def test_where_widgets_are_not_shown_a_sentence_says_where_they_are(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    explorer = ew.Explorer.from_preset("data=moons&model=II&cut=2")
    usual = explorer._repr_mimebundle_()
    monkeypatch.setitem(sys.modules, module, ModuleType(module))
    shown = explorer._repr_mimebundle_()
    explorer.close()
    assert "application/vnd.jupyter.widget-view+json" in usual
    assert set(shown) == {"text/plain", "text/html"}
    assert f"{name} does not show live widgets" in shown["text/html"]
    link = re.search(r'href="([^"]*)"', shown["text/html"])[1]
    assert "/try/explorer.html?data=moons" in link
    assert "cut=2" in unescape(link)
    assert shown["text/html"].count("data:image/png;base64,") == 1


def test_data_of_your_own_are_not_in_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    explorer = ew.Explorer([[0.0], [1.0], [3.0]])
    shown = explorer._repr_mimebundle_()["text/html"]
    explorer.close()
    assert '/try/">' in shown
    assert "explorer.html" not in shown
