"""What the off-policy algorithms for continuous actions have in common."""

from __future__ import annotations

from dataclasses import dataclass

from cleanrl_worker.training.common import Fraction, PositiveInt
from cleanrl_worker.training.off_policy import OffPolicyArgs


@dataclass
class ContinuousArgs(OffPolicyArgs):
    """Arguments of actor-critic algorithms that learn after every step."""

    env_id: str = "Pendulum-v1"
    """the environment: an id, or `module:EnvId` to import a module that registers it first"""
    total_timesteps: PositiveInt = 1_000_000
    """how many environment steps to train for, over all environments together"""
    num_envs: PositiveInt = 1
    """how many environments are stepped together; there is one update for each step of each of them"""
    tau: Fraction = 0.005
    """how far the target networks go towards the networks at a time"""
