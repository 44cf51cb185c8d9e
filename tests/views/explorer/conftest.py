"""An explorer whose messages are counted."""

import pytest
from views.chains import Wire
from views.explorer.small_explorer import square

from ewens_widgets.views.explorer.explorer import Explorer


@pytest.fixture
def explorer(wire: Wire) -> Explorer:
    return Explorer(square(), model="I", iterations=200, burn_in=20)
