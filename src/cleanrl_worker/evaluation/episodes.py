"""Playing a policy to see how good it is, also while it is trained."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.backend import Backend
from cleanrl_worker.kit.envs import EpisodeEnvs
from cleanrl_worker.kit.policy import Policy
from cleanrl_worker.kit.stopping import Stopped, StopSignals
from cleanrl_worker.kit.video import is_recorded, warn
from cleanrl_worker.portable.fastlane.lane import unwatched
from mosaic.analytics.film import Film
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import MosaicError

if TYPE_CHECKING:
    from cleanrl_worker.evaluation.models import SavedModel


EPISODE_CAP = 30_000
"""An episode of more steps is cut off: an environment may never end by itself."""


@dataclass(frozen=True)
class PlayedEpisode:
    """An episode from a seed of its own."""

    total_reward: float
    length: int
    discounted: float
    """Its return with later rewards counting less."""
    cut_off: bool = False
    """It had not ended when it was left, and counts as far as it went."""


@dataclass(frozen=True)
class Evaluation:
    """How episodes went, in the order of their seeds."""

    episodes: list[PlayedEpisode]
    players: Mapping[str, list[float]] = field(default_factory=dict)
    """In a game of several players, what each earned in these episodes; a game's return is their mean."""

    @property
    def cut_off(self) -> int:
        """How many of them had not ended when they were left, and count as far as they went."""
        return sum(episode.cut_off for episode in self.episodes)

    @property
    def returns(self) -> list[float]:
        """The return of each episode."""
        return [episode.total_reward for episode in self.episodes]

    @property
    def mean(self) -> float:
        """The mean return."""
        return statistics.fmean(self.returns)

    @property
    def std(self) -> float:
        """How far the returns lie around their mean."""
        return statistics.pstdev(self.returns)


class EpisodeFilms:
    """Leaves `<folder>/episode-<n>-seed-<seed>.mp4` of episodes on the schedule of training's videos."""

    def __init__(self, folder: Path, envs: EpisodeEnvs, frames_per_second: float) -> None:
        self._folder = folder
        self._envs = envs
        self._rate = frames_per_second
        self._films: dict[int, tuple[Path, Film]] = {}
        self._works = True
        self.first_number = 0
        """How many episodes earlier batches had."""

    def begin(self, index: int, number: int, seed: int) -> None:
        """An episode has begun in an environment; `number` counts from 0."""
        number += self.first_number
        if self._works and is_recorded(number):
            path = self._folder / f"episode-{number}-seed-{seed}.mp4"
            self._films[index] = path, Film(self._rate)
            self.look(index)

    def look(self, index: int) -> None:
        """The environment has taken a step."""
        if index not in self._films:
            return
        try:
            frame: Any = self._envs.render(index)
            self._films[index][1].add(np.asarray(frame))
        except Exception as error:
            # Drawing is the environment's own code, and may fail in any way.
            self._give_up(f"its picture cannot be drawn ({type(error).__name__}: {error})")

    def end(self, index: int) -> None:
        """The episode is over."""
        if index not in self._films:
            return
        path, film = self._films.pop(index)
        try:
            data = film.finish()
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data)
        except OSError as error:
            self._give_up(f"{path} cannot be written ({error.strerror})")

    def _give_up(self, why: str) -> None:
        self._works = False
        self._films.clear()
        warn(f"Videos are off: {' '.join(why.split())}.")


@dataclass(frozen=True)
class Limits:
    """When to leave an episode that has not ended, and the discount of its rewards."""

    steps: int | None = None
    """After so many steps of it; else after `EPISODE_CAP`."""
    until: float = math.inf
    """At this time of the monotonic clock, and no other begins."""
    gamma: float = 1.0


NO_LIMITS = Limits()


def evaluate(
    policy: Policy,
    envs: EpisodeEnvs,
    episodes: int,
    seed: int,
    deterministic: bool = True,
    check_stop: Callable[[], None] = lambda: None,
    limits: Limits = NO_LIMITS,
    films: EpisodeFilms | None = None,
) -> Evaluation:
    """Play episodes, the n-th from `seed` + n however many environments there are; `check_stop` may raise."""
    policy.seed(seed)
    game = _Game(policy, envs, episodes, seed, limits, films)
    while game.playing:
        check_stop()
        game.step(game.act(deterministic))
    return Evaluation([game.found[number] for number in sorted(game.found)], game.players)


@dataclass
class _Game:
    """The environments at play, each with an episode of its own until there is none left for it."""

    policy: Policy
    envs: EpisodeEnvs
    episodes: int
    seed: int
    limits: Limits
    films: EpisodeFilms | None
    found: dict[int, PlayedEpisode] = field(default_factory=dict)
    playing: list[int] = field(default_factory=list)
    players: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        envs, count = self.envs, self.envs.num_envs
        self._cap = self.limits.steps or EPISODE_CAP
        self._obs = np.zeros((count, *envs.observation_space.shape), dtype=envs.obs_dtype)
        self._memory = self.policy.initial_memory(count)
        self._numbers = [0] * count
        self._returns, self._discounted = [0.0] * count, [0.0] * count
        self._lengths, self._weights = [0] * count, [1.0] * count
        self._begun = 0
        for index in range(min(count, self.episodes)):
            self.playing.append(index)
            self._begin(index)

    def act(self, deterministic: bool) -> list[Any]:
        """The policy's action in each environment at play."""
        everyone = len(self.playing) == len(self._obs)
        obs = self._obs if everyone else self._obs[self.playing]
        masks = self.envs.masks
        if masks is not None:
            self.policy.allowed = masks if everyone else masks[self.playing]
        if self._memory is None:
            return self.policy.act(obs, deterministic)
        memory = self._memory[self.playing]
        actions = self.policy.act(obs, deterministic, memory)
        self._memory[self.playing] = memory
        return actions

    def step(self, actions: list[object]) -> None:
        """Take one action in each environment at play."""
        rewards, ended = self.envs.advance(self.playing, actions, out=self._obs)
        if self._memory is not None:
            # In training a lost life ends an episode, and with it what is remembered.
            for index in self.envs.went_on:
                self._memory[index] = self.policy.initial_memory(1)
        late = self.limits.until < math.inf and time.monotonic() >= self.limits.until
        gamma, cap, left = self.limits.gamma, self._cap, False
        for index, reward, done in zip(self.playing, rewards, ended, strict=True):
            self._returns[index] += reward
            self._discounted[index] += self._weights[index] * reward
            self._weights[index] *= gamma
            self._lengths[index] += 1
            if self.films is not None:
                self.films.look(index)
            if done or late or self._lengths[index] >= cap:
                left = self._end(index, done, late) or left
        if left:
            self.playing = [index for index in self.playing if self._numbers[index] >= 0]

    def _begin(self, index: int) -> None:
        number, self._begun = self._begun, self._begun + 1
        self.envs.restart(index, self.seed + number, out=self._obs)
        if self._memory is not None:
            self._memory[index] = self.policy.initial_memory(1)
        self._numbers[index] = number
        self._returns[index], self._discounted[index] = 0.0, 0.0
        self._lengths[index], self._weights[index] = 0, 1.0
        if self.films is not None:
            self.films.begin(index, number, self.seed + number)

    def _end(self, index: int, done: bool, late: bool) -> bool:
        """Note the episode and begin the next; True when there is none for this environment."""
        self.found[self._numbers[index]] = PlayedEpisode(
            self._returns[index], self._lengths[index], self._discounted[index], cut_off=not done
        )
        for player, total in self.envs.player_returns(index).items():
            self.players.setdefault(player, []).append(total)
        if self.films is not None:
            self.films.end(index)
        if late or self._begun >= self.episodes:
            self._numbers[index] = -1
            return True
        self._begin(index)
        return False


MOST_ENVS = 10
FIRST_SEED = 1_000_000
"""Added to the run's seed: episodes that training has not seen, the same in each evaluation."""


class Evaluator:
    """Plays policies in environments of its own, which are made when first needed."""

    def __init__(self, args: CommonArgs, backend: Backend, stop: StopSignals) -> None:
        self._args = args
        self._backend = backend
        self._stop = stop
        self._envs: EpisodeEnvs | None = None
        self._warned: set[str] = set()

    def play(self, name: str, load: Callable[[], SavedModel]) -> Evaluation | None:
        """How a model's episodes went; None, with a word, when that cannot be seen. May raise Stopped."""
        try:
            with self._backend.untouched():
                return self._play(load())
        except Stopped:
            raise
        except MosaicError as error:
            self._warn(f"{name} could not be evaluated: {error}")
        except Exception as error:
            # The environment is the user's, and what it does here must not cost a trained model.
            self._warn(f"{name} could not be evaluated: {type(error).__name__}: {error}")
        return None

    def _play(self, model: SavedModel) -> Evaluation:
        args = self._args
        if self._envs is None:
            with unwatched():
                self._envs = model.make_envs(min(args.eval_episodes, MOST_ENVS))
        policy = model.load_policy(self._envs)
        seed = args.seed + FIRST_SEED
        found = evaluate(policy, self._envs, args.eval_episodes, seed, check_stop=self._stop.check)
        for note in policy.notes:
            self._warn(note)
        if found.cut_off:
            self._warn(f"Episodes of an evaluation were truncated after {EPISODE_CAP} steps.")
        return found

    def _warn(self, text: str) -> None:
        line = " ".join(text.split())
        if line not in self._warned:
            self._warned.add(line)
            warn(line)

    def close(self) -> None:
        """Release the environments."""
        if self._envs is not None:
            self._envs.close()
