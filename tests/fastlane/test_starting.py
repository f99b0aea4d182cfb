"""What a run does before its first step is told, and its first picture does not wait for its libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from cleanrl_worker.portable import launcher
from cleanrl_worker.portable.fastlane.portrait import DRAWER_VARIABLE
from mosaic.client import Client
from mosaic.contract.events import LifecycleReader
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE
from mosaic.fastlane.reader import SlotStatus
from support.runs import end, script_config

PREVIEW = "--before=cleanrl_worker.kit.preview"
BLOCKED = """
import pathlib, time
while not pathlib.Path("go").exists():
    time.sleep(0.005)

def main():
    import gymnasium
    envs = [gymnasium.make("CartPole-v1") for _ in range(4)]
    for index, env in enumerate(envs):
        env.reset(seed=7 + index)
    while True:
        for env in envs:
            if env.step(0)[2]:
                env.reset()
        time.sleep(0.001)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def look_until(grid: LiveGrid, condition: Callable[[LiveGrid], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition(grid):
        assert time.monotonic() < deadline, grid.status()
        grid.look()
        time.sleep(0.005)


@contextmanager
def launched(
    folder: Path, target: str, how: str, **arguments: object
) -> Iterator[tuple[subprocess.Popen[bytes], LiveFrames]]:
    live = LiveFrames("RUN", LiveSettings())
    # Nobody is there to end a process that draws along with the training process.
    environment = live.add_to({**os.environ, "OMP_NUM_THREADS": "1", DRAWER_VARIABLE: "off"}, None)
    environment["PYTHONPATH"] += os.pathsep + str(folder)
    (folder / "arguments.json").write_text(json.dumps({"algo": "ppo", "arguments": arguments}))
    command = [sys.executable, launcher.__file__, how, PREVIEW, target, "arguments.json"]
    process = subprocess.Popen(command, cwd=folder, env=environment)
    try:
        yield process, live
    finally:
        process.kill()
        process.wait()
        live.close()


def test_the_first_picture_is_there_while_libraries_are_imported(folder: Path) -> None:
    (folder / "waits").mkdir()
    (folder / "waits" / "ppo.py").write_text(BLOCKED)
    with (
        LiveGrid("RUN") as grid,
        launched(folder, "waits.ppo", "--preload", env_id="CartPole-v1", seed=7) as (_, live),
    ):
        look_until(grid, lambda grid: len(grid.shown) == 4 and live.phase(makes=True) == "importing")
        assert grid.status() == SlotStatus("waiting", "importing")
        assert {frame.number for frame in grid.frames().values()} == {1}
        (folder / "go").touch()
        look_until(grid, lambda grid: all(frame.number > 2 for frame in grid.frames().values()))
        assert grid.shown == [0, 1, 2, 3], "the environments that train have the same places"
        assert grid.status() == SlotStatus("live")
        assert live.phase(makes=True) == "first steps"


def test_training_is_the_same_whether_its_beginning_was_shown_or_not(folder: Path) -> None:
    asked = {"total_timesteps": 600, "eval_episodes": 0, "checkpoint_every": 0, "num_envs": 2}
    models: list[bytes] = []
    for name, looks in (("seen", True), ("unseen", False)):
        (folder / name).mkdir()
        by = "--by=cleanrl_worker.kit.loading"
        with launched(folder / name, "ppo", by, **asked) as (process, _), LiveGrid("RUN") as grid:
            if looks:
                look_until(grid, lambda grid: grid.shown == [0, 1] and grid.status().reason == "importing")
            assert process.wait(timeout=60) == 0
        models += [path.read_bytes() for path in (folder / name).glob("runs/*/*.cleanrl_model")]
    assert len(models) == 2
    assert models[0] == models[1]


def test_heartbeats_tell_what_a_script_does_before_its_first_step(client: Client, folder: Path) -> None:
    run = client.submit(script_config("starts.py", params={"told": str(folder)}))

    def wait_for(phase: str) -> None:
        deadline = time.monotonic() + 60
        while (found := client.get(run.run_id)).headline.get("phase") != phase:
            assert time.monotonic() < deadline and not found.ended, found
            time.sleep(0.01)

    wait_for("importing")
    (folder / "imported").touch()
    wait_for("making environments")
    (folder / "made").touch()
    wait_for("first steps")
    end(client, run)


def test_nothing_is_said_of_a_script_that_is_not_known_to_make_environments(client: Client) -> None:
    run = client.wait(client.submit(script_config("steps.py")).run_id, timeout=60)
    events = LifecycleReader(Path(run.run_dir) / "logs" / "events.jsonl").poll()
    assert {event.payload["phase"] for event in events if "phase" in event.payload} == {"starting"}
