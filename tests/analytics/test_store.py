"""RunMetrics: what all event files of a run hold, as arrays."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mosaic.analytics.event_files import EventWriter
from mosaic.analytics.store import MetricSeries, RunMetrics, downsample


def write(folder: Path, points: list[tuple[str, float, int]], purge_step: int | None = None) -> Path:
    with closing(EventWriter(folder, purge_step)) as writer:
        for tag, value, step in points:
            writer.add_scalar(tag, value, step)
    return writer.path


def test_a_metric_is_three_arrays_by_step(tmp_path: Path) -> None:
    write(tmp_path / "x", [("a", 1.5, 10), ("b", 2.0, 10), ("a", 3.5, 20)])
    metrics = RunMetrics.open(tmp_path)
    series = metrics.series("a")
    assert metrics.names == ["a", "b"]
    assert (series.steps.tolist(), series.values.tolist()) == ([10, 20], [1.5, 3.5])
    assert (series.steps.dtype, series.values.dtype, series.times.dtype) == (np.int64, np.float64, np.float64)
    assert series.times[0] <= series.times[1]
    assert metrics.last("a") == 3.5
    assert (len(metrics.series("none")), metrics.last("none")) == (0, None)
    assert not metrics.problems


def test_nothing_is_there_without_a_folder(tmp_path: Path) -> None:
    metrics = RunMetrics.open(tmp_path / "gone")
    assert (metrics.names, metrics.refresh()) == ([], False)


def test_what_is_written_later_is_taken_in(tmp_path: Path) -> None:
    metrics = RunMetrics.open(tmp_path)
    with closing(EventWriter(tmp_path)) as writer:
        for step in range(5):
            writer.add_scalar("a", step, step)
            writer.flush()
            assert metrics.refresh()
            assert metrics.series("a").steps.tolist() == list(range(step + 1))
    assert not metrics.refresh()


def test_a_resumed_run_has_no_point_twice(tmp_path: Path) -> None:
    write(tmp_path, [("a", 1.0, step) for step in range(6)] + [("gone", 1.0, 5)])
    metrics = RunMetrics.open(tmp_path)
    write(tmp_path, [("a", 2.0, step) for step in (4, 5)], purge_step=4)
    metrics.refresh()
    assert metrics.names == ["a"]
    assert metrics.series("a").steps.tolist() == [0, 1, 2, 3, 4, 5]
    assert metrics.series("a").values.tolist() == [1, 1, 1, 1, 2, 2]


def test_a_damaged_file_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    damaged = write(tmp_path / "damaged", [("a", step, step) for step in range(5)])
    damaged.write_bytes(damaged.read_bytes() + b"what no writer writes")
    foreign = tmp_path / "x" / "events.out.tfevents.1.of.another.kind"
    foreign.parent.mkdir()
    foreign.write_text("this is a text of more than sixteen bytes")
    write(tmp_path / "y", [("b", 1.0, 1)])
    metrics = RunMetrics.open(tmp_path)
    assert metrics.names == ["a", "b"]
    first, second = metrics.problems
    assert f"damaged/{damaged.name} is damaged at byte" in first
    assert "of.another.kind is named like an event file, but is something else" in second


@pytest.mark.parametrize("points", [4, 5, 50, 999])
def test_fewer_points_keep_ends_and_extremes(points: int) -> None:
    values = np.random.default_rng(points).normal(size=1000)
    values[[333, 777]] = 99.0, -99.0
    values[500] = math.nan
    series = MetricSeries(np.arange(1000), values, np.arange(1000.0))
    few = downsample(series, points)
    assert len(few) <= points
    assert {0, 333, 777, 999} <= set(few.steps.tolist())
    assert np.all(np.diff(few.steps) > 0)
    assert np.array_equal(few.values, values[few.steps], equal_nan=True)
    assert np.array_equal(few.times, few.steps)


def test_a_short_series_is_not_thinned() -> None:
    series = MetricSeries(np.arange(10), np.zeros(10), np.zeros(10))
    assert downsample(series, 10) is series
    assert len(downsample(series, 9)) <= 9
