"""Soft actor-critic, for continuous actions and vector observations."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
import torch
from torch import nn

from cleanrl_worker.agents.continuous import GaussianActor, QNetwork
from cleanrl_worker.kernels.critics import on_cpu
from cleanrl_worker.kernels.sac import SACKernel
from cleanrl_worker.training.box_actions import BoxActions, Floats
from cleanrl_worker.training.common import (
    Bounds,
    CommonArgs,
    Fraction,
    NonNegative,
    NonNegativeInt,
    PositiveInt,
)
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.replay import ReplayBuffer, Sample
from cleanrl_worker.training.run import Run, open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import Held
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.targets import Target
from cleanrl_worker.training.transitions import keep_step

ACTION_SPACES = ("box",)
OBSERVATION_SPACES = ("box",)
LOGGED = ("qf1_values", "qf2_values", "qf1_loss", "qf2_loss")
ACTOR_LOGGED = ("actor_loss", "alpha", "alpha_loss")
LOG_EVERY = 100
"""Environment steps between two points of the loss curves."""


@dataclass
class Args(CommonArgs):
    """Soft actor-critic, for continuous actions and vector observations."""

    exp_name: str = "sac_continuous_action"
    """the name of this experiment, part of the results folder's name"""
    env_id: str = "Pendulum-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """how many environment steps to train for, over all environments together"""
    policy_lr: NonNegative = 3e-4
    """the learning rate of the policy"""
    q_lr: NonNegative = 1e-3
    """the learning rate of the Q networks, and of alpha when it is tuned"""
    num_envs: PositiveInt = 1
    """how many environments are stepped together; there is one update for each step of each of them"""
    buffer_size: PositiveInt = 1_000_000
    """how many transitions the replay buffer holds"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 0.005
    """how far the target networks go towards the networks at a time"""
    batch_size: PositiveInt = 256
    """how many transitions an update learns from"""
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
        return SACKernel(
            nets.actor,
            nets.critics,
            nets.actor_optimizer,
            nets.critic_optimizer,
            nets.alpha_optimizer,
            nets.critic_target,
            args,
        )
    return TorchLearner(nets, args)


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run("sac_continuous_action", args, args.num_envs, stop) as run:
        actions = BoxActions(run.envs.action_space, args.env_id)
        nets = Networks(math.prod(run.envs.observation_space.shape), actions, run.device, args)
        run.model = nets.actor
        learn(args, actions, nets, run)


def learn(args: Args, actions: BoxActions, nets: Networks, run: Run) -> None:
    """Step and update in turn until the step budget is used."""
    envs, writer, watch = run.envs, run.writer, run.watch
    shape = (args.num_envs, *envs.observation_space.shape)
    obs = np.zeros((args.num_envs, math.prod(shape[1:])), dtype=np.float32)
    buffer = ReplayBuffer(args.buffer_size, obs.shape[1:], (actions.size,), args.seed)
    learner = make_learner(nets, args)
    envs.reset(args.seed, out=obs.reshape(shape))
    loop = Held(global_step=0, obs=obs)
    run.resume(
        loop,
        buffer=buffer,
        actor=nets.actor_optimizer,
        critics=nets.critic_optimizer,
        alpha=nets.alpha_optimizer,
        critic_target=nets.critic_target,
    )
    global_step, obs = loop.values["global_step"], loop.values["obs"]
    next_obs = np.empty_like(obs)

    while global_step + args.num_envs <= args.total_timesteps:
        writer.flush_when_due()
        watch.enter("act")
        if global_step < args.learning_starts:
            chosen = actions.random(args.num_envs)
        else:
            chosen = learner.act(obs, normal_noise(args.num_envs, actions.size))
        watch.enter("env")
        step = envs.step(actions.for_envs(chosen), out=next_obs.reshape(shape))
        keep_step(buffer, obs, chosen, step, next_obs)
        obs, next_obs = next_obs, obs
        writer.add_episodes(step.episodes, global_step + args.num_envs)

        watch.enter("update")
        for number in range(global_step + 1, global_step + args.num_envs + 1):
            if number > args.learning_starts:
                update(args, nets, learner, buffer, number, run)
        global_step += args.num_envs
        watch.enter("log")
        run.between_updates(global_step, loop, global_step=global_step, obs=obs)


def update(args: Args, nets: Networks, learner: Learner, buffer: ReplayBuffer, number: int, run: Run) -> None:
    """Learn from one batch; the policy takes its turn every few updates, and makes up for those between."""
    sample = buffer.sample(args.batch_size)
    losses = learner.learn_critics(sample, normal_noise(*sample.actions.shape))
    named = dict(zip(LOGGED, losses, strict=True))
    if number % args.policy_frequency == 0:
        for _ in range(args.policy_frequency):
            actor_losses = learner.learn_actor(sample.obs, normal_noise(*sample.actions.shape))
            named |= zip(ACTOR_LOGGED, actor_losses, strict=True)
    if number % args.target_network_frequency == 0:
        nets.critic_target.follow(args.tau)
    if number % LOG_EVERY == 0:
        named["qf_loss"] = (named["qf1_loss"] + named["qf2_loss"]) / 2.0
        run.add_losses(named, number)


def normal_noise(rows: int, size: int) -> Floats:
    """Numbers of a standard normal distribution."""
    noise: Floats = torch.randn(rows, size).numpy()
    return noise


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
