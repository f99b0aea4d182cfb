"""Twin delayed deep deterministic policy gradient, for continuous actions and vector observations."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import nn

from cleanrl_worker.agents.continuous import Actor, QNetwork
from cleanrl_worker.kernels.critics import on_cpu
from cleanrl_worker.kernels.deterministic import DeterministicKernel
from cleanrl_worker.training.box_actions import BoxActions, Floats
from cleanrl_worker.training.common import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
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
LOG_EVERY = 100
"""Environment steps between two points of the loss curves."""


@dataclass
class Args(CommonArgs):
    """Twin delayed deep deterministic policy gradient, for continuous actions and vector observations."""

    exp_name: str = "td3_continuous_action"
    """the name of this experiment, part of the results folder's name"""
    env_id: str = "Pendulum-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """how many environment steps to train for, over all environments together"""
    learning_rate: NonNegative = 3e-4
    """the learning rate of Adam"""
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
    policy_noise: NonNegative = 0.2
    """the noise on the target policy's actions, as a share of half the action's range"""
    noise_clip: NonNegative = 0.5
    """the greatest noise on the target policy's actions, as a share of half the action's range"""
    exploration_noise: NonNegative = 0.1
    """the noise on the actions that are taken, as a share of half the action's range"""
    learning_starts: NonNegativeInt = 25_000
    """how many steps are taken at random before learning begins"""
    policy_frequency: PositiveInt = 2
    """after how many updates of the Q networks the policy and the targets are updated once"""


class Learner(Protocol):
    """Acts and learns: in torch here, or by a kernel that computes the same."""

    def act(self, obs: Floats) -> Floats: ...
    def learn_critics(self, sample: Sample, noise: Floats) -> list[float]: ...
    def learn_actor(self, obs: Floats) -> float: ...


class Networks:
    """The policy, the two Q networks, their optimizers and their targets."""

    def __init__(self, obs_size: int, actions: BoxActions, device: torch.device) -> None:
        self.actor = Actor(obs_size, *actions.bounds).to(device)
        self.critics = nn.ModuleList(QNetwork(obs_size, actions.size) for _ in range(2)).to(device)
        self.actor_optimizer = Adam(self.actor, eps=1e-8)
        self.critic_optimizer = Adam(self.critics, eps=1e-8)
        self.actor_target = Target(self.actor, self.actor_optimizer)
        self.critic_target = Target(self.critics, self.critic_optimizer)


class TorchLearner:
    """The update rule."""

    def __init__(self, nets: Networks, args: Args) -> None:
        self._nets = nets
        self._args = args
        self._device = nets.actor.action_scale.device

    @torch.no_grad()
    def act(self, obs: Floats) -> Floats:
        return np.asarray(self._nets.actor(torch.from_numpy(obs).to(self._device)).cpu())

    def learn_critics(self, sample: Sample, noise: Floats) -> list[float]:
        """One step of both Q networks; gives what is logged, in the order of `LOGGED`."""
        nets, args = self._nets, self._args
        obs, next_obs, actions, rewards, dones, blur = (
            torch.from_numpy(array).to(self._device) for array in (*vars(sample).values(), noise)
        )
        with torch.no_grad():
            scale, bias = nets.actor.action_scale, nets.actor.action_bias
            next_actions = nets.actor_target.net(next_obs) + blur * scale
            next_actions = torch.clamp(next_actions, bias - scale, bias + scale)
            first, second = (target(next_obs, next_actions) for target in nets.critic_target.net)
            goals = rewards + (1.0 - dones) * args.gamma * torch.minimum(first, second)
        values = [critic(obs, actions) for critic in nets.critics]
        losses = [(value - goals).square().mean() for value in values]
        nets.critic_optimizer.update(losses[0] + losses[1], args.learning_rate, math.inf)
        return [value.mean().item() for value in values] + [loss.item() for loss in losses]

    def learn_actor(self, obs: Floats) -> float:
        """One step of the policy up the first Q network; gives the loss."""
        nets, batch = self._nets, torch.from_numpy(obs).to(self._device)
        loss = -nets.critics[0](batch, nets.actor(batch)).mean()
        nets.actor_optimizer.update(loss, self._args.learning_rate, math.inf)
        return float(loss.item())


def make_learner(nets: Networks, args: Args) -> Learner:
    """A kernel where one fits and is wanted, else torch."""
    if args.kernels and on_cpu(nets.actor, nets.critics):
        return DeterministicKernel(
            nets.actor,
            nets.critics,
            nets.actor_optimizer,
            nets.critic_optimizer,
            nets.actor_target,
            nets.critic_target,
            args,
        )
    return TorchLearner(nets, args)


def train(args: Args, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run("td3_continuous_action", args, args.num_envs, stop) as run:
        actions = BoxActions(run.envs.action_space, args.env_id)
        nets = Networks(math.prod(run.envs.observation_space.shape), actions, run.device)
        run.model = (nets.actor, *nets.critics)
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
        actor_target=nets.actor_target,
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
            chosen = actions.blur(learner.act(obs), args.exploration_noise)
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
    """Learn from one batch; the policy and the targets take their turn every few updates."""
    sample = buffer.sample(args.batch_size)
    noise = torch.randn(sample.actions.shape).mul_(args.policy_noise)
    losses = learner.learn_critics(sample, noise.clamp_(-args.noise_clip, args.noise_clip).numpy())
    named = dict(zip(LOGGED, losses, strict=True))
    if number % args.policy_frequency == 0:
        named["actor_loss"] = learner.learn_actor(sample.obs)
        nets.actor_target.follow(args.tau)
        nets.critic_target.follow(args.tau)
    if number % LOG_EVERY == 0:
        named["qf_loss"] = (named["qf1_loss"] + named["qf2_loss"]) / 2.0
        run.add_losses(named, number)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
