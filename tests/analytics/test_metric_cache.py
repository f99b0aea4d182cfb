"""What was read of event files is kept beside them: it is used when it is theirs, and else made anew."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mosaic.analytics import store
from mosaic.analytics.artifacts import CACHE_NAME, list_artifacts
from mosaic.analytics.event_files import EventReader, EventWriter
from mosaic.analytics.metric_cache import load_cache
from mosaic.analytics.store import RunMetrics


@pytest.fixture(autouse=True)
def short_files_are_kept_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_WORTH_SAVING", 5)


def write(folder: Path, first: int, last: int, value: float = 1.5, purge_step: int | None = None) -> Path:
    with closing(EventWriter(folder, purge_step)) as writer:
        for step in range(first, last):
            writer.add_scalar("a", value, step)
            writer.add_scalar("b", step / 3, step * 2**33)
    return writer.path


def columns(metrics: RunMetrics) -> dict[str, list[object]]:
    return {name: column.tolist() for name, column in metrics.columns().items()}


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many points each later poll has read of the event files."""
    counts: list[int] = []
    poll = EventReader.poll

    def counted(reader: EventReader, max_records: int = 0) -> object:
        chunks = poll(reader, max_records)
        counts.append(sum(len(series) for chunk in chunks for series in chunk.series.values()))
        return chunks

    monkeypatch.setattr(EventReader, "poll", counted)
    return counts


def without_cache(folder: Path) -> dict[str, list[object]]:
    (folder / CACHE_NAME).unlink(missing_ok=True)
    return columns(RunMetrics.open(folder))


def test_a_run_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x", 0, 50)
    first = RunMetrics.open(tmp_path)
    counts = reads(monkeypatch)
    again = RunMetrics.open(tmp_path)
    assert counts == [0]
    assert columns(again) == columns(first)
    series = again.series("b")
    assert (series.steps.dtype, series.values.dtype, series.times.dtype) == (np.int64, np.float64, np.float64)
    assert [file.kind for file in list_artifacts(tmp_path)] == ["events"]


def test_the_least_and_the_greatest_step_come_back_as_they_were(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path / "x")) as writer:
        for step in (-(2**63), -(2**31), 2**31 - 1, 2**31, 2**63 - 1):
            writer.add_scalar("whole", 0.0, step)
        for step in (-(2**63), 0, 1, 2, 3):
            writer.add_scalar("least", 0.0, step)
    first = RunMetrics.open(tmp_path)
    assert columns(RunMetrics.open(tmp_path)) == columns(first)
    assert first.series("least").steps[0] == -(2**63)


def test_only_what_is_new_is_read_and_the_cache_grows_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(EventWriter(tmp_path / "x")) as writer:
        for step in range(100):
            writer.add_scalar("a", step, step)
            if step == 59:
                writer.flush()
                RunMetrics.open(tmp_path)
    counts = reads(monkeypatch)
    assert RunMetrics.open(tmp_path).series("a").steps.tolist() == list(range(100))
    assert RunMetrics.open(tmp_path).series("a").steps.tolist() == list(range(100))
    assert counts == [40, 0, 0]


def test_a_purge_reaches_into_what_was_kept(tmp_path: Path) -> None:
    write(tmp_path / "x", 0, 50)
    RunMetrics.open(tmp_path)
    write(tmp_path / "x", 30, 60, value=9.0, purge_step=30)
    found = RunMetrics.open(tmp_path)
    assert found.series("a").values.tolist() == [1.5] * 30 + [9.0] * 30
    assert columns(found) == without_cache(tmp_path)


def test_a_copied_folder_takes_its_cache_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run" / "x", 0, 50)
    before = RunMetrics.open(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy", copy_function=shutil.copyfile)
    counts = reads(monkeypatch)
    assert columns(RunMetrics.open(tmp_path / "copy")) == columns(before)
    assert counts == [0]


@pytest.mark.parametrize(
    "change", ["replaced", "shorter", "gone", "one before it", "other tail", "now a link", "now a folder"]
)
def test_a_cache_of_other_files_is_not_used(tmp_path: Path, change: str) -> None:
    file = write(tmp_path / "run" / "x", 0, 50)
    write(tmp_path / "run" / "y", 0, 50)
    RunMetrics.open(tmp_path / "run")
    if change == "replaced":
        file.unlink()
        write(file.parent, 7, 90).rename(file)
    elif change == "shorter":
        os.truncate(file, 500)
    elif change == "gone":
        file.unlink()
    elif change == "one before it":
        write(tmp_path, 20, 30).rename(file.with_name("events.out.tfevents.0000000001.host.1.0"))
    elif change == "other tail":
        data = bytearray(file.read_bytes())
        data[-30] ^= 1
        file.write_bytes(data)
    else:
        file.rename(tmp_path / "moved")
        file.symlink_to(tmp_path / "moved") if change == "now a link" else file.mkdir()
    assert columns(RunMetrics.open(tmp_path / "run")) == without_cache(tmp_path / "run")


@pytest.mark.parametrize("damage", ["empty", "cut", "bit", "foreign", "older", "a folder", "unreadable"])
def test_a_cache_that_cannot_be_used_is_ignored_and_written_anew(tmp_path: Path, damage: str) -> None:
    write(tmp_path / "x", 0, 50)
    before = columns(RunMetrics.open(tmp_path))
    cache = tmp_path / CACHE_NAME
    data = cache.read_bytes()
    if damage == "a folder":
        cache.unlink()
        cache.mkdir()
    elif damage == "unreadable":
        cache.unlink()
        cache.symlink_to(cache)
    else:
        turned = bytearray(data)
        turned[len(data) // 2] ^= 1
        bad = {"empty": b"", "cut": data[:-9], "bit": bytes(turned), "foreign": b"PK" + data}
        cache.write_bytes(bad.get(damage, data.replace(b"MOSAICm1", b"MOSAICm0")))
    assert columns(RunMetrics.open(tmp_path)) == before
    if damage != "a folder":
        assert load_cache(tmp_path) is not None


def test_a_folder_that_takes_no_file_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "x", 0, 50)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mosaic.analytics.metric_cache.write_atomic", refuse)
    assert len(RunMetrics.open(tmp_path)) == 100
    assert not (tmp_path / CACHE_NAME).exists()


def test_nothing_is_left_of_a_run_that_is_removed_while_it_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write(folder / "x", 0, 50)
    metrics = RunMetrics(folder)
    metrics._reader.poll()
    shutil.rmtree(folder / "x")
    metrics._save()
    assert not folder.exists()


def test_a_live_run_is_not_written_again_at_each_look(tmp_path: Path) -> None:
    metrics = RunMetrics.open(tmp_path)
    with closing(EventWriter(tmp_path / "x")) as writer:
        stamps = set()
        for step in range(200):
            writer.add_scalar("a", step, step)
            writer.flush()
            metrics.refresh()
            if (tmp_path / CACHE_NAME).exists():
                stamps.add((tmp_path / CACHE_NAME).stat().st_mtime_ns)
    assert len(stamps) == 1


def test_what_a_killed_writer_left_is_removed_after_a_while(tmp_path: Path) -> None:
    write(tmp_path / "x", 0, 50)
    old, young = (tmp_path / f".{CACHE_NAME}.{name}" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    RunMetrics.open(tmp_path)
    assert (old.exists(), young.exists()) == (False, True)
    assert [file.kind for file in list_artifacts(tmp_path)] == ["events"]


def test_a_damaged_file_is_told_from_the_cache_too(tmp_path: Path) -> None:
    file = write(tmp_path / "x", 0, 50)
    file.write_bytes(file.read_bytes() + b"what no writer writes")
    first = RunMetrics.open(tmp_path)
    again = RunMetrics.open(tmp_path)
    assert first.problems == again.problems and "is damaged at byte" in again.problems[0]
    assert columns(first) == columns(again)
