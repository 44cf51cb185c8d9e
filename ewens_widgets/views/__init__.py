"""Live pictures of a chain for Jupyter: views, and the explorer that puts them together."""

import warnings

with warnings.catch_warnings():
    # Its traits use what traitlets announces to drop, which is no news here; later imports find it loaded.
    warnings.simplefilter("ignore", DeprecationWarning)
    import bqplot  # noqa: F401

from ewens_widgets.views.base import View
from ewens_widgets.views.explorer.explorer import Explorer
from ewens_widgets.views.page import Page
from ewens_widgets.views.partition_view import PartitionView
from ewens_widgets.views.quantity_views import CountView, ThetaView, TracesView
from ewens_widgets.views.shared_state import Cut, SharedState
from ewens_widgets.views.similarity_views import HeatmapView, TreeView

__all__ = [
    "CountView",
    "Cut",
    "Explorer",
    "HeatmapView",
    "Page",
    "PartitionView",
    "SharedState",
    "ThetaView",
    "TracesView",
    "TreeView",
    "View",
]
