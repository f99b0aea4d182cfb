"""Somebody's script: makes environments as scripts do, plays, and says what it sees of them.

python plays.py --vector sync|async|none --num-envs N --steps N [--render-mode M] [--env-id ID]
"""

from __future__ import annotations

import argparse
import json
import time

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Colours(gym.Env):
    """Each picture is of one colour; counts how often it is drawn."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012
    drawn = 0

    def __init__(self, render_mode=None, broken=False, first_seconds=0.0):
        self.render_mode = render_mode
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._broken = broken
        self._first_seconds = first_seconds
        self._step = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._step += 1
        return np.zeros(1, np.float32), 1.0, self._step % 10 == 0, False, {}

    def render(self):
        if self._broken:
            raise RuntimeError("no screen")
        time.sleep(self._first_seconds)
        self._first_seconds = 0.0
        Colours.drawn += 1
        return np.full((40, 60, 3), self._step % 256, np.uint8)


class Blind(Colours):
    """Cannot draw itself."""

    metadata = {"render_modes": []}  # noqa: RUF012


gym.register("None-v0", entry_point=Colours)
gym.register("Broken-v0", entry_point=Colours, kwargs={"broken": True})
gym.register("Slow-v0", entry_point=Colours, kwargs={"first_seconds": 0.1})
gym.register("Blind-v0", entry_point=Blind)


def main_loop(options):
    def make():
        wanted = {} if options.render_mode is None else {"render_mode": options.render_mode}
        return gym.make(options.env_id, **wanted)

    if options.vector == "none":
        env = make()
        print(json.dumps(seen(env)), flush=True)
        env.reset(seed=1)
    else:
        kind = gym.vector.SyncVectorEnv if options.vector == "sync" else gym.vector.AsyncVectorEnv
        env = kind([make for _ in range(options.num_envs)])
        env.reset(seed=1)
    for _ in range(options.steps):
        result = env.step(env.action_space.sample())
        if options.vector == "none" and (result[2] or result[3]):
            env.reset()
        time.sleep(options.pause)
    env.close()
    print(json.dumps({"drawn": Colours.drawn}), flush=True)


def seen(env):
    return {
        "text": str(env),
        "render_mode": env.render_mode,
        "spec_kwargs": env.spec.kwargs,
        "max_episode_steps": env.spec.max_episode_steps,
        "id": env.spec.id,
        "rendered": env.render_mode is not None,
        "metadata": env.metadata["render_modes"],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--vector", default="none")
    parser.add_argument("--num-envs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--total-timesteps", type=int, dest="steps")
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--render-mode")
    parser.add_argument("--env-id", default="None-v0")
    parser.add_argument("--seed", type=int)
    main_loop(parser.parse_args())
