"""Which module trains an algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT_ALGO_REGISTRY: Mapping[str, str] = MappingProxyType(
    {
        "ppo": "cleanrl_worker.algorithms.ppo",
        "ppo_continuous_action": "cleanrl_worker.algorithms.ppo_continuous_action",
        "rpo_continuous_action": "cleanrl_worker.algorithms.rpo_continuous_action",
        "dqn": "cleanrl_worker.algorithms.dqn",
        "dqn_jax": "cleanrl_worker.algorithms.dqn_jax",
        "c51": "cleanrl_worker.algorithms.c51",
        "pqn": "cleanrl_worker.algorithms.pqn",
        "ddpg_continuous_action": "cleanrl_worker.algorithms.ddpg_continuous_action",
        "td3_continuous_action": "cleanrl_worker.algorithms.td3_continuous_action",
        "sac_continuous_action": "cleanrl_worker.algorithms.sac_continuous_action",
    }
)
