"""Which keys play an environment by hand: its own map where it has one, else one made for its actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from mosaic.contract.errors import UserError

Chord = dict[str, Any]
"""`keys` that are down together, the `action` they stand for, the `word` for it."""
Axis = dict[str, Any]
"""A `key` that sets the number at `index` of an action to `value` while it is down; the `word` for it."""

USUAL_FPS = 30.0
_FASTEST_FPS = 240.0
_FAR = 1e3
"""A bound of an action beyond this is too large to use as the step of a key."""
_ATARI_FPS = 60.0
"""Frames a second of the console itself; a step of the environment is several of them."""
RUNS, HELD, TURNS = "runs", "held", "turns"
"""How time passes: by itself, only while a key is down, or by one step for each key."""

# These are taken by what a player does besides acting.
FREE = "1234567890acdefghijklmosuvwxyz"
PAIRS = (
    *(("left", "right"), ("down", "up"), ("a", "d"), ("s", "w"), ("j", "l"), ("k", "i"), ("f", "h")),
    *(("c", "v"), ("z", "x"), ("u", "o"), ("1", "2"), ("3", "4"), ("5", "6"), ("7", "8"), ("9", "0")),
    *(("e", "y"), ("g", "m")),
)
"""For each number of a continuous action the key that makes it less, and the one that makes it more."""

_WASD = {"w": "up", "a": "left", "s": "down", "d": "right"}
_SPELLED = {" ": "space", "\r": "enter", "\t": "tab"}
# The numbers of pygame 1 and of SDL 2, either of which an environment may have.
_CODES = dict(zip(range(273, 277), ("up", "down", "right", "left"), strict=True)) | dict(
    zip(range(1073741903, 1073741907), ("right", "left", "down", "up"), strict=True)
)

_BY_WORD = {
    "left": "left",
    "right": "right",
    "up": "up",
    "down": "down",
    "west": "left",
    "east": "right",
    "north": "up",
    "south": "down",
    "forward": "up",
    "fire": "space",
    "jump": "space",
    "toggle": "space",
    "pickup": "a",
    "pick up": "a",
    "drop": "d",
    "drop off": "d",
    "done": "e",
    "hit": "h",
    "stick": "s",
}
_NOTHING = frozenset(("nothing", "noop", "no-op", "stay", "none", "wait", "idle"))
_GRID_ALIASES = {"pageup": "a", "pagedown": "d"}
"""As MiniGrid's own `manual_control` has them."""
_BY_TURNS = ("gymnasium.envs.toy_text", "gymnasium.envs.tabular", "minigrid.")

# Keys in the order of the actions; None for the one that does nothing.
_DISCRETE: Mapping[str, Sequence[tuple[str | None, str]]] = {
    "AcrobotEnv": (("left", "torque −1"), (None, "no torque"), ("right", "torque +1")),
    "LunarLander": (
        (None, "nothing"),
        ("left", "left engine"),
        ("up", "main engine"),
        ("right", "right engine"),
    ),
    "CarRacing": (
        (None, "nothing"),
        ("right", "steer right"),
        ("left", "steer left"),
        ("up", "gas"),
        ("down", "brake"),
    ),
}
# Of each key the index, the number, and the words.
_CONTINUOUS: Mapping[str, Sequence[tuple[str, int, float, str]]] = {
    "CarRacing": (
        ("left", 0, -1.0, "steer left"),
        ("right", 0, 1.0, "steer right"),
        ("up", 1, 1.0, "gas"),
        ("down", 2, 0.8, "brake"),
    ),
    "LunarLander": (
        ("up", 0, 1.0, "main engine"),
        ("left", 1, -1.0, "left engine"),
        ("right", 1, 1.0, "right engine"),
    ),
    "PendulumEnv": (("left", 0, 2.0, "torque to the left"), ("right", 0, -2.0, "torque to the right")),
    "Continuous_MountainCarEnv": (("left", 0, -1.0, "push left"), ("right", 0, 1.0, "push right")),
    "BipedalWalker": (
        ("left", 0, -1.0, "hip 1 back"),
        ("right", 0, 1.0, "hip 1 forward"),
        ("down", 1, -1.0, "knee 1 bent"),
        ("up", 1, 1.0, "knee 1 stretched"),
        ("a", 2, -1.0, "hip 2 back"),
        ("d", 2, 1.0, "hip 2 forward"),
        ("s", 3, -1.0, "knee 2 bent"),
        ("w", 3, 1.0, "knee 2 stretched"),
    ),
}


def controls_of(env: Any, env_id: str, meanings: Sequence[str] | None) -> dict[str, Any]:
    """The field `controls` of `init`; UserError when no keys can choose among the environment's actions."""
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        found = _discrete(env, env_id, meanings or ())
    elif isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        found = {"chords": [], "axes": _axes(env, env_id), "aliases": {}, **_idle_of(space)}
    else:
        kind = type(space).__name__
        raise UserError(
            f"{env_id} has actions of the kind {kind}, which keys cannot choose: play one whose actions are "
            "numbers, or step this one by a program (docs/interactive.md)."
        )
    by_turns = type(env.unwrapped).__module__.startswith(_BY_TURNS)
    return {**found, "time": TURNS if by_turns else RUNS if found["idle_known"] else HELD}


def frame_rate(env: Any) -> float:
    """Steps a second at which the environment's time is real."""
    base = env.unwrapped
    skip = getattr(base, "_frameskip", None)
    if hasattr(base, "ale") and isinstance(skip, int) and skip > 0:
        return _ATARI_FPS / skip
    told = (env.metadata or {}).get("render_fps")
    if isinstance(told, int | float) and not isinstance(told, bool) and 0 < told <= _FASTEST_FPS:
        return float(told)
    return USUAL_FPS


def step_limit(env: Any) -> int | None:
    """The step at which an episode is truncated; None where nothing is known of one."""
    base = env.unwrapped
    told = env.spec.max_episode_steps if env.spec else None
    if told is None:
        # MiniGrid counts by itself.
        told = getattr(base, "max_steps", None)
    if told is None and hasattr(base, "ale"):
        told = base.ale.getInt("max_num_frames_per_episode") // int(getattr(base, "_frameskip", 0) or 1)
    return told if isinstance(told, int) and told > 0 else None


def _discrete(env: Any, env_id: str, meanings: Sequence[str]) -> dict[str, Any]:
    first, count = int(env.action_space.start), int(env.action_space.n)
    words = [str(word) for word in meanings] or [f"action {first + number}" for number in range(count)]
    own = _own_keys(env)
    known = _DISCRETE.get(type(env.unwrapped).__name__, ())
    if own:
        chords, idle = _own_chords(own, words, first, count)
    elif len(known) == count:
        chords = [_chord([key], first + at, word) for at, (key, word) in enumerate(known) if key]
        idle = next((first + at for at, (key, _) in enumerate(known) if key is None), None)
    else:
        keys, idle = _keys_by_word(meanings, first, count, env_id)
        chords = [_chord([key], action, words[action - first]) for action, key in keys.items()]
    taken = {key for chord in chords for key in chord["keys"]}
    aliases = {letter: arrow for letter, arrow in _WASD.items() if arrow in taken and letter not in taken}
    if {"a", "d"} <= taken:
        aliases = {**_GRID_ALIASES} if "space" in taken else {}
    if own and not {"up", "down"} & taken and {"left", "right"} <= taken and "Pong" in env_id:
        # Its paddle goes up by what a joystick calls right.
        aliases |= {"up": "right", "down": "left"}
    return {
        "chords": chords,
        "axes": [],
        "aliases": aliases,
        "idle": first if idle is None else idle,
        "idle_known": idle is not None,
    }


def _chord(keys: Iterable[str], action: int, word: str) -> Chord:
    return {"keys": list(keys), "action": action, "word": word}


def _own_keys(env: Any) -> list[tuple[tuple[str, ...], int]]:
    """The environment's own map, as gymnasium's `play` takes it; empty where it has none that can be read."""
    base = env.unwrapped
    try:
        given = base.get_keys_to_action()
        pairs = [(keys if isinstance(keys, tuple) else (keys,), action) for keys, action in given.items()]
        return [(tuple(map(_key_name, _singly(keys))), int(action)) for keys, action in pairs]
    except (AttributeError, TypeError, ValueError):
        return []


def _singly(keys: tuple[Any, ...]) -> Iterator[Any]:
    """The keys of a chord, of which several may be spelled in one word such as `wa`."""
    for key in keys:
        yield from key if isinstance(key, str) and len(key) > 1 and key not in _CODES.values() else (key,)


def _key_name(key: Any) -> str:
    if isinstance(key, str):
        return _SPELLED.get(key, key.lower())
    return _CODES.get(int(key)) or _SPELLED.get(chr(key), chr(key).lower())


def _own_chords(
    own: Sequence[tuple[tuple[str, ...], int]], words: Sequence[str], first: int, count: int
) -> tuple[list[Chord], int | None]:
    """Chords with arrows where the map has the letters beside each other, and the action of no key."""
    letters = {key for keys, _ in own for key in keys}
    arrows = {} if letters & set(_WASD.values()) else _WASD
    idle = next((action for keys, action in own if not keys), None)
    nothing = {first + at for at, word in enumerate(words) if word.lower() in _NOTHING}
    if idle is None:
        idle = next((action for keys, action in own if action in nothing), None)
    chords = [
        _chord([arrows.get(key, key) for key in keys], action, words[action - first])
        for keys, action in own
        if keys and first <= action < first + count and not (len(keys) == 1 and action == idle)
    ]
    return chords, idle


def _keys_by_word(
    meanings: Sequence[str], first: int, count: int, env_id: str
) -> tuple[dict[int, str], int | None]:
    """A key for each action, by what its word says, else the next of a row; and the one that does nothing."""
    idle: int | None = None
    keys: dict[int, str] = {}
    for at, word in enumerate(map(str.lower, meanings)):
        if word in _NOTHING and idle is None:
            idle = first + at
        elif (key := _BY_WORD.get(word)) and key not in keys.values():
            keys[first + at] = key
    for action in range(first, first + count):
        if action in keys or action == idle:
            continue
        left = [key for key in FREE if key not in keys.values()]
        if not left:
            raise UserError(
                f"{env_id} has {count:,} actions, and there are {len(FREE)} keys: play one that has fewer."
            )
        number = str(action - first + 1)
        # The keys 1 to n are those of the actions where none of them has a word.
        keys[action] = number if number in left else left[0]
    return dict(sorted(keys.items())), idle


def _idle_of(space: Any) -> dict[str, Any]:
    """The action of no key: as near to zero as the space allows."""
    if isinstance(space, spaces.Box):
        idle = np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
    else:
        idle = np.zeros(space.shape, int) + getattr(space, "start", 0)
    return {"idle": idle.tolist(), "idle_known": True}


def _axes(env: Any, env_id: str) -> list[Axis]:
    """What each key does to one number of an action that has several."""
    space = env.action_space
    known = _CONTINUOUS.get(type(env.unwrapped).__name__, ())
    shape = (max((index for _, index, _, _ in known), default=-1) + 1,)
    if isinstance(space, spaces.Box) and shape == space.shape:
        return [_axis(key, index, value, f"{word} {_signed(value)}") for key, index, value, word in known]
    if isinstance(space, spaces.Box):
        made, keys = list(_box_axes(env)), [key for pair in PAIRS for key in pair]
        what = f"{len(made) // 2:,} numbers in an action, and there are keys for {len(PAIRS)}"
    else:
        made, keys = list(_choice_axes(space)), list(FREE)
        what = f"{len(made):,} choices in an action, and there are {len(FREE)} keys"
    if not 0 < len(made) <= len(keys):
        raise UserError(f"{env_id} has {what}: play one that has fewer.")
    return [_axis(key, *rest) for key, rest in zip(keys, made, strict=False)]


def _axis(key: str, index: int, value: float, word: str) -> Axis:
    return {"key": key, "index": index, "value": value, "word": word}


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def _box_axes(env: Any) -> Iterator[tuple[int, float, str]]:
    """Each number to its two ends; one without ends, or with very far ones, by 1."""
    low, high = env.action_space.low.ravel().tolist(), env.action_space.high.ravel().tolist()
    names = _actuators(env, len(low))
    for index, ends in enumerate(zip(low, high, strict=True)):
        for sign, end in zip((-1.0, 1.0), ends, strict=True):
            value = end if abs(end) <= _FAR else sign
            yield index, value, f"{names[index]} {_signed(value)}"


def _actuators(env: Any, count: int) -> list[str]:
    """What a robot of MuJoCo's calls the numbers of its actions; elsewhere they have only their places."""
    model: Any = getattr(env.unwrapped, "model", None)
    names = [model.actuator(at).name for at in range(model.nu)] if hasattr(model, "actuator") else []
    told = names if len(names) == count else [""] * count
    return [name.replace("_", " ") or f"action {at}" for at, name in enumerate(told)]


def _choice_axes(space: Any) -> Iterator[tuple[int, float, str]]:
    """Each choice that is not a number's first."""
    if isinstance(space, spaces.MultiBinary):
        sizes, starts = np.full(space.shape, 2).ravel(), np.zeros(space.shape, int).ravel()
    else:
        sizes, starts = space.nvec.ravel(), np.broadcast_to(space.start, space.shape).ravel()
    for index, (size, start) in enumerate(zip(sizes.tolist(), starts.tolist(), strict=True)):
        for value in range(start + 1, start + size):
            yield index, value, f"action {index} = {value}"
