"""The algorithms in JAX: their losses are those of their torch twins, and their files are as CleanRL's."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import serialization

from cleanrl_worker.agents import nature, q_networks
from cleanrl_worker.agents.jax_nature import NatureAgent, NatureQNetwork
from cleanrl_worker.algorithms import (
    c51_atari_jax,
    c51_jax,
    dqn_atari,
    dqn_atari_jax,
    ppo_atari,
    ppo_atari_envpool_xla_jax,
)
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.replay import Sample
from cleanrl_worker.schemas.model import load_schema, shipped_algorithms
from support.hiding import HIDE_JAX
from support.policies import save_catch

ROWS, OBS, ACTIONS = 6, 3, 2
RANDOM = np.random.default_rng(5)
IN_JAX = [algo for algo in shipped_algorithms() if "jax" in (load_schema(algo) or pytest.fail()).requires]


def floats(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


def pictures() -> Any:
    return RANDOM.integers(0, 256, (ROWS, 84, 84, 4), np.uint8)


def sample(obs: Any, next_obs: Any, actions: Any) -> Sample:
    return Sample(obs, next_obs, actions, floats(ROWS), np.float32([0, 1, 0, 0, 1, 0]))


def tensors(batch: Any) -> Any:
    return type(batch)(*(torch.from_numpy(np.asarray(column)) for column in batch))


def put(layers: Mapping[str, torch.nn.Module], params: Any) -> None:
    """The weights of Flax in layers of torch, by the names that Flax gives them."""
    for name, layer in layers.items():
        kernel = np.asarray(params["params"][name]["kernel"])
        order = (3, 2, 0, 1) if kernel.ndim == 4 else (1, 0)
        weight = torch.from_numpy(kernel.transpose(order).copy())
        layer.weight.data.copy_(weight)  # type: ignore[union-attr, operator]
        layer.bias.data.copy_(torch.from_numpy(np.array(params["params"][name]["bias"])))  # type: ignore[union-attr, operator]


def put_convolutions(cnn: Any, params: Any) -> None:
    put({"Conv_0": cnn[0], "Conv_1": cnn[2], "Conv_2": cnn[4]}, params)
    kernel = np.asarray(params["params"]["Dense_0"]["kernel"]).reshape(7, 7, 64, 512)
    # Flax flattens height, width, channel; torch channel, height, width.
    weight = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1).reshape(512, -1))
    cnn[7].weight.data.copy_(torch.from_numpy(weight))
    cnn[7].bias.data.copy_(torch.from_numpy(np.array(params["params"]["Dense_0"]["bias"])))


def same(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other.detach().numpy(), rtol=2e-4, atol=2e-5)


def keys(count: int) -> Any:
    return [np.array([7, number], np.uint32) for number in range(count)]


def test_the_loss_of_dqn_for_pictures_is_that_of_its_twin() -> None:
    args, theirs = dqn_atari.Args(), NatureQNetwork(ACTIONS)
    batch = sample(pictures(), pictures(), RANDOM.integers(0, ACTIONS, ROWS))
    params, nets = [], []
    for key in keys(2):
        params.append(theirs.init(key, batch.obs))
        nets.append(q_networks.NatureQNetwork((84, 84, 4), ACTIONS))
        put_convolutions(nets[-1].network, params[-1])
        put({"Dense_1": nets[-1].network[9]}, params[-1])
    same(
        dqn_atari_jax.dqn_loss(params[0], theirs, args.gamma, params[1], batch),
        dqn_atari.dqn_loss(nets[0], nets[1], args, tensors(batch)),
    )
    # EnvPool and ALE give the same pictures with the frames first.
    turned = theirs.apply(params[0], batch.obs.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(turned, theirs.apply(params[0], batch.obs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("clip_vloss", [True, False])
def test_the_loss_of_ppo_for_pictures_is_that_of_its_twin(clip_vloss: bool) -> None:
    # The two divide by numbers that differ by one in the deviation of advantages.
    args = ppo_atari.Args(clip_vloss=clip_vloss, norm_adv=False)
    nvec = (2, 3)
    obs, agent = pictures(), NatureAgent(nvec)
    params = agent.init(keys(1)[0], obs)
    net = nature.NatureAgent((84, 84, 4), nvec)
    put_convolutions(net.network, params["network"])
    put({"Dense_0": net.actor}, params["actor"])
    put({"Dense_0": net.critic}, params["critic"])
    actions = np.stack([RANDOM.integers(0, size, ROWS) for size in nvec], axis=1)
    columns = (-1.5 + 0.1 * floats(ROWS), floats(ROWS), floats(ROWS), floats(ROWS))
    batch = ppo_atari.Batch(obs, actions, *columns)
    form = ppo_atari_envpool_xla_jax.Form(
        *(getattr(args, name) for name in ppo_atari_envpool_xla_jax.Form._fields)
    )
    same(
        ppo_atari_envpool_xla_jax.ppo_loss(params, agent, form, ppo_atari_envpool_xla_jax.Batch(*batch)),
        ppo_atari.ppo_loss(net, args, tensors(batch)),
    )


class TheirActor(nn.Module):
    """As CleanRL's scripts for JAX have it."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.Dense(256)(x))
        x = nn.relu(nn.Dense(256)(x))
        return nn.tanh(nn.Dense(1)(x)) * 2.0


class TheirQ(nn.Module):
    """As CleanRL's scripts for JAX have it."""

    @nn.compact
    def __call__(self, x: jax.Array, a: jax.Array) -> jax.Array:
        x = jnp.concatenate([x, a], -1)
        x = nn.relu(nn.Dense(256)(x))
        x = nn.relu(nn.Dense(256)(x))
        return nn.Dense(1)(x)


class TheirPictures(nn.Module):
    """As CleanRL's scripts for JAX have it, for pictures with the frames last."""

    outputs: int = 0

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = x / 255.0
        for filters, size, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            layer = nn.Conv(filters, kernel_size=(size, size), strides=(stride, stride), padding="VALID")
            x = nn.relu(layer(x))
        x = nn.relu(nn.Dense(512)(x.reshape((x.shape[0], -1))))
        return nn.Dense(self.outputs)(x) if self.outputs else x


@pytest.mark.parametrize(
    ("algo", "critics"), [("ddpg_continuous_action_jax", 1), ("td3_continuous_action_jax", 2)]
)
def test_their_files_for_continuous_actions_are_played(tmp_path: Path, algo: str, critics: int) -> None:
    obs, actions = floats(4, 3), floats(4, 1)
    actor = TheirActor().init(keys(1)[0], obs)
    values = [TheirQ().init(key, obs, actions) for key in keys(critics)]
    path = tmp_path / "theirs.cleanrl_model"
    path.write_bytes(serialization.to_bytes([actor, *values]))
    model = open_model(path, env_id="Pendulum-v1")
    assert model.spec.name == algo
    with model.make_envs(1) as envs:
        policy = model.load_policy(envs)
    expected = np.asarray(TheirActor().apply(actor, obs))
    np.testing.assert_allclose(policy.act(obs), expected, rtol=1e-5, atol=1e-6)
    judged = TheirQ().apply(values[0], obs, expected)
    np.testing.assert_allclose(policy.judge(obs).values, np.asarray(judged)[:, 0], rtol=1e-5, atol=1e-6)
    policy.seed(3)
    noisy = np.array(policy.act(obs, deterministic=False))
    assert np.abs(noisy).max() <= 2.0 and not np.array_equal(noisy, expected)


def test_their_files_for_pictures_are_played(tmp_path: Path) -> None:
    obs, path = pictures(), tmp_path / "theirs.cleanrl_model"
    values = TheirPictures(3).init(keys(1)[0], obs)
    spread = TheirPictures(3 * 7).init(keys(1)[0], obs)
    about = {"n_atoms": 7, "v_min": -1, "v_max": 1.0, "exp_name": "theirs", "wandb_entity": None}
    network, heads = TheirPictures().init(keys(1)[0], obs), [nn.Dense(3), nn.Dense(1)]
    features = TheirPictures().apply(network, obs)
    outputs = [head.init(key, features) for head, key in zip(heads, keys(2), strict=True)]
    # A layer of its own has no name there, one within a module has.
    named = [{"params": {"Dense_0": head["params"]}} for head in outputs]
    logits, (expected,) = heads[0].apply(outputs[0], features), [heads[1].apply(outputs[1], features)]
    contents: dict[str, Any] = {
        "dqn_atari_jax": values,
        "c51_atari_jax": {"model_weights": spread, "args": about},
        "ppo_atari_envpool_xla_jax": [about, [network, *named]],
    }
    policies = {}
    for algo, content in contents.items():
        path.write_bytes(serialization.to_bytes(content))
        model = open_model(path, env_id="mosaic/Catch-v0")
        assert model.spec.name == algo
        with model.make_envs(1) as envs:
            policies[algo] = model.load_policy(envs)
    judged = policies["dqn_atari_jax"].judge(obs)
    np.testing.assert_allclose(judged.action_values, TheirPictures(3).apply(values, obs), atol=1e-5)
    atoms = np.linspace(-1.0, 1.0, 7, dtype=np.float32)
    means = nn.softmax(TheirPictures(21).apply(spread, obs).reshape(-1, 3, 7)) @ atoms
    np.testing.assert_allclose(policies["c51_atari_jax"].judge(obs).action_values, means, atol=1e-5)
    policy = policies["ppo_atari_envpool_xla_jax"]
    judged = policy.judge(obs)
    np.testing.assert_allclose(judged.values, np.asarray(expected)[:, 0], atol=1e-5)
    np.testing.assert_allclose(judged.probabilities, nn.softmax(logits), atol=1e-5)
    assert policy.act(obs) == np.argmax(logits, axis=1).tolist()
    assert len({*policy.act(np.repeat(obs[:1], 60, axis=0), deterministic=False)}) > 1


TRAIN = """
import glob, os, sys, tempfile
from cleanrl_worker.kit.loading import load_spec
from cleanrl_worker.kit.run import run_with
os.chdir(tempfile.mkdtemp())
small = dict(total_timesteps=24, learning_starts=12, batch_size=4, buffer_size=100, num_envs=1, num_steps=8,
             num_minibatches=2, update_epochs=1, train_frequency=4, eval_episodes=1, env_backend="python")
for algo in {algos!r}:
    spec = load_spec(algo)
    known = vars(spec.args())
    env_id = "mosaic/Catch-v0" if "image" in spec.observation_spaces else known["env_id"]
    values = {{name: value for name, value in small.items() if name in known}}
    if "teacher_policy" in known:
        (teacher,) = glob.glob(os.path.abspath("runs/*/dqn_atari_jax.cleanrl_model"))
        values.update(teacher_policy=teacher, teacher_steps=8, offline_steps=4, teacher_eval_episodes=1)
    assert run_with(spec, {{**values, "env_id": env_id}}) == 0, algo
    assert "jax" in sys.modules and "torch" not in sys.modules, algo
"""


def test_none_of_them_imports_torch(tmp_path: Path) -> None:
    code = TRAIN.format(algos=[algo for algo in IN_JAX if algo != "dqn_jax"])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_jax_each_is_refused_before_it_starts(tmp_path: Path) -> None:
    lines = [HIDE_JAX, "from cleanrl_worker.cli import main"]
    taught = json.dumps({"algo_params": {"teacher_policy": str(save_catch(tmp_path))}})
    for algo in IN_JAX:
        arguments = ["--algo", algo, "--total-timesteps", "2000000", "--dry-run"]
        schema = load_schema(algo)
        if schema is not None and schema.parameter("teacher_policy") is not None:
            # Who lacks a teacher is told of that first.
            arguments += ["--env-id", "mosaic/Catch-v0", "--extras", taught]
        else:
            arguments += ["--env-id", load_spec(algo).args().env_id]
        lines.append(f"assert main({arguments}) == 2")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = [f"{algo} needs the optional set 'jax': run `mosaic extras install jax`." for algo in IN_JAX]
    assert done.stderr.splitlines() == said


def test_runs_of_a_process_share_what_is_compiled() -> None:
    network = c51_jax.QNetwork(ACTIONS, 5, -1.0, 1.0)
    batch = sample(floats(ROWS, OBS), floats(ROWS, OBS), RANDOM.integers(0, ACTIONS, ROWS))
    params = network.init(keys(1)[0], batch.obs)
    moments = c51_jax.optax.adam(0.1).init(params)
    before = c51_jax.learn._cache_size()
    for gamma, rate in ((0.9, 0.1), (0.5, 0.01)):
        again = c51_jax.QNetwork(ACTIONS, 5, -1.0, 1.0)
        step = functools.partial(c51_jax.learn, again, gamma, rate)
        step(params, moments, params, batch)
    assert c51_jax.learn._cache_size() == before + 1
    assert c51_atari_jax.QNetwork(2, 5, -1.0, 1.0) != network
