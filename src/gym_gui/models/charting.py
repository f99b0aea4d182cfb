"""What a chart shows: which metrics, the lines made from curves, thinned to the pixels there are."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from gym_gui.models import words
from gym_gui.models.series import Curve, Floats, Pyramid, Trend, mean_of, nearest, thin, trend_of, window_of
from gym_gui.models.words import is_evaluation
from mosaic.analytics.eval_summary import EvalSummary
from mosaic.analytics.scales import clock, value_text
from mosaic.client import RunRecord

Axis = Literal["step", "time", "batch"]

MOST_POINTS = 24_000
"""So many points are drawn at once, whatever the number of lines."""
MOST_BANDS = 6
"""With more lines than this the bands around them would be a fog, and so would extremes of more than one."""
_LEAST_COLUMNS = 60
_COLUMN_PIXELS = 2
"""A line is about as wide as this: finer columns cost twice as much to paint and look the same."""
_MOST_DOTS = 30
_PADDING = 0.06
_NEAR_ZERO = 0.1
_SAME = 1e-9
_REACH = 0.03
"""So far from its ends, as a share of all, a line has still a value."""
Points = tuple[Floats, Floats]
Area = tuple[Floats, Floats, Floats]
"""Places, and the lower and the upper edge there."""
_SECTIONS = ("charts", "rollout", "eval", "losses", "train", "time")
_FIRST = (
    "charts/episodic_return",
    "rollout/ep_rew_mean",
    "eval/episodic_return",
    "charts/episodic_length",
    "charts/SPS",
)
_MAIN = ("charts/episodic_return", "rollout/ep_rew_mean", "eval/mean", "eval/episodic_return")
_BESIDE = (
    *("losses/value_loss", "losses/policy_loss", "losses/entropy", "losses/td_loss", "losses/loss"),
    *("losses/qf_loss", "losses/qf1_loss", "losses/actor_loss", "losses/q_values", "losses/qf1_values"),
    *("charts/SPS", "eval/min", "eval/max", "eval/std", "eval/mean_length", "charts/episodic_length"),
)
_BESIDE_COUNT = 4
_RETURNS = ("charts/episodic_return", "rollout/ep_rew_mean")
_SPEEDS = ("charts/SPS", "time/fps")


@dataclass(frozen=True)
class ChartOptions:
    """How all charts of a page are drawn."""

    smoothing: float = 0.02
    """The length of the window, as a share of the axis."""
    axis: Axis = "step"
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Line:
    """One line of a chart: its points, and its trend if there is one. On a log axis `x` is the power."""

    label: str
    colour: int
    x: Floats
    values: Floats
    trend: Trend | None = None
    lost: int = 0
    about: str = ""
    """What the trend is the mean of."""

    @property
    def shown(self) -> Floats:
        """The values that stand out."""
        return self.values if self.trend is None else self.trend.mean

    @property
    def places(self) -> Floats:
        """Where they stand."""
        return self.x if self.trend is None else self.trend.x

    @cached_property
    def pyramid(self) -> Pyramid:
        """Of the points."""
        return Pyramid(self.values)


@dataclass(frozen=True)
class Drawing:
    """What is painted of one line: extremes and band, its points faintly or as dots, and the line."""

    main: Points
    raw: Points | None = None
    band: Area | None = None
    extremes: Area | None = None
    dots: Points | None = None


def line_of(
    curve: Curve, options: ChartOptions, label: str = "", colour: int = 0, window: float | None = None
) -> Line:
    """A curve as a line; the long work of drawing it is done here, once."""
    x, values = axis_of(curve, options)
    window = common_window([curve], options) if window is None else window
    trend = trend_of(x, values, window)
    about = "" if trend is None else f"mean over {_length(window, options)}"
    return Line(label, colour, x, values, trend, curve.lost, about)


def axis_of(curve: Curve, options: ChartOptions) -> Points:
    """The places of a curve's points on the axis that was chosen, which rise, and its values."""
    timed = options.axis == "time"
    x = curve.times - curve.times[0] if timed and len(curve) else curve.steps
    values = curve.values
    if timed and np.any(x[1:] < x[:-1]):
        # A run that was resumed later writes steps again that it had written before.
        order = np.argsort(x, kind="stable")
        x, values = x[order], values[order]
    if options.log_x:
        # Before the first step or second there is no place on such an axis.
        first = int(np.searchsorted(x, 1.0))
        x, values = np.log10(x[first:]), values[first:]
    return x, values


def common_window(curves: Sequence[Curve], options: ChartOptions) -> float:
    """One window for all lines of a chart, so that the smoother one is not merely the longer one."""
    longest = max((_extent(curve, options) for curve in curves), default=0.0)
    return window_of(longest, options.smoothing)


def _extent(curve: Curve, options: ChartOptions) -> float:
    """How much of the axis a curve takes."""
    if not len(curve):
        return 0.0
    places = curve.times - curve.times[0] if options.axis == "time" else curve.steps[[0, -1]]
    low, high = float(places.min()), float(places.max())
    return math.log10(max(high, 1.0) / max(low, 1.0)) if options.log_x else high - low


def _length(window: float, options: ChartOptions) -> str:
    if options.log_x:
        return f"{options.smoothing * 100:g} % of the axis"
    return clock(window) if options.axis == "time" else f"{words.short_steps(window)} steps"


def mean_line(label: str, colour: int, lines: Sequence[Line]) -> Line:
    """Mean, standard deviation and extremes of several lines, each counted as one."""
    return _banded(label, colour, mean_of([(line.places, line.shown) for line in lines]), "mean of the seeds")


def _banded(label: str, colour: int, trend: Trend, about: str) -> Line:
    return Line(label, colour, trend.x, trend.mean, trend, about=about)


def plain(line: Line, label: str, colour: int) -> Line:
    """The same line with another name and colour, without a band."""
    return replace(line, label=label, colour=colour, x=line.places, values=line.shown, trend=None)


def batches_line(summary: EvalSummary) -> Line:
    """The returns of an evaluation: the mean of each batch, with one standard deviation around it."""
    rows = [(one.batch, one.mean, one.std, one.min, one.max) for one in summary.batches]
    table = np.array(rows, np.float64).reshape(-1, 5)
    x, mean, std, least, greatest = table[np.isfinite(table).all(axis=1)].T
    band = np.maximum(mean - std, least), np.minimum(mean + std, greatest)
    trend = Trend(x, mean, std, *band, least, greatest)
    return _banded("", 0, trend, "mean of each batch")


def full_range(lines: Sequence[Line]) -> tuple[float, float] | None:
    """From the first point of all lines to the last."""
    filled = [line.x for line in lines if len(line.x)]
    if not filled:
        return None
    low, high = min(float(x[0]) for x in filled), max(float(x[-1]) for x in filled)
    if 0.0 < low < (high - low) * _NEAR_ZERO:
        # Where a run begins is where people expect the axis to.
        low = 0.0
    if high > low:
        return low, high
    return (0.0, 2 * high) if high > 0 else (low - 1.0, high + 1.0)


def drawings(lines: Sequence[Line], low: float, high: float, width: int) -> list[Drawing]:
    """What is painted of each line between two places of the axis, `width` pixels apart."""
    columns = max(_LEAST_COLUMNS, min(width // _COLUMN_PIXELS, MOST_POINTS // (2 * max(1, len(lines)))))
    return [_drawing(line, low, high, columns, len(lines)) for line in lines]


def _drawing(line: Line, low: float, high: float, columns: int, count: int) -> Drawing:
    first, last = np.searchsorted(line.x, low), np.searchsorted(line.x, high, "right")
    few = last - first <= columns // 3
    dots = (line.x[first:last], line.values[first:last]) if last - first <= _MOST_DOTS // count else None
    if line.trend is None:
        return Drawing(thin(line.x, line.values, line.pyramid, low, high, columns), dots=dots)
    part = line.trend.piece(low, high, columns)
    raw = band = extremes = None
    if count <= MOST_BANDS:
        band = (part.x, part.low, part.high)
    if count == 1 and few:
        raw = thin(line.x, line.values, line.pyramid, low, high, columns)
    elif count == 1:
        extremes = (part.x, part.least, part.greatest)
    return Drawing((part.x, part.mean), raw, band, extremes, dots)


def value_range(painted: Sequence[Drawing], low: float, high: float) -> tuple[float, float]:
    """The height that shows all that is painted between two places, with a little air."""
    pairs = [drawing.main for drawing in painted]
    pairs += [drawing.raw for drawing in painted if drawing.raw is not None]
    for drawing in painted:
        for area in (drawing.band, drawing.extremes):
            if area is not None:
                pairs += [(area[0], area[1]), (area[0], area[2])]
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


def in_powers(drawing: Drawing) -> Drawing:
    """The same for a logarithmic height; all values are above 0."""

    def powers(points: Points | None) -> Points | None:
        return None if points is None else (points[0], np.log10(points[1]))

    def edges(area: Area | None) -> Area | None:
        return None if area is None else (area[0], np.log10(area[1]), np.log10(area[2]))

    main = (drawing.main[0], np.log10(drawing.main[1]))
    return Drawing(
        main, powers(drawing.raw), edges(drawing.band), edges(drawing.extremes), powers(drawing.dots)
    )


def above_zero(lines: Sequence[Line]) -> bool:
    """Whether all points have a place on a logarithmic axis."""
    return all(not len(line.values) or float(line.values.min()) > 0 for line in lines)


@dataclass(frozen=True)
class Key:
    """What one sign in a chart means: a `line`, the `band` around it, or the `extremes`."""

    kind: Literal["line", "band", "extremes"]
    colour: int
    text: str


def keys_of(lines: Sequence[Line]) -> list[Key]:
    """The legend of a chart: of several lines their names, of one what is drawn of it."""
    filled = [line for line in lines if len(line.x)]
    if len(filled) != 1:
        return [Key("line", line.colour, line.label) for line in filled if line.label]
    (line,) = filled
    name = " · ".join(one for one in (line.label, line.about) if one)
    found = [Key("line", line.colour, name)] if name else []
    if line.trend is not None:
        found += [Key("band", line.colour, "± 1 std"), Key("extremes", line.colour, "minimum to maximum")]
    return found


@dataclass(frozen=True)
class Reading:
    """The value of one line at the place the pointer is at, and how far others around it lie from it."""

    label: str
    colour: int
    x: float
    value: float
    spread: float | None = None


def readings(lines: Sequence[Line], at: float) -> list[Reading]:
    """What stands nearest to a place of the axis, of each line that has anything there, highest first."""
    found = []
    filled = [line.places for line in lines if len(line.places)]
    reach = max((float(x[-1]) for x in filled), default=0) - min((float(x[0]) for x in filled), default=0)
    for line in lines:
        index = nearest(line.places, at)
        if index is None:
            continue
        # How far the place lies before the first point or after the last.
        beyond = max(float(line.places[0]) - at, at - float(line.places[-1]))
        if beyond > reach * _REACH:
            continue
        spread = None if line.trend is None else float(line.trend.std[index])
        place, value = float(line.places[index]), float(line.shown[index])
        found.append(Reading(line.label, line.colour, place, value, spread))
    return sorted(found, key=lambda reading: -reading.value)


def to_csv(tag: str, lines: Sequence[Line], options: ChartOptions) -> str:
    """Every point of a chart, thinned or not, one a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    spread = any(line.trend is not None for line in lines)
    more = ["mean", "std"] if spread else []
    writer.writerow(["line", "metric", options.axis, "value", *more])
    for line in lines:
        columns = [10.0**line.x if options.log_x else line.x, line.values]
        if spread:
            trend = line.trend
            zero = np.zeros(len(line.x))
            columns += (
                [line.values, zero]
                if trend is None
                else [np.interp(line.x, trend.x, one) for one in (trend.mean, trend.std)]
            )
        for x, *values in zip(*(column.tolist() for column in columns), strict=True):
            place = x if options.axis == "time" else round(x)
            writer.writerow([line.label or tag, tag, place, *values])
    return out.getvalue()


@dataclass(frozen=True)
class Section:
    """Metrics with the same beginning."""

    name: str
    tags: tuple[str, ...]


def sections(tags: Iterable[str], sought: str = "") -> list[Section]:
    """The metrics whose names hold `sought`, by section: returns and losses before the rest."""
    sought_words = sought.lower().split()
    found: dict[str, list[str]] = {}
    for tag in sorted(tags, key=_rank):
        if all(word in tag.lower() for word in sought_words):
            found.setdefault(tag.rpartition("/")[0] or "other", []).append(tag)
    order = {name: place for place, name in enumerate(_SECTIONS)}
    names = sorted(found, key=lambda name: (order.get(name, len(order)), name))
    return [Section(name, tuple(found[name])) for name in names]


def _rank(tag: str) -> tuple[int, str]:
    return (_FIRST.index(tag) if tag in _FIRST else len(_FIRST)), tag


def main_tag(tags: Iterable[str]) -> str | None:
    """The metric that says best how a run is doing."""
    there = set(tags)
    named = next((tag for tag in _MAIN if tag in there), None)
    return named or next((tag for section in sections(there) for tag in section.tags), None)


def beside_main(tags: Iterable[str]) -> list[str]:
    """The few metrics that are worth a look beside the main one."""
    there = set(tags)
    main = main_tag(there)
    ordered = [tag for section in sections(there) for tag in section.tags]
    chosen: dict[str, None] = dict.fromkeys(tag for tag in _BESIDE if tag in there)
    # Where time goes has a card of its own.
    chosen.update(dict.fromkeys(tag for tag in ordered if not tag.startswith("time/")))
    return [tag for tag in chosen if tag != main][:_BESIDE_COUNT]


def head_note(run: RunRecord | None, tag: str, line: Line) -> str:
    """The number beside a chart's title: of return and speed the headline's, as everywhere, else its last."""
    head = {} if run is None else run.headline
    mean, speed = head.get("mean_return"), head.get("sps")
    returns = ("eval/episodic_return", "eval/mean") if run is not None and is_evaluation(run) else _RETURNS
    if tag in returns and mean is not None:
        return f"mean return {words.number(mean)}"
    if tag in _SPEEDS and speed is not None:
        return f"{words.steps(speed)} steps/s"
    if not len(line.values):
        return ""
    lost = f"{line.lost:,} not a number · " if line.lost else ""
    return f"{lost}{value_text(float(line.values[-1]))}"


def reward_per_step(returns: Sequence[float], lengths: Sequence[float]) -> float | None:
    """The reward of a step, over the episodes given; None without any."""
    steps = sum(lengths)
    return sum(returns) / steps if steps > 0 and returns else None
