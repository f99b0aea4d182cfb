"""What a run will need of the machine: its device and about how much memory."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrl_worker.schemas.environments import EnvironmentEntry
from cleanrl_worker.schemas.spaces import observation_kind
from mosaic.contract.errors import UserError

SUPERVISOR_MB = 60
TRAINING_MB = 250
"""A process that has imported torch and an algorithm and trains a small network."""
CONVOLUTIONS_MB = {"grid": 110, "image": 250}
"""What the network for such observations takes more."""
_FRAME = (84, 84)
"""What a learner sees of images: grey frames of this size, one behind the other."""
_SMALLEST = 32
"""The least height and width of pictures of which each is kept once: small grids change as a whole."""
_WORTH_A_WORD_MB = 1_000
_MB = 1_000_000
_FLOAT_BYTES = 4
_LOWERED = {
    "replay_buffer": "buffer_size",
    "rollout": "num_envs or num_steps",
    "stored_rollouts": "n_iteration, num_envs or num_steps",
}
"""What makes a part of the memory smaller."""
_GPU = Path("/dev/nvidia0")


def device(parameters: Mapping[str, Any], trains: bool) -> dict[str, str]:
    """Where the networks would live, and why there."""
    if not trains:
        return {"name": "cpu", "reason": "policies are played there"}
    if not parameters.get("cuda", True):
        return {"name": "cpu", "reason": "no GPU is asked for"}
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "" or not _GPU.exists():
        return {"name": "cpu", "reason": "no GPU was found"}
    return {"name": "cuda", "reason": "there is a GPU; a run sees those reserved for it"}


def estimated_memory(parameters: Mapping[str, Any], entry: EnvironmentEntry | None) -> dict[str, int] | None:
    """Megabytes by what takes them; None when the spaces are not known."""
    if entry is None:
        return None
    kind, action = observation_kind(entry.observation), _size(entry.action) * _FLOAT_BYTES
    frames = (*_FRAME, int(parameters.get("frame_stack") or 4))
    seen = math.prod(frames) if kind == "image" else _size(entry.observation) * _FLOAT_BYTES
    # An observation, the next one, an action, a reward and an end; a replay buffer keeps frames once.
    row = 2 * seen + action + 2 * _FLOAT_BYTES
    replay_row = _frame_row(frames) + action if kind == "image" else row
    envs, total = int(parameters.get("num_envs") or 1), int(parameters.get("total_timesteps") or 0)
    rollout = min(int(parameters.get("num_steps") or 0), total // envs)
    kept = int(parameters.get("buffer_size") or 0)
    kept = min(kept, total) if total else kept
    parts = {
        "supervisor": SUPERVISOR_MB,
        "training": TRAINING_MB,
        "convolutions": CONVOLUTIONS_MB.get(kind, 0),
        "replay_buffer": kept * replay_row // _MB,
        # Observations, and what is made of them for the update.
        "rollout": rollout * envs * 2 * row // _MB,
        # Those that wait for a phase of learning from all of them: a byte for each number of a picture.
        "stored_rollouts": _waiting(parameters) * _size(entry.observation) // _MB,
    }
    return {**parts, "total": sum(parts.values())}


def _waiting(parameters: Mapping[str, Any]) -> int:
    """How many steps wait to be learned from at most."""
    steps = int(parameters.get("num_envs") or 1) * int(parameters.get("num_steps") or 0)
    return min(int(parameters.get("n_iteration") or 0) * steps, int(parameters.get("total_timesteps") or 0))


def stack_axis(shape: Sequence[int], dtype: str) -> int | None:
    """Along which axis, 0 or -1, observations are frames of bytes; None where they are something else.

    Colours count as frames: like those they are the same in the next observation of one transition and in
    the first of the next.
    """
    if dtype != "uint8" or len(shape) not in (3, 4):
        return None
    if shape[0] < min(shape[1:3]) >= _SMALLEST:
        return 0
    return -1 if len(shape) == 3 and shape[-1] < min(shape[:2]) >= _SMALLEST else None


def check_replay(capacity: int, shape: Sequence[int]) -> str:
    """A sentence on the memory that a replay buffer of stacked frames takes, empty where that is little;
    UserError if there is less."""
    needed, (there, free) = capacity * _frame_row(shape) // _MB, _memory()
    if needed > there:
        raise UserError(
            f"A replay buffer of {capacity:,} steps would need {needed:,} MB of memory, but this machine has "
            f"{there:,} MB; lower buffer_size."
        )
    if needed < _WORTH_A_WORD_MB:
        return ""
    return f"The replay buffer takes up to {needed:,} MB of memory as it fills; {free:,} MB are free now."


def _frame_row(shape: Sequence[int]) -> int:
    """Bytes of a frame, of where the frames of two stacks lie, who needs them last, a reward and an end."""
    first = stack_axis(shape, "uint8") == 0
    depth, frame = (shape[0], shape[1:]) if first else (shape[-1], shape[:-1])
    return math.prod(frame) + (2 * depth + 4) * _FLOAT_BYTES


def check_memory(parameters: Mapping[str, Any], entry: EnvironmentEntry | None) -> None:
    """Raise UserError for a run that needs more memory than the machine has."""
    parts = estimated_memory(parameters, entry)
    there, _ = _memory()
    if parts is not None and parts["total"] > there:
        largest = max(_LOWERED, key=lambda name: parts[name])
        raise UserError(
            f"The run would need about {parts['total']:,} MB of memory, but this machine has {there:,} MB; "
            f"lower {_LOWERED[largest]}."
        )


def _memory() -> tuple[int, int]:
    """Megabytes that a run may have, with what is swapped out, and how many of them are free."""
    # Only here, because most trainings have no need to ask.
    import psutil

    from mosaic.contract.process import memory_limit

    memory, swap, limit = psutil.virtual_memory(), psutil.swap_memory(), memory_limit()
    there, free = memory.total + swap.total, memory.available + swap.free
    return min(there, limit) // _MB, min(free, limit) // _MB


def _size(space: Mapping[str, Any]) -> int:
    """How many numbers one value of a space has."""
    if space["kind"] == "dict":
        # Text for people, such as a mission, is not what a network sees.
        return sum(_size(part) for part in space["spaces"].values() if "shape" in part)
    if space["kind"] == "tuple":
        return sum(_size(part) for part in space["spaces"])
    return math.prod(space.get("shape", ()))
