"""Writers and viewers in processes of their own, and a look at what a writer was doing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.fastlane import layout, slots
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.reader import FastLaneReader
from mosaic.fastlane.segment import Segment, create_segment, remove_segment
from mosaic.fastlane.writer import SlotWriter

VARIETY = 64
LARGE = (512, 512, 4)
"""The largest frame there is, so that a writer is in the middle of one most of the time."""


def frames(shape: tuple[int, int, int]) -> list[Any]:
    """The frames that writers publish in turn; `last_reward` says which one it is."""
    random = np.random.default_rng(0)
    return [random.integers(0, 256, shape, dtype=np.uint8) for _ in range(VARIETY)]


def new_writer(path: Path) -> SlotWriter:
    segment = Segment(path)
    slot = slots.claim(segment, slots.Owner.myself())
    assert slot is not None
    return SlotWriter(segment, slot)


def publish_forever(path: Path, shape: tuple[int, int, int], pause: float) -> None:
    writer, pictures, number = new_writer(path), frames(shape), 0
    while True:
        writer.publish(pictures[number % VARIETY], float(number % VARIETY), 0.0, 0.0)
        number += 1
        if pause:
            time.sleep(pause)


def look_forever(run_id: str, pause: float) -> None:
    with LiveGrid(run_id) as grid:
        while True:
            grid.look()
            grid.picture()
            time.sleep(pause)


@contextmanager
def segment_of(run_id: str, mode: str = "grid") -> Iterator[Path]:
    """A segment as a run has it."""
    path = create_segment(run_id, mode)
    try:
        yield path
    finally:
        remove_segment(run_id)


@contextmanager
def process(target: Callable[..., None], *arguments: Any) -> Iterator[int]:
    """The id of a forked process, which is gone at the end."""
    child = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    child.start()
    assert child.pid is not None
    try:
        yield child.pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        child.join()


@contextmanager
def apart_from(pid: int) -> Iterator[None]:
    """On another core than a process, as two that never sleep else take turns on one."""
    cores = os.sched_getaffinity(0)
    mine = min(cores)
    others = cores - {mine} or cores
    os.sched_setaffinity(pid, others)
    os.sched_setaffinity(0, {mine})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def wait_for_frame(reader: FastLaneReader) -> None:
    """Return when the first frame has been read."""
    deadline = time.monotonic() + 30
    while not reader.slots() or reader.read(0) is None:
        assert time.monotonic() < deadline, "no frame within 30 s"
        time.sleep(0.001)


def half_written(path: Path) -> bool:
    """Whether a frame of slot 0 is begun and not ended."""
    segment = Segment(path)
    offset, size = layout.unpack_region(segment.words[slots.entry(0) + layout.REGION])
    words = memoryview(segment.map(offset, size)).cast("Q")
    stride = layout.frame_stride(size) // layout.WORD
    odd = any(words[number * stride + layout.SEQUENCE] % 2 for number in range(layout.DEPTH))
    words.release()
    segment.close()
    return odd
