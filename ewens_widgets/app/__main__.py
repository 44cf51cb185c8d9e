"""``python -m ewens_widgets.app``."""

import sys

from ewens_widgets.app import main

sys.exit(main())
