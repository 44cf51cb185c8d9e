"""Nothing overlaps, nothing is cut off, and the window is used: the explorer and the labs on a projector."""

import re
from collections.abc import Callable, Iterator

import pytest
from browser.explorer_page import ANSWER, FAST
from browser.layout import NARROW, SIZES, TALL, all_faults, below_the_projector, faults, settle, violations
from browser.opened import (
    VIEWPORT,
    Desk,
    OpenedExplorer,
    OpenedLab,
    OpenedWidget,
    explorer_code,
    opened_explorer,
    opened_widget,
)
from playwright.sync_api import Page, expect

from ewens_widgets.model.priors import FiniteMixture

Run = Callable[[OpenedExplorer], Iterator[str]]
WIDGETS: dict[str, tuple[str, Run]] = {}


def widget(expression: str) -> Callable[[Run], Run]:
    """Join the test below by the states that the widget comes through, named when they are reached."""

    def add(run: Run) -> Run:
        WIDGETS[run.__name__] = (expression, run)
        return run

    return add


@widget("ew.Explorer(ew.datasets.wine(), iterations=1_000_000, speed=None)")
def explorer(opened: OpenedExplorer) -> Iterator[str]:
    yield "before"
    opened.show_all_pictures()
    opened.press("play")
    opened.wait_for_iteration(600)
    yield "during"
    opened.press("pause")
    expect(opened.part(".ew-status")).not_to_contain_text("iterations/s")
    yield "after"
    opened.part(".ew-colouring").get_by_text("answer", exact=True).click()
    expect(opened.part(".ew-headline")).to_contain_text(ANSWER)
    yield "answer"


@widget("ew.Explorer.from_preset('four corners')")
def explorer_settings(opened: OpenedExplorer) -> Iterator[str]:
    for title in ("More settings", "Moves", "Run", "Shapes and grids", "Save and export"):
        opened.open_section(title)
        yield title


@widget("ew.Explorer.from_preset('wine', iterations=100_000)")
def explorer_with_own_shapes(opened: OpenedExplorer) -> Iterator[str]:
    opened.press("ellipses")
    opened.press("step")
    opened.wait_for_iteration(1, or_later=False)
    yield "a step"


@widget("ew.ChainsView(ew.datasets.wine(), iterations=150, burn_in=50, speed=1 / 10)")
def chains_view(opened: OpenedExplorer) -> Iterator[str]:
    yield "before"
    opened.press("play")
    opened.wait_for_iteration(3)
    yield "during"
    opened.choose_speed(FAST)
    opened.wait_for_iteration(150)
    yield "after"


@widget("ew.AffineLab(matrix=[[4.1, 1.1], [2.1, 1.1]], draws=1_000_000)")
def affine_lab_at_work(opened: OpenedExplorer) -> Iterator[str]:
    expect(opened.part(".ew-verdict")).to_contain_text("Sampling both versions")
    yield "during"


@widget("ew.AffineLab(matrix=[[4.1, 1.1], [2.1, 1.1]], draws=30, burn_in=10)")
def affine_lab(opened: OpenedExplorer) -> Iterator[str]:
    expect(opened.part(".ew-difference")).to_have_count(3)
    yield "after"


@widget("ew.MoveInspector(ew.datasets.unit_square(seed=0), model='I')")
def move_inspector(opened: OpenedExplorer) -> Iterator[str]:
    yield "before"
    for stage in range(2, 10):
        opened.press("next-stage")
        expect(opened.part(".ew-status")).to_contain_text(f"stage {stage} of 9")
        if stage == 5:
            yield "during"
    yield "after"


@widget("ew.PriorLab(prior=ew.priors.FiniteMixture(), compare=ew.priors.PitmanYor(1.0, 0.5), n=120)")
def prior_lab(opened: OpenedExplorer) -> Iterator[str]:
    yield "before"
    opened.press("play")
    expect(opened.part("button.ew-play")).not_to_have_class(re.compile("mod-primary"))
    yield "during"
    opened.press("draw")
    expect(opened.part(".ew-status")).to_contain_text("1 000 partitions drawn")
    yield "after"
    opened.part(".ew-chooser-2 .ew-kind select").select_option(label="nothing")
    expect(opened.part(".ew-restaurant-2")).to_be_hidden()
    opened.press("fill")
    expect(opened.part(".ew-restaurant-1 .ew-guest")).to_have_count(120)
    yield "alone"


@widget("ew.PriorLab(prior=ew.priors.FiniteMixture(), compare=ew.priors.PitmanYor(1.0, 0.5), n=1000)")
def prior_lab_with_many_guests(opened: OpenedExplorer) -> Iterator[str]:
    opened.press("draw")
    expect(opened.part(".ew-status")).to_contain_text("1 000 partitions drawn")
    expect(opened.part(".ew-guest")).to_have_count(2000)
    mean = FiniteMixture().expected_clusters(1000)
    expect(opened.part(".ew-distribution .ew-prior-1 .ew-mean")).to_have_text(f"{mean:.3f}")
    yield "after"


def rules(opened: OpenedExplorer) -> dict[str, list[str]]:
    """What is wrong with a widget in one theme, besides its layout."""
    opened.assert_readable()
    found = {"rules": violations(opened.root)}
    opened.page.keyboard.press("Tab")  # outlines are for those who use the keyboard
    return found | {"focus": opened.root.evaluate(UNSEEN_FOCUS)}


def presented(opened: OpenedExplorer) -> dict[str, list[str]]:
    """What is wrong with a widget that is shown to a room."""
    page = opened.page
    page.set_viewport_size({"width": TALL[0], "height": TALL[1]})
    opened.root.evaluate("root => root.focus()")
    page.keyboard.press("f")
    expect(opened.root).to_have_class(re.compile("ew-presenting"))
    found = {"presented": faults(page, opened.root, TALL)}
    found["small texts"] = opened.root.evaluate(SMALL_TEXTS, LEAST_PRESENTED)
    page.keyboard.press("Escape")
    expect(opened.root).not_to_have_class(re.compile("ew-presenting"))
    # The window leaves the full screen later than the class goes, and pictures are laid out again.
    page.wait_for_function("() => document.fullscreenElement === null")
    settle(opened.root)
    return found


@pytest.mark.layout
@pytest.mark.parametrize("name", WIDGETS)
def test_nothing_overlaps_and_nothing_is_cut_off(desk: Desk, name: str) -> None:
    """In every state, in the last one at all sizes, and in the dark theme."""
    expression, run = WIDGETS[name]
    # The AffineLab has a verdict where others have a status.
    kind: type[OpenedExplorer] = OpenedLab if name.startswith("affine_lab") else OpenedWidget
    page = desk.page
    with opened_widget(kind, desk, expression) as opened:
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", "true")
        found = {state: faults(page, opened.root, SIZES[0]) for state in run(opened)}
        sizes = NARROW if name == "explorer_with_own_shapes" else ()
        found["other sizes"] = all_faults(page, opened.root, (*SIZES[1:], *sizes))
        if NARROW[-1] in sizes:
            above = int(opened.part(".ew-explorer-columns").evaluate("columns => columns.offsetTop"))
            found["150 %"] = [f"controls of {above} pixels"] if above > MOST_ABOVE else []
        if not name.startswith("explorer"):
            found["height"] = below_the_projector(opened.root)
        found |= rules(opened) | presented(opened)
        page.set_viewport_size(VIEWPORT)
        settle(opened.root)
        with desk.in_the_dark(opened):
            found["dark"] = faults(page, opened.root, SIZES[0])
            found |= {f"{rule} in the dark": faults for rule, faults in rules(opened).items()}
        wrong = [f"{state}: {fault}" for state, several in found.items() for fault in several]
        assert not wrong, "\n".join(wrong)
        assert opened.faults == []


# What can have the focus, and does not show it.
UNSEEN_FOCUS = """
root => [...root.querySelectorAll("button, select, input, summary, [tabindex='0']")].filter(part => {
  part.focus();
  const hasFocus = document.activeElement === part; // not if it is hidden, or disabled
  return hasFocus && getComputedStyle(part).outlineStyle === "none";
}).map(part => part.outerHTML.slice(0, 120))
"""

MOST_ABOVE = 230
"""Pixels above the pictures on a projector at 150 %, where JupyterLab leaves 430."""

LEAST_PRESENTED = 14
"""Pixels of the smallest type for a whole room."""

# Texts of a widget that are smaller than so many pixels.
SMALL_TEXTS = """
(root, least) => [...root.querySelectorAll("*")].filter(part =>
  part.getClientRects().length && !part.closest("details:not([open]) > div, option, style")
  && [...part.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim())
).map(part => {
  // A drawing may be scaled as a whole, and its texts turned.
  const { a, b } = part.getScreenCTM?.() ?? { a: 1, b: 0 };
  return [parseFloat(getComputedStyle(part).fontSize) * Math.hypot(a, b), part];
}).filter(([size]) => size < least
).map(([size, part]) => `${size.toFixed(1)}: ${part.textContent.trim().slice(0, 40)}`)
"""


@pytest.mark.layout
def test_presentation(desk: Desk) -> None:
    page = desk.page
    code = explorer_code("ew.datasets.wine(), iterations=100_000")
    with opened_explorer(desk, code) as explorer:
        scatter = explorer.box(".ew-scatter")
        # A click on a picture gives the widget the keyboard.
        page.mouse.click(scatter["x"] + scatter["width"] / 2, scatter["y"] + 5)
        page.keyboard.press("ArrowRight")
        explorer.wait_for_iteration(1, or_later=False)
        page.keyboard.press(" ")
        explorer.wait_for_iteration(20)
        page.keyboard.press(" ")
        explorer.wait_for_value("explorer.player._task is None", True)
        explorer.wait_until_still()
        page.keyboard.press("f")
        expect(explorer.root).to_have_class(re.compile("ew-presenting"))
        expect(explorer.part(".ew-settings")).to_be_hidden()
        for kind, text in (("this draw", "This draw"), ("answer", ANSWER)):
            explorer.part(".ew-colouring").get_by_text(kind, exact=True).click()
            expect(explorer.part(".ew-headline")).to_contain_text(text)
            for size in SIZES[0], SIZES[2]:
                assert faults(page, explorer.root, size) == []
        assert explorer.root.evaluate(SMALL_TEXTS, LEAST_PRESENTED) == []
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
        """<div class="ew-explorer" data-ew-room="given" style="height: 300px">
        <div style="overflow: auto; height: 20px"><p style="height: 60px">too high</p></div>
        <button style="width: 30px; overflow: hidden; white-space: nowrap">a long text</button>
        <div class="widget-html-content" style="width: 10px; overflow-wrap: anywhere">one letter a line</div>
        <button style="position: absolute; left: 10px; top: 100px">one</button>
        <button style="position: absolute; left: 20px; top: 105px">other</button>
        <div class="ew-figure" style="width: 90px; height: 50px"><svg width="90" height="40"></svg></div>
        </div>"""
    )
    kinds = {fault.split(": ")[1] for fault in all_faults(page, page.locator(".ew-explorer"))}
    assert {"scroll bar", "cut off", "overlap", "squeezed", "drawing off by 10"} <= kinds
