"""Playing a policy to see how good it is."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cleanrl_worker.training.envs import Episode, VectorEnv
from cleanrl_worker.training.policies import Policy

EPISODE_CAP = 30_000
"""An episode of more steps is cut off: an environment may never end by itself."""


@dataclass(frozen=True)
class Evaluation:
    """How episodes went, in the order of their seeds."""

    episodes: list[Episode]
    cut_off: int
    """How many of them had not ended after `EPISODE_CAP` steps, and count as far as they went."""

    @property
    def returns(self) -> list[float]:
        """The return of each episode."""
        return [episode.total_reward for episode in self.episodes]

    @property
    def mean(self) -> float:
        """The mean return."""
        return statistics.fmean(self.returns)

    @property
    def std(self) -> float:
        """How far the returns lie around their mean."""
        return statistics.pstdev(self.returns)

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}"


def evaluate(
    policy: Policy,
    envs: VectorEnv,
    episodes: int,
    seed: int,
    deterministic: bool = True,
    check_stop: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Play episodes, the n-th from `seed` + n however many environments there are; `check_stop` may raise."""
    policy.seed(seed)
    obs = np.zeros((envs.num_envs, *envs.observation_space.shape), dtype=np.float32)
    envs.reset(seed, out=obs)
    played = list(range(envs.num_envs))
    returns, lengths = [0.0] * envs.num_envs, [0] * envs.num_envs
    found: dict[int, Episode] = {}
    cut_off = 0
    while len(found) < episodes:
        check_stop()
        step = envs.step(policy.act(obs, deterministic), out=obs)
        for index, reward in enumerate(step.rewards):
            returns[index] += reward
            lengths[index] += 1
            ended = step.terminated[index] or step.truncated[index]
            if not ended and lengths[index] < EPISODE_CAP:
                continue
            if played[index] < episodes:
                found[played[index]] = Episode(returns[index], lengths[index])
                cut_off += not ended
            played[index] = max(played) + 1
            returns[index], lengths[index] = 0.0, 0
            if played[index] < episodes:
                envs.restart(index, seed + played[index], out=obs)
    return Evaluation([found[number] for number in range(episodes)], cut_off)
