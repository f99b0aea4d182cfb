"""Model files of CleanRL's scripts for images and in JAX are used here, and ours there, with equal outputs.

The networks have the layers and names of those scripts, and are stored as they store them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import serialization
from torch import nn

from cleanrl_worker.evaluation.episodes import evaluate
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.run import run_with
from support.foreign_models import Net

ATOMS = {"n_atoms": 11, "v_min": -3.0, "v_max": 7.0}
SUPPORT = np.linspace(-3.0, 7.0, 11, dtype=np.float32)
ACTIONS = 3
NOTHING_LEARNED = {"learning_rate": 0.0, "policy_lr": 0.0, "q_lr": 0.0, "anneal_lr": False}
SMALL = {"num_steps": 16, "num_minibatches": 1, "update_epochs": 1, "buffer_size": 1000}


def pixel_layers(*outputs: int) -> nn.Sequential:
    """The network of the Nature paper for stacks of four frames, with the channels first."""
    convolutions = nn.Conv2d(4, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3, 1)
    parts = [part for one in convolutions for part in (one, nn.ReLU())]
    parts += [nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), *(nn.Linear(512, size) for size in outputs)]
    return nn.Sequential(*parts)


class Pixels(flax.linen.Module):
    """The same in Flax, which moves the channels to the end."""

    outputs: int

    @flax.linen.compact
    def __call__(self, x: Any) -> Any:
        x = jnp.transpose(x, (0, 2, 3, 1)) / 255.0
        for filters, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = flax.linen.relu(flax.linen.Conv(filters, (kernel,) * 2, (stride,) * 2, padding="VALID")(x))
        x = flax.linen.relu(flax.linen.Dense(512)(x.reshape((len(x), -1))))
        return flax.linen.Dense(self.outputs)(x)


class Layers(flax.linen.Module):
    """Linear layers with a relu between each two."""

    sizes: tuple[int, ...]

    @flax.linen.compact
    def __call__(self, x: Any) -> Any:
        for size in self.sizes[:-1]:
            x = flax.linen.relu(flax.linen.Dense(size)(x))
        return flax.linen.Dense(self.sizes[-1])(x)


@dataclass(frozen=True)
class Case:
    """One script: its environment here, what it stores, and what its networks give for observations."""

    env_id: str
    make: Callable[[], Any]
    """New networks in what the script stores."""
    outputs: Callable[[Any, Any], Any]
    """Of a file's content and observations as the script sees them."""
    told: str
    """Which of our policy's outputs that is."""
    is_jax: bool = False


def by_atoms(logits: Any) -> Any:
    powers = np.exp(np.asarray(logits).reshape(len(logits), -1, len(SUPPORT)))
    return (powers / powers.sum(axis=2, keepdims=True)) @ SUPPORT


def torch_outputs(net: Net, weights: Any, head: Callable[[Any, Any], Any], obs: Any) -> Any:
    # Strict: every name and every shape.
    net.load_state_dict(weights)
    with torch.no_grad():
        return head(net, torch.from_numpy(obs).float() / 255.0).numpy()


def agent() -> Net:
    return Net(network=pixel_layers(), actor=nn.Linear(512, ACTIONS), critic=nn.Linear(512, 1))


def q_net(outputs: int, **more: Any) -> Net:
    return Net(network=pixel_layers(outputs), **more)


def atom_net() -> Net:
    return q_net(ACTIONS * len(SUPPORT), atoms=torch.from_numpy(SUPPORT))


def fresh(module: flax.linen.Module, *shape: int) -> Any:
    return module.init(jax.random.PRNGKey(3), np.zeros((1, *shape), np.float32))


def applied(module: flax.linen.Module, weights: Any, obs: Any, *shape: int) -> Any:
    return np.asarray(module.apply(serialization.from_state_dict(fresh(module, *shape), weights), obs))


PIXELS, ATOM_PIXELS = Pixels(ACTIONS), Pixels(ACTIONS * len(SUPPORT))
ATOM_LAYERS = Layers((120, 84, 2 * len(SUPPORT)))
ACTOR, CRITIC = Layers((256, 256, 1)), Layers((256, 256, 1))
FRAMES = (4, 84, 84)

CASES = {
    "ppo_atari": Case(
        "mosaic/Catch-v0",
        lambda: agent().state_dict(),
        lambda content, obs: torch_outputs(
            agent(), content, lambda net, x: net.actor(net.network(x)).softmax(1), obs
        ),
        "probabilities",
    ),
    "dqn_atari": Case(
        "mosaic/Catch-v0",
        lambda: q_net(ACTIONS).state_dict(),
        lambda content, obs: torch_outputs(q_net(ACTIONS), content, lambda net, x: net.network(x), obs),
        "action_values",
    ),
    "c51_atari": Case(
        "mosaic/Catch-v0",
        lambda: {"model_weights": atom_net().state_dict(), "args": {**ATOMS, "exp_name": "c51_atari"}},
        lambda content, obs: by_atoms(
            torch_outputs(atom_net(), content["model_weights"], lambda net, x: net.network(x), obs)
        ),
        "action_values",
    ),
    "dqn_atari_jax": Case(
        "mosaic/Catch-v0",
        lambda: fresh(PIXELS, *FRAMES),
        lambda content, obs: applied(PIXELS, content, obs, *FRAMES),
        "action_values",
        is_jax=True,
    ),
    "c51_atari_jax": Case(
        "mosaic/Catch-v0",
        lambda: {"model_weights": fresh(ATOM_PIXELS, *FRAMES), "args": {**ATOMS, "exp_name": "c51"}},
        lambda content, obs: by_atoms(applied(ATOM_PIXELS, content["model_weights"], obs, *FRAMES)),
        "action_values",
        is_jax=True,
    ),
    "c51_jax": Case(
        "CartPole-v1",
        lambda: {"model_weights": fresh(ATOM_LAYERS, 4), "args": {**ATOMS, "exp_name": "c51_jax"}},
        lambda content, obs: by_atoms(applied(ATOM_LAYERS, content["model_weights"], obs, 4)),
        "action_values",
        is_jax=True,
    ),
    "ddpg_continuous_action_jax": Case(
        "Pendulum-v1",
        lambda: [fresh(ACTOR, 3), fresh(CRITIC, 4)],
        lambda content, obs: 2.0 * np.tanh(applied(ACTOR, content["0"], obs, 3)),
        "actions",
        is_jax=True,
    ),
    "td3_continuous_action_jax": Case(
        "Pendulum-v1",
        lambda: [fresh(ACTOR, 3), fresh(CRITIC, 4), fresh(CRITIC, 4)],
        lambda content, obs: 2.0 * np.tanh(applied(ACTOR, content["0"], obs, 3)),
        "actions",
        is_jax=True,
    ),
}


def store(case: Case, content: Any, path: Path) -> None:
    if case.is_jax:
        path.write_bytes(serialization.to_bytes(content))
    else:
        torch.save(content, path)


def read(case: Case, path: Path) -> Any:
    restored: Any = serialization.msgpack_restore(path.read_bytes()) if case.is_jax else None
    return restored if case.is_jax else torch.load(path, weights_only=True)


def train(algo: str, case: Case, resume_from: str | None = None) -> Path:
    """A run of a few steps that learns nothing; gives its model file."""
    spec = load_spec(algo)
    known = {**NOTHING_LEARNED, **SMALL, **ATOMS}
    values = {name: value for name, value in known.items() if hasattr(spec.args, name)}
    values |= {"env_id": case.env_id, "total_timesteps": 32, "num_envs": 2, "exp_name": algo, "seed": 4}
    assert run_with(spec, {**values, "eval_episodes": 0, "resume_from": resume_from}) == 0
    (path,) = Path("runs").absolute().glob(f"*/{algo}.cleanrl_model")
    return path


@pytest.mark.parametrize("algo", CASES)
def test_files_go_both_ways(algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case, theirs = CASES[algo], tmp_path / "theirs.cleanrl_model"
    store(case, case.make(), theirs)
    # A run that goes on from their file and learns nothing leaves a file of ours with their weights.
    ours = train(algo, case, resume_from=str(theirs))
    own = np.random.default_rng(1)
    for path in (theirs, ours):
        model = open_model(path, algo, case.env_id)
        with model.make_envs(2) as envs:
            policy = model.load_policy(envs)
            assert len(evaluate(policy, envs, 2, 7).returns) == 2
            shape = (12, *envs.observation_space.shape)
            images = len(shape) == 4
            obs = own.integers(0, 256, shape, np.uint8) if images else own.standard_normal(shape)
            obs = obs if images else obs.astype(np.float32)
            seen = np.moveaxis(obs, 3, 1) if images else obs
            found = policy.act(obs) if case.told == "actions" else getattr(policy.judge(obs), case.told)
        for content in (read(case, theirs), read(case, path)):
            expected = case.outputs(content, seen)
            np.testing.assert_allclose(np.stack(list(found)), expected, rtol=1e-4, atol=2e-5)
