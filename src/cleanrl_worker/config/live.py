"""Live frames, as the supervisor sees them: what is shown, and the segment that lives as long as the run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.contract.errors import UserError, closest
from mosaic.fastlane.layout import IMPORTING, MODES, SLOTS, START_PHASES
from mosaic.fastlane.segment import Segment, SegmentError, create_segment, remove_segment

SEGMENT_VARIABLE = "CLEANRL_FASTLANE_SEGMENT"
GRID_LIMIT = 8
LONGEST_START_SECONDS = 120.0
"""A script that has taken no step for so long does something else, of which nothing is known."""
_PACKAGE = Path(__file__).parents[1]
_SITE = _PACKAGE / "portable" / "site"


@dataclass(frozen=True)
class LiveSettings:
    """Which environments can be watched."""

    mode: str = "grid"
    slot: int = 0
    limit: int = GRID_LIMIT

    @classmethod
    def from_extras(cls, extras: Mapping[str, Any]) -> LiveSettings:
        """What the extras ask for; UserError when that makes no sense."""
        mode = extras.get("fastlane_video_mode", extras.get("video_mode")) or "grid"
        if mode not in MODES:
            hint = closest(str(mode), MODES) or f"; it must be one of {', '.join(MODES)}."
            raise UserError(f"'extras.fastlane_video_mode' is {mode!r}{hint}")
        limit = extras.get("fastlane_grid_limit", extras.get("grid_limit"))
        slot = _whole("fastlane_slot", extras.get("fastlane_slot"), 0, 0)
        return cls(mode, slot, _whole("fastlane_grid_limit", limit, GRID_LIMIT, 1))


def _whole(name: str, value: Any, default: int, least: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < SLOTS:
        raise UserError(
            f"'extras.{name}' is {value!r}, but it must be a whole number from {least} to {SLOTS - 1}."
        )
    return value


class LiveFrames:
    """The segment of one run. Without room for it the run goes on unseen, and `trouble` says why."""

    def __init__(self, run_id: str, settings: LiveSettings) -> None:
        self._run_id = run_id
        self._segment: Segment | None = None
        self._made_at = time.monotonic()
        self.trouble: str | None = None
        if settings.mode == "off":
            return
        try:
            self._segment = Segment(create_segment(run_id, settings.mode, settings.slot, settings.limit))
        except SegmentError as error:
            self.trouble = str(error)

    def phase(self, makes: bool) -> str:
        """What the training process does before there are numbers; empty when that cannot be told.

        `makes` says that it is known to make environments: what it does before that is importing.
        """
        if self._segment is None:
            return ""
        phase = self._segment.phase or (IMPORTING if makes else "")
        late = time.monotonic() - self._made_at > LONGEST_START_SECONDS
        return "" if late and phase in START_PHASES else phase

    @property
    def makes_environments(self) -> bool:
        """Whether the training process has begun to make environments."""
        return self._segment is not None and self._segment.phase not in ("", IMPORTING)

    @property
    def steps(self) -> int | None:
        """How many steps the training process has taken; None when that cannot be told."""
        return None if self._segment is None else self._segment.steps

    def add_to(self, environment: Mapping[str, str], bridge: Path | None) -> dict[str, str]:
        """The training process's environment, with what its Python needs to find the segment.

        `bridge` is where an interpreter that is not ours finds our code; ours has it installed.
        """
        code = _SITE if bridge is None else make_bridge(bridge)
        path = os.pathsep.join(filter(None, [str(code), environment.get("PYTHONPATH")]))
        # A daemon that was started inside a run has inherited the segment of that one.
        others = {name: value for name, value in environment.items() if name != SEGMENT_VARIABLE}
        segment = {SEGMENT_VARIABLE: str(self._segment.path)} if self._segment is not None else {}
        return {**others, **segment, "PYTHONPATH": path}

    def close(self) -> None:
        """Take the segment away: viewers see that the run ended."""
        if self._segment is not None:
            self._segment.close()
            self._segment = None
        remove_segment(self._run_id)


def make_bridge(folder: Path) -> Path:
    """A folder with what live frames need in another interpreter, and nothing else of ours."""
    shared = _PACKAGE.parent
    parts = ("mosaic/fastlane", "cleanrl_worker/portable/fastlane", "cleanrl_worker/portable/launcher.py")
    for part in parts:
        link = folder / part
        link.parent.mkdir(parents=True, exist_ok=True)
        for package in link.relative_to(folder).parents[:-1]:
            (folder / package / "__init__.py").touch()
        _link(link, shared / part)
    _link(folder / "sitecustomize.py", _SITE / "sitecustomize.py")
    return folder


def _link(link: Path, target: Path) -> None:
    if not link.is_symlink():
        link.symlink_to(target)
