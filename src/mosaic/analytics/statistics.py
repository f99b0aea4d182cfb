"""What several runs say together: aggregates with bootstrap intervals, by the conventions of `rliable`.

Scores are given task by task, each task with the scores of its runs (their number may differ); a matrix of
runs × tasks is handed over transposed. Runs are drawn again within each task (a stratified bootstrap), and an
interval is that of percentiles. The same scores give the same interval each time.

See Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Statistic = Callable[[Sequence[Array]], Array]
"""What is computed from the scores of each task: runs are the last axis, and all others are kept."""

LEVEL = 0.95
RESAMPLES = 2000
_DRAWN_AT_ONCE = 4_000_000
"""Scores in memory at a time: the bootstrap of a long curve is drawn in parts."""


@dataclass(frozen=True)
class Interval:
    """A number, and between which two it lies with the probability that was asked for.

    Of a single run for each task the interval has no width: nothing is known of the others.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Band:
    """An `Interval` for each point of a curve."""

    value: Array
    low: Array
    high: Array


def mean(tasks: Sequence[Array]) -> Array:
    """The mean over tasks of each task's mean."""
    return np.asarray(np.mean(_task_means(tasks), axis=0))


def median(tasks: Sequence[Array]) -> Array:
    """The median over tasks of each task's mean; of one task it is that task's mean."""
    return np.asarray(np.median(_task_means(tasks), axis=0))


def iqm(tasks: Sequence[Array]) -> Array:
    """The interquartile mean: that of the middle half of all runs of all tasks (a 25 % trimmed mean)."""
    scores = np.concatenate(tasks, axis=-1)
    count = scores.shape[-1]
    cut = count // 4
    if cut:
        scores = np.partition(scores, (cut, count - cut - 1), axis=-1)[..., cut : count - cut]
    return np.asarray(np.mean(scores, axis=-1))


def optimality_gap(tasks: Sequence[Array], optimum: float = 1.0) -> Array:
    """By how much runs fall short of `optimum` (more than that counts as reaching it); less is better."""
    return optimum - mean([np.minimum(task, optimum) for task in tasks])


def interval(
    tasks: Sequence[ArrayLike],
    statistic: Statistic = mean,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A statistic of scores, with its bootstrap interval."""
    found = _bootstrap([_scores(task, 1) for task in tasks], statistic, level, resamples, seed)
    return Interval(*(float(part) for part in found))


def band(
    tasks: Sequence[ArrayLike],
    statistic: Statistic = mean,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Band:
    """A statistic at each point of curves: each task is a matrix of runs × points. Whole runs are drawn."""
    curves = [_scores(task, 2).T for task in tasks]
    return Band(*_bootstrap(curves, statistic, level, resamples, seed))


def performance_profile(
    tasks: Sequence[ArrayLike],
    thresholds: ArrayLike,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Band:
    """For each threshold the share of runs with a higher score, each task weighing the same."""
    marks = np.asarray(thresholds, np.float64)[:, None]
    above = [(_scores(task, 1)[None, :] > marks).astype(np.float64) for task in tasks]
    return Band(*_bootstrap(above, mean, level, resamples, seed))


def probability_of_improvement(
    better: Sequence[ArrayLike],
    worse: Sequence[ArrayLike],
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """How probable it is that a run of the first beats one of the second on a task drawn at random.

    Equal scores count as half. Both give their tasks in the same order.
    """
    if len(better) != len(worse):
        raise ValueError(f"{len(better)} tasks cannot be compared with {len(worse)}.")
    pairs = [(_scores(one, 1), _scores(other, 1)) for one, other in zip(better, worse, strict=True)]
    # A task is the table of who beats whom; drawing runs anew repeats some of its rows and columns.
    wins = [np.heaviside(one[:, None] - other[None, :], 0.5) for one, other in pairs]
    if not wins:
        raise ValueError("There are no tasks to compare.")
    generator = np.random.default_rng(seed)
    drawn = np.zeros(resamples)
    for table in wins:
        rows, columns = (_shares(generator, count, resamples) for count in table.shape)
        drawn += np.einsum("ij,jk,ik->i", rows, table, columns, optimize=True)
    low, high = np.quantile(drawn / len(wins), _tails(level))
    return Interval(float(np.mean([table.mean() for table in wins])), float(low), float(high))


def gap_to(optimum: float) -> Statistic:
    """`optimality_gap` to another optimum than 1, to be given to `interval`."""
    return partial(optimality_gap, optimum=optimum)


def _scores(task: ArrayLike, dimensions: int) -> Array:
    scores = np.asarray(task, np.float64)
    if scores.ndim != dimensions or not len(scores):
        raise ValueError(f"A task needs the scores of its runs, in {dimensions} dimensions: {scores.shape}.")
    if not np.isfinite(scores).all():
        raise ValueError("A score is not a finite number.")
    return scores


def _task_means(tasks: Sequence[Array]) -> Array:
    return np.stack([np.mean(task, axis=-1) for task in tasks])


def _tails(level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"An interval of {level:g} cannot be computed: it lies between 0 and 1.")
    return (1 - level) / 2, (1 + level) / 2


def _shares(generator: np.random.Generator, runs: int, resamples: int) -> Array:
    """For each resample how much each run weighs in it."""
    chosen = generator.integers(runs, size=(resamples, runs))
    shares = np.zeros((resamples, runs))
    np.add.at(shares, (np.arange(resamples)[:, None], chosen), 1 / runs)
    return shares


def _bootstrap(
    tasks: Sequence[Array], statistic: Statistic, level: float, resamples: int, seed: int
) -> tuple[Array, Array, Array]:
    """The statistic, and its lower and upper bound; runs are the last axis of each task."""
    if not tasks:
        raise ValueError("There are no tasks to aggregate.")
    tails = _tails(level)
    value = statistic(tasks)
    if all(task.shape[-1] == 1 for task in tasks):
        return value, value, value
    drawn = np.concatenate(list(_resampled(tasks, statistic, resamples, np.random.default_rng(seed))))
    low, high = np.quantile(drawn, tails, axis=0)
    return value, np.asarray(low), np.asarray(high)


def _resampled(
    tasks: Sequence[Array], statistic: Statistic, resamples: int, generator: np.random.Generator
) -> Iterator[Array]:
    at_once = max(1, _DRAWN_AT_ONCE // sum(task.size for task in tasks))
    for begin in range(0, resamples, at_once):
        count = min(at_once, resamples - begin)
        chosen = [generator.integers(task.shape[-1], size=(count, task.shape[-1])) for task in tasks]
        # The axis of resamples comes first; a curve's points stay between it and the runs.
        yield statistic(
            [np.moveaxis(task[..., pick], -2, 0) for task, pick in zip(tasks, chosen, strict=True)]
        )
