"""The wrapper around every environment that a training script makes."""

from __future__ import annotations

import copy
import operator
from time import monotonic
from typing import Any

import gymnasium
import numpy as np

from cleanrl_worker.portable.fastlane.tap import Tap


class FastLaneTelemetryWrapper(gymnasium.Wrapper):
    """Passes everything through, and lets viewers look. The script sees the environment that it asked for."""

    def __init__(self, env: Any, tap: Tap | None, asked_render_mode: str | None) -> None:
        """Without a tap nobody can look; the wrapper then only hides that pictures were asked for."""
        super().__init__(env)
        self.tap = tap
        self._asked = asked_render_mode
        self._return: Any = 0.0
        if tap is None:
            self._pass_through()
        else:
            self._mark, self._steps = tap.mark, tap.steps

    def step(self, action: Any) -> Any:
        result: Any = self.env.step(action)
        try:
            self._return += result[1]
            self._steps[0] += 1
            if result[2] or result[3]:
                self.tap.episode_ended(_number(self._return))  # type: ignore[union-attr]
            if self._mark[0] and monotonic() >= self.tap.due_at:  # type: ignore[union-attr]
                self._show(result[1])
        except Exception as error:
            self.tap.refuse(f"its steps cannot be read: {error}")  # type: ignore[union-attr]
            self._pass_through()
        return result

    def _show(self, reward: Any) -> None:
        assert self.tap is not None
        self.tap.show(_number(reward), _number(self._return))
        # A tap that finds itself in a forked child has taken another slot.
        self._mark, self._steps = self.tap.mark, self.tap.steps

    def _pass_through(self) -> None:
        self.step = self.env.step  # type: ignore[method-assign]

    def reset(self, **kwargs: Any) -> Any:
        self._return = 0.0
        return self.env.reset(**kwargs)

    def close(self) -> None:
        if self.tap is not None:
            self.tap.close()
        self.env.close()

    @property
    def render_mode(self) -> str | None:  # type: ignore[override]
        return self._asked

    def render(self) -> Any:
        return self.env.render() if self._asked is not None else None

    @property
    def spec(self) -> Any:  # type: ignore[override]
        spec = self.env.spec
        if spec is not None and self._asked is None and "render_mode" in spec.kwargs:
            spec = copy.copy(spec)
            spec.kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
        return spec

    def __reduce__(self) -> Any:
        # A copy, also one that is read back elsewhere, is the plain environment: nobody watches it.
        return operator.getitem, ((self.env,), 0)

    def __getattr__(self, name: str) -> Any:
        # Scripts know the wrappers that gymnasium puts on, down to names like _max_episode_steps.
        if name == "env" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.env, name)

    def __str__(self) -> str:
        return str(self.env)

    __repr__ = __str__


def is_watched(env: Any) -> bool:
    """Whether there is a wrapper of ours around an environment, or further in."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, FastLaneTelemetryWrapper) and env.tap is not None:
            return True
        env = env.env
    return False


def _number(value: Any) -> float:
    """A reward as one number; the parts of one with several are added."""
    return float(value) if isinstance(value, (int, float)) else float(np.sum(value))


def mission_of(env: Any) -> str:
    """The mission of a grid world as it is now; empty where an environment has none."""
    try:
        words = getattr(env.unwrapped, "mission", "")
    except Exception:
        # It may be a property of somebody's own, and is not worth a failed step.
        return ""
    return words if isinstance(words, str) else ""
