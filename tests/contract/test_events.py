"""Lifecycle events: what is written is read, a torn line hurts nobody, numbers go on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mosaic.contract.events import (
    FINAL_EVENTS,
    EventKind,
    LifecycleEvent,
    LifecycleReader,
    LifecycleWriter,
    last_event_seq,
    tail_events,
)
from mosaic.contract.outside import sound

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@contextmanager
def writer(path: Path, last_seq: int = 0) -> Iterator[LifecycleWriter]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        yield LifecycleWriter("01RUN", descriptor, last_seq)
    finally:
        os.close(descriptor)


def write_heartbeats(path: Path, count: int) -> list[LifecycleEvent]:
    with writer(path, last_event_seq(path)) as events:
        return [events.write(EventKind.HEARTBEAT, {"step": step}) for step in range(count)]


@example(EventKind.RUN_STARTED, {"evaluation": None}, 1)
@given(st.sampled_from(EventKind), st.dictionaries(st.text(), _JSON, max_size=4), st.integers(1, 10**9))
def test_an_event_survives_its_line(kind: EventKind, payload: dict[str, Any], seq: int) -> None:
    event = LifecycleEvent(kind, "01RUN", seq, 1700000000.125, payload)
    line = event.to_line()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    # What is told of a run and is not of its kind is left out by who reads it.
    assert LifecycleEvent.from_line(line) == replace(event, payload=sound(payload))


def test_a_number_that_json_lacks_is_refused_before_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with writer(path) as events, pytest.raises(ValueError):
        events.write(EventKind.HEARTBEAT, {"last_return": float("nan")})
    assert path.read_bytes() == b""
    assert write_heartbeats(path, 1)[0].seq == 1


def test_only_the_three_ends_are_final() -> None:
    names = {event.value for event in FINAL_EVENTS}
    assert names == {"run_completed", "run_failed", "run_cancelled"}


def test_a_reader_gets_each_event_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    reader = LifecycleReader(path)
    assert reader.poll() == []
    first = write_heartbeats(path, 2)
    assert [event.seq for event in reader.poll()] == [event.seq for event in first] == [1, 2]
    assert reader.poll() == []
    write_heartbeats(path, 1)
    assert [event.seq for event in reader.poll()] == [3]


def test_a_reader_goes_on_from_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_heartbeats(path, 2)
    reader = LifecycleReader(path)
    reader.poll()
    write_heartbeats(path, 1)
    assert [event.seq for event in LifecycleReader(path, reader.offset).poll()] == [3]


def test_lines_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_heartbeats(path, 1)
    with path.open("ab") as file:
        file.write(b"a library printed this\n\n[1, 2]\n{}\n\xff\xfe\n" + b'{"event": "unheard_of"}\n')
    write_heartbeats(path, 1)
    assert [event.seq for event in LifecycleReader(path).poll()] == [1, 2]


def test_a_file_cut_at_any_byte_reads_up_to_there_and_goes_on(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    write_heartbeats(whole, 3)
    data = whole.read_bytes()
    for size in range(len(data) + 1):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:size])
        complete = data[:size].count(b"\n")
        early = LifecycleReader(path)
        assert [event.seq for event in early.poll()] == list(range(1, complete + 1))
        # The end of a line may be all that is missing: then the event is whole after all.
        last = last_event_seq(path)
        assert last in (complete, complete + 1)
        write_heartbeats(path, 1)
        everything = [event.seq for event in LifecycleReader(path).poll()]
        assert everything == list(range(1, last + 2))
        assert early.poll()[-1].seq == last + 1


def test_numbers_go_on_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert last_event_seq(path) == 0
    write_heartbeats(path, 3)
    assert last_event_seq(path) == 3
    assert [event.seq for event in write_heartbeats(path, 2)] == [4, 5]


def test_an_empty_file_begins_at_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()
    assert last_event_seq(path) == 0
    assert path.read_bytes() == b""


def test_a_last_event_longer_than_the_window_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_heartbeats(path, 3)
    with writer(path, 3) as events:
        events.write(EventKind.RUN_COMPLETED, {"manifest": "x" * 200_000})
    assert last_event_seq(path) == 4


def test_the_tail_holds_the_last_events_of_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_heartbeats(path, 50)
    tail = [event.seq for event in tail_events(path, window=600)]
    assert tail
    assert tail == list(range(tail[0], 51))
    assert tail_events(tmp_path / "none.jsonl") == []


def test_an_event_after_a_full_disk_has_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    code = """
import os, resource, signal, sys
from mosaic.contract.events import EventKind, LifecycleWriter

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
events = LifecycleWriter("01RUN", os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND))
events.write(EventKind.RUN_STARTED, {})
resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(sys.argv[1]).st_size + 20, resource.RLIM_INFINITY))
try:
    events.write(EventKind.HEARTBEAT, {"step": 1})
except OSError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    events.write(EventKind.RUN_FAILED, {"cause": "full"})
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    kinds = [(event.seq, event.event.value) for event in LifecycleReader(path).poll()]
    assert kinds == [(1, "run_started"), (2, "run_failed")]


def test_events_may_go_to_a_pipe(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    try:
        LifecycleWriter("01RUN", write_end).write(EventKind.RUN_STARTED, {"algo": "ppo"})
        event = LifecycleEvent.from_line(os.read(read_end, 4096))
    finally:
        os.close(read_end)
        os.close(write_end)
    assert event is not None
    assert event.event is EventKind.RUN_STARTED
