"""Logging to Weights & Biases, for those who ask for it."""

from __future__ import annotations

import dataclasses
import importlib
import os

from cleanrl_worker.kit.args import CommonArgs
from mosaic.contract.errors import UserError

# These count episodes, not steps; beside the steps of all others they would turn the run's own count back.
EPISODE_TAGS = frozenset({"eval/episodic_return"})


class WandbRun:
    """A run in a Weights & Biases project, continued when `WANDB_RUN_ID` names one that exists."""

    def __init__(self, args: CommonArgs) -> None:
        try:
            wandb = importlib.import_module("wandb")
        except ImportError as error:
            raise UserError(
                "--track needs wandb, which is not installed; run `./mosaic extras install wandb`."
            ) from error
        self._run = wandb.init(
            project=args.wandb_project_name,
            entity=args.wandb_entity,
            config=dataclasses.asdict(args),
            # What is said here overrules W&B's own variable, by which a run names itself.
            name=os.environ.get("WANDB_NAME") or f"{args.env_id}__{args.exp_name}__{args.seed}",
            resume="allow",
            save_code=False,
        )
        self._run.define_metric("*", step_metric="global_step")
        for tag in EPISODE_TAGS:
            self._run.define_metric(tag, step_metric="episode")

    def log(self, tag: str, value: float, step: int) -> None:
        """Record one number of a curve."""
        self._run.log({tag: value, "episode" if tag in EPISODE_TAGS else "global_step": step})

    def close(self) -> None:
        """Send what is left."""
        self._run.finish()
