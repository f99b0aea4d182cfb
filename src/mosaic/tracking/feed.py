"""What of a run a tracker has not had yet: points of its event files, videos, and the model at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mosaic.analytics.artifacts import Artifact, list_artifacts
from mosaic.analytics.event_files import EventReader, ScalarChunk
from mosaic.analytics.headline import EVALUATION_RETURN
from mosaic.contract.errors import UserError

_SETTLED_SECONDS = 3.0
"""A video that has not changed for so long is whole."""


class Point(NamedTuple):
    """One number of a curve."""

    tag: str
    step: int
    wall_time: float
    value: float


class Feed:
    """The points that are new since the last look, each once, also over restarts of run and tracker.

    A run that goes on from a checkpoint takes its curves back to there and writes them anew. No tracker can
    take back what it has, so what is written a second time is left out up to the step that it already has.
    """

    def __init__(self, run_dir: Path, progress: Mapping[str, Any]) -> None:
        """`progress` is what `progress()` gave to an earlier process."""
        try:
            self._reader = EventReader(run_dir, progress.get("cursor"))
            self._tops: dict[str, dict[str, int]] = {
                str(source): {str(tag): int(step) for tag, step in tops.items()}
                for source, tops in dict(progress.get("tops", {})).items()
            }
            self._until: dict[str, dict[str, int]] = {
                str(source): {str(tag): int(step) for tag, step in until.items()}
                for source, until in dict(progress.get("until", {})).items()
            }
            self._held = [
                Point(str(tag), int(step), *map(float, rest)) for tag, step, *rest in progress.get("held", ())
            ]
        except (UserError, ValueError, TypeError, AttributeError):
            # A damaged note: what has been sent is unknown, and a point twice is better than none.
            self._reader, self._tops, self._until, self._held = EventReader(run_dir), {}, {}, []
        self.step = max((step for tops in self._tops.values() for step in tops.values()), default=0)
        """The largest step so far."""

    def take(self, ended: bool = False) -> list[Point]:
        """What is new, in the order of time.

        The newest step is held back until there is one behind it, or the run has `ended`: more may come that
        belongs to it, and so rows are the same whenever they are read.
        """
        points, self._held = self._held, []
        while chunks := self._reader.poll():
            for chunk in chunks:
                self._take(chunk, points)
        points.sort(key=lambda point: point.wall_time)
        if points and not ended:
            whole = len(points)
            while whole and points[whole - 1].step == points[-1].step:
                whole -= 1
            points, self._held = points[:whole], points[whole:]
        return points

    def progress(self) -> dict[str, Any]:
        """Where the feed stands, as JSON types."""
        return {
            "cursor": self._reader.cursor(),
            "tops": {source: dict(tops) for source, tops in self._tops.items()},
            "until": {source: dict(until) for source, until in self._until.items()},
            "held": [list(point) for point in self._held],
        }

    @property
    def problems(self) -> list[str]:
        """A sentence for each file that cannot be read on."""
        return list(self._reader.problems.values())

    def _take(self, chunk: ScalarChunk, points: list[Point]) -> None:
        tops = self._tops.setdefault(chunk.source, {})
        until = self._until.setdefault(chunk.source, {})
        if chunk.purge_from is not None:
            until |= {tag: top for tag, top in tops.items() if top >= chunk.purge_from}
        # The first folder speaks for the run; a script that starts over writes to another, from step 0.
        first = next(iter(self._tops)) == chunk.source
        prefix = "" if first else f"{Path(chunk.source).name}/"
        for tag, series in chunk.series.items():
            for step, wall_time, value in zip(series.steps, series.wall_times, series.values, strict=True):
                if tag in until:
                    if step <= until[tag]:
                        continue
                    del until[tag]
                points.append(Point(prefix + tag, step, wall_time, value))
                tops[tag] = max(step, tops.get(tag, step))
            self.step = max(self.step, tops.get(tag, 0))


@dataclass
class Row:
    """Points that were taken at the same step and belong together."""

    step: int
    wall_time: float
    counts_episodes: bool
    """Whether the step is the number of an episode, as in what CleanRL evaluates at the end."""
    values: dict[str, float]


def rows(points: Sequence[Point]) -> list[Row]:
    """Points as rows, in their order."""
    made: list[Row] = []
    for point in points:
        last, counts = made[-1] if made else None, _counts_episodes(point.tag)
        same = last is not None and (last.step, last.counts_episodes) == (point.step, counts)
        if last is not None and same and point.tag not in last.values:
            last.values[point.tag] = point.value
        else:
            made.append(Row(point.step, point.wall_time, counts, {point.tag: point.value}))
    return made


def without_rows(points: Sequence[Point], count: int) -> list[Point]:
    """The points behind the first `count` rows."""
    return list(points[sum(len(row.values) for row in rows(points)[:count]) :])


def _counts_episodes(tag: str) -> bool:
    return tag == EVALUATION_RETURN or tag.endswith(f"/{EVALUATION_RETURN}")


def finite(value: float) -> float | None:
    """The number, or None for what is not one."""
    return value if math.isfinite(value) else None


def new_videos(run_dir: Path, sent: set[str], ended: bool) -> list[Artifact]:
    """The videos that are whole and not in `sent`; once the run has ended all are whole."""
    now = time.time()
    return [
        file
        for file in list_artifacts(run_dir)
        if file.kind == "video"
        and file.path not in sent
        and file.size
        and (ended or now - file.modified > _SETTLED_SECONDS)
    ]


def model_files(run_dir: Path) -> list[Path]:
    """The models of a run, each with its card: that of the end, and the best one."""
    models = [run_dir / file.path for file in list_artifacts(run_dir) if file.kind == "model"]
    cards = [model.with_name(f"{model.stem}.policy.json") for model in models]
    return [*models, *filter(Path.is_file, cards)]
