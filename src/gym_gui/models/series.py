"""One metric of one run as arrays: thinned to what a screen can show, and smoothed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.store import MetricSeries

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_FACTOR = 8
_BLOCKS_PER_COLUMN = 4
_BINS = 9
"""So many places a window is divided into; an odd number, so that a place has as many on either side."""
_COLUMNS = 400
_LEAST_POINTS = 3
"""In a window, so that their mean tells more than they do."""
_NICE = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, eq=False)
class Curve:
    """The points of a metric by step. Values that are not numbers are left out and counted in `lost`."""

    steps: Floats
    times: Floats
    values: Floats
    lost: int = 0

    def __len__(self) -> int:
        return len(self.steps)


def curve_of(series: MetricSeries) -> Curve:
    """A metric as it is drawn."""
    finite = np.isfinite(series.values)
    lost = len(series) - int(np.count_nonzero(finite))
    if lost:
        series = series.at(finite)
    return Curve(series.steps.astype(np.float64), series.times, series.values, lost)


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


@dataclass(frozen=True)
class Trend:
    """At places that rise: a mean, one standard deviation around it, and the least and greatest value."""

    x: Floats
    mean: Floats
    std: Floats
    low: Floats
    """The lower end of the band: mean − std, but never below any value there is."""
    high: Floats
    least: Floats
    greatest: Floats

    def piece(self, low: float, high: float, most: int) -> Trend:
        """What lies between two places, with a neighbour on either side, in about `most` places."""
        first = max(0, int(np.searchsorted(self.x, low)) - 1)
        last = min(len(self.x), int(np.searchsorted(self.x, high, "right")) + 1)
        stride = max(1, -(-(last - first) // max(1, most)))
        if stride == 1:
            cut = slice(first, last)
            return Trend(*(getattr(self, name)[cut] for name in self.__dataclass_fields__))
        starts = np.arange(first, last, stride)
        # Neighbours have most of their window in common, so one of them stands for all; the ends stay.
        kept = np.minimum(starts + stride // 2, last - 1)
        kept[0], kept[-1] = first, last - 1
        columns = [column[kept] for column in (self.x, self.mean, self.std, self.low, self.high)]
        columns.append(np.minimum.reduceat(self.least[:last], starts))
        columns.append(np.maximum.reduceat(self.greatest[:last], starts))
        return Trend(*columns)


def window_of(extent: float, share: float) -> float:
    """A round length near this share of an axis: it stays the same while a run grows a little. 0 is none."""
    if share <= 0 or not extent > 0:
        return 0.0
    wanted = extent * share
    power = 10.0 ** math.floor(math.log10(wanted))
    return power * min(_NICE, key=lambda factor: abs(math.log(factor * power / wanted)))


def trend_of(x: Floats, values: Floats, window: float) -> Trend | None:
    """The mean of all values at most half a window away; None where those are too few."""
    if window <= 0 or len(x) < 2:
        return None
    places = np.floor((x - x[0]) / (window / _BINS))
    starts = np.flatnonzero(np.concatenate([[True], places[1:] > places[:-1]]))
    index: Indices = places[starts].astype(np.intp)
    counts = np.diff(np.append(starts, len(x))).astype(np.float64)
    means = np.add.reduceat(values, starts) / counts
    # About its own mean: the squares themselves would lose all digits beside one that is very large.
    squares = np.add.reduceat((values - np.repeat(means, counts.astype(np.intp))) ** 2, starts)
    least, greatest = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)

    weight = _around(index, counts, 0.0)
    total = weight.sum(axis=1)
    if np.median(total) < _LEAST_POINTS:
        return None
    inside = _around(index, means, 0.0)
    mean = (weight * inside).sum(axis=1) / total
    apart = weight * (inside - mean[:, None]) ** 2
    std = np.sqrt((_around(index, squares, 0.0) + apart).sum(axis=1) / total)
    bottom, top = _around(index, least, np.inf).min(axis=1), _around(index, greatest, -np.inf).max(axis=1)
    middle = np.add.reduceat(x, starts) / counts
    low, high = np.maximum(mean - std, bottom), np.minimum(mean + std, top)
    # Extremes stand where they are, not over the whole window; the band never reaches beyond them.
    return Trend(middle, mean, std, low, high, np.minimum(least, low), np.maximum(greatest, high))


def _around(index: Indices, values: Floats, empty: float) -> Floats:
    """For each filled place the values in the window around it; `empty` where there are none."""
    half = _BINS // 2
    dense = np.full(int(index[-1]) + 1 + 2 * half, empty)
    dense[index + half] = values
    found: Floats = np.lib.stride_tricks.sliding_window_view(dense, _BINS)[index]
    return found


def mean_of(lines: Sequence[tuple[Floats, Floats]]) -> Trend:
    """The mean of several lines that have no places in common, and how far they lie apart."""
    filled = [(x, values) for x, values in lines if len(x)]
    if not filled:
        return Trend(*(np.empty(0),) * 7)
    low, high = min(x[0] for x, _ in filled), max(x[-1] for x, _ in filled)
    edges = np.linspace(low, max(high, low + 1e-9), _COLUMNS + 1)
    table = np.stack([_on_grid(x, values, edges) for x, values in filled])
    there = ~np.isnan(table)
    kept = there.any(axis=0)
    table, there = table[:, kept], there[:, kept]
    counts = there.sum(axis=0)
    mean = np.where(there, table, 0.0).sum(axis=0) / counts
    std = np.sqrt(np.where(there, (table - mean) ** 2, 0.0).sum(axis=0) / counts)
    least, greatest = np.where(there, table, np.inf).min(axis=0), np.where(there, table, -np.inf).max(axis=0)
    places = ((edges[1:] + edges[:-1]) / 2)[kept]
    band = np.maximum(mean - std, least), np.minimum(mean + std, greatest)
    return Trend(places, mean, std, *band, least, greatest)


def _on_grid(x: Floats, values: Floats, edges: Floats) -> Floats:
    """The mean of a line in each column; between its points straight lines, outside of them nothing."""
    places = np.searchsorted(x, edges)
    places[-1] = len(x)
    counts = np.diff(places)
    filled = counts > 0
    means = np.add.reduceat(values, places[:-1][filled]) / counts[filled]
    centres = (edges[1:] + edges[:-1]) / 2
    drawn: Floats = np.interp(centres, centres[filled], means, left=np.nan, right=np.nan)
    return drawn
