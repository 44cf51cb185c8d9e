"""What other code can follow and steer: traits, listeners, and single views in a layout of one's own.

The Explorer and `watch` have this in common. Their traits are those that `observe`, `link`, `dlink` and
`jslink` of ipywidgets take. The chain sets them, at most once per frame; without a page that shows frames, a
few times per second. What is set from outside is a command: a selection, an iteration to look at, play or
pause.

A function of the user that raises is removed, and its error is shown on the page. The chain goes on.

`watch` plays any other sampler: whatever yields one vector of labels after the other. Each item is one
iteration: a vector with the cluster of each object, as numbers or names, or a pair of such a vector and its
log density. A list of draws, a generator that runs another sampler, and a file that is read line by line are
all such sources. `LabelSource` adapts one to the `Source` that a `Player` plays. A source that is more than
that, with states of its own to go back to, can implement `playback.player.Source` and be given to a `Player`
itself.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from traitlets import Bool, Int, List, TraitError, observe, validate

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.partition import canonical_labels, check_labels
from ewens_widgets.playback import Frame, Player, PlayerStatus
from ewens_widgets.playback.player import Replay
from ewens_widgets.sampling.draws import DrawTable, Event
from ewens_widgets.sampling.trace import Trace
from ewens_widgets.views.base import Panel, Silence, View, assign, note
from ewens_widgets.views.page import Dashboard, in_columns
from ewens_widgets.views.partition_view import PartitionView
from ewens_widgets.views.quantity_views import CountView
from ewens_widgets.views.shared_state import SharedState
from ewens_widgets.views.similarity_views import HeatmapView, TreeView
from ewens_widgets.views.transport import Transport, status_text

if TYPE_CHECKING:
    from ewens_widgets.analysis.answer import Answer

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
    _dataset: Dataset

    def __init__(self, engine: Player, post: Callable[[Callable[[], None]], None]) -> None:
        self._by_chain = Silence()
        self._alone: list[LoneView] = []
        self._follower: Listener | None = None
        self._answer_shown: object = None
        self._due = 0.0
        super().__init__(engine, post)

    @property
    def dataset(self) -> Dataset:
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

    def _turn_to(self, dataset: Dataset, posterior: Posterior, *others: Any) -> None:  # noqa: ANN401 - screens
        """Have all views show a chain; `others` are further screens, which are shown its frames last."""
        self._dataset = dataset
        self.shared.prepare(posterior, dataset.labels)
        for view in self.views.values():
            view.prepare(dataset, posterior)
        self.player.detach(self.page)  # so that it stays the last one
        self.attach(self.shared, *self.views.values(), *others)

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


class LabelSource(Replay):
    """Vectors of labels as a source of a `Player`; those that were read are kept, so that it can be reset.

    Parameters
    ----------
    labels
        Yields vectors of labels, or pairs of labels and log density.
    posterior
        Objects, and the prior that is drawn next to the numbers of clusters.
    """

    def __init__(self, labels: Iterable[Any], posterior: Posterior) -> None:
        super().__init__(DrawTable(posterior))
        self.posterior = posterior
        self._items: Iterator[Any] = iter(labels)
        self._fault: Exception | None = None

    def advance(self, n: int) -> DrawTable:
        """Read the next `n` vectors, or as many as are left."""
        rows: list[tuple[NDArray[np.intp], float]] = []
        while len(self.draws) + len(rows) < self.iteration + n:
            try:
                if self._fault is not None:
                    raise self._fault
                rows.append(self._checked(next(self._items), len(self.draws) + len(rows) + 1))
            except StopIteration:
                break
            except Exception as error:
                self._fault = error  # what came before it is shown first
                if len(self.draws) + len(rows) == self.iteration:
                    raise
                break
        n_objects, grid = self.posterior.n_objects, self.posterior.theta_grid
        columns = {
            "iterations": len(self.draws) + 1 + np.arange(len(rows)),
            "labels": np.array([row for row, _ in rows], dtype=np.intp).reshape(len(rows), n_objects),
            "log_posterior": np.array([value for _, value in rows], dtype=np.float64),
            "theta_index": np.full(len(rows), grid.size - 1),
            "theta_weights": np.full((len(rows), grid.size), 1.0 / grid.size),
            "concentration": np.ones(len(rows)),
        }
        self.draws.extend(DrawTable(self.posterior, (), columns))
        return super().advance(n)

    def _checked(self, item: Any, number: int) -> tuple[NDArray[np.intp], float]:  # noqa: ANN401 - whatever is yielded
        is_pair = (
            isinstance(item, tuple) and len(item) == 2 and np.ndim(item[0]) == 1 and np.ndim(item[1]) == 0
        )
        labels, value = item if is_pair else (item, 0.0)
        found = canonical_labels(check_labels(labels))
        if found.size != self.posterior.n_objects:
            raise ValueError(
                f"item {number} has the labels of {found.size} objects; "
                f"{self.posterior.n_objects} are expected."
            )
        return found, float(value)


class Watcher(Programmed):
    """Plays partitions of another sampler: where the objects are, similarity, tree, number of clusters.

    Made by `watch`.
    """

    css_class = "ew-watcher ew-even ew-fills"

    def __init__(self, player: Player, posterior: Posterior, dataset: Dataset, *, has_data: bool) -> None:
        self._dataset, self.player = dataset, player
        self.shared = SharedState()
        super().__init__(self.player, self.shared.post)
        self.shared.burn_in = player.burn_in
        self.transport = Transport(self.player)
        self.views: dict[str, View] = {"partition": PartitionView(self.shared)} if has_data else {}
        self.views |= {
            "heatmap": HeatmapView(self.shared),
            "tree": TreeView(self.shared),
            "counts": CountView(self.shared),
        }
        columns: dict[str, tuple[View, ...]] = {
            f"ew-column-{name}": (view,) for name, view in self.views.items()
        }
        columns["ew-column-counts"] += columns.pop("ew-column-tree")
        self.lay_out(self.transport, in_columns(columns))
        self._turn_to(dataset, posterior, self.transport)

    def __repr__(self) -> str:
        status = self.player.status
        return f"Watcher({self._dataset.name!r}, iteration {status.iteration} of {status.target})"


def watch(
    labels: Iterable[Any],
    data: Dataset | ArrayLike | None = None,
    *,
    iterations: int | None = None,
    burn_in: int = 0,
    speed: float | None = 1.0,
    prior: PartitionPrior | None = None,
) -> Watcher:
    """Watch the partitions that any sampler yields.

    Parameters
    ----------
    labels
        A list, an array with a partition per row, or a generator. Each item is a vector with the cluster of
        each object, as numbers or names, or a pair of such a vector and its log density. Items are read one
        by one as the player needs them, on the event loop: reading an item should take milliseconds.
    data
        The objects, for a scatter plot; without data there are the other pictures.
    iterations
        Items after which playing stops; by default all of a list, or 1000.
    burn_in
        First items that averages leave out.
    speed
        Items per frame, or None for as fast as possible.
    prior
        Prior whose distribution of the number of clusters is drawn as a dashed line, ``Ewens(1.0)`` by
        default.

    Returns
    -------
    `Watcher`
        A widget with `player`, `trace`, and the traits and listeners of an Explorer.

    Examples
    --------
    >>> import numpy as np
    >>> import ewens_widgets as ew
    >>> rng = np.random.default_rng(0)
    >>> data = ew.datasets.unit_square(seed=0)
    >>> def another_sampler():
    ...     while True:
    ...         yield rng.integers(4, size=data.n_objects)
    >>> watcher = ew.watch(another_sampler(), data, iterations=200)
    >>> watcher.player.run_to_end_sync()
    >>> watcher
    Watcher('unit square', iteration 200 of 200)
    """
    given: Any = labels
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise TypeError(
            f"watch() takes a list or a generator of label vectors, such as [[0, 0, 1], [0, 1, 1]]; got "
            f"{type(given).__name__}."
        )
    length = len(labels) if isinstance(labels, Sized) else None
    if length == 0:
        raise ValueError("there is nothing to watch: the list of label vectors is empty.")
    items = iter(labels)
    first = next(items, None)
    if first is None:
        raise ValueError("there is nothing to watch: the source yields no label vector.")
    n_objects = np.shape(first[0] if isinstance(first, tuple) and np.ndim(first[0]) == 1 else first)
    if data is None:
        if len(n_objects) != 1 or n_objects[0] < 2:
            raise ValueError(f"a label vector has one label for each of at least two objects; got {first!r}.")
        dataset = Dataset(X=np.arange(float(n_objects[0]))[:, None], name=f"{n_objects[0]} objects")
    else:
        dataset = as_dataset(data)
    posterior = Posterior.from_data(dataset, model="I", prior=prior)

    player = Player(
        LabelSource(chain([first], items), posterior),
        DrawTable(posterior),
        target_iterations=check_count("iterations", iterations or length or 1000, 1),
        burn_in=check_count("burn_in", burn_in, 0),
        speed=speed,
    )
    return Watcher(player, posterior, dataset, has_data=data is not None)
