"""All scalars of a run as one table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from mosaic.analytics.event_files import ScalarChunk, Series


class MetricRow(NamedTuple):
    """One point of one metric."""

    step: int
    wall_time: float
    source: str
    tag: str
    value: float


class MetricTable:
    """The points of all chunks so far, less those that a later chunk purged."""

    def __init__(self, chunks: Iterable[ScalarChunk] = ()) -> None:
        self._sources: dict[str, dict[str, Series]] = {}
        self.update(chunks)

    def update(self, chunks: Iterable[ScalarChunk]) -> None:
        """Takes in what a reader's poll returned."""
        for chunk in chunks:
            columns = self._sources.setdefault(chunk.source, {})
            if chunk.purge_from is not None:
                kept = {tag: series.without(chunk.purge_from) for tag, series in columns.items()}
                columns = {tag: series for tag, series in kept.items() if len(series)}
                self._sources[chunk.source] = columns
            for tag, series in chunk.series.items():
                if len(series):
                    columns.setdefault(tag, Series()).extend(series)

    def tags(self) -> list[str]:
        """The names of all metrics, sorted."""
        return sorted({tag for columns in self._sources.values() for tag in columns})

    def parts(self, tag: str) -> list[tuple[int, Series]]:
        """One metric as each source has it: the table's columns, no copies, in the order they were written.

        Before each stands the step of the run at which its source begins.
        """
        begins = self.begins()
        return [
            (begins[source], self._sources[source][tag]) for source in begins if tag in self._sources[source]
        ]

    def begins(self) -> dict[str, int]:
        """The step of the run at which each source begins, the oldest source first.

        A script of several phases counts each of them from 0, in a folder of its own: one that starts over
        after another has ended follows it. Sources that are written side by side begin together.
        """
        filled = {source: columns.values() for source, columns in self._sources.items() if columns}
        starts = {source: min(one.wall_times[0] for one in columns) for source, columns in filled.items()}
        found: dict[str, int] = {}
        begin, last_step, last_time = 0, 0, math.inf
        for source in sorted(filled, key=starts.__getitem__):
            first_step = min(one.steps[0] for one in filled[source])
            # One that goes on begins near the end of the other, one that starts over at about 0.
            if starts[source] >= last_time and 2 * first_step <= last_step:
                begin += last_step
            found[source] = begin
            last_step = max(one.steps[-1] for one in filled[source])
            last_time = max(one.wall_times[-1] for one in filled[source])
        return found

    def rows(self, tag: str | None = None) -> list[MetricRow]:
        """Every point, or those of one metric, by step and then by time."""
        return sorted(
            MetricRow(step, wall_time, source, name, value)
            for source, columns in self._sources.items()
            for name, series in columns.items()
            if tag is None or name == tag
            for step, wall_time, value in zip(series.steps, series.wall_times, series.values, strict=True)
        )

    def series(self, tag: str) -> Series:
        """One metric from all sources, by step and then by time; empty when there is none of that name."""
        merged = Series()
        for row in self.rows(tag):
            merged.append(row.step, row.wall_time, row.value)
        return merged

    def last(self, tag: str) -> float | None:
        """The value of a metric at its latest step."""
        values = self.series(tag).values
        return values[-1] if values else None

    def to_csv(self) -> str:
        """One line for each point, under a line of names."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(MetricRow._fields)
        writer.writerows(self.rows())
        return out.getvalue()

    def as_json(self) -> dict[str, dict[str, dict[str, list[Any]]]]:
        """source → tag → columns; values JSON has no word for are null."""
        return {
            source: {
                tag: {
                    "steps": list(series.steps),
                    "wall_times": list(series.wall_times),
                    "values": [value if math.isfinite(value) else None for value in series.values],
                }
                for tag, series in columns.items()
            }
            for source, columns in self._sources.items()
        }
