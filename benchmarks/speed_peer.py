"""Trains Stable-Baselines3 or sbx-rl for speed.py: `python speed_peer.py {stable_baselines3,sbx} ROW STEPS`.

Prints JSON: the step and the time at the end of every few steps.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import gymnasium
import torch
from speed_rows import ROWS, Row
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize


class Clock(BaseCallback):
    """Notes how far training is, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []
        self.times: list[float] = []

    def _on_training_start(self) -> None:
        self._note()

    def _on_step(self) -> bool:
        if self.n_calls % 20 == 0:
            self._note()
        return True

    def _note(self) -> None:
        self.steps.append(self.num_timesteps)
        self.times.append(time.perf_counter())


def make_environment(row: Row) -> VecEnv:
    """As many environments as ours has, normalised where ours are."""
    envs = DummyVecEnv([lambda: Monitor(gymnasium.make(row.env_id)) for _ in range(row.peer_envs)])
    return VecNormalize(envs, gamma=0.99, clip_obs=10.0, clip_reward=10.0) if row.peer_normalised else envs


def make_model(library: str, row: Row) -> BaseAlgorithm:
    """The algorithm of the row with our hyperparameters, as far as the library has them."""
    params: dict[str, Any] = dict(row.peer_params)
    delay = params.pop("policy_delay", None) if row.peer == "DDPG" else None
    if library == "stable_baselines3":
        params.pop("qf_learning_rate", None)
    envs = make_environment(row)
    if row.peer in ("TD3", "DDPG"):
        zeros = envs.action_space.low * 0.0
        params["action_noise"] = NormalActionNoise(zeros, zeros + 0.1)
    if row.peer == "PPO":
        rate = params["learning_rate"]
        params["learning_rate"] = lambda left: rate * left
    model: BaseAlgorithm = getattr(importlib.import_module(library), str(row.peer))(
        "MlpPolicy", envs, seed=1, device="cpu", **params
    )
    if delay is not None:
        # Both make DDPG of TD3, which has this parameter, but do not let the caller set it.
        model.policy_delay = delay  # type: ignore[attr-defined]
    return model


def main() -> None:
    library, name, steps = sys.argv[1:]
    torch.set_num_threads(1)
    row = next(row for row in ROWS if row.name == name)
    clock = Clock()
    make_model(library, row).learn(int(steps), callback=clock)
    print(json.dumps({"steps": clock.steps, "times": clock.times}))


if __name__ == "__main__":
    main()
