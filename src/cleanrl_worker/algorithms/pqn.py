"""Q-learning from rollouts, without target network and replay buffer, for discrete actions."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cleanrl_worker.accelerated.pqn import PQNKernel
from cleanrl_worker.agents.q_networks import NormedQNetwork
from cleanrl_worker.evaluation.policies import GreedyPolicy
from cleanrl_worker.kit.accelerate import Forward, Gradient, take
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.rollout import Rollout, flat, gae
from cleanrl_worker.kit.run import Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.torch_backend import RAdam, load_weights

LOGGED = ("td_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Q-learning from rollouts, without target network and replay buffer, for discrete actions."""

    exp_name: str = "pqn"
    """the name of the experiment, part of the name of the results folder"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of RAdam"""
    num_envs: PositiveInt = 4
    """the number of environments that are stepped together"""
    num_steps: PositiveInt = 128
    """the number of steps per environment in a rollout"""
    num_minibatches: PositiveInt = 4
    """the number of minibatches per pass over a rollout"""
    update_epochs: PositiveInt = 4
    """the number of passes over each rollout"""
    anneal_lr: bool = True
    """anneal the learning rate linearly to zero over the run"""
    gamma: Fraction = 0.99
    """the discount factor"""
    start_e: Fraction = 1.0
    """the exploration rate (the fraction of random actions) at the start"""
    end_e: Fraction = 0.05
    """the exploration rate at the end of its schedule"""
    exploration_fraction: Fraction = 0.5
    """the fraction of the run over which the exploration rate falls"""
    max_grad_norm: NonNegative = 10.0
    """the maximum norm of the gradient"""
    q_lambda: Fraction = 0.65
    """lambda of Q(lambda); 0: one-step returns, 1: returns to the end of the rollout"""


class Batch(NamedTuple):
    """Steps in rows: arrays, or tensors in the loss."""

    obs: Any
    actions: Any
    returns: Any


def pqn_loss(network: NormedQNetwork, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    values = network(batch.obs).gather(1, batch.actions.unsqueeze(1)).squeeze(1)
    loss = (values - batch.returns).square().mean()
    return loss, torch.stack([loss, values.mean()])


def train(run: Run[Args]) -> None:
    """Rollout and update in turn until the step budget is used; the last rollout may be shorter."""
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = NormedQNetwork(math.prod(envs.observation_space.shape), num_actions)
    network = run.keep("network", network.to(run.device))
    optimizer = run.keep("optimizer", RAdam(network))
    rollout = run.keep("rollout", Rollout(run, args.num_steps))

    kernel = PQNKernel.for_network(network) if args.kernels else None
    values_of = Forward(network, run.device, kernel and kernel.values)
    loss = functools.partial(pqn_loss, network)
    gradient = run.keep(
        "loss", Gradient(loss, network, optimizer, kernel and kernel.gradient, moved=("returns",))
    )

    for update in run.updates(every=args.num_envs * args.num_steps):
        learning_rate = args.learning_rate * (1.0 - update.progress if args.anneal_lr else 1.0)
        exploring = args.exploration_fraction * args.total_timesteps
        for t, obs in enumerate(rollout.collect(update)):
            step = update.first_step + t * args.num_envs
            epsilon = linear_schedule(args.start_e, args.end_e, exploring, step)
            actions = epsilon_greedy(values_of, obs, epsilon, num_actions)
            rollout.step([action + first_action for action in actions], actions=actions)

        # Q(lambda) mixes what was earned at each step with the best value known of where it led.
        best, gains = gae(rollout, lambda obs: values_of(obs).max(axis=1), args.gamma, args.q_lambda)
        batch = Batch(flat(rollout.obs), flat(rollout["actions"]), (best + gains).reshape(-1))
        for _ in range(args.update_epochs):
            logged = []
            for rows in run.minibatches(len(batch.obs), args.num_minibatches):
                logged.append(gradient(take(batch, rows)))
                optimizer.step(learning_rate, args.max_grad_norm)
        losses = dict(zip(LOGGED, np.mean(logged, axis=0).tolist(), strict=True))
        run.log(update.last_step, losses, learning_rate=learning_rate, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = NormedQNetwork(math.prod(spaces.observation_space.shape), int(spaces.action_space.n))
    return GreedyPolicy(load_weights(network, weights), spaces.action_space, args.end_e)


SPEC = AlgorithmSpec(
    name="pqn",
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
