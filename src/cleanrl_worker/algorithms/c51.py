"""Distributional Q-learning over a fixed set of returns, for discrete actions and vector observations."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from cleanrl_worker.accelerated.c51 import C51Kernel
from cleanrl_worker.agents.q_networks import DistributionalQNetwork
from cleanrl_worker.evaluation.policies import GreedyPolicy, open_distribution
from cleanrl_worker.kit.accelerate import Forward, Gradient
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import ARGS, AlgorithmSpec
from cleanrl_worker.kit.state import Held
from cleanrl_worker.kit.torch_backend import Adam, Target

LOGGED = ("loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Distributional Q-learning over a fixed set of returns, for discrete actions and vector observations."""

    exp_name: str = "c51"
    """the name of the experiment, part of the name of the results folder"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    n_atoms: Annotated[int, Bounds(minimum=2, maximum=10_000)] = 101
    """the number of atoms of the distribution of returns"""
    v_min: float = -100.0
    """the minimum return of the distribution"""
    v_max: float = 100.0
    """the maximum return of the distribution"""
    buffer_size: PositiveInt = 10_000
    """the number of transitions in the replay buffer"""
    gamma: Fraction = 0.99
    """the discount factor"""
    target_network_frequency: PositiveInt = 500
    """environment steps between two copies of the network to the target network"""
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


def make_network(spaces: Spaces, args: Args) -> DistributionalQNetwork:
    """The network for these spaces."""
    obs_size, num_actions = math.prod(spaces.observation_space.shape), int(spaces.action_space.n)
    return DistributionalQNetwork(obs_size, num_actions, args.n_atoms, args.v_min, args.v_max)


def c51_loss(
    network: DistributionalQNetwork, target: DistributionalQNetwork, args: Args, batch: Sample
) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    each = torch.arange(len(batch.actions), device=batch.actions.device)
    with torch.no_grad():
        next_probs = target.logits(batch.next_obs).softmax(dim=2)
        best = (next_probs @ target.atoms).argmax(dim=1)
        target_probs = project(next_probs[each, best], batch.rewards, batch.dones, target.atoms, args)
    log_probs = network.logits(batch.obs)[each, batch.actions].log_softmax(dim=1)
    loss = -(target_probs * log_probs).sum(dim=1).mean()
    mean_value = (log_probs.detach().exp() @ network.atoms).mean()
    return loss, torch.stack([loss.detach(), mean_value])


def project(probs: Tensor, rewards: Tensor, dones: Tensor, atoms: Tensor, args: Args) -> Tensor:
    """The distributions of reward plus discounted next return, brought back onto the atoms.

    Each probability is shared between the two atoms around the return it moved to.
    """
    moved = rewards.unsqueeze(1) + args.gamma * (1.0 - dones).unsqueeze(1) * atoms
    spacing = (args.v_max - args.v_min) / (args.n_atoms - 1)
    places = (moved.clamp(args.v_min, args.v_max) - args.v_min) / spacing
    lower = places.long().clamp(max=args.n_atoms - 2)
    upper_share = (places - lower) * probs
    projected = torch.zeros_like(probs)
    projected.scatter_add_(1, lower, probs - upper_share)
    return projected.scatter_add_(1, lower + 1, upper_share)


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = run.keep("network", make_network(envs, args).to(run.device))
    optimizer = run.keep("optimizer", Adam(network, eps=0.01 / args.batch_size))
    target = run.keep("target", Target(network, optimizer))
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int64"))
    losses = run.keep("losses", Held())

    kernel = C51Kernel.for_network(network, target.net, args)
    values_of = Forward(network, run.device, kernel and kernel.values)
    loss = functools.partial(c51_loss, network, target.net, args)
    compute = kernel and kernel.gradient
    moved = ("rewards", "dones")
    gradient = run.keep("loss", Gradient(loss, network, optimizer, compute, moved, [target.weights]))

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
                    target.follow(1.0)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file: its weights, and the arguments that say over which returns they spread."""
    network, known = open_distribution(weights, args, functools.partial(make_network, spaces))
    return GreedyPolicy(network, spaces.action_space, float(known.end_e))


SPEC = AlgorithmSpec(
    name="c51",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("vector", "grid"),
    model={"model_weights": "network", "args": ARGS},
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
