"""Nothing overlaps, nothing is cut off, and the window is used: the explorer and the labs on a projector."""

import re
from collections.abc import Callable

import pytest
from browser.accessibility import violations
from browser.explorer_page import FAST
from browser.labs_page import opened_lab
from browser.layout import SIZES, all_faults, faults
from browser.opened import OpenedExplorer, Server, explorer_code, opened_explorer, show_notebook
from browser.opened_widget import dark_theme, opened_widget
from playwright.sync_api import Page, expect

WIDGETS: dict[str, tuple[str, Callable[[OpenedExplorer], None]]] = {}


def widget(expression: str) -> Callable[[Callable[[OpenedExplorer], None]], Callable[[OpenedExplorer], None]]:
    """Join the test below by the way in which the widget comes to its last picture."""

    def add(run: Callable[[OpenedExplorer], None]) -> Callable[[OpenedExplorer], None]:
        WIDGETS[run.__name__] = (expression, run)
        return run

    return add


@widget("ew.ChainsView(ew.datasets.wine(), iterations=150, burn_in=50, speed=None)")
def chains_view(opened: OpenedExplorer) -> None:
    opened.press("play")
    opened.wait_for_iteration(150)


@widget("ew.AffineLab(matrix=[[4.1, 1.1], [2.1, 1.1]], draws=30, burn_in=10)")
def affine_lab(opened: OpenedExplorer) -> None:
    expect(opened.part(".ew-difference")).to_have_count(3)


@widget("ew.MoveInspector(ew.datasets.unit_square(seed=0), model='I')")
def move_inspector(opened: OpenedExplorer) -> None:
    for _ in range(8):
        opened.press("next-stage")
    expect(opened.part(".ew-status")).to_contain_text("stage 9 of 9")


@widget("ew.PriorLab(prior=ew.priors.FiniteMixture(), compare=ew.priors.PitmanYor(1.0, 0.5), n=120)")
def prior_lab(opened: OpenedExplorer) -> None:
    opened.press("draw")
    expect(opened.part(".ew-status")).to_contain_text("1 000 partitions drawn")


def reopened(opened: OpenedExplorer, server: Server, notebook: str) -> None:
    """Save the notebook and open it again, in the theme that holds now."""
    opened.page.keyboard.press("Control+s")
    expect(opened.page.locator(".jp-mod-dirty")).to_have_count(0)
    show_notebook(opened.page, server.lab, notebook)
    opened.wait_until_shown()


@pytest.mark.layout
def test_explorer(page: Page, shared_server: Server) -> None:
    code = explorer_code("ew.datasets.wine(), iterations=1_000_000")
    with opened_explorer(page, shared_server, "layout", code) as explorer:
        found = {"before": all_faults(page, explorer.root)}
        explorer.choose_speed(FAST)
        explorer.press("play")
        explorer.wait_for_iteration(600)
        found["during"] = all_faults(page, explorer.root)
        explorer.press("pause")
        explorer.wait_until_still()
        found["after"] = all_faults(page, explorer.root)
        explorer.part(".ew-colouring").get_by_text("answer", exact=True).click()
        expect(explorer.part(".ew-headline")).to_contain_text("group")
        found["answer"] = all_faults(page, explorer.root)
        found["rules"] = violations(explorer.root)
        with dark_theme(shared_server):
            reopened(explorer, shared_server, "layout.ipynb")
            found["dark"] = all_faults(page, explorer.root)
            found["rules in the dark"] = violations(explorer.root)
            explorer.press("play")
            explorer.wait_for_iteration(explorer.iteration() + 20)
            found["dark, during"] = all_faults(page, explorer.root)
        assert {state: faults for state, faults in found.items() if faults} == {}
        assert explorer.faults == []


@pytest.mark.layout
@pytest.mark.parametrize("name", WIDGETS)
def test_labs(page: Page, shared_server: Server, name: str) -> None:
    expression, run = WIDGETS[name]
    # The affine lab has a verdict where others have a status.
    opener = opened_lab if name == "affine_lab" else opened_widget
    with opener(page, shared_server, f"layout_{name}", expression) as opened:
        found = {"before": all_faults(page, opened.root)}
        run(opened)
        found["after"] = all_faults(page, opened.root)
        found["rules"] = violations(opened.root)
        with dark_theme(shared_server):
            reopened(opened, shared_server, f"layout_{name}.ipynb")
            found["dark"] = all_faults(page, opened.root)
            found["rules in the dark"] = violations(opened.root)
        assert {state: faults for state, faults in found.items() if faults} == {}
        assert opened.faults == []


# Texts of a widget that are smaller than so many pixels.
SMALL_TEXTS = """
(root, least) => [...root.querySelectorAll("*")].filter(part =>
  part.getClientRects().length && !part.closest("details:not([open]) > div, option, style")
  && [...part.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim())
  && parseFloat(getComputedStyle(part).fontSize) < least
).map(part => `${getComputedStyle(part).fontSize}: ${part.textContent.trim().slice(0, 40)}`)
"""


@pytest.mark.layout
def test_presentation(page: Page, shared_server: Server) -> None:
    code = explorer_code("ew.datasets.wine(), iterations=100_000")
    with opened_explorer(page, shared_server, "presentation", code) as explorer:
        scatter = explorer.box(".ew-scatter")
        # A click on a picture gives the widget the keyboard.
        page.mouse.click(scatter["x"] + scatter["width"] / 2, scatter["y"] + 5)
        page.keyboard.press("ArrowRight")
        explorer.wait_for_iteration(1, or_later=False)
        page.keyboard.press(" ")
        explorer.wait_for_iteration(20)
        page.keyboard.press(" ")
        explorer.wait_until_still()
        page.keyboard.press("f")
        expect(explorer.root).to_have_class(re.compile("ew-presenting"))
        expect(explorer.part(".ew-settings")).to_be_hidden()
        for kind, text in (("this draw", "This draw"), ("answer", "group")):
            explorer.part(".ew-colouring").get_by_text(kind, exact=True).click()
            expect(explorer.part(".ew-headline")).to_contain_text(text)
            for size in SIZES[0], SIZES[2]:
                assert faults(page, explorer.root, size) == []
        assert explorer.root.evaluate(SMALL_TEXTS, 14) == []
        box = explorer.root.bounding_box()
        assert box is not None
        assert box["x"] == box["y"] == 0

        explorer.part(".ew-heatmap .ew-enlarge").click()
        page.wait_for_function(
            "() => document.querySelector('.ew-heatmap-picture').getBoundingClientRect().width > 1200"
        )
        page.keyboard.press("Escape")
        expect(explorer.part(".ew-large")).to_have_count(0)
        expect(explorer.root).to_have_class(re.compile("ew-presenting"))
        page.keyboard.press("Escape")
        expect(explorer.root).not_to_have_class(re.compile("ew-presenting"))
        expect(explorer.part(".ew-settings")).to_be_visible()
        assert explorer.faults == []


def test_a_page_with_faults_is_found_out(page: Page) -> None:
    page.set_content(
        """<div class="ew-explorer" style="height: 300px">
        <div style="overflow: auto; height: 20px"><p style="height: 60px">too high</p></div>
        <button style="width: 30px; overflow: hidden; white-space: nowrap">a long text</button>
        <button style="position: absolute; left: 10px; top: 100px">one</button>
        <button style="position: absolute; left: 20px; top: 105px">other</button></div>"""
    )
    kinds = {fault.split(": ")[1] for fault in all_faults(page, page.locator(".ew-explorer"))}
    assert {"scroll bar", "cut off", "overlap"} <= kinds
