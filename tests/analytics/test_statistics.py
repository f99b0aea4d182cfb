"""Aggregates over seeds agree with scipy, with formulas written here, and with rliable 1.2.0."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mosaic.analytics import statistics
from mosaic.analytics.statistics import Statistic

# Five tasks of seven runs, and five of six.
ONE = [
    [2.37, 0.79, 0.68, 0.31, 0.46, 1.02, 0.28],
    [0.91, 0.53, 0.99, 1.23, 0.68, 0.56, 1.1],
    [0.46, 0.26, 0.58, 0.72, 1.69, 0.79, 0.06],
    [0.07, 0.95, 2.25, 0.28, 0.77, 1.09, 0.85],
    [0.31, 1.29, 0.55, 0.82, 0.57, 0.13, 1.87],
]
OTHER = [
    [1.08, 1.08, 0.26, 0.42, 0.5, 1.43],
    [2.11, 0.42, 0.83, 0.76, 1.73, 2.56],
    [0.62, 2.07, 1.42, 0.99, 0.35, 2.07],
    [2.46, 0.5, 0.64, 2.22, 0.86, 0.72],
    [1.42, 0.99, 0.69, 0.09, 2.98, 2.23],
]

# What rliable prints for ONE: the point, and its interval from 50,000 resamples.
BY_RLIABLE = [
    (statistics.mean, 0.80771429, 0.638, 0.99742857),
    (statistics.median, 0.84428571, 0.58857143, 1.01),
    (statistics.iqm, 0.72, 0.56842105, 0.87842105),
    (statistics.optimality_gap, 0.33257143, 0.23771429, 0.43057143),
]


@pytest.mark.parametrize(("statistic", "value", "low", "high"), BY_RLIABLE)
def test_aggregates_and_intervals_are_those_of_rliable(
    statistic: Statistic, value: float, low: float, high: float
) -> None:
    found = statistics.interval(ONE, statistic, resamples=20_000)
    assert found.value == pytest.approx(value, abs=1e-8)
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)


def test_the_probability_of_improvement_is_that_of_rliable_and_of_mann_and_whitney() -> None:
    found = statistics.probability_of_improvement(ONE, OTHER, resamples=10_000)
    by_scipy = [stats.mannwhitneyu(x, y).statistic / 42 for x, y in zip(ONE, OTHER, strict=True)]
    assert found.value == pytest.approx(np.mean(by_scipy))
    assert (found.low, found.high) == pytest.approx((0.2238, 0.5095), abs=0.01)
    back = statistics.probability_of_improvement(OTHER, ONE)
    assert back.value == pytest.approx(1 - found.value)


def test_equal_scores_improve_nothing() -> None:
    assert statistics.probability_of_improvement([[1.0, 1.0]], [[1.0]]) == statistics.Interval(0.5, 0.5, 0.5)


def test_the_performance_profile_is_that_of_rliable() -> None:
    found = statistics.performance_profile(ONE, [0.0, 0.5, 1.0, 1.5, 2.0], resamples=10_000)
    assert found.value == pytest.approx([1, 0.71428571, 0.25714286, 0.11428571, 0.05714286])
    assert found.low == pytest.approx([1, 0.5714, 0.1143, 0.0286, 0], abs=0.03)
    assert found.high == pytest.approx([1, 0.8571, 0.4, 0.2286, 0.1429], abs=0.03)


@pytest.mark.parametrize("runs", range(1, 13))
def test_the_interquartile_mean_is_a_trimmed_mean(runs: int) -> None:
    scores = np.random.default_rng(runs).normal(size=(3, runs))
    assert statistics.iqm(list(scores)) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))


def test_the_interval_of_a_mean_is_that_of_scipy() -> None:
    scores = np.random.default_rng(5).normal(10, 3, 12)
    by_scipy = stats.bootstrap((scores,), np.mean, method="percentile", rng=np.random.default_rng(6))
    found = statistics.interval([scores])
    assert found.low == pytest.approx(by_scipy.confidence_interval.low, abs=0.1)
    assert found.high == pytest.approx(by_scipy.confidence_interval.high, abs=0.1)


def test_95_percent_intervals_hold_the_truth_about_that_often() -> None:
    drawn = np.random.default_rng(7).normal(4.0, 2.0, (300, 30))
    found = [statistics.interval([scores], resamples=400) for scores in drawn]
    held = np.mean([one.low <= 4.0 <= one.high for one in found])
    assert 0.89 < held < 0.98
    wide = [statistics.interval([scores], level=0.5, resamples=400) for scores in drawn]
    assert 0.4 < np.mean([one.low <= 4.0 <= one.high for one in wide]) < 0.6


def test_a_curve_has_at_each_point_what_its_scores_have_alone() -> None:
    runs = np.random.default_rng(8).normal(size=(9, 50)).cumsum(axis=1)
    curve = statistics.band([runs], statistics.iqm)
    for point in (0, 20, 49):
        alone = statistics.interval([runs[:, point]], statistics.iqm)
        found = (curve.value[point], curve.low[point], curve.high[point])
        # The same runs are drawn for all points, as for one.
        assert found == pytest.approx((alone.value, alone.low, alone.high))


def test_a_long_curve_is_drawn_in_parts_with_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = np.random.default_rng(9).normal(size=(6, 40))
    whole = statistics.band([runs], resamples=500)
    monkeypatch.setattr(statistics, "_DRAWN_AT_ONCE", 6 * 40 * 7)
    assert np.allclose(statistics.band([runs], resamples=500).low, whole.low)


def test_tasks_may_have_different_numbers_of_runs() -> None:
    tasks = [[1.0, 3.0], [5.0], [2.0, 2.0, 8.0, 8.0]]
    assert statistics.interval(tasks).value == pytest.approx((2 + 5 + 5) / 3)
    assert statistics.interval(tasks, statistics.iqm).value == pytest.approx(
        stats.trim_mean(np.concatenate(tasks), 0.25)
    )
    gap = statistics.interval(tasks, statistics.gap_to(5.0))
    assert gap.value == pytest.approx(5 - (2 + 5 + 3.5) / 3)


def test_one_run_has_an_interval_without_width() -> None:
    assert statistics.interval([[7.0]]) == statistics.Interval(7.0, 7.0, 7.0)


@pytest.mark.parametrize("tasks", [[], [[]], [[1.0], []], [[1.0, np.nan]], [[np.inf]], [[[1.0]]]])
def test_what_is_not_scores_is_refused(tasks: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"scores|finite|no tasks"):
        statistics.interval(tasks)


def test_other_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="2 tasks cannot be compared with 1"):
        statistics.probability_of_improvement([[1.0], [2.0]], [[1.0]])
    with pytest.raises(ValueError, match="no tasks"):
        statistics.probability_of_improvement([], [])
    with pytest.raises(ValueError, match="between 0 and 1"):
        statistics.interval([[1.0, 2.0]], level=95)
