"""A run can be watched while it trains, and leaves nothing in shared memory."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from cleanrl_worker.portable.fastlane.tap import Tap
from conftest import RunMosaic
from mosaic.cli.commands.pictures import first_picture, reason_of
from mosaic.client import Client, train_config
from mosaic.fastlane import slots
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE, lacking_package, lacks_package
from mosaic.fastlane.reader import SlotStatus
from mosaic.fastlane.segment import Segment, create_segment, list_segments, remove_segment
from mosaic.fastlane.writer import SlotWriter
from support.records import plain_record
from support.runs import end, script_config, wait_for_status


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    segments = tmp_path / "shm"
    segments.mkdir()
    monkeypatch.setenv(FOLDER_VARIABLE, str(segments))
    return segments


def look_until(grid: LiveGrid, condition: Callable[[LiveGrid], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition(grid):
        assert time.monotonic() < deadline, grid.status()
        grid.look()
        time.sleep(0.01)


def test_training_is_watched_paused_and_ended(client: Client) -> None:
    run = client.submit(train_config("ppo", "CartPole-v1", total_timesteps=100_000_000))
    with LiveGrid(run.run_id) as grid:
        look_until(grid, lambda grid: len(grid.shown) == 4)
        look_until(grid, lambda grid: [frame.last_reward for frame in grid.frames().values()] == [1.0] * 4)
        assert grid.status().state == "live"
        client.pause(run.run_id)
        wait_for_status(client, run.run_id, "PAUSE")
        look_until(grid, lambda grid: grid.status().reason == "training is paused")
        client.resume(run.run_id)
        look_until(grid, lambda grid: grid.status().state == "live")
        end(client, run)
        assert grid.status().state == "ended"
        assert grid.picture() is not None, "the last picture stays to be seen"
    assert list_segments() == []


def test_a_script_that_was_looked_at_ends_by_the_signal_that_asks_it_to(client: Client) -> None:
    params = {"env_id": "CartPole-v1", "pause": 0.001}
    run = client.submit(script_config("plays.py", steps=1_000_000, params=params))
    with LiveGrid(run.run_id) as grid:
        look_until(grid, lambda grid: grid.picture() is not None)
        end(client, run)
    assert client.get(run.run_id).exit_code == 128 + signal.SIGTERM


def test_what_a_killed_supervisor_left_is_swept(client: Client) -> None:
    run = client.submit(script_config("plays.py", steps=1_000_000, params={"pause": 0.001}))
    started = wait_for_status(client, run.run_id, "EXEC")
    assert list_segments() == [run.run_id]
    assert started.supervisor_pid is not None
    os.kill(started.supervisor_pid, signal.SIGKILL)
    client.wait(run.run_id, timeout=60)
    assert list_segments() == []


def test_without_room_for_frames_a_run_goes_on_unseen(
    client: Client, folder: Path, run_mosaic: RunMosaic
) -> None:
    folder.rmdir()
    run = client.submit(script_config("plays.py", steps=20))
    assert client.wait(run.run_id, timeout=60).outcome == "completed"
    assert "cannot be made" in run_mosaic("logs", run.run_id, "--supervisor").stdout


def test_a_snapshot_has_every_environment_however_slowly_they_begin_to_draw(
    client: Client, run_mosaic: RunMosaic, tmp_path: Path
) -> None:
    params = {"env_id": "Slow-v0", "vector": "sync", "num_envs": 3, "pause": 0.001}
    run = client.submit(script_config("plays.py", steps=1_000_000, params=params))
    done = run_mosaic("snapshot", run.run_id, str(tmp_path / "now.png"), "--json")
    end(client, run)
    assert json.loads(done.stdout)["environments"] == 3


def test_a_snapshot_does_not_wait_for_an_environment_that_nobody_plays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mosaic.cli.commands.pictures.PATIENCE_SECONDS", 0.2)
    segment = Segment(create_segment("RUN", "grid"))
    assert [slots.claim(segment, slots.Owner.myself()) for _ in range(2)] == [0, 1]
    with LiveGrid("RUN") as grid:
        SlotWriter(segment, 0).publish(np.zeros((4, 6, 3), np.uint8), 0.0, 0.0, 0.0)
        assert first_picture(grid, plain_record("RUN")).shape == (4, 6, 3)
        assert (grid.shown, grid.awaited) == ([0], [1])
    remove_segment("RUN")


def test_snapshot_and_record_say_why_there_is_nothing(client: Client, run_mosaic: RunMosaic) -> None:
    run = client.submit(script_config("plays.py", steps=5))
    client.wait(run.run_id, timeout=60)
    for command, name in (("snapshot", "now.png"), ("record", "film.mp4"), ("snapshot", "now.jpg")):
        done = run_mosaic(command, run.run_id, name, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1


def test_a_missing_package_is_told_with_the_command_for_the_interpreter_of_the_run() -> None:
    lacks = SlotStatus("no picture", lacks_package("pygame"))
    assert "run `mosaic extras install classic`" in reason_of(lacks, None)
    assert "run `/their/python -m pip install pygame`" in reason_of(lacks, "/their/python")
    assert "-m pip install oddlib`" in reason_of(SlotStatus("no picture", lacks_package("oddlib")), None)
    assert reason_of(SlotStatus("no picture", "it's odd"), None) == "it's odd"


def test_a_package_that_is_installed_while_a_script_trains_brings_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def render() -> Any:
        try:
            module = importlib.import_module("draws_for_this_test")
        except ImportError as error:
            raise RuntimeError("not here: pip install it") from error
        return module.picture()

    segment = Segment(create_segment("RUN", "grid"))
    tap = Tap(segment, slots.claim(segment, slots.Owner.myself()) or 0, render, "Odd-v0", str)
    with LiveGrid("RUN") as grid:
        grid.look()
        tap.show(0.0)
        assert grid.status() == SlotStatus("no picture", lacks_package("draws_for_this_test"))
        assert lacking_package(grid.status().reason) == "draws_for_this_test"
        assert tap.due_at < float("inf"), "it tries again"
        (tmp_path / "draws_for_this_test.py").write_text("raise ImportError('only half of it is there')")
        tap.show(0.0)
        assert "not here" in grid.status().reason and tap.due_at < float("inf")
        source = "import numpy\ndef picture(): return numpy.zeros((4, 6, 3), numpy.uint8)\n"
        (tmp_path / "draws_for_this_test.py").write_text(source)
        tap.show(0.0)
        assert grid.look() and grid.picture().shape == (4, 6, 3)
        assert grid.status().state == "live"
    tap.close()
    remove_segment("RUN")


def test_processes_that_train_together_are_all_shown_paused_and_ended(client: Client) -> None:
    params = {"num_envs": 2, "num_steps": 16}
    config = train_config("ppo_atari_multigpu", "mosaic/Catch-v0", total_timesteps=100_000_000, params=params)
    run = client.submit(config)
    with LiveGrid(run.run_id) as grid:
        # Two environments in each of two processes.
        look_until(grid, lambda grid: len(grid.shown) == 4)
        look_until(grid, lambda grid: grid.status().state == "live")
        pid = client.get(run.run_id).training_pid
        assert pid is not None
        (second,) = psutil.Process(pid).children()
        client.pause(run.run_id)
        wait_for_status(client, run.run_id, "PAUSE")
        assert second.status() == psutil.STATUS_STOPPED
        client.resume(run.run_id)
        look_until(grid, lambda grid: grid.status().state == "live")
        end(client, run)
    assert client.get(run.run_id).exit_code == 128 + signal.SIGTERM
    assert not second.is_running()
    assert list_segments() == []
