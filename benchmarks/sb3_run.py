"""Trains Stable-Baselines3 beside ours, for learning.py: `python sb3_run.py {ppo,sac} ENV SEED STEPS`.

Episodes go to `sb3.monitor.csv` in the current folder. The hyperparameters are ours where the library has
them. PPO has normalised observations and rewards, a falling learning rate and clipped values. SAC has one
learning rate of 3e-4 for policy and values, where ours has 1e-3 for the values.
"""

from __future__ import annotations

import sys

import gymnasium
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize


def make_model(algo: str, env_id: str, seed: int) -> BaseAlgorithm:
    """The algorithm with our defaults."""
    env = Monitor(gymnasium.make(env_id), "sb3")
    if algo == "sac":
        return SAC("MlpPolicy", env, learning_rate=3e-4, learning_starts=5_000, seed=seed)
    return PPO(
        "MlpPolicy",
        VecNormalize(DummyVecEnv([lambda: env]), gamma=0.99),
        learning_rate=lambda left: 3e-4 * left,
        n_steps=2048,
        batch_size=64,
        n_epochs=10,
        clip_range_vf=0.2,
        ent_coef=0.0,
        seed=seed,
    )


def main() -> None:
    algo, env_id, seed, steps = sys.argv[1:]
    torch.set_num_threads(1)
    make_model(algo, env_id, int(seed)).learn(int(steps))


if __name__ == "__main__":
    main()
