"""A curriculum that draws a task for each episode, while a run trains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cleanrl_worker.curriculum.schedule import Schedule
from cleanrl_worker.curriculum.stages import StageNote
from cleanrl_worker.curriculum.syllabus_sampler import SyllabusSampler
from cleanrl_worker.kit.state import State


class DrawnTasks:
    """Goes from task to task as a curriculum of Syllabus-RL says, each environment at its episodes' ends."""

    in_turn = True

    def __init__(self, schedule: Schedule, num_envs: int) -> None:
        assert schedule.sampler is not None
        self.schedule = schedule
        self.index = 0
        """The task that was drawn last."""
        self.playing = [0] * num_envs
        """The task that each environment plays, counted from 0."""
        self._steps = [0] * len(schedule.stages)
        """How many steps of each task were taken, in episodes that have ended."""
        self._sampler = SyllabusSampler(schedule.sampler, len(schedule.stages))

    def draw(self) -> None:
        """Choose the task of the next episode."""
        self.index = self._sampler.draw()

    def episode_ended(self, env: int, total: float, length: int, lengths: Sequence[int]) -> StageNote:
        """Tell the curriculum of an episode, and draw the next one's task."""
        played = self.playing[env]
        self._steps[played] += length
        self._sampler.episode_ended(env, played, total, length)
        self.draw()
        return StageNote(played + 1, self.index + 1, self._steps[self.index], in_turn=True)

    def first_seed(self, seed: int, env: int, episode: int) -> int:
        """Of an episode in a task that an environment comes to: it may have been there before."""
        return int(np.random.SeedSequence((seed, env, episode)).generate_state(1)[0])

    def state(self) -> State:
        return {
            "index": self.index,
            "playing": list(self.playing),
            "steps": list(self._steps),
            "sampler": self._sampler.state(),
        }

    def load(self, state: State) -> None:
        self.index, self.playing = int(state["index"]), [int(at) for at in state["playing"]]
        self._steps = [int(steps) for steps in state["steps"]]
        self._sampler.load(state["sampler"])
