"""MetricTable: columns that honour purges."""

from __future__ import annotations

import csv
import io
import json
import math
from contextlib import closing
from pathlib import Path

from mosaic.analytics.event_files import EventReader, EventWriter, ScalarChunk, Series
from mosaic.analytics.table import MetricTable


def make_resumed_run(folder: Path) -> MetricTable:
    with closing(EventWriter(folder / "x")) as writer:
        for step in range(6):
            writer.add_scalar("a", 1.0, step)
        writer.add_scalar("gone", 1.0, 5)
    with closing(EventWriter(folder / "x", purge_step=4)) as writer:
        writer.add_scalar("a", 2.0, 4)
    with closing(EventWriter(folder / "y")) as writer:
        writer.add_scalar("a", 9.0, 5)
        writer.add_scalar("b", math.nan, 5)
    return MetricTable(EventReader(folder).poll())


def test_purged_points_are_gone(tmp_path: Path) -> None:
    table = make_resumed_run(tmp_path)
    assert table.tags() == ["a", "b"]
    assert list(table.series("a").steps) == [0, 1, 2, 3, 4, 5]
    assert list(table.series("a").values) == [1, 1, 1, 1, 2, 9]
    assert table.last("a") == 9.0
    assert table.last("gone") is None
    assert len(table.series("gone")) == 0


def test_a_table_grows_with_each_poll(tmp_path: Path) -> None:
    reader, table = EventReader(tmp_path), MetricTable()
    with closing(EventWriter(tmp_path)) as writer:
        for step in range(3):
            writer.add_scalar("a", step, step)
            writer.flush()
            table.update(reader.poll())
    assert [(row.step, row.source, row.tag, row.value) for row in table.rows()] == [
        (step, ".", "a", step) for step in range(3)
    ]


def test_csv_holds_every_point(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(make_resumed_run(tmp_path).to_csv())))
    assert list(rows[0]) == ["step", "wall_time", "source", "tag", "value"]
    assert [(row["step"], row["source"], row["value"]) for row in rows if row["tag"] == "a"][-2:] == [
        ("4", "x", "2.0"),
        ("5", "y", "9.0"),
    ]
    assert len(rows) == 7


def test_json_is_strict(tmp_path: Path) -> None:
    data = json.loads(json.dumps(make_resumed_run(tmp_path).as_json(), allow_nan=False))
    assert data["x"]["a"]["steps"] == [0, 1, 2, 3, 4]
    assert data["y"]["b"]["values"] == [None]


def chunk(source: str, *points: tuple[int, float]) -> ScalarChunk:
    series = Series()
    for step, wall_time in points:
        series.append(step, wall_time, 1.0)
    return ScalarChunk(source, series={"a": series})


def test_phases_that_count_from_0_follow_each_other() -> None:
    table = MetricTable(
        [
            chunk("third", (1, 50.0), (30, 60.0)),
            chunk("first", (1, 0.0), (100, 10.0)),
            chunk("second", (2, 20.0), (80, 30.0)),
        ]
    )
    assert table.begins() == {"first": 0, "second": 100, "third": 180}
    assert [(begin, list(part.steps)) for begin, part in table.parts("a")] == [
        (0, [1, 100]),
        (100, [2, 80]),
        (180, [1, 30]),
    ]


def test_a_source_that_goes_on_or_is_written_beside_another_is_not_moved() -> None:
    ran, went_on = chunk("ran", (1, 0.0), (100, 10.0)), chunk("went on", (90, 20.0), (200, 30.0))
    assert MetricTable([ran, went_on]).begins() == {"ran": 0, "went on": 0}
    beside = chunk("beside", (1, 5.0), (100, 11.0))
    assert MetricTable([beside, ran]).begins() == {"ran": 0, "beside": 0}
