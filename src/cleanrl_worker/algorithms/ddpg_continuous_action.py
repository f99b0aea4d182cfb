"""Deep deterministic policy gradient, for continuous actions and vector observations."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from cleanrl_worker.agents.continuous import Actor, QNetwork
from cleanrl_worker.kernels.deterministic import DeterministicKernel
from cleanrl_worker.kernels.layers import on_cpu
from cleanrl_worker.training.box_actions import BoxActions, Floats
from cleanrl_worker.training.common import NonNegative, PositiveInt
from cleanrl_worker.training.continuous import ContinuousArgs
from cleanrl_worker.training.off_policy import OffPolicyLearner, learn
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.policies import Policy, Spaces, actor_critic_weights, actor_policy
from cleanrl_worker.training.replay import ReplayBuffer, Sample
from cleanrl_worker.training.run import open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import State, Stateful
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.targets import Target
from cleanrl_worker.training.weights import split_parts

ACTION_SPACES = ("box",)
OBSERVATION_SPACES = ("vector", "grid")
LOGGED = ("qf1_values", "qf1_loss")


@dataclass
class Args(ContinuousArgs):
    """Deep deterministic policy gradient, for continuous actions and vector observations."""

    exp_name: str = "ddpg_continuous_action"
    """the name of this experiment, part of the results folder's name"""
    learning_rate: NonNegative = 3e-4
    """the learning rate of Adam"""
    exploration_noise: NonNegative = 0.1
    """the noise on the actions that are taken, as a share of half the action's range"""
    policy_frequency: PositiveInt = 2
    """after how many updates of the Q network the policy and the targets are updated once"""


class Learner(Protocol):
    """Acts and learns: in torch here, or by a kernel that computes the same."""

    def act(self, obs: Floats) -> Floats: ...
    def learn_critics(self, sample: Sample) -> list[float]: ...
    def learn_actor(self, obs: Floats) -> float: ...


class Networks:
    """The policy, the Q network, their optimizers and their targets."""

    def __init__(self, obs_size: int, actions: BoxActions, device: torch.device) -> None:
        # One row of bounds, as in the model files of CleanRL's script; those of TD3 and SAC have no rows.
        low, high = (bound.unsqueeze(0) for bound in actions.bounds)
        self.actor = Actor(obs_size, low, high).to(device)
        self.critics = nn.ModuleList(QNetwork(obs_size, actions.size) for _ in range(1)).to(device)
        self.actor_optimizer = Adam(self.actor, eps=1e-8)
        self.critic_optimizer = Adam(self.critics, eps=1e-8)
        self.actor_target = Target(self.actor, self.actor_optimizer)
        self.critic_target = Target(self.critics, self.critic_optimizer)

    def parts(self) -> dict[str, Stateful]:
        """What a checkpoint holds of them, by name."""
        return {
            "actor": self.actor_optimizer,
            "critics": self.critic_optimizer,
            "actor_target": self.actor_target,
            "critic_target": self.critic_target,
        }


class TorchLearner:
    """The update rule."""

    def __init__(self, nets: Networks, args: Args) -> None:
        self._nets = nets
        self._args = args
        self._device = nets.actor.action_scale.device

    @torch.no_grad()
    def act(self, obs: Floats) -> Floats:
        return np.asarray(self._nets.actor(torch.from_numpy(obs).to(self._device)).cpu())

    def learn_critics(self, sample: Sample) -> list[float]:
        """One step of the Q network; gives what is logged, in the order of `LOGGED`."""
        nets, args = self._nets, self._args
        obs, next_obs, actions, rewards, dones = (
            torch.from_numpy(array).to(self._device) for array in vars(sample).values()
        )
        with torch.no_grad():
            future = nets.critic_target.net[0](next_obs, nets.actor_target.net(next_obs))
            goals = rewards + (1.0 - dones) * args.gamma * future
        values = nets.critics[0](obs, actions)
        loss = (values - goals).square().mean()
        nets.critic_optimizer.update(loss, args.learning_rate, math.inf)
        return [values.mean().item(), loss.item()]

    def learn_actor(self, obs: Floats) -> float:
        """One step of the policy up the Q network; gives the loss."""
        nets, batch = self._nets, torch.from_numpy(obs).to(self._device)
        loss = -nets.critics[0](batch, nets.actor(batch)).mean()
        nets.actor_optimizer.update(loss, self._args.learning_rate, math.inf)
        return float(loss.item())


def make_learner(nets: Networks, args: Args) -> Learner:
    """A kernel where one fits and is wanted, else torch."""
    if args.kernels and on_cpu(nets.actor, nets.critics):
        return DeterministicKernel(nets, args)
    return TorchLearner(nets, args)


@dataclass(frozen=True)
class DDPG(OffPolicyLearner):
    """Deep deterministic policy gradient, as the off-policy loop sees it."""

    args: Args
    nets: Networks
    learner: Learner
    actions: BoxActions

    def act(self, obs: Floats, step: int) -> Floats:
        if step < self.args.learning_starts:
            return self.actions.random(len(obs))
        return self.actions.blur(self.learner.act(obs), self.args.exploration_noise)

    def update(self, buffer: ReplayBuffer, step: int) -> dict[str, float]:
        """Learn from one batch; the policy and the targets take their turn every few updates."""
        args, nets, sample = self.args, self.nets, buffer.sample(self.args.batch_size)
        losses = dict(zip(LOGGED, self.learner.learn_critics(sample), strict=True))
        if step % args.policy_frequency == 0:
            losses["actor_loss"] = self.learner.learn_actor(sample.obs)
            nets.actor_target.follow(args.tau)
            nets.critic_target.follow(args.tau)
        return losses


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run("ddpg_continuous_action", args, args.num_envs, stop) as run:
        actions = BoxActions(run.envs.action_space)
        nets = Networks(math.prod(run.envs.observation_space.shape), actions, run.device)
        run.model = (nets.actor, *nets.critics)
        learner = DDPG(args, nets, make_learner(nets, args), actions)
        learn(args, run, learner, actions, **nets.parts())


def checkpoint_weights(parts: State, spaces: Spaces, args: Args) -> Any:
    """The weights in a full checkpoint, in the form of a model file."""
    return actor_critic_weights(parts, spaces, critics=1)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    actor, critic = split_parts(weights, "actor", "qf1")
    return actor_policy(actor, critic, spaces, args.exploration_noise)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
