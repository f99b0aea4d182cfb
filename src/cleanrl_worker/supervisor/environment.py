"""The environment variables of the training process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from mosaic.contract.secrets import reference, referred
from mosaic.worker.environment import surroundings


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
