"""Somebody's script that goes on when it is told: `--told FOLDER` has a file for each phase that may end."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--told", type=Path)
TOLD = parser.parse_known_args()[0].told


def wait_for(word):
    while not (TOLD / word).exists():
        time.sleep(0.005)


class Slow(gym.Env):
    """Takes long to be made and to be reset."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012
    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        wait_for("made")

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, False, False, {}

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


gym.register("Slow-v0", entry_point=Slow)
wait_for("imported")
env = gym.make("Slow-v0")
env.reset()
while True:
    env.step(0)
    time.sleep(0.001)
