"""The convolutional network of the Nature paper on DQN, in JAX, and values and agents on it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen.initializers import orthogonal

from cleanrl_worker.kit.jax_backend import apply

FEATURES = 512
_LAYERS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, their size and stride."""
_LECUN = nn.initializers.lecun_normal()


def nature_features(pictures: jax.Array, begin: Any = _LECUN) -> jax.Array:
    """512 features of pictures of bytes: (row, height, width, channels), or with the channels first.

    Its layers belong to the module that calls it. `begin` makes their first weights.
    """
    if channels_first(pictures.shape[1:]):
        pictures = pictures.transpose(0, 2, 3, 1)
    found = pictures.astype(jnp.float32) / 255.0
    for filters, size, stride in _LAYERS:
        layer = nn.Conv(filters, (size, size), (stride, stride), padding="VALID", kernel_init=begin)
        found = nn.relu(layer(found))
    return nn.relu(nn.Dense(FEATURES, kernel_init=begin)(found.reshape(len(found), -1)))


def channels_first(shape: Sequence[int]) -> bool:
    """Whether the first number of a picture's shape is that of its channels."""
    return shape[0] < min(shape[1:])


class NatureQNetwork(nn.Module):
    """A value for each action of pictures; with atoms, the logits of distributions of returns."""

    num_actions: int
    n_atoms: int = 0

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        """Values (row, action), or logits (row, action, atom)."""
        features = nature_features(obs)
        if not self.n_atoms:
            return nn.Dense(self.num_actions)(features)
        return nn.Dense(self.num_actions * self.n_atoms)(features).reshape(-1, self.num_actions, self.n_atoms)


class _Features(nn.Module):
    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        return nature_features(obs, orthogonal(math.sqrt(2.0)))


class _Layer(nn.Module):
    size: int
    gain: float

    @nn.compact
    def __call__(self, features: jax.Array) -> jax.Array:
        return nn.Dense(self.size, kernel_init=orthogonal(self.gain))(features)


class NatureAgent:
    """A policy over discrete actions and a value, on the same features.

    Its parameters are a dict of three trees, `network`, `actor` and `critic`, as model files have them.
    """

    def __init__(self, nvec: tuple[int, ...]) -> None:
        self.nvec = nvec
        self._network, self._actor, self._critic = _Features(), _Layer(sum(nvec), 0.01), _Layer(1, 1.0)

    def __hash__(self) -> int:
        return hash(self.nvec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NatureAgent) and other.nvec == self.nvec

    @functools.partial(jax.jit, static_argnums=0)
    def init(self, key: Any, obs: Any) -> Any:
        """First parameters, orthogonal."""
        keys = jax.random.split(key, 3)
        features = jnp.zeros((1, FEATURES))
        return {
            "network": self._network.init(keys[0], obs),
            "actor": self._actor.init(keys[1], features),
            "critic": self._critic.init(keys[2], features),
        }

    def apply(self, params: Any, obs: Any) -> tuple[jax.Array, jax.Array]:
        """Logits and values of observations."""
        features = apply(self._network, params["network"], obs)
        values = apply(self._critic, params["critic"], features)[:, 0]
        return apply(self._actor, params["actor"], features), values
