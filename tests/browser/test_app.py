"""`ewens-widgets app`: one visitor plays, the next one is asked to wait, and a place that is left is free."""

from collections.abc import Callable
from pathlib import Path

from browser.app_server import running_app
from browser.explorer_page import FIGURES, ExplorerPage
from browser.opened import new_page
from playwright.sync_api import Browser, Page, expect

# What the page does when it is closed, without closing it; then what it does when it comes into view again.
END_VISIT = """
async () => {
  const settings = JSON.parse(document.getElementById("jupyter-config-data").textContent);
  const form = new FormData();
  form.append("_xsrf", document.cookie.match("\\\\b_xsrf=([^;]*)\\\\b")[1]);
  const address = `${settings.baseUrl}voila/api/shutdown/${settings.kernelId}`;
  const answer = await fetch(address, { method: "POST", body: form });
  document.dispatchEvent(new Event("visibilitychange"));
  return answer.status;
}
"""


def test_visitors_of_the_web_app(
    page: Page, browser: Browser, compiled: None, tmp_path: Path, screenshot: Callable[[str], Path]
) -> None:
    with running_app(tmp_path, "--visitors=1", "--data=wine") as (address, server):
        first = ExplorerPage(new_page(browser))
        assert first.page.goto(address).status == 200
        first.wait_until_shown()
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
        screenshot("app-full")
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
        screenshot("app-ended")
        page.get_by_role("button", name="Start again").click()
        second.wait_until_shown()
        assert second.iteration() == 0
        server.terminate()
        assert server.wait() == 0
