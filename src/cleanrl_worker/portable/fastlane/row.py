"""The taps of environments that the training core steps together, without a wrapper around each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any

from cleanrl_worker.portable.fastlane.lane import open_lane, unwatched
from cleanrl_worker.portable.fastlane.patch import tap_of
from cleanrl_worker.portable.fastlane.tap import Tap, handing_over
from cleanrl_worker.portable.fastlane.wrapper import FastLaneTelemetryWrapper


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
