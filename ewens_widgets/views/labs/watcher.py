"""Watch any sampler of partitions: whatever yields one vector of labels after the other.

The protocol is that of an iterable. Each item is one iteration: a vector with the cluster of each object, as
numbers or names, or a pair of such a vector and its log density. A list of draws, a generator that runs
another sampler, and a file that is read line by line are all such sources. `LabelSource` adapts one to the
`Source` that a `Player` plays; everything else is as for the Explorer.

A source that is more than that, with states of its own to go back to, can implement the four members of
`playback.player.Source` and be given to a `Player` itself.
"""

from collections.abc import Iterable, Iterator, Sized
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ewens_widgets.arguments import check_count
from ewens_widgets.datasets import Dataset, as_dataset
from ewens_widgets.model.posterior import Posterior
from ewens_widgets.model.priors import PartitionPrior
from ewens_widgets.partition import canonical_labels, check_labels
from ewens_widgets.playback import Player
from ewens_widgets.sampling.draws import DrawTable
from ewens_widgets.views.bars_view import CountView
from ewens_widgets.views.base import View
from ewens_widgets.views.page import in_columns
from ewens_widgets.views.partition_view import PartitionView
from ewens_widgets.views.programmed import Programmed
from ewens_widgets.views.shared_state import SharedState
from ewens_widgets.views.similarity_views import HeatmapView, TreeView
from ewens_widgets.views.transport import Transport


class LabelSource:
    """Vectors of labels as a source of a `Player`; those that were read are kept, so that it can be reset.

    Parameters
    ----------
    labels
        Yields vectors of labels, or pairs of labels and log density.
    posterior
        Objects, and the prior that is drawn next to the numbers of clusters.
    """

    def __init__(self, labels: Iterable[Any], posterior: Posterior) -> None:
        self.iteration = 0
        self.posterior = posterior
        self._items: Iterator[Any] = iter(labels)
        self._read: list[tuple[NDArray[np.intp], float]] = []
        self._fault: Exception | None = None

    def advance(self, n: int) -> DrawTable:
        """Read the next `n` vectors, or as many as are left."""
        while len(self._read) < self.iteration + n:
            try:
                if self._fault is not None:
                    raise self._fault
                self._read.append(self._checked(next(self._items)))
            except StopIteration:
                break
            except Exception as error:
                self._fault = error  # what came before it is shown first
                if len(self._read) == self.iteration:
                    raise
                break
        rows = self._read[self.iteration : self.iteration + n]
        n_objects, grid = self.posterior.n_objects, self.posterior.theta_grid
        columns = {
            "iterations": self.iteration + 1 + np.arange(len(rows)),
            "labels": np.array([row for row, _ in rows], dtype=np.intp).reshape(len(rows), n_objects),
            "log_posterior": np.array([value for _, value in rows], dtype=np.float64),
            "theta_index": np.full(len(rows), grid.size - 1),
            "theta_weights": np.full((len(rows), grid.size), 1.0 / grid.size),
            "concentration": np.ones(len(rows)),
        }
        self.iteration += len(rows)
        return DrawTable(self.posterior, (), columns)

    def _checked(self, item: Any) -> tuple[NDArray[np.intp], float]:  # noqa: ANN401 - whatever is yielded
        is_pair = (
            isinstance(item, tuple) and len(item) == 2 and np.ndim(item[0]) == 1 and np.ndim(item[1]) == 0
        )
        labels, value = item if is_pair else (item, 0.0)
        found = canonical_labels(check_labels(labels))
        if found.size != self.posterior.n_objects:
            raise ValueError(
                f"item {len(self._read) + 1} has the labels of {found.size} objects; "
                f"{self.posterior.n_objects} are expected."
            )
        return found, float(value)

    def snapshot(self) -> None:
        """There is no state before the first vector."""

    def reset(self) -> None:
        """Begin with the first vector again; those that were read are shown again."""
        self.iteration = 0


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
        self.shared.prepare(posterior, dataset.labels)
        for view in self.views.values():
            view.prepare(dataset, posterior)
        self.attach(self.shared, *self.views.values(), self.transport)

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
