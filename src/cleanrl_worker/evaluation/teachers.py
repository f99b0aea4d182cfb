"""A trained policy as a teacher: what it would do, as scores of each action that a student can learn from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.config.checkpoint_files import card_path, link_or_copy
from cleanrl_worker.config.teachers import PARAMETER, find_teacher
from cleanrl_worker.evaluation.models import open_model
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.loading import load_spec, told_as_json
from cleanrl_worker.kit.open_envs import open_episodes
from cleanrl_worker.kit.parsing import make_args
from cleanrl_worker.kit.policy import Floats, Policy, Spaces
from cleanrl_worker.schemas.environments import find_environment
from mosaic.contract.errors import UserError

FOLDER = Path("teacher")
_LEAST = 1e-8
"""A probability that is less counts as this, so that its logarithm is a number."""


class Teacher:
    """A policy of ours for images and discrete actions, whatever algorithm trained it."""

    def __init__(self, policy: Policy, name: str) -> None:
        """UserError when nothing can be learned from such a policy."""
        self.policy = policy
        if policy.initial_memory(1) is not None:
            raise UserError(
                f"The teacher {name} has a memory, but the student learns from single steps: choose a "
                "teacher without memory."
            )

    def scores(self, obs: NDArray[Any]) -> Floats:
        """A score of each action, a row for each observation: its action values where it has such, else the
        logarithms of its probabilities. The softmax of either is what a student is drawn to."""
        output = self.policy.judge(obs)
        if output.action_values is not None:
            return output.action_values
        assert output.probabilities is not None
        return np.log(np.maximum(output.probabilities, np.float32(_LEAST)))


def open_teacher(algo: str, args: CommonArgs, spaces: Spaces, keep: bool = True) -> Teacher:
    """The teacher that a run's arguments name; `keep` its file in the run's folder too."""
    values = dict(vars(args))
    kept = FOLDER / Path(str(values[PARAMETER])).name
    if kept.is_file():
        # A run that is started again has it, whatever became of the original.
        values[PARAMETER] = str(kept)
    origin = find_teacher(algo, values, Path.cwd(), find_environment(args.env_id))
    if keep and origin.step is None and not kept.is_file():
        link_or_copy(origin.path, FOLDER / origin.path.name)
        if card_path(origin.path).is_file():
            link_or_copy(card_path(origin.path), FOLDER / card_path(origin.path).name)
    model = open_model(origin.path, origin.algo, args.env_id, args.env_kwargs)
    name = str(origin.path)
    try:
        return Teacher(model.load_policy(spaces), name)
    except UserError:
        # A policy with memory sees single frames, and what matters is that it remembers.
        with model.make_envs(1) as own:
            Teacher(model.load_policy(own), name)
        raise


def main(algo: str, values: str) -> int:
    """Whether the teacher of a run fits, as one JSON line, for a process that has no torch."""
    with told_as_json():
        spec = load_spec(algo)
        args = make_args(spec.args, json.loads(values), algo)
        with open_episodes(spec, args, 1) as envs:
            open_teacher(algo, args, envs, keep=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
