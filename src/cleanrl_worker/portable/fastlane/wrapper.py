"""The wrapper around environments that a script makes, the `gymnasium.make` that puts it on, and what stands
in its place where the training core steps environments together."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs import registration

from cleanrl_worker.portable.fastlane.drawing import choose_drawing
from cleanrl_worker.portable.fastlane.lane import enter_making, is_unwatched, open_lane, unwatched, warn
from cleanrl_worker.portable.fastlane.portrait import portrait_of
from cleanrl_worker.portable.fastlane.tap import Tap, handing_over, open_tap


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


def install() -> None:
    """Put our `make` in gymnasium's place, if this run shows anything."""
    segment = open_lane()
    if segment is None or segment.mode == "off" or hasattr(gymnasium.make, "watched"):
        return
    choose_drawing()
    patched = _watched(gymnasium.make)
    for module in (gymnasium, gymnasium.envs, registration):
        module.make = patched  # type: ignore[attr-defined]


def _watched(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def make_watched(id: Any, *args: Any, **kwargs: Any) -> Any:
        segment = open_lane()
        if is_unwatched() or segment is None:
            return make(id, *args, **kwargs)
        enter_making(segment)
        spec = _find_spec(id)
        asked = kwargs.get("render_mode", spec.kwargs.get("render_mode") if spec is not None else None)
        env = None
        if asked is None and spec is not None and _can_render(spec):
            try:
                env = make(id, *args, **{**kwargs, "render_mode": "rgb_array"})
            except Exception:
                # Not every class takes what it says that it can do. If that was not it, make fails again.
                env = None
        if env is None:
            env = make(id, *args, **kwargs)
        try:
            return _wrap(env, asked)
        except Exception as error:
            warn(f"no picture of {id}: {type(error).__name__}: {error}")
            return env

    make_watched.watched = True  # type: ignore[attr-defined]
    return make_watched


def _wrap(env: Any, asked: str | None) -> Any:
    # An environment may be made of another that came through here.
    tap = None if is_watched(env) else tap_of(env, asked)
    if tap is None and env.render_mode == asked:
        return env
    return FastLaneTelemetryWrapper(env, tap, asked)


def tap_of(env: Any, asked: str | None) -> Tap | None:
    """A tap for an environment, which says why where there can be no picture; None without live frames."""
    base = env.unwrapped
    name = env.spec.id if env.spec is not None else type(base).__name__
    tap = open_tap(base.render, name, functools.partial(mission_of, base), portrait_of(base))
    mode = getattr(base, "render_mode", None)
    if tap is not None and mode != "rgb_array":
        if asked == "human":
            tap.refuse("it shows itself in a window")
        elif mode == "rgb_array_list":
            tap.refuse("it collects its pictures for the script")
        else:
            tap.refuse("it cannot render pictures")
    return tap


def _find_spec(id: Any) -> Any:
    """The spec that `make` will use; None when there is none. What is wrong with `id`, make will tell."""
    if isinstance(id, registration.EnvSpec):
        return id
    try:
        # This one also knows `module:EnvId` and ids without a version.
        return getattr(registration, "_find_spec", gymnasium.spec)(id)
    except Exception:
        return None


def _can_render(spec: Any) -> bool:
    """Whether what makes the environment says that it can give pictures."""
    try:
        entry = spec.entry_point
        creator: Any = entry if callable(entry) else registration.load_env_creator(entry)
        if hasattr(creator, "metadata"):
            return "rgb_array" in creator.metadata.get("render_modes", ())
        taken = inspect.signature(creator).parameters
        # A function that takes any argument hands it on, as DM Control's do.
        return "render_mode" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())
    except Exception:
        return False


class TapRow:
    """One call for each step of all environments, instead of a wrapper's call in each of them."""

    def __init__(self, taps: Sequence[Tap | None], steps: memoryview) -> None:
        """`steps` is where their steps are counted."""
        self._taps = taps
        self._shown = [(index, tap, tap.mark) for index, tap in enumerate(taps) if tap and tap.shown]
        self._steps = steps

    def episode_ended(self, index: int, total_reward: float) -> None:
        tap = self._taps[index]
        if tap is not None:
            tap.episode_ended(total_reward)

    def after_step(
        self, rewards: Sequence[float], running_returns: Sequence[float], stepped: int | None = None
    ) -> None:
        """All environments have taken one step, or so many of them."""
        self._steps[0] += len(rewards) if stepped is None else stepped
        for index, tap, mark in self._shown:
            if mark[0] and monotonic() >= tap.due_at:
                tap.show(rewards[index], running_returns[index])


def take_taps(envs: Sequence[Any]) -> tuple[list[Any], TapRow | None]:
    """The environments without the wrapper that lets them be watched, and their taps in its place.

    Steps that nobody can watch are counted too: whether a run goes on is seen by them.
    """
    taps = [env.tap if isinstance(env, FastLaneTelemetryWrapper) else None for env in envs]
    lane = open_lane()
    steps = next((tap.steps for tap in taps if tap), lane.unseen_steps if lane is not None else None)
    return [bare(env) for env in envs], TapRow(taps, steps) if steps is not None else None


def bare(env: Any) -> Any:
    """An environment without the wrapper that lets it be watched."""
    return env.env if isinstance(env, FastLaneTelemetryWrapper) else env


@contextlib.contextmanager
def taking_place(old: Any) -> Iterator[None]:
    """The environment that is made in here has the slot of an old one, which nobody watches any more."""
    tap = old.tap if isinstance(old, FastLaneTelemetryWrapper) else None
    if tap is None:
        with unwatched():
            yield
        return
    with handing_over(tap):
        yield
    old.tap = None


def take_place(old: Any, new: Any) -> None:
    """Give the slot of an old environment to one that was made before and had to give its own away."""
    tap = old.tap if isinstance(old, FastLaneTelemetryWrapper) else None
    if tap is None or not isinstance(new, FastLaneTelemetryWrapper):
        return
    # Tasks take turns, and what they pay is one run's.
    rolling = tap.rolling_return
    with handing_over(tap):
        new.tap = tap_of(new.env, new.render_mode)
    tap.rolling_return, old.tap = rolling, None
