"""One metric of one run as arrays, and the few points of it that a screen can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.event_files import Series
from mosaic.analytics.table import MetricTable

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_FACTOR = 8
_BLOCKS_PER_COLUMN = 4


@dataclass(frozen=True)
class Curve:
    """The points of a metric by step. Values that are no numbers are left out and counted in `lost`."""

    steps: Floats
    times: Floats
    values: Floats
    lost: int = 0

    def __len__(self) -> int:
        return len(self.steps)


def curve_of(table: MetricTable, tag: str) -> Curve:
    """A metric by the step of the run, from all sources. It copies: the table may go on growing."""
    return _merged(table.parts(tag))


def _merged(parts: Sequence[tuple[int, Series]]) -> Curve:
    steps = _joined([np.frombuffer(part.steps, np.int64) + begin for begin, part in parts])
    times = _joined([np.frombuffer(part.wall_times) for _, part in parts])
    values = _joined([np.frombuffer(part.values) for _, part in parts])
    finite = np.isfinite(values)
    lost = len(values) - int(np.count_nonzero(finite))
    if lost:
        steps, times, values = steps[finite], times[finite], values[finite]
    if np.any(steps[1:] < steps[:-1]):
        order = np.argsort(steps, kind="stable")
        steps, times, values = steps[order], times[order], values[order]
    return Curve(steps, times, values, lost)


def _joined(columns: Sequence[NDArray[np.int64] | Floats]) -> Floats:
    if not columns:
        return np.empty(0)
    # Never a view: an array that lends its memory out cannot grow.
    return np.concatenate([column.astype(np.float64) for column in columns])


class Pyramid:
    """Least and greatest values of ever larger blocks, so that a glance costs pixels and not points."""

    def __init__(self, values: Floats) -> None:
        self._levels: list[tuple[Floats, Floats]] = [(values, values)]
        while len(self._levels[-1][0]) > _FACTOR * _FACTOR:
            low, high = self._levels[-1]
            self._levels.append((_blocks(low).min(axis=1), _blocks(high).max(axis=1)))

    def extremes(self, edges: Indices) -> tuple[Floats, Floats]:
        """Least and greatest value between each two neighbours of `edges`, which rise strictly.

        Where the pieces are long their borders are rounded to blocks; no value is left out or seen twice.
        """
        level, size = 0, 1
        shortest = int(np.diff(edges).min()) if len(edges) > 1 else 0
        while level + 1 < len(self._levels) and shortest >= size * _FACTOR * _BLOCKS_PER_COLUMN:
            level, size = level + 1, size * _FACTOR
        low, high = self._levels[level]
        starts, end = edges[:-1] // size, -(-int(edges[-1]) // size)
        return np.minimum.reduceat(low[:end], starts), np.maximum.reduceat(high[:end], starts)


def _blocks(values: Floats) -> Floats:
    spare = -len(values) % _FACTOR
    if spare:
        values = np.concatenate([values, np.full(spare, values[-1])])
    return values.reshape(-1, _FACTOR)


def thin(
    x: Floats, values: Floats, pyramid: Pyramid, low: float, high: float, columns: int
) -> tuple[Floats, Floats]:
    """What is to be drawn of a curve from `low` to `high` on so many columns of pixels.

    Each column keeps its least and its greatest value, so that no peak is lost; a neighbour on either side
    stays, so that lines lead out of the picture.
    """
    first = max(0, int(np.searchsorted(x, low)) - 1)
    last = min(len(x), int(np.searchsorted(x, high, "right")) + 1)
    if last - first <= 2 * columns:
        return x[first:last], values[first:last]
    edges = np.empty(columns + 1, np.intp)
    edges[0], edges[-1] = first, last
    edges[1:-1] = np.searchsorted(x[first:last], np.linspace(low, high, columns + 1)[1:-1])
    edges[1:-1] += first
    edges = edges[np.concatenate([[True], edges[1:] > edges[:-1]])]
    least, greatest = pyramid.extremes(edges)
    begin, end = edges[:-1], edges[1:] - 1
    way = values[end] - values[begin]
    # Where a column goes up as much as down, every other one is turned: neighbours meet at their ends.
    turned = np.arange(len(way)) % 2 == 1
    falls = np.where(np.abs(way) < (greatest - least) * 0.5, turned, way < 0)
    xs, ys = np.empty(2 * len(begin)), np.empty(2 * len(begin))
    xs[0::2], xs[1::2] = x[begin], x[end]
    ys[0::2] = np.where(falls, greatest, least)
    ys[1::2] = np.where(falls, least, greatest)
    return xs, ys


def nearest(x: Floats, at: float) -> int | None:
    """The index of the point nearest to `at`; None when there is none."""
    if not len(x):
        return None
    right = int(np.clip(np.searchsorted(x, at), 1, len(x) - 1)) if len(x) > 1 else 0
    left = max(0, right - 1)
    return left if at - x[left] <= x[right] - at else right
