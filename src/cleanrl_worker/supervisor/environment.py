"""The environment variables of the training process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleanrl_worker.config.scripts import Script
from cleanrl_worker.config.shell_scripts import FOLDER_VARIABLE, names_environment
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from mosaic.contract.atomic import write_atomic, write_json
from mosaic.contract.connection import RUN_VARIABLE
from mosaic.contract.paths import RunPaths
from mosaic.contract.phases import RUN_DIR_VARIABLE
from mosaic.contract.secrets import reference, referred
from mosaic.worker.environment import PYTHON_VARIABLE, surroundings


def training_environment(config: CleanRLWorkerConfig, run_dir: Path) -> dict[str, str]:
    """What the training process sees: the user's surroundings and what names the run; no secret of ours."""
    own = {
        "CLEANRL_RUN_ID": config.run_id,
        "CLEANRL_RUN_DIR": str(run_dir),
        "WANDB_RUN_ID": config.run_id,
        "PYTHONUNBUFFERED": "1",
        # What draws with SDL, live pictures of classic control too, would else take SIGTERM for itself.
        "SDL_NO_SIGNAL_HANDLERS": "1",
    }
    return surroundings() | own | _wandb(config.extras)


def _wandb(extras: Mapping[str, Any]) -> dict[str, str]:
    """W&B's own variables, so that any script which uses it finds its project and its proxy."""
    named = {
        "WANDB_PROJECT": extras.get("wandb_project_name") or extras.get("wandb_project"),
        "WANDB_ENTITY": extras.get("wandb_entity"),
        "WANDB_NAME": extras.get("wandb_run_name"),
        "WANDB_EMAIL": extras.get("wandb_email"),
    }
    if extras.get("wandb_use_vpn_proxy"):
        for scheme in ("http", "https"):
            proxy = extras.get(f"wandb_{scheme}_proxy") or reference(f"WANDB_VPN_{scheme.upper()}_PROXY")
            variable = referred(proxy)
            named[f"{scheme.upper()}_PROXY"] = os.environ.get(variable) if variable else proxy
    return {name: str(value) for name, value in named.items() if value}


_CONFIG_NAME = "worker_config.json"
# With our own search path: the script's may lead another interpreter to parts of us only.
_MOSAIC = """#!/bin/sh
PYTHONPATH="$MOSAIC_OWN_PYTHONPATH" exec "$MOSAIC_OWN_PYTHON" -P -m mosaic "$@"
"""


def shell_environment(
    environment: Mapping[str, str], config: CleanRLWorkerConfig, script: Script, paths: RunPaths
) -> dict[str, str]:
    """The training process's environment with what a shell script needs; makes the files that it names."""
    run_dir, tools = paths.run_dir, paths.run_dir / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    paths.checkpoints.mkdir(exist_ok=True)
    write_json(run_dir / _CONFIG_NAME, config.as_json())
    write_atomic(tools / "mosaic", _MOSAIC.encode(), mode=0o755)
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    search = [str(tools), str(Path(python).parent), environment.get("PATH", os.defpath)]
    own = {
        "MOSAIC_CONFIG_FILE": str(run_dir / _CONFIG_NAME),
        RUN_VARIABLE: config.run_id,
        RUN_DIR_VARIABLE: str(run_dir),
        "MOSAIC_CHECKPOINT_DIR": str(paths.checkpoints),
        FOLDER_VARIABLE: str(Path(script.target).parent),
        "MOSAIC_TOTAL_TIMESTEPS": str(config.total_timesteps),
        "MOSAIC_OWN_PYTHON": sys.executable,
        "MOSAIC_OWN_PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PATH": os.pathsep.join(search),
    }
    if config.effective_seed is not None:
        own["MOSAIC_SEED"] = str(config.effective_seed)
    if names_environment(script.head, config.env_id):
        own["MOSAIC_ENV_ID"] = config.env_id
    return {**environment, **own}
