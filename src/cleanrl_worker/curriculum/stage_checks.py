"""Whether the environments of a curriculum can follow each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cleanrl_worker.curriculum.schedule import Schedule, name_stage
from cleanrl_worker.schemas.environments import EnvironmentEntry, check_fit
from cleanrl_worker.schemas.spaces import describe_briefly, grid_of_dict
from mosaic.contract.errors import UserError


def check_stages(
    schedule: Schedule, algo: str, find: Callable[[str], EnvironmentEntry | None]
) -> list[EnvironmentEntry]:
    """What is known of the stages' environments; a UserError names the stage that cannot be trained on.

    `find` gives None for an environment of which nothing can be said now.
    """
    known: list[EnvironmentEntry] = []
    for index, stage in enumerate(schedule.stages):
        try:
            entry = find(stage.env_id)
            if entry is not None:
                check_fit(algo, entry)
                check_spaces(known[0] if known else entry, entry)
                known.append(entry)
        except UserError as error:
            raise UserError(f"{name_stage(index, stage.env_id)}: {error}") from error
    return known


def check_budget(schedule: Schedule, total_timesteps: int) -> None:
    """Raise UserError when a run would end before the last stage begins."""
    needed = schedule.least_steps()
    if total_timesteps <= needed:
        raise UserError(
            f"The stages before the last one of the curriculum take {needed:,} steps, but the run has "
            f"{total_timesteps:,}: give it more than {needed:,} steps, or shorten the stages."
        )


def check_spaces(first: EnvironmentEntry, entry: EnvironmentEntry, same_actions: bool = True) -> None:
    """Raise UserError when what was trained on one environment cannot go on with another.

    `same_actions`: what is known of the actions beyond their description.
    """
    seen = [_without_bounds(grid_of_dict(one.observation) or one.observation) for one in (first, entry)]
    if seen[0] != seen[1]:
        raise _differ("observations", first, seen[0], seen[1])
    if first.action != entry.action or not same_actions:
        raise _differ("actions", first, first.action, entry.action)


def _differ(what: str, first: EnvironmentEntry, was: Mapping[str, Any], now: Mapping[str, Any]) -> UserError:
    known, here = describe_briefly(was), describe_briefly(now)
    numbers = f"{here} instead of {known}" if here != known else f"other bounds of {here}"
    return UserError(
        f"its {what} are not those of the first stage, {first.env_id} ({numbers}); "
        "all stages must have the same spaces."
    )


def _without_bounds(space: Mapping[str, Any]) -> dict[str, Any]:
    """Networks have a shape and no bounds, so observations may have others."""
    return {name: value for name, value in space.items() if name not in ("low", "high")}
