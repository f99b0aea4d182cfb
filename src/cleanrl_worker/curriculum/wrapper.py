"""Curricula in plain gymnasium: the presets, and one environment that becomes another when it is reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium

from cleanrl_worker.curriculum.schedule import BABYAI_DOORKEY_CURRICULUM, BABYAI_GOTO_CURRICULUM
from cleanrl_worker.portable.fastlane.wrapper import mission_of
from cleanrl_worker.portable.probe import ProbeError, make_environment
from mosaic.contract.errors import UserError

__all__ = ["BABYAI_DOORKEY_CURRICULUM", "BABYAI_GOTO_CURRICULUM", "BabyAITaskWrapper", "make_task"]

Env = gymnasium.Env[Any, Any]


def make_task(env_id: str) -> Env:
    """An environment by its id; packages such as MiniGrid, which register it, are imported first."""
    try:
        env: Env = make_environment(env_id, {})
    except ProbeError as error:
        raise UserError(str(error)) from error
    return env


class BabyAITaskWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Plays the environment of a task, which may be another one from the next `reset` on.

    A task is the id of an environment. Each is made once and kept. All must have the same spaces, as those
    of MiniGrid and BabyAI have. For scripts of one's own; our algorithms take a whole schedule.
    """

    def __init__(self, env: Env, make: Callable[[str], Env] = make_task) -> None:
        """`make` makes the environment of a task that is new."""
        super().__init__(env)
        self.task = env.spec.id if env.spec is not None else ""
        self._make = make
        self._envs = {self.task: env}
        self._next_task = self.task

    def change_task(self, task: str) -> None:
        """Play another task from the next `reset` on; the present episode can still be played to its end."""
        self._next_task = task

    def reset(self, *, new_task: str | None = None, **kwargs: Any) -> Any:
        """Begin an episode, of `new_task` if it is given."""
        self.task = self._next_task = new_task or self._next_task
        if self.task not in self._envs:
            self._envs[self.task] = self._check(self._make(self.task))
        self.env = self._envs[self.task]
        return self.env.reset(**kwargs)

    def _check(self, env: Env) -> Env:
        if env.action_space != self.action_space or _seen(env) != _seen(self.env):
            env.close()
            raise UserError(f"{self.task} has other spaces than {self.env}: tasks must have the same.")
        return env

    @property
    def mission(self) -> str:
        """What is to be done, in words; empty where the environment has no mission."""
        return mission_of(self.env)

    def close(self) -> None:
        """Release the environments of all tasks."""
        for env in self._envs.values():
            env.close()


def _seen(env: Env) -> Any:
    """The space of what an agent sees: of a grid world the picture, as missions are different texts."""
    space = env.observation_space
    return space.spaces.get("image", space) if isinstance(space, gymnasium.spaces.Dict) else space
