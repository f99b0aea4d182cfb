"""The modes of a run: what stands behind each, and the settings that only some of them take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleanrl_worker.schemas.check import check_value
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError, closest

TRAIN, RESUME, POLICY_EVAL, INTERACTIVE = "train", "resume_training", "policy_eval", "interactive"
MODES = (TRAIN, RESUME, POLICY_EVAL, INTERACTIVE)

MODE_TARGETS: Mapping[str, str] = {
    POLICY_EVAL: "cleanrl_worker.evaluation.evaluate_policy",
    INTERACTIVE: "cleanrl_worker.evaluation.interactive",
}
"""The modes that play a saved policy instead of training one, and the module that does."""

_EVALUATION = (
    ParamSchema("eval_episodes", "int", 50, "how many episodes are played", minimum=1),
    ParamSchema("eval_batch_size", "int", 50, "the number of episodes per batch", minimum=1),
    ParamSchema("eval_repeat", "bool", False, "play batches until the run is cancelled"),
    ParamSchema("eval_capture_video", "bool", False, "record videos of some episodes"),
)
_PLAYING = (
    ParamSchema("deterministic", "bool", True, "take the best action instead of sampling"),
    ParamSchema("gamma", "float", None, "the discount factor of returns", None, 0.0, 1.0, optional=True),
    ParamSchema("num_envs", "int", None, "the number of parallel environments", None, 1, optional=True),
    ParamSchema(
        "max_episode_steps",
        "int",
        None,
        "the step after which an episode is truncated",
        None,
        1,
        optional=True,
    ),
    ParamSchema(
        "max_seconds",
        "float",
        None,
        "the time after which episodes are truncated and none starts",
        None,
        0,
        optional=True,
    ),
)
MODE_SETTINGS: Mapping[str, tuple[ParamSchema, ...]] = {
    POLICY_EVAL: (*_EVALUATION, *_PLAYING),
    INTERACTIVE: (
        *(one for one in _PLAYING if one.name in ("deterministic", "max_episode_steps")),
        ParamSchema("frames", "bool", False, "send a picture with each observation"),
    ),
}


def check_settings(mode: str, extras: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The extras with typed settings; a UserError names one that is wrong, or that this mode does not have.

    `others` are the extras that mean nothing to the platform: in a mode that trains, flags of the script.
    """
    known = {setting.name: setting for setting in MODE_SETTINGS.get(mode, ())}
    for name in others if mode in MODE_TARGETS else ():
        if name not in known:
            hint = closest(name, known) or f"; it has {', '.join(known)}."
            raise UserError(f"Mode {mode} has no setting '{name}'{hint}")
    typed = {
        name: check_value(mode, known[name], value)
        for name, value in extras.items()
        if name in known and value is not None
    }
    return {**extras, **typed}
