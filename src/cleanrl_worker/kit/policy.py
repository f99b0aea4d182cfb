"""What every policy can do, whichever library computes its networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Spaces(Protocol):
    """What a policy must know of its environments."""

    observation_space: Any
    action_space: Any


@dataclass(frozen=True)
class PolicyOutput:
    """What a policy computes for observations, a row for each; None where it has no such output."""

    values: Floats | None = None
    """The return it expects."""
    action_values: Floats | None = None
    """The return it expects after each action."""
    probabilities: Floats | None = None
    """How likely it takes each action; several choices made at once stand one after the other."""


class Policy(ABC):
    """Chooses actions: always the best it knows, or at random as in training.

    Random choices come from a generator of its own, so that playing leaves the run's numbers alone. A policy
    with memory has it in one array with a row for each environment, which the caller holds: it begins as
    `initial_memory` and begins anew with each episode.
    """

    normaliser: Callable[[Floats], Floats] | None = None
    allowed: NDArray[np.bool_] | None = None
    """What may be done at the next observations, a row for each, as the environments say where the algorithm
    asks for it; None: everything."""
    notes: tuple[str, ...] = ()
    """What a person should know of this policy before judging it, a sentence each."""

    @abstractmethod
    def seed(self, seed: int) -> None:
        """Let random choices begin anew from a seed."""

    def initial_memory(self, rows: int) -> Floats | None:
        """The memory at the start of as many episodes; None for a policy without memory."""
        return None

    @abstractmethod
    def act(self, obs: NDArray[Any], deterministic: bool = True, memory: Floats | None = None) -> list[Any]:
        """An action for each observation, of the form that the environment takes.

        `memory`, a row for each observation, becomes what it is after them.
        """

    @abstractmethod
    def judge(self, obs: NDArray[Any], memory: Floats | None = None) -> PolicyOutput:
        """What it computes for each observation; the memory stays as it is."""
