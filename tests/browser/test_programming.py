"""Recipes of docs/programming.md on a page: traits linked in the browser, views alone, another sampler."""

from dataclasses import dataclass

import pytest
from browser.explorer_page import CIRCLES
from browser.opened import Desk, OpenedExplorer, OpenedWidget, explorer_code, opened_explorer, opened_widget
from playwright.sync_api import Locator, expect

LAYOUT = """ew.Explorer(ew.datasets.unit_square(seed=0), model="III", iterations=100_000, speed=1.0)
from ipywidgets import Checkbox, HBox, IntText, VBox, jslink, jsdlink
running, shown = Checkbox(description="running"), IntText()
jslink((explorer, "is_running"), (running, "value"))
jsdlink((explorer, "iteration"), (shown, "value"))
views = HBox([explorer.view("partition"), explorer.view("similarity")])
page = VBox([running, shown, views], _dom_classes=("own-layout",))"""

OTHER = """ew.datasets.unit_square(seed=0)
import numpy as np
def another_sampler(rng=np.random.default_rng(0)):
    while True:
        yield rng.integers(4, size=80)
widget = ew.watch(another_sampler(), widget, iterations=100_000)"""


@dataclass
class OwnLayout(OpenedExplorer):
    """Two views alone, between other widgets."""

    name = "page"

    @property
    def root(self) -> Locator:
        return self.page.locator(".own-layout")

    def wait_until_shown(self) -> None:
        expect(self.part(".ew-figure svg").first).to_be_attached()
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")


def test_a_layout_of_ones_own(desk: Desk) -> None:
    code = LAYOUT.replace("ew.Explorer", "None\nexplorer = ew.Explorer", 1)
    with opened_widget(OwnLayout, desk, code) as page:
        expect(page.part(".ew-alone")).to_have_count(2)
        expect(page.part(".ew-partition")).to_have_count(1)
        expect(page.part(CIRCLES)).to_have_count(80)
        fills = page.part(CIRCLES).evaluate_all("them => them.map(one => getComputedStyle(one).fill)")
        # A box that is linked in the browser plays, and what is linked to the iteration follows.
        page.part("input[type=checkbox]").check()
        number = page.part("input[type=number]")
        page.eventually(lambda: int(number.input_value()), lambda shown: shown >= 15)
        page.eventually(
            lambda: page.part(CIRCLES).evaluate_all("them => them.map(one => getComputedStyle(one).fill)"),
            lambda them: them != fills,
        )
        # Not `uncheck`, which looks at once: an older state from the chain may still arrive after the click.
        page.part("input[type=checkbox]").click()
        page.wait_for_value("str(explorer.player.status.state)", "paused")
        present = page.value("explorer.player.status.iteration")
        expect(number).to_have_value(str(present))
        # Looking back, and a selection from outside.
        assert page.value("explorer.set_trait('iteration', 3)") is None
        expect(number).to_have_value("3")
        assert page.value("explorer.set_trait('selection', [0, 1, 2])") is None
        page.eventually(
            lambda: page.part(CIRCLES).evaluate_all(
                "them => them.filter(one => Number(getComputedStyle(one).opacity) === 1).length"
            ),
            lambda count: count == 3,
        )
        assert page.faults == []


def test_the_explorer_plays_when_it_is_first_seen(desk: Desk) -> None:
    code = explorer_code("ew.datasets.unit_square(seed=0), speed=1 / 10, autoplay='visible'")
    with opened_explorer(desk, code) as explorer:
        explorer.wait_for_iteration(2)
        assert explorer.faults == []


def test_another_sampler_is_watched(desk: Desk) -> None:
    with opened_widget(OpenedWidget, desk, OTHER) as watcher:
        watcher.press("play")
        watcher.wait_for_iteration(20)
        watcher.press("play")
        watcher.wait_for_value("widget.player._task is None", True)
        watcher.wait_for_iteration(watcher.value("widget.player.status.iteration"), or_later=False)
        expect(watcher.part(CIRCLES)).to_have_count(80)
        expect(watcher.part(".ew-heatmap")).to_be_visible()
        assert watcher.value("float(widget.trace.similarity().mean())") == pytest.approx(0.26, abs=0.05)
        assert watcher.faults == []
