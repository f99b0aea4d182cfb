"""Processes that train together: the result of one process, and one end whatever happens to one of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from cleanrl_worker.agents.nature import NatureAgent
from cleanrl_worker.algorithms import ppo_atari, ppo_atari_multigpu
from cleanrl_worker.config.checkpoint_files import list_checkpoints
from cleanrl_worker.kit.accelerate import Gradient, take
from cleanrl_worker.kit.backend import find_backend
from cleanrl_worker.kit.discrete_actions import DiscreteActions
from cleanrl_worker.kit.rollout import advantages as advantages_of
from cleanrl_worker.kit.torch_backend import Adam
from cleanrl_worker.kit.vector_env import make_envs
from mosaic.contract.errors import UserError

SMALL = ("--num-envs=2", "--num-steps=24", "--num-minibatches=2", "--update-epochs=2", "--eval-episodes=1")
PER_UPDATE = 2 * 2 * 24


def command(*flags: str) -> list[str]:
    module = "cleanrl_worker.algorithms.ppo_atari_multigpu"
    return [sys.executable, "-m", module, "--env-id=mosaic/Catch-v0", "--seed=5", *SMALL, *flags]


def model_of(folder: Path) -> Path:
    (path,) = folder.glob("runs/*/ppo_atari_multigpu.cleanrl_model")
    return path


def train_alone(updates: int) -> dict[str, torch.Tensor]:
    """One process with the environments of both, and minibatches of the same steps."""
    args = ppo_atari.Args(num_envs=4, num_steps=24, num_minibatches=2, update_epochs=2, seed=5)
    backend = find_backend("torch")(5, True, False)
    envs = make_envs("ppo_atari", "mosaic/Catch-v0", 4, wrap=ppo_atari.SPEC.wrapper(args))
    agent = NatureAgent(envs.observation_space.shape, (3,))
    optimizer = Adam(agent, eps=1e-5)
    gradient = Gradient(functools.partial(ppo_atari.ppo_loss, agent, args), agent, optimizer)
    actions = DiscreteActions(envs.action_space)
    obs = np.zeros((25, 4, *envs.observation_space.shape), np.uint8)
    envs.reset(5, obs[0])
    for number in range(updates):
        noise = -torch.empty(24, 4, 3).exponential_().log_().numpy()
        orders = [backend.permutation(48).reshape(2, -1) for _ in range(2)]
        rewards, dones = np.zeros((24, 4), np.float32), np.zeros((24, 4), np.float32)
        logits, values = np.zeros((24, 4, 3), np.float32), np.zeros((25, 4), np.float32)
        chosen = np.zeros((24, 4, 1), np.int64)
        for t in range(24):
            logits[t], values[t] = ppo_atari.look(agent, obs[t], "cpu")
            chosen[t] = actions.best(logits[t] + noise[t])
            step = envs.step(actions.for_envs(chosen[t]), obs[t + 1])
            rewards[t], dones[t] = step.rewards, step.terminated
        values[24] = ppo_atari.look(agent, obs[24], "cpu")[1]
        found = advantages_of(rewards, dones, values[:-1], values[1:] * (1.0 - dones), 0.99, 0.95)
        batch = ppo_atari.Batch(
            obs=obs[:24].reshape(96, *obs.shape[2:]),
            actions=chosen.reshape(96, 1),
            log_probs=actions.log_probs(logits.reshape(96, 3), chosen.reshape(96, 1)),
            advantages=found.reshape(-1),
            returns=(found + values[:-1]).reshape(-1),
            values=values[:-1].reshape(-1),
        )
        # A row of a process is a step of one of its two environments.
        places = np.arange(96).reshape(24, 4)
        of_both = [places[:, :2].reshape(-1), places[:, 2:].reshape(-1)]
        for order in orders:
            for rows in order:
                gradient(take(batch, np.concatenate([own[rows] for own in of_both])))
                optimizer.step(2.5e-4 * (1.0 - number / updates), 0.5)
        obs[0] = obs[24]
    envs.close()
    return dict(agent.state_dict())


def test_two_processes_learn_what_one_with_all_environments_learns(tmp_path: Path) -> None:
    flags = (f"--total-timesteps={3 * PER_UPDATE}", "--checkpoint-every=0")
    done = subprocess.run(command(*flags), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    together = torch.load(model_of(tmp_path), weights_only=True)
    alone = train_alone(3)
    for name, weights in alone.items():
        torch.testing.assert_close(together[name], weights, rtol=1e-3, atol=2e-5)


@contextlib.contextmanager
def long_run(folder: Path) -> Any:
    """A run of two processes that has begun to train, and the second of them; neither stays."""
    process = subprocess.Popen(
        command("--total-timesteps=1000000", f"--checkpoint-every={PER_UPDATE}"),
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        deadline = time.monotonic() + 240
        while not list_checkpoints(folder / "checkpoints"):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        (second,) = psutil.Process(process.pid).children()
        yield process, second
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_process_that_dies_ends_the_run_with_one_sentence(tmp_path: Path) -> None:
    with long_run(tmp_path) as (process, second):
        second.kill()
        said = process.communicate(timeout=60)[1]
        assert process.returncode != 0
        assert said == "Process 2 of 2 was ended by signal 9, so the run cannot continue.\n"


def test_all_end_when_the_first_is_killed(tmp_path: Path) -> None:
    with long_run(tmp_path) as (process, second):
        process.kill()
        psutil.wait_procs([second], timeout=20)
        assert not second.is_running()


def test_a_run_that_is_asked_to_end_ends_all_and_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    with long_run(parts) as (process, second):
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 143
        assert not second.is_running()
    checkpoint = list_checkpoints(parts / "checkpoints")[-1]
    total = (int(checkpoint.stem.removeprefix("step-")) // PER_UPDATE + 2) * PER_UPDATE
    flags = (f"--total-timesteps={total}", "--no-anneal-lr", f"--checkpoint-every={total - 2 * PER_UPDATE}")
    subprocess.run(command(*flags), cwd=whole, check=True)
    resumed = tmp_path / "resumed"
    resumed.mkdir()
    first = list_checkpoints(whole / "checkpoints")[0]
    subprocess.run(command(*flags, f"--resume-from={first}"), cwd=resumed, check=True)
    assert model_of(resumed).read_bytes() == model_of(whole).read_bytes()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"world_size": 3}, "world_size is 3, but the run has 2 GPUs, and each process needs one of its own"),
        ({"curriculum": "[]"}, "does not support curricula"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(
    values: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UserError, match=said):
        ppo_atari_multigpu.check(dataclasses.replace(ppo_atari_multigpu.Args(), **values))


def test_no_process_at_all_is_refused() -> None:
    done = subprocess.run(command("--world-size=0"), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "ppo_atari_multigpu parameter 'world_size' is '0', but must be a whole number from 1 to 64.\n"
    )
