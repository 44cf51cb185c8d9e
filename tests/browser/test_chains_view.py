"""The two-minute lesson with the ChainsView: chains start apart, and then agree or do not."""

import pytest
from browser.opened import Desk, OpenedWidget, opened_widget
from playwright.sync_api import expect

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


def test_chains_that_come_to_agree(desk: Desk) -> None:
    settings = 'model="III", iterations=400, burn_in=100, speed=1.0'
    expression = f"ew.ChainsView(ew.datasets.unit_square(seed=0), {settings})"
    with opened_widget(OpenedWidget, desk, expression) as view:
        expect(view.part(".ew-sentence")).to_contain_text("Will they agree?")
        # They start apart, and after some iterations they still differ.
        view.press("play")
        view.wait_for_iteration(20)
        view.press("pause")
        # Nothing is left that could go on, and the page shows where it stopped.
        view.wait_for_value("widget.player._task is None", True)
        view.wait_for_iteration(view.value("widget.player.status.iteration"), or_later=False)
        expect(view.part(".ew-sentence")).not_to_contain_text("Too early")
        expect(view.part(".ew-sentence")).not_to_contain_text("The chains agree:")
        # Four chains, and a line where counting begins.
        expect(view.part(".ew-trace-clusters path.line")).to_have_count(5)
        pictures = view.part("img.ew-similarity")
        expect(pictures).to_have_count(5)
        early = str(pictures.last.get_attribute("src"))

        # They agree in the end, and the numbers on the page are those of the draws.
        view.press("run-to-end")
        view.wait_for_iteration(400)
        expect(view.part(".ew-sentence")).to_contain_text("The chains agree")
        expected = view.value("dict(ew.diagnose(list(widget.traces)).rhat)")
        wanted = pytest.approx({name: expected[name] for name in QUANTITIES}, abs=1e-6)
        # The table follows the status line by a moment.
        shown = view.eventually(lambda: rhats(view), lambda rhats: rhats == wanted)
        assert max(shown.values()) < 1.05
        view.eventually(lambda: view.number('td[data-ess="n_clusters"]'), lambda ess: ess > 100)
        expect(pictures.last).not_to_have_attribute("src", early)
        assert view.part(".ew-chain-numbers td[data-value]").evaluate_all(ONE_LINE)

        # Looking back shows what was known then, and Reset starts again.
        view.look_back(20)
        expect(view.part(".ew-sentence")).to_contain_text("do not agree")
        view.eventually(lambda: max(rhats(view).values()), lambda rhat: rhat > 1.2)
        view.press("reset")
        expect(view.part(".ew-status")).to_contain_text("iteration 0 of")
        expect(view.part(".ew-sentence")).to_contain_text("Will they agree?")
        assert view.faults == []
