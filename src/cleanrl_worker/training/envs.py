"""Several environments stepped together."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from cleanrl_worker import probe
from cleanrl_worker.fastlane.drawing import choose_drawing
from cleanrl_worker.fastlane.row import take_taps
from cleanrl_worker.schemas.catalog import EnvironmentEntry, check_fit
from cleanrl_worker.training.observations import array_observations
from cleanrl_worker.training.quick_discrete import quicken
from cleanrl_worker.training.replaying import EpisodeTape, random_state
from cleanrl_worker.training.state import State
from cleanrl_worker.training.video import RecordedEnv, warn
from mosaic.analytics.film import require_av
from mosaic.contract.errors import UserError, closest


@dataclass(frozen=True)
class Episode:
    """A finished episode."""

    total_reward: float
    length: int


@dataclass(frozen=True)
class Step:
    """What one step of all environments gave; `final_obs` has the last observation of each that finished."""

    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    final_obs: dict[int, NDArray[Any]]
    episodes: list[Episode]


class VectorEnv:
    """Environments in one process, without the copies and dictionaries of a general vector environment.

    A finished environment is reset within the same step: the observation that comes back already belongs
    to the next episode, so each step is one to learn from; the old episode's last one is in `final_obs`.
    Observations are arrays of `observation_space`, whatever the environments show.
    """

    def __init__(self, envs: list[gymnasium.Env[Any, Any]], record: bool = False) -> None:
        """`record`: leave videos of the first environment."""
        self._whole = envs
        watched, self._taps = take_taps(envs)
        self._envs, self._limit = _peel(watched)
        for env in self._envs:
            quicken(env)
        self.num_envs = len(envs)
        self.observation_space, self._read = array_observations(envs[0].observation_space)
        self.action_space: Any = envs[0].action_space
        self._returns = [0.0] * len(envs)
        self._lengths = [0] * len(envs)
        self._tapes = [EpisodeTape() for _ in envs]
        self._recorder = RecordedEnv(self._envs[0], self._tapes[0], len(envs)) if record else None
        if self._recorder is not None:
            self._envs[0] = self._recorder

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Start all environments, each with a seed of its own, and write the observations to `out`."""
        for index in range(self.num_envs):
            self.restart(index, seed + index, out)

    def restart(self, index: int, seed: int, out: NDArray[Any]) -> None:
        """Start an episode in one environment from a seed, and write its observation to `out`."""
        self._tapes[index].begin(seed=seed)
        obs = self._envs[index].reset(seed=seed)[0]
        out[index] = self._read(obs) if self._read else obs
        self._returns[index], self._lengths[index] = 0.0, 0

    def step(self, actions: list[Any], out: NDArray[Any]) -> Step:
        """Take one action in each environment and write the next observations to `out`."""
        rewards, terminations, truncations = [], [], []
        final_obs: dict[int, NDArray[Any]] = {}
        episodes: list[Episode] = []
        for index, env in enumerate(self._envs):
            self._tapes[index].actions.append(actions[index])
            obs, reward, terminated, truncated, _ = env.step(actions[index])
            reward = float(reward)
            self._returns[index] += reward
            self._lengths[index] += 1
            truncated = truncated or self._lengths[index] >= self._limit
            if terminated or truncated:
                final_obs[index] = np.array(self._read(obs) if self._read else obs)
                episodes.append(Episode(self._returns[index], self._lengths[index]))
                if self._taps is not None:
                    self._taps.episode_ended(index, self._returns[index])
                self._returns[index], self._lengths[index] = 0.0, 0
                self._tapes[index].begin(random=random_state(env))
                obs = env.reset()[0]
            out[index] = self._read(obs) if self._read else obs
            rewards.append(reward)
            terminations.append(bool(terminated))
            truncations.append(bool(truncated))
        if self._taps is not None:
            self._taps.after_step(rewards, self._returns)
        return Step(rewards, terminations, truncations, final_obs, episodes)

    def state(self) -> State:
        """What brings the environments back here: how each episode began, and the actions since."""
        return {"episodes": [tape.state() for tape in self._tapes]}

    def load(self, state: State) -> None:
        """Play each episode again up to where it was."""
        if self._recorder is not None:
            self._recorder.drop()
        for index, (env, tape, held) in enumerate(
            zip(self._envs, self._tapes, state["episodes"], strict=True)
        ):
            tape.load(held)
            self._returns[index], self._lengths[index] = tape.replay(env), len(tape.actions)

    def close(self) -> None:
        """Release what the environments hold."""
        for env in self._whole:
            env.close()

    def __enter__(self) -> VectorEnv:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _peel(envs: list[gymnasium.Env[Any, Any]]) -> tuple[list[gymnasium.Env[Any, Any]], float]:
    """The environments without gymnasium's own outer wrappers, and the time limit that was among them.

    They check what cannot go wrong here, and a step through them takes as long as a step of CartPole.
    """
    limit, peeled = math.inf, list(envs)
    while isinstance(peeled[0], OrderEnforcing | PassiveEnvChecker | TimeLimit):
        if isinstance(peeled[0], TimeLimit):
            limit = min(limit, peeled[0]._max_episode_steps)
        peeled = [env.env for env in peeled]  # type: ignore[attr-defined]
    return peeled, limit


def make_envs(
    algo: str, env_id: str, num_envs: int, env_kwargs: str = "{}", capture_video: bool = False
) -> VectorEnv:
    """`num_envs` copies of an environment whose spaces `algo` can take; else UserError says why not."""
    if capture_video:
        require_av("capture_video")
        choose_drawing()
    with contextlib.ExitStack() as made:
        envs: list[gymnasium.Env[Any, Any]] = []
        try:
            kwargs = probe.parse_kwargs(env_kwargs)
            for _ in range(num_envs):
                envs.append(probe.make_environment(env_id, kwargs))
                made.callback(envs[-1].close)
                if len(envs) == 1:
                    entry = probe.describe_environment(env_id, envs[0])
                    check_fit(algo, EnvironmentEntry.from_json(env_id, entry))
                    if capture_video and _can_render(env_id, envs[0]):
                        envs[0].close()
                        envs[0] = probe.make_environment(env_id, {**kwargs, "render_mode": "rgb_array"})
                        made.callback(envs[0].close)
        except probe.ProbeError as error:
            near = (
                "" if ":" in env_id or env_id in gymnasium.registry else closest(env_id, gymnasium.registry)
            )
            text = f"There is no environment '{env_id}'{near}" if near else str(error)
            raise UserError(text) from error
        record = capture_video and envs[0].render_mode == "rgb_array"
        made.pop_all()
        return VectorEnv(envs, record)


def _can_render(env_id: str, env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment can draw itself as a picture; one that cannot is said aloud."""
    if "rgb_array" in env.metadata.get("render_modes", ()):
        return True
    warn(f"Videos are off: {env_id} cannot draw pictures (it has no render mode 'rgb_array').")
    return False
