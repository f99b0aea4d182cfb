"""Commands that make the committed data files, or prepare an environment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from mosaic.contract.atomic import write_atomic


def write_or_check(file: Path, generate: Callable[[], str], module: str, about: str | None) -> int:
    """Write what a module generates; with `--check` among its words only say whether the file is fresh."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="only say whether the file is fresh")
    check = parser.parse_args().check
    fresh = generate()
    if not check:
        write_atomic(file, fresh.encode())
    elif not file.is_file() or file.read_text("utf-8") != fresh:
        print(f"{file.name} is old; run python -m cleanrl_worker.tools.{module}", file=sys.stderr)
        return 1
    return 0
