"""Deep Q-learning for discrete actions and vector observations."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cleanrl_worker.agents.q_networks import QNetwork
from cleanrl_worker.kernels import dqn as dqn_kernel
from cleanrl_worker.training.common import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.training.exploration import epsilon_greedy, linear_schedule
from cleanrl_worker.training.optimizer import Adam
from cleanrl_worker.training.replay import ReplayBuffer, Sample
from cleanrl_worker.training.run import Run, open_run
from cleanrl_worker.training.script import run_script
from cleanrl_worker.training.state import Held
from cleanrl_worker.training.stepping import times_due
from cleanrl_worker.training.stopping import StopSignals
from cleanrl_worker.training.targets import Target
from cleanrl_worker.training.transitions import keep_step

ACTION_SPACES = ("discrete",)
OBSERVATION_SPACES = ("box",)
LOGGED = ("td_loss", "q_values")
LOG_EVERY = 100
"""Environment steps between two points of the loss curves."""


@dataclass
class Args(CommonArgs):
    """Deep Q-learning for discrete actions and vector observations."""

    exp_name: str = "dqn"
    """the name of this experiment, part of the results folder's name"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """how many environments are stepped together"""
    buffer_size: PositiveInt = 10_000
    """how many transitions the replay buffer holds"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 1.0
    """how far the target network moves to the network each time; 1: it becomes a copy"""
    target_network_frequency: PositiveInt = 500
    """how many environment steps lie between two moves of the target network"""
    batch_size: PositiveInt = 128
    """how many transitions an update learns from"""
    start_e: Fraction = 1.0
    """the share of random actions at the start"""
    end_e: Fraction = 0.05
    """the share of random actions once exploration has ended"""
    exploration_fraction: Fraction = 0.5
    """over which part of the run the share of random actions falls"""
    learning_starts: NonNegativeInt = 10_000
    """how many environment steps are taken before the first update"""
    train_frequency: PositiveInt = 10
    """how many environment steps lie between two updates"""


class Learner(Protocol):
    """Values actions and learns: in torch here, or by a kernel that computes the same."""

    def values(self, obs: NDArray[Any]) -> NDArray[np.float32]: ...
    def learn(self, sample: Sample) -> NDArray[np.float32]: ...


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
        obs_size = math.prod(run.envs.observation_space.shape)
        network = QNetwork(obs_size, int(run.envs.action_space.n)).to(run.device)
        run.model = network
        learn(args, network, run)


def learn(args: Args, network: QNetwork, run: Run) -> None:
    """Act, remember, and learn from what is remembered, until the step budget is used."""
    envs, writer, watch = run.envs, run.writer, run.watch
    first_action, num_actions = int(envs.action_space.start), int(envs.action_space.n)
    optimizer = Adam(network, eps=1e-8)
    target = Target(network, optimizer)
    learner = make_learner(network, target, optimizer, args)
    shape = (args.num_envs, *envs.observation_space.shape)
    obs_size = math.prod(shape[1:])
    buffer = ReplayBuffer(args.buffer_size, (obs_size,), (), args.seed, action_dtype=np.int64)
    obs = np.zeros((args.num_envs, obs_size), dtype=np.float32)
    envs.reset(args.seed, out=obs.reshape(shape))
    loop = Held(global_step=0, obs=obs, losses={})
    run.resume(loop, optimizer=optimizer, target=target, buffer=buffer)
    global_step, obs, losses = (loop.values[name] for name in ("global_step", "obs", "losses"))
    next_obs = np.empty_like(obs)
    exploration_steps = args.exploration_fraction * args.total_timesteps

    while global_step + args.num_envs <= args.total_timesteps:
        watch.enter("act")
        epsilon = linear_schedule(args.start_e, args.end_e, exploration_steps, global_step)
        actions = epsilon_greedy(learner.values, obs, epsilon, num_actions)
        watch.enter("env")
        step = envs.step([action + first_action for action in actions], out=next_obs.reshape(shape))
        keep_step(buffer, obs, actions, step, next_obs)
        obs, next_obs = next_obs, obs
        global_step += args.num_envs

        if global_step > args.learning_starts:
            watch.enter("update")
            for _ in range(times_due(global_step, args.num_envs, args.train_frequency)):
                logged = learner.learn(buffer.sample(args.batch_size))
                losses = dict(zip(LOGGED, logged.tolist(), strict=True))
            if times_due(global_step, args.num_envs, args.target_network_frequency):
                target.follow(args.tau)

        writer.add_episodes(step.episodes, global_step)
        writer.flush_when_due()
        if times_due(global_step, args.num_envs, LOG_EVERY):
            watch.enter("log")
            writer.add_scalar("charts/epsilon", epsilon, global_step)
            run.add_losses(losses, global_step)
        if times_due(global_step, args.num_envs, args.train_frequency):
            run.between_updates(global_step, loop, global_step=global_step, obs=obs, losses=losses)


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit code."""
    return run_script(Args, train, argv)


if __name__ == "__main__":
    sys.exit(main())
