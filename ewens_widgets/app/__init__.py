"""The command line, ``ewens-widgets lab``, ``app`` and others, and the web page that it serves."""

from ewens_widgets.app.command_line import copy_tutorials, main, shipped_tutorials

__all__ = ["copy_tutorials", "main", "shipped_tutorials"]
