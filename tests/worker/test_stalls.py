"""An environment that hangs is shown as stalled, with what the training process does; nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.live import LiveFrames, LiveSettings
from cleanrl_worker.supervisor.stalls import SECONDS_VARIABLE, Report, StallWatch, stall_seconds
from conftest import RunMosaic
from gym_gui.models.words import stall_text, state_of
from mosaic.client import Client, RunRecord, train_config
from mosaic.contract.errors import UserError
from mosaic.contract.process import process_state
from support.runs import end

HANGING = """
import os, time
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Hanging(CartPoleEnv):
    '''Hangs in its 40th step until there is a file `go`.'''
    taken = 0
    def step(self, action):
        Hanging.taken += 1
        while Hanging.taken == 40 and not os.path.exists("go"):
            time.sleep(0.01)
        return super().step(action)

gym.register("Hanging-v0", Hanging, max_episode_steps=50)
"""
SCRIPT = """
import argparse, time
import gymnasium as gym
import hanging
parser = argparse.ArgumentParser()
parser.add_argument("--update", type=float, default=0.0)
options, _ = parser.parse_known_args()
env = gym.make("Hanging-v0")
env.reset(seed=1)
env.step(0)
time.sleep(options.update)
for _ in range(60):
    if any(env.step(env.action_space.sample())[2:4]):
        env.reset()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hanging.py").write_text(HANGING)
    (tmp_path / "script.py").write_text(SCRIPT)
    monkeypatch.setenv(SECONDS_VARIABLE, "0.5")
    return tmp_path


def _until(client: Client, run: RunRecord, wanted: Callable[[RunRecord], bool]) -> RunRecord:
    deadline = time.monotonic() + 60
    while not wanted(run := client.get(run.run_id)):
        assert not run.ended and time.monotonic() < deadline, (run.status, run.reason, run.headline)
        time.sleep(0.05)
    return run


def _stalled(run: RunRecord) -> bool:
    return bool(run.headline.get("phase") == "stalled")


@pytest.mark.parametrize("algo", ["dqn", "script.py"])
def test_a_hanging_environment_is_shown_with_its_stack_until_it_goes_on(
    algo: str, folder: Path, client: Client, run_mosaic: RunMosaic
) -> None:
    env_id = "hanging:Hanging-v0" if algo == "dqn" else "Hanging-v0"
    script = algo if algo == "dqn" else str(folder / algo)
    params = {"eval_episodes": 0} if algo == "dqn" else {}
    run = client.submit(train_config(script, env_id, total_timesteps=2000, params=params, folder=folder))
    run = _until(client, run, _stalled)
    innermost = run.headline["stall"]["stack"][0]
    assert innermost.startswith(f'File "{folder}/hanging.py", line ') and innermost.endswith(" in step")
    assert run.headline["stall"]["text"].startswith("no step since ")
    assert state_of(run).word == "Stalled"
    assert stall_text(run) == run.headline["stall"]["text"]
    assert "stalled" in run_mosaic("runs").stdout
    shown = run_mosaic("show", run.run_id).stdout
    assert "stalled  no step since" in " ".join(shown.split(" ")) and "hanging.py" in shown
    (Path(run.run_dir) / "go").touch()
    run = client.wait(run.run_id, timeout=90)
    assert run.outcome == "completed", run.reason
    assert run.headline["phase"] != "stalled"


def test_a_paused_run_is_not_stalled(folder: Path, client: Client) -> None:
    run = client.submit(train_config("dqn", "hanging:Hanging-v0", total_timesteps=2000, folder=folder))
    run = _until(client, run, _stalled)
    client.pause(run.run_id)
    run = _until(client, run, lambda run: run.status == "PAUSE")
    assert run.headline["phase"] == "paused"
    client.resume(run.run_id)
    run = _until(client, run, _stalled)
    end(client, run)
    # What it was doing is still told when it has ended.
    assert "hanging.py" in client.get(run.run_id).headline["stall"]["stack"][0]


def test_a_long_update_is_not_a_stall_and_is_not_disturbed(folder: Path, client: Client) -> None:
    script = str(folder / "script.py")
    params = {"update": 2.5}
    config = train_config(script, "Hanging-v0", total_timesteps=60, params=params, folder=folder)
    run = client.submit(config)
    (Path(run.run_dir)).mkdir(parents=True, exist_ok=True)
    (Path(run.run_dir) / "go").touch()
    seen = set()
    while not (run := client.get(run.run_id)).ended:
        seen.add(run.headline.get("phase"))
        time.sleep(0.05)
    assert run.outcome == "completed", run.reason
    assert "stalled" not in seen


def test_a_process_that_has_become_another_program_is_not_asked() -> None:
    report = Report()
    pid = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    try:
        assert report.ask_stack(pid) is None
        assert process_state(pid) in ("R", "S")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        report.close()


EVALUATION = """
import numpy as np
from cleanrl_worker.portable.fastlane.lane import unwatched
from cleanrl_worker.kit.vector_env import make_envs
with unwatched(), make_envs("dqn", "CartPole-v1", 2) as envs:
    out = np.zeros((2, 4), np.float32)
    envs.restart(0, 1, out)
    envs.advance([0], [0], out)
"""


def test_steps_of_evaluations_count() -> None:
    live = LiveFrames("RUN", LiveSettings())
    subprocess.run([sys.executable, "-c", EVALUATION], env=live.add_to(os.environ, None), check=True)
    assert live.steps == 2
    live.close()


@pytest.mark.parametrize("text", ["abc", "-1", "nan", "inf"])
def test_a_time_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, text)
    with pytest.raises(UserError, match=f"^{SECONDS_VARIABLE} is '{text}', but must be a number of seconds"):
        stall_seconds()


def test_none_is_looked_for_when_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, "0")
    live = LiveFrames("RUN", LiveSettings())
    report: Any = None
    assert StallWatch(report, live, 1, stall_seconds()).look(False) is None
    live.close()
