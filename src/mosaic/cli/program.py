"""How the user calls us, for sentences that name the next command."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program() -> str:
    """`mosaic` as the user can type it from where they are: `mosaic`, `./mosaic` or a path."""
    launcher = Path(__file__).resolve().parents[3] / "mosaic"
    if Path(sys.argv[0]).name == "mosaic" or not launcher.is_file():
        return "mosaic"
    relative = os.path.relpath(launcher)
    if relative.startswith(".."):
        return min(relative, str(launcher), key=len)
    return f"./{relative}"
