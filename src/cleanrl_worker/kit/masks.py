"""Action masks: which actions an environment allows now.

`python -m cleanrl_worker.kit.masks ALGORITHM ENV KWARGS SEED` tells as JSON whether an episode can begin.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.kit.discrete_actions import DiscreteActions, choice_slices

Mask = NDArray[np.bool_]
"""A flag for each value of each choice, one choice after the other."""


class MaskProblem(Exception):
    """What an environment gives as its mask is none; the text says what it gave."""

    def __init__(self, what: str, rule: str) -> None:
        super().__init__(f"it gave {what}, but {rule}")
        self.what = what
        self.rule = rule


class MaskReader:
    """Reads masks from `info["action_mask"]`, or else from an environment's `action_masks()`.

    Several choices made at once have their flags one after the other, as one list or as a list for each.
    """

    def __init__(self, action_space: Any) -> None:
        self._space = action_space
        nvec = DiscreteActions(action_space).nvec
        self.size = sum(nvec)
        """How many flags a mask has."""
        self._slices = choice_slices(nvec)

    def read(self, env: gymnasium.Env[Any, Any], info: Any) -> Mask | None:
        """What an environment allows now; None where it does not say. MaskProblem: that is not a mask."""
        given = info.get("action_mask") if isinstance(info, Mapping) else None
        if given is None:
            if not env.has_wrapper_attr("action_masks"):
                return None
            given = env.get_wrapper_attr("action_masks")()
        try:
            parts = given if isinstance(given, list | tuple) else [given]
            flags = np.concatenate([np.asarray(part).reshape(-1) for part in parts])
            mask: Mask = flags.astype(bool)
        except (TypeError, ValueError):
            flags = np.zeros(0)
        if flags.dtype.kind not in "buif" or len(flags) != self.size:
            said = f"the action mask {given!r:.60}"
            raise MaskProblem(said, f"a mask must have {self.size} flags, one for each value of an action")
        for part in self._slices:
            if not mask[part].any():
                raise MaskProblem(
                    "an action mask that forbids everything", "at least one action must be allowed"
                )
        return mask

    def allows(self, mask: Mask, action: Any) -> bool:
        """Whether an action of the space is allowed."""
        start: Any = 0 if isinstance(self._space, spaces.MultiBinary) else self._space.start
        chosen = np.asarray(action - start).reshape(-1)
        return all(mask[part][one] for part, one in zip(self._slices, chosen, strict=True))


def main(algo: str, env_id: str, kwargs: str, seed: str) -> int:
    """Print what is wrong with the mask that the first episode begins with, if anything is."""
    from cleanrl_worker.kit.loading import told_as_json
    from cleanrl_worker.kit.vector_env import make_envs

    with told_as_json(), make_envs(algo, env_id, 1, kwargs, masked=True) as envs:
        envs.reset(int(seed), np.zeros((1, *envs.observation_space.shape), envs.obs_dtype))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
