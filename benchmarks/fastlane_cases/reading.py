"""Reads against a writer at full speed, against a stopped one, and how old a frame is when it is read."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from tables import Row

from fastlane_cases.processes import (
    LARGE,
    apart_from,
    frames,
    half_written,
    process,
    publish_forever,
    segment_of,
    wait_for_frame,
)
from fastlane_cases.spread import spread
from mosaic.fastlane.reader import FastLaneReader, Frame

RUN_ID = f"BENCH-READING-{os.getpid()}"
SIZES = ((84, 84, 3), (240, 320, 3))
FULL_SPEED = 0.0
MOST_SECONDS = 200.0
"""A machine without two free cores does not get far; the row then says how far."""


def torn(short: bool) -> list[Row]:
    """Frames read while a writer publishes as fast as it can; each is compared with what was published."""
    return [_read_many(shape, 20_000 if short else 1_000_000) for shape in SIZES]


def _read_many(shape: tuple[int, int, int], wanted: int) -> Row:
    published = frames(shape)
    began = time.monotonic()
    with (
        segment_of(RUN_ID) as path,
        closing(FastLaneReader(path)) as reader,
        process(publish_forever, path, shape, FULL_SPEED) as writer,
        apart_from(writer),
    ):
        wait_for_frame(reader)
        seen = wrong = last = 0
        reader.retries = 0
        while seen < wanted and time.monotonic() < began + MOST_SECONDS:
            frame = reader.read(0)
            if frame is None:
                continue
            seen += 1
            wrong += (
                not np.array_equal(frame.pixels, published[int(frame.last_reward)]) or frame.number <= last
            )
            last = frame.number
    retries = reader.retries / max(1, seen)
    return Row(
        f"Reads against a writer at full speed, {shape[1]}×{shape[0]}×{shape[2]}",
        f"{seen:,} new frames in {time.monotonic() - began:.0f} s: {wrong} torn, {retries:.3%} retries",
        f"{wanted:,} frames, 0 torn, under 1 % retries",
        seen == wanted and wrong == 0 and retries < 0.01,
    )


def stopped(short: bool) -> list[Row]:
    """A writer is stopped at random moments; who looked before and who comes now must not be held up."""
    stops, chance = 30 if short else 500, random.Random(0)
    reads, halves, wrong = [], 0, 0
    published = frames(LARGE)
    with (
        segment_of(RUN_ID) as path,
        closing(FastLaneReader(path)) as reader,
        process(publish_forever, path, LARGE, FULL_SPEED) as writer,
    ):
        wait_for_frame(reader)
        for _ in range(stops):
            time.sleep(chance.uniform(0.0, 0.02))
            os.kill(writer, signal.SIGSTOP)
            os.waitid(os.P_PID, writer, os.WSTOPPED | os.WNOWAIT)
            halves += half_written(path)
            reads.append(_timed_read(reader)[1])
            # The reader that was there may have had the newest already; one that comes now must get it.
            frame, seconds = _fresh_read(path)
            reads.append(seconds)
            wrong += frame is None or not np.array_equal(frame.pixels, published[int(frame.last_reward)])
            os.kill(writer, signal.SIGCONT)
    return [
        Row(
            "Writer stopped in mid-frame by SIGSTOP",
            f"{stops} stops, {halves} of them in mid-frame, 2 readers each: {spread(reads)} a read; "
            f"{wrong} without a whole frame",
            "no read over 100 ms",
            max(reads) < 0.1 and wrong == 0 and halves > stops // 4,
        )
    ]


def _timed_read(reader: FastLaneReader) -> tuple[Frame | None, float]:
    began = time.monotonic()
    frame = reader.read(0)
    return frame, time.monotonic() - began


def _fresh_read(path: Path) -> tuple[Frame | None, float]:
    with closing(FastLaneReader(path)) as reader:
        return _timed_read(reader)


def latency(short: bool) -> list[Row]:
    """How old a frame is when a reader that polls 1,000 times a second has it."""
    wanted = 200 if short else 2000
    ages, naps = [], []
    with (
        segment_of(RUN_ID) as path,
        closing(FastLaneReader(path)) as reader,
        process(publish_forever, path, SIZES[1], 0.005),
    ):
        wait_for_frame(reader)
        while len(ages) < wanted:
            began = time.monotonic()
            time.sleep(0.001)
            woken = time.monotonic()
            frame = reader.read(0)
            if frame is not None:
                ages.append(time.monotonic() - frame.taken_at)
            naps.append(woken - began)
    p99 = float(np.percentile(ages, 99))
    return [
        Row(
            "Written frame to read frame, polled at 1 kHz, 320×240×3",
            f"{wanted} frames: {spread(ages)}; a sleep of 1 ms takes {spread(naps)}",
            "p99 under 2 ms",
            p99 < 0.002,
        )
    ]
