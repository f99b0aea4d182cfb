"""The first live picture, drawn before torch is imported, which takes longer than all else at the start."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from time import process_time
from typing import Any

# Training needs it anyway. Whoever waits for a picture has come by when it is imported.
import gymnasium  # noqa: F401

from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.lane import ahead, open_lane
from cleanrl_worker.portable.fastlane.tap import Tap, hand_over
from cleanrl_worker.portable.fastlane.wrapper import FastLaneTelemetryWrapper
from mosaic.fastlane.layout import IMPORTING
from mosaic.fastlane.segment import Segment

_SECONDS = 0.3
"""When drawing has cost so much of a processor, the environments that are left wait for their first step."""


def main(_target: str, arguments: Sequence[str]) -> None:
    """Show how the environments of an algorithm's run begin, if somebody looks; training makes its own.

    Those that are shown are made for it alone: what training sees is the same whether anybody looks or not.
    """
    segment = open_lane()
    if segment is None:
        return
    segment.enter_phase(IMPORTING)
    if not segment.looked_at:
        return
    # What is wrong with an environment, training will tell.
    with contextlib.suppress(Exception), ahead():
        _show(segment, _Beginning(arguments[0]))


def _show(segment: Segment, asked: _Beginning) -> None:
    if not asked.is_known:
        return
    began, taps = process_time(), list[Tap]()
    for index in range(min(asked.count, segment.shown.stop)):
        env = probe.make_environment(asked.env_id, asked.kwargs)
        tap = env.tap if isinstance(env, FastLaneTelemetryWrapper) else None
        if tap is None:
            env.close()
            break
        env.reset(seed=asked.seed + index)
        if index in segment.shown:
            tap.show_beginning()
        # Its slot goes to the environment that training makes in its place.
        taps.append(tap)
        env.tap = None
        env.close()
        if process_time() - began > _SECONDS:
            break
    hand_over(taps)


class _Beginning:
    """Which environments a run begins with, from the file of its arguments."""

    def __init__(self, path: str) -> None:
        from cleanrl_worker.curriculum.schedule import parse_schedule
        from cleanrl_worker.schemas.model import known_schema

        with open(path, "rb") as file:
            content = json.load(file)
        schema, given = known_schema(content["algo"]), content["arguments"]

        def value(name: str) -> Any:
            parameter = schema.parameter(name) if schema is not None else None
            return given.get(name, parameter.default if parameter is not None else None)

        schedule = parse_schedule(value("curriculum") or "")
        self.env_id = str(value("env_id") if schedule is None else schedule.stages[0].env_id)
        self.kwargs = probe.parse_kwargs(value("env_kwargs") or "{}")
        self.seed = int(value("seed") or 0)
        self.count = int(value("num_envs") or 1)
        drawn = schedule is not None and schedule.sampler is not None
        self._elsewhere = drawn or bool(value("resume_from") or value("capture_video"))

    @property
    def is_known(self) -> bool:
        """Whether training will begin like this, with an environment that is known to be made quickly."""
        from cleanrl_worker.schemas.environments import find_environment

        return not self._elsewhere and find_environment(self.env_id) is not None
