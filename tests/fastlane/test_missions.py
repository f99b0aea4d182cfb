"""What an environment has to do, in words, is there for whoever looks at its picture."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import pytest

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from cleanrl_worker.portable.fastlane.wrapper import mission_of
from mosaic.cli.commands.pictures import mission_lines
from mosaic.fastlane.grid import LiveGrid
from support.walks import Walk

PLAY = """
import sys, time
import numpy as np
from cleanrl_worker.curriculum.schedule import parse_schedule
from cleanrl_worker.kit.vector_env import make_envs
with make_envs("ppo", sys.argv[1], 2, schedule=parse_schedule(sys.argv[2])) as envs:
    obs = np.zeros((2, *envs.observation_space.shape), dtype=envs.observation_space.dtype)
    envs.reset(1, out=obs)
    while True:
        envs.step([0, 1], out=obs)
        time.sleep(0.002)
"""
GOAL, KEY = "get to the green goal square", "use the key to open the door and then get to the goal"


def missions_seen(env_id: str, schedule: str, wanted: set[str], tmp_path: Path) -> set[str]:
    """The missions that a viewer has seen, once it has seen as many pictures and those missions."""
    live = LiveFrames("RUN", LiveSettings())
    # No supervisor is there to end what else would draw.
    environment = live.add_to({**os.environ, "CLEANRL_FASTLANE_DRAWER": "off"}, None)
    with (tmp_path / "stderr").open("wb") as stderr:
        command = [sys.executable, "-c", PLAY, env_id, schedule]
        process = subprocess.Popen(command, env=environment, stderr=stderr)
    seen: set[str] = set()
    deadline = time.monotonic() + 90
    try:
        with LiveGrid("RUN") as grid:
            while len(grid.shown) < 2 or not wanted <= seen:
                assert time.monotonic() < deadline and process.poll() is None, (
                    tmp_path / "stderr"
                ).read_text()
                grid.look()
                seen |= set(grid.missions())
                time.sleep(0.005)
            assert grid.missions() == [] or len(grid.missions()) == 2
    finally:
        process.kill()
        process.wait()
        live.close()
    return seen


def test_a_viewer_sees_the_mission_of_each_environment(tmp_path: Path) -> None:
    assert missions_seen("MiniGrid-Empty-5x5-v0", "", {GOAL}, tmp_path) == {GOAL}


def test_an_environment_without_words_has_none(tmp_path: Path) -> None:
    assert missions_seen("CartPole-v1", "", set(), tmp_path) == set()


def test_the_mission_changes_with_the_stage(tmp_path: Path) -> None:
    stages = '[{"env_id": "MiniGrid-Empty-5x5-v0", "condition": "steps>=600"}, '
    stages += '{"env_id": "MiniGrid-DoorKey-5x5-v0"}]'
    assert missions_seen("", stages, {GOAL, KEY}, tmp_path) == {GOAL, KEY}


def test_tasks_that_are_drawn_again_and_again_keep_their_places(tmp_path: Path) -> None:
    pytest.importorskip("syllabus")
    tasks = '{"curriculum": "DomainRandomization", '
    tasks += '"tasks": ["MiniGrid-Empty-5x5-v0", "MiniGrid-DoorKey-5x5-v0"]}'
    assert missions_seen("", tasks, {GOAL, KEY}, tmp_path) == {GOAL, KEY}


def test_missions_are_lines_with_the_numbers_of_who_has_them() -> None:
    assert mission_lines([]) == []
    assert mission_lines([GOAL, GOAL]) == [f"mission: {GOAL}"]
    assert mission_lines([GOAL, KEY, GOAL]) == [f"mission of 1, 3: {GOAL}", f"mission of 2: {KEY}"]
    assert mission_lines([GOAL, ""]) == [f"mission of 1: {GOAL}", "mission of 2: none"]
    assert mission_lines(list("abcde"))[3:] == ["other missions …"]


def test_whatever_a_mission_is_it_never_harms_a_step() -> None:
    class Odd(Walk):
        @property
        def mission(self) -> str:
            raise RuntimeError("not yet")

    class Numbered(Walk):
        mission = 7

    assert [mission_of(env) for env in (Odd(3), Numbered(3), gymnasium.make("CartPole-v1"))] == ["", "", ""]
