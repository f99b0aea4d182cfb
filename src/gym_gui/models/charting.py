"""What a chart shows: lines made from curves, thinned to the pixels there are, and the range they need."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gym_gui.models.series import Curve, Floats, Pyramid, nearest, thin
from gym_gui.models.smoothing import smooth
from mosaic.analytics.eval_summary import EvalSummary

Axis = Literal["step", "time", "batch"]

MOST_POINTS = 24_000
"""So many points are drawn at once, whatever the number of lines."""
MOST_WITH_RAW = 8
"""With more lines than this the raw values behind them would be a fog."""
_LEAST_COLUMNS = 60
_COLUMN_PIXELS = 2
"""A line is about as wide as this: finer columns cost twice as much to paint and look the same."""
_PADDING = 0.06
_NEAR_ZERO = 0.1
_SAME = 1e-9


@dataclass(frozen=True)
class ChartOptions:
    """How all charts of a page are drawn."""

    smoothing: float = 0.6
    axis: Axis = "step"


@dataclass(frozen=True)
class Line:
    """One line of a chart: its points, the smoothed ones that stand out, and a band around them."""

    label: str
    colour: int
    x: Floats
    values: Floats
    shown: Floats
    band: tuple[Floats, Floats] | None = None
    lost: int = 0
    pyramids: tuple[Pyramid, Pyramid] = field(repr=False, default=(Pyramid(np.empty(0)),) * 2)

    @property
    def smoothed(self) -> bool:
        return self.shown is not self.values


@dataclass(frozen=True)
class Drawing:
    """The points of one line that are painted: faint raw values, the line itself, and a band."""

    raw: tuple[Floats, Floats] | None
    main: tuple[Floats, Floats]
    band: tuple[Floats, Floats, Floats] | None = None


def line_of(curve: Curve, options: ChartOptions, label: str = "", colour: int = 0) -> Line:
    """A curve as a line; the long work of drawing it is done here, once."""
    x = curve.times - curve.times[0] if options.axis == "time" and len(curve) else curve.steps
    if options.axis == "time" and np.any(x[1:] < x[:-1]):
        # A run that was resumed later writes steps again that it had written before.
        order = np.argsort(x, kind="stable")
        x, values = x[order], curve.values[order]
    else:
        values = curve.values
    shown = smooth(values, options.smoothing)
    raw = Pyramid(values)
    pyramids = (raw, raw if shown is values else Pyramid(shown))
    return Line(label, colour, x, values, shown, lost=curve.lost, pyramids=pyramids)


def banded(label: str, colour: int, x: Floats, middle: Floats, low: Floats, high: Floats) -> Line:
    """A line with a band around it, of few enough points to be drawn as it is."""
    return Line(label, colour, x, middle, middle, (low, high), pyramids=(Pyramid(middle),) * 2)


def plain(line: Line, label: str, colour: int) -> Line:
    """The same line with another name and colour, without the raw values behind it."""
    pyramid = line.pyramids[1]
    return replace(line, label=label, colour=colour, values=line.shown, pyramids=(pyramid, pyramid))


def batches_line(summary: EvalSummary) -> Line:
    """The returns of an evaluation: the mean of each batch, with one standard deviation around it."""
    x = np.array([batch.batch for batch in summary.batches], np.float64)
    mean = np.array([batch.mean for batch in summary.batches], np.float64)
    std = np.array([batch.std for batch in summary.batches], np.float64)
    finite = np.isfinite(mean) & np.isfinite(std)
    x, mean, std = x[finite], mean[finite], std[finite]
    return banded("mean return of a batch", 0, x, mean, mean - std, mean + std)


def full_range(lines: Sequence[Line]) -> tuple[float, float] | None:
    """From the first point of all lines to the last."""
    filled = [line.x for line in lines if len(line.x)]
    if not filled:
        return None
    low, high = min(float(x[0]) for x in filled), max(float(x[-1]) for x in filled)
    if 0.0 < low < (high - low) * _NEAR_ZERO:
        # Where a run begins is where people expect the axis to.
        low = 0.0
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def drawings(lines: Sequence[Line], low: float, high: float, width: int) -> list[Drawing]:
    """What is painted of each line between two places of the axis, `width` pixels apart."""
    with_raw = len(lines) <= MOST_WITH_RAW
    curves = max(1, len(lines) * (2 if with_raw else 1))
    columns = max(_LEAST_COLUMNS, min(width // _COLUMN_PIXELS, MOST_POINTS // (2 * curves)))
    return [_drawing(line, low, high, columns, with_raw) for line in lines]


def _drawing(line: Line, low: float, high: float, columns: int, with_raw: bool) -> Drawing:
    main = thin(line.x, line.shown, line.pyramids[1], low, high, columns)
    raw = None
    if with_raw and line.smoothed:
        raw = thin(line.x, line.values, line.pyramids[0], low, high, columns)
    band = None if line.band is None else (line.x, *line.band)
    return Drawing(raw, main, band)


def value_range(painted: Sequence[Drawing], low: float, high: float) -> tuple[float, float]:
    """The height that shows all that is painted between two places, with a little air."""
    pairs = [drawing.main for drawing in painted]
    pairs += [drawing.raw for drawing in painted if drawing.raw is not None]
    for drawing in painted:
        if drawing.band is not None:
            x, lower, upper = drawing.band
            pairs += [(x, lower), (x, upper)]
    places = np.concatenate([x for x, _ in pairs]) if pairs else np.empty(0)
    values = np.concatenate([y for _, y in pairs]) if pairs else np.empty(0)
    seen = values[(places >= low) & (places <= high)]
    if not len(seen):
        return 0.0, 1.0
    least, greatest = float(seen.min()), float(seen.max())
    if greatest - least <= max(abs(greatest), abs(least)) * _SAME:
        space = abs(least) * 0.1 or 1.0
        return least - space, greatest + space
    space = (greatest - least) * _PADDING
    return least - space, greatest + space


@dataclass(frozen=True)
class Reading:
    """The value of one line at the place the pointer is at."""

    label: str
    colour: int
    x: float
    value: float
    shown: float
    spread: float | None = None


def readings(lines: Sequence[Line], at: float) -> list[Reading]:
    """What stands nearest to a place of the axis, of each line that has anything there, highest first."""
    found = []
    for line in lines:
        index = nearest(line.x, at)
        if index is None:
            continue
        spread = None if line.band is None else float(line.band[1][index] - line.shown[index])
        place, value, shown = line.x[index], line.values[index], line.shown[index]
        found.append(Reading(line.label, line.colour, float(place), float(value), float(shown), spread))
    return sorted(found, key=lambda reading: -reading.shown)


def to_csv(tag: str, lines: Sequence[Line], axis: Axis) -> str:
    """Every point of a chart, thinned or not, one a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    spread = any(line.band for line in lines)
    writer.writerow(["line", "metric", axis, "value", "smoothed", *(["low", "high"] if spread else [])])
    for line in lines:
        columns = [line.x, line.values, line.shown]
        if spread:
            columns += line.band or (line.shown, line.shown)
        for x, *values in zip(*(column.tolist() for column in columns), strict=True):
            place = int(x) if axis != "time" else x
            writer.writerow([line.label or tag, tag, place, *values])
    return out.getvalue()
