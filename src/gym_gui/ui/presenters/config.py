"""The config of a run as the Config tab shows it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import mosaic
from gym_gui.models.command_line import command_for
from mosaic.client import RunRecord
from mosaic.contract.paths import VAR_VARIABLE, VarPaths, resolve_var


@dataclass(frozen=True)
class ConfigPage:
    """The accepted payload, the file that holds it, and the command that starts the same run."""

    run_id: str
    payload: str
    path: Path
    exists: bool
    command: str


def config_page(run: RunRecord, var: Path) -> ConfigPage:
    """What is to be told of a run's config. It reads files: not for the thread of the window."""
    path = VarPaths(var).run_config(run.run_id)
    try:
        payload, exists = path.read_text("utf-8"), True
    except OSError:
        # Removed since: the daemon's own record says the same.
        payload, exists = json.dumps(run.config, indent=2, ensure_ascii=False), False
    command = command_for(run.config, run.run_id, program(), var_if_needed(var))
    return ConfigPage(run.run_id, payload.rstrip("\n"), path, exists, command)


def program() -> tuple[str, ...]:
    """How `mosaic` is called from any folder on this machine."""
    if shutil.which("mosaic"):
        return ("mosaic",)
    launcher = Path(mosaic.__file__).resolve().parents[2] / "mosaic"
    return (str(launcher),) if launcher.is_file() else (sys.executable, "-m", "mosaic")


def var_if_needed(var: Path) -> Path | None:
    """The var folder when a command would use another one by itself."""
    plain = {name: value for name, value in os.environ.items() if name != VAR_VARIABLE}
    return None if resolve_var(plain) == var else var
