"""A policy that is played, as the view shows it: what stands where, and what may be done now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gym_gui.models import words
from gym_gui.models.play_actions import ActionSpace
from gym_gui.models.playing import Closed, News, Opened, Refusal, Running, Seen
from gym_gui.ui.presenters.play_values import Bar, Row, bars, number, observation_rows

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
            episode = Episode(
                self._begun, int(done["seed"]), float(done["return"]), int(done["length"]), seen.yours
            )
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
        how = "was cut off" if truncated else "ended"
        return (
            f"Episode {episode.number} {how} after {words.steps(episode.length)} steps, "
            f"return {words.number(episode.total)}."
        )

    def numbers(self) -> list[Row]:
        """Step, return, reward, action, seed."""
        message = self.seen.message if self.seen else {}
        action = "–"
        if "action" in message and self.space is not None:
            by = "policy" if message["by"] == "policy" else "you"
            action = f"{self.space.name(message['action'])} · {by}"
        return [
            Row("Step", words.steps(message.get("step", 0)) if message else "–"),
            Row("Return", words.number(message.get("return", 0.0)) if message else "–"),
            Row("Reward", number(message["reward"]) if "reward" in message else "–"),
            Row("Action", action),
            Row("Seed", "–" if self.seed is None else str(self.seed)),
            Row("Episode", str(self._begun) if self._begun else "–"),
        ]

    def observation(self) -> list[Row]:
        """What the policy sees."""
        return observation_rows(self.seen.message["observation"]) if self.seen else []

    def opinion(self) -> list[Bar]:
        """What the policy makes of each action, in the order of the choices; empty where it does not say."""
        following = self.seen.message.get("next") if self.seen else None
        if following is None or self.space is None or not self.space.choices:
            return []
        return bars(following, [choice.action for choice in self.space.choices])

    def next_action(self) -> Any:
        """What the policy does next; None when an episode is over."""
        following = self.seen.message.get("next") if self.seen else None
        return None if following is None else following["action"]

    def next_text(self) -> str:
        """The same in words, with what it expects."""
        following = self.seen.message.get("next") if self.seen else None
        if following is None or self.space is None:
            return "–"
        value = following.get("value")
        worth = "" if value is None else f" · expects {number(value)}"
        return f"{self.space.name(following['action'])}{worth}"

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
