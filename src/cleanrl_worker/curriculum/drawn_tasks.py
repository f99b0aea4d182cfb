"""A curriculum that draws a task for each episode, while a run trains."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from cleanrl_worker.curriculum.schedule import Schedule
from cleanrl_worker.curriculum.stages import StageNote
from cleanrl_worker.curriculum.task_sampler import EXTRA, Sampler
from cleanrl_worker.kit.state import State
from mosaic.contract.errors import MosaicError
from mosaic.contract.extras import require_extra

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
    _release(GymnasiumEvaluationWrapper.env_count)
    return curricula, task_space


def _release(counter: Any) -> None:
    """Give back the shared memory that it takes when it is imported, for processes that there are none of."""
    with contextlib.suppress(FileNotFoundError):
        counter.shm.close()
        counter.shm.unlink()


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
