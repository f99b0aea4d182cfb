"""Environments with image observations are shown by one call of the training core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from cleanrl_worker.portable.fastlane.images import ImageRow, picture_of
from cleanrl_worker.portable.fastlane.lane import SEGMENT_VARIABLE
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.layout import FOLDER_VARIABLE
from mosaic.fastlane.segment import create_segment
from support.runs import SCRIPTS


@pytest.mark.parametrize(
    ("shape", "picture"),
    [
        ((84, 84), (84, 84)),
        ((64, 64, 3), (64, 64, 3)),
        ((3, 64, 64), (64, 64, 3)),
        ((4, 84, 84), (84, 84)),
        ((84, 84, 4), (84, 84)),
        ((1, 84, 84), (84, 84)),
        ((12, 84, 84), (84, 84, 3)),
    ],
)
def test_the_newest_picture_of_an_observation(shape: tuple[int, ...], picture: tuple[int, ...]) -> None:
    assert picture_of(np.zeros(shape, np.uint8)).shape == picture


def test_ataris_own_vector_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vector_env = pytest.importorskip("ale_py.vector_env")
    with monkeypatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path))
        patch.setenv(SEGMENT_VARIABLE, str(create_segment("ATARI", "grid")))
        patch.setattr("cleanrl_worker.portable.fastlane.lane._opened", {})
        row = ImageRow(2, "breakout")
        grid = LiveGrid("ATARI")
    envs = vector_env.AtariVectorEnv("breakout", num_envs=2)
    observations, _ = envs.reset(seed=1)
    with grid:
        while len(grid.shown) < 2:
            observations, rewards, terminated, truncated, _ = envs.step(np.zeros(2, np.int64))
            row.after_step(observations, rewards, terminated | truncated)
            grid.look()
        assert grid.picture().shape == (84, 2 * 84 + 2, 3)
        assert grid.picture().any()
    envs.close()


ENVPOOL = """
import json, sys, time
import envpool
from mosaic.fastlane.grid import LiveGrid
grid = LiveGrid("RUN")
envs = envpool.make("Breakout-v5", env_type="gym", num_envs=4, **json.loads(sys.argv[1]))
if "compiled" in sys.argv:
    envs.xla()
envs.reset()
deadline = time.monotonic() + 30
while len(grid.shown) < 4 and grid.status().state != "no picture":
    assert time.monotonic() < deadline, grid.status()
    grid.look()
    envs.step([0, 0, 0, 0])
for _ in range(60 if grid.shown else 0):
    envs.step([0, 0, 0, 0])
    grid.look()
    time.sleep(0.01)
frames = grid.frames().values()
print(json.dumps({
    "type": type(envs).__name__,
    "reason": grid.status().reason,
    "values": [frame.pixels[0, 0].tolist() for frame in frames],
    "shapes": [list(frame.pixels.shape) for frame in frames],
    "returns": [frame.rolling_return for frame in frames],
}))
"""


def run_envpool(options: dict[str, Any], *words: str) -> tuple[dict[str, Any], str]:
    """What a script of EnvPool's sees of itself, and its error output."""
    live = LiveFrames("RUN", LiveSettings())
    surroundings = {**os.environ, "PYTHONPATH": str(SCRIPTS / "stand_ins")}
    command = [sys.executable, "-c", ENVPOOL, json.dumps(options), *words]
    done = subprocess.run(command, env=live.add_to(surroundings, None), capture_output=True, text=True)
    live.close()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("options", [{}, {"old": True}, {"batch_size": 2}], ids=["new", "old", "async"])
def test_the_newest_frames_of_envpools_environments_are_shown(options: dict[str, Any]) -> None:
    seen, _ = run_envpool(options)
    assert seen["type"] == "Pool", "the script has the object that it made"
    assert seen["shapes"] == [[20, 30, 1]] * 4
    assert seen["values"] == [[0], [50], [100], [150]], "each environment in its own place"
    assert seen["returns"] == pytest.approx([10.0] * 4, abs=1.0)


@pytest.mark.parametrize(
    ("options", "words", "reason"),
    [
        ({"shape": [17]}, (), "EnvPool does not draw, and its observations are not pictures"),
        ({}, ("compiled",), "its steps are compiled by XLA, which shows nothing of them"),
    ],
)
def test_what_envpool_cannot_show_is_said_once(
    options: dict[str, Any], words: tuple[str, ...], reason: str
) -> None:
    seen, errors = run_envpool(options, *words)
    assert seen["reason"] == reason
    assert errors.count("FastLane: no picture of Breakout-v5") == 1
