"""Whether viewers that are slow, stopped or killed make a writer wait.

The kernel tells how often it took the CPU away from the writer within a call (an involuntary switch) and how
often the writer gave it up because it had to wait (a voluntary one). On a shared machine only what is left
of the calls without the former says anything about FastLane; the same copy into private memory stands beside.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tables import Row

from fastlane_cases.processes import frames, look_forever, new_writer, process, segment_of

RUN_ID = f"BENCH-WAITING-{os.getpid()}"
SHAPE = (240, 320, 3)
LIMIT = 0.001
PAUSE = 0.0005
VIEWERS = ("no viewer", "a viewer at full speed", "stopped viewers", "killed viewers", "slow viewers")


@dataclass
class Calls:
    """How long calls took, apart for those within which the kernel ran something else."""

    alone: list[float] = field(default_factory=list)
    interrupted: list[float] = field(default_factory=list)
    waits: int = 0

    def time(self, call: Callable[[], Any]) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter()
        call()
        seconds = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
        waited = after.ru_nvcsw > before.ru_nvcsw
        self.waits += waited
        interrupted = after.ru_nivcsw > before.ru_nivcsw and not waited
        (self.interrupted if interrupted else self.alone).append(seconds)

    def beyond(self, copy: float) -> str:
        p50, p99 = (np.percentile(self.alone, share) for share in (50, 99))
        shown = [f"{(value - copy) * 1000:.3f}" for value in (p50, p99, max(self.alone))]
        over = sum(seconds - copy >= LIMIT for seconds in self.alone)
        return f"p50 {shown[0]}, p99 {shown[1]}, max {shown[2]} ms, {over} over 1 ms"


def run(short: bool) -> list[Row]:
    """Publishing with each kind of viewer, and beside it the same copy into private memory."""
    return [_row(kind, 1.0 if short else 8.0) for kind in VIEWERS]


def _row(kind: str, seconds: float) -> Row:
    publishes, copies = Calls(), Calls()
    stop = multiprocessing.get_context("fork").Event()
    with segment_of(RUN_ID) as path:
        writer, pictures = new_writer(path), frames(SHAPE)
        private = np.zeros(SHAPE, np.uint8)
        writer.publish(pictures[0], 0.0, 0.0, 0.0)
        with process(_annoy, kind, stop):
            end, number = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                picture = pictures[number % len(pictures)]
                publishes.time(lambda picture=picture: writer.publish(picture, 0.0, 0.0, 0.0))
                copies.time(lambda picture=picture: _copy(private, picture))
                number += 1
                time.sleep(PAUSE)
            stop.set()
            time.sleep(0.3)
    copy = float(np.median(copies.alone))
    longest = max(publishes.alone) - copy
    raw = max(publishes.alone + publishes.interrupted)
    raw_copy = max(copies.alone + copies.interrupted)
    return Row(
        f"Publishing 320×240×3 with {kind}",
        f"{number:,} publishes, beyond the copy ({copy * 1000:.3f} ms): {publishes.beyond(copy)}; "
        f"noise of the copy alone: {copies.beyond(copy)}; the writer waited {publishes.waits} times. "
        f"With what the kernel ran in between: max {raw * 1000:.1f} ms, copy alone {raw_copy * 1000:.1f} ms",
        "the noise floor" if kind == VIEWERS[0] else "longest under 1 ms beyond the copy, 0 waits",
        publishes.waits == 0 and (kind == VIEWERS[0] or longest < LIMIT),
    )


def _copy(private: Any, picture: Any) -> None:
    """What a publish must do at least: the bytes and their checksum."""
    private[:] = picture
    zlib.crc32(picture.reshape(-1).data)


def _annoy(kind: str, stop: Any) -> None:
    """Viewers of one kind, again and again, until `stop`."""
    while kind != VIEWERS[0] and not stop.is_set():
        with process(look_forever, RUN_ID, 1.0 if kind == "slow viewers" else 0.0) as viewer:
            stop.wait(0.5 if kind in ("slow viewers", "a viewer at full speed") else 0.03)
            if kind == "stopped viewers":
                os.kill(viewer, signal.SIGSTOP)
                stop.wait(0.1)
