"""The command line, ``ewens-widgets lab``, ``app``, ``lite`` and others, and the pages that it makes."""

from ewens_widgets.app.command_line import copy_tutorials, main, shipped_tutorials

__all__ = ["copy_tutorials", "main", "shipped_tutorials"]
