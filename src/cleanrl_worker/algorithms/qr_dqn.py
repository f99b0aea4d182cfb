"""Distributional Q-learning by quantile regression, for discrete actions and vector observations."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from cleanrl_worker.agents.q_networks import QuantileNetwork
from cleanrl_worker.evaluation.policies import GreedyPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec, Misfit
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target, keep_freed_memory, load_weights

LOGGED = ("loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Distributional Q-learning by quantile regression, for discrete actions and vector observations."""

    exp_name: str = "qr_dqn"
    """the name of the experiment, part of the name of the results folder"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    n_quantiles: PositiveInt = 25
    """the number of quantiles of the return per action"""
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


def qr_dqn_loss(
    network: QuantileNetwork, target: QuantileNetwork, args: Args, batch: Sample
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    each = torch.arange(len(batch.actions), device=batch.actions.device)
    with torch.no_grad():
        next_quantiles = target.quantiles(batch.next_obs)
        best = next_quantiles.mean(dim=2).argmax(dim=1)
        going_on = args.gamma * (1.0 - batch.dones)
        targets = batch.rewards[:, None] + going_on[:, None] * next_quantiles[each, best]
    quantiles = network.quantiles(batch.obs)[each, batch.actions]
    loss = quantile_huber_loss(quantiles, targets, network.fractions, args.kappa)
    return loss, torch.stack([loss, quantiles.mean()])


def quantile_huber_loss(quantiles: Tensor, targets: Tensor, fractions: Tensor, kappa: float) -> Tensor:
    """How far quantiles (row, quantile) at these fractions are from being those of the targets (row, sample).

    Each pair counts. A quantile that is too low counts by its fraction, one that is too high by the rest:
    where both balance, that share of the targets lies below it.
    """
    pairs = (len(quantiles), quantiles.shape[1], targets.shape[1])
    found, wanted = quantiles[:, :, None].expand(pairs), targets[:, None, :].expand(pairs)
    huber = torch.nn.functional.huber_loss(found, wanted, reduction="none", delta=kappa)
    fractions = fractions[..., None]
    weights = torch.where(wanted < found, 1.0 - fractions, fractions)
    return (weights * huber).mean(dim=2).sum(dim=1).mean() / kappa


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    keep_freed_memory()
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = QuantileNetwork(math.prod(envs.observation_space.shape), num_actions, args.n_quantiles)
    network = run.keep("network", network.to(run.device))
    optimizer = run.keep("optimizer", Adam(network, eps=0.01 / args.batch_size))
    target = run.keep("target", Target(network, optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int64"))
    losses = run.keep("losses", Held())

    values_of = Forward(network, run.device)
    loss = functools.partial(qr_dqn_loss, network, target.net, args)
    gradient = run.keep("loss", Gradient(loss, network, optimizer))

    exploring = args.exploration_fraction * args.total_timesteps
    for update in run.updates(every=args.num_envs):
        epsilon = linear_schedule(args.start_e, args.end_e, exploring, update.first_step)
        actions = epsilon_greedy(values_of, replay.obs, epsilon, num_actions)
        replay.step([action + first_action for action in actions], actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.train_frequency == 0:
                    logged = gradient(replay.sample(args.batch_size))
                    optimizer.step(args.learning_rate)
                    losses.values.update(zip(LOGGED, logged.tolist(), strict=True))
                if step % args.target_network_frequency == 0:
                    target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file, whose fractions say how many quantiles it has."""
    fractions = weights.get("fractions") if isinstance(weights, Mapping) else None
    if not isinstance(fractions, Tensor) or fractions.dim() != 1 or len(fractions) == 0:
        raise Misfit("it has no fractions of its quantiles")
    obs_size, num_actions = math.prod(spaces.observation_space.shape), int(spaces.action_space.n)
    network = load_weights(QuantileNetwork(obs_size, num_actions, len(fractions)), weights)
    return GreedyPolicy(network, spaces.action_space, args.end_e)


SPEC = AlgorithmSpec(
    name="qr_dqn",
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
