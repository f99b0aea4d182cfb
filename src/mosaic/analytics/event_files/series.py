"""What the reader hands out: the new scalars of one folder of event files."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

EARLIEST_STEP = -(2**63)


def _integers() -> array[int]:
    return array("q")


def _floats() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Series:
    """One tag's points in the order they were written, in three columns of equal length."""

    steps: array[int] = field(default_factory=_integers)
    wall_times: array[float] = field(default_factory=_floats)
    values: array[float] = field(default_factory=_floats)

    def __len__(self) -> int:
        return len(self.steps)

    def append(self, step: int, wall_time: float, value: float) -> None:
        """Adds one point."""
        self.steps.append(step)
        self.wall_times.append(wall_time)
        self.values.append(value)

    def extend(self, other: Series) -> None:
        """Adds all points of another series."""
        self.steps.extend(other.steps)
        self.wall_times.extend(other.wall_times)
        self.values.extend(other.values)

    def without(self, purge_from: int) -> Series:
        """The points before step `purge_from`."""
        kept = Series()
        for step, wall_time, value in zip(self.steps, self.wall_times, self.values, strict=True):
            if step < purge_from:
                kept.append(step, wall_time, value)
        return kept


@dataclass(slots=True)
class ScalarChunk:
    """New points of one source.

    First forget that source's points with a step >= `purge_from`, then add these; `EARLIEST_STEP` there means
    that the source begins anew.
    """

    source: str
    purge_from: int | None = None
    series: dict[str, Series] = field(default_factory=dict)
