"""The explorer on versions of ipykernel that treat messages and event loop differently."""

from pathlib import Path

import pytest
from browser.explorer_page import FAST, FIGURES, MOST_AFTER_PAUSE
from browser.opened import Server, explorer_code, opened_explorer
from browser.other_kernels import add_kernelspec, install_ipykernel
from playwright.sync_api import Page, expect


@pytest.mark.parametrize("version", ["6.31", "7.3", "7.4"])
def test_play_pause_and_step(version: str, page: Page, shared_server: Server, repository: Path) -> None:
    folder, name = repository / "artefacts" / f"ipykernel-{version}", f"ipykernel-{version}"
    install_ipykernel(version, folder)
    add_kernelspec(shared_server.private / "data", name, folder)
    code = explorer_code("ew.datasets.wine(), iterations=200_000")
    with opened_explorer(page, shared_server, name, code, kernel=name) as explorer:
        found = explorer.value("__import__('ipykernel').__version__")
        assert str(found).startswith(f"{version}.")
        marks = explorer.marks()
        explorer.press("step")
        explorer.wait_for_iteration(1)
        explorer.wait_until_still()
        assert explorer.iteration() == 1
        assert explorer.value("explorer.player.status.iteration") == 1

        explorer.press("play")
        explorer.wait_for_iteration(10)
        explorer.choose_speed(FAST)
        explorer.wait_for_iteration(300)
        assert explorer.pause_frames() <= MOST_AFTER_PAUSE
        present = explorer.iteration()
        assert explorer.value("explorer.player.status.iteration") == present
        later = explorer.marks()
        for figure in FIGURES:
            assert later[figure] != marks[figure]

        explorer.press("step")
        explorer.wait_for_iteration(present + 1)
        explorer.wait_until_still()
        assert explorer.iteration() == present + 1
        expect(explorer.part(".ew-view-error:visible")).to_have_count(0)
        assert explorer.faults == []
