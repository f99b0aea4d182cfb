"""Model files made by hand, for tests that play them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from cleanrl_worker.agents.minigrid import MinigridAgent
from cleanrl_worker.agents.nature import NatureAgent
from cleanrl_worker.agents.q_networks import NatureQNetwork
from cleanrl_worker.config.checkpoint_files import PolicyCard
from support.foreign_models import layers

STEP = 1000


def save_policy(path: Path, weights: Any, algo: str, env_id: str, **args: Any) -> Path:
    """A model file with its card."""
    torch.save(weights, path)
    known = {"env_id": env_id, "seed": 3, "total_timesteps": STEP, **args}
    PolicyCard(algo, known, STEP, None).write(path)
    return path


def write_empty_model(path: Path) -> None:
    """A file of torch's format, for tests that read only what lies beside it."""
    torch.save({}, path)


def save_cartpole(folder: Path) -> Path:
    """A policy of `ppo` for CartPole, with weights drawn at random."""
    weights = layers("critic", 4, 64, 64, 1) | layers("actor", 4, 64, 64, 2)
    return save_policy(folder / "cart.cleanrl_model", weights, "ppo", "CartPole-v1")


def save_pendulum(folder: Path) -> Path:
    """A policy of `ppo_continuous_action` for Pendulum, without the statistics that it was trained with."""
    weights = layers("critic", 3, 64, 64, 1) | layers("actor_mean", 3, 64, 64, 1)
    weights["actor_logstd"] = torch.zeros(1, 1)
    return save_policy(folder / "pend.cleanrl_model", weights, "ppo_continuous_action", "Pendulum-v1")


def save_catch(folder: Path, algo: str = "ppo_atari", **args: Any) -> Path:
    """A policy for images of `mosaic/Catch-v0`, with weights drawn at random."""
    agent = NatureAgent((84, 84, 4), 3) if algo == "ppo_atari" else NatureQNetwork((84, 84, 4), 3)
    path = folder / "catch.cleanrl_model"
    return save_policy(path, agent.state_dict(), algo, "mosaic/Catch-v0", frame_stack=4, **args)


def save_grid(folder: Path) -> Path:
    """A policy of `ppo` for a grid world, which has a mission in words."""
    weights = MinigridAgent(7).state_dict()
    return save_policy(folder / "grid.cleanrl_model", weights, "ppo", "MiniGrid-Empty-5x5-v0")
