"""The prior lab: what the Ewens prior believes about clusters before it has seen any data."""

from ewens_widgets.views.prior_lab.prior_lab import PriorLab

__all__ = ["PriorLab"]
