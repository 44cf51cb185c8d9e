"""The two-minute lesson with the view of several chains: they start apart, and come to agree or do not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from browser.opened import Server, show_notebook
from browser.opened_widget import OpenedWidget, assert_readable, assert_whole, dark_theme, opened_widget
from playwright.sync_api import Page, expect

QUANTITIES = ("n_clusters", "log_posterior", "theta")

# Whether there are numbers, and none is broken into two lines.
ONE_LINE = """
cells => cells.length > 0 && cells.every(cell => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return text.getClientRects().length === 1;
})
"""


def rhats(widget: OpenedWidget) -> dict[str, float]:
    return {name: widget.number(f'td[data-rhat="{name}"]') for name in QUANTITIES}


def test_chains_that_come_to_agree(
    page: Page, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    settings = 'model="III", iterations=400, burn_in=100, speed=1.0'
    expression = f"ew.ChainsView(ew.datasets.unit_square(seed=0), {settings})"
    with opened_widget(page, shared_server, "chains-view", expression) as view:
        expect(view.part(".ew-sentence")).to_contain_text("Will they agree?")
        # They start apart: after some iterations, nobody would take them for the same.
        view.press("play")
        view.wait_for_iteration(20)
        view.press("pause")
        # Nothing is left that could go on, and the page shows where it stopped.
        view.wait_for_value("widget.player._task is None", True)
        view.wait_for_iteration(int(view.value("widget.player.status.iteration")), or_later=False)
        expect(view.part(".ew-sentence")).not_to_contain_text("Too early")
        expect(view.part(".ew-sentence")).not_to_contain_text("The chains agree:")
        # Four chains, and a line where counting begins.
        assert view.part(".ew-trace-clusters path.line").count() == 5
        pictures = view.part("img.ew-similarity")
        expect(pictures).to_have_count(5)
        early = pictures.last.get_attribute("src")

        # They agree in the end, and the numbers on the page are those of the draws.
        view.press("run-to-end")
        view.wait_for_iteration(400)
        expect(view.part(".ew-sentence")).to_contain_text("The chains agree")
        expected = view.value("dict(ew.diagnose(list(widget.traces)).rhat)")
        # The table follows the status line by a moment.
        page.wait_for_function(
            """expected => {
              const cell = document.querySelector('td[data-rhat="n_clusters"]');
              return Math.abs(Number(cell.dataset.value) - expected) < 1e-6;
            }""",
            arg=expected["n_clusters"],
        )
        shown = rhats(view)
        assert max(shown.values()) < 1.05
        assert all(abs(shown[name] - expected[name]) < 1e-6 for name in QUANTITIES)
        assert view.number('td[data-ess="n_clusters"]') > 100
        assert pictures.last.get_attribute("src") != early
        view.root.evaluate("root => root.scrollIntoView({ block: 'start' })")
        assert_whole(view)
        assert view.part(".ew-chain-numbers td[data-value]").evaluate_all(ONE_LINE)
        assert_readable(view)
        screenshot("chains-view")

        # Looking back shows what was known then, and Reset starts again.
        readout = view.part(".ew-seek .widget-readout")
        readout.fill("20")
        readout.press("Enter")
        expect(view.part(".ew-sentence")).to_contain_text("do not agree")
        assert max(rhats(view).values()) > 1.2
        page.keyboard.press("Control+s")
        expect(page.locator(".jp-mod-dirty")).to_have_count(0)
        with dark_theme(shared_server):
            show_notebook(page, shared_server.lab, "chains-view.ipynb")
            view.wait_until_shown()
            expect(page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
            assert_readable(view)
            screenshot("chains-view-dark")
        view.press("reset")
        expect(view.part(".ew-status")).to_contain_text("iteration 0 of")
        expect(view.part(".ew-sentence")).to_contain_text("Will they agree?")
        assert view.faults == []


@pytest.mark.slow
def test_chains_that_do_not_agree(page: Page, shared_server: Server) -> None:
    """The paper's first algorithm does not get away from its starts in so short a run."""
    expression = 'ew.ChainsView(ew.datasets.wine(), moves="paper-1", iterations=500, burn_in=100)'
    with opened_widget(page, shared_server, "chains-apart", expression) as view:
        view.press("run-to-end")
        view.wait_for_iteration(500)
        expect(view.part(".ew-sentence")).to_contain_text("The chains do not agree")
        assert max(rhats(view).values()) > 2.0
        assert view.faults == []
