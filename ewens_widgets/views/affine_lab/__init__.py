"""The affine lab: whose answer survives a change of coordinates, and whose does not."""

from ewens_widgets.views.affine_lab.affine_lab import AffineLab

__all__ = ["AffineLab"]
