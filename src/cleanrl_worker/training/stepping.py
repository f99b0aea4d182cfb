"""Counting the steps of several environments that are stepped together."""

from __future__ import annotations

from mosaic.contract.errors import UserError


def check_budget(total_timesteps: int, num_envs: int) -> None:
    """Raise UserError when the budget is not enough for one step of all environments."""
    if total_timesteps < num_envs:
        raise UserError(
            f"total_timesteps is {total_timesteps}, which is less than one step of {num_envs} "
            "environments; raise it or lower num_envs."
        )


def times_due(step: int, new_steps: int, every: int) -> int:
    """How often something that is done once in `every` steps is due after the last `new_steps` of `step`."""
    return step // every - (step - new_steps) // every
