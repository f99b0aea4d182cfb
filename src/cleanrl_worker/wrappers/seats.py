"""What each player of a game sees: the newest pictures, and which player it is."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cleanrl_worker.kit.matches import Match
from cleanrl_worker.wrappers.atari import MOST_NOOPS, SIZE, Env, fitting
from mosaic.contract.errors import UserError

Seen = NDArray[np.uint8]


class SeatPictures(gymnasium.Wrapper[Any, Any, Any, Any]):
    """(player, 84, 84, stack + players) bytes: grey pictures, the oldest first, then a channel for each
    player, of which its own is bright.

    A game of Atari begins with 1 to 30 frames in which nobody acts, so that no two episodes need be the same,
    and is acted on at every fourth frame; a frame is the brighter of the last two.
    """

    def __init__(self, env: Env, stack: int) -> None:
        super().__init__(env)
        match = env.unwrapped
        if not isinstance(match, Match):
            name = env.spec.id if env.spec is not None else type(match).__name__
            raise UserError(f"{name} is not a multiplayer game; use a single-agent algorithm.")
        self._match, players = match, match.players
        self._fit = fitting(env.observation_space, env)
        self._skip = match.skip
        self._stack = stack
        self._frames: Seen = np.zeros((SIZE, SIZE, stack), np.uint8)
        self._seen: Seen = np.zeros((len(players), SIZE, SIZE, stack + len(players)), np.uint8)
        for seat in range(len(players)):
            self._seen[seat, :, :, stack + seat] = 255
        self.observation_space = spaces.Box(0, 255, self._seen.shape, np.uint8)
        fps = env.metadata.get("render_fps")
        if fps:
            self.metadata = {**env.metadata, "render_fps": fps / self._skip}

    def reset(self, **options: Any) -> tuple[Seen, Any]:
        picture, info = self.env.reset(**options)
        for _ in range(int(self._match.np_random.integers(1, MOST_NOOPS + 1)) if self._skip > 1 else 0):
            picture, _, terminated, truncated, info = self.env.step([0] * len(self._seen))
            if terminated or truncated:
                picture, info = self.env.reset()
        self._frames[:] = self._fit(picture)[:, :, None]
        return self._show(), info

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        before, total = self._match.totals, 0.0
        picture: Any = None
        for _ in range(self._skip):
            last = picture
            picture, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        self._match.earned = [now - was for now, was in zip(self._match.totals, before, strict=True)]
        self._frames[:, :, :-1] = self._frames[:, :, 1:].copy()
        self._frames[:, :, -1] = self._fit(picture if last is None else np.maximum(last, picture))
        return self._show(), total, terminated, truncated, info

    def _show(self) -> Seen:
        self._seen[:, :, :, : self._stack] = self._frames
        return self._seen.copy()
