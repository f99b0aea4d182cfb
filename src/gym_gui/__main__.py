"""`python -m gym_gui`: the window of the usual var folder."""

from __future__ import annotations

import sys

from gym_gui.launch import launch
from mosaic.contract.errors import MosaicError

try:
    sys.exit(launch(None))
except MosaicError as error:
    print(f"mosaic: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
