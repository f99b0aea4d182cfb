"""The mean of several curves that have no steps in common, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gym_gui.models.charting import ChartOptions, Line, banded, line_of
from gym_gui.models.series import Curve, Floats

COLUMNS = 400


def mean_line(label: str, colour: int, curves: Sequence[Curve], options: ChartOptions) -> Line:
    """Mean ± one standard deviation of the curves, each smoothed first and counted as one."""
    lines = [line_of(curve, options) for curve in curves if len(curve)]
    if not lines:
        nothing = np.empty(0)
        return banded(label, colour, nothing, nothing, nothing, nothing)
    low, high = min(line.x[0] for line in lines), max(line.x[-1] for line in lines)
    edges = np.linspace(low, max(high, low + 1.0), COLUMNS + 1)
    table = np.stack([_on_grid(line, edges) for line in lines])
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    filled = counts > 0
    table, there, counts = table[:, filled], there[:, filled], counts[filled]
    mean = np.where(there, table, 0.0).sum(axis=0) / counts
    std = np.sqrt(np.where(there, (table - mean) ** 2, 0.0).sum(axis=0) / counts)
    centres = ((edges[1:] + edges[:-1]) / 2)[filled]
    return banded(label, colour, centres, mean, mean - std, mean + std)


def _on_grid(line: Line, edges: Floats) -> Floats:
    """The mean of the line in each column; between its points straight lines, outside of them nothing."""
    places = np.searchsorted(line.x, edges)
    places[-1] = len(line.x)
    counts = np.diff(places)
    sums = np.concatenate([[0.0], np.cumsum(line.shown)])
    filled = counts > 0
    centres = (edges[1:] + edges[:-1]) / 2
    means = (sums[places[1:]] - sums[places[:-1]])[filled] / counts[filled]
    drawn: Floats = np.interp(centres, centres[filled], means, left=np.nan, right=np.nan)
    return drawn
