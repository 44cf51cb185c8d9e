"""Play, Pause, Step, looking back and Reset, as they are seen in JupyterLab."""

from collections.abc import Iterator

import pytest
from browser.explorer_page import FAST, MOST_AFTER_PAUSE, assert_all_pictures_play
from browser.opened import (
    RECORDED,
    Desk,
    OpenedExplorer,
    Server,
    assert_stands_still,
    explorer_code,
    new_page,
    opened_explorer,
    show_notebook,
)
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def shared_explorer(desk: Desk) -> Iterator[OpenedExplorer]:
    code = explorer_code("ew.datasets.wine(), iterations=200_000")
    with opened_explorer(desk, code) as explorer:
        yield explorer


@pytest.fixture
def explorer(shared_explorer: OpenedExplorer) -> Iterator[OpenedExplorer]:
    """The explorer at its start; nothing may have gone wrong after the test."""
    shared_explorer.press("reset")
    shared_explorer.wait_for_iteration(0, or_later=False)
    shared_explorer.choose_speed("1 iteration per frame")
    shared_explorer.wait_until_still()
    yield shared_explorer
    shared_explorer.pause()
    expect(shared_explorer.part(".ew-view-error:visible")).to_have_count(0)
    assert shared_explorer.faults == []


def assert_colours_show(colours: list[str], labels: list[int]) -> None:
    """Objects of a cluster share a colour, those alone are grey; which colour depends on earlier pictures."""
    clusters: dict[int, list[str]] = {}
    for colour, label in zip(colours, labels, strict=True):
        clusters.setdefault(label, []).append(colour)
    for members in clusters.values():
        assert len(set(members)) == 1
        assert (members[0] == "rgb(140, 140, 140)") == (len(members) == 1)


def test_play_changes_all_pictures_and_pause_freezes_them_at_full_speed(explorer: OpenedExplorer) -> None:
    assert_all_pictures_play(explorer)
    assert_stands_still(explorer)


# What a picture's size becomes, each time it changes.
WATCH_SIZES = """
root => {
  window.ewSizes = [];
  const name = figure => figure.className.match(/ew-(?!figure)[a-z-]+/)[0];
  const told = new ResizeObserver(changes => window.ewSizes.push(...changes.map(
    ({ target, contentRect: { width, height } }) => `${name(target)}: ${width} x ${height}`)));
  for (const figure of root.querySelectorAll(".ew-figure")) told.observe(figure);
}
"""


def test_no_picture_changes_its_size_while_the_chain_runs_or_when_it_stops(explorer: OpenedExplorer) -> None:
    explorer.choose_speed(FAST)
    explorer.root.evaluate(WATCH_SIZES)
    explorer.page.wait_for_function("() => window.ewSizes.length > 0")  # once, as they are
    before = explorer.page.evaluate("() => window.ewSizes.splice(0)")
    explorer.press("play")
    # Sentences come, get longer and go: what all draws say is told from time to time.
    expect(explorer.part(".ew-aside")).to_contain_text("groups")
    explorer.wait_for_iteration(explorer.iteration() + 300)
    explorer.pause()
    expect(explorer.part(".ew-headline")).not_to_contain_text("groups")
    explorer.wait_until_still()
    assert len(before) == 3
    assert explorer.page.evaluate("() => window.ewSizes") == []


def test_looking_back_shows_the_past_and_play_goes_on_from_the_present(explorer: OpenedExplorer) -> None:
    explorer.press("step")
    explorer.wait_for_iteration(1)
    explorer.wait_until_still()
    first = explorer.marks()["bars"], explorer.status().split(" · ")[1]
    explorer.choose_speed("5 iterations per frame")
    explorer.press("play")
    explorer.wait_for_iteration(60)
    explorer.pause()
    present = explorer.iteration()
    labels = explorer.value("explorer.sampler.labels.tolist()")

    explorer.look_back(1)
    explorer.wait_for_iteration(1, or_later=False)
    expect(explorer.part(".ew-status")).to_contain_text("looking back")
    explorer.eventually(
        lambda: (explorer.marks()["bars"], explorer.status().split(" · ")[1]), lambda shown: shown == first
    )
    explorer.wait_until_still()
    assert_colours_show(
        explorer.marks()["scatter"], explorer.value("explorer.player.recorder.labels[0].tolist()")
    )
    assert explorer.value(RECORDED) == (present, present)
    assert explorer.value("explorer.sampler.labels.tolist()") == labels

    explorer.choose_speed("1 iteration per frame")
    explorer.press("play")
    explorer.wait_for_iteration(present + 1)
    explorer.pause()
    iteration = explorer.iteration()
    assert explorer.value(RECORDED) == (iteration, iteration)
    assert explorer.value("explorer.player.recorder.trace().iterations.tolist()") == [
        *range(1, iteration + 1)
    ]


def test_playing_does_not_fill_the_page(explorer: OpenedExplorer) -> None:
    """Marks replace what they drew before, and a picture is released when the next one is there."""
    count = "root => root.querySelectorAll('.ew-count-bars *').length"
    size = "address => fetch(address).then(answer => answer.blob()).then(bytes => bytes.size, () => -1)"
    explorer.press("play")
    explorer.wait_for_iteration(60)
    early = int(explorer.root.evaluate(count))
    (picture,) = explorer.marks()["heatmap"]
    explorer.wait_for_iteration(180)
    assert int(explorer.root.evaluate(count)) < early + 30
    explorer.pause()
    (shown,) = explorer.marks()["heatmap"]
    assert explorer.page.evaluate(size, shown) > 0
    explorer.eventually(lambda: explorer.page.evaluate(size, picture), lambda size: size == -1)
    # The browser reports the address that we asked for in vain.
    explorer.faults[:] = [fault for fault in explorer.faults if picture not in fault]


@pytest.mark.nightly
def test_pause_freezes_500_objects_at_full_speed(page: Page, shared_server: Server) -> None:
    code = explorer_code("ew.datasets.half_moons(n=500, seed=0), iterations=1_000_000, speed=None")
    with opened_explorer(Desk(page, shared_server), code) as explorer:
        explorer.press("play")
        explorer.wait_for_iteration(300)
        assert explorer.pause_frames() <= MOST_AFTER_PAUSE
        assert_stands_still(explorer)
        assert explorer.faults == []


def test_the_chain_goes_on_while_the_page_is_closed(
    page: Page, browser: Browser, shared_server: Server
) -> None:
    code = explorer_code("ew.datasets.wine(), iterations=100_000")
    desk = Desk(page, shared_server)
    with opened_explorer(desk, code) as explorer:
        explorer.press("play")
        explorer.wait_for_iteration(20)
        page.keyboard.press("Control+s")
        expect(page.locator(".jp-mod-dirty")).to_have_count(0)
        last_seen = explorer.iteration()
        page.goto("about:blank")

        again = new_page(browser)
        reopened = OpenedExplorer(again, kernel=explorer.kernel)
        show_notebook(again, shared_server.lab, desk.notebook)
        reopened.wait_until_shown()
        reopened.wait_for_iteration(last_seen + 1)
        before = reopened.marks()
        reopened.wait_for_iteration(reopened.iteration() + 20)
        assert reopened.pause_frames() <= MOST_AFTER_PAUSE
        assert reopened.marks()["heatmap"] != before["heatmap"]
        assert reopened.faults == []
        again.context.close()
        assert explorer.faults == []
