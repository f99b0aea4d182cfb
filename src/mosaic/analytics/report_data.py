"""Runs side by side: what each measured, and what the seeds of one configuration say together."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosaic.analytics.headline import EVALUATION_RETURN, MEAN_RETURN, RETURNS_KEPT, TRAINING_RETURN
from mosaic.analytics.statistics import Band, Interval, Statistic, band, interval, iqm, mean
from mosaic.analytics.store import MetricSeries, RunMetrics
from mosaic.client.configs import settings_of
from mosaic.client.groups import Defaults, Difference, Group, differences, group_by
from mosaic.client.records import RunRecord
from mosaic.contract.capabilities import EVALUATES
from mosaic.contract.errors import UserError, closest

Floats = NDArray[np.float64]
Axis = Literal["steps", "time"]
Progress = Callable[[int, int, str], object]
"""Told how many of how many are done, and what is being done. What it raises ends the work."""

STATISTICS: dict[str, Statistic] = {"mean": mean, "iqm": iqm}
POINTS = 200
"""Of a curve: more than a page or a screen can tell apart."""
SMOOTH = 0.05
"""Each point of a curve is the mean of what lies around it, in this share of the axis."""
_READERS = 4
_TRAINED = (TRAINING_RETURN, MEAN_RETURN)
"""What a run earns while it trains, by either name."""
_RETURN_WORDS = ("return", "reward", "score")
_TAIL = 0.1
"""Of a metric that is not a return of episodes this share at its end is what it came to."""


@dataclass(frozen=True)
class Measured:
    """A run with one of its metrics. Values that are not numbers are left out."""

    run: RunRecord
    seed: int | None
    series: MetricSeries
    final: float | None
    """What it came to: the mean of the last 100 episodes as its headline has it, or of the last tenth of
    another metric."""
    problems: tuple[str, ...] = ()

    @property
    def steps(self) -> int | None:
        told = self.run.headline.get("step")
        return int(told) if told else int(self.series.steps[-1]) if len(self.series) else None

    @property
    def seconds(self) -> float | None:
        """From its start to its end, or until now."""
        begun = self.run.started_at
        return None if begun is None else max(0.0, (self.run.ended_at or time.time()) - begun)

    @property
    def speed(self) -> float | None:
        told = self.run.headline.get("sps")
        return float(told) if told else None

    def places(self, axis: Axis) -> Floats:
        """Where its points lie: at steps of the run, or at seconds since it began."""
        if axis == "steps":
            return self.series.steps.astype(np.float64)
        begun, times = self.run.started_at, self.series.times
        first = float(times.min()) if len(times) else 0.0
        # Clocks of two machines may differ; a run has not measured anything before its start.
        return times - (begun if begun is not None and begun <= first else first)


@dataclass(frozen=True)
class GroupCurve:
    """One line with its band. Where some runs end earlier than others it goes on with those that are left."""

    places: Floats
    value: Floats
    low: Floats
    high: Floats
    runs: int


@dataclass(frozen=True)
class MeasuredGroup:
    """Runs of one configuration, of which each seed counts once."""

    group: Group
    members: tuple[Measured, ...]

    @property
    def label(self) -> str:
        return self.group.label

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        return self.group.runs

    @cached_property
    def finals(self) -> list[float]:
        return [one.final for one in self.members if one.final is not None]

    def final(self, statistic: str = "mean") -> Interval | None:
        """What the seeds came to, with the bootstrap interval of 95 %; None where nothing was measured."""
        return interval([self.finals], STATISTICS[statistic]) if self.finals else None

    def of(self, number: Callable[[Measured], float | None]) -> float | None:
        """The mean of a number over the members that have it."""
        known = [value for one in self.members if (value := number(one)) is not None]
        return float(np.mean(known)) if known else None

    def curve(
        self,
        axis: Axis = "steps",
        statistic: str = "mean",
        smooth: float = SMOOTH,
        points: int = POINTS,
        bands: bool = True,
    ) -> GroupCurve | None:
        """The statistic over seeds, with `bands` in its bootstrap band of 95 %; None where nothing was
        measured."""
        lines = [(one.places(axis), one.series.values) for one in self.members if len(one.series)]
        if not lines:
            return None
        low, high = min(x.min() for x, _ in lines), max(x.max() for x, _ in lines)
        edges = np.linspace(low, max(high, low + 1e-9), points + 1)
        window = round(smooth * points / 2)
        table = np.stack([_on_grid(x, values, edges, window) for x, values in lines])
        there = ~np.isnan(table)
        kept = there.any(axis=0)
        centres = ((edges[1:] + edges[:-1]) / 2)[kept]
        made = _over_runs(table[:, kept], STATISTICS[statistic], bands)
        return GroupCurve(centres, made.value, made.low, made.high, len(lines))


@dataclass(frozen=True)
class Comparison:
    """Some runs in groups, with one metric of each."""

    metric: str
    groups: tuple[MeasuredGroup, ...]
    differ: tuple[Difference, ...]
    """The settings that are not the same in all groups."""
    names: tuple[str, ...]
    """Every metric that some run has."""
    by: str = "config"
    defaults: Defaults = None
    left_out: tuple[RunRecord, ...] = ()
    """Evaluations beside runs that train: they have no curve of that kind."""

    @property
    def problems(self) -> list[str]:
        """What is wrong with the files of runs, in sentences."""
        found = (problem for group in self.groups for one in group.members for problem in one.problems)
        return list(dict.fromkeys(found))

    @property
    def chosen(self) -> tuple[Difference, ...]:
        """Those of the differences that somebody has asked for: not what other algorithms do not have."""
        return tuple(row for row in self.differ if not all(row.defaults) or row.name in ("algo", "env_id"))

    @property
    def notices(self) -> list[str]:
        """What a person should know of the choice, besides the problems."""
        if not self.left_out:
            return self.problems
        what = "1 evaluation is" if len(self.left_out) == 1 else f"{len(self.left_out)} evaluations are"
        return [f"{what} left out: --metric {EVALUATION_RETURN} compares those.", *self.problems]


def compare_runs(
    runs: Sequence[RunRecord],
    metric: str | None = None,
    by: str = "config",
    defaults: Defaults = None,
    progress: Progress = lambda done, total, what: None,
) -> Comparison:
    """Runs in groups (see `GROUPINGS`), with a metric: what they earn unless another is named.

    A UserError names the nearest metric where no run has that one. It reads files, many at a time.
    """
    trained = [run for run in runs if run.mode != EVALUATES]
    left_out = [run for run in runs if run.mode == EVALUATES] if metric is None and trained else []
    groups = group_by(trained if left_out else runs, by, defaults)
    wanted = {run.run_id: run for group in groups for run in group.one_for_each_seed}
    first = (*_TRAINED, EVALUATION_RETURN) if metric is None else (metric,)
    read = {one.run.run_id: one for one in _read_all(list(wanted.values()), first, progress)}
    names = Counter(name for one in read.values() for name in one.names)
    if metric is not None and metric not in names and names:
        hint = closest(metric, names) or f"; known are {', '.join(sorted(names)[:12])}."
        raise UserError(f"No run has the metric '{metric}'{hint}")
    chosen = metric or _choose(list(read.values()), names)
    if chosen not in first and names:
        read = {one.run.run_id: one for one in _read_all(list(wanted.values()), (chosen,), progress)}
    made = [
        MeasuredGroup(group, tuple(_measured(read[one.run_id], chosen) for one in group.one_for_each_seed))
        for group in groups
    ]
    differ = differences([group.runs[0] for group in groups], defaults) if len(groups) > 1 else []
    return Comparison(chosen, tuple(made), tuple(differ), tuple(sorted(names)), by, defaults, tuple(left_out))


def by_task(comparison: Comparison) -> dict[str, Comparison]:
    """The same for each environment by itself, in the order in which they come."""
    found: dict[str, list[MeasuredGroup]] = {}
    for group in comparison.groups:
        for task in dict.fromkeys(map(_task, group.runs)):
            found.setdefault(task, []).append(_of_task(group, task))
    return {task: replace(comparison, groups=tuple(groups)) for task, groups in found.items()}


@dataclass(frozen=True)
class Method:
    """A configuration without its environment: its number gives its colour wherever it is drawn."""

    number: int
    label: str


def methods_of(compared: Comparison) -> dict[str, Method]:
    """The method of each group, by the group's label; on one environment every group is one of its own.

    So it is as well where two groups of one environment would be the same method, as with two budgets.
    """
    groups = compared.groups
    alone = {group.label: Method(number, group.label) for number, group in enumerate(groups)}
    tasks = {group.label: _task(group.runs[0]) for group in groups}
    if compared.by != "config" or len(set(tasks.values())) < 2:
        return alone
    firsts = {group.runs[0].run_id: group.label for group in groups}
    found = group_by([_without_task(group.runs[0]) for group in groups], "config", compared.defaults)
    made = {firsts[run.run_id]: Method(one.colour, one.label) for one in found for run in one.runs}
    places = {(made[label].number, task) for label, task in tasks.items()}
    return made if len(places) == len(groups) else alone


def _without_task(run: RunRecord) -> RunRecord:
    metadata = run.config["metadata"]
    # What a benchmark calls it keeps two budgets apart.
    label = metadata.get("ui", {}).get("label")
    config = {**run.worker_config, "env_id": None, "total_timesteps": label}
    worker = {**metadata["worker"], "config": config}
    return replace(run, config={**run.config, "metadata": {**metadata, "worker": worker}})


def _task(run: RunRecord) -> str:
    return str(run.worker_config.get("env_id") or "–")


def _of_task(group: MeasuredGroup, task: str) -> MeasuredGroup:
    runs = tuple(run for run in group.runs if _task(run) == task)
    members = tuple(one for one in group.members if _task(one.run) == task)
    return MeasuredGroup(replace(group.group, runs=runs), members)


@dataclass(frozen=True)
class _Read:
    """What was read of a run: some of its metrics, the names of all, and what is wrong with its files."""

    run: RunRecord
    series: dict[str, MetricSeries]
    names: tuple[str, ...]
    problems: tuple[str, ...]


def _read_all(runs: Sequence[RunRecord], metrics: Iterable[str], progress: Progress) -> Iterator[_Read]:
    def read(run: RunRecord) -> _Read:
        held = RunMetrics.open(Path(run.run_dir))
        names = tuple(held.names)
        return _Read(
            run, {name: held.series(name) for name in metrics if name in names}, names, tuple(held.problems)
        )

    metrics = tuple(metrics)
    with ThreadPoolExecutor(min(_READERS, os.cpu_count() or 1), thread_name_prefix="runs") as readers:
        waiting = [readers.submit(read, run) for run in runs]
        try:
            for number, one in enumerate(waiting):
                progress(number, len(waiting), "reads runs")
                yield one.result()
        finally:
            for one in waiting:
                one.cancel()
    progress(len(runs), len(runs), "reads runs")


def _choose(read: Sequence[_Read], names: Counter[str]) -> str:
    """What the runs earn: in training, in evaluations where there are no others, or what is called so."""
    training = [one for one in read if one.run.mode != EVALUATES] or list(read)
    for name in (*_TRAINED, EVALUATION_RETURN):
        if any(len(one.series.get(name, ())) for one in training):
            return name
    ordered = [name for name, _ in sorted(names.items(), key=lambda one: (-one[1], one[0]))]
    returns = [name for word in _RETURN_WORDS for name in ordered if word in name.lower()]
    return next(iter([*returns, *ordered]), TRAINING_RETURN)


def _measured(read: _Read, metric: str) -> Measured:
    if metric not in read.series and metric in _TRAINED:
        metric = next((name for name in _TRAINED if name in read.series), metric)
    series = read.series.get(metric)
    if series is None:
        series = MetricSeries(np.empty(0, np.int64), np.empty(0), np.empty(0))
    finite = np.isfinite(series.values)
    if not finite.all():
        series = series.at(finite)
    run = read.run
    return Measured(run, settings_of(run).get("seed"), series, _final(series, metric), read.problems)


def _final(series: MetricSeries, metric: str) -> float | None:
    if not len(series):
        return None
    if metric == MEAN_RETURN:
        return float(series.values[-1])
    episodic = metric in (TRAINING_RETURN, EVALUATION_RETURN)
    last = RETURNS_KEPT if episodic else min(RETURNS_KEPT, max(1, round(len(series) * _TAIL)))
    return float(np.mean(series.values[-last:]))


def _on_grid(x: Floats, values: Floats, edges: Floats, window: int) -> Floats:
    """The mean of a line around each column, in so many columns on either side; between its points straight
    lines, outside of them nothing."""
    if np.any(x[1:] < x[:-1]):
        order = np.argsort(x, kind="stable")
        x, values = x[order], values[order]
    places = np.searchsorted(x, edges)
    places[0], places[-1] = 0, len(x)
    counts = np.diff(places)
    filled = np.flatnonzero(counts)
    sums = np.zeros(len(counts))
    sums[filled] = np.add.reduceat(values, places[:-1][filled])
    if window:
        size = 2 * window + 1
        counts_around, sums_around = (
            np.convolve(one.astype(np.float64), np.ones(size))[window : window + len(one)]
            for one in (counts, sums)
        )
    else:
        counts_around, sums_around = counts.astype(np.float64), sums
    known = np.flatnonzero(counts_around)
    known = known[(known >= filled[0]) & (known <= filled[-1])]
    columns = np.arange(len(counts), dtype=np.float64)
    return np.asarray(
        np.interp(columns, known, sums_around[known] / counts_around[known], left=np.nan, right=np.nan)
    )


def _over_runs(table: Floats, statistic: Statistic, bands: bool) -> Band:
    """The statistic of each column over the runs that are there, with its interval."""
    there = ~np.isnan(table)
    value, low, high = (np.empty(table.shape[1]) for _ in range(3))
    patterns, which = np.unique(there, axis=1, return_inverse=True)
    for number, present in enumerate(patterns.T):
        columns = np.flatnonzero(which.reshape(-1) == number)
        shown = table[np.ix_(present, columns)]
        if not bands:
            value[columns] = low[columns] = high[columns] = statistic([shown.T])
            continue
        made = band([shown], statistic)
        value[columns], low[columns], high[columns] = made.value, made.low, made.high
    return Band(value, low, high)
