"""What lies in the user's folder hides nothing of Python's or ours, and is found all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cleanrl_worker.supervisor.inspection import Prober
from mosaic.client import Client, train_config
from mosaic.client.playing import PlaySession
from mosaic.contract.errors import UserError
from support.foreign_models import layers
from support.policies import save_cartpole, save_policy

HIDING = ("random", "numpy", "token", "torch", "json", "gymnasium", "sitecustomize", "queue", "types")
CORRIDOR = """
import random
import gymnasium as gym
import helpers
from gymnasium.envs.classic_control import CartPoleEnv

class Corridor(CartPoleEnv):
    pass

gym.register("Corridor-v0", Corridor, max_episode_steps=50)
"""
SCRIPT = """
import random, sys
import helpers
print("beside", helpers.WHERE, random.Random(1).random() > 0, sys.path[-1], flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The user's folder, with modules whose names others have too."""
    place = tmp_path / "own"
    place.mkdir()
    for name in HIDING:
        (place / f"{name}.py").write_text(f"raise RuntimeError('the {name}.py of the folder')")
    (place / "corridor.py").write_text(CORRIDOR)
    (place / "helpers.py").write_text("WHERE = 'own'")
    return place


@pytest.mark.parametrize("live", ["grid", "off"])
def test_an_algorithm_trains_on_an_environment_of_the_folder(client: Client, folder: Path, live: str) -> None:
    extras = {"fastlane_video_mode": live}
    config = train_config("ppo", "corridor:Corridor-v0", total_timesteps=512, extras=extras, folder=folder)
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert run.outcome == "completed", run.reason


def test_a_script_has_its_own_folder_first_and_the_users_last(
    client: Client, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "helpers.py").write_text("WHERE = 'elsewhere'")
    (elsewhere / "script.py").write_text(SCRIPT)
    config = train_config(str(elsewhere / "script.py"), "None-v0", total_timesteps=1, folder=folder)
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    assert b"".join(client.logs(run.run_id)).decode() == f"beside elsewhere True {folder}\n"


def test_a_module_of_the_folder_runs_also_when_an_installed_one_has_its_name(
    client: Client, tmp_path: Path
) -> None:
    # Python has a package `test` of its own.
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "__init__.py").touch()
    (tmp_path / "test" / "study.py").write_text("print('studied')")
    config = train_config("test.study", "None-v0", total_timesteps=1, folder=tmp_path)
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    assert b"".join(client.logs(run.run_id)) == b"studied\n"


def test_the_worker_by_hand_sees_the_folder_as_its_dry_run_does(var: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "cleanrl_worker.cli", "--algo", "ppo"]
    command += ["--env-id", "corridor:Corridor-v0", "--total-timesteps", "512"]
    # Before this one nobody is asked.
    (folder / "types.py").unlink()
    for more in (["--dry-run"], []):
        done = subprocess.run([*command, *more], cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "run_completed"


def test_a_session_and_a_look_at_a_model_see_it_too(folder: Path) -> None:
    model = save_cartpole(folder)
    with PlaySession.start(model, env_id="corridor:Corridor-v0", folder=folder) as session:
        assert session.reset(seed=1)["type"] == "ready"
    Prober(None, folder).check_model(model, "ppo", "corridor:Corridor-v0")
    other = save_policy(folder / "o.cleanrl_model", layers("critic", 3, 64, 64, 1), "ppo", "CartPole-v1")
    with pytest.raises(UserError, match="is not a model of ppo"):
        Prober(None, folder).check_model(other, "ppo", "corridor:Corridor-v0")


def test_a_relative_python_path_counts_from_where_the_run_was_asked_for(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mine.py").touch()
    (tmp_path / "script.py").write_text("import mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["lib", "", os.environ.get("PYTHONPATH", "")]))
    config = train_config("script.py", "None-v0", total_timesteps=1)
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
