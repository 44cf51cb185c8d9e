"""Command line: ``ewens-widgets lab``, ``app`` and ``paper``, one file a command."""

from ewens_widgets.app.command_line import main
from ewens_widgets.app.tutorials import copy_tutorials, shipped_tutorials

__all__ = ["copy_tutorials", "main", "shipped_tutorials"]
