"""From a step of the environments to transitions in a replay buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from cleanrl_worker.training.envs import Step
from cleanrl_worker.training.replay import ReplayBuffer


def keep_step(
    buffer: ReplayBuffer,
    obs: NDArray[Any],
    actions: NDArray[Any] | Sequence[Any],
    step: Step,
    next_obs: NDArray[Any],
) -> None:
    """Keep a transition for each environment; one whose episode ended keeps the observation it ended with."""
    for index, reward in enumerate(step.rewards):
        last = step.final_obs.get(index)
        after = next_obs[index] if last is None else last.reshape(-1)
        buffer.add(obs[index], after, actions[index], reward, step.terminated[index])
