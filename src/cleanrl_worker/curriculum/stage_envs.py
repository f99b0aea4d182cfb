"""The environments of a curriculum, one after the other in the places of a vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from cleanrl_worker.curriculum.schedule import Schedule
from cleanrl_worker.portable.fastlane.row import take_place, taking_place

Env = gymnasium.Env[Any, Any]


class StageEnvs:
    """Makes an environment when its stage comes; one that may come again is made once and kept."""

    def __init__(self, schedule: Schedule, make: Callable[[str, bool], Env], begun: Sequence[Env]) -> None:
        """`begun` are those of the first stage, in their places."""
        self._stages = schedule.stages
        self._make = make
        self._keeps = schedule.sampler is not None
        self._kept = {(place, 0): env for place, env in enumerate(begun)} if self._keeps else {}

    def swap(self, place: int, old: Env, stage: int, draws: bool) -> Env:
        """The environment of a stage instead of an old one; whoever watches that one watches it."""
        kept = self._kept.get((place, stage))
        if kept is not None:
            take_place(old, kept)
            return kept
        with taking_place(old):
            new = self._make(self._stages[stage].env_id, draws)
        if self._keeps:
            self._kept[place, stage] = new
        else:
            old.close()
        return new

    @property
    def kept(self) -> list[Env]:
        """Those that may come again, also the ones that are played now."""
        return list(self._kept.values())
