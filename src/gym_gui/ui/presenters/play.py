"""A policy that is played, as the view shows it: its actions, what stands where, and what may be done now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from gym_gui.models import words
from mosaic.client.playing import ARROWS, Choices

_SLIDER_STEPS = 200
_MOST_BUTTONS = 18
_FIRST_KEYS = 10
_MOST_ROWS = 16
Phase = Literal["start", "loading", "playing", "ended", "failed"]
Kind = Literal["step", "reset", "again", "run", "faster", "slower"]

SPEEDS = (1, 2, 5, 10, 15, 30, 60, 120)
"""Steps per second while it runs."""
_USUAL_SPEED = 30
_MOST_EPISODES = 200
_KEYS: dict[str, Kind] = {
    "space": "step",
    "n": "reset",
    "a": "again",
    "r": "run",
    "+": "faster",
    "=": "faster",
    "-": "slower",
}


@dataclass(frozen=True)
class Choice:
    """One action out of a few, with the words and the keys for it."""

    action: int
    word: str
    keys: str


@dataclass(frozen=True)
class ActionField:
    """One number of an action that has several; an end that it does not have is infinite."""

    name: str
    low: float
    high: float
    whole: bool

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.high - self.low)

    @property
    def steps(self) -> int:
        """How many steps a slider has from its low end to its high one."""
        return round(self.high - self.low) if self.whole else _SLIDER_STEPS

    def at(self, step: int) -> float:
        """The number at a slider's place."""
        value = self.low + (self.high - self.low) * step / max(1, self.steps)
        return round(value) if self.whole else value

    def step_of(self, value: float) -> int:
        """The place of a number on a slider; one beyond its ends is at the end."""
        room = self.high - self.low
        share = (value - self.low) / room if room else 0.0
        return round(min(1.0, max(0.0, share)) * self.steps)


class ActionSpace(Choices):
    """What `init` of a session says of its actions: `choices` to press, or `fields` to set."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        super().__init__(space)
        count = int(space.get("n", 0)) if self.discrete else 0
        buttons = count if count <= _MOST_BUTTONS else 0
        self.choices = tuple(map(self._choice, range(buttons)))
        self._shape: list[int] = []
        self.fields = () if self.choices else tuple(self._fields(space, count))

    def build(self, values: Sequence[float]) -> Any:
        """The action that the numbers of all fields make."""
        pairs = zip(self.fields, values, strict=True)
        numbers = [round(value) if one.whole else value for one, value in pairs]
        return np.reshape(numbers, self._shape).tolist()

    def numbers(self, action: Any) -> list[float]:
        """The numbers of an action in the order of the fields."""
        return _flat(action)

    def _choice(self, number: int) -> Choice:
        action = self.first + number
        signs = [ARROWS[arrow] for arrow, meant in self.arrows.items() if meant == action]
        digit = [str(number)] if number < _FIRST_KEYS else []
        word = self.name(action).removeprefix(str(action)).strip()
        return Choice(action, word or f"action {action}", " ".join(digit + signs))

    def _fields(self, space: Mapping[str, Any], count: int) -> Iterator[ActionField]:
        if count:
            yield ActionField("action", self.first, self.first + count - 1, whole=True)
            return
        kind = space["kind"]
        self._shape = _sizes(space["nvec"]) if kind == "multi_discrete" else list(space["shape"])
        if kind == "multi_discrete":
            bounds = [(0.0, size - 1) for size in _flat(space["nvec"])]
        elif kind == "multi_binary":
            bounds = [(0.0, 1.0)] * math.prod(self._shape)
        else:
            bounds = _box_bounds(space, self._shape)
        whole = kind != "box" or "int" in str(space.get("dtype", ""))
        names = (", ".join(map(str, place)) for place in product(*map(range, self._shape)))
        for name, (low, high) in zip(names, bounds, strict=True):
            yield ActionField(f"action {name}".strip(), low, high, whole)


def _box_bounds(space: Mapping[str, Any], shape: Sequence[int]) -> list[tuple[float, float]]:
    ends = []
    for name, far in (("low", -math.inf), ("high", math.inf)):
        given = np.broadcast_to(np.array(space.get(name), float), shape).ravel()
        ends.append(np.where(np.abs(given) < 1e30, given, far).tolist())
    return list(zip(*ends, strict=True))


def _flat(value: Any) -> list[Any]:
    """The numbers of an array of any shape, None among them as it is."""
    return list(np.ravel(np.array(value, object)))


@dataclass(frozen=True)
class Opened:
    """The policy is loaded; `init` tells what it is and what it plays."""

    init: dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """The newest `ready` or `step` message."""

    message: dict[str, Any]
    picture: Any
    """Pixels (height, width, 3), or None."""
    picture_problem: str
    yours: int
    """How many steps of this episode the user chose."""
    running: bool

    @property
    def last(self) -> bool:
        """Whether the episode ended with it."""
        return "episode" in self.message


@dataclass(frozen=True)
class Running:
    """Whether it steps by itself from now on."""

    running: bool


@dataclass(frozen=True)
class Recording:
    """Whether episodes are recorded from now on, and what was kept of the last one."""

    folder: str | None
    recorded: dict[str, Any] | None


@dataclass(frozen=True)
class Refusal:
    """The session goes on, but could not do this."""

    text: str


@dataclass(frozen=True)
class Closed:
    """The session is over, though nobody asked for that."""

    reason: str


News = Opened | Seen | Running | Recording | Refusal | Closed
Row = tuple[str, str]
"""A name and a value."""


@dataclass(frozen=True)
class Bar:
    """What a policy makes of one action."""

    text: str
    share: float
    """How long the bar is, from 0 to 1."""
    chosen: bool
    """Whether the policy takes it next."""


def number(value: Any) -> str:
    """A number with three digits after the point; a whole one as it is; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".replace("-", "−")


def observation_rows(observation: Any, name: str = "") -> list[Row]:
    """A row for each number, for each part of a dictionary; the size of what is too much to read."""
    if isinstance(observation, dict):
        return [row for part, value in observation.items() for row in observation_rows(value, str(part))]
    if not isinstance(observation, list):
        return [(name or "value", number(observation))]
    sizes = _sizes(observation)
    if len(sizes) > 1:
        return [(name or "array", " × ".join(map(str, sizes)))]
    few = observation[:_MOST_ROWS]
    shown = [(f"{name} {place}".strip(), number(value)) for place, value in enumerate(few)]
    left = len(observation) - len(few)
    return [*shown, ("…", f"{left} more")] if left else shown


def told_rows(message: dict[str, Any]) -> list[Row]:
    """The rows of what a message shows, without the mission, which has a line of its own."""
    rows = observation_rows(message["observation"])
    return [row for row in rows if row != ("mission", message.get("mission"))]


def mission_in(seen: Seen | None) -> str:
    """What is to be done, in words; empty where the environment has none."""
    return str(seen.message.get("mission", "")) if seen else ""


def bars(following: dict[str, Any], actions: Sequence[int]) -> list[Bar]:
    """A bar for each action out of `next` of a message; empty where it has no numbers for them."""
    chances, values = following.get("probabilities"), following.get("action_values")
    told = chances or values
    if not isinstance(told, list) or len(told) != len(actions) or any(isinstance(one, list) for one in told):
        return []
    numbers = [0.0 if one is None else float(one) for one in told]
    low, room = min(numbers), max(numbers) - min(numbers)
    shares = numbers if chances else [(one - low) / room if room else 0.0 for one in numbers]
    texts = [f"{100 * one:.0f} %" if chances else number(one) for one in numbers]
    chosen = following["action"]
    return [
        Bar(text, share, action == chosen) for action, text, share in zip(actions, texts, shares, strict=True)
    ]


def _sizes(value: Any) -> list[int]:
    return [len(value), *(_sizes(value[0]) if value else [])] if isinstance(value, list) else []


@dataclass(frozen=True)
class Episode:
    """One that was played to its end."""

    number: int
    seed: int
    total: float
    length: int
    yours: int

    @property
    def text(self) -> str:
        taken = f" · {self.yours} by you" if self.yours else ""
        return f"return {words.number(self.total)} · {words.steps(self.length)} steps{taken}"


@dataclass(frozen=True)
class Command:
    """What a key or a button asks for; a step without an action takes the policy's."""

    kind: Kind
    action: Any = None


class PlayPresenter:
    """Everything that is to be seen of one session, kept up with `take`."""

    def __init__(self, phase: Phase = "start") -> None:
        self.phase = phase
        self.space: ActionSpace | None = None
        self.running = False
        self.speed = _USUAL_SPEED
        self.episodes: list[Episode] = []
        self.seen: Seen | None = None
        self.seed: int | None = None
        self._init: dict[str, Any] = {}
        self._notice = ""
        self._begun = 0

    def take(self, news: News) -> None:
        """Take in what the session tells."""
        if isinstance(news, Opened):
            self._init = news.init
            self.space = ActionSpace(news.init["action_space"])
            wanted = min(news.init.get("fps") or _USUAL_SPEED, _USUAL_SPEED)
            self.speed = max(speed for speed in SPEEDS if speed <= max(wanted, SPEEDS[0]))
        elif isinstance(news, Seen):
            self._see(news)
        elif isinstance(news, Running):
            self.running = news.running
        elif isinstance(news, Refusal):
            self._notice, self.running = news.text, False
        elif isinstance(news, Closed):
            self._notice, self.running, self.phase = news.reason, False, "failed"

    def _see(self, seen: Seen) -> None:
        self.seen, self.running, self._notice = seen, seen.running, ""
        message = seen.message
        if "seed" in message:
            self.seed = int(message["seed"])
            self._begun += 1
        self.phase = "ended" if seen.last else "playing"
        if seen.last:
            done = message["episode"]
            total, length = float(done["return"]), int(done["length"])
            episode = Episode(self._begun, int(done["seed"]), total, length, seen.yours)
            self.episodes = [episode, *self.episodes[: _MOST_EPISODES - 1]]

    @property
    def open(self) -> bool:
        """Whether there is a session that answers."""
        return self.phase in ("playing", "ended")

    @property
    def sentence(self) -> tuple[str, str]:
        """One line about where things stand, and the role of its colour."""
        if self.phase == "failed":
            return self._notice, "error"
        if self.phase == "loading":
            return "The policy and its environment are being loaded; this takes a few seconds.", "dim"
        if self._notice:
            return self._notice, "warn"
        if self.phase == "ended":
            return self._ending(), "good"
        notes = self._init.get("notes") or []
        if self.phase == "playing" and notes:
            return str(notes[0]), "warn"
        return "", "dim"

    def _ending(self) -> str:
        episode = self.episodes[0]
        truncated = self.seen is not None and self.seen.message["truncated"]
        how = "was truncated" if truncated else "ended"
        length, total = words.steps(episode.length), words.number(episode.total)
        return f"Episode {episode.number} {how} after {length} steps, return {total}."

    def numbers(self) -> list[Row]:
        """Step, return, reward, action, seed."""
        message = self.seen.message if self.seen else {}
        action = "–"
        if "action" in message and self.space is not None:
            by = "policy" if message["by"] == "policy" else "you"
            action = f"{self.space.name(message['action'])} · {by}"
        return [
            ("Step", words.steps(message.get("step", 0)) if message else "–"),
            ("Return", words.number(message.get("return", 0.0)) if message else "–"),
            ("Reward", number(message["reward"]) if "reward" in message else "–"),
            ("Action", action),
            ("Seed", "–" if self.seed is None else str(self.seed)),
            ("Episode", str(self._begun) if self._begun else "–"),
        ]

    def observation(self) -> list[Row]:
        """What the policy sees."""
        return told_rows(self.seen.message) if self.seen else []

    @property
    def mission(self) -> str:
        """What is to be done, where the environment has words for it."""
        return mission_in(self.seen)

    @property
    def _following(self) -> dict[str, Any] | None:
        """What the policy said of its next step; None when an episode is over."""
        return self.seen.message.get("next") if self.seen else None

    def policy_output(self) -> list[Bar]:
        """What the policy makes of each action, in the order of the choices; empty where it does not say."""
        if self._following is None or self.space is None or not self.space.choices:
            return []
        return bars(self._following, [choice.action for choice in self.space.choices])

    def next_action(self) -> Any:
        """What the policy does next; None when an episode is over."""
        return None if self._following is None else self._following["action"]

    def next_text(self) -> str:
        """The same in words, with the value of the observation."""
        if self._following is None or self.space is None:
            return "–"
        value = self._following.get("value")
        worth = "" if value is None else f" · value {number(value)}"
        return f"{self.space.name(self._following['action'])}{worth}"

    def command(self, key: str) -> Command | None:
        """What a key asks for; None when it asks for nothing now."""
        if not self.open:
            return None
        if key in _KEYS:
            return Command(_KEYS[key])
        action = self.space.by_key(key) if self.space else None
        if action is None or self.phase != "playing":
            return None
        return Command("step", action)

    def change_speed(self, faster: bool) -> int:
        """The next speed in that direction, which counts from now on."""
        place = SPEEDS.index(self.speed) + (1 if faster else -1)
        self.speed = SPEEDS[min(max(place, 0), len(SPEEDS) - 1)]
        return self.speed
