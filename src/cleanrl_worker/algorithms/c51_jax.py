"""Distributional Q-learning in JAX, for discrete actions and vector observations."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from cleanrl_worker.evaluation.jax_policies import DISTRIBUTION, MIN_ATOMS, GreedyPolicy, open_distribution
from cleanrl_worker.kit.args import Bounds, CommonArgs, Fraction, NonNegative, NonNegativeInt, PositiveInt
from cleanrl_worker.kit.discrete_actions import epsilon_greedy, linear_schedule
from cleanrl_worker.kit.jax_backend import Target, Tree, apply, load_tree, shapes_of
from cleanrl_worker.kit.policy import Policy, Spaces
from cleanrl_worker.kit.replay import Replay, Sample
from cleanrl_worker.kit.run import LOG_EVERY, Run, run_algorithm
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.kit.state import Held

LOGGED = ("loss", "q_values")


@dataclass
class Args(CommonArgs):
    """Distributional Q-learning in JAX, for discrete actions and vector observations."""

    exp_name: str = "c51_jax"
    """the name of the experiment, part of the name of the results folder"""
    learning_rate: NonNegative = 2.5e-4
    """the learning rate of Adam"""
    num_envs: PositiveInt = 1
    """the number of environments that are stepped together"""
    n_atoms: Annotated[int, Bounds(minimum=MIN_ATOMS, maximum=10_000)] = 101
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


class QNetwork(nn.Module):
    """Two hidden relu layers, and logits of the distribution of the return of each action."""

    num_actions: int
    n_atoms: int
    v_min: float
    v_max: float

    @property
    def atoms(self) -> Any:
        """The returns that a distribution is over."""
        return np.linspace(self.v_min, self.v_max, self.n_atoms, dtype=np.float32)

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        """Logits (row, action, atom)."""
        hidden = nn.relu(nn.Dense(120)(obs))
        hidden = nn.relu(nn.Dense(84)(hidden))
        return nn.Dense(self.num_actions * self.n_atoms)(hidden).reshape(-1, self.num_actions, self.n_atoms)


@functools.partial(jax.jit, static_argnums=0)
def action_values(network: QNetwork, params: Any, obs: Any) -> Any:
    """The mean returns of the actions, compiled once for each number of observations."""
    return nn.softmax(apply(network, params, obs)) @ network.atoms


def project(network: QNetwork, probs: jax.Array, returns: jax.Array) -> jax.Array:
    """Distributions over other returns, brought back onto the atoms.

    Each probability is shared between the two atoms around its return.
    """
    spacing = (network.v_max - network.v_min) / (network.n_atoms - 1)
    places = (jnp.clip(returns, network.v_min, network.v_max) - network.v_min) / spacing
    lower = jnp.clip(jnp.floor(places), 0, network.n_atoms - 2).astype(jnp.int32)
    upper_share = (places - lower) * probs
    rows = jnp.arange(len(probs))[:, None]
    projected = jnp.zeros_like(probs).at[rows, lower].add(probs - upper_share)
    return projected.at[rows, lower + 1].add(upper_share)


def c51_loss(
    params: Any, network: QNetwork, gamma: float, target_params: Any, batch: Sample
) -> tuple[jax.Array, jax.Array]:
    """The loss of a minibatch, and what is logged of it in the order of `LOGGED`."""
    each = jnp.arange(len(batch.actions))
    next_probs = nn.softmax(apply(network, target_params, batch.next_obs))
    best = (next_probs @ network.atoms).argmax(axis=1)
    returns = batch.rewards[:, None] + gamma * (1.0 - batch.dones)[:, None] * network.atoms
    target_probs = project(network, next_probs[each, best], returns)
    log_probs = nn.log_softmax(apply(network, params, batch.obs)[each, batch.actions])
    loss = -(target_probs * log_probs).sum(axis=1).mean()
    return loss, jnp.stack([loss, (jnp.exp(log_probs) @ network.atoms).mean()])


@functools.partial(jax.jit, static_argnums=0)
def learn(
    network: QNetwork,
    gamma: float,
    learning_rate: float,
    params: Any,
    moments: Any,
    target_params: Any,
    batch: Sample,
) -> tuple[Any, Any, jax.Array]:
    """Parameters and moments after one step of Adam on a minibatch, and what is logged."""
    slopes, logged = jax.grad(c51_loss, has_aux=True)(params, network, gamma, target_params, batch)
    moves, moments = optax.adam(learning_rate, eps=0.01 / len(batch.obs)).update(slopes, moments)
    return optax.apply_updates(params, moves), moments, logged


def train(run: Run[Args]) -> None:
    """Step all environments once, then update as often as their steps ask for, until the budget is used."""
    args, envs = run.args, run.envs
    num_actions, first_action = int(envs.action_space.n), int(envs.action_space.start)
    network = QNetwork(num_actions, args.n_atoms, args.v_min, args.v_max)
    replay = run.keep("replay", Replay(run, args.buffer_size, (), "int32"))
    params = run.keep("network", Tree(jax.jit(network.init)(run.backend.key(), replay.obs)))
    moments = run.keep("optimizer", Tree(jax.jit(optax.adam(args.learning_rate).init)(params.value)))
    target = run.keep("target", Target(params))
    losses = run.keep("losses", Held())
    learn_from = functools.partial(learn, network, args.gamma, args.learning_rate)

    def values_of(obs: Any) -> Any:
        return np.asarray(action_values(network, params.value, obs))

    exploring = args.exploration_fraction * args.total_timesteps
    for update in run.updates(every=args.num_envs):
        epsilon = linear_schedule(args.start_e, args.end_e, exploring, update.first_step)
        actions = epsilon_greedy(values_of, replay.obs, epsilon, num_actions)
        replay.step([action + first_action for action in actions], actions)

        for step in range(update.first_step + 1, update.last_step + 1):
            if step > args.learning_starts:
                if step % args.train_frequency == 0:
                    batch = replay.sample(args.batch_size)
                    params.value, moments.value, logged = learn_from(
                        params.value, moments.value, target.value, batch
                    )
                    losses.values.update(zip(LOGGED, logged.tolist(), strict=True))
                if step % args.target_network_frequency == 0:
                    target.follow(1.0)
            if step % LOG_EVERY == 0:
                run.log(step, losses.values, epsilon=epsilon)


def load_policy(weights: Any, spaces: Spaces, args: Args) -> Policy:
    """The policy in a model file: its weights, and the arguments that say over which returns they spread."""
    params, known = open_distribution(weights, args)
    network = QNetwork(int(spaces.action_space.n), known.n_atoms, known.v_min, known.v_max)
    shapes = shapes_of(network, (math.prod(spaces.observation_space.shape),))
    values = functools.partial(action_values, network, load_tree(shapes, params))
    return GreedyPolicy(values, spaces.action_space, known.end_e)


SPEC = AlgorithmSpec(
    name="c51_jax",
    args=Args,
    train=train,
    load_policy=load_policy,
    action_spaces=("discrete",),
    observation_spaces=("vector", "grid"),
    model=DISTRIBUTION,
    backend="jax",
    requires=("jax",),
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
