"""The residual convolutional network of IMPALA in JAX, and values on it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import linen as nn

from cleanrl_worker.agents.jax_nature import channels_first

FEATURES = 256
CHANNELS = (16, 32, 32)


class ResidualBlock(nn.Module):
    """Two convolutions whose result is added to what they were given."""

    channels: int

    @nn.compact
    def __call__(self, seen: jax.Array) -> jax.Array:
        """What comes of pictures with as many channels."""
        found = nn.Conv(self.channels, (3, 3))(nn.relu(seen))
        return nn.Conv(self.channels, (3, 3))(nn.relu(found)) + seen


class ConvSequence(nn.Module):
    """A convolution, the greatest of each 3 × 3 at half the height and width, and two residual blocks."""

    channels: int

    @nn.compact
    def __call__(self, seen: jax.Array) -> jax.Array:
        """Pictures of half the height and width."""
        found = nn.Conv(self.channels, (3, 3))(seen)
        found = nn.max_pool(found, (3, 3), strides=(2, 2), padding="SAME")
        return ResidualBlock(self.channels)(ResidualBlock(self.channels)(found))


class ImpalaQNetwork(nn.Module):
    """A value for each action of pictures of bytes: (row, height, width, channels), or channels first."""

    num_actions: int

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        """Values of the actions, a row for each observation."""
        if channels_first(obs.shape[1:]):
            obs = obs.transpose(0, 2, 3, 1)
        found = obs.astype(jnp.float32) / 255.0
        for channels in CHANNELS:
            found = ConvSequence(channels)(found)
        features = nn.relu(nn.Dense(FEATURES)(nn.relu(found).reshape(len(found), -1)))
        return nn.Dense(self.num_actions)(features)
