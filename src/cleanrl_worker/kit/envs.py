"""What training and evaluation ask of environments, whatever steps them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.kit.state import State

if TYPE_CHECKING:
    from cleanrl_worker.curriculum.stages import StageNote


@dataclass(frozen=True)
class Episode:
    """A finished episode, as the game counts it."""

    total_reward: float
    length: int
    stage: StageNote | None = None
    """What its end says of the curriculum that it is part of."""
    player: str = ""
    """Whose it is, in a game of several players."""


class Step(NamedTuple):
    """What one step of all environments gave; `final_obs` has the last observation of each that finished.

    Rewards and ends are the learner's: clipped, or at each lost life, where the algorithm wants that.
    """

    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    final_obs: dict[int, NDArray[Any]]
    episodes: list[Episode]


class EnvRow(ABC):
    """Several environments, closed when a `with` block ends."""

    num_envs: int
    observation_space: Any
    """Of the arrays that are shown, one for each environment."""
    action_space: Any
    obs_dtype: Any
    """Of the arrays that are filled with observations."""
    masks: NDArray[np.bool_] | None = None
    """What each environment allows to be done next, a row for each; None where the algorithm does not ask.
    A row has a flag for each value of each choice."""

    @abstractmethod
    def render(self, index: int) -> Any:
        """The picture of one environment, if it can draw any."""

    @abstractmethod
    def close(self) -> None:
        """Release what the environments hold."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Envs(EnvRow):
    """Several environments that are stepped together.

    A finished environment is reset within the same step: the observation that comes back already belongs to
    the next episode, so each step is one to learn from; the old episode's last one is in `final_obs`.
    """

    exact = False
    """Whether a resumed run goes on in the very episodes, to the byte."""
    begun: Mapping[int, NDArray[Any]]
    """After `load`: the first observations of the environments that had to begin a new episode."""

    @property
    def stage(self) -> int | None:
        """The stage that a curriculum is in, or has drawn last, counted from 1; None without a curriculum."""
        return None

    @property
    def reached_stage(self) -> int | None:
        """The stage that was reached, whose scores compare with no others; None where they take turns."""
        return None

    @abstractmethod
    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Start all environments, each with a seed of its own, and write the observations to `out`."""

    @abstractmethod
    def step(self, actions: list[Any], out: NDArray[Any]) -> Step:
        """Take one action in each environment and write the next observations to `out`."""

    @abstractmethod
    def state(self) -> State:
        """What a resumed run needs to go on."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Go on from there, to the byte or with new episodes."""


class EpisodeEnvs(EnvRow):
    """Environments that play episodes from seeds, each in its own time: for evaluations."""

    went_on: Sequence[int] = ()
    """Where with the last step an episode ended for the learner, but not the game, as after a lost life."""

    def player_returns(self, index: int) -> Mapping[str, float]:
        """What each player of a game of several has earned in it; empty where there is one agent."""
        return {}

    @abstractmethod
    def restart(self, index: int, seed: int, out: NDArray[Any]) -> None:
        """Start an episode in one environment from a seed, and write its observation to `out`."""

    @abstractmethod
    def advance(
        self, indices: Sequence[int], actions: Sequence[Any], out: NDArray[Any]
    ) -> tuple[list[float], list[bool]]:
        """Take one action in some environments; gives the reward of each and whether its episode ended.

        One that has ended waits for `restart`. Rewards and ends are the game's own, whatever is made of them
        for a learner.
        """


@dataclass(frozen=True)
class AtariOptions:
    """How an algorithm sees games of Atari where a backend prepares the frames itself."""

    stack: int = 4
    """How many frames an observation has."""
    episodic_life: bool = True
    """Let each lost life end an episode for the learner."""
    clip_rewards: bool = True
    """Let the learner see the sign of a reward only."""
    frame_skip: int = 4
    size: int = 84
    """The height and width of the pictures that a network sees."""
    noop_max: int = 30
    """How many steps at most a game is left alone at its start."""
    sticky: float = 0.0
    """How likely the game takes the last action again instead of the next one."""
