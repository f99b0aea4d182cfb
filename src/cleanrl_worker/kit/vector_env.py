"""Several environments stepped together."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from cleanrl_worker.curriculum.schedule import Schedule
from cleanrl_worker.curriculum.stages import Curriculum, DrawnTasks, StageEnvs
from cleanrl_worker.kit.env_errors import LARGEST, NOTHING, Blame, Shape, fit_array
from cleanrl_worker.kit.envs import Envs, Episode, EpisodeEnvs, Step
from cleanrl_worker.kit.episode_tape import EpisodeTape, random_state
from cleanrl_worker.kit.making import EnvMaker
from cleanrl_worker.kit.masks import MaskProblem, MaskReader
from cleanrl_worker.kit.observations import array_observations
from cleanrl_worker.kit.quickening import quicken
from cleanrl_worker.kit.state import State
from cleanrl_worker.kit.video import RecordedEnv, warn
from cleanrl_worker.portable.fastlane.wrapper import bare, take_taps

Wrap = Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]


class Score(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts a game as the game counts itself, beneath the wrappers that change it for the learner."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.total, self.length = 0.0, 0
        self.over = True
        """Whether the next reset begins a new game."""

    def reset(self, **options: Any) -> Any:
        self.total, self.length, self.over = 0.0, 0, False
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self.total += float(result[1])
        self.length += 1
        self.over = bool(result[2] or result[3])
        return result


class VectorEnv(Envs, EpisodeEnvs):
    """Python environments in one process, without the copies and dictionaries of a general vector.

    Observations are arrays of `observation_space`, whatever the environments show. With a curriculum an
    environment whose episode has ended may be another one from its next episode on.
    """

    exact = True

    def __init__(
        self,
        envs: list[gymnasium.Env[Any, Any]],
        record: bool = False,
        curriculum: Curriculum | DrawnTasks | None = None,
        stage_envs: StageEnvs | None = None,
        flat: bool = False,
        wrap: Wrap | None = None,
        masked: bool = False,
    ) -> None:
        """`record`: leave videos of the first one. `stage_envs` has what a curriculum asks for. `flat`: let
        all observations be vectors. `wrap` changes each environment for the learner; episodes are counted
        beneath it. `masked`: read which actions are allowed."""
        self._whole = envs
        self._curriculum = curriculum
        self._stage_envs = stage_envs
        self._seed = 0
        watched, self._taps = take_taps(envs)
        self._wrap = wrap
        self._envs: list[gymnasium.Env[Any, Any]] = []
        self._limits: list[float] = []
        self._scores: list[Score | None] = []
        for env in watched:
            fitted, limit, score = self._fit(env)
            self._envs.append(fitted)
            self._limits.append(limit)
            self._scores.append(score)
        self.num_envs = len(envs)
        self._all = range(len(envs))
        seen: Any = (self._envs if wrap else envs)[0].observation_space
        self.observation_space, self._read = array_observations(seen, flat)
        keeps_bytes = self.observation_space.dtype == np.uint8 and not flat
        self.obs_dtype: Any = np.uint8 if keeps_bytes else np.float32
        self.begun: dict[int, NDArray[Any]] = {}
        self._shape: Shape = self.observation_space.shape
        self._zeros: NDArray[np.float32] | None = None
        if not keeps_bytes:
            self._zeros = np.zeros(len(envs) * math.prod(self._shape), dtype=np.float32)
        self.action_space: Any = envs[0].action_space
        self._masks = MaskReader(self.action_space) if masked else None
        if self._masks is not None:
            self.masks = np.ones((len(envs), self._masks.size), bool)
        self._told_masks = False
        self._returns = [0.0] * len(envs)
        self._lengths = [0] * len(envs)
        self._agents = sum(len(getattr(env.unwrapped, "players", "1")) for env in envs)
        self._tapes = [EpisodeTape() for _ in envs]
        self._recorder = RecordedEnv(self._envs[0], self._tapes[0], len(envs)) if record else None
        if self._recorder is not None:
            self._envs[0] = self._recorder

    def _fit(self, env: gymnasium.Env[Any, Any]) -> tuple[gymnasium.Env[Any, Any], float, Score | None]:
        """An environment as it is stepped, its time limit where that is counted here, and what counts it."""
        if self._wrap is not None:
            score = Score(env)
            return self._wrap(score), math.inf, score
        peeled, limit = _peel(env)
        quicken(peeled)
        return peeled, limit, None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        self._seed = seed
        for index in range(self.num_envs):
            if self._curriculum is not None:
                self._curriculum.draw()
                self._turn(self._curriculum, index)
            self.restart(index, seed + index, out)
        if self._masks is not None and not self._told_masks:
            spec = self._whole[0].spec
            warn(
                f"{spec.id if spec else 'The environment'} provides no action masks, neither in "
                "info['action_mask'] nor with action_masks(): all actions are allowed."
            )

    def restart(self, index: int, seed: int, out: NDArray[Any]) -> None:
        out[index] = self._reset(index, seed)
        self._returns[index], self._lengths[index] = 0.0, 0

    def step(self, actions: list[Any], out: NDArray[Any]) -> Step:
        for index in self._all:
            self._tapes[index].actions.append(actions[index])
        rewards, terminated, truncated = self._take_steps(self._all, actions, out)
        final_obs: dict[int, NDArray[Any]] = {}
        episodes: list[Episode] = []
        if True in terminated or True in truncated:
            for index in self._all:
                if terminated[index] or truncated[index]:
                    final_obs[index] = out[index].copy()
                    if self._game_over(index):
                        episodes.append(self._end_episode(index))
                        out[index] = self._begin_episode(index)
                    else:
                        out[index] = self._go_on(index)
        if self._taps is not None:
            self._taps.after_step(rewards, self._returns, self._agents)
        return Step(rewards, terminated, truncated, final_obs, episodes)

    def advance(
        self, indices: Sequence[int], actions: Sequence[Any], out: NDArray[Any]
    ) -> tuple[list[float], list[bool]]:
        # No checkpoint can hold these episodes, so no tape has their actions.
        before = [self._returns[index] for index in indices]
        rewards, terminated, truncated = self._take_steps(indices, actions, out)
        ended, went_on = [], []
        latest = [0.0] * self.num_envs
        for at, index in enumerate(indices):
            if self._scores[index] is not None:
                rewards[at] = self._returns[index] - before[at]
            latest[index] = rewards[at]
            cut = terminated[at] or truncated[at]
            done = cut and self._game_over(index)
            if cut and not done:
                out[index] = self._go_on(index)
                went_on.append(index)
            if done and self._taps is not None:
                self._taps.episode_ended(index, self._returns[index])
            ended.append(done)
        if self._taps is not None:
            self._taps.after_step(latest, self._returns)
        self.went_on = went_on
        return rewards, ended

    def _take_steps(
        self, indices: Sequence[int], actions: Sequence[Any], out: NDArray[Any]
    ) -> tuple[list[float], list[bool], list[bool]]:
        """One step of some environments: what it gives can be learned from, or an error names it."""
        # All that a step costs beside the environment itself: one loop, and no call that can be spared, as
        # that of `zip` with its check.
        assert len(actions) == len(indices), f"{len(actions)} actions for {len(indices)} environments"
        envs, read, shape = self._envs, self._read, self._shape
        scores, returns, lengths, limits = self._scores, self._returns, self._lengths, self._limits
        masked = self._masks is not None
        rewards, terminations, truncations = [], [], []
        for at, index in enumerate(indices):
            action, given = actions[at], NOTHING
            try:
                given = envs[index].step(action)
                obs, reward, terminated, truncated, info = given
                reward = float(reward)
                if read is not None:
                    obs = read(obs)
                if getattr(obs, "shape", None) != shape:
                    obs = fit_array(obs, shape)
                out[index] = obs
            except (Exception, SystemExit) as error:
                self._blame(index, action).of_step(error, given, shape)
            if not -LARGEST <= reward <= LARGEST:
                self._blame(index, action).of_reward(reward)
            score = scores[index]
            if score is None:
                returns[index] += reward
                lengths[index] += 1
            else:
                returns[index], lengths[index] = score.total, score.length
            rewards.append(reward)
            terminations.append(bool(terminated))
            truncations.append(bool(truncated) or lengths[index] >= limits[index])
            # At an end nothing is left to choose.
            if masked and not (terminations[-1] or truncations[-1]):
                self._read_mask(index, info, action)
        # A number that is not finite makes the sum one that is not 0.
        if self._zeros is not None and out.ravel().dot(self._zeros) != 0.0:
            for index, action in zip(indices, actions, strict=True):
                if not np.isfinite(out[index]).all():
                    self._blame(index, action).of_numbers(out[index])
        return rewards, terminations, truncations

    def _read_mask(self, index: int, info: Any, action: Any = None) -> None:
        """Note what an environment allows to be done next."""
        assert self._masks is not None and self.masks is not None
        try:
            mask = self._masks.read(self._envs[index], info)
        except MaskProblem as problem:
            self._blame(index, action).of_mask(problem)
        self._told_masks = self._told_masks or mask is not None
        self.masks[index] = True if mask is None else mask

    def _game_over(self, index: int) -> bool:
        """Whether an episode that ended for the learner ended the game too: a lost life does not."""
        score = self._scores[index]
        return score is None or score.over

    def _go_on(self, index: int) -> Any:
        """Begin the learner's next episode within the same game; gives its observation."""
        self._tapes[index].mark()
        return self._first_obs(index, {})

    def _blame(self, index: int, action: Any = None) -> Blame:
        """What an error says of an environment that is taking an action, or none as it is being reset."""
        spec, tape = self._whole[index].spec, self._tapes[index]
        steps = (tape.steps_before + len(tape.actions)) * self.num_envs
        when = f"at step {steps:,}" if steps else f"at step {max(1, self._lengths[index]):,} of an episode"
        if action is None:
            when = f"in reset() after {steps:,} steps"
        if self.num_envs > 1:
            when += f" (environment {index + 1} of {self.num_envs})"
        return Blame(spec.id if spec else type(self._envs[index].unwrapped).__name__, when, action)

    def bare(self, index: int) -> Any:
        """One environment without any wrapper."""
        return self._whole[index].unwrapped

    def player_returns(self, index: int) -> Mapping[str, float]:
        match = self.bare(index)
        return dict(zip(match.players, match.totals, strict=True)) if hasattr(match, "players") else {}

    def render(self, index: int) -> Any:
        return self._envs[index].render()

    def _end_episode(self, index: int) -> Episode:
        """Count an episode that has ended."""
        total, length = self._returns[index], self._lengths[index]
        self._returns[index], self._lengths[index] = 0.0, 0
        if self._taps is not None:
            self._taps.episode_ended(index, total)
        if self._curriculum is None:
            return Episode(total, length)
        return Episode(total, length, self._curriculum.episode_ended(index, total, length, self._lengths))

    def _begin_episode(self, index: int) -> Any:
        """Start the next episode, of the next stage if the curriculum has gone on; gives its observation."""
        curriculum, number = self._curriculum, self._tapes[index].number + 1
        if curriculum is not None and self._turn(curriculum, index):
            return self._reset(index, curriculum.first_seed(self._seed, index, number))
        random = random_state(self._envs[index])
        if random is None:
            # A generator that nobody can read: a seed for each episode makes it one that can be repeated.
            seeds = np.random.SeedSequence((self._seed, index, number)).generate_state(1)
            return self._reset(index, int(seeds[0]) >> 1)
        return self._reset(index, None, random)

    def _reset(self, index: int, seed: int | None, random: State | None = None) -> Any:
        """Start an episode from a seed, or from what the generator is at now; gives its observation."""
        self._tapes[index].begin(seed, random)
        return self._first_obs(index, {"seed": seed})

    def _first_obs(self, index: int, options: dict[str, Any]) -> Any:
        given: Any = NOTHING
        try:
            given = self._envs[index].reset(**options)
            obs, info = given
            seen = fit_array(self._read(obs) if self._read else obs, self._shape).astype(self.obs_dtype)
        except (Exception, SystemExit) as error:
            self._blame(index).of_reset(error, given, self._shape)
        if not np.isfinite(seen).all():
            self._blame(index).of_numbers(seen)
        if self._masks is not None:
            self._read_mask(index, info)
        return seen

    def _turn(self, curriculum: Curriculum | DrawnTasks, index: int) -> bool:
        """Let an environment be of the stage that the curriculum is in; False when it is already."""
        if curriculum.playing[index] == curriculum.index:
            return False
        curriculum.playing[index] = curriculum.index
        self._swap(index, curriculum.index)
        return True

    def _swap(self, index: int, stage: int) -> None:
        """Put another environment in the place of one."""
        assert self._stage_envs is not None
        recorder = self._recorder if index == 0 else None
        whole = self._stage_envs.swap(index, self._whole[index], stage, recorder is not None)
        env, self._limits[index], self._scores[index] = self._fit(bare(whole))
        if recorder is not None:
            recorder.env = env
        self._whole[index], self._envs[index] = whole, recorder or env

    @property
    def stage(self) -> int | None:
        return None if self._curriculum is None else self._curriculum.index + 1

    @property
    def reached_stage(self) -> int | None:
        return None if self._curriculum is None or self._curriculum.in_turn else self.stage

    def state(self) -> State:
        """What brings the environments back here: how each episode began, and the actions since."""
        tapes = zip(self._tapes, self._returns, strict=True)
        held = {"seed": self._seed, "episodes": [tape.state(total) for tape, total in tapes]}
        if self.masks is not None:
            held["masks"] = self.masks
        return held if self._curriculum is None else {**held, "curriculum": self._curriculum.state()}

    def load(self, state: State) -> None:
        """Play each episode again up to where it was."""
        if self._recorder is not None:
            self._recorder.drop()
        if self._curriculum is not None and "curriculum" in state:
            self._load_curriculum(self._curriculum, state["curriculum"])
        self._seed = state.get("seed", self._seed)
        if self.masks is not None:
            self.masks[:] = state["masks"]
        for index, (env, tape, held) in enumerate(
            zip(self._envs, self._tapes, state["episodes"], strict=True)
        ):
            tape.load(held)
            score = self._scores[index]
            total = tape.replay(env, None if score is None else functools.partial(getattr, score, "total"))
            if total is None:
                total = 0.0
                self.begun[index] = self._begin_episode(index)
            self._returns[index] = total
            self._lengths[index] = len(tape.actions) if score is None else score.length
        if self.begun:
            spec = self._whole[0].spec
            warn(
                f"{spec.id if spec else 'The environment'} does not repeat an episode from its seed: the "
                "run continues with new episodes, and will not end with the same weights as one that was "
                "never stopped."
            )

    def _load_curriculum(self, curriculum: Curriculum | DrawnTasks, state: State) -> None:
        """Let each environment be the one that its episode was in."""
        before = curriculum.playing
        curriculum.load(state)
        for index, (was, at) in enumerate(zip(before, curriculum.playing, strict=True)):
            if was != at:
                self._swap(index, at)

    def close(self) -> None:
        kept = self._stage_envs.kept if self._stage_envs is not None else []
        for env in (*self._whole, *(other for other in kept if other not in self._whole)):
            env.close()


def _peel(env: gymnasium.Env[Any, Any]) -> tuple[gymnasium.Env[Any, Any], float]:
    """An environment without gymnasium's own outer wrappers, and the time limit that was among them.

    They check what cannot go wrong here, and a step through them takes as long as a step of CartPole.
    """
    limit = math.inf
    while isinstance(env, OrderEnforcing | PassiveEnvChecker | TimeLimit):
        if isinstance(env, TimeLimit):
            limit = min(limit, env._max_episode_steps)
        env = env.env
    return env, limit


def make_envs(
    algo: str,
    env_id: str,
    num_envs: int,
    env_kwargs: str = "{}",
    capture_video: bool = False,
    schedule: Schedule | None = None,
    flat: bool = False,
    wrap: Wrap | None = None,
    masked: bool = False,
) -> VectorEnv:
    """`num_envs` copies of an environment whose spaces `algo` can take; else UserError says why not.

    With a schedule they begin as its first stage and become the later ones.
    """
    maker = EnvMaker(algo, env_kwargs, capture_video)
    first_id = schedule.stages[0].env_id if schedule is not None else env_id
    with contextlib.ExitStack() as made:
        envs: list[gymnasium.Env[Any, Any]] = []
        for index in range(num_envs):
            envs.append(maker.make(first_id))
            made.callback(envs[-1].close)
            if index == 0:
                if schedule is None:
                    maker.check(first_id, envs[0])
                else:
                    maker.check_stages(schedule, envs[0])
                if maker.record:
                    envs[0].close()
                    envs[0] = maker.make(first_id, draws=True)
                    made.callback(envs[0].close)
        record = maker.record and envs[0].render_mode == "rgb_array"
        if schedule is None:
            vector = VectorEnv(envs, record, flat=flat, wrap=wrap, masked=masked)
        else:
            kind = Curriculum if schedule.sampler is None else DrawnTasks
            stage_envs = StageEnvs(schedule, maker.make, envs)
            vector = VectorEnv(envs, record, kind(schedule, num_envs), stage_envs, flat, wrap, masked)
        made.pop_all()
        return vector
