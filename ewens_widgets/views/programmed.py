"""What other code can follow and steer: traits, listeners, and single views in a layout of one's own.

The Explorer and `watch` have this in common. Their traits are those that `observe`, `link`, `dlink` and
`jslink` of ipywidgets take. The chain sets them, at most once per frame; without a page that shows frames, a
few times per second. What is set from outside is a command: a selection, an iteration to look at, play or
pause.

A function of the user that raises is removed, and its error is shown on the page. The chain goes on.
"""

import logging
import time
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from traitlets import Bool, Int, List, TraitError, observe, validate

from ewens_widgets.playback import Frame, Player, PlayerStatus
from ewens_widgets.sampling.draws import DrawTable, Event
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.views.base import Panel, Silence, View, assign, note
from ewens_widgets.views.page import Dashboard
from ewens_widgets.views.shared_state import SharedState
from ewens_widgets.views.transport import status_text

if TYPE_CHECKING:
    from ewens_widgets.analysis.answer import Answer
    from ewens_widgets.datasets import Dataset

_logger = logging.getLogger(__name__)

_REST = 0.1  # seconds between two changes of `iteration` where no page shows frames
_ALIASES = {"similarity": "heatmap"}


class _Positions(List):
    """A list of whole numbers, which arrays are converted to."""

    def validate(self, obj: Any, value: Any) -> Any:  # noqa: ANN401 - the signature of traitlets
        found = np.asarray(value if np.size(value) else [], dtype=None if np.size(value) else np.intp)
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise TraitError(f"{self.name} must be a list of positions, such as [0, 4, 7]; got {value!r}.")
        return super().validate(obj, found.tolist())


class Listener:
    """A function of the user; one that raises is removed by its caller, and its error is shown."""

    def __init__(self, function: Callable[[Any], object], show_error: Callable[[Exception], None]) -> None:
        self._call = function
        self.show_error = show_error

    def __call__(self, news: Frame | DrawTable) -> None:
        """Call the function with a frame, or with a block."""
        self._call(news)

    show = __call__


class Programmed(Dashboard):
    """A dashboard of one chain with traits and listeners.

    A subclass has a `player`, a `shared` state, `views` by name, and a `dataset` before it calls this
    constructor, or before it calls `attach`.
    """

    iteration = Int(0).tag(sync=True)
    """Iteration on display. Setting it pauses the chain and shows this iteration; the draws are kept."""

    is_running = Bool(False).tag(sync=True)
    """Whether the chain runs. Setting it plays or pauses."""

    selection = _Positions().tag(sync=True)
    """Positions of the selected objects, in increasing order; all pictures mark them. It can be set."""

    answer_labels = _Positions().tag(sync=True)
    """Group of each object in the last answer, −1 if unassigned; empty before the first answer."""

    n_groups = Int(None, allow_none=True).tag(sync=True)
    """Number of groups in the last answer; None before the first one."""

    player: Player
    shared: SharedState
    _dataset: "Dataset"

    def __init__(self, engine: Player, post: Callable[[Callable[[], None]], None]) -> None:
        self._by_chain = Silence()
        self._alone: list[LoneView] = []
        self._follower: Listener | None = None
        self._answer_shown: object = None
        self._due = 0.0
        super().__init__(engine, post)

    @property
    def dataset(self) -> "Dataset":
        """The data that are being clustered."""
        return self._dataset

    @property
    def trace(self) -> Trace:
        """The draws so far as a trace, without the burn-in; within it, all of them."""
        recorder, burn_in = self.player.recorder, self.player.burn_in
        return recorder.trace(burn_in=burn_in if len(recorder) > burn_in else 0)

    def caption(self) -> str:
        """Heading of the still picture."""
        return f"{self.dataset.name} · {status_text(self.player.current_frame())}"

    def attach(self, *views: Any) -> None:  # noqa: ANN401 - whatever the player can show its frames to
        """Have frames shown by these views, by the traits, by single views, and then by the page."""
        if self._follower is None:
            self._follower = Listener(self._follow, lambda _: None)
            self.shared.selection.observe(lambda: self._tell(selection=self.shared.selection.objects))
            self.player.on_status(self._read_status)
            self.player.on_block(lambda _: self._tick())
        super().attach(*views, *self._alone, self._follower)

    # From the chain to the traits.

    def _tell(self, **traits: Any) -> None:  # noqa: ANN401 - of any type
        with self._by_chain:
            assign(self, **traits)

    def _follow(self, frame: Frame) -> None:
        self._read_status(frame.status)
        found = None if frame.answer is None else frame.answer.answer
        if found is not self._answer_shown:
            self._answer_shown = found
            labels, count = ([], None) if found is None else (found.labels, found.n_clusters)
            self._tell(answer_labels=labels, n_groups=count)

    def _read_status(self, status: PlayerStatus) -> None:
        self._tell(iteration=status.shown_iteration, is_running=status.is_running)

    def _tick(self) -> None:
        now = time.perf_counter()
        if not self.player.is_watched and now >= self._due:
            self._due = now + _REST
            self._tell(iteration=self.player.source.iteration)

    # From the traits to the chain.

    @validate("selection")
    def _check_selection(self, proposal: dict[str, Any]) -> list[int]:
        chosen, most = sorted(set(proposal["value"])), self.dataset.n_objects
        if chosen and not 0 <= chosen[0] <= chosen[-1] < most:
            raise TraitError(f"selection has positions from 0 to {most - 1}; got {proposal['value']}.")
        return chosen

    @observe("selection")
    def _select(self, change: dict[str, Any]) -> None:
        if not self._by_chain:
            self.post(lambda: self.shared.selection.set(change["new"], source=self))

    # Commands are carried out while a value is checked, so that observers are told what came of it.

    @validate("iteration")
    def _look_at(self, proposal: dict[str, Any]) -> int:
        wanted = int(proposal["value"])
        if self._by_chain:
            return wanted
        self.player.seek(None if wanted == self.player.status.iteration else wanted)
        return self.player.status.shown_iteration

    @validate("is_running")
    def _run(self, proposal: dict[str, Any]) -> bool:
        wanted = bool(proposal["value"])
        if self._by_chain:
            return wanted
        (self.player.play if wanted else self.player.pause)()
        return self.player.status.is_running

    # Listeners.

    def on_event(self, function: Callable[[Event], object]) -> Callable[[], None]:
        """Call a function with every iteration, in order, once it is recorded.

        It is called on the event loop, in blocks: a slow function slows the chain down.

        Returns
        -------
        function that removes it
        """
        removed: list[bool] = []

        def tell(block: DrawTable) -> None:
            for event in block:
                if removed:
                    return
                function(event)

        remove = self.player.on_block(self._listener("on_event", function, tell))

        def stop() -> None:
            removed.append(True)
            remove()

        return stop

    def on_frame(self, function: Callable[[Frame], object]) -> Callable[[], None]:
        """Call a function with the current frame and with every later one, about as often as pages are drawn.

        A `Frame` has the event on display, the status, a summary of the draws so far, and the last answer.
        Without a page there are no frames.

        Returns
        -------
        function that removes it
        """
        listener = self._listener("on_frame", function, function)
        self.player.attach(listener)
        return lambda: self.player.detach(listener)

    def _listener(
        self, kind: str, function: Callable[[Any], object], call: Callable[[Any], object]
    ) -> Listener:
        if not callable(function):
            raise TypeError(f"{kind} takes a function with one argument; got {function!r}.")
        name = getattr(function, "__name__", type(function).__name__)

        def show_error(error: Exception) -> None:
            reason = escape(f"{type(error).__name__}: {error}")
            text = f"<b>{escape(name)} was removed</b> because it raised {reason}. The chain continues."
            fault = note("ew-view-error ew-listener-error", text)
            self.children = (*self.children[:-1], fault, self.children[-1])

        return Listener(call, show_error)

    # Answer and views.

    @property
    def answer(self) -> "Answer | None":
        """The last answer: at rest that of all draws, while the chain runs one of few draws, or None."""
        if not self.player.status.is_running:
            self.player.complete()
        found = self.player.current_frame().answer
        return None if found is None else found.answer

    @property
    def selected_index(self) -> Sequence[Any]:
        """The selected rows in the index of a DataFrame, or by name; their positions if they have neither."""
        index = self.dataset.row_names if self.dataset.index is None else self.dataset.index
        return list(self.selection) if index is None else [index[row] for row in self.selection]

    def view(self, name: str) -> "LoneView":
        """Return one picture as a widget for a layout of your own; it follows the same chain.

        Selection, colours, tree and cut are shared with all other pictures of the chain. Closing it leaves
        the chain alone.

        Parameters
        ----------
        name
            ``"partition"``, ``"similarity"``, ``"tree"``, ``"counts"``, ``"theta"`` or ``"traces"``.
        """
        known = self.views.get(_ALIASES.get(name, name))
        if known is None:
            back = {key: alias for alias, key in _ALIASES.items()}
            names = ", ".join(back.get(key, key) for key in self.views)
            raise ValueError(f"there is no view {name!r}; choose one of {names}.")
        alone = LoneView(type(known)(self.shared), self)
        self._alone.append(alone)
        return alone


class LoneView(Dashboard):
    """One picture of a chain, with what it needs to stand on a page of its own."""

    css_class = "ew-alone"

    def __init__(self, view: View, owner: Programmed) -> None:
        self.view = view
        self._owner = owner
        self._prepared_for: tuple[object, object] = (None, None)
        super().__init__(None, owner.post)
        self.lay_out(view)
        owner.player.attach(self)
        self.page.attach_to(owner.player)

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The picture."""
        return (self.view,)

    def show(self, frame: Frame) -> None:
        """Show a frame; other data or another model are noticed here."""
        dataset, posterior = self._owner.dataset, frame.summary.posterior
        if self._prepared_for[0] is not dataset or self._prepared_for[1] is not posterior:
            self._prepared_for = dataset, posterior
            self.view.prepare(dataset, posterior)
        self.view.show(frame)

    def show_error(self, error: Exception) -> None:
        """Show in the picture why it is switched off."""
        self._prepared_for = (None, None)
        self.view.show_error(error)

    def caption(self) -> str:
        """Heading of the still picture."""
        return self._owner.caption()

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of what is on display: ``"png"`` or ``"svg"``."""
        self._owner.player.refresh()
        return self.view.picture(kind)

    def close(self) -> None:
        """Close the picture; the chain goes on."""
        for screen in (self, getattr(self, "page", None)):
            if screen is not None and hasattr(self, "_owner"):
                self._owner.player.detach(screen)
        if hasattr(self, "view"):
            self.view.shared.unobserve(self.view.redraw)
        super().close()

    def __repr__(self) -> str:
        return f"{self.view.title} of {self._owner!r}"
