"""Games of Atari, and other environments that show pictures, as networks for images see them.

The steps of a learner are not the steps of the game: it acts on every fourth frame, a lost life ends its
episode, and it sees the sign of a reward. What the game itself counts is counted beneath these wrappers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.kit.envs import AtariOptions
from mosaic.contract.errors import UserError
from mosaic.contract.extras import install_advice

Env = gymnasium.Env[Any, Any]
Frame = NDArray[np.uint8]

SIZE, SKIP, MOST_NOOPS = AtariOptions.size, AtariOptions.frame_skip, AtariOptions.noop_max
_NOOP, _FIRE, _OTHER = 0, 1, 2
_GAME_DEFAULTS: Mapping[str, Any] = {
    "frameskip": 1,
    "repeat_action_probability": AtariOptions.sticky,
    "obs_type": "grayscale",
}


class AtariArgs(Protocol):
    """The arguments that the wrappers read."""

    episodic_life: bool
    clip_rewards: bool


def atari_defaults(env_id: str) -> Mapping[str, Any]:
    """How a game of Atari is made unless its keyword arguments say otherwise: every frame, no sticky actions,
    grey pictures. So `ALE/Pong-v5` is the game that `PongNoFrameskip-v4` is."""
    old = "NoFrameskip-v" in env_id
    return _GAME_DEFAULTS if old or env_id.startswith("ALE/") else {}


def wrap_atari(env: Env, args: AtariArgs, stack: int = 4) -> Env:
    """The environment as an agent learns in it; what is not a game of Atari only has its pictures fitted."""
    if hasattr(env.unwrapped, "ale"):
        env = AtariGame(env, args.episodic_life, args.clip_rewards)
    return Pictures(env, stack)


def atari_options(args: AtariArgs, stack: int) -> AtariOptions:
    """What `wrap_atari` does to a game, for a backend that does it itself."""
    return AtariOptions(stack, args.episodic_life, args.clip_rewards)


class AtariGame(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A game that begins with 1 to 30 no-ops and is acted on at every fourth frame.

    A frame is the brighter of the last two, as some games draw their objects in turns. With `episodic_life` a
    lost life ends the episode, and the next reset goes on with the game. Where a game waits for the fire
    button, a reset presses it. With `clip_rewards` only the sign of a reward is seen.
    """

    def __init__(self, env: Env, episodic_life: bool = True, clip_rewards: bool = True) -> None:
        super().__init__(env)
        game: Any = env.unwrapped
        # A game that was made to skip frames itself does not skip more of them here.
        self._skip = SKIP if game._frameskip == 1 else 1
        meanings = game.get_action_meanings()
        self._fires = len(meanings) > _OTHER and meanings[_FIRE] == "FIRE"
        self._lives_of: Callable[[], int] = game.ale.lives
        self._random = game
        self._episodic_life = episodic_life
        self._clip = clip_rewards
        self._lives = 0
        self._over: tuple[bool, bool] | None = None
        """Whether the game was terminated or truncated; None while it goes on."""
        self._goes_on = False
        """Whether only a life was lost, so that a reset is within the game."""
        fps = env.metadata.get("render_fps")
        if fps:
            self.metadata = {**env.metadata, "render_fps": fps / self._skip}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        if self._goes_on and seed is None:
            frame = self._act(_NOOP)[0]
            info: dict[str, Any] = {}
        else:
            frame, info = self._begin(seed, options)
        if self._fires:
            for action in (_FIRE, _OTHER):
                if self._over is None:
                    frame = self._act(action)[0]
        self._goes_on = False
        self._lives = self._lives_of()
        return frame, info

    def _begin(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, Any]:
        frame, info = self.env.reset(seed=seed, options=options)
        for _ in range(int(self._random.np_random.integers(1, MOST_NOOPS + 1))):
            frame, _, terminated, truncated, info = self.env.step(_NOOP)
            if terminated or truncated:
                frame, info = self.env.reset()
        self._over = None
        return frame, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._over is not None:
            # It ended within the reset: the learner hears of it now, so that the game is counted.
            return self._frame, 0.0, *self._over, {}
        frame, reward, info = self._act(action)
        terminated, truncated = self._over or (False, False)
        if self._episodic_life and self._over is None:
            lives = self._lives_of()
            # Some games show no life at all for some frames before they end.
            terminated = self._goes_on = 0 < lives < self._lives
            self._lives = lives
        return frame, float(np.sign(reward)) if self._clip else reward, terminated, truncated, info

    def _act(self, action: Any) -> tuple[Any, float, dict[str, Any]]:
        """One action on as many frames as one is kept for."""
        total, info = 0.0, dict[str, Any]()
        frame: Any = None
        last: Any = None
        for _ in range(self._skip):
            last = frame
            frame, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                self._over = (terminated, truncated)
                break
        self._frame = frame if last is None else np.maximum(last, frame)
        return self._frame, total, info


class Pictures(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The newest pictures of an environment, grey, 84 × 84 and one behind the other: (84, 84, stack) bytes.

    The oldest comes first. At the start of an episode all are the first one.
    """

    def __init__(self, env: Env, stack: int) -> None:
        super().__init__(env)
        self._fit = fitting(env.observation_space, env)
        self._frames: Frame = np.zeros((SIZE, SIZE, stack), np.uint8)
        self.observation_space = spaces.Box(0, 255, self._frames.shape, np.uint8)
        # Four bytes behind each other are one number: moving each one on by a place is a shift.
        self._words = self._frames.view("<u4")[:, :, 0] if stack == 4 else None

    def reset(self, **options: Any) -> tuple[Frame, Any]:
        picture, info = self.env.reset(**options)
        self._frames[:] = self._fit(picture)[:, :, None]
        return self._frames.copy(), info

    def step(self, action: Any) -> tuple[Frame, Any, bool, bool, dict[str, Any]]:
        picture, reward, terminated, truncated, info = self.env.step(action)
        if self._words is not None:
            self._words >>= 8
        else:
            self._frames[:, :, :-1] = self._frames[:, :, 1:].copy()
        self._frames[:, :, -1] = self._fit(picture)
        return self._frames.copy(), reward, terminated, truncated, info


def fitting(space: Any, env: Env) -> Callable[[Any], Frame]:
    """What makes one grey picture of 84 × 84 of an observation; UserError where that cannot be."""
    shape = space.shape
    first = len(shape) == 3 and shape[0] in (1, 3) and shape[2] not in (1, 3)
    height, width, channels = (*shape[1:], shape[0]) if first else (*shape, 1, 1)[:3]
    if len(shape) not in (2, 3) or space.dtype != np.uint8 or channels not in (1, 3):
        name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
        raise UserError(
            f"{name} returns arrays of shape {shape} and type {space.dtype}, but images must be bytes, "
            "grey or RGB; wrap it so that it returns such images."
        )
    small = (height, width) == (SIZE, SIZE)
    if small and channels == 1:
        return lambda picture: picture.reshape(SIZE, SIZE)
    cv2 = _opencv(env)

    def fit(picture: Any) -> Frame:
        if first:
            picture = picture.transpose(1, 2, 0)
        if channels == 3:
            picture = cv2.cvtColor(np.ascontiguousarray(picture), cv2.COLOR_RGB2GRAY)
        if small:
            return picture  # type: ignore[no-any-return]
        picture = picture.reshape(height, width)
        return cv2.resize(picture, (SIZE, SIZE), interpolation=cv2.INTER_AREA)  # type: ignore[no-any-return]

    return fit


def _opencv(env: Env) -> Any:
    """OpenCV, which shrinks pictures in the thread that asks for it."""
    try:
        import cv2
    except ImportError as error:
        name = env.spec.id if env.spec is not None else "this environment"
        raise UserError(f"The images of {name} are resized with OpenCV; {install_advice('cv2')}.") from error
    cv2.setNumThreads(0)
    return cv2
