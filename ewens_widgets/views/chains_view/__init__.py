"""Several chains side by side, and whether they agree."""

from ewens_widgets.views.chains_view.chains_view import ChainsView

__all__ = ["ChainsView"]
