"""Soft actor-critic, for continuous actions and vector observations."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import torch
from torch import nn

from cleanrl_worker.agents.continuous import GaussianActor, QNetwork
from cleanrl_worker.kernels.layers import on_cpu
from cleanrl_worker.kernels.sac import SACKernel
from cleanrl_worker.training.box_actions import BoxActions, Floats
from cleanrl_worker.training.common import Bounds, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.training.continuous import ContinuousArgs
from cleanrl_worker.training.off_policy import OffPolicyLearner, learn
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.policies import BoxPolicy, Policy, Spaces
from cleanrl_worker.training.replay import ReplayBuffer, Sample
from cleanrl_worker.training.run import open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import State, Stateful
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.targets import Target
from cleanrl_worker.training.weights import load_weights, unflatten

ACTION_SPACES = ("box",)
OBSERVATION_SPACES = ("vector", "grid")
LOGGED = ("qf1_values", "qf2_values", "qf1_loss", "qf2_loss")
ACTOR_LOGGED = ("actor_loss", "alpha", "alpha_loss")


@dataclass
class Args(ContinuousArgs):
    """Soft actor-critic, for continuous actions and vector observations."""

    exp_name: str = "sac_continuous_action"
    """the name of this experiment, part of the results folder's name"""
    policy_lr: NonNegative = 3e-4
    """the learning rate of the policy"""
    q_lr: NonNegative = 1e-3
    """the learning rate of the Q networks, and of alpha when it is tuned"""
    learning_starts: NonNegativeInt = 5_000
    """how many steps are taken at random before learning begins"""
    policy_frequency: PositiveInt = 2
    """after how many updates of the Q networks the policy is updated, then as often"""
    target_network_frequency: PositiveInt = 1
    """after how many updates of the Q networks their targets follow"""
    alpha: Annotated[float, Bounds(minimum=1e-10)] = 0.2
    """the weight of the entropy when it is not tuned"""
    autotune: bool = True
    """let the weight of the entropy follow a target, minus the number of action dimensions"""


class Learner(Protocol):
    """Acts and learns: in torch here, or by a kernel that computes the same."""

    def act(self, obs: Floats, noise: Floats) -> Floats: ...
    def learn_critics(self, sample: Sample, noise: Floats) -> list[float]: ...
    def learn_actor(self, obs: Floats, noise: Floats) -> list[float]: ...


class Temperature(nn.Module):
    """The weight of the entropy, learned as its logarithm."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor([math.log(alpha)]))


class Networks:
    """The policy, the two Q networks with their targets, alpha, and their optimizers."""

    def __init__(self, obs_size: int, actions: BoxActions, device: torch.device, args: Args) -> None:
        self.actor = GaussianActor(obs_size, *actions.bounds).to(device)
        self.critics = nn.ModuleList(QNetwork(obs_size, actions.size) for _ in range(2)).to(device)
        self.temperature = Temperature(1.0 if args.autotune else args.alpha).to(device)
        self.actor_optimizer = Adam(self.actor, eps=1e-8)
        self.critic_optimizer = Adam(self.critics, eps=1e-8)
        self.alpha_optimizer = Adam(self.temperature, eps=1e-8)
        self.critic_target = Target(self.critics, self.critic_optimizer)

    def parts(self) -> dict[str, Stateful]:
        """What a checkpoint holds of them, by name."""
        return {
            "actor": self.actor_optimizer,
            "critics": self.critic_optimizer,
            "alpha": self.alpha_optimizer,
            "critic_target": self.critic_target,
        }


class TorchLearner:
    """The update rule."""

    def __init__(self, nets: Networks, args: Args) -> None:
        self._nets = nets
        self._args = args
        self._device = nets.actor.action_scale.device

    @torch.no_grad()
    def act(self, obs: Floats, noise: Floats) -> Floats:
        batch, drawn = (torch.from_numpy(array).to(self._device) for array in (obs, noise))
        return np.asarray(self._nets.actor.draw(batch, drawn)[0].cpu())

    def learn_critics(self, sample: Sample, noise: Floats) -> list[float]:
        """One step of both Q networks; gives what is logged, in the order of `LOGGED`."""
        nets, args = self._nets, self._args
        obs, next_obs, actions, rewards, dones, drawn = (
            torch.from_numpy(array).to(self._device) for array in (*vars(sample).values(), noise)
        )
        with torch.no_grad():
            next_actions, log_probs = nets.actor.draw(next_obs, drawn)
            first, second = (target(next_obs, next_actions) for target in nets.critic_target.net)
            future = torch.minimum(first, second) - nets.temperature.log_alpha.exp() * log_probs
            goals = rewards + (1.0 - dones) * args.gamma * future
        values = [critic(obs, actions) for critic in nets.critics]
        losses = [(value - goals).square().mean() for value in values]
        nets.critic_optimizer.update(losses[0] + losses[1], args.q_lr, math.inf)
        return [value.mean().item() for value in values] + [loss.item() for loss in losses]

    def learn_actor(self, obs: Floats, noise: Floats) -> list[float]:
        """One step of the policy and of alpha; gives what is logged, in the order of `ACTOR_LOGGED`."""
        nets, args = self._nets, self._args
        batch, drawn = (torch.from_numpy(array).to(self._device) for array in (obs, noise))
        alpha = nets.temperature.log_alpha.exp()
        actions, log_probs = nets.actor.draw(batch, drawn)
        first, second = (critic(batch, actions) for critic in nets.critics)
        loss = (alpha.detach() * log_probs - torch.minimum(first, second)).mean()
        nets.actor_optimizer.update(loss, args.policy_lr, math.inf)
        target_entropy = -actions.shape[1]
        alpha_loss = -(alpha * (log_probs.detach() + target_entropy)).mean()
        if args.autotune:
            nets.alpha_optimizer.update(alpha_loss, args.q_lr, math.inf)
        return [loss.item(), alpha.item(), alpha_loss.item()]


def make_learner(nets: Networks, args: Args) -> Learner:
    """A kernel where one fits and is wanted, else torch."""
    if args.kernels and on_cpu(nets.actor, nets.critics):
        return SACKernel(nets, args)
    return TorchLearner(nets, args)


@dataclass(frozen=True)
class SAC(OffPolicyLearner):
    """Soft actor-critic, as the off-policy loop sees it."""

    args: Args
    nets: Networks
    learner: Learner
    actions: BoxActions

    def act(self, obs: Floats, step: int) -> Floats:
        if step < self.args.learning_starts:
            return self.actions.random(len(obs))
        return self.learner.act(obs, normal_noise(len(obs), self.actions.size))

    def update(self, buffer: ReplayBuffer, step: int) -> dict[str, float]:
        """Learn from one batch; the policy takes its turn every few updates, then as often."""
        args, sample = self.args, buffer.sample(self.args.batch_size)
        critic_losses = self.learner.learn_critics(sample, normal_noise(*sample.actions.shape))
        losses = dict(zip(LOGGED, critic_losses, strict=True))
        if step % args.policy_frequency == 0:
            for _ in range(args.policy_frequency):
                actor_losses = self.learner.learn_actor(sample.obs, normal_noise(*sample.actions.shape))
                losses |= zip(ACTOR_LOGGED, actor_losses, strict=True)
        if step % args.target_network_frequency == 0:
            self.nets.critic_target.follow(args.tau)
        return losses | {"qf_loss": (losses["qf1_loss"] + losses["qf2_loss"]) / 2.0}


def normal_noise(rows: int, size: int) -> Floats:
    """Numbers of a standard normal distribution."""
    noise: Floats = torch.randn(rows, size).numpy()
    return noise


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run("sac_continuous_action", args, args.num_envs, stop) as run:
        actions = BoxActions(run.envs.action_space)
        nets = Networks(math.prod(run.envs.observation_space.shape), actions, run.device, args)
        run.model = nets.actor
        learner = SAC(args, nets, make_learner(nets, args), actions)
        learn(args, run, learner, actions, **nets.parts())


def checkpoint_weights(parts: State, spaces: Spaces, args: Args) -> Any:
    """The weights in a full checkpoint, in the form of a model file."""
    actions = BoxActions(spaces.action_space)
    actor = GaussianActor(math.prod(spaces.observation_space.shape), *actions.bounds)
    return unflatten(actor, parts["actor"])


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file, which may hold the Q networks too."""
    actions = BoxActions(spaces.action_space)
    actor = GaussianActor(math.prod(spaces.observation_space.shape), *actions.bounds)
    load_weights(actor, weights[0] if isinstance(weights, tuple) else weights)
    return BoxPolicy(lambda obs, noise: actor.draw(obs, noise)[0], spaces.action_space)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
