"""The points lab: painted by mouse, sprayed by finger, erased, undone, typed, shared, and clustered live."""

from collections.abc import Iterable

import pytest
from browser.opened import Desk, OpenedLab, opened_widget
from playwright.sync_api import expect

Place = tuple[float, float]


class OpenedSheet(OpenedLab):
    """The points lab, whose pictures are there only with points."""

    def wait_until_shown(self) -> None:
        expect(self.part(".ew-paper")).to_be_visible()
        self.root.evaluate("root => root.scrollIntoView({ block: 'start' })")

    def on_page(self, x: float, y: float) -> Place:
        """Pixel of a place on the sheet, which goes from 0 to 10 and from 0 to 7."""
        found = self.part(".ew-paper").evaluate(
            "(svg, at) => new DOMPoint(...at).matrixTransform(svg.getScreenCTM()).toJSON()", [x, 7 - y]
        )
        return found["x"], found["y"]

    def stroke(self, places: Iterable[Place]) -> None:
        """Drag the mouse over some places of the sheet."""
        first, *others = [self.on_page(*place) for place in places]
        self.page.mouse.move(*first)
        self.page.mouse.down()
        for place in others:
            self.page.mouse.move(*place, steps=8)
        self.page.mouse.up()

    def choose_tool(self, name: str) -> None:
        self.part(
            ".ew-tool button",
        ).filter(has_text=name).click()


def test_points_are_painted_clustered_and_shared(desk: Desk) -> None:
    with opened_widget(OpenedSheet, desk, "ew.PointsLab()") as lab:
        points = lab.part(".ew-sheet-point")
        expect(lab.part(".ew-too-few")).to_contain_text("Paint at least four points")
        expect(lab.part("button.ew-play")).to_be_hidden()
        # A click is a point, a drag a row of points.
        lab.page.mouse.click(*lab.on_page(1, 1))
        expect(points).to_have_count(1)
        lab.stroke([(1, 1.5), (2, 2.5), (1.5, 1)])
        count = lab.eventually(points.count, lambda count: count > 8)
        lab.wait_for_value("len(lab.points)", count)
        assert lab.value("lab.points[0].tolist()") == pytest.approx([1.0, 1.0], abs=0.03)
        # A finger sprays elsewhere.
        lab.choose_tool("Spray")
        finger = lab.page.context.new_cdp_session(lab.page)
        for step, kind in enumerate(["touchStart", *["touchMove"] * 25, "touchEnd"]):
            x, y = lab.on_page(8 + 0.02 * step, 5.5)
            where = [] if kind == "touchEnd" else [{"x": x, "y": y}]
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": where})
        lab.eventually(points.count, lambda now: now >= count + 15)
        # Play: two colours, whatever else happens in the middle.
        lab.press("play")
        lab.wait_for_value("lab.player.status.iteration > 20", True)
        lab.eventually(
            lambda: points.evaluate_all(
                "them => [them[0], them.at(-1)].map(one => one.getAttribute('fill'))"
            ),
            lambda fills: fills[0] != fills[1],
        )
        lab.wait_for_value("lab.is_running", True)
        lab.press("play")
        lab.wait_for_value("lab.is_running", False)
        # Erased, undone, typed, and shared.
        before = lab.value("lab.text")
        lab.choose_tool("Erase")
        lab.stroke([(8, 5.5), (8.6, 5.5)])
        lab.wait_for_value("len(lab.points) < 45 and lab.text != " + repr(before), True)
        lab.part("button.ew-undo").click()
        table = lab.part(".ew-point-table textarea")
        expect(table).to_have_value(before)
        table.fill("1 1\n2 2\n3 x")
        table.press("Tab")
        expect(lab.part(".ew-points-table .ew-problem")).to_contain_text("line 3 must be two numbers")
        table.fill("1 1\n2 2\n3 1\n2 3.5")
        table.press("Tab")
        expect(points).to_have_count(4)
        table.fill(before)
        table.press("Tab")
        lab.eventually(points.count, lambda now: now >= count + 15)
        assert lab.faults == []
