"""EventReader on files that grow, end, are replaced and go wrong."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary

from analytics.event_file_parts import NAME, VERSION, collect, scalar
from mosaic.analytics.event_files import EventReader, EventWriter, ScalarChunk, parser
from mosaic.analytics.event_files.format import frame, record_header
from mosaic.analytics.event_files.parser import EARLIEST_STEP
from mosaic.analytics.event_files.reader import BLOCK_BYTES
from mosaic.contract.errors import UserError


@pytest.fixture(params=["one by one", "in bulk"], autouse=True)
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks are parsed in another way than large ones; both must find the same."""
    if request.param == "in bulk":
        monkeypatch.setattr(parser, "_BULK_BYTES", 0)


@pytest.mark.parametrize("ours", [True, False])
def test_a_file_cut_at_any_byte_loses_and_doubles_nothing(tmp_path: Path, ours: bool) -> None:
    if ours:
        with closing(EventWriter(tmp_path / "made", purge_step=1)) as writer:
            for step in (1, 200, 70000):
                writer.add_scalar("a", float(step), step)
        whole = writer.path.read_bytes()
    else:
        whole = VERSION + scalar("a", 1, 1) + scalar("a", 200, 200) + scalar("a", 70000, 70000)
    for cut in range(len(whole) + 1):
        folder = tmp_path / f"cut-{cut}"
        folder.mkdir()
        (folder / NAME).write_bytes(whole[:cut])
        reader = EventReader(folder)
        rows = collect(reader.poll())
        with (folder / NAME).open("ab") as file:
            file.write(whole[cut:])
        rows += collect(reader.poll())
        assert [step for _, _, step, _ in rows] == [1, 200, 70000]
        assert not reader.problems


def test_a_purge_opens_a_chunk_of_its_own(tmp_path: Path) -> None:
    start = Event(step=2, session_log=SessionLog(status=SessionLog.START)).SerializeToString()
    stop = Event(step=9, session_log=SessionLog(status=SessionLog.STOP)).SerializeToString()
    (tmp_path / NAME).write_bytes(
        VERSION + scalar("a", 1, 1) + scalar("a", 1, 2) + frame(stop) + frame(start) + scalar("a", 2, 2)
    )
    before, after = EventReader(tmp_path).poll()
    assert (before.purge_from, list(before.series["a"].steps)) == (None, [1, 2])
    assert (after.purge_from, list(after.series["a"].values)) == (2, [2.0])


def test_a_purge_without_new_points_is_told(tmp_path: Path) -> None:
    reader = EventReader(tmp_path)
    with closing(EventWriter(tmp_path, purge_step=40)):
        pass
    assert reader.poll() == [ScalarChunk(".", purge_from=40)]


def test_reading_goes_on_from_a_cursor(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path / "x")) as writer:
        rows = []
        cursor: str | None = None
        for step in range(20):
            writer.add_scalar("a", step, step)
            if step % 3 == 0:
                writer.flush()
            reader = EventReader(tmp_path, cursor=cursor)
            rows += collect(reader.poll(max_records=2))
            cursor = reader.cursor()
    reader = EventReader(tmp_path, cursor=cursor)
    rows += collect(reader.poll())
    assert rows == [("x", "a", step, step) for step in range(20)]


@pytest.mark.parametrize(
    "cursor",
    ["", "nonsense", "[]", "3", '{"a": 3}', '{"a": [1]}', '{"a": [-1, 0]}', '{"a": ["1", 0]}', '{"a": null}'],
)
def test_a_malformed_cursor_is_the_users_mistake(tmp_path: Path, cursor: str) -> None:
    with pytest.raises(UserError, match="cursor"):
        EventReader(tmp_path, cursor=cursor)


def test_a_large_file_comes_in_pieces(tmp_path: Path) -> None:
    with closing(EventWriter(tmp_path)) as writer:
        for step in range(1000):
            writer.add_scalar("a", step, step)
    reader = EventReader(tmp_path)
    sizes, rows = [], []
    while piece := collect(reader.poll(max_records=300)):
        rows += piece
        sizes.append(len(piece))
    assert max(sizes) <= 300
    assert [step for _, _, step, _ in rows] == list(range(1000))


def test_files_and_folders_that_appear_later_are_found(tmp_path: Path) -> None:
    reader = EventReader(tmp_path / "run")
    assert reader.poll() == []
    with closing(EventWriter(tmp_path / "run" / "deep" / "er")) as writer:
        writer.add_scalar("a", 1, 1)
    assert collect(reader.poll()) == [("deep/er", "a", 1, 1)]
    with (
        closing(EventWriter(tmp_path / "run" / "deep" / "er")) as second,
        closing(EventWriter(tmp_path / "run")) as third,
    ):
        second.add_scalar("a", 2, 2)
        third.add_scalar("b", 3, 3)
    assert collect(reader.poll()) == [(".", "b", 3, 3), ("deep/er", "a", 2, 2)]


def test_folders_of_others_and_links_are_left_alone(tmp_path: Path) -> None:
    for name in ("run/wandb/x", "run/checkpoints", "run/videos", "run/bridge", "elsewhere"):
        with closing(EventWriter(tmp_path / name)) as writer:
            writer.add_scalar("a", 1, 1)
    (tmp_path / "run" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "run" / "tfevents.link").symlink_to(writer.path)
    (tmp_path / "run" / "loop").symlink_to(tmp_path / "run")
    assert EventReader(tmp_path / "run").poll() == []


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("size", ["shorter", "longer", "same"])
def test_a_replaced_file_is_read_anew(tmp_path: Path, size: str, resumed: bool) -> None:
    (tmp_path / NAME).write_bytes(VERSION + scalar("a", 1, 1) + scalar("a", 1, 2))
    other = tmp_path / NAME.replace("0000000001", "0000000002")
    other.write_bytes(VERSION + scalar("b", 5, 5))
    reader = EventReader(tmp_path)
    reader.poll()
    steps = {"shorter": [7], "same": [7, 8], "longer": [7, 8, 9]}[size]
    version = frame(Event(wall_time=2.5, file_version="brain.Event:2").SerializeToString())
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).write_bytes(version + b"".join(scalar("a", 2, step) for step in steps))
    if resumed:
        reader = EventReader(tmp_path, cursor=reader.cursor())
    (chunk,) = reader.poll()
    assert chunk.purge_from == EARLIEST_STEP
    assert list(chunk.series["a"].steps) == steps
    assert list(chunk.series["b"].steps) == [5]


@pytest.mark.parametrize("damage", ["length", "content"])
def test_a_corrupt_record_stops_its_file_only(tmp_path: Path, damage: str) -> None:
    broken = bytearray(scalar("a", 9, 9))
    if damage == "length":
        broken[0] ^= 1
    else:
        broken[12:] = bytes(len(broken) - 12)
    (tmp_path / NAME).write_bytes(VERSION + scalar("a", 1, 1) + bytes(broken) + scalar("a", 2, 2))
    with closing(EventWriter(tmp_path / "fine")) as writer:
        writer.add_scalar("b", 1, 1)
    reader = EventReader(tmp_path)
    assert collect(reader.poll()) == [(".", "a", 1, 1), ("fine", "b", 1, 1)]
    assert list(reader.problems) == [NAME]
    assert reader.poll() == []
    assert list(reader.problems) == [NAME]


def test_records_larger_than_a_block_are_passed_over(tmp_path: Path) -> None:
    size = 2 * BLOCK_BYTES
    large = record_header(size) + bytes(size + 4)
    path = tmp_path / NAME
    path.write_bytes(VERSION + scalar("a", 1, 1) + large[:-10])
    reader = EventReader(tmp_path)
    assert collect(reader.poll()) == [(".", "a", 1, 1)]
    with path.open("ab") as file:
        file.write(large[-10:] + scalar("a", 2, 2))
    assert collect(reader.poll()) == [(".", "a", 2, 2)]
    assert not reader.problems


@pytest.mark.parametrize("where", ["value", "time", "step", "name", "checksum"])
def test_a_bit_that_has_turned_over_is_noticed_where_it_is(tmp_path: Path, where: str) -> None:
    record = scalar("a", 1.5, 300)
    records = [scalar("a", 1.5, step) for step in range(290, 310)]
    at = {
        "time": 13,
        "step": 22,
        "name": record.index(b"a"),
        "value": len(record) - 6,
        "checksum": len(record) - 1,
    }
    broken = bytearray(records[10])
    broken[at[where]] ^= 4
    (tmp_path / NAME).write_bytes(VERSION + b"".join([*records[:10], bytes(broken), *records[11:]]))
    reader = EventReader(tmp_path)
    assert [step for _, _, step, _ in collect(reader.poll())] == list(range(290, 300))
    offset = len(VERSION) + sum(map(len, records[:10]))
    assert f"is damaged at byte {offset:d} (" in reader.problems[NAME]


def test_a_long_file_reads_the_same_one_by_one_and_in_bulk(tmp_path: Path) -> None:
    """Names of one length, steps that grow wider, a purge in the middle, several numbers in one record."""
    dice = random.Random(1)
    events = []
    for step in range(2000):
        for name in ("aa", "bb", "a-longer-name", f"once-{step % 7}"):
            if dice.random() < 0.7:
                events.append(scalar(name, dice.random(), step * dice.choice([1, 130])))
        if step == 1200:
            start = Event(step=400, session_log=SessionLog(status=SessionLog.START))
            events.append(frame(start.SerializeToString()))
        if dice.random() < 0.2:
            values = [Summary.Value(tag=tag, simple_value=step) for tag in ("aa", "bb")]
            events.append(
                frame(Event(wall_time=1.0, step=step, summary=Summary(value=values)).SerializeToString())
            )
    (tmp_path / NAME).write_bytes(VERSION + b"".join(events))
    whole, pieces = EventReader(tmp_path), EventReader(tmp_path)
    expected = whole.poll(1_000_000)
    found = []
    while chunks := pieces.poll(97):
        found += chunks
    assert [chunk.purge_from for chunk in expected] == [None, 400]
    split = next(at for at, chunk in enumerate(found) if chunk.purge_from is not None)
    for parts, chunk in ((found[:split], expected[0]), (found[split:], expected[1])):
        joined: dict[str, list[tuple[int, float, float]]] = {}
        for part in parts:
            for tag, one in part.series.items():
                joined.setdefault(tag, []).extend(zip(one.steps, one.wall_times, one.values, strict=True))
        assert joined == {
            tag: list(zip(one.steps, one.wall_times, one.values, strict=True))
            for tag, one in chunk.series.items()
        }
