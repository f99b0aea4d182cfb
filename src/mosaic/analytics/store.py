"""All that a run has measured, as arrays: read once, kept up to date, thinned without losing a peak."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.event_files import EventReader, ScalarChunk

_RECORDS = 1_000_000
"""So many records are taken at a time: what is read stands in memory twice for a moment."""


@dataclass(frozen=True)
class MetricSeries:
    """The points of one metric in three arrays of equal length: by step, those of one step by time."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    times: NDArray[np.float64]
    """Seconds since 1970."""

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, places: NDArray[np.bool_] | NDArray[np.intp] | slice) -> MetricSeries:
        """The points at these places."""
        return MetricSeries(self.steps[places], self.values[places], self.times[places])


class RunMetrics:
    """The metrics of all event files in a run's folder, also while they are written.

    `refresh` takes in what is new; everything else answers from memory. Threads may share one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._reader = EventReader(folder)
        self._sources: dict[str, dict[str, _Column]] = {}
        self._made: dict[str, MetricSeries] = {}

    @classmethod
    def open(cls, folder: Path) -> RunMetrics:
        """Everything that a run has measured so far; nothing where there is no folder."""
        metrics = cls(folder)
        metrics.refresh()
        return metrics

    def refresh(self) -> bool:
        """Takes in what was written since; whether there was anything."""
        changed = False
        with self._lock:
            while chunks := self._reader.poll(_RECORDS):
                self._take(chunks)
                changed = True
        return changed

    @property
    def problems(self) -> list[str]:
        """A sentence for each event file that cannot be read to its end."""
        with self._lock:
            return [self._reader.problems[path] for path in sorted(self._reader.problems)]

    @property
    def names(self) -> list[str]:
        """The names of all metrics, sorted."""
        with self._lock:
            return sorted({name for columns in self._sources.values() for name in columns})

    def series(self, name: str) -> MetricSeries:
        """One metric by the step of the run, from all its sources; empty when there is none of that name."""
        with self._lock:
            made = self._made.get(name)
            if made is None:
                made = self._made[name] = _ordered(self._parts(name))
            return made

    def last(self, name: str) -> float | None:
        """The value of a metric at its latest step."""
        values = self.series(name).values
        return float(values[-1]) if len(values) else None

    def downsampled(self, name: str, points: int) -> MetricSeries:
        """At most so many points of a metric (at least 4), among them the first and the last one and the
        least and the greatest value of each piece between."""
        return downsample(self.series(name), points)

    def begins(self) -> dict[str, int]:
        """The step of the run at which each source begins, the oldest source first.

        A script of several phases counts each of them from 0, in a folder of its own: one that starts over
        after another has ended follows it. Sources that are written side by side begin together.
        """
        with self._lock:
            filled = {
                source: [column.joined() for column in columns.values()]
                for source, columns in self._sources.items()
                if columns
            }
        starts = {source: min(one.times[0] for one in columns) for source, columns in filled.items()}
        found: dict[str, int] = {}
        begin, last_step, last_time = 0, 0, -inf
        for source in sorted(filled, key=starts.__getitem__):
            first_step = min(int(one.steps[0]) for one in filled[source])
            # One that goes on begins near the end of the other, one that starts over at about 0.
            if found and starts[source] >= last_time and 2 * first_step <= last_step:
                begin += last_step
            found[source] = begin
            last_step = max(int(one.steps[-1]) for one in filled[source])
            last_time = max(float(one.times[-1]) for one in filled[source])
        return found

    def _parts(self, name: str) -> list[MetricSeries]:
        parts = []
        for source, begin in self.begins().items():
            column = self._sources[source].get(name)
            if column is not None:
                part = column.joined()
                parts.append(MetricSeries(part.steps + begin, part.values, part.times) if begin else part)
        return parts

    def _take(self, chunks: Iterable[ScalarChunk]) -> None:
        for chunk in chunks:
            columns = self._sources.setdefault(chunk.source, {})
            if chunk.purge_from is not None:
                for name, column in list(columns.items()):
                    column.purge(chunk.purge_from)
                    if not len(column.joined()):
                        del columns[name]
            for name, new in chunk.series.items():
                if len(new):
                    arrays = (np.array(new.steps), np.array(new.values), np.array(new.wall_times))
                    columns.setdefault(name, _Column()).append(MetricSeries(*arrays))
        self._made.clear()


class _Column:
    """A metric of one source, in the order in which it was written."""

    def __init__(self) -> None:
        self._parts: list[MetricSeries] = []

    def append(self, part: MetricSeries) -> None:
        self._parts.append(part)

    def joined(self) -> MetricSeries:
        if len(self._parts) != 1:
            self._parts = [_join(self._parts)]
        return self._parts[0]

    def purge(self, step: int) -> None:
        """Forget the points from this step on."""
        part = self.joined()
        kept = part.steps < step
        if not kept.all():
            self._parts = [part.at(kept)]


def _join(parts: list[MetricSeries]) -> MetricSeries:
    return MetricSeries(
        np.concatenate([np.empty(0, np.int64), *(part.steps for part in parts)]),
        np.concatenate([np.empty(0), *(part.values for part in parts)]),
        np.concatenate([np.empty(0), *(part.times for part in parts)]),
    )


def _ordered(parts: list[MetricSeries]) -> MetricSeries:
    whole = parts[0] if len(parts) == 1 else _join(parts)
    if np.any(whole.steps[1:] < whole.steps[:-1]):
        whole = whole.at(np.lexsort((whole.times, whole.steps)))
    for column in (whole.steps, whole.values, whole.times):
        column.flags.writeable = False
    return whole


def downsample(series: MetricSeries, points: int) -> MetricSeries:
    """At most `points` of a series: its ends, and the extremes of each piece between them."""
    count, pieces = len(series), max(1, (points - 2) // 2)
    if count <= max(points, 4):
        return series
    size = -(-count // pieces)
    # Filled up with a value that is there, so that no piece gets an extreme that it does not have.
    filled = np.concatenate([series.values, np.full(-count % size, series.values[-1])]).reshape(-1, size)
    lost = np.isnan(filled)
    starts = np.arange(len(filled)) * size
    places = [
        np.zeros(1, np.intp),
        starts + np.where(lost, inf, filled).argmin(axis=1),
        starts + np.where(lost, -inf, filled).argmax(axis=1),
        np.full(1, count - 1, np.intp),
    ]
    return series.at(np.unique(np.minimum(np.concatenate(places), count - 1)))
