"""What a trial is judged by: a number from each run's curve, and one from those of all its runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic.analytics import statistics
from mosaic.analytics.store import MetricSeries
from mosaic.contract.errors import closest

TAKES = ("last", "best", "mean")
OVER_SEEDS = ("mean", "iqm", "lower")
DIRECTIONS = ("maximize", "minimize")
USUAL_METRIC = "charts/episodic_return"
USUAL_POINTS = 50


@dataclass(frozen=True)
class Objective:
    """One number for a trial."""

    metric: str = USUAL_METRIC
    take: str = "mean"
    """`last` point, `mean` of the last `points`, or the `best` mean of any `points` in a row."""
    points: int = USUAL_POINTS
    over_seeds: str = "mean"
    """`mean`, `iqm`, or `lower`: the end of the mean's interval on the bad side."""
    direction: str = "maximize"

    @property
    def sign(self) -> int:
        return 1 if self.direction == "maximize" else -1

    def words(self, seeds: int = 1) -> str:
        """What it is, for people."""
        how = {
            "last": "last",
            "mean": f"mean of the last {self.points}",
            "best": f"best mean of {self.points}" if self.points > 1 else "best",
        }[self.take]
        over = {"mean": "mean", "iqm": "IQM", "lower": "bound"}[self.over_seeds]
        return f"{self.metric} ({how}{f', {over} of {seeds} runs' if seeds > 1 else ''})"

    def of_run(self, series: MetricSeries, until: int | None = None) -> float | None:
        """What one run has reached, or had reached by a step; None when it had logged nothing."""
        values = series.values
        if until is not None:
            values = values[: np.searchsorted(series.steps, until, side="right")]
        if not len(values):
            return None
        if self.take == "last":
            return float(values[-1])
        points = min(self.points, len(values))
        if self.take == "mean":
            return float(np.mean(values[-points:]))
        sums = np.cumsum(np.concatenate([[0.0], values]))
        means = (sums[points:] - sums[:-points]) / points
        return float(self.sign * np.max(self.sign * means))

    def of_trial(self, runs: Mapping[str, Sequence[float]], scores: Mapping[str, Sequence[float]]) -> float:
        """What a trial has reached with these runs, by environment.

        Of several environments each counts by `scores`: the returns that stand for 0 and for 1 there.
        """
        tasks = [np.asarray(values, np.float64) for values in runs.values()]
        if scores:
            ends = [scores[env_id] for env_id in runs]
            tasks = [(task - low) / (high - low) for task, (low, high) in zip(tasks, ends, strict=True)]
        if not all(np.isfinite(task).all() for task in tasks):
            return math.nan
        if self.over_seeds == "lower":
            found = statistics.interval(tasks)
            return found.low if self.sign > 0 else found.high
        statistic = statistics.iqm if self.over_seeds == "iqm" else statistics.mean
        return float(statistic(tasks))

    def missing(self, tags: Sequence[str]) -> str:
        """Why there is no number, in a sentence, given what was logged."""
        logged = f"They log {', '.join(tags)}." if tags else "They log nothing."
        return f"The runs do not log '{self.metric}'{closest(self.metric, tags) or '.'} {logged}"

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))
