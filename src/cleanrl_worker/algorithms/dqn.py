"""Deep Q-learning for discrete actions and vector observations."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cleanrl_worker.agents.q_networks import QNetwork
from cleanrl_worker.kernels import dqn as dqn_kernel
from cleanrl_worker.training.common import Fraction
from cleanrl_worker.training.off_policy import learn
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.policies import GreedyPolicy, Policy, Spaces
from cleanrl_worker.training.q_learning import ActionNumbers, Learner, QLearning, QLearningArgs
from cleanrl_worker.training.replay import Sample
from cleanrl_worker.training.run import open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import State
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.targets import Target
from cleanrl_worker.training.weights import load_weights, unflatten

ACTION_SPACES = ("discrete",)
OBSERVATION_SPACES = ("vector", "grid")
LOGGED = ("td_loss", "q_values")


@dataclass
class Args(QLearningArgs):
    """Deep Q-learning for discrete actions and vector observations."""

    exp_name: str = "dqn"
    """the name of this experiment, part of the results folder's name"""
    tau: Fraction = 1.0
    """how far the target network moves to the network each time; 1: it becomes a copy"""


class TorchLearner:
    """The update rule."""

    def __init__(self, network: QNetwork, target: Target[QNetwork], optimizer: Adam, args: Args) -> None:
        self._network = network
        self._target = target.net
        self._optimizer = optimizer
        self._args = args
        self._device = next(network.parameters()).device

    @torch.no_grad()
    def values(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(self._network(torch.from_numpy(obs).to(self._device)).cpu())

    def learn(self, sample: Sample) -> NDArray[np.float32]:
        """One update; gives what is logged, in the order of `LOGGED`."""
        obs, next_obs, actions, rewards, dones = (
            torch.from_numpy(column).to(self._device) for column in vars(sample).values()
        )
        with torch.no_grad():
            best_next = self._target(next_obs).max(dim=1).values
            targets = rewards + self._args.gamma * (1.0 - dones) * best_next
        values = self._network(obs).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = (values - targets).square().mean()
        self._optimizer.update(loss, self._args.learning_rate, max_grad_norm=math.inf)
        return np.asarray(torch.stack([loss, values.mean()]).detach().cpu())


def make_learner(network: QNetwork, target: Target[QNetwork], optimizer: Adam, args: Args) -> Learner:
    """A kernel where one fits the network and is wanted, else torch."""
    if args.kernels and dqn_kernel.fits(network):
        return dqn_kernel.DQNKernel(network, target, optimizer, args)
    return TorchLearner(network, target, optimizer, args)


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run("dqn", args, args.num_envs, stop) as run:
        actions = ActionNumbers(run.envs.action_space)
        obs_size = math.prod(run.envs.observation_space.shape)
        run.model = network = QNetwork(obs_size, actions.count).to(run.device)
        optimizer = Adam(network, eps=1e-8)
        target = Target(network, optimizer)
        learner = make_learner(network, target, optimizer, args)
        q_learning = QLearning(args, learner, target, actions, LOGGED, args.tau)
        learn(args, run, q_learning, actions, optimizer=optimizer, target=target)


def checkpoint_weights(parts: State, spaces: Spaces, args: Args) -> Any:
    """The weights in a full checkpoint, in the form of a model file."""
    network = QNetwork(math.prod(spaces.observation_space.shape), int(spaces.action_space.n))
    return unflatten(network, parts["optimizer"])


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = QNetwork(math.prod(spaces.observation_space.shape), int(spaces.action_space.n))
    return GreedyPolicy(load_weights(network, weights), spaces.action_space, args.end_e)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
