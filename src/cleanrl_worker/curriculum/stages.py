"""A curriculum while a run trains: what its stages have seen, which one each environment plays, and the
environments themselves; stages come in their order, or a curriculum of Syllabus-RL draws them."""

from __future__ import annotations

import contextlib
import io
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from cleanrl_worker.curriculum.schedule import Counts, Schedule
from cleanrl_worker.curriculum.task_sampler import EXTRA, Sampler
from cleanrl_worker.kit.state import State
from cleanrl_worker.portable.fastlane.wrapper import take_place, taking_place
from mosaic.contract.errors import MosaicError
from mosaic.contract.extras import require_extra

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
            self.index += 1
            self._ended_steps = self._episodes = 0
            self._returns.clear()
            counts = Counts()
        return StageNote(played + 1, self.index + 1, counts.steps)

    def first_seed(self, seed: int, env: int, episode: int) -> int:
        """Each environment has a seed of its own in each stage."""
        return seed + self.index * len(self.playing) + env

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


_HELD = {
    "DomainRandomization": (),
    "BatchedDomainRandomization": ("current_task", "_batch_steps", "_batch_count"),
    "OnlineLearningProgress": (
        *("completed_episodes", "current_steps", "current_task_success_rates", "current_task_counts"),
        *("random_baseline", "_p_fast", "_p_slow", "_p_true"),
        *("normalized_task_success_rates", "task_rates", "task_dist", "_stale_dist"),
    ),
}
"""What each curriculum has learned: numbers, arrays and None, so that a checkpoint holds it without code."""


class SyllabusSampler:
    """Draws tasks by their numbers. It draws from numpy's global generator, which checkpoints hold too."""

    def __init__(self, sampler: Sampler, tasks: int) -> None:
        curricula, task_spaces = _import_syllabus(sampler.name)
        # Numbers and not ids: some curricula compute with their tasks.
        space = task_spaces.DiscreteTaskSpace(tasks)
        self._held = _HELD[sampler.name]
        self._success_return = sampler.success_return
        try:
            self._curriculum = getattr(curricula, sampler.name)(task_space=space, **sampler.arguments)
        except Exception as error:
            raise MosaicError(f"Syllabus-RL cannot make {sampler.name}: {error!r}.") from error
        chances = self._curriculum._sample_distribution
        # Its `sample` compares them with an empty list, which numpy no longer lets an array do.
        self._curriculum._sample_distribution = lambda: list(chances())

    def draw(self) -> int:
        """The task of the next episode."""
        return int(self._curriculum.sample(k=1)[0])

    def episode_ended(self, env: int, task: int, total: float, length: int) -> None:
        """Tell it of an episode."""
        least = self._success_return
        success = 1.0 if least is not None and total >= least else 0.0
        self._curriculum.update_task_progress(task, success, env_id=env)
        self._curriculum.update_on_episode(total, length, task, success, env_id=env)

    def state(self) -> State:
        return {name: getattr(self._curriculum, name) for name in self._held}

    def load(self, state: State) -> None:
        for name in self._held:
            setattr(self._curriculum, name, state[name])


def _import_syllabus(who: str) -> tuple[Any, Any]:
    """Its curricula and task spaces, without what importing it does to the rest of the process."""
    try:
        # It makes numpy raise at every underflow, and what it imports may greet on stdout.
        with np.errstate(), contextlib.redirect_stdout(io.StringIO()):
            from syllabus import curricula, task_space
            from syllabus.core import GymnasiumEvaluationWrapper
    except ImportError as error:
        require_extra(EXTRA, f"The curriculum {who}")
        raise MosaicError(f"Syllabus-RL cannot be imported: {error}.") from error
    # It takes shared memory when it is imported, for processes that there are none of.
    shared = GymnasiumEvaluationWrapper.env_count.shm
    with contextlib.suppress(FileNotFoundError):
        shared.close()
        shared.unlink()
    return curricula, task_space


class DrawnTasks(Curriculum):
    """Goes from task to task as a curriculum of Syllabus-RL says, each environment at its episodes' ends."""

    in_turn = True

    def __init__(self, schedule: Schedule, num_envs: int) -> None:
        """Its `index` is the task that was drawn last."""
        assert schedule.sampler is not None
        super().__init__(schedule, num_envs)
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


Env = gymnasium.Env[Any, Any]


class StageEnvs:
    """Makes an environment when its stage comes; one that may come again is made once and kept."""

    def __init__(self, schedule: Schedule, make: Callable[[str, bool], Env], begun: Sequence[Env]) -> None:
        """`begun` are those of the first stage, in their places."""
        self._stages = schedule.stages
        self._make = make
        self._keeps = schedule.sampler is not None
        self._kept = {(place, 0): env for place, env in enumerate(begun)} if self._keeps else {}

    def swap(self, place: int, old: Env, stage: int, draws: bool) -> Env:
        """The environment of a stage instead of an old one; whoever watches that one watches it."""
        kept = self._kept.get((place, stage))
        if kept is not None:
            take_place(old, kept)
            return kept
        with taking_place(old):
            new = self._make(self._stages[stage].env_id, draws)
        if self._keeps:
            self._kept[place, stage] = new
        else:
            old.close()
        return new

    @property
    def kept(self) -> list[Env]:
        """Those that may come again, also the ones that are played now."""
        return list(self._kept.values())
