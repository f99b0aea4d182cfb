"""What an algorithm sees of an environment's spaces, told from their plain descriptions.

Training asks the same questions of the same descriptions, so a check without torch gives the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

Description = Mapping[str, Any]

GRID_CHANNELS = 3
LARGEST_GRID = 32 * 32 * GRID_CHANNELS
"""How many numbers a grid world's picture has at most: MiniGrid's worlds have up to 25 × 25 cells."""

ACTION_KINDS = (
    *("discrete", "multi_discrete", "multi_binary"),
    *("box", "unbounded_box", "fixed_box", "integer_box"),
)
OBSERVATION_KINDS = ("vector", "grid", "image")
"""What an algorithm may say that it takes."""

_ARRAYS = frozenset({"box", "discrete", "multi_discrete", "multi_binary"})


def action_kind(space: Description) -> str:
    """The kind of a space of actions; some boxes have one of their own, as fewer can take them."""
    if is_empty(space):
        return "empty"
    if space["kind"] == "box" and space.get("unbounded"):
        return "unbounded_box"
    if space["kind"] == "box" and space.get("fixed"):
        return "fixed_box"
    if space["kind"] == "box" and not str(space.get("dtype", "float")).startswith("float"):
        return "integer_box"
    return str(space["kind"])


def observation_kind(space: Description) -> str:
    """`vector`, `grid` (cells of a grid world), `image`, `empty`, or the kind of what no array can hold.

    An image among other things is nothing that a network here can read.
    """
    image = grid_of_dict(space)
    if image is not None:
        space = image
    parts = list(_leaves(space))
    for part in parts:
        if part["kind"] not in _ARRAYS:
            return str(part["kind"])
    if all(map(is_empty, parts)):
        return "empty"
    if any(is_image(part) for part in parts):
        return "image" if space["kind"] == "box" else str(space["kind"])
    return "grid" if is_grid(space) else "vector"


def is_empty(space: Description) -> bool:
    """Whether a space holds no number at all."""
    return 0 in space.get("shape", ()) or 0 in (space.get("n"), len(space.get("nvec", (1,))))


def grid_of_dict(space: Description) -> Description | None:
    """The picture among the entries of a grid world that also states its mission as text."""
    if space["kind"] != "dict":
        return None
    image, mission = space["spaces"].get("image"), space["spaces"].get("mission")
    if image is None or mission is None or image["kind"] != "box" or mission["kind"] in _ARRAYS:
        return None
    return dict(image)


def is_grid(space: Description) -> bool:
    """Whether a space is rows of cells with three small numbers each, as MiniGrid has them."""
    shape = space.get("shape", ())
    return _is_bytes(space) and len(shape) == 3 and shape[2] == GRID_CHANNELS and not is_image(space)


def is_image(space: Description) -> bool:
    """Whether a space is a picture too large for layers that read every number of it."""
    shape = space.get("shape", ())
    return _is_bytes(space) and len(shape) > 1 and math.prod(shape) > LARGEST_GRID


def describe_briefly(space: Description) -> str:
    """A space in a few words, such as `box (7, 7, 3) of uint8` or `discrete 7`."""
    kind = space["kind"]
    if kind == "box":
        return f"box ({', '.join(map(str, space['shape']))}) of {space['dtype']}"
    if kind in ("dict", "tuple"):
        parts = space["spaces"].values() if kind == "dict" else space["spaces"]
        return f"{kind} of {', '.join(map(describe_briefly, parts))}"
    size = next((space[name] for name in ("n", "nvec", "shape") if name in space), None)
    start = f" from {space['start']}" if "start" in space else ""
    return f"{kind}{'' if size is None else f' {size}'}{start}"


def describe_for_people(observation: Description, action: Description, players: int = 1) -> str:
    """What an agent sees and does, such as `4 numbers in, 2 actions`."""
    image = grid_of_dict(observation)
    several = f", {players} players" if players > 1 else ""
    return f"{_seen_by_people(image or observation)} in, {_done_by_people(action)}{several}"


def _seen_by_people(space: Description) -> str:
    shape = " × ".join(map(str, space.get("shape", ())))
    if is_image(space):
        return f"{shape} picture"
    if is_grid(space):
        return f"{shape} grid"
    parts = list(_leaves(space))
    if parts and all(part["kind"] == "discrete" for part in parts):
        return f"one of {' × '.join(str(part['n']) for part in parts)} states"
    numbers = sum(math.prod(part.get("shape", ())) for part in parts)
    return "1 number" if numbers == 1 else f"{numbers} numbers"


def _done_by_people(space: Description) -> str:
    if space["kind"] == "discrete":
        return f"{space['n']} actions"
    count = math.prod(space.get("shape", ()))
    kind = "continuous action" if space["kind"] == "box" else "choice"
    return f"{count} {kind}{'' if count == 1 else 's'}"


def _is_bytes(space: Description) -> bool:
    return bool(space["kind"] == "box" and space.get("dtype") == "uint8")


def _leaves(space: Description) -> Iterator[Description]:
    if space["kind"] not in ("dict", "tuple"):
        yield space
        return
    parts = space["spaces"]
    for part in parts.values() if space["kind"] == "dict" else parts:
        yield from _leaves(part)
