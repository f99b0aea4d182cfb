"""The dry run tells everything about a run that can be told without starting it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.checkpoint_files import PolicyCard
from cleanrl_worker.supervisor.offers import CATALOG
from conftest import RunMosaic
from mosaic.contract.capabilities import DescribingCatalog, ScriptCatalog
from support.hiding import hide
from support.policies import write_empty_model

BLIND = """
import gymnasium

class Blind(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

gymnasium.register("Blind-v0", Blind)
"""
BASE = {"run_id": "r", "algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 2048}


def summary(folder: Path, *typed: str, **values: Any) -> dict[str, Any]:
    return CATALOG.describe({**BASE, **values}, None, folder, typed)


def sources(told: dict[str, Any]) -> dict[str, tuple[Any, str]]:
    return {one["name"]: (one["value"], one["source"]) for one in told["parameters"]}


def test_the_catalog_can_describe_and_has_scripts() -> None:
    assert isinstance(CATALOG, DescribingCatalog)
    assert isinstance(CATALOG, ScriptCatalog)


def test_every_parameter_is_told_with_its_source(tmp_path: Path) -> None:
    extras = {"algo_params": {"num_envs": "8", "gamma": 0.9}, "cuda": False}
    told = summary(tmp_path, "num_envs", "env_id", extras=extras, seed=3)
    found = sources(told)
    assert found["num_envs"] == (8, "cli")
    assert found["env_id"] == ("CartPole-v1", "cli")
    assert found["gamma"] == (0.9, "config")
    assert found["seed"] == (3, "config")
    assert found["cuda"] == (False, "config")
    assert found["learning_rate"] == (0.00025, "default")
    assert told["device"] == {"name": "cpu", "reason": "no GPU is asked for"}


def test_module_command_environment_and_spaces_are_told(tmp_path: Path) -> None:
    told = summary(tmp_path)
    assert told["module"] == "cleanrl_worker.algorithms.ppo"
    assert told["command"][0] == sys.executable
    assert told["command"][-2:] == ["--env-id=CartPole-v1", "--total-timesteps=2048"]
    environment = told["environment"]
    assert (environment["family"], environment["max_episode_steps"]) == ("classic", 500)
    assert (environment["observation"]["shape"], environment["action"]["n"]) == ([4], 2)
    assert told["missing_extras"] == []


def test_a_replay_buffer_counts_in_the_memory(tmp_path: Path) -> None:
    steps = {"algo": "dqn", "total_timesteps": 10_000_000}
    small = summary(tmp_path, **steps, extras={"algo_params": {"buffer_size": 1000}})
    large = summary(tmp_path, **steps, extras={"algo_params": {"buffer_size": 20_000_000}})
    # Observation and next observation of four numbers, action, reward, end: eleven numbers for each step
    # that a run takes.
    assert large["estimated_memory_mb"]["replay_buffer"] == 440
    difference = large["estimated_memory_mb"]["total"] - small["estimated_memory_mb"]["total"]
    assert difference == 440


def test_the_stages_of_a_curriculum_are_told(tmp_path: Path) -> None:
    stages = [{"env_id": "CartPole-v0", "steps": 500}, {"env_id": "CartPole-v1"}]
    told = summary(tmp_path, extras={"curriculum_schedule": stages})
    assert [stage["env_id"] for stage in told["curriculum"]] == ["CartPole-v0", "CartPole-v1"]


def test_a_policy_that_would_be_played_is_told(tmp_path: Path) -> None:
    model = tmp_path / "ppo.cleanrl_model"
    write_empty_model(model)
    PolicyCard("ppo", {"env_id": "CartPole-v1", "seed": 4}, 900, None).write(model)
    extras = {"mode": "policy_eval", "policy_path": model.name, "eval_episodes": 3}
    told = CATALOG.describe({"run_id": "r", "extras": extras}, None, tmp_path, {"eval_episodes"})
    assert told["module"] == "cleanrl_worker.evaluation.evaluate_policy"
    assert told["policy"]["path"] == str(model)
    found = sources(told)
    assert found["eval_episodes"] == (3, "cli")
    assert found["deterministic"] == (True, "default")
    assert told["device"]["name"] == "cpu"


def test_a_script_is_told_with_its_head(tmp_path: Path) -> None:
    told = CATALOG.describe({"run_id": "r", "algo": "quick_test.sh"}, None, tmp_path, ())
    assert (told["kind"], told["script"]["phases"]) == ("shell", 2)
    assert told["command"][2] == '--exec=["/usr/bin/env", "bash"]'
    assert told["estimated_memory_mb"] is None


@pytest.mark.parametrize(
    ("extras", "needed_by"),
    [
        ({"requirements": ["base", "wandb"]}, "This run"),
        ({"track_wandb": True}, "Tracking with Weights & Biases"),
    ],
)
def test_missing_extras_are_told_with_the_command_that_helps(
    extras: dict[str, Any], needed_by: str, var: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide("wandb", tmp_path, monkeypatch)
    arguments = ["--algo", "ppo", "--env-id", "CartPole-v1", "--total-timesteps", "9"]
    arguments += ["--extras", json.dumps(extras)]
    done = subprocess.run(
        [sys.executable, "-m", "cleanrl_worker.cli", *arguments, "--dry-run", "--emit-summary"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["missing_extras"] == [
        {"name": "wandb", "needed_by": needed_by, "install": "mosaic extras install wandb"}
    ]
    assert "run `mosaic extras install wandb`" in done.stderr


def test_whether_pictures_will_come_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert summary(tmp_path)["pictures"] == {"come": True, "reason": "", "install": None}
    off = summary(tmp_path, extras={"fastlane_video_mode": "off"})["pictures"]
    assert (off["come"], off["reason"]) == (False, "they are off for this run")
    other = CATALOG.describe(BASE, sys.executable, tmp_path, ())["pictures"]
    assert other["come"] is None and sys.executable in other["reason"]
    (tmp_path / "blind.py").write_text(BLIND)
    blind = summary(tmp_path, env_id="blind:Blind-v0")["pictures"]
    assert (blind["come"], blind["install"]) == (False, None) and "rgb_array" in blind["reason"]
    # No interpreter without pygame can be asked here: its folder is out of sight instead.
    monkeypatch.setattr("cleanrl_worker.supervisor.offers.find_spec", lambda name: None)
    lacking = summary(tmp_path)["pictures"]
    assert lacking["come"] is False and lacking["install"] == "mosaic extras install classic"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--algo", "ppo", "--env-id", "CartPole-v1", "--total-timesteps", "9"],
        ["--algo", "dqn", "--env-id", "MiniGrid-DoorKey-5x5-v0", "--total-timesteps", "9"],
        ["--algo", "doorkey_curriculum.sh"],
        ["--extras", '{"mode": "policy_eval", "policy_path": "ppo.cleanrl_model"}'],
        ["--interactive", "--extras", '{"policy_path": "ppo.cleanrl_model"}'],
    ],
)
def test_no_mode_needs_torch_for_its_dry_run(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_empty_model(Path("ppo.cleanrl_model"))
    PolicyCard("ppo", {"env_id": "CartPole-v1"}, 900, None).write(Path("ppo.cleanrl_model"))
    code = (
        "import sys; from cleanrl_worker.cli import main; "
        f"assert main({[*arguments, '--dry-run', '--emit-summary']!r}) == 0; "
        "print([m for m in ('torch', 'gymnasium', 'numpy', 'grpc') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "[]"
    assert json.loads(done.stdout)["command"]


def test_train_shows_the_same_as_a_table_and_as_json(run_mosaic: RunMosaic, var: Path) -> None:
    words = ("train", "ppo", "CartPole-v1", "--num-envs", "8", "--seeds", "1-3", "--dry-run")
    table = run_mosaic(*words).stdout
    assert "cleanrl_worker.algorithms.ppo" in table
    assert "discrete, 2 choices" in table
    assert "yes, while somebody looks" in table
    assert "3 runs, with the seeds 1, 2, 3" in table
    told = json.loads(run_mosaic(*words, "--emit-summary").stdout)
    found = sources(told)
    assert found["num_envs"] == (8, "cli")
    assert found["seed"] == (1, "cli")
    assert found["total_timesteps"] == (500_000, "default")
    script = run_mosaic("train", "quick_test.sh", "--dry-run").stdout
    assert "Two short trainings" in script
    refused = run_mosaic("train", "ppo", "CartPole-v1", "--emit-summary", check=False)
    assert (refused.returncode, "add --dry-run" in refused.stderr) == (2, True)
    assert list(var.iterdir()) == []
