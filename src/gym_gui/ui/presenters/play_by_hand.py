"""An environment that is played by hand, as the page shows it: its keys, its numbers, its episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gym_gui.models import words
from gym_gui.ui.presenters.play import (
    Closed,
    Episode,
    News,
    Opened,
    Phase,
    Recording,
    Refusal,
    Row,
    Running,
    Seen,
    mission_in,
    number,
    told_rows,
)
from mosaic.client.by_hand import FACTORS, KeyMap, Tally, Trained, key_map
from mosaic.client.playing import Choices

Time = Literal["runs", "held", "turns"]
TIMES: dict[Time, str] = {
    "runs": "Real time",
    "held": "While a key is down",
    "turns": "A step for each key",
}
Command = Literal["pause", "step", "new", "again", "faster", "slower", "time", "record"]
_COMMANDS: dict[str, Command] = {
    "p": "pause",
    ".": "step",
    "n": "new",
    "b": "again",
    "+": "faster",
    "=": "faster",
    "-": "slower",
    "t": "time",
    "r": "record",
}
_MOST_EPISODES = 200


@dataclass(frozen=True)
class Press:
    """What a key that means an action asks for."""

    action: Any
    """That of the key; None where it makes none by itself."""
    actions: Sequence[Any]
    """Those of all keys that are down."""
    steps: bool
    """Whether it is one step, instead of something to hold."""
    starts: bool
    """Whether time begins to pass with it."""


class HandPresenter:
    """Everything that is to be seen of one session, kept up with `take`."""

    def __init__(self, phase: Phase = "start") -> None:
        self.phase = phase
        self.keys: KeyMap | None = None
        self.time: Time = "runs"
        self.running = False
        self.factor = 1.0
        self.seen: Seen | None = None
        self.seed: int | None = None
        self.episodes: list[Episode] = []
        self.tally = Tally()
        self.trained: Trained | None = None
        """The best policy that was trained here on the environment, if one was."""
        self.recording: str | None = None
        """The folder in which episodes are kept."""
        self.kept = 0
        """How many episodes were recorded."""
        self.problems: list[str] = []
        """What went wrong with recordings since somebody asked."""
        self._recorded = False
        self._init: dict[str, Any] = {}
        self._choices: Choices | None = None
        self._notice = ""
        self._begun = 0

    def take(self, news: News) -> None:
        """Take in what the session tells."""
        if isinstance(news, Opened):
            self._init, self._choices = news.init, Choices(news.init["action_space"])
            self.keys = key_map(news.init)
            self.time = next(one for one in TIMES if one == self.keys.time)
            self.recording = news.init["recording"]
        elif isinstance(news, Seen):
            self._see(news)
        elif isinstance(news, Running):
            self.running = news.running
        elif isinstance(news, Recording):
            self.recording = news.folder
            self._keep(news.recorded)
        elif isinstance(news, Refusal):
            self._notice, self.running = news.text, False
        elif isinstance(news, Closed):
            self._notice, self.running, self.phase = news.reason, False, "failed"

    def _see(self, seen: Seen) -> None:
        untouched = self.untouched
        self.seen, self.running, self._notice = seen, seen.running, ""
        message = seen.message
        if "seed" in message:
            self.seed = int(message["seed"])
            # One that was begun anew before its first step was none.
            self._begun += not untouched
            self._recorded = self.recording is not None
            self._keep(message.get("recorded"))
        self.phase = "ended" if seen.last else "playing"
        if seen.last:
            done = message["episode"]
            self.tally.add(done)
            episode = Episode(self._begun, int(done["seed"]), float(done["return"]), int(done["length"]), 0)
            self.episodes = [episode, *self.episodes[: _MOST_EPISODES - 1]]
            self._keep(done.get("recorded"))

    def _keep(self, recorded: dict[str, Any] | None) -> None:
        if recorded:
            self.kept += bool(recorded["files"])
            self.problems += filter(None, [recorded["problem"]])

    def take_problems(self) -> list[str]:
        """What went wrong with recordings since the last call, each sentence once."""
        told, self.problems = list(dict.fromkeys(self.problems)), []
        return told

    def about_recording(self) -> str:
        """What is recorded, in a few words."""
        if self.recording is not None and self.open and not self._recorded:
            return "from the next episode on"
        kept = f"{self.kept} episode{'s' if self.kept > 1 else ''} recorded"
        return kept if self.kept else ""

    @property
    def open(self) -> bool:
        """Whether there is a session that answers."""
        return self.phase in ("playing", "ended")

    @property
    def untouched(self) -> bool:
        """Whether the episode has begun, and no step of it was taken."""
        return self.phase == "playing" and self.seen is not None and "action" not in self.seen.message

    @property
    def rate(self) -> float:
        """Steps a second in real time, at the speed that was chosen."""
        return float(self._init.get("fps") or 1.0) * self.factor

    def press(self, key: str) -> Press | None:
        """A key goes down; None when it means no action now."""
        keys = self.keys
        if keys is None or self.phase != "playing" or not keys.press(key):
            return None
        action, turns = keys.action(), self.time == "turns"
        return Press(
            action,
            keys.actions(),
            steps=turns and action is not None,
            starts=not turns and not self.running,
        )

    def release(self, key: str) -> bool:
        """A key comes up again; whether it was one that is held."""
        if self.keys is None or self.keys.named(key) not in self.keys.down:
            return False
        self.keys.release(key)
        return True

    def command(self, key: str, shift: bool) -> Command | None:
        """What a key asks for besides an action. With Shift also one that the environment takes."""
        if not self.open:
            return None
        if self.phase == "ended" and key in ("enter", "space"):
            return "new"
        taken = self.keys is not None and self.keys.named(key) is not None
        return None if taken and not shift else _COMMANDS.get(key)

    def change_speed(self, faster: bool) -> None:
        """The next speed in that direction."""
        place = FACTORS.index(self.factor) + (1 if faster else -1)
        self.factor = FACTORS[min(max(place, 0), len(FACTORS) - 1)]

    @property
    def title(self) -> str:
        """The title of the page before and after a session."""
        if self.phase != "failed":
            return "Play by hand"
        return "This cannot be played" if self.keys is None else "The session has ended"

    @property
    def sentence(self) -> tuple[str, str]:
        """One line about where things stand, and the role of its colour."""
        if self.phase == "failed":
            return self._notice, "error"
        if self.phase == "loading":
            return "The environment is being loaded; this takes a few seconds.", "dim"
        if self._notice:
            return self._notice, "warn"
        if self.phase == "ended":
            return f"{self._ending()}  Enter starts the next one.", "good"
        return self._waiting(), "dim"

    def _waiting(self) -> str:
        """What the person has to know before time passes."""
        if self.phase != "playing":
            return ""
        if self.time == "turns":
            return "Each key is one step." if self.untouched else ""
        if self.time == "held":
            still = "Time passes only while a key is down: every action has an effect here."
            return still if self.untouched else ""
        if self.untouched and not self.running:
            return "Time starts with the first key."
        return "" if self.running else "Paused: press P or a key of the game to continue."

    def _ending(self) -> str:
        episode = self.episodes[0]
        truncated = self.seen is not None and self.seen.message["truncated"]
        how = "was truncated" if truncated else "ended"
        steps, total = words.steps(episode.length), words.number(episode.total)
        return f"Episode {episode.number} {how} after {steps} steps, return {total}."

    @property
    def ending(self) -> str:
        """The words over the last picture of an episode."""
        return self.sentence[0] if self.phase == "ended" else ""

    def numbers(self) -> list[Row]:
        """Step, what is left, reward, return, action, seed."""
        message = self.seen.message if self.seen else {}
        step = int(message.get("step", 0))
        return [
            ("Return", words.number(message.get("return", 0.0)) if message else words.NONE),
            ("Reward", number(message["reward"]) if "reward" in message else words.NONE),
            ("Step", words.steps(step)),
            ("Left", self._left(step)),
            ("Action", self._action(message)),
            ("Seed", words.NONE if self.seed is None else str(self.seed)),
            ("Episode", str(self._begun) if self._begun else words.NONE),
        ]

    def _left(self, step: int) -> str:
        """How much is left until the episode is truncated."""
        limit = self._init.get("max_episode_steps")
        if limit is None:
            return "no limit"
        left = max(0, int(limit) - step)
        seconds = f" · {words.duration(left / self.rate)}" if self.time == "runs" else ""
        return f"{words.steps(left)} steps{seconds}"

    def _action(self, message: dict[str, Any]) -> str:
        if "action" not in message or self._choices is None:
            return words.NONE
        by = "" if message["by"] == "caller" else " · no key"
        return f"{self._choices.name(message['action'])}{by}"

    def observation(self) -> list[Row]:
        """What the environment shows in numbers; empty where that is only a picture."""
        rows = told_rows(self.seen.message) if self.seen else []
        return [(name, value) for name, value in rows if value != number(None)]

    @property
    def mission(self) -> str:
        """What is to be done, where the environment has words for it."""
        return mission_in(self.seen)

    def summary(self) -> str:
        """How the episodes went together, beside what was trained."""
        if self.tally.mean is None:
            text = "No episode has ended yet."
        else:
            count, mean = len(self.tally.returns), words.number(self.tally.mean)
            text = f"Mean return {mean} of {count} episode{'s' if count > 1 else ''}."
        if self.trained is not None:
            reached = words.number(self.trained.mean_return)
            text += f" Best policy trained here: {reached} ({self.trained.algo})."
        return text

    def speed_text(self) -> str:
        """The speed in words."""
        return f"{self.factor:g}× · {self.rate:.3g} steps/s"
