"""`phase`, which scripts call while they train: it loads nothing that takes time."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from mosaic.contract.errors import UserError
from mosaic.contract.phases import RUN_DIR_VARIABLE, announce_phase


def run_phase(args: argparse.Namespace) -> int:
    named = os.environ.get(RUN_DIR_VARIABLE)
    if not named:
        raise UserError(
            "There is no run here: `mosaic phase` is for scripts that `mosaic train script.sh` runs."
        )
    if not Path(named).is_dir():
        raise UserError(f"The run's folder {named} in ${RUN_DIR_VARIABLE} does not exist.")
    announce_phase(Path(named), args.number, " ".join(args.text))
    return 0
