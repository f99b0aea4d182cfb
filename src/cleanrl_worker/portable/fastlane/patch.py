"""Makes `gymnasium.make` give environments that can be watched."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.envs import registration

from cleanrl_worker.portable.fastlane.drawing import choose_drawing
from cleanrl_worker.portable.fastlane.lane import enter_making, is_unwatched, open_lane, warn
from cleanrl_worker.portable.fastlane.portrait import portrait_of
from cleanrl_worker.portable.fastlane.tap import Tap, open_tap
from cleanrl_worker.portable.fastlane.wrapper import FastLaneTelemetryWrapper, is_watched, mission_of


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
