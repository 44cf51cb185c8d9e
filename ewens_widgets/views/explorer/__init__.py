"""The explorer: a dashboard that plays a chain, with panels for data, model, moves, run and files."""

from ewens_widgets.views.explorer.explorer import Explorer

__all__ = ["Explorer"]
