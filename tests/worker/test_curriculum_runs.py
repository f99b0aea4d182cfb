"""A run with a curriculum, as its supervisor tells of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from cleanrl_worker.curriculum.wrapper import BABYAI_DOORKEY_CURRICULUM, BabyAITaskWrapper, make_task
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VarPaths

STAGES = [
    {"env_id": "CartPole-v0", "condition": "episodes>=40"},
    {"env_id": "CartPole-v1", "condition": "steps>=2000"},
    {"env_id": "CartPole-v0"},
]


def run_worker(total: int, **extras: Any) -> list[dict[str, Any]]:
    """The events of a run of its own."""
    command = [sys.executable, "-m", "cleanrl_worker.cli", "--total-timesteps", str(total)]
    command += ["--algo", "ppo", "--seed", "3", "--extras", json.dumps(extras)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_heartbeats_and_manifest_tell_the_stage_and_a_resumed_run_goes_on_in_it(var: Path) -> None:
    *_, last = run_worker(2000, curriculum_schedule=STAGES, algo_params={"checkpoint_every": 1000})
    assert last["event"] == "run_completed"
    manifest, headline = last["payload"]["manifest"], last["payload"]["headline"]
    assert manifest["env_id"] == "CartPole-v0"
    assert headline["phase"] in ("stage 2 of 3: CartPole-v1", "evaluating")
    told = headline["curriculum"]
    assert (told["stage"], told["stages"], told["env_id"]) == (2, 3, "CartPole-v1")
    assert 0.0 < told["progress"] < 1.0
    first, second, third = manifest["curriculum"]
    assert first["began_at"] == 0 and first["episodes"] >= 40
    assert first["condition"] == "episodes>=40"
    assert second["began_at"] > 0 and second["mean_return"] > 0
    assert (third["began_at"], third["episodes"], third["mean_return"]) == (None, 0, None)

    origin = VarPaths(var).run(manifest["run_id"]).run_dir
    *_, last = run_worker(5000, mode="resume_training", checkpoint_path=str(origin))
    resumed = last["payload"]["manifest"]["curriculum"]
    # What was before its checkpoint is in the run that it goes on from.
    assert [stage["began_at"] is None for stage in resumed] == [True, False, False]
    assert resumed[1]["began_at"] == 2000
    assert last["payload"]["headline"]["curriculum"]["stage"] == 3


def test_a_task_wrapper_becomes_another_environment_at_the_next_reset() -> None:
    tasks = [str(stage["env_id"]) for stage in BABYAI_DOORKEY_CURRICULUM]
    env = BabyAITaskWrapper(make_task(tasks[0]))
    try:
        env.reset(seed=1)
        assert (env.task, env.unwrapped.grid.width) == (tasks[0], 5)  # type: ignore[attr-defined]
        assert env.mission == "use the key to open the door and then get to the goal"
        env.change_task(tasks[1])
        env.step(0)
        assert (env.task, env.unwrapped.grid.width) == (tasks[0], 5)  # type: ignore[attr-defined]
        env.reset(seed=1)
        assert (env.task, env.unwrapped.grid.width) == (tasks[1], 6)  # type: ignore[attr-defined]
        env.reset(new_task=tasks[0])
        assert (env.task, env.unwrapped.grid.width) == (tasks[0], 5)  # type: ignore[attr-defined]
        with pytest.raises(UserError, match="CartPole-v1 has other spaces"):
            env.reset(new_task="CartPole-v1")
    finally:
        env.close()


def test_a_wrapped_environment_without_words_has_no_mission() -> None:
    env = BabyAITaskWrapper(gymnasium.make("CartPole-v1"))
    assert (env.task, env.mission) == ("CartPole-v1", "")
    env.close()
