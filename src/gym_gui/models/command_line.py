"""A run or a form as the command that starts the same run again."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mosaic
from gym_gui.models.form_state import show_seeds
from mosaic.client import RunRecord
from mosaic.client.command_line import NotTold, command_for
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VAR_VARIABLE, VarPaths, resolve_var
from mosaic.contract.secrets import lift_secrets

KEY_LEFT_OUT = "It contains no secret: set {names} where you run it."


@dataclass(frozen=True)
class ConfigPage:
    """The accepted payload, the file that holds it, and the command that starts the same run."""

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
    # The folder is named only where a command would use another one by itself.
    plain = {name: value for name, value in os.environ.items() if name != VAR_VARIABLE}
    named = None if resolve_var(plain) == var else var
    command = command_for(run.config, run.run_id, program(), named)
    return ConfigPage(payload.rstrip("\n"), path, exists, command)


def program() -> tuple[str, ...]:
    """How `mosaic` is called from any folder on this machine."""
    if shutil.which("mosaic"):
        return ("mosaic",)
    launcher = Path(mosaic.__file__).resolve().parents[2] / "mosaic"
    return (str(launcher),) if launcher.is_file() else (sys.executable, "-m", "mosaic")


def command_of(configs: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The command for configs that differ in their seed only, and what has to be said about it.

    A UserError says when no options of the command line mean the same.
    """
    lifted = lift_secrets(configs[0], os.environ)
    try:
        text = command_for(lifted.config)
    except NotTold:
        raise UserError(
            "The command line has no options for some of this: use the default live view, TensorBoard "
            "and resources, or submit from here."
        ) from None
    seeds = [one["metadata"]["worker"]["config"]["seed"] for one in configs]
    if len(seeds) > 1:
        listed = show_seeds(seeds).replace(" ", "")
        text = re.sub(rf"--seed {seeds[0]}\b", f"--seeds {listed}", text, count=1)
    unset = [name for name in lifted.values if name not in os.environ]
    return text, KEY_LEFT_OUT.format(names=" and ".join(unset)) if unset else ""
