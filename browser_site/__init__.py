"""Builds the site on which tutorials and labs run in the browser (docs/hosting.md)."""
