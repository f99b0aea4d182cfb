"""Implicit quantile networks, for discrete actions and vector observations: quantiles at any fraction."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from cleanrl_worker.agents.q_networks import HIDDEN
from cleanrl_worker.algorithms.qr_dqn import quantile_huber_loss
from cleanrl_worker.evaluation.policies import GreedyPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory, load_weights

LOGGED = ("loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Implicit quantile networks, for discrete actions and vector observations."""

    exp_name: str = "iqn"
    """the name of the experiment, part of the name of the results folder"""
    learning_rate: NonNegative = 5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    n_quantiles: PositiveInt = 8
    """the number of random fractions at which an update evaluates the network"""
    n_target_quantiles: PositiveInt = 8
    """the number of random fractions at which an update evaluates the target network"""
    n_greedy_quantiles: PositiveInt = 32
    """the number of fractions whose mean is used to choose an action"""
    n_cosines: PositiveInt = 64
    """the number of cosines in the embedding of a fraction"""
    kappa: Annotated[float, Bounds(minimum=1e-6)] = 1.0
    """the error up to which the quantile Huber loss is quadratic"""
    buffer_size: PositiveInt = 10_000
    """the number of transitions in the replay buffer"""
    gamma: Fraction = 0.99
    """the discount factor"""
    tau: Fraction = 1.0
    """the fraction by which the target network moves towards the network at each update; 1: a copy"""
    target_network_frequency: PositiveInt = 500
    """environment steps between two updates of the target network"""
    batch_size: PositiveInt = 128
    """the number of transitions per update"""
    start_e: Fraction = 1.0
    """the exploration rate (the fraction of random actions) at the start"""
    end_e: Fraction = 0.05
    """the exploration rate at the end of its schedule"""
    exploration_fraction: Fraction = 0.5
    """the fraction of the run over which the exploration rate falls"""
    learning_starts: NonNegativeInt = 10_000
    """the number of environment steps before the first update"""
    train_frequency: PositiveInt = 10
    """environment steps between two updates"""


class ImplicitQuantileNetwork(nn.Module):
    """Quantiles of the return of each action, at fractions that are an input as the observation is one."""

    even: Tensor
    cosines: Tensor

    def __init__(self, obs_size: int, num_actions: int, n_cosines: int, n_greedy: int) -> None:
        super().__init__()
        first, second = HIDDEN
        self.body = nn.Sequential(nn.Linear(obs_size, first), nn.ReLU())
        self.embedding = nn.Sequential(nn.Linear(n_cosines, first), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(first, second), nn.ReLU(), nn.Linear(second, num_actions))
        self.register_buffer("cosines", math.pi * torch.arange(n_cosines), persistent=False)
        self.register_buffer("even", (torch.arange(n_greedy) + 0.5) / n_greedy, persistent=False)

    def quantiles(self, obs: Tensor, fractions: Tensor) -> Tensor:
        """Returns of shape (observation, fraction, action), at fractions of each observation or of all."""
        told = self.embedding(torch.cos(fractions[..., None] * self.cosines))
        quantiles: Tensor = self.head(self.body(obs)[:, None, :] * told)
        return quantiles

    def forward(self, obs: Tensor) -> Tensor:
        """Values of the actions, a row for each observation: the means of evenly spaced quantiles."""
        return self.quantiles(obs, self.even).mean(dim=1)


class Batch(NamedTuple):
    """Transitions in rows, with random fractions for the network and for its target."""

    obs: Any
    next_obs: Any
    actions: Any
    rewards: Any
    dones: Any
    fractions: Any
    target_fractions: Any


def iqn_loss(
    network: ImplicitQuantileNetwork, target: ImplicitQuantileNetwork, args: Args, batch: Batch
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    each = torch.arange(len(batch.actions), device=batch.actions.device)
    with torch.no_grad():
        best = target(batch.next_obs).argmax(dim=1)
        next_quantiles = target.quantiles(batch.next_obs, batch.target_fractions)[each, :, best]
        going_on = args.gamma * (1.0 - batch.dones)
        targets = batch.rewards[:, None] + going_on[:, None] * next_quantiles
    quantiles = network.quantiles(batch.obs, batch.fractions)[each, :, batch.actions]
    loss = quantile_huber_loss(quantiles, targets, batch.fractions, args.kappa)
    return loss, torch.stack([loss, quantiles.mean()])


def make_network(spaces: Spaces, args: Args) -> ImplicitQuantileNetwork:
    """The network for these spaces."""
    obs_size, num_actions = math.prod(spaces.observation_space.shape), int(spaces.action_space.n)
    return ImplicitQuantileNetwork(obs_size, num_actions, args.n_cosines, args.n_greedy_quantiles)


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = run.keep("network", make_network(envs, args).to(run.device))
    optimizer = run.keep("optimizer", Adam(network, eps=0.01 / args.batch_size))
    target = run.keep("target", Target(network, optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int64"))
    losses = run.keep("losses", Held())

    values_of = Forward(network, run.device)
    loss = functools.partial(iqn_loss, network, target.net, args)
    gradient = run.keep("loss", Gradient(loss, network, optimizer))

    exploring = args.exploration_fraction * args.total_timesteps
    for update in run.updates(every=args.num_envs):
        epsilon = linear_schedule(args.start_e, args.end_e, exploring, update.first_step)
        actions = epsilon_greedy(values_of, replay.obs, epsilon, num_actions)
        replay.step([action + first_action for action in actions], actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.train_frequency == 0:
                    fractions = torch.rand(args.batch_size, args.n_quantiles).numpy()
                    target_fractions = torch.rand(args.batch_size, args.n_target_quantiles).numpy()
                    sample = replay.sample(args.batch_size)
                    logged = gradient(Batch(*sample, fractions, target_fractions))
                    optimizer.step(args.learning_rate)
                    losses.values.update(zip(LOGGED, logged.tolist(), strict=True))
                if step % args.target_network_frequency == 0:
                    target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    return GreedyPolicy(load_weights(make_network(spaces, args), weights), spaces.action_space, args.end_e)


SPEC = AlgorithmSpec(
    name="iqn",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("vector", "grid"),
    model="network",
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
