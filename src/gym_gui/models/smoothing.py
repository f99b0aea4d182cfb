"""Curves made readable: the mean in a window that moves along the axis, with the spread and the extremes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gym_gui.models.series import Floats, Indices

_BINS = 9
"""So many places a window is divided into; an odd number, so that a place has as many on either side."""
_COLUMNS = 400
_LEAST_POINTS = 3
"""In a window, so that their mean tells more than they do."""
_NICE = (1.0, 2.0, 5.0, 10.0)


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

    def __len__(self) -> int:
        return len(self.x)

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
        return Trend(
            self.x[kept],
            self.mean[kept],
            self.std[kept],
            self.low[kept],
            self.high[kept],
            np.minimum.reduceat(self.least[:last], starts),
            np.maximum.reduceat(self.greatest[:last], starts),
        )


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
