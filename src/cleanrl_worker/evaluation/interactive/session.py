"""One environment and who plays it, an episode at a time; actions as JSON says them, pictures as text."""

from __future__ import annotations

import base64
import json
import secrets
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from cleanrl_worker.evaluation.interactive.messages import GREATEST_SEED, Refusal, Request
from cleanrl_worker.evaluation.models import SavedModel
from cleanrl_worker.kit.env_errors import fit_array
from cleanrl_worker.kit.masks import MaskReader
from cleanrl_worker.kit.observations import array_observations
from cleanrl_worker.kit.vector_env import Score
from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.drawing import absent_package, as_picture, choose_drawing
from cleanrl_worker.portable.fastlane.wrapper import mission_of
from cleanrl_worker.portable.probe import describe_actions, describe_space, named
from cleanrl_worker.schemas.environments import PROCGEN, find_environment
from mosaic.contract.errors import UserError
from mosaic.contract.extras import install_advice
from mosaic.fastlane.layout import lacks_package
from mosaic.fastlane.png import encode_png

# Gymnasium tells these in its documents only.
_DOCUMENTED = {
    "CartPoleEnv": ("left", "right"),
    "MountainCarEnv": ("left", "nothing", "right"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
    "BlackjackEnv": ("stick", "hit"),
}


def plain(value: Any) -> Any:
    """An observation, an action or a reward as JSON can say it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def read_action(space: Any, given: Any) -> Any:
    """An action of `space` out of what a message holds; Refusal says why it is none."""
    if isinstance(space, spaces.Discrete):
        return _read_choice(space, given)
    array = _read_array(space.shape, given)
    if not isinstance(space, spaces.Box):
        low, high = _choice_bounds(space)
        if array.dtype.kind == "f" or (array < low).any() or (array > high).any():
            raise Refusal(
                f"The action {given!r:.80} is not valid: each number must be a whole number from "
                f"{plain(low)} to {plain(high)}."
            )
        return array.astype(space.dtype)
    action = array.astype(space.dtype)
    if not ((action >= space.low) & (action <= space.high)).all():
        raise Refusal(
            f"The action {given!r:.80} is out of bounds: "
            f"it must be between {plain(space.low)} and {plain(space.high)}."
        )
    return action


def _read_choice(space: spaces.Discrete[Any], given: Any) -> int:
    first, last = int(space.start), int(space.start + space.n - 1)
    whole = isinstance(given, int) and not isinstance(given, bool)
    if not (whole and first <= given <= last):
        raise Refusal(f"The action is {given!r:.80}, but it must be a whole number from {first} to {last}.")
    return int(given)


def _read_array(shape: tuple[int, ...], given: Any) -> Any:
    try:
        array = np.array(given)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iuf":
        raise Refusal(
            f"The action is {given!r:.80}, but it must be a list of numbers of shape {list(shape)}."
        )
    if array.shape != shape:
        raise Refusal(f"The action has the shape {list(array.shape)}, but it must have {list(shape)}.")
    return array


def _choice_bounds(space: Any) -> tuple[Any, Any]:
    """The least and the greatest number of each choice of several."""
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, int), np.ones(space.shape, int)
    return space.start, space.start + space.nvec - 1


def describe_action_space(env: Any) -> dict[str, Any]:
    """The actions an environment takes, with the bounds of each number of a continuous one."""
    space = env.action_space
    entry = describe_actions(space)
    if isinstance(space, spaces.Box):
        entry |= {"low": plain(space.low), "high": plain(space.high)}
    meanings = action_meanings(env)
    return entry | {"meanings": meanings} if meanings else entry


def action_meanings(env: Any) -> list[str] | None:
    """A word for each action of one choice, where the environment or its documents have them."""
    base = env.unwrapped
    count = int(getattr(env.action_space, "n", 0))
    if hasattr(base, "get_action_meanings"):
        words = [str(word).lower() for word in base.get_action_meanings()]
    elif hasattr(getattr(base, "actions", None), "__members__"):
        words = [str(name) for name in base.actions.__members__]
    else:
        words = list(_DOCUMENTED.get(type(base).__name__, ()))
    return words if words and len(words) == count else None


MAX_DIM = 1024
"""Pictures with a longer side are shrunk by a whole number."""


def make_drawable(env_id: str, kwargs: dict[str, Any]) -> Any:
    """The environment, drawing pictures when asked to if it can."""
    choose_drawing()
    try:
        return probe.make_environment(env_id, {**kwargs, "render_mode": "rgb_array"})
    except probe.ProbeError:
        # Not every class knows the word.
        return probe.make_environment(env_id, kwargs)


def look(env: Any) -> tuple[Any, str]:
    """What the environment looks like now, in three colours; None, and why, where that cannot be seen."""
    if env.render_mode != "rgb_array":
        return None, "this environment cannot render"
    try:
        picture = as_picture(env.render(), MAX_DIM)
    except Exception as error:
        # A drawing library may be missing, which says nothing about the environment's steps.
        package = absent_package(error)
        why = f"{lacks_package(package)}; {install_advice(package)}" if package else ""
        return None, why or " ".join(f"{type(error).__name__}: {error}".split())
    if picture is None:
        return None, "what this environment draws is not a picture"
    return _coloured(picture), ""


def as_frame(picture: Any, problem: str) -> dict[str, Any]:
    """The fields of a message that hold a picture, or tell why there is none."""
    if picture is None:
        return {"frame": None, "frame_problem": problem}
    # Made once, sent through a pipe and forgotten: time matters more than size.
    return {"frame": base64.b64encode(encode_png(picture, level=1)).decode()}


def _coloured(picture: Any) -> Any:
    """Three colours, also for what is grey or has a fourth channel."""
    if picture.ndim == 2:
        picture = picture[:, :, None]
    channels = 1 if picture.shape[2] == 1 else 3
    return np.ascontiguousarray(np.broadcast_to(picture[:, :, :channels], (*picture.shape[:2], 3)))


PROTOCOL = 1
_SEEDS = 2**31
Message = dict[str, Any]


class EnvSession(ABC):
    """Answers requests about one environment; who chooses its actions is for a subclass to say."""

    by: ClassVar[str]
    """Who chose the action of a step that named none."""
    begin_anew: ClassVar[str] = "send a reset"
    """What is to be done when no episode goes on."""

    def __init__(self, env: Any, seed: int | None, frames: bool, max_episode_steps: int | None) -> None:
        self._env = env
        self._frames = frames
        self._limit = max_episode_steps or float("inf")
        self._next_seed = secrets.randbelow(_SEEDS) if seed is None else seed
        self._playing = False
        self._seed, self._return, self._length = 0, 0.0, 0

    @abstractmethod
    def _about(self) -> Message:
        """What `init` says of who plays."""

    @abstractmethod
    def _see(self, obs: Any, info: Any) -> None:
        """Take in an observation; no `info` where an episode ended."""

    @abstractmethod
    def _own_action(self) -> Any:
        """The action of a step that names none."""

    def _judge(self) -> Message | None:
        """What `next` of an answer says."""
        return None

    def _told(self, obs: Any) -> Any:
        """An observation as an answer has it."""
        return plain(obs)

    def _begin(self, seed: int) -> None:  # noqa: B027 - not everybody prepares
        """An episode is about to begin."""

    def _require_allowed(self, action: Any) -> None:  # noqa: B027 - or forbids
        """Refusal for an action that the environment forbids now."""

    def _take(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        """One step of the environment."""
        obs, reward, terminated, truncated, info = self._env.step(action)
        return obs, float(reward), bool(terminated), bool(truncated), info

    def init(self) -> Message:
        """What a caller has to know before the first episode."""
        env = self._env
        return {
            "type": "init",
            "protocol": PROTOCOL,
            "observation_space": describe_space(env.observation_space),
            "action_space": describe_action_space(env),
            "max_episode_steps": env.spec.max_episode_steps if env.spec else None,
            "draws": bool(env.render_mode == "rgb_array"),
            "fps": env.metadata.get("render_fps"),
            **self._about(),
        }

    def reset(self, request: Request) -> Message:
        """A new episode, from the seed that is given or from the next one."""
        self._seed = self._next_seed if request.seed is None else request.seed
        self._next_seed = (self._seed + 1) % (GREATEST_SEED + 1)
        self._playing = False
        self._begin(self._seed)
        try:
            obs, info = self._env.reset(seed=self._seed)
            self._see(obs, info)
        except Exception as error:
            raise Refusal(f"The environment cannot be reset: {named(error)}.") from error
        self._playing = True
        self._return, self._length = 0.0, 0
        answer = {"type": "ready", "seed": self._seed, "observation": self._told(obs), "next": self._judge()}
        return answer | self._mission() | self._frame(request)

    def step(self, request: Request) -> list[Message]:
        """One step, and what the episode came to when that was its last."""
        if not self._playing:
            raise Refusal(f"No episode is running: {self.begin_anew} first.")
        own = request.action is None
        action = self._own_action() if own else read_action(self._env.action_space, request.action)
        self._require_allowed(action)
        try:
            obs, reward, terminated, truncated, info = self._take(action)
            # At an end nothing is left to choose.
            self._see(obs, None if terminated or truncated else info)
        except Exception as error:
            self._playing = False
            raise Refusal(
                f"The environment cannot take this step: {named(error)}; {self.begin_anew}."
            ) from error
        self._return += reward
        self._length += 1
        truncated = truncated or self._length >= self._limit
        self._playing = not (terminated or truncated)
        answer = {
            "type": "step",
            "step": self._length,
            "action": plain(action),
            "by": self.by if own else "caller",
            "observation": self._told(obs),
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "return": self._return,
            "next": self._judge() if self._playing else None,
        }
        end = {"type": "episode_done", "return": self._return, "length": self._length, "seed": self._seed}
        return [answer | self._mission() | self._frame(request), *([] if self._playing else [end])]

    def record(self, request: Request) -> Message:
        """Record episodes from the next one on, or no more."""
        raise Refusal("Only episodes that are played by hand are recorded: start without a policy.")

    def finish(self) -> Message:
        """Keep what is to be kept; gives what `stopped` tells of it."""
        return {}

    def _mission(self) -> Message:
        """What is to be done, where the environment has words for it."""
        mission = mission_of(self._env)
        return {"mission": mission} if mission else {}

    def _frame(self, request: Request) -> Message:
        wanted = self._frames if request.frame is None else request.frame
        return as_frame(*look(self._env)) if wanted else {}

    def close(self) -> None:
        """Release what the environment holds."""
        self._env.close()


class Session(EnvSession):
    """A policy plays. Its choice for an observation is made once, told, and kept to."""

    by = "policy"

    def __init__(
        self,
        model: SavedModel,
        seed: int | None = None,
        deterministic: bool = True,
        frames: bool = False,
        max_episode_steps: int | None = None,
    ) -> None:
        known = find_environment(model.args.env_id)
        if known is not None and known.family == PROCGEN:
            raise UserError(
                f"{known.env_id} is an EnvPool environment, which cannot be played step by step: evaluate "
                "the policy with `mosaic eval`."
            )
        with model.make_envs(1) as checked:
            self._policy = model.load_policy(checked)
            self._row = np.zeros((1, *checked.observation_space.shape), checked.obs_dtype)
        self._model = model
        spec = model.spec
        game = make_drawable(model.args.env_id, json.loads(spec.env_kwargs(model.args)))
        # Rewards and ends are the game's own, whatever wrappers make of them for a learner.
        self._score, self._wrap = Score(game), spec.wrapper(model.args)
        env = self._wrap(self._score) if self._wrap else game
        super().__init__(env, seed, frames, max_episode_steps)
        _, self._read = array_observations(env.observation_space)
        self._masks = MaskReader(env.action_space) if spec.masks else None
        self._deterministic = deterministic
        self._chosen: Any = None
        self._memory = self._policy.initial_memory(1)
        # The first pass through a network is slow, and nobody waits for it yet.
        self._judge()

    def _about(self) -> Message:
        model = self._model
        return {
            "algo": model.spec.name,
            "env_id": model.args.env_id,
            "policy": model.name,
            "trained_steps": model.step,
            "deterministic": self._deterministic,
            "notes": list(self._policy.notes),
        }

    def _begin(self, seed: int) -> None:
        self._policy.seed(seed)
        self._memory = self._policy.initial_memory(1)

    def _own_action(self) -> Any:
        return self._chosen

    def _take(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        before = self._score.total
        obs, reward, terminated, truncated, info = super()._take(action)
        reward = self._score.total - before if self._wrap else reward
        if (terminated or truncated) and self._wrap and not self._score.over:
            # The learner's next episode begins within the game, as after a lost life.
            self._memory = self._policy.initial_memory(1)
            (obs, info), terminated, truncated = self._env.reset(), False, False
        return obs, reward, terminated, truncated, info

    def _require_allowed(self, action: Any) -> None:
        allowed = self._policy.allowed
        if self._masks is None or allowed is None or self._masks.allows(allowed[0], action):
            return
        mask = plain(allowed[0].astype(int))
        raise Refusal(f"The action {plain(action)!r:.80} is forbidden now; the mask is {mask!r:.200}.")

    def _see(self, obs: Any, info: Any) -> None:
        if self._masks is not None and info is not None:
            mask = self._masks.read(self._env, info)
            self._policy.allowed = None if mask is None else mask[None]
        seen = fit_array(self._read(obs) if self._read else obs, self._row.shape[1:])
        if not np.isfinite(seen).all():
            raise ValueError(f"its observation has {seen[~np.isfinite(seen)][0]}")
        self._row[0] = seen

    def _judge(self) -> Message:
        output = self._policy.judge(self._row, self._memory)
        self._chosen = self._policy.act(self._row, self._deterministic, self._memory)[0]
        told = {"value": output.values, "probabilities": output.probabilities}
        told["action_values"] = output.action_values
        return {
            "action": plain(self._chosen),
            **{name: None if rows is None else rows[0].tolist() for name, rows in told.items()},
        }
