"""Deep Q-learning in JAX for discrete actions and vector observations."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from cleanrl_worker.evaluation.jax_policies import GreedyPolicy
from cleanrl_worker.kit.args import CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.jax_backend import Target, Tree, load_tree, shapes_of
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held

LOGGED = ("td_loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Deep Q-learning in JAX for discrete actions and vector observations."""

    exp_name: str = "dqn_jax"
    """the name of the experiment, part of the name of the results folder"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
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


class QNetwork(nn.Module):
    """Two hidden relu layers, and a value for each action."""

    num_actions: int

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        """Values of the actions, a row for each observation."""
        hidden = nn.relu(nn.Dense(120)(obs))
        hidden = nn.relu(nn.Dense(84)(hidden))
        return nn.Dense(self.num_actions)(hidden)


@functools.partial(jax.jit, static_argnums=0)
def action_values(network: QNetwork, params: Any, obs: Any) -> Any:
    """What a network gives for observations, compiled once for each number of them."""
    return network.apply(params, obs)


def dqn_loss(
    network: QNetwork, gamma: float, params: Any, target_params: Any, batch: Sample
) -> tuple[jax.Array, jax.Array]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    best_next = action_values(network, target_params, batch.next_obs).max(axis=1)
    targets = batch.rewards + gamma * (1.0 - batch.dones) * best_next
    all_values = action_values(network, params, batch.obs)
    values = jnp.take_along_axis(all_values, batch.actions[:, None], axis=1)[:, 0]
    loss = jnp.square(values - targets).mean()
    return loss, jnp.stack([loss, values.mean()])


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network, optimizer = QNetwork(num_actions), optax.adam(args.learning_rate)
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int32"))
    params = run.keep("network", Tree(jax.jit(network.init)(run.backend.key(), replay.obs)))
    moments = run.keep("optimizer", Tree(jax.jit(optimizer.init)(params.value)))
    target = run.keep("target", Target(params))
    losses = run.keep("losses", Held())
    gradient = jax.grad(functools.partial(dqn_loss, network, args.gamma), has_aux=True)

    @jax.jit
    def learn(params: Any, moments: Any, target_params: Any, batch: Sample) -> tuple[Any, Any, jax.Array]:
        """Parameters and moments after one step of Adam on a minibatch, and what is logged."""
        slopes, logged = gradient(params, target_params, batch)
        moves, moments = optimizer.update(slopes, moments, params)
        return optax.apply_updates(params, moves), moments, logged

    def values_of(obs: Any) -> Any:
        return np.asarray(action_values(network, params.value, obs))

    for update in run.updates(every=args.num_envs):
        exploring = args.exploration_fraction * args.total_timesteps
        epsilon = linear_schedule(args.start_e, args.end_e, exploring, update.first_step)
        actions = epsilon_greedy(values_of, replay.obs, epsilon, num_actions)
        replay.step([action + first_action for action in actions], actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.train_frequency == 0:
                    batch = replay.sample(args.batch_size)
                    params.value, moments.value, logged = learn(
                        params.value, moments.value, target.value, batch
                    )
                    losses.values.update(zip(LOGGED, logged.tolist(), strict=True))
                if step % args.target_network_frequency == 0:
                    target.follow(args.tau)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file."""
    network = QNetwork(int(spaces.action_space.n))
    params = load_tree(shapes_of(network, (math.prod(spaces.observation_space.shape),)), weights)
    values = functools.partial(action_values, network, params)
    return GreedyPolicy(values, spaces.action_space, args.end_e)


SPEC = AlgorithmSpec(
    name="dqn_jax",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("vector", "grid"),
    model="network",
    backend="jax",
    requires=("jax",),
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
