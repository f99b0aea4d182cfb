"""Actions as JSON says them, and as an environment takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from cleanrl_worker.evaluation.interactive.messages import Refusal
from cleanrl_worker.portable.probe import describe_actions

# Gymnasium tells these in its documents only.
_DOCUMENTED = {
    "CartPoleEnv": ("left", "right"),
    "MountainCarEnv": ("left", "nothing", "right"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
    "BlackjackEnv": ("stick", "hit"),
}


def plain(value: Any) -> Any:
    """An observation, an action or a reward as JSON can say it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def read_action(space: Any, given: Any) -> Any:
    """An action of `space` out of what a message holds; Refusal says why it is none."""
    if isinstance(space, spaces.Discrete):
        return _read_choice(space, given)
    array = _read_array(space.shape, given)
    if not isinstance(space, spaces.Box):
        low, high = _choice_bounds(space)
        if array.dtype.kind == "f" or (array < low).any() or (array > high).any():
            raise Refusal(
                f"The action {given!r:.80} is not one: each number is a whole one, "
                f"from {plain(low)} to {plain(high)}."
            )
        return array.astype(space.dtype)
    action = array.astype(space.dtype)
    if not ((action >= space.low) & (action <= space.high)).all():
        raise Refusal(
            f"The action {given!r:.80} is out of bounds: "
            f"it lies between {plain(space.low)} and {plain(space.high)}."
        )
    return action


def _read_choice(space: spaces.Discrete[Any], given: Any) -> int:
    first, last = int(space.start), int(space.start + space.n - 1)
    whole = isinstance(given, int) and not isinstance(given, bool)
    if not (whole and first <= given <= last):
        raise Refusal(f"The action is {given!r:.80}, but it must be a whole number from {first} to {last}.")
    return int(given)


def _read_array(shape: tuple[int, ...], given: Any) -> Any:
    try:
        array = np.array(given)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iuf":
        raise Refusal(
            f"The action is {given!r:.80}, but it must be a list of numbers of shape {list(shape)}."
        )
    if array.shape != shape:
        raise Refusal(f"The action has the shape {list(array.shape)}, but it must have {list(shape)}.")
    return array


def _choice_bounds(space: Any) -> tuple[Any, Any]:
    """The least and the greatest number of each choice of several."""
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, int), np.ones(space.shape, int)
    return space.start, space.start + space.nvec - 1


def describe_action_space(env: Any) -> dict[str, Any]:
    """The actions an environment takes, with the bounds of each number of a continuous one."""
    space = env.action_space
    entry = describe_actions(space)
    if isinstance(space, spaces.Box):
        entry |= {"low": plain(space.low), "high": plain(space.high)}
    meanings = action_meanings(env)
    return entry | {"meanings": meanings} if meanings else entry


def action_meanings(env: Any) -> list[str] | None:
    """A word for each action of one choice, where the environment or its documents have them."""
    base = env.unwrapped
    count = int(getattr(env.action_space, "n", 0))
    if hasattr(base, "get_action_meanings"):
        words = [str(word).lower() for word in base.get_action_meanings()]
    elif hasattr(getattr(base, "actions", None), "__members__"):
        words = [str(name) for name in base.actions.__members__]
    else:
        words = list(_DOCUMENTED.get(type(base).__name__, ()))
    return words if words and len(words) == count else None
