"""A guided tour: six captions, each with the state of the explorer that it speaks of.

It starts on data that separate quickly. Whoever has seen enough closes it; the explorer stays as it is then.
"""

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from ipywidgets import HBox

from ewens_widgets.views.base import assign, note
from ewens_widgets.views.fields import buttons
from ewens_widgets.views.stage import Cut

if TYPE_CHECKING:
    from ewens_widgets.views.explorer.explorer import Explorer

__all__ = ["Stop", "Tour"]

_SLOW, _QUICK = 1 / 10, 5.0


class Stop(NamedTuple):
    """A caption, and what the explorer does for it."""

    caption: str
    act: "Callable[[Explorer], None]"


def _begin(explorer: "Explorer") -> None:
    # Single linkage would leave one point alone and join two corners, where the caption promises four.
    explorer.use_preset("data=square&model=I&iterations=800&burn_in=200&tree=average")


def _walk(explorer: "Explorer") -> None:
    explorer.transport.choose_speed(_SLOW)
    explorer.player.play()


def _run(explorer: "Explorer") -> None:
    explorer.transport.choose_speed(_QUICK)
    explorer.player.run_to_end()


STOPS = (
    Stop(
        "80 points, drawn around the corners of a square. The chain is not told which belong together, "
        "nor how many groups there are: at first every point is alone, and grey.",
        _begin,
    ),
    Stop(
        "One iteration. Points have joined others; rings mark those that moved, and the sentence below "
        "counts the clusters of this draw. It is a first guess, and a poor one.",
        lambda explorer: explorer.player.step(),
    ),
    Stop(
        "The chain goes on: at each iteration it tries to split clusters, to merge them and to move "
        "points, and keeps what the data support, with some chance. Watch the colours settle.",
        _walk,
    ),
    Stop(
        "The same, as fast as it goes. No draw is the answer; all of them together are, and at the end the "
        "colours show it. In the heatmap every row and column is a point: blocks are points that most draws "
        "keep together.",
        _run,
    ),
    Stop(
        "The tree says it in another way: points that are mostly together meet low. Cut into four, its "
        "branches are the four corners. Drag the line to cut elsewhere.",
        lambda explorer: explorer.stage.set_cut(Cut(n_clusters=4)),
    ),
    Stop(
        "These are the groups that the points were drawn from, which the chain never saw. Now choose a "
        "story above the settings, or upload a table of your own under Data.",
        lambda explorer: explorer.stage.set_colouring("classes"),
    ),
)
"""The tour."""


class Tour(HBox):
    """Captions one after the other.

    Parameters
    ----------
    explorer
        What is shown.
    """

    def __init__(self, explorer: "Explorer") -> None:
        self._explorer = explorer
        self._place = -1
        self.caption = note("ew-tour-caption")
        self.buttons = buttons(
            (
                ("Next", "arrow-right", "ew-tour-next", "The next of six captions"),
                ("Close", "times", "ew-tour-close", "Leave the tour; the explorer stays as it is"),
            ),
            lambda name: explorer.post(self.next if name == "Next" else self.close_tour),
        )
        super().__init__((self.caption, *self.buttons.values()), layout={"display": "none"})
        self.add_class("ew-tour")

    @property
    def place(self) -> int:
        """Place of the caption on display, from 0; −1 while nobody takes the tour."""
        return self._place

    def begin(self) -> None:
        """Show the first caption."""
        self._place = -1
        assign(self.layout, display="")
        self.next()

    def next(self) -> None:
        """Show the next caption, after the last one none."""
        if self._place + 1 == len(STOPS):
            self.close_tour()
            return
        self._place += 1
        stop = STOPS[self._place]
        stop.act(self._explorer)
        is_last = self._place + 1 == len(STOPS)
        assign(self.buttons["Next"], layout={"display": "none" if is_last else ""})
        text = f"{self._place + 1} of {len(STOPS)} · {stop.caption}"
        assign(self.caption, value=escape(text))

    def close_tour(self) -> None:
        """Put the captions away."""
        self._place = -1
        assign(self.layout, display="none")
