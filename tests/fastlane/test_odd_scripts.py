"""Scripts that do odd things with their environments run as they would without live frames."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from mosaic.fastlane.layout import FOLDER_VARIABLE
from support.runs import SCRIPTS

BEGIN = """
import copy, gc, json, os, pickle, sys, threading, time
import gymnasium as gym, numpy as np
import plays
from mosaic.fastlane.grid import LiveGrid
from mosaic.fastlane.segment import Segment
from mosaic.fastlane import slots
from pathlib import Path

grid = LiveGrid("RUN")
segment = Segment(Path(os.environ["CLEANRL_FASTLANE_SEGMENT"]))

def owners():
    found = [slots.owner_of(segment, slot) for slot in range(256)]
    return [owner.pid for owner in found if owner is not None]

def play(env, until=lambda: grid.shown):
    env.reset(seed=1)
    deadline = time.monotonic() + 30
    while not until() and grid.status().state != "no picture":
        assert time.monotonic() < deadline, grid.status()
        grid.look()
        result = env.step(env.action_space.sample())
        if np.any(result[2]) and not hasattr(env, "num_envs"):
            env.reset()
    return env

def tell(value):
    print(json.dumps(value), flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def run_script(code: str, flags: tuple[str, ...] = (), bridge: Path | None = None) -> Any:
    """What a script of ours tells, run with live frames that it looks at itself."""
    live = LiveFrames("RUN", LiveSettings("grid", limit=255))
    environment = live.add_to({**os.environ, "PYTHONPATH": str(SCRIPTS)}, bridge)
    command = [sys.executable, *flags, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    live.close()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "made",
    [
        "gym.make(id='None-v0')",
        "gym.make('None')",
        "gym.make('plays:None-v0')",
        "gym.make(gym.spec('None-v0'), 50, True)",
        "gym.spec('None-v0').make()",
        "gym.envs.make('None-v0')",
        "gym.make_vec('None-v0', num_envs=2, vectorization_mode='sync')",
        "gym.make_vec('None-v0', num_envs=2, vectorization_mode='async')",
    ],
)
def test_every_way_to_make_an_environment_can_be_watched(made: str) -> None:
    code = f"{BEGIN}\nif __name__ == '__main__':\n env = play({made})\n env.close()\n tell(grid.shown)"
    assert 0 in run_script(code)


def test_a_class_that_takes_no_render_mode_is_made_as_it_is() -> None:
    code = """
class Old(plays.Colours):
    def __init__(self):
        super().__init__()
gym.register("Old-v0", entry_point=Old)
env = play(gym.make("Old-v0"))
tell([env.render_mode, grid.status().reason])
"""
    assert run_script(BEGIN + code) == [None, "it cannot render pictures"]


@pytest.mark.parametrize(
    ("taken", "made"),
    [
        ("render_mode=None", 'gym.make("None-v0", render_mode=render_mode)'),
        ("**anything", "plays.Colours(**anything)"),
    ],
)
def test_a_function_that_takes_a_render_mode_is_asked_for_pictures(taken: str, made: str) -> None:
    code = f"""
def make({taken}):
    return {made}
gym.register("Nested-v0", entry_point=make)
env = play(gym.make("Nested-v0"))
tell([env.render_mode, env.spec.kwargs, len(owners()), grid.status().state])
"""
    assert run_script(BEGIN + code) == [None, {}, 1, "live"]


def test_a_render_mode_in_the_registration_is_the_scripts_own() -> None:
    code = """
gym.register("Seen-v0", entry_point=plays.Colours, kwargs={"render_mode": "rgb_array"})
env = play(gym.make("Seen-v0"))
tell([env.render_mode, list(env.render().shape)])
"""
    assert run_script(BEGIN + code) == ["rgb_array", [40, 60, 3]]


@pytest.mark.parametrize(
    ("drawn", "reason"),
    [
        ("np.zeros((3, 40, 60), np.uint8)", "its render() returns no picture"),
        ("[[1, 2], [3]]", "its render() failed: ValueError"),
    ],
)
def test_what_is_no_picture_is_named(drawn: str, reason: str) -> None:
    code = f"""
plays.Colours.render = lambda self: {drawn}
env = play(gym.make("None-v0"))
tell(grid.status().reason)
"""
    assert run_script(BEGIN + code).startswith(reason)


@pytest.mark.parametrize(
    ("reward", "seen"), [("np.array([1.0, 2.0])", 3.0), ("np.float32(2)", 2.0), ("None", None)]
)
def test_odd_rewards_stop_nothing(reward: str, seen: float | None) -> None:
    code = f"""
step = plays.Colours.step
plays.Colours.step = lambda self, action: (lambda r: (r[0], {reward}, *r[2:]))(step(self, action))
env = play(gym.make("None-v0", disable_env_checker=True))
for _ in range(30):
    env.step(0)
tell(grid.metrics().last_reward if grid.shown else None)
"""
    assert run_script(BEGIN + code) == seen


def test_copies_are_plain_environments() -> None:
    code = """
env = play(gym.make("None-v0"))
copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
played = [other.step(0)[1] for other in copies]
tell([played, [type(other).__module__.split(".")[0] for other in copies], len(owners())])
"""
    assert run_script(BEGIN + code) == [[1.0, 1.0], ["gymnasium", "gymnasium"], 1]


def test_more_environments_than_there_are_slots_all_play() -> None:
    code = """
envs = [gym.make("None-v0") for _ in range(300)]
for env in envs:
    env.reset(seed=1); env.step(0)
modes = {str(env.render_mode) for env in envs}
made = len(owners())
for env in envs:
    env.close()
tell([made, sorted(modes), len(owners())])
"""
    assert run_script(BEGIN + code) == [256, ["None"], 0]


def test_our_own_vector_of_more_environments_than_slots_plays_and_shows() -> None:
    code = """
from cleanrl_worker.kit.vector_env import VectorEnv
envs = VectorEnv([gym.make("None-v0") for _ in range(258)])
out = np.zeros((258, 1), np.float32)
envs.reset(1, out)
while len(grid.shown) < 255:
    envs.step([0] * 258, out)
    grid.look()
envs.close()
tell(owners())
"""
    assert run_script(BEGIN + code) == []


def test_a_forked_child_that_plays_its_parents_environment_gets_a_slot_of_its_own() -> None:
    code = """
env = play(gym.make("None-v0"))
child = os.fork()
if child == 0:
    while True:
        env.step(0); time.sleep(0.001)
play(env, lambda: len(grid.shown) == 2)
tell(owners() == [os.getpid(), child])
os.kill(child, 9)
"""
    assert run_script(BEGIN + code) is True


def test_environments_made_and_closed_a_thousand_times_leave_nothing() -> None:
    code = """
for number in range(1000):
    env = gym.make("None-v0")
    if number % 100 == 0:
        play(env)
    if number % 2:
        env.close()
    env.reset(seed=1); env.step(0)
size = os.stat(segment.path).st_size
del env
tell([owners(), size < 200_000])
"""
    assert run_script(BEGIN + code) == [[], True]


def test_an_environment_collected_while_another_is_made_stops_nothing() -> None:
    code = """
for number in range(600):
    gc.set_threshold(20 + number * 37 % 800)
    env = gym.make("None-v0")
    env.unwrapped.itself = env
gc.collect()
tell(len(owners()) <= 1)
"""
    assert run_script(BEGIN + code) is True


def test_threads_get_slots_of_their_own() -> None:
    code = """
made = []
def make():
    made.extend(gym.make("None-v0") for _ in range(8))
threads = [threading.Thread(target=make) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
tell([len(owners()), len({env.tap._writer.slot for env in made})])
"""
    assert run_script(BEGIN + code) == [64, 64]


@pytest.mark.parametrize("flag", ["-S", "-I"])
def test_an_interpreter_that_skips_site_files_plays_unseen(flag: str) -> None:
    code = "import sys; sys.path[:] = " + repr(sys.path) + "\nimport gymnasium\n"
    code += "print(str(hasattr(gymnasium.make, 'watched')).lower())"
    assert run_script(code, (flag,)) is False


def test_a_folder_with_spaces_in_its_name_does(tmp_path: Path) -> None:
    code = "import gymnasium\nprint(str(hasattr(gymnasium.make, 'watched')).lower())"
    assert run_script(code, bridge=tmp_path / "a run of mine") is True
