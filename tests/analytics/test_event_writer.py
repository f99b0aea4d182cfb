"""What EventWriter writes, as TensorBoard sees it."""

from __future__ import annotations

import math
import resource
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event, SessionLog

from mosaic.analytics.event_files import EventReader, EventWriter


def load(folder: Path) -> EventAccumulator:
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def points(accumulator: EventAccumulator, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def test_event_accumulator_reads_scalars(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path)) as writer:
        for step in (0, 1, 127, 128, 300, 2**40):
            writer.add_scalar("charts/SPS", step / 2, step)
        writer.add_scalar("größe/" + "x" * 300, -1.5, 7)
    accumulator = load(tmp_path)
    assert points(accumulator, "charts/SPS") == [(s, s / 2) for s in (0, 1, 127, 128, 300, 2**40)]
    assert points(accumulator, "größe/" + "x" * 300) == [(7, -1.5)]


def test_the_file_is_named_and_begins_as_tensorboard_expects(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path / "new" / "folder", purge_step=12)) as writer:
        path = writer.path
    assert path.parent == tmp_path / "new" / "folder"
    assert path.name.startswith("events.out.tfevents.")
    first, second = (Event.FromString(record) for record in RawEventFileLoader(str(path)).Load())
    assert first.file_version == "brain.Event:2"
    assert (second.session_log.status, second.step) == (SessionLog.START, 12)


def test_event_accumulator_drops_what_is_purged(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path)) as writer:
        for step in range(10):
            writer.add_scalar("a", 1.0, step)
    with closing(EventWriter(tmp_path, purge_step=5)) as writer:
        writer.add_scalar("a", 2.0, 5)
    assert points(load(tmp_path), "a") == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (5, 2.0)]


def test_later_files_of_a_folder_sort_behind_earlier_ones(tmp_path: Path) -> None:
    writers = [EventWriter(tmp_path) for _ in range(12)]
    for writer in writers:
        writer.close()
    names = [writer.path.name for writer in writers]
    assert names == sorted(names)


def test_text_reaches_the_text_plugin(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path)) as writer:
        writer.add_text("hyperparameters", "|seed|\n|1|ü" * 100)
    accumulator = load(tmp_path)
    (event,) = accumulator.Tensors("hyperparameters/text_summary")
    assert event.tensor_proto.string_val[0].decode() == "|seed|\n|1|ü" * 100
    assert accumulator.SummaryMetadata("hyperparameters/text_summary").plugin_data.plugin_name == "text"


def test_odd_numbers_are_written_not_refused(tmp_path: Path) -> None:
    odd: list[Any] = [np.float32(0.5), np.int64(3), np.array(4.0), True]
    values = [math.nan, math.inf, -math.inf, 1e300, -1e300, *odd]
    step: Any = np.int64(1000)
    with closing(EventWriter(tmp_path)) as writer:
        for value in values:
            writer.add_scalar("a", value, step)
        writer.add_scalar("a", 1.0, -1)
    read = points(load(tmp_path), "a")
    assert math.isnan(read[0][1])
    assert [value for _, value in read[1:]] == [
        math.inf, -math.inf, math.inf, -math.inf, 0.5, 3.0, 4.0, 1.0, 1.0,
    ]  # fmt: skip
    assert [step for step, _ in read] == [1000] * 9 + [-1]


def test_a_value_that_is_no_number_leaves_the_file_whole(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path)) as writer:
        writer.add_scalar("a", 1.0, 1)
        with pytest.raises((TypeError, ValueError)):
            writer.add_scalar("a", "high", 2)  # type: ignore[arg-type]
        writer.add_scalar("a", 3.0, 3)
    assert points(load(tmp_path), "a") == [(1, 1.0), (3, 3.0)]


def test_a_full_disk_raises_and_writing_goes_on_when_there_is_room(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for step in range(100):
        writer.add_scalar("a", float(step), step)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError):
            writer.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    reader = EventReader(tmp_path)
    (early,) = reader.poll()
    assert 0 < len(early.series["a"]) < 100
    assert not reader.problems
    writer.close()
    (late,) = reader.poll()
    assert [*early.series["a"].steps, *late.series["a"].steps] == list(range(100))


def test_closing_twice_is_fine(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    writer.close()
    writer.close()
