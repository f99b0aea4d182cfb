"""The CleanRL worker: single-agent reinforcement learning, one supervised process a run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if getattr(sys, "argv", [""])[0] == "-m":
    # A module of ours is started. The caller's folder comes last: a `random.py` would hide Python's own.
    sys.path.append(os.environ.get("MOSAIC_USER_FOLDER", "") if sys.flags.safe_path else sys.path.pop(0))

if TYPE_CHECKING:
    from mosaic.contract.capabilities import WorkerCapabilities

__all__ = ["get_worker_metadata"]


def get_worker_metadata() -> WorkerCapabilities:
    """The descriptor behind the `mosaic.workers` entry point."""
    # Every process of a run imports this package, and none of them asks.
    from mosaic.contract.capabilities import WorkerCapabilities

    return WorkerCapabilities(
        worker_type="cleanrl",
        display_name="CleanRL Worker",
        cli_module="cleanrl_worker.cli",
        provides_fast_analytics=True,
        supports_policy_load=True,
        tracks_wandb=True,
        secrets=("wandb_api_key",),
        player_module="cleanrl_worker.evaluation.interactive",
        forms={
            "train": "gym_gui.ui.widgets.cleanrl_forms:CleanRLTrainForm",
            "resume": "gym_gui.ui.widgets.cleanrl_forms:CleanRLResumeForm",
            "policy": "gym_gui.ui.widgets.cleanrl_forms:CleanRLPolicyForm",
            "script": "gym_gui.ui.widgets.cleanrl_forms:CleanRLScriptForm",
        },
        presenter="gym_gui.ui.presenters.cleanrl_forms:CleanRLForms",
        catalog="cleanrl_worker.supervisor.offers:CATALOG",
    )
