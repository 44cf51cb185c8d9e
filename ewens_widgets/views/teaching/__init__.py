"""Widgets that each make one idea of the method visible."""
