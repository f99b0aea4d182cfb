"""The teacher of a run: a policy of ours by its file or its run, checked as far as files tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cleanrl_worker.config.checkpoint_files import MODEL_SUFFIX, Origin, find_origin
from cleanrl_worker.config.policy_files import find_policy
from cleanrl_worker.config.resuming import require_trusted_algorithm
from cleanrl_worker.schemas.environments import EnvironmentEntry, find_environment
from cleanrl_worker.schemas.model import load_schema
from cleanrl_worker.schemas.spaces import describe_briefly
from mosaic.contract.errors import UserError

PARAMETER = "teacher_policy"


def find_teacher(
    algo: str,
    values: Mapping[str, Any],
    folder: Path,
    entry: EnvironmentEntry | None,
    trusted: Collection[str] = (),
) -> Origin:
    """The teacher that the parameters of a run name; UserError says in one sentence why it cannot be one.

    `entry` is what is known of the environment that the student is trained on.
    """
    named = values.get(PARAMETER)
    if not named:
        raise UserError(
            f"{algo} learns from a teacher, but none is named: give {PARAMETER} a {MODEL_SUFFIX} file, "
            "a full checkpoint or a run."
        )
    origin = find_origin(Path(find_policy(str(named), folder).path))
    require_trusted_algorithm(origin, trusted)
    who = f"The teacher {origin.path}"
    schema = load_schema(origin.algo) if origin.algo is not None else None
    if schema is not None and (
        "image" not in schema.observation_spaces
        or "discrete" not in schema.action_spaces
        or schema.several_players
    ):
        raise UserError(
            f"{who} is of {schema.name}, which does not choose among actions by images as {algo} does: "
            "take one of dqn_atari, ppo_atari or similar."
        )
    trained = find_environment(str(origin.args.get("env_id")))
    if entry is not None and trained is not None and dict(trained.action) != dict(entry.action):
        raise UserError(
            f"{who} was trained on {trained.env_id} ({describe_briefly(trained.action)}), but {entry.env_id} "
            f"has other actions ({describe_briefly(entry.action)}): take a teacher of that environment."
        )
    frames, own = origin.args.get("frame_stack"), values.get("frame_stack")
    if None not in (frames, own) and frames != own:
        raise UserError(f"{who} sees {frames} frames, but frame_stack is {own}: set it to {frames}.")
    return origin
