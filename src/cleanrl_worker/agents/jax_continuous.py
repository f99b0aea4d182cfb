"""Networks in JAX for continuous actions: policies that give an action, and values of pairs of both."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from cleanrl_worker.evaluation.jax_policies import ActorPolicy
from cleanrl_worker.kit.box_actions import NumpyBoxActions
from cleanrl_worker.kit.jax_backend import apply, load_tree, shapes_of
from cleanrl_worker.kit.policy import Spaces

HIDDEN = 256


class Actor(nn.Module):
    """A deterministic policy, whose actions lie between bounds of their own in each dimension."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def action_scale(self) -> Any:
        """Half the range of each dimension."""
        return (_row(self.high) - _row(self.low)) / 2.0

    @nn.compact
    def __call__(self, obs: jax.Array) -> Any:
        """Actions in rows."""
        hidden = nn.relu(nn.Dense(HIDDEN)(obs))
        hidden = nn.relu(nn.Dense(HIDDEN)(hidden))
        middle = (_row(self.high) + _row(self.low)) / 2.0
        return jnp.tanh(nn.Dense(len(self.low))(hidden)) * self.action_scale + middle


def _row(bounds: tuple[float, ...]) -> Any:
    return np.array(bounds, np.float32)


class QNetwork(nn.Module):
    """The expected discounted return after an action."""

    @nn.compact
    def __call__(self, obs: jax.Array, actions: jax.Array) -> jax.Array:
        """A value for each row."""
        # Flax numbers layers in the order in which they are made: each in a line of its own.
        hidden = nn.relu(nn.Dense(HIDDEN)(jnp.concatenate([obs, actions], axis=1)))
        hidden = nn.relu(nn.Dense(HIDDEN)(hidden))
        return nn.Dense(1)(hidden)[:, 0]


def make_actor(actions: NumpyBoxActions) -> Actor:
    """The policy for actions of a space."""
    return Actor(tuple(actions.low.tolist()), tuple(actions.high.tolist()))


@functools.partial(jax.jit, static_argnums=0)
def act(actor: Actor, params: Any, obs: Any) -> Any:
    """Actions for observations, compiled once for each number of them."""
    return apply(actor, params, obs)


@functools.partial(jax.jit, static_argnums=0)
def act_and_judge(actor: Actor, params: Any, critic_params: Any, obs: Any) -> Any:
    """Actions for observations, and their values."""
    actions = apply(actor, params, obs)
    return actions, apply(QNetwork(), critic_params, obs, actions)


def actor_policy(
    actor_weights: Any, critic_weights: Any, spaces: Spaces, exploration_noise: float
) -> ActorPolicy:
    """A policy that gives an action as it is, or with the noise of training, and its value."""
    actions = NumpyBoxActions(spaces.action_space)
    actor, obs_shape = make_actor(actions), (math.prod(spaces.observation_space.shape),)
    params = load_tree(shapes_of(actor, obs_shape), actor_weights)
    critic = load_tree(shapes_of(QNetwork(), obs_shape, actions.shape), critic_weights)
    network = functools.partial(act_and_judge, actor, params, critic)
    return ActorPolicy(network, spaces.action_space, exploration_noise)
