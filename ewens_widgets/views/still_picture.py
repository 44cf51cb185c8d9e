"""A picture for pages where no widget can run: nbconvert, or the preview of a code host."""

import base64
import logging
from typing import Any

__all__ = ["StillPicture"]

_logger = logging.getLogger(__name__)


class StillPicture:
    """Comes before the widget among the bases of a class; adds a PNG of the current state to its display."""

    def picture(self, kind: str = "png") -> bytes:
        """Static picture of what is on display."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **keywords: Any) -> dict[str, Any]:  # noqa: ANN401 - passed on
        bundle: dict[str, Any] = super()._repr_mimebundle_(**keywords)  # type: ignore[misc]
        try:
            picture = self.picture()
        except Exception:
            # A page that can run widgets must not suffer because a static picture cannot be made.
            _logger.warning("no static picture of %s", type(self).__name__, exc_info=True)
            return bundle
        return {**bundle, "text/plain": repr(self), "image/png": base64.b64encode(picture).decode()}
