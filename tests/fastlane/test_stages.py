"""Environments that a curriculum swaps keep their places before the viewer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from mosaic.fastlane.layout import segment_path
from mosaic.fastlane.reader import FastLaneReader

PLAY = """
import time
import numpy as np
from cleanrl_worker.curriculum.schedule import parse_schedule
from cleanrl_worker.kit.vector_env import make_envs
rooms = [{"env_id": f"MiniGrid-Empty-{n}x{n}-v0", "condition": "steps>=6000"} for n in (5, 8, 16)]
with make_envs("ppo", "", 3, schedule=parse_schedule(rooms)) as envs:
    obs = np.zeros((3, 7, 7, 3), dtype=np.uint8)
    envs.reset(1, out=obs)
    while True:
        envs.step([0, 1, 2], out=obs)
        time.sleep(0.002)
"""


def test_a_swapped_environment_keeps_its_slot_and_may_have_pictures_of_another_size(tmp_path: Path) -> None:
    live = LiveFrames("RUN", LiveSettings())
    with (tmp_path / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", PLAY], env=live.add_to(os.environ, None), stderr=stderr
        )
    sizes: dict[int, list[int]] = {0: [], 1: [], 2: []}
    used: set[int] = set()
    deadline = time.monotonic() + 90
    try:
        with closing(FastLaneReader(segment_path("RUN"))) as reader:
            while any(size[-1:] != [512] for size in sizes.values()):
                assert time.monotonic() < deadline and process.poll() is None, (
                    tmp_path / "stderr"
                ).read_text()
                used |= set(reader.slots())
                for slot, seen in sizes.items():
                    frame = reader.read(slot)
                    if frame is not None and seen[-1:] != [frame.pixels.shape[0]]:
                        seen.append(frame.pixels.shape[0])
                time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
        live.close()
    assert used == {0, 1, 2}
    # A cell has 32 pixels, and no picture more than 512.
    assert sizes == {slot: [160, 256, 512] for slot in (0, 1, 2)}
