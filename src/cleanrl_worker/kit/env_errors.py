"""What is wrong with what an environment gives, in one sentence that names the environment and the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.masks import MaskProblem
from mosaic.contract.errors import MosaicError

LARGEST = float(np.finfo(np.float32).max)
"""Networks compute with numbers of this kind."""
Shape = tuple[int, ...]
NOTHING = object()
"""What an environment has given before its call returns."""

_FIVE = "it must give five: observation, reward, terminated, truncated and info"
_TWO = "it must give two: observation and info"


def fit_array(obs: Any, shape: Shape) -> NDArray[Any]:
    """An observation that came as a list or the like; ValueError when it has another shape."""
    array = np.asarray(obs)
    if array.shape != shape:
        raise ValueError(f"shape {array.shape}")
    return array


@dataclass(frozen=True)
class Blame:
    """One environment at one moment, and the action that it was to take."""

    env_id: str
    when: str
    """Such as `at step 512 (environment 2 of 4)`."""
    action: Any = None

    def of_step(self, error: BaseException, given: Any, shape: Shape) -> NoReturn:
        """Raise what an error in a step comes from; `given` is what the environment gave."""
        if given is NOTHING:
            self._of_call(error, "step")
        if not isinstance(given, tuple) or len(given) != 5:
            self._refuse(f"{_several(given)} from step()", _FIVE)
        try:
            float(given[1])
        except (TypeError, ValueError):
            self.of_reward(given[1])
        self._of_shape(given[0], shape)

    def of_reset(self, error: BaseException, given: Any, shape: Shape) -> NoReturn:
        """The same for the beginning of an episode."""
        if given is NOTHING:
            self._of_call(error, "reset")
        if not isinstance(given, tuple) or len(given) != 2:
            self._refuse(f"{_several(given)} from reset()", _TWO)
        self._of_shape(given[0], shape)

    def of_reward(self, reward: Any) -> NoReturn:
        """Raise the error of a reward that is not a finite number."""
        self._clear_policy()
        self._refuse(f"the reward {reward!r:.60}", "a reward must be a finite number")

    def of_numbers(self, obs: NDArray[Any]) -> NoReturn:
        """Raise the error of an observation of which not every number is finite."""
        self._clear_policy()
        at = np.argwhere(~np.isfinite(obs))[0]
        where = f" at {at.tolist()}" if len(at) else ""
        self._refuse(f"an observation with {obs[tuple(at)]}{where}", "all its numbers must be finite")

    def of_mask(self, problem: MaskProblem) -> NoReturn:
        """Raise the error of an action mask that is none, or that forbids everything."""
        self._refuse(problem.what, problem.rule)

    def _of_shape(self, obs: Any, shape: Shape) -> NoReturn:
        try:
            seen = np.asarray(obs)
            told = f"of shape {seen.shape}" if seen.dtype.kind in "buif" and seen.shape != shape else ""
        except ValueError:
            told = ""
        self._refuse(f"an observation {told or f'{obs!r:.60}'}", f"it must be numbers of shape {shape}")

    def _of_call(self, error: BaseException, method: str) -> NoReturn:
        if isinstance(error, SystemExit):
            raise MosaicError(
                f"{self.env_id} called sys.exit({error.code!r}) {self.when}: an environment must not end "
                "the process that trains on it."
            ) from error
        error.add_note(f"raised in {method}() of {self.env_id} {self.when}")
        raise error

    def _clear_policy(self) -> None:
        """An environment is not to blame for what follows from an action that is not finite."""
        taken = np.asarray(0.0 if self.action is None else self.action)
        if taken.dtype.kind == "f" and not np.isfinite(taken).all():
            raise MosaicError(
                f"The policy took an action that is not finite {self.when}; try a lower learning rate."
            )

    def _refuse(self, what: str, rule: str) -> NoReturn:
        raise MosaicError(f"{self.env_id} gave {what} {self.when}, but {rule}.")


def _several(given: Any) -> str:
    return f"{len(given)} values" if isinstance(given, tuple) else f"{given!r:.60}"
