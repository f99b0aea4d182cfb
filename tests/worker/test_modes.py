"""The modes of a run: what each needs, what it is told, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.checkpoint_files import PolicyCard
from cleanrl_worker.config.modes import INTERACTIVE, MODE_SETTINGS, MODE_TARGETS, MODES, POLICY_EVAL
from cleanrl_worker.config.scripts import resolve_script
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig, parse_worker_config
from cleanrl_worker.supervisor.arguments import script_arguments, training_command
from cleanrl_worker.supervisor.inspection import inspect
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VarPaths
from support.policies import save_cartpole, write_empty_model

KNOWN = ("policy_path", "algo", "env_id", "env_kwargs", "seed", "trust")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A model file of which only the card is read."""
    path = tmp_path / "ppo.cleanrl_model"
    write_empty_model(path)
    PolicyCard("ppo", {"env_id": "CartPole-v1", "seed": 4, "total_timesteps": 900}, 900, None).write(path)
    return path


def asked(policy: Path, mode: str = POLICY_EVAL, **extras: Any) -> dict[str, Any]:
    return {"run_id": "r", "extras": {"mode": mode, "policy_path": str(policy), **extras}}


def test_there_are_four_modes() -> None:
    assert MODES == ("train", "resume_training", "policy_eval", "interactive")


@pytest.mark.parametrize("mode", MODE_TARGETS)
def test_a_mode_that_plays_has_a_module_and_knows_what_the_policy_knows(mode: str, policy: Path) -> None:
    config = parse_worker_config(asked(policy, mode))
    assert (config.algo, config.env_id, config.seed) == ("ppo", "CartPole-v1", 4)
    script = resolve_script(config)
    assert (script.target, script.kind, script.ours) == (MODE_TARGETS[mode], "mode", False)
    command = training_command(None, script, script_arguments(config, script))
    assert command[2:] == [
        "--preload",
        MODE_TARGETS[mode],
        f"--policy-path={policy}",
        "--algo=ppo",
        "--env-id=CartPole-v1",
        "--seed=4",
    ]


def test_settings_become_typed_flags(policy: Path) -> None:
    extras: dict[str, Any] = {
        "eval_episodes": "20",
        "eval_repeat": "true",
        "deterministic": False,
        "gamma": 0.9,
    }
    config = parse_worker_config(asked(policy, **extras, seed_override=8, notes="n"))
    assert config.extras["eval_episodes"] == 20
    arguments = script_arguments(config, resolve_script(config))
    assert arguments[-4:] == ["--eval-episodes=20", "--eval-repeat", "--no-deterministic", "--gamma=0.9"]
    assert "--seed=8" in arguments


@pytest.mark.parametrize("mode", MODE_TARGETS)
def test_the_module_of_a_mode_takes_exactly_the_settings(mode: str) -> None:
    if mode == POLICY_EVAL:
        from cleanrl_worker.evaluation.evaluate_policy import Args
    else:
        from cleanrl_worker.evaluation.interactive.serving import Args  # type: ignore[assignment]
    # A run plays a policy, and only what a person plays is recorded.
    own = {field.name for field in fields(Args)} - {*KNOWN, "record"}
    assert own == {setting.name for setting in MODE_SETTINGS[mode]}


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        ({"mode": "play"}, "'extras.mode' is 'play', but it must be one of train, resume_training"),
        ({"policy_path": None}, "'extras.policy_path' is missing: mode policy_eval needs a model"),
        ({"policy_path": "nowhere"}, "nowhere"),
        ({"eval_episodes": 0}, "'eval_episodes' is 0, but must be a whole number of at least 1."),
        ({"eval_episodes": "many"}, "'eval_episodes' is 'many', but must be a whole number"),
        ({"eval_batch_size": 2.5}, "'eval_batch_size' is 2.5, but must be a whole number"),
        ({"eval_repeat": "often"}, "'eval_repeat' is 'often', but must be true or false."),
        ({"eval_capture_video": 3}, "'eval_capture_video' is 3, but must be true or false."),
        ({"gamma": 1.5}, "'gamma' is 1.5, but must be a number from 0 to 1"),
        ({"gama": 0.9}, "Mode policy_eval has no setting 'gama'; did you mean 'gamma'?"),
        ({"learning_rate": 0.9}, "Mode policy_eval has no setting 'learning_rate'"),
        ({"mode": "interactive", "gamma": 0.5}, "Mode interactive has no setting 'gamma'"),
        ({"mode": "interactive", "policy_path": ""}, "mode interactive needs a model"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_sentence(
    policy: Path, extras: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MOSAIC_VAR", str(tmp_path / "var"))
    with pytest.raises(UserError) as refused:
        parse_worker_config(asked(policy, **{"mode": POLICY_EVAL, **extras}))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"algo": "dqn"}, "is a policy of ppo, not of dqn: leave algo out."),
        ({"algo": "pop"}, "There is no algorithm 'pop' whose models can be played; did you mean 'ppo'?"),
        ({"env_id": "Acrobot-v1"}, "was trained on CartPole-v1, and Acrobot-v1 has other observations"),
        ({"env_id": "CartPol-v1"}, "did you mean 'CartPole-v1'?"),
    ],
)
def test_an_override_that_does_not_fit_the_policy_is_refused(
    policy: Path, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as refused:
        inspect({**asked(policy), **values}, None, policy.parent)
    assert message in str(refused.value)


def test_training_keeps_settings_of_its_own_names(tmp_path: Path) -> None:
    config = CleanRLWorkerConfig("r", "ppo", "CartPole-v1", 10, extras={"gamma": 7, "frames": "x"})
    assert parse_worker_config(config.as_json()).flags() == {"gamma": 7, "frames": "x"}


def test_an_interactive_session_has_its_callers_pipes_and_leaves_a_run_behind(var: Path) -> None:
    model = save_cartpole(var.parent)
    command = [sys.executable, "-m", "cleanrl_worker.cli", "--interactive"]
    extras = json.dumps({"policy_path": str(model)})
    lines = '{"type": "reset", "seed": 1}\n{"type": "step"}\n{"type": "stop"}\n'
    done = subprocess.run(
        [*command, "--extras", extras], input=lines, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert types == ["init", "ready", "step", "stopped"]
    (folder,) = VarPaths(var).runs.iterdir()
    run = VarPaths(var).run(folder.name)
    events = [json.loads(line)["event"] for line in run.events.read_text().splitlines()]
    assert (events[0], events[-1]) == ("run_started", "run_completed")
    manifest = json.loads(run.manifest.read_text())
    assert (manifest["mode"], manifest["status"]) == (INTERACTIVE, "completed")


def test_an_interactive_session_is_refused_without_a_pipe(policy: Path, var: Path) -> None:
    command = [sys.executable, "-m", "cleanrl_worker.cli", "--interactive", "--grpc"]
    extras = json.dumps({"policy_path": str(policy)})
    done = subprocess.run([*command, "--extras", extras], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "use `mosaic play`" in done.stderr) == (2, True)
    assert not os.listdir(var)
