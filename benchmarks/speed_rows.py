"""What speed.py measures: each row with the hyperparameters of all three libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Phase:
    """A part of training that goes at one speed; its first steps, with all compiling, are left out."""

    start: int
    end: int
    skipped: int
    stands_for: int = 0
    """How many steps it counts for, where it is trained for fewer."""

    @property
    def weight(self) -> int:
        return self.stands_for or self.end - self.start

    def shortened(self, steps: int) -> Phase:
        """With about `steps` steps at most; it counts for as much as before."""
        end = min(self.end, self.start + max(steps, 2 * self.skipped))
        return Phase(self.start, end, self.skipped, self.weight)


@dataclass(frozen=True)
class Row:
    """An algorithm on an environment."""

    name: str
    algo: str
    env_id: str
    phases: tuple[Phase, ...]
    """How far it is trained, and what of that is measured."""
    updates: float
    """Gradient steps for each environment step that is measured."""
    cleanrl: float
    """Steps per second of CleanRL's script on one thread of the reference machine."""
    wanted: float
    """How many times that ours must be."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Ours, where they are not the defaults."""
    peer: str | None = None
    """The class of that name in both other libraries; None: they do not have it."""
    peer_params: Mapping[str, Any] = field(default_factory=dict)
    peer_envs: int = 1
    peer_normalised: bool = False

    @property
    def steps(self) -> int:
        return self.phases[-1].end

    def shortened(self, steps: int) -> Row:
        """The same row with at most `steps` steps of its last phase."""
        return replace(self, phases=(*self.phases[:-1], self.phases[-1].shortened(steps)))


NETS = {"pi": [64, 64], "vf": [64, 64]}
PPO_PARAMS = {
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "clip_range_vf": 0.2,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "policy_kwargs": {"net_arch": NETS},
}
# The share of random actions falls as in a run of 500,000 steps, of which these are the first 30,000.
EXPLORATION = {"end_e": 0.886, "exploration_fraction": 1.0}
FIRST_30K = (Phase(0, 10_000, 1_000), Phase(10_000, 30_000, 1_000))
WHILE_TRAINING = (Phase(500, 2_500, 500),)
OFF_POLICY_PARAMS = {
    "buffer_size": 1_000_000,
    "learning_starts": 500,
    "batch_size": 256,
    "tau": 0.005,
    "gamma": 0.99,
    "train_freq": 1,
    "gradient_steps": 1,
    "policy_kwargs": {"net_arch": [256, 256]},
}

ROWS = [
    Row(
        "ppo",
        "ppo",
        "CartPole-v1",
        (Phase(0, 50_176, 4_096),),
        updates=16 / 512,
        cleanrl=3_105,
        wanted=7.0,
        peer="PPO",
        peer_envs=4,
        peer_params={
            **PPO_PARAMS,
            "learning_rate": 2.5e-4,
            "n_steps": 128,
            "batch_size": 128,
            "n_epochs": 4,
            "ent_coef": 0.01,
        },
    ),
    Row(
        "dqn",
        "dqn",
        "CartPole-v1",
        FIRST_30K,
        updates=2_000 / 30_000,
        cleanrl=2_833,
        wanted=5.0,
        params=EXPLORATION,
        peer="DQN",
        peer_params={
            "learning_rate": 2.5e-4,
            "buffer_size": 10_000,
            "learning_starts": 10_000,
            "batch_size": 128,
            "tau": 1.0,
            "train_freq": 10,
            "gradient_steps": 1,
            "target_update_interval": 500,
            "exploration_fraction": 1.0,
            "exploration_final_eps": 0.886,
            "policy_kwargs": {"net_arch": [120, 84]},
        },
    ),
    Row(
        "c51",
        "c51",
        "CartPole-v1",
        FIRST_30K,
        updates=2_000 / 30_000,
        cleanrl=1_331,
        wanted=5.0,
        params=EXPLORATION,
    ),
    Row(
        "pqn",
        "pqn",
        "CartPole-v1",
        (Phase(0, 50_176, 4_096),),
        updates=16 / 512,
        cleanrl=4_511,
        wanted=5.0,
    ),
    Row(
        "ppo_continuous_action",
        "ppo_continuous_action",
        "Walker2d-v5",
        (Phase(0, 20_480, 4_096),),
        updates=320 / 2_048,
        cleanrl=765,
        wanted=5.0,
        peer="PPO",
        peer_normalised=True,
        peer_params={
            **PPO_PARAMS,
            "learning_rate": 3e-4,
            "n_steps": 2_048,
            "batch_size": 64,
            "n_epochs": 10,
            "ent_coef": 0.0,
        },
    ),
    Row(
        "sac",
        "sac_continuous_action",
        "Pendulum-v1",
        WHILE_TRAINING,
        updates=1.0,
        cleanrl=51,
        wanted=2.5,
        params={"learning_starts": 500},
        peer="SAC",
        peer_params={**OFF_POLICY_PARAMS, "learning_rate": 3e-4, "qf_learning_rate": 1e-3},
    ),
    Row(
        "td3",
        "td3_continuous_action",
        "Pendulum-v1",
        WHILE_TRAINING,
        updates=1.0,
        cleanrl=91,
        wanted=2.0,
        params={"learning_starts": 500},
        peer="TD3",
        peer_params={**OFF_POLICY_PARAMS, "learning_rate": 3e-4, "policy_delay": 2},
    ),
    Row(
        "ddpg",
        "ddpg_continuous_action",
        "Pendulum-v1",
        WHILE_TRAINING,
        updates=1.0,
        cleanrl=110,
        wanted=2.0,
        params={"learning_starts": 500},
        peer="DDPG",
        peer_params={**OFF_POLICY_PARAMS, "learning_rate": 3e-4, "policy_delay": 2},
    ),
]
DIFFERENCES = """\
The libraries cannot be set quite the same. Stable-Baselines3 has one learning rate for SAC (3e-4; ours and
sbx-rl have 3e-4 and 1e-3), and its DQN has a Huber loss and clips gradients. sbx-rl gives both hidden layers
of its DQN one width (120; ours 120 and 84), and its PPO does not clip values. DDPG of both updates its policy
at each step; here it is set to every second one, as ours. Ours writes event files all the while, the others
log nothing."""


_SOON = {"learning_starts": 500, "eval_episodes": 0, "checkpoint_every": 0}
_ROLLOUTS = {"num_steps": 32, "eval_episodes": 0, "checkpoint_every": 0}


def _in_jax(name: str, algo: str, env_id: str, phase: Phase, params: Mapping[str, Any]) -> Row:
    """A row of jax_twins.py, which compares with nobody else."""
    return Row(name, algo, env_id, (phase,), updates=0.0, cleanrl=0.0, wanted=0.0, params=params)


_PICTURES = {**_SOON, "buffer_size": 5_000}
_TAUGHT = {
    "teacher_steps": 100,
    "offline_steps": 200,
    "teacher_eval_episodes": 1,
    "buffer_size": 5_000,
    "eval_episodes": 0,
    "checkpoint_every": 0,
}

JAX_TWINS = [
    _in_jax("dqn", "dqn_jax", "CartPole-v1", Phase(500, 40_500, 2_000), _SOON),
    _in_jax("c51", "c51_jax", "CartPole-v1", Phase(500, 30_500, 2_000), _SOON),
    _in_jax("ddpg", "ddpg_continuous_action_jax", "Pendulum-v1", Phase(500, 1_500, 300), _SOON),
    _in_jax("td3", "td3_continuous_action_jax", "Pendulum-v1", Phase(500, 1_500, 300), _SOON),
    _in_jax("dqn_atari", "dqn_atari_jax", "mosaic/Catch-v0", Phase(500, 1_500, 300), _PICTURES),
    _in_jax("c51_atari", "c51_atari_jax", "mosaic/Catch-v0", Phase(500, 1_500, 300), _PICTURES),
    _in_jax("ppo", "ppo_atari_envpool_xla_jax", "PongNoFrameskip-v4", Phase(0, 1_536, 512), _ROLLOUTS),
    _in_jax("scan", "ppo_atari_envpool_xla_jax_scan", "PongNoFrameskip-v4", Phase(0, 1_536, 512), _ROLLOUTS),
    _in_jax("qdagger", "qdagger_dqn_atari_jax_impalacnn", "mosaic/Catch-v0", Phase(100, 301, 100), _TAUGHT),
]
"""Each algorithm in JAX, beside its twin in torch, over a few hundred steps with updates."""
