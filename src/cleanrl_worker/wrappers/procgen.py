"""The levels of Procgen's games: on which of them a policy is trained, and on which it is played."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cleanrl_worker.schemas.environments import PROCGEN, find_environment


class LevelArgs(Protocol):
    """The arguments that say which levels there are."""

    env_id: str
    num_levels: int
    start_level: int
    eval_levels: str


def level_options(args: LevelArgs, evaluating: bool) -> Mapping[str, Any]:
    """What EnvPool is told of them; nothing where the environment has none, and nothing stands for all."""
    entry = find_environment(args.env_id)
    if entry is None or entry.family != PROCGEN or (evaluating and args.eval_levels == "all"):
        return {}
    return {"num_levels": args.num_levels, "start_level": args.start_level}
