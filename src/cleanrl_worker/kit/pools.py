"""Environments that are stepped together by compiled code: EnvPool's, and ALE's own vector of Atari games.

Both step all environments in threads of their own. Neither can say where it is: a resumed run begins new
episodes in them.
"""

from __future__ import annotations

import functools
import os
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from cleanrl_worker.kit.env_errors import Blame
from cleanrl_worker.kit.envs import AtariOptions, Envs, Episode, EpisodeEnvs, Step
from cleanrl_worker.kit.observations import array_observations
from cleanrl_worker.kit.state import State
from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.images import is_picture, picture_of
from cleanrl_worker.portable.fastlane.lane import enter_making, is_unwatched, open_lane, unwatched
from cleanrl_worker.portable.fastlane.row import TapRow
from cleanrl_worker.portable.fastlane.tap import Tap, open_tap

Array = NDArray[Any]
_DRAWN = ("envpool.atari", "envpool.box2d", "envpool.classic_control", "envpool.minigrid")
"""What EnvPool draws by itself; the drawing of its robots ends the process where there is no OpenGL."""


class Observations:
    """A batch of observations as one array, in the way of `array_observations`."""

    def __init__(self, space: Any, flat: bool) -> None:
        self._key = probe.grid_key(space)
        inner = space if self._key is None else space[self._key]
        self.space, self._read = array_observations(inner, flat)
        self._is_box = isinstance(inner, spaces.Box)
        keeps_bytes = self.space.dtype == np.uint8 and not flat
        self.dtype: Any = np.uint8 if keeps_bytes else np.float32

    def read(self, batch: Any) -> Array:
        """The observations of a batch, a row for each environment."""
        if self._key is not None:
            batch = batch[self._key]
        if self._read is None or self._is_box:
            rows = np.asarray(batch)
            return rows.reshape(len(rows), *self.space.shape).astype(self.dtype, copy=False)
        count = len(next(iter(_leaves(batch))))
        return np.stack([self._read(_row(batch, index)) for index in range(count)]).astype(self.dtype)


def _leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree.values() for leaf in _leaves(part)] if isinstance(tree, dict) else [tree]


def _row(tree: Any, index: int) -> Any:
    return {key: _row(part, index) for key, part in tree.items()} if isinstance(tree, dict) else tree[index]


@dataclass(frozen=True)
class Taken:
    """What a step gave, before anything is made of it for a learner."""

    obs: Array
    """Of all environments, also the last one of those whose episode ended."""
    rewards: Array
    """Those of the game."""
    terminated: Array
    truncated: Array
    over: Array
    """Where the game ended, not only an episode of the learner's."""
    first: Array
    """The first observation of the next episode, of each environment that was terminated or truncated."""


class PoolEnvs(Envs):
    """What both kinds have in common: counting, ends of episodes, pictures, checkpoints."""

    def __init__(self, env_id: str, num_envs: int, seen: Observations, action_space: Any, clip: bool) -> None:
        self.num_envs = num_envs
        self.observation_space = seen.space
        self.obs_dtype = seen.dtype
        self.action_space = action_space
        self.begun = {}
        self._env_id = env_id
        self._seen = seen
        self._clip = clip
        self._seed, self._resumed = 0, 0
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self._newest: Array = np.zeros((num_envs, *seen.space.shape), seen.dtype)
        self._own_taps: list[Tap] = []
        self._taps = self._open_taps()

    @abstractmethod
    def _start(self, seeds: list[int]) -> Array:
        """Begin an episode in every environment; gives the first observations."""

    @abstractmethod
    def _take(self, actions: list[Any]) -> Taken:
        """Take one action in each environment."""

    def render(self, index: int) -> Any:
        """The newest picture in what one environment shows."""
        return picture_of(self._newest[index])

    def cannot_draw(self) -> str:
        """Why there are no pictures; empty where there are."""
        shows = is_picture(self._newest)
        return "" if shows else "its observations are not pictures, and its backend does not draw"

    def reset(self, seed: int, out: Array) -> None:
        self._seed = seed
        out[:] = self._begin([seed + index for index in range(self.num_envs)])

    def _begin(self, seeds: list[int]) -> Array:
        self._returns[:], self._lengths[:] = 0.0, 0
        self._newest = self._start(seeds)
        self._check_numbers(self._newest, None)
        return self._newest

    def step(self, actions: list[Any], out: Array) -> Step:
        taken = self._take(actions)
        out[:] = taken.obs
        self._check_numbers(out, actions)
        self._returns += taken.rewards
        self._lengths += 1
        ended = np.flatnonzero(taken.terminated | taken.truncated)
        final_obs = {int(index): out[index].copy() for index in ended}
        if len(ended):
            out[ended] = taken.first
            self._check_numbers(out, None)
        episodes = [self._end_episode(int(index)) for index in np.flatnonzero(taken.over)]
        self._newest = out
        if self._taps is not None:
            self._taps.after_step(taken.rewards.tolist(), self._returns.tolist())
        rewards = np.sign(taken.rewards) if self._clip else taken.rewards
        return Step(
            rewards.tolist(), taken.terminated.tolist(), taken.truncated.tolist(), final_obs, episodes
        )

    def _end_episode(self, index: int) -> Episode:
        episode = Episode(float(self._returns[index]), int(self._lengths[index]))
        self._returns[index], self._lengths[index] = 0.0, 0
        if self._taps is not None:
            self._taps.episode_ended(index, episode.total_reward)
        return episode

    def _check_numbers(self, obs: Array, actions: list[Any] | None) -> None:
        if obs.dtype == np.uint8 or np.isfinite(obs).all():
            return
        index = int(np.argwhere(~np.isfinite(obs))[0][0])
        when = f"at step {self._lengths[index] + 1:,} of an episode (environment {index + 1})"
        Blame(self._env_id, when, None if actions is None else actions[index]).of_numbers(obs[index])

    def state(self) -> State:
        """What keeps a resumed run from playing the same episodes again."""
        return {"seed": self._seed, "resumed": self._resumed}

    def load(self, state: State) -> None:
        """Begin new episodes, others than those that the run began with."""
        self._seed, self._resumed = int(state["seed"]), int(state["resumed"]) + 1
        random = np.random.SeedSequence((self._seed, self._resumed))
        seeds = random.generate_state(self.num_envs) >> 1
        self.begun = dict(enumerate(self._begin(seeds.tolist())))

    def _open_taps(self) -> TapRow | None:
        """What shows the environments to viewers; None when the run shows nothing."""
        lane = open_lane()
        if lane is None or is_unwatched():
            return None
        enter_making(lane)
        taps: list[Tap | None] = []
        if lane.mode != "off":
            for index in range(min(self.num_envs, lane.shown.stop)):
                taps.append(open_tap(functools.partial(self.render, index), self._env_id))
        self._own_taps = [tap for tap in taps if tap is not None]
        why_not = self.cannot_draw()
        for tap in self._own_taps if why_not else ():
            tap.refuse(why_not)
        return TapRow(taps, self._own_taps[0].steps if self._own_taps else lane.unseen_steps)

    def _close_taps(self) -> None:
        for tap in self._own_taps:
            tap.close()
        # They draw by asking this object, which would keep both in memory.
        self._own_taps, self._taps = [], None


class EnvPoolTask:
    """An environment of EnvPool's, and how many are made of it."""

    def __init__(self, env_id: str, kwargs: Mapping[str, Any], atari: AtariOptions | None) -> None:
        """`atari` says how games are prepared. Raises ProbeError when EnvPool does not have it so."""
        options = {} if atari is None or not probe.is_atari(env_id) else _envpool_options(atari)
        spec, self.name, self._options = probe.find_envpool(env_id, dict(kwargs), options)
        self.family = probe.envpool_family(self.name)
        self.is_atari = self.family == "envpool.atari"
        self.observation_space, actions = probe.envpool_spaces(spec)
        self.action_space, self._action_dtype = _plain_actions(actions)

    def make(self, seeds: list[int], draws: bool = False) -> Any:
        """Environments with a seed for each."""
        import envpool

        drawing = {"render_mode": "rgb_array"} if draws and self.family in _DRAWN else {}
        with unwatched(), warnings.catch_warnings():
            # Of bounds that lose precision, as single ones do.
            warnings.simplefilter("ignore")
            pool = envpool.make(
                self.name,
                env_type="gymnasium",
                num_envs=len(seeds),
                num_threads=_threads(len(seeds)),
                seed=seeds,
                **self._options,
                **drawing,
            )
            assert pool.observation_space is not None and pool.action_space is not None
        return pool

    def as_batch(self, actions: Sequence[Any]) -> Array:
        """Actions as EnvPool takes them."""
        return np.asarray(actions, dtype=self._action_dtype)

    def no_action(self, count: int) -> Array:
        """What is said to environments that begin an episode, which they do not look at."""
        return np.zeros((count, *self.action_space.shape), self._action_dtype)


def _plain_actions(space: Any) -> tuple[Any, Any]:
    """A space of actions in the numbers of gymnasium's own environments, and those that EnvPool takes."""
    if isinstance(space, spaces.Box) and space.dtype == np.float64:
        bounds = space.low.astype(np.float32), space.high.astype(np.float32)
        return spaces.Box(*bounds, dtype=np.float32), space.dtype
    return space, space.dtype


def _envpool_options(atari: AtariOptions) -> dict[str, Any]:
    # Rewards are not clipped yet: episodes are counted by them.
    return {
        "stack_num": atari.stack,
        "frame_skip": atari.frame_skip,
        "img_height": atari.size,
        "img_width": atari.size,
        "gray_scale": True,
        "noop_max": atari.noop_max,
        "episodic_life": atari.episodic_life,
        "repeat_action_probability": atari.sticky,
    }


def _threads(num_envs: int) -> int:
    return min(num_envs, len(os.sched_getaffinity(0)))


class EnvPoolEnvs(PoolEnvs):
    """EnvPool's environments.

    EnvPool resets a finished environment at its next step, which takes no action. That step is made at once
    and for the finished ones alone, so nobody learns from it.
    """

    def __init__(self, env_id: str, num_envs: int, task: EnvPoolTask, flat: bool, clip: bool) -> None:
        self._task = task
        self._pool: Any = None
        seen = Observations(task.observation_space, flat)
        super().__init__(env_id, num_envs, seen, task.action_space, clip and task.is_atari)

    def _start(self, seeds: list[int]) -> Array:
        self._pool = self._task.make(seeds, draws=self._taps is not None)
        obs, _ = self._pool.reset()
        return self._seen.read(obs)

    def _take(self, actions: list[Any]) -> Taken:
        obs, rewards, terminated, truncated, info = self._pool.step(self._task.as_batch(actions))
        ended = np.flatnonzero(terminated | truncated).astype(np.int32)
        # Of a lost life only the learner is told that it ended an episode.
        over = info["terminated"].astype(bool) if self._task.is_atari else terminated
        first: Array = self._newest[:0]
        if len(ended):
            first = self._seen.read(self._pool.step(self._task.no_action(len(ended)), ended)[0])
        return Taken(
            self._seen.read(obs), rewards.astype(np.float64), terminated, truncated, over | truncated, first
        )

    def cannot_draw(self) -> str:
        return "" if self._task.family in _DRAWN else super().cannot_draw()

    def render(self, index: int) -> Any:
        if self._task.family in _DRAWN and self._pool.render_mode is not None:
            return self._pool.render(env_ids=index)[0]
        return super().render(index)

    def close(self) -> None:
        self._close_taps()
        if self._pool is not None:
            self._pool.close()
            self._pool = None


class EnvPoolEpisodes(EpisodeEnvs):
    """Episodes of EnvPool's environments, each from a seed of its own.

    EnvPool takes seeds only when it is made, so each episode has a pool of one environment.
    """

    def __init__(self, num_envs: int, task: EnvPoolTask, flat: bool) -> None:
        self.num_envs = num_envs
        self._task = task
        self._seen = Observations(task.observation_space, flat)
        self.observation_space, self.obs_dtype = self._seen.space, self._seen.dtype
        self.action_space = task.action_space
        self._pools: list[Any] = [None] * num_envs

    def restart(self, index: int, seed: int, out: Array) -> None:
        if self._pools[index] is not None:
            self._pools[index].close()
        self._pools[index] = pool = self._task.make([seed], draws=True)
        out[index] = self._seen.read(pool.reset()[0])[0]

    def advance(
        self, indices: Sequence[int], actions: Sequence[Any], out: Array
    ) -> tuple[list[float], list[bool]]:
        rewards, ended = [], []
        for index, action in zip(indices, actions, strict=True):
            given = self._pools[index].step(self._task.as_batch([action]))
            out[index] = self._seen.read(given[0])[0]
            rewards.append(float(given[1][0]))
            ended.append(bool(given[2][0] or given[3][0]))
        return rewards, ended

    def render(self, index: int) -> Any:
        """The picture of one environment, if EnvPool draws it."""
        pool = self._pools[index]
        return None if pool.render_mode is None else pool.render(env_ids=0)[0]

    def close(self) -> None:
        for pool in self._pools:
            if pool is not None:
                pool.close()


class AleEnvs(PoolEnvs):
    """Atari games in ALE's own vector.

    Its games go on after a lost life, which ends an episode for the learner alone.
    """

    def __init__(self, env_id: str, num_envs: int, kwargs: Mapping[str, Any], atari: AtariOptions) -> None:
        from ale_py.vector_env import AtariVectorEnv

        self._lives_end = atari.episodic_life
        self._games = AtariVectorEnv(
            num_envs=num_envs,
            num_threads=_threads(num_envs),
            autoreset_mode=AutoresetMode.SAME_STEP,
            img_height=atari.size,
            img_width=atari.size,
            stack_num=atari.stack,
            frameskip=atari.frame_skip,
            noop_max=atari.noop_max,
            reward_clipping=False,
            **{"repeat_action_probability": atari.sticky, **probe.find_ale(env_id, dict(kwargs))},
        )
        self._lives: Array = np.zeros(num_envs, np.int32)
        seen = Observations(self._games.single_observation_space, flat=False)
        super().__init__(env_id, num_envs, seen, self._games.single_action_space, atari.clip_rewards)

    def _start(self, seeds: list[int]) -> Array:
        obs, info = self._games.reset(seed=np.asarray(seeds))
        self._lives = info["lives"]
        return self._seen.read(obs)

    def _take(self, actions: list[Any]) -> Taken:
        obs, rewards, terminated, truncated, info = self._games.step(np.asarray(actions, np.int64))
        over = terminated | truncated
        # Some games show no life at all for some frames before they end.
        lost = (info["lives"] < self._lives) & (info["lives"] > 0) & ~over
        self._lives = info["lives"]
        if self._lives_end:
            terminated = terminated | lost
        first = obs[terminated | truncated]
        if over.any():
            obs = obs.copy()
            obs[over] = info["final_obs"][over]
        return Taken(obs, rewards.astype(np.float64), terminated, truncated, over, first)

    def close(self) -> None:
        self._close_taps()
        self._games.close()
