"""All that a run has measured, as arrays: read once, kept up to date, thinned without losing a peak."""

from __future__ import annotations

import csv
import io
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.artifacts import manifest_problems
from mosaic.analytics.event_files import EventReader, MediaKind, Medium, ScalarChunk
from mosaic.analytics.metric_cache import Cached, Columns, load_cache, save_cache
from mosaic.contract.errors import UserError
from mosaic.contract.extras import install_advice
from mosaic.contract.paths import RunPaths

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import polars

_WORTH_SAVING = 20_000
"""Points; fewer are read from the event files in no time."""
_SAVE_SECONDS = 60.0
"""Between two caches of a run that lives, at the least."""
_RECORDS = 1_000_000
"""So many records are taken at a time: what is read stands in memory twice for a moment."""


@dataclass(frozen=True, eq=False)
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


NO_POINTS = MetricSeries(np.empty(0, np.int64), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class MediaTrack:
    """All pictures, texts or the like of one name, by the step of the run: `load_medium` reads each."""

    name: str
    kind: MediaKind
    items: tuple[Medium, ...]


class RunMetrics:
    """The metrics of all event files in a run's folder, also while they are written.

    `refresh` takes in what is new; everything else answers from memory. Threads may share one. What was read
    of long files is kept in a file beside them, so that it is read once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._reader = EventReader(folder, media=True)
        self._sources: dict[str, dict[str, _Column]] = {}
        self._media: dict[str, list[Medium]] = {}
        self._made: dict[str, MetricSeries] = {}
        self._begins: dict[str, int] = {}
        self._manifest: tuple[object, list[str]] = None, []
        """Which one was looked at, and what is wrong with it."""
        self.version = 0
        """It grows with every change."""
        self._unsaved = self._saved = 0
        """Points that were read since the cache was written, and those in it."""
        self._saved_at = -inf
        cached = load_cache(folder)
        if cached is not None and self._reader.go_on_from(cached.marks):
            self._take_cached(cached)

    @classmethod
    def open(cls, folder: Path) -> RunMetrics:
        """Everything that a run has measured so far; nothing where there is no folder."""
        metrics = cls(folder)
        metrics.refresh()
        with metrics._lock:
            if metrics._unsaved >= _WORTH_SAVING:
                metrics._save()
        return metrics

    def refresh(self) -> bool:
        """Takes in what was written since; whether there was anything."""
        changed = False
        with self._lock:
            problems, manifest = dict(self._reader.problems), self._manifest[1]
            self._look_at_manifest()
            while chunks := self._reader.poll(_RECORDS):
                self._take(chunks)
                changed = True
            if (
                self._unsaved >= max(_WORTH_SAVING, self._saved // 2)
                and time.monotonic() >= self._saved_at + _SAVE_SECONDS
            ):
                self._save()
            changed = changed or problems != self._reader.problems or manifest != self._manifest[1]
            self.version += changed
            return changed

    @property
    def problems(self) -> list[str]:
        """A sentence for each event file that cannot be read to its end, and for a manifest that misleads."""
        with self._lock:
            found = [self._reader.problems[path] for path in sorted(self._reader.problems)]
            return [*found, *self._manifest[1]]

    @property
    def names(self) -> list[str]:
        """The names of all metrics, sorted."""
        with self._lock:
            return sorted({name for columns in self._sources.values() for name in columns})

    def __len__(self) -> int:
        """The number of all points."""
        with self._lock:
            return sum(len(column) for columns in self._sources.values() for column in columns.values())

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

    def media(self) -> list[MediaTrack]:
        """The histograms, pictures, videos and texts, by name."""
        with self._lock:
            tracks: dict[tuple[str, MediaKind], list[Medium]] = {}
            for source, begin in self.begins().items():
                for one in self._media.get(source, ()):
                    moved = replace(one, step=one.step + begin) if begin else one
                    tracks.setdefault((one.name, one.kind), []).append(moved)
        return [
            MediaTrack(name, kind, tuple(sorted(items, key=lambda one: (one.step, one.time))))
            for (name, kind), items in sorted(tracks.items())
        ]

    def columns(self) -> dict[str, NDArray[Any]]:
        """All points in one long table: `name`, `step`, `time` (seconds since 1970) and `value`."""
        names = self.names
        found = [self.series(name) for name in names]
        whole = _join(found)
        labels = np.repeat(np.array(names, object), [len(one) for one in found])
        return {"name": labels, "step": whole.steps, "time": whole.times, "value": whole.values}

    def to_pandas(self) -> pandas.DataFrame:
        """`columns` as a DataFrame of pandas."""
        try:
            import pandas
        except ImportError as error:
            raise UserError(f"pandas is not installed: {install_advice('pandas')}.") from error
        table = pandas.DataFrame(self.columns())
        return table.astype({"name": "category"})

    def to_polars(self) -> polars.DataFrame:
        """`columns` as a DataFrame of polars."""
        try:
            import polars
        except ImportError as error:
            raise UserError(f"polars is not installed: {install_advice('polars')}.") from error
        columns = self.columns()
        return polars.DataFrame({**columns, "name": columns["name"].tolist()}).with_columns(
            polars.col("name").cast(polars.Categorical)
        )

    def to_csv(self) -> str:
        """One line for each point, under a line of names."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        columns = self.columns()
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        return out.getvalue()

    def begins(self) -> dict[str, int]:
        """The step of the run at which each source begins, the oldest source first.

        A script of several phases counts each of them from 0, in a folder of its own: one that starts over
        after another has ended follows it. Sources that are written side by side begin together.
        """
        with self._lock:
            spans = {source: self._span(source) for source in {*self._sources, *self._media}}
        found: dict[str, int] = {}
        begin, last_step, last_time = 0, 0, -inf
        known = {source: span for source, span in spans.items() if span is not None}
        for source in sorted(known, key=lambda one: known[one].first_time):
            span = known[source]
            # One that goes on begins near the end of the other, one that starts over at about 0.
            if found and span.first_time >= last_time and 2 * span.first_step <= last_step:
                begin += last_step
            found[source] = begin
            last_step, last_time = span.last_step, span.last_time
        return found

    def _look_at_manifest(self) -> None:
        try:
            status = RunPaths(self.folder).manifest.stat()
        except OSError:
            self._manifest = None, []
            return
        signature = status.st_mtime_ns, status.st_size
        if signature != self._manifest[0]:
            self._manifest = signature, manifest_problems(self.folder)

    def _span(self, source: str) -> _Span | None:
        """From where to where a source goes: by its numbers, else by what else it holds."""
        spans = [column.span() for column in self._sources.get(source, {}).values()]
        spans = spans or [
            _Span(one.step, one.step, one.time, one.time) for one in self._media.get(source, ())
        ]
        if not spans:
            return None
        return _Span(
            min(span.first_step for span in spans),
            max(span.last_step for span in spans),
            min(span.first_time for span in spans),
            max(span.last_time for span in spans),
        )

    def _parts(self, name: str) -> list[MetricSeries]:
        parts = []
        for source, begin in self.begins().items():
            column = self._sources.get(source, {}).get(name)
            if column is not None:
                part = column.joined()
                parts.append(MetricSeries(part.steps + begin, part.values, part.times) if begin else part)
        return parts

    def _take(self, chunks: Iterable[ScalarChunk]) -> None:
        for chunk in chunks:
            columns = self._sources.setdefault(chunk.source, {})
            media = self._media.setdefault(chunk.source, [])
            if chunk.purge_from is not None:
                for name, column in list(columns.items()):
                    column.purge(chunk.purge_from)
                    self._made.pop(name, None)
                    if not len(column):
                        del columns[name]
                media[:] = [one for one in media if one.step < chunk.purge_from]
            for name, new in chunk.series.items():
                if len(new):
                    columns.setdefault(name, _Column()).append(new.steps, new.wall_times, new.values)
                    self._made.pop(name, None)
                    self._unsaved += len(new)
            media += chunk.media
            self._unsaved += len(chunk.media)
        begins = self.begins()
        if begins != self._begins:
            # What was there before may have moved.
            self._made.clear()
            self._begins = begins

    def _take_cached(self, cached: Cached) -> None:
        for source, columns in cached.sources.items():
            self._sources[source] = {name: _Column(*column) for name, column in columns.items()}
        self._media = {source: list(media) for source, media in cached.media.items()}
        self._begins = self.begins()
        self._saved = len(self)

    def _save(self) -> None:
        sources = {
            source: {name: column.raw() for name, column in columns.items()}
            for source, columns in self._sources.items()
        }
        save_cache(self.folder, Cached(self._reader.marks(), sources, self._media))
        # Also where it cannot be written: it is not tried again at once.
        self._unsaved, self._saved, self._saved_at = 0, len(self), time.monotonic()


class _Span(NamedTuple):
    first_step: int
    last_step: int
    first_time: float
    last_time: float


class _Column:
    """A metric of one source, in the order in which it was written: arrays with room behind their end."""

    def __init__(self, steps: Any = (), times: Any = (), values: Any = ()) -> None:
        self._steps, self._times, self._values = map(np.asarray, (steps, times, values))
        self._count = len(self._steps)

    def __len__(self) -> int:
        return self._count

    def span(self) -> _Span:
        last = self._count - 1
        steps, times = self._steps, self._times
        return _Span(int(steps[0]), int(steps[last]), float(times[0]), float(times[last]))

    def append(self, steps: Any, times: Any, values: Any) -> None:
        end = self._count + len(steps)
        if end > len(self._steps) or not self._widened():
            room = max(end, self._count * 3 // 2)
            self._steps = _grown(self._steps, self._count, room, np.int64)
            self._times = _grown(self._times, self._count, room, np.float64)
            self._values = _grown(self._values, self._count, room, np.float64)
        for column, new in ((self._steps, steps), (self._times, times), (self._values, values)):
            column[self._count : end] = new
        self._count = end

    def raw(self) -> Columns:
        """Steps, times and values, as they stand here."""
        return self._steps[: self._count], self._times[: self._count], self._values[: self._count]

    def joined(self) -> MetricSeries:
        if not self._widened():
            self._steps, self._values = self._steps.astype(np.int64), self._values.astype(np.float64)
            self._times = self._times.astype(np.float64)
        steps, times, values = self.raw()
        return MetricSeries(steps, values, times)

    def purge(self, step: int) -> None:
        """Forget the points from this step on."""
        steps, times, values = self.raw()
        kept = steps < step
        if not kept.all():
            # New arrays: who holds the old ones sees no point change.
            self._steps, self._times, self._values = steps[kept], times[kept], values[kept]
            self._count = len(self._steps)

    def _widened(self) -> bool:
        """Whether the columns are of their full types: what comes from the cache is not at first."""
        columns = (self._steps, np.int64), (self._times, np.float64), (self._values, np.float64)
        return all(column.dtype == kind for column, kind in columns)


def _grown(column: NDArray[Any], count: int, room: int, kind: Any) -> NDArray[Any]:
    grown = np.empty(room, kind)
    grown[:count] = column[:count]
    return grown


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
