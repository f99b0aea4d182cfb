"""Robust policy optimisation: PPO for continuous actions whose means are moved at random while it learns.

The update is that of `ppo_continuous_action.ppo_loss`, with a `shift` of each mean that is drawn from
U(-alpha, alpha) for every minibatch. The policy stays wide for longer, so that it does not settle too early.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from dataclasses import dataclass

from cleanrl_worker.algorithms import ppo_continuous_action
from cleanrl_worker.kit.args import NonNegative, PositiveInt
from cleanrl_worker.kit.run import Run, run_algorithm


@dataclass
class Args(ppo_continuous_action.Args):
    """Robust policy optimisation for continuous actions."""

    exp_name: str = "rpo_continuous_action"
    """the name of this experiment, part of the results folder's name"""
    total_timesteps: PositiveInt = 8_000_000
    """how many environment steps to train for, over all environments together"""
    rpo_alpha: NonNegative = 0.5
    """how far each mean is moved at random, at most"""


def train(run: Run[Args]) -> None:
    """Train as PPO does, with moving means."""
    ppo_continuous_action.train(run, run.args.rpo_alpha)


SPEC = dataclasses.replace(ppo_continuous_action.SPEC, name="rpo_continuous_action", args=Args, train=train)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
