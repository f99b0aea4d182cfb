"""What `dqn` and `c51` have in common: they act by the values of actions and learn now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.training.common import NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.training.exploration import EpsilonGreedy, ExplorationArgs
from cleanrl_worker.training.off_policy import OffPolicyArgs, OffPolicyLearner
from cleanrl_worker.training.replay import ReplayBuffer, Sample
from cleanrl_worker.training.targets import Target


@dataclass
class QLearningArgs(ExplorationArgs, OffPolicyArgs):
    """Arguments of Q-learning with a replay buffer and a target network."""

    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    buffer_size: PositiveInt = 10_000
    """how many transitions the replay buffer holds"""
    batch_size: PositiveInt = 128
    """how many transitions an update learns from"""
    learning_starts: NonNegativeInt = 10_000
    """how many environment steps are taken before the first update"""
    train_frequency: PositiveInt = 10
    """how many environment steps lie between two updates"""
    target_network_frequency: PositiveInt = 500
    """how many environment steps lie between two moves of the target network"""


class Learner(Protocol):
    """Values actions and learns: in torch, or by a kernel that computes the same."""

    def values(self, obs: NDArray[Any]) -> NDArray[np.float32]: ...
    def learn(self, sample: Sample) -> NDArray[np.float32]: ...


class ActionNumbers:
    """The actions of a `Discrete` space, counted from 0."""

    shape = ()
    dtype = np.int64

    def __init__(self, space: Any) -> None:
        self.count = int(space.n)
        self._first = int(space.start)

    def for_envs(self, actions: list[int]) -> list[int]:
        """The actions as the environments count them."""
        return [action + self._first for action in actions]


class QLearning(OffPolicyLearner):
    """A learner of values, as the off-policy loop sees it."""

    def __init__(
        self,
        args: QLearningArgs,
        learner: Learner,
        target: Target[Any],
        actions: ActionNumbers,
        logged: tuple[str, ...],
        tau: float = 1.0,
    ) -> None:
        """`logged` names what the learner gives; the target goes the share `tau` of the way at a time."""
        self._args = args
        self._learner = learner
        self._target = target
        self._explorer = EpsilonGreedy(args, learner.values, actions.count)
        self._logged = logged
        self._tau = tau

    def act(self, obs: NDArray[np.float32], step: int) -> list[int]:
        return self._explorer.act(obs, step)

    def charts(self) -> dict[str, float]:
        return {"epsilon": self._explorer.epsilon}

    def update(self, buffer: ReplayBuffer, step: int) -> dict[str, float]:
        args, losses = self._args, {}
        if step % args.train_frequency == 0:
            logged = self._learner.learn(buffer.sample(args.batch_size))
            losses = dict(zip(self._logged, logged.tolist(), strict=True))
        if step % args.target_network_frequency == 0:
            self._target.follow(self._tau)
        return losses
