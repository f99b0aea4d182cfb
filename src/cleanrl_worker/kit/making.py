"""Making environments by their ids, refused where they do not fit what trains on them."""

from __future__ import annotations

from typing import Any

import gymnasium

from cleanrl_worker.curriculum.schedule import Schedule, check_spaces, name_stage
from cleanrl_worker.kit.video import warn
from cleanrl_worker.portable import probe
from cleanrl_worker.portable.fastlane.drawing import choose_drawing
from cleanrl_worker.portable.fastlane.lane import unwatched
from cleanrl_worker.schemas.environments import EnvironmentEntry, check_fit
from mosaic.analytics.film import require_av
from mosaic.contract.errors import UserError, closest

Env = gymnasium.Env[Any, Any]


class EnvMaker:
    """Makes the environments of one run; the first of several draws itself when videos are wanted."""

    def __init__(self, algo: str, env_kwargs: str, record: bool) -> None:
        """`record` becomes false when an environment turns out not to draw pictures."""
        self._algo = algo
        self.record = record
        try:
            self._kwargs = probe.parse_kwargs(env_kwargs)
        except probe.ProbeError as error:
            raise UserError(str(error)) from error
        if record:
            require_av("capture_video")
            choose_drawing()

    def make(self, env_id: str, draws: bool = False) -> Env:
        """One environment; UserError when it cannot be made."""
        drawing = {"render_mode": "rgb_array"} if draws else {}
        try:
            env: Env = probe.make_environment(env_id, {**self._kwargs, **drawing})
        except probe.ProbeError as error:
            known = ":" in env_id or env_id in gymnasium.registry
            near = "" if known else closest(env_id, gymnasium.registry)
            text = f"There is no environment '{env_id}'{near}" if near else str(error)
            raise UserError(text) from error
        return env

    def check(self, env_id: str, env: Env) -> EnvironmentEntry:
        """What an environment is like; UserError when the algorithm cannot train on it."""
        entry = EnvironmentEntry(env_id, **probe.describe_environment(env_id, env))
        check_fit(self._algo, entry)
        if self.record and "rgb_array" not in env.metadata.get("render_modes", ()):
            warn(f"Videos are off: {env_id} cannot draw pictures (it has no render mode 'rgb_array').")
            self.record = False
        return entry

    def check_stages(self, schedule: Schedule, first: Env) -> None:
        """Raise UserError, which names the stage, when a stage cannot follow the first one."""
        entry = self.check(schedule.stages[0].env_id, first)
        for index, stage in enumerate(schedule.stages[1:], 1):
            try:
                with unwatched():
                    env = self.make(stage.env_id)
                try:
                    check_spaces(entry, self.check(stage.env_id, env), env.action_space == first.action_space)
                finally:
                    env.close()
            except UserError as error:
                raise UserError(f"{name_stage(index, stage.env_id)}: {error}") from error
