"""Whether the values of a run's parameters fit each other: asked by forms, dry run, daemon and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mosaic.contract.errors import UserError

LONGEST_NAME = 100
"""Of an experiment: with environment, seed and time it becomes the name of a folder."""


def check_together(values: Mapping[str, Any]) -> None:
    """Raise UserError for values that may each be right, but not together. `values` has all parameters."""
    total, envs = values["total_timesteps"], values["num_envs"]
    if total < envs:
        raise UserError(
            f"total_timesteps is {total}, which is less than one step of {envs} "
            "environments; raise it or lower num_envs."
        )
    rollout, parts = envs * values.get("num_steps", 0), values.get("num_minibatches", 0)
    if parts > rollout:
        raise UserError(
            f"num_minibatches is {parts}, but a rollout has only {rollout} steps (num_envs times num_steps); "
            "lower it."
        )
    size, buffer = values.get("batch_size", 0), values.get("buffer_size", 0)
    if size > buffer:
        raise UserError(f"batch_size is {size}, but the replay buffer holds only {buffer}; lower it.")
    if values["eval_every"] and not values["eval_episodes"]:
        raise UserError("eval_every asks for evaluations of no episodes; raise eval_episodes.")
    low, high = values.get("v_min", 0.0), values.get("v_max", 1.0)
    if not low < high:
        raise UserError(f"v_min is {low}, which is not less than v_max, {high}; lower it.")
    if len(values["exp_name"]) > LONGEST_NAME:
        raise UserError(f"exp_name has {len(values['exp_name'])} characters; {LONGEST_NAME} are the most.")


def warn_together(values: Mapping[str, Any]) -> str:
    """What will come of values that are not wrong, but hardly meant; empty when there is nothing to say."""
    total, start = values["total_timesteps"], values.get("learning_starts")
    if start is None:
        return ""
    every = values.get("train_frequency", 1)
    first = (start // every + 1) * every
    if first <= total:
        return ""
    return (
        f"Nothing will be learned: the first update comes at step {first:,}, and the run ends at {total:,}; "
        f"raise total_timesteps, or lower {'learning_starts' if start >= every else 'train_frequency'}."
    )
