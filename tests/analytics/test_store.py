"""RunMetrics: what all event files of a run hold, as arrays."""

from __future__ import annotations

import csv
import io
import math
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from analytics.event_file_parts import NAME, VERSION
from mosaic.analytics.event_files import EventWriter
from mosaic.analytics.event_files.format import frame
from mosaic.analytics.store import MetricSeries, RunMetrics, downsample
from mosaic.contract.errors import UserError


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


def test_a_folder_with_several_sources_is_one_table(tmp_path: Path) -> None:
    write(tmp_path / "x", [("a", 1.0, step) for step in range(6)])
    write(tmp_path / "y", [("a", 9.0, 5), ("b", math.nan, 5)])
    metrics = RunMetrics.open(tmp_path)
    table = metrics.columns()
    assert table["name"].tolist() == ["a"] * 7 + ["b"]
    assert table["step"].tolist() == [0, 1, 2, 3, 4, 5, 5, 5]
    assert len(metrics) == 8
    rows = list(csv.DictReader(io.StringIO(metrics.to_csv())))
    assert list(rows[0]) == ["name", "step", "time", "value"]
    assert [(row["name"], row["step"], row["value"]) for row in rows][-2:] == [
        ("a", "5", "9.0"),
        ("b", "5", "nan"),
    ]
    assert float(rows[0]["time"]) == table["time"][0]


def test_the_table_goes_to_pandas_and_polars(tmp_path: Path) -> None:
    write(tmp_path, [("a", 1.5, 1), ("b", 2.5, 1), ("a", 3.5, 2)])
    metrics = RunMetrics.open(tmp_path)
    frame = metrics.to_pandas()
    assert frame[["name", "step", "value"]].values.tolist() == [["a", 1, 1.5], ["a", 2, 3.5], ["b", 1, 2.5]]
    assert frame.groupby("name", observed=True)["value"].max().to_dict() == {"a": 3.5, "b": 2.5}
    table = metrics.to_polars()
    assert table.select("name", "step", "value").rows() == [("a", 1, 1.5), ("a", 2, 3.5), ("b", 1, 2.5)]
    empty = RunMetrics.open(tmp_path / "none")
    assert (len(empty.to_pandas()), len(empty.to_polars())) == (0, 0)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_one_sentence(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=f"^{name} is not installed: run `.*pip install {name}`.$"):
        getattr(RunMetrics.open(tmp_path), f"to_{name}")()


def points(folder: Path, *places: tuple[int, float]) -> None:
    """An event file that was written at these steps and times."""
    folder.mkdir(parents=True)
    events = [Event(wall_time=at, step=step, summary=SUMMARY).SerializeToString() for step, at in places]
    (folder / NAME).write_bytes(VERSION + b"".join(map(frame, events)))


SUMMARY = Summary(value=[Summary.Value(tag="a", simple_value=1.0)])


def test_phases_that_count_from_0_follow_each_other(tmp_path: Path) -> None:
    points(tmp_path / "third", (1, 50.0), (30, 60.0))
    points(tmp_path / "first", (1, 0.0), (100, 10.0))
    points(tmp_path / "second", (2, 20.0), (80, 30.0))
    metrics = RunMetrics.open(tmp_path)
    assert metrics.begins() == {"first": 0, "second": 100, "third": 180}
    assert metrics.series("a").steps.tolist() == [1, 100, 102, 180, 181, 210]


def test_a_source_that_goes_on_or_is_written_beside_another_is_not_moved(tmp_path: Path) -> None:
    points(tmp_path / "one" / "ran", (1, 0.0), (100, 10.0))
    points(tmp_path / "one" / "went on", (90, 20.0), (200, 30.0))
    assert RunMetrics.open(tmp_path / "one").begins() == {"ran": 0, "went on": 0}
    points(tmp_path / "two" / "ran", (1, 0.0), (100, 10.0))
    points(tmp_path / "two" / "beside", (1, 5.0), (100, 11.0))
    assert RunMetrics.open(tmp_path / "two").begins() == {"ran": 0, "beside": 0}


def test_arrays_that_were_given_away_do_not_change(tmp_path: Path) -> None:
    write(tmp_path, [("a", 1.0, step) for step in range(10)])
    metrics = RunMetrics.open(tmp_path)
    before = metrics.series("a")
    assert metrics.series("a") is before
    write(tmp_path, [("a", 2.0, step) for step in range(5, 40)], purge_step=5)
    metrics.refresh()
    assert before.steps.tolist() == list(range(10)) and set(before.values) == {1.0}
    assert metrics.series("a").values.tolist() == [1.0] * 5 + [2.0] * 35
    with pytest.raises(ValueError, match="read-only"):
        before.values[0] = 3.0
