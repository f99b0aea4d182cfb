"""A curriculum while a run trains: what its stages have seen, and which one each environment plays."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cleanrl_worker.curriculum.conditions import Counts
from cleanrl_worker.curriculum.schedule import Schedule
from cleanrl_worker.kit.state import State

RECENT = 100
"""How many of a stage's last episodes `episode_return` is the mean of."""


@dataclass(frozen=True)
class StageNote:
    """What the end of an episode says of the curriculum; stages are counted from 1."""

    played: int
    """The stage that the episode was of."""
    now: int
    """The stage that the run is in after it."""
    steps: int
    """How many steps of that stage were taken, over all environments."""
    in_turn: bool = False
    """Whether stages take turns, so that no stage is behind another one."""


class Curriculum:
    """Goes through a schedule. A stage ends at the first end of an episode at which its condition holds.

    From then on each environment plays the next stage once its own episode has ended. What it still does in
    the stage before counts for neither: `steps`, `episodes` and `episode_return` are of one stage alone.
    """

    in_turn = False

    def __init__(self, schedule: Schedule, num_envs: int) -> None:
        self.schedule = schedule
        self.index = 0
        self.playing = [0] * num_envs
        """The stage that each environment plays, counted from 0 as `index` is."""
        self._ended_steps = 0
        self._episodes = 0
        self._returns: deque[float] = deque(maxlen=RECENT)

    def draw(self) -> None:
        """The first stage comes first."""

    def count(self, lengths: Sequence[int]) -> Counts:
        """What the stage has seen; `lengths` are those of the episodes that have not ended."""
        begun = sum(length for length, at in zip(lengths, self.playing, strict=True) if at == self.index)
        mean = sum(self._returns) / len(self._returns) if self._returns else None
        return Counts(self._ended_steps + begun, self._episodes, mean)

    def episode_ended(self, env: int, total: float, length: int, lengths: Sequence[int]) -> StageNote:
        """Count an episode of one environment, and go on to the next stage if this one is over."""
        played = self.playing[env]
        if played == self.index:
            self._ended_steps += length
            self._episodes += 1
            self._returns.append(total)
        counts = self.count(lengths)
        condition = self.schedule.stages[self.index].condition
        if condition is not None and self.index + 1 < len(self.schedule.stages) and condition.is_met(counts):
            self._go_on()
            counts = Counts()
        return StageNote(played + 1, self.index + 1, counts.steps)

    def first_seed(self, seed: int, env: int, episode: int) -> int:
        """Each environment has a seed of its own in each stage."""
        return seed + self.index * len(self.playing) + env

    def _go_on(self) -> None:
        self.index += 1
        self._ended_steps = self._episodes = 0
        self._returns.clear()

    def state(self) -> State:
        return {
            "index": self.index,
            "playing": list(self.playing),
            "steps": self._ended_steps,
            "episodes": self._episodes,
            "returns": list(self._returns),
        }

    def load(self, state: State) -> None:
        self.index, self.playing = int(state["index"]), [int(at) for at in state["playing"]]
        self._ended_steps, self._episodes = int(state["steps"]), int(state["episodes"])
        self._returns = deque(state["returns"], maxlen=RECENT)
