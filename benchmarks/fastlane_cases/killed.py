"""Writers killed in mid-frame: how soon a viewer knows, and what is left in shared memory."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tables import Row

from fastlane_cases.processes import (
    LARGE,
    half_written,
    process,
    publish_forever,
    segment_of,
    wait_for_frame,
)
from fastlane_cases.spread import spread
from mosaic.client import Client, train_config
from mosaic.client.daemon import stop_daemon
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.reader import FastLaneReader
from mosaic.fastlane.segment import list_segments

RUN_ID = f"BENCH-KILLED-{os.getpid()}"


def run(short: bool) -> list[Row]:
    return [_kill_writers(10 if short else 200), _kill_runs(2 if short else 6)]


def _kill_writers(wanted: int) -> Row:
    """Kill until so many were in mid-frame; the segment then goes as a supervisor takes it away."""
    chance, waits, kills = random.Random(0), [], 0
    while len(waits) < wanted:
        kills += 1
        run_id = f"{RUN_ID}-{kills}"
        with segment_of(run_id) as path, closing(FastLaneReader(path)) as reader:
            with process(publish_forever, path, LARGE, 0.0) as writer:
                wait_for_frame(reader)
                assert reader.status(0).state == "live"
                time.sleep(chance.uniform(0.0, 0.02))
                os.kill(writer, signal.SIGKILL)
                began = time.monotonic()
                while reader.status(0).state != "stale":
                    time.sleep(0.001)
                waited = time.monotonic() - began
            if half_written(path):
                waits.append(waited)
    left = [name for name in list_segments() if name.startswith(RUN_ID)]
    return Row(
        "Writer killed in mid-frame",
        f"{wanted} of {kills} kills were in mid-frame; stale after {spread(waits, 's')}; "
        f"{len(left)} segments left",
        "stale within 1 s, 0 segments left",
        max(waits) < 1.0 and not left,
    )


def _kill_runs(runs: int) -> Row:
    """Runs that are watched: the training process or the supervisor is killed, in turn."""
    run_ids, told = [], []
    with tempfile.TemporaryDirectory() as var, Client.connect(Path(var)) as client:
        try:
            for number in range(runs):
                run_id = client.submit(train_config("ppo", "CartPole-v1", total_timesteps=10**9)).run_id
                run_ids.append(run_id)
                with LiveGrid(run_id) as grid:
                    _look_until(grid, "live")
                    record = client.get(run_id)
                    victim = record.supervisor_pid if number % 2 else record.training_pid
                    assert victim is not None
                    os.kill(victim, signal.SIGKILL)
                    began = time.monotonic()
                    while grid.status().state == "live":
                        time.sleep(0.001)
                    told.append(time.monotonic() - began)
                client.wait(run_id, timeout=60)
        finally:
            stop_daemon(client.paths)
    left = [name for name in list_segments() if name in run_ids]
    return Row(
        "Runs whose training process (half of them) or supervisor is killed while watched",
        f"{runs} runs; told after {spread(told, 's')}; {len(left)} segments left by supervisor and daemon",
        "told within 1 s, 0 segments left",
        max(told) < 1.0 and not left,
    )


def _look_until(grid: LiveGrid, state: str) -> None:
    deadline = time.monotonic() + 90
    while grid.status().state != state:
        assert time.monotonic() < deadline, grid.status()
        grid.look()
        time.sleep(0.005)
