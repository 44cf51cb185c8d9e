"""The move inspector: one proposal in slow motion, and the numbers that decide about it."""

from ewens_widgets.views.move_inspector.move_inspector import MoveInspector

__all__ = ["MoveInspector"]
