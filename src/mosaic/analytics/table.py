"""All scalars of a run as one table."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Any

from mosaic.analytics.event_files import ScalarChunk, Series


@dataclass(frozen=True, slots=True)
class MetricRow:
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
                columns.setdefault(tag, Series()).extend(series)

    def tags(self) -> list[str]:
        """The names of all metrics, sorted."""
        return sorted({tag for columns in self._sources.values() for tag in columns})

    def parts(self, tag: str) -> list[Series]:
        """One metric as each source has it, in the order it was written: the table's columns, no copies."""
        return [columns[tag] for columns in self._sources.values() if tag in columns]

    def rows(self, tag: str | None = None) -> list[MetricRow]:
        """Every point, or those of one metric, by step and then by time."""
        points = sorted(
            (step, wall_time, source, name, value)
            for source, columns in self._sources.items()
            for name, series in columns.items()
            if tag is None or name == tag
            for step, wall_time, value in zip(series.steps, series.wall_times, series.values, strict=True)
        )
        return [MetricRow(*point) for point in points]

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
        writer.writerow(column.name for column in fields(MetricRow))
        writer.writerows(astuple(row) for row in self.rows())
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
