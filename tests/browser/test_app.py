"""`ewens-widgets app`: one visitor plays, the next one is asked to wait, and a place that is left is free.

Where the Explorer does not come the page says so.
"""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from browser.explorer_page import FIGURES, ExplorerPage
from browser.opened import new_page
from browser.servers import running_app
from playwright.sync_api import Browser, Page, Route, expect

# What the page does when it is closed, without closing it.
END_VISIT = """
async () => {
  const settings = JSON.parse(document.getElementById("jupyter-config-data").textContent);
  const form = new FormData();
  form.append("_xsrf", document.cookie.match("\\\\b_xsrf=([^;]*)\\\\b")[1]);
  const address = `${settings.baseUrl}voila/api/shutdown/${settings.kernelId}`;
  const answer = await fetch(address, { method: "POST", body: form });
  return answer.status;
}
"""

# Whether a figure is seen before, and once, the kernel has fitted it to the page.
SEEN = """
root => [false, true].map(isFitted => {
  root.classList.toggle("ew-fitted", isFitted);
  return getComputedStyle(root.querySelector(".ew-scatter")).opacity;
})
"""


def test_visitors_of_the_web_app(page: Page, browser: Browser, compiled: None, tmp_path: Path) -> None:
    with running_app(tmp_path, "--visitors=1", "--data=wine") as (address, server):
        first, asked = ExplorerPage(new_page(browser)), set()
        first.page.on("request", lambda request: asked.add(urlsplit(request.url).hostname))
        assert first.page.goto(address).status == 200
        first.wait_until_shown()
        expect(first.root).to_have_class(re.compile("ew-fitted"))
        assert first.root.evaluate(SEEN) == ["0", "1"]
        # Icons come along, and nothing is asked of another host; a data URL has none.
        assert asked <= {"localhost", None}
        icon = first.part("button.ew-play i")
        expect(icon).to_have_css("mask-image", re.compile(r"^url\(.data:image/svg"))
        box = icon.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 8
        assert first.page.title() == "ewens_widgets Explorer"
        assert "LOADERS" not in first.page.content()  # a name in the code, which is nowhere in the page
        marks = first.marks()
        first.press("play")
        first.wait_for_iteration(20)
        later = first.marks()
        for name in FIGURES:
            assert later[name] != marks[name]

        assert page.goto(address).status == 503
        expect(page.get_by_role("heading", name="All places are taken")).to_be_visible()
        expect(page.get_by_text("it has room for 1")).to_be_visible()
        first.wait_for_iteration(first.iteration() + 1)  # the others are not disturbed
        assert first.faults == []

        first.page.close(run_before_unload=True)
        second = ExplorerPage(page)
        with page.expect_navigation():
            page.get_by_role("button", name="Ask now").click()
        second.wait_until_shown()
        second.press("step")
        second.wait_for_iteration(1)
        assert second.faults == []
        assert page.evaluate(END_VISIT) == 204
        expect(page.get_by_role("alertdialog")).to_contain_text("This visit has ended")
        page.get_by_role("button", name="Start again").click()
        second.wait_until_shown()
        assert second.iteration() == 0
        server.terminate()
        assert server.wait() == 0


def test_a_page_says_that_the_explorer_does_not_come_and_is_silent_once_it_has_come(
    page: Page, compiled: None, tmp_path: Path
) -> None:
    held: list[Route] = []
    page.route("**/voila.js", lambda route: held.insert(0, route))
    page.clock.install()
    notice = page.get_by_role("alertdialog")
    wait, start_again = (notice.get_by_role("button", name=name) for name in ("Wait", "Start again"))

    def load(how: Callable[[], object]) -> None:
        with page.expect_request("**/voila.js"):
            how()
        page.clock.fast_forward("01:00")
        expect(notice).to_contain_text("has not appeared within a minute")

    with running_app(tmp_path, "--visitors=1") as (address, _):
        load(lambda: page.goto(address, wait_until="commit"))
        words = "part => getComputedStyle(part, '::after').content"
        assert page.locator("#loading_text").evaluate(words) == '"Starting the Explorer …"'
        expect(start_again).to_be_focused()
        wait.click()
        expect(notice).to_have_count(0)
        # The only place is free again at once, although Voilà's script is not there to say so.
        load(lambda: page.reload(wait_until="commit"))
        load(start_again.click)

        explorer = ExplorerPage(page)
        held[0].continue_()
        explorer.wait_until_shown()
        expect(notice).to_have_count(0)
        page.clock.fast_forward("01:00")
        explorer.press("step")
        explorer.wait_for_iteration(1)
        expect(notice).to_have_count(0)
        assert explorer.faults == []
