"""CartPole that notes when it is first stepped, for startup.py."""

import os
import time
from pathlib import Path

import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv


class FirstStep(CartPoleEnv):
    """Writes the time of its first step into the run's folder."""

    def step(self, action):
        mark = Path(os.environ["CLEANRL_RUN_DIR"]) / "first_step"
        if not mark.exists():
            mark.write_text(repr(time.time()))
        return super().step(action)


gymnasium.register("FirstStep-v0", entry_point=FirstStep, max_episode_steps=500)
