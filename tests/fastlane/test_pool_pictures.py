"""Environments of compiled backends are watched like those of Python: pictures, steps, returns, reasons."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.algorithms import ppo, ppo_atari, ppo_continuous_action
from cleanrl_worker.kit.open_envs import open_envs
from cleanrl_worker.kit.spec import AlgorithmSpec
from cleanrl_worker.portable.fastlane.lane import SEGMENT_VARIABLE
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE
from mosaic.fastlane.segment import create_segment

Watch = Callable[[AlgorithmSpec, str, str], tuple[Any, LiveGrid]]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Makes two watched environments; gives them and what a viewer sees."""

    def make(spec: AlgorithmSpec, env_id: str, backend: str) -> tuple[Any, LiveGrid]:
        with monkeypatch.context() as patch:
            patch.setenv(FOLDER_VARIABLE, str(tmp_path))
            patch.setenv(SEGMENT_VARIABLE, str(create_segment("POOL", "grid")))
            patch.setattr("cleanrl_worker.portable.fastlane.lane._opened", {})
            envs = open_envs(spec, spec.args(env_id=env_id, env_backend=backend, num_envs=2))
            return envs, LiveGrid("POOL")

    return make


@pytest.mark.parametrize(
    ("spec", "env_id", "backend", "shape"),
    [
        (ppo.SPEC, "CartPole-v1", "envpool", (400, 600, 3)),
        (ppo_atari.SPEC, "PongNoFrameskip-v4", "envpool", (210, 160, 3)),
        (ppo_atari.SPEC, "PongNoFrameskip-v4", "ale", (84, 84, 1)),
    ],
)
def test_two_environments_are_seen_with_their_steps(
    watch: Watch, spec: AlgorithmSpec, env_id: str, backend: str, shape: tuple[int, ...]
) -> None:
    envs, grid = watch(spec, env_id, backend)
    obs = np.zeros((2, *envs.observation_space.shape), envs.obs_dtype)
    envs.reset(1, obs)
    action = np.zeros(envs.action_space.shape, np.int64)
    deadline = time.monotonic() + 60
    with grid:
        while len(grid.shown) < 2 or not any(frame.step_rate_hz for frame in grid.frames().values()):
            assert time.monotonic() < deadline, grid.status()
            envs.step([int(action)] * 2, obs)
            grid.look()
        assert [frame.pixels.shape for frame in grid.frames().values()] == [shape] * 2
        assert all(frame.pixels.any() for frame in grid.frames().values())
    envs.close()


def test_why_robots_are_not_seen_is_told(watch: Watch) -> None:
    """EnvPool draws them with OpenGL, without which the process would end."""
    envs, grid = watch(ppo_continuous_action.SPEC, "HalfCheetah-v5", "envpool")
    obs = np.zeros((2, 17), np.float32)
    envs.reset(1, obs)
    with grid:
        grid.look()
        envs.step([np.zeros(6, np.float32)] * 2, obs)
        assert grid.status().state == "no picture"
        assert grid.status().reason == "its observations are not pictures, and its backend does not draw"
    envs.close()
