"""Which objects the user has selected, shared by the views that can select and show them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Selection"]


class Selection:
    """A set of objects with observers."""

    def __init__(self) -> None:
        self._objects: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.source: object = None
        self._observers: list[Callable[[], None]] = []

    @property
    def objects(self) -> NDArray[np.intp]:
        """Indices of the selected objects in increasing order; read-only, empty if none is selected."""
        return self._objects

    def __len__(self) -> int:
        return self._objects.size

    def set(self, objects: ArrayLike, source: object = None) -> None:
        """Select these objects and no others, in the name of `source`; tell the observers of a change."""
        chosen = np.unique(np.asarray(objects, dtype=np.intp))
        if np.array_equal(chosen, self._objects) and source is self.source:
            return
        self.source = source
        chosen.setflags(write=False)
        self._objects = chosen
        for observer in tuple(self._observers):
            observer()

    def clear(self) -> None:
        """Select nothing."""
        self.set(())

    def observe(self, observer: Callable[[], None]) -> None:
        """Have a function called after each change."""
        self._observers.append(observer)
