"""The two-minute lesson with the move inspector: a proposal stage by stage, its numbers, and its decision."""

import math
from collections.abc import Iterator

import pytest
from browser.explorer_page import CIRCLES
from browser.opened import Desk, OpenedWidget, opened_widget
from playwright.sync_api import expect

TERMS = ("prior", "likelihood", "reverse", "forward")

# Number and text of each term; those of the first column, if there are two.
PRINTED = """
cells => Object.fromEntries(
  [...cells].reverse().map(cell => [cell.dataset.term, [Number(cell.dataset.value ?? NaN), cell.innerText]]))
"""


@pytest.fixture
def inspector(desk: Desk) -> Iterator[OpenedWidget]:
    expression = 'ew.MoveInspector(ew.datasets.unit_square(seed=0), model="I")'
    with opened_widget(OpenedWidget, desk, expression) as widget:
        yield widget
        assert widget.faults == []


def cell(name: str) -> str:
    return f'.ew-terms td[data-term="{name}"]'


def go_to(inspector: OpenedWidget, title: str) -> None:
    inspector.part(".ew-stages select").select_option(label=title)
    expect(inspector.part(".ew-told h4")).to_have_text(title.split(maxsplit=1)[1])


def go_to_decision(inspector: OpenedWidget) -> None:
    stages = inspector.part(".ew-stages option")
    expect(stages).to_have_count(inspector.value("len(widget.stages)"))
    go_to(inspector, stages.last.inner_text())


def add_up(printed: dict[str, tuple[float, str]]) -> bool:
    """Whether the printed numbers of a proposal agree with each other and with the sampler's."""
    if not {*TERMS, "sampler", "decision"} <= printed.keys():
        return False
    total = math.fsum(printed[name][0] for name in TERMS)
    accepted = printed["decision"][1] == "accepted"
    uniform = printed.get("uniform", (math.nan, ""))[0]
    decided = abs(total) < 1e-9 if math.isnan(uniform) else total > uniform
    return abs(total - printed["sampler"][0]) < 1e-9 and accepted == decided


def numbers_add_up(inspector: OpenedWidget) -> bool:
    """Wait until the printed numbers of a proposal add up; False if it has none."""
    go_to_decision(inspector)
    if "Nothing to decide" in inspector.part(".ew-told").inner_text():
        return False
    inspector.eventually(lambda: inspector.part("td[data-term]").evaluate_all(PRINTED), add_up)
    return True


def styles(inspector: OpenedWidget, name: str) -> list[str]:
    """One property of the style of each object."""
    dots = inspector.part(CIRCLES)
    return list(dots.evaluate_all("(dots, name) => dots.map(dot => getComputedStyle(dot)[name])", name))


def test_the_lesson(inspector: OpenedWidget) -> None:
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
    # Each member's probability is its colour, the cores have full colour, and all other objects are faded.
    n_members = inspector.value("widget.inspection.proposal.allocation.members.size")
    inspector.eventually(
        lambda: styles(inspector, "opacity"),
        lambda them: (
            sum(float(opacity) == 1.0 for opacity in them) >= n_members
            and sum(float(opacity) < 0.2 for opacity in them) == 80 - n_members
        ),
    )
    inspector.eventually(lambda: styles(inspector, "fill"), lambda fills: len(set(fills)) > 4)
    # The ratio is not told before its stage.
    expect(inspector.part(f"{cell('sum')}[data-value]")).to_have_count(0)

    # The decision, with the numbers that add up to the sampler's own log ratio.
    assert numbers_add_up(inspector)
    expect(inspector.part(".ew-waterfall .tick text").filter(has_text="reverse")).to_have_count(1)
