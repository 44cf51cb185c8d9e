"""The two-minute lesson with the move inspector: a proposal stage by stage, its numbers, and its decision."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser.explorer_page import CIRCLES
from browser.opened import Server, show_notebook
from browser.opened_widget import OpenedWidget, assert_readable, assert_whole, dark_theme, opened_widget
from playwright.sync_api import Page, expect

# The first differs from the one that is shown when the lesson begins.
MOVES = {
    "reassign (paper 1)": "reassign",
    "informed split-merge": "informed-split-merge",
    "split-merge (paper 2)": "split-merge",
    "Gibbs draw": "gibbs",
}
TERMS = ("prior", "likelihood", "reverse", "forward")


@pytest.fixture
def inspector(page: Page, shared_server: Server) -> Iterator[OpenedWidget]:
    expression = 'ew.MoveInspector(ew.datasets.unit_square(seed=0), model="I")'
    with opened_widget(page, shared_server, "move-inspector", expression) as widget:
        yield widget
        assert widget.faults == []


def cell(name: str) -> str:
    return f'.ew-terms td[data-term="{name}"]'


def go_to(inspector: OpenedWidget, title: str) -> None:
    inspector.part(".ew-stages select").select_option(label=title)
    expect(inspector.part(".ew-told h4")).to_have_text(title.split(maxsplit=1)[1])


def go_to_decision(inspector: OpenedWidget) -> None:
    last = inspector.part(".ew-stages option").last
    go_to(inspector, last.inner_text())


def press(inspector: OpenedWidget, name: str) -> None:
    """Press a button, and wait for the proposal that it makes."""
    before = inspector.text(".ew-status")
    inspector.press(name)
    expect(inspector.part(".ew-status")).to_contain_text("stage 1 of")
    if name != "propose-again":
        expect(inspector.part(".ew-status")).not_to_have_text(before)


def numbers_add_up(inspector: OpenedWidget) -> bool:
    """Check the printed numbers of a proposal against each other and the sampler; False if there is none."""
    go_to_decision(inspector)
    if "Nothing to decide" in inspector.text(".ew-told"):
        return False
    total = math.fsum(inspector.number(cell(name)) for name in TERMS)
    assert abs(total - inspector.number(cell("sampler"))) < 1e-9
    accepted = inspector.text(cell("decision")) == "accepted"
    if inspector.part(f"{cell('uniform')}[data-value]").count():
        assert accepted == (inspector.number(cell("uniform")) < total)
    else:
        assert accepted
        assert abs(total) < 1e-9
    return True


def test_the_lesson(
    inspector: OpenedWidget, page: Page, shared_server: Server, screenshot: Callable[[str], Path]
) -> None:
    # A split, stage by stage: chosen from the list, then with the keyboard.
    expect(inspector.part(".ew-told h4")).to_have_text("The current state")
    stages = inspector.part(".ew-stages option")
    expect(stages).to_have_count(9)
    inspector.part(".ew-stages select").press("ArrowDown")
    expect(inspector.part(".ew-told h4")).to_have_text("Split, merge or keep")
    inspector.part(".ew-stages select").press("ArrowUp")
    expect(inspector.part(".ew-told h4")).to_have_text("The current state")
    inspector.part(".ew-stages select").select_option(index=1)
    expect(inspector.part(".ew-told h4")).to_have_text("Split, merge or keep")
    for title in ("The cluster", "The cores", "The sides"):
        inspector.part("button.ew-next-stage").press("Space")
        expect(inspector.part(".ew-told h4")).to_have_text(title)
    inspector.part("button.ew-back").press("Space")
    expect(inspector.part(".ew-told h4")).to_have_text("The cores")
    inspector.part("button.ew-next-stage").press("Space")
    expect(inspector.part(".ew-told h4")).to_have_text("The sides")
    # Each member's probability is its colour: the cores are sure, and what is not concerned is faded.
    opacities = inspector.part(CIRCLES).evaluate_all(
        "dots => dots.map(dot => Number(getComputedStyle(dot).opacity))"
    )
    n_members = inspector.value("widget.inspection.proposal.allocation.members.size")
    assert sum(opacity == 1.0 for opacity in opacities) >= n_members
    assert sum(opacity < 0.2 for opacity in opacities) == 80 - n_members
    fills = inspector.part(CIRCLES).evaluate_all("dots => dots.map(dot => getComputedStyle(dot).fill)")
    assert len(set(fills)) > 4
    assert inspector.part(f"{cell('sum')}[data-value]").count() == 0, "the ratio is not told before its stage"
    screenshot("move-inspector-sides")

    # The decision, with the numbers that add up to the sampler's own log ratio; the printed ratio differs.
    assert numbers_add_up(inspector)
    inspector.press("as-printed")
    expect(inspector.part(".ew-told")).to_contain_text("The paper inverts the quotient")
    expect(inspector.part(".ew-terms th").last).to_have_text("as printed")
    right, printed = inspector.part(cell("sum")).evaluate_all(
        "cells => cells.map(cell => Number(cell.dataset.value))"
    )
    ways = [inspector.number(cell(name)) for name in ("reverse", "forward")]
    assert abs(right - printed - 2.0 * sum(ways)) < 1e-9
    expect(inspector.part(".ew-waterfall .tick text").filter(has_text="reverse")).to_have_count(1)
    assert_whole(inspector)
    assert_readable(inspector)
    screenshot("move-inspector")
    inspector.press("as-printed")

    # Every move, several proposals each: what is printed adds up.
    for move, name in MOVES.items():
        inspector.part(".ew-move select").select_option(label=move)
        expect(inspector.part(".ew-status")).to_contain_text(f"· {name} · stage 1 of")
        # From here each new proposal shows: it begins at its first stage.
        go_to_decision(inspector)
        added_up = 0
        for button in ("propose-again", "next-iteration", "propose-again"):
            press(inspector, button)
            added_up += numbers_add_up(inspector)
        assert added_up >= 1
    inspector.part(".ew-stages select").select_option(index=2)
    expect(inspector.part(".ew-told h4")).to_have_text("The candidates")
    expect(inspector.part(".ew-option").first).to_be_visible()
    shares = inspector.part(".ew-option").evaluate_all(
        "rows => rows.map(row => Number(row.dataset.probability))"
    )
    assert abs(sum(shares) - 1.0) < 1e-6

    # A rejected proposal is accepted anyway: the chain goes on from it.
    inspector.part(".ew-move select").select_option(label="reassign (paper 1)")
    expect(inspector.part(".ew-status")).to_contain_text("reassign · stage 1 of 6")
    for _ in range(20):
        if inspector.part("button.ew-accept-anyway").is_enabled():
            break
        press(inspector, "next-iteration")
    proposed = inspector.value("widget.inspection.proposal.proposed.tolist()")
    press(inspector, "accept-anyway")
    assert inspector.value("widget.inspection.proposal.labels.tolist()") == proposed

    page.keyboard.press("Control+s")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    with dark_theme(shared_server):
        show_notebook(page, shared_server.lab, "move-inspector.ipynb")
        inspector.wait_until_shown()
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
        go_to_decision(inspector)
        assert_readable(inspector)
        screenshot("move-inspector-dark")
