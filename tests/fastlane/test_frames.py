"""Frames go from a writer to a reader whole, or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mosaic.fastlane import slots
from mosaic.fastlane.layout import FOLDER_VARIABLE
from mosaic.fastlane.reader import FastLaneReader
from mosaic.fastlane.segment import Segment, create_segment, remove_segment
from mosaic.fastlane.writer import SlotWriter

WRITER = Path(__file__).parents[1] / "support" / "fastlane_writer.py"


@pytest.fixture
def segment_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return create_segment("RUN", "grid", limit=8)


@pytest.fixture
def reader(segment_file: Path) -> Iterator[FastLaneReader]:
    with closing(FastLaneReader(segment_file)) as reader:
        yield reader


def new_writer(segment_file: Path) -> SlotWriter:
    segment = Segment(segment_file)
    slot = slots.claim(segment, slots.Owner.myself())
    assert slot is not None
    return SlotWriter(segment, slot)


@pytest.mark.parametrize("shape", [(7, 5), (7, 5, 1), (84, 84, 3), (240, 320, 4)])
def test_a_frame_arrives_as_it_was_published(
    shape: tuple[int, ...], segment_file: Path, reader: FastLaneReader
) -> None:
    frame = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    new_writer(segment_file).publish(frame, 1.5, 20.0, 3000.0)
    (slot,) = reader.slots()
    got = reader.read(slot)
    assert got is not None
    assert np.array_equal(got.pixels.reshape(shape), frame)
    assert (got.last_reward, got.rolling_return, got.step_rate_hz) == (1.5, 20.0, 3000.0)
    assert reader.read(slot) is None, "nothing is new"


@pytest.mark.parametrize(
    ("mission", "arrives"),
    [("", ""), ("go to the red ball", "go to the red ball"), ("é" * 300, "é" * 219)],
)
def test_a_mission_comes_with_its_frame_as_far_as_it_fits(
    mission: str, arrives: str, segment_file: Path, reader: FastLaneReader
) -> None:
    writer = new_writer(segment_file)
    writer.publish(np.zeros((4, 4, 3), np.uint8), 0.0, 0.0, 0.0, "what an earlier episode had to do")
    writer.publish(np.zeros((4, 4, 3), np.uint8), 0.0, 0.0, 0.0, mission)
    got = reader.read(writer.slot)
    assert got is not None and got.mission == arrives


def test_frames_may_change_their_size(segment_file: Path, reader: FastLaneReader) -> None:
    writer = new_writer(segment_file)
    for size in (10, 300, 20, 400, 10):
        frame = np.full((size, size, 3), size % 256, np.uint8)
        writer.publish(frame, 0.0, 0.0, 0.0)
        got = reader.read(writer.slot)
        assert got is not None and np.array_equal(got.pixels, frame)


def test_a_picture_that_is_not_contiguous_arrives_too(segment_file: Path, reader: FastLaneReader) -> None:
    frame = np.arange(10 * 12 * 3, dtype=np.uint8).reshape(10, 12, 3)[::2, ::-1]
    writer = new_writer(segment_file)
    writer.publish(frame, 0.0, 0.0, 0.0)
    got = reader.read(writer.slot)
    assert got is not None and np.array_equal(got.pixels, frame)


def test_no_frame_is_torn_while_a_writer_runs_at_full_speed(
    segment_file: Path, reader: FastLaneReader
) -> None:
    with _writer_process(segment_file, 84, 84) as process:
        seen = 0
        while seen < 2_000:
            frame = reader.read(0)
            if frame is not None:
                assert (frame.pixels == frame.pixels[0, 0, 0]).all()
                assert frame.pixels[0, 0, 0] == int(frame.last_reward) % 256
                seen += 1
        process.kill()
    assert reader.retries < seen


def test_a_writer_stopped_in_mid_frame_leaves_a_whole_frame_to_read(
    segment_file: Path, reader: FastLaneReader
) -> None:
    with _writer_process(segment_file, 400, 400) as process:
        while reader.read(0) is None:
            time.sleep(0.001)
        for _ in range(10):
            time.sleep(0.01)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            with closing(FastLaneReader(segment_file)) as fresh:
                frame = fresh.read(0)
                assert frame is not None and (frame.pixels == frame.pixels[0, 0, 0]).all()
                assert fresh.status(0).state == "stale"
                assert "paused" in fresh.status(0).reason
            process.send_signal(signal.SIGCONT)
        process.kill()


def test_a_killed_writer_is_stale_and_its_slot_is_taken_over(
    segment_file: Path, reader: FastLaneReader
) -> None:
    with _writer_process(segment_file, 84, 84) as process:
        process.kill()
    assert reader.status(0).state == "stale"
    assert "gone" in reader.status(0).reason
    assert new_writer(segment_file).slot == 0


def test_a_run_that_ended_is_told_from_one_that_is_silent(segment_file: Path, reader: FastLaneReader) -> None:
    writer = new_writer(segment_file)
    assert reader.status(0).state == "waiting"
    reader.read(0)
    writer.publish(np.zeros((4, 4, 3), np.uint8), 0.0, 0.0, 0.0)
    reader.read(0)
    assert reader.status(0).state == "live"
    remove_segment("RUN")
    assert reader.status(0).state == "ended"


def test_the_reason_for_no_picture_reaches_the_viewer(segment_file: Path, reader: FastLaneReader) -> None:
    new_writer(segment_file).no_picture("its render() failed: é" + "x" * 500)
    status = reader.status(0)
    assert status.state == "no picture"
    assert status.reason.startswith("its render() failed: éxxx")


class _writer_process:
    """A writer of its own, past its first frame; gone at the end."""

    def __init__(self, segment_file: Path, height: int, width: int) -> None:
        command = [sys.executable, str(WRITER), str(segment_file), str(height), str(width)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> subprocess.Popen[str]:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "0\n"
        return self._process

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
