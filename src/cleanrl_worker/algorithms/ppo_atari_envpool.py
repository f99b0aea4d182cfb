"""Proximal policy optimisation for games of Atari that EnvPool steps in parallel threads.

Network, loop and loss are those of `ppo_atari`. EnvPool skips, shrinks and stacks the frames, so that the
learner waits less for its games; returns are counted as there, by the game's own points to its end.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from dataclasses import dataclass

from cleanrl_worker.algorithms import ppo_atari
from cleanrl_worker.kit.run import run_algorithm


@dataclass
class Args(ppo_atari.Args):
    """Proximal policy optimisation for Atari games with EnvPool."""

    exp_name: str = "ppo_atari_envpool"
    """the name of the experiment, part of the name of the results folder"""


SPEC = dataclasses.replace(
    ppo_atari.SPEC, name="ppo_atari_envpool", args=Args, env_backend="envpool", exact=False
)
main = functools.partial(run_algorithm, SPEC)

if __name__ == "__main__":
    sys.exit(main())
