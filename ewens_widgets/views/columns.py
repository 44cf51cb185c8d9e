"""Widgets side by side: the columns of the explorer and of the labs, which wrap on a narrow page."""

from collections.abc import Mapping, Sequence

from ipywidgets import HBox, VBox, Widget

__all__ = ["in_columns"]


def in_columns(columns: Mapping[str, Sequence[Widget]]) -> HBox:
    """Columns from left to right: by their CSS class, what each has from top to bottom."""
    boxes = []
    for css_class, widgets in columns.items():
        box = VBox(tuple(widgets))
        box.add_class(css_class)
        boxes.append(box)
    row = HBox(tuple(boxes))
    row.add_class("ew-columns")
    return row
