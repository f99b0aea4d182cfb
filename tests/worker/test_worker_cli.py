"""`python -m cleanrl_worker.cli`, as the daemon and a person call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.contract.paths import VarPaths
from support.runs import SCRIPTS

BASE = ["--algo", "ppo", "--env-id", "CartPole-v1", "--total-timesteps", "2048"]


def run_worker(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cleanrl_worker.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def test_a_dry_run_tells_what_would_run_and_writes_nothing(var: Path) -> None:
    extras = json.dumps({"algo_params": {"num_envs": "8", "anneal_lr": False}})
    done = run_worker(*BASE, "--seed", "5", "--extras", extras, "--dry-run", "--emit-summary")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["module"] == "cleanrl_worker.algorithms.ppo"
    assert summary["args"] == [
        "--env-id=CartPole-v1",
        "--total-timesteps=2048",
        "--seed=5",
        "--num-envs=8",
        "--no-anneal-lr",
    ]
    assert list(var.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo", "pop"], "'pop' is not a known algorithm; did you mean 'ppo'?"),
        (["--env-id", "CartPol-v1"], "There is no environment 'CartPol-v1'; did you mean 'CartPole-v1'?"),
        (
            ["--env-id", "Pendulum-v1"],
            "actions, but Pendulum-v1 has box actions; use ppo_continuous_action.",
        ),
        (["--extras", '{"algo_params": {"learning_rat": 1}}'], "did you mean 'learning_rate'?"),
        (["--extras", '{"algo_params": {"num_envs": "many"}}'], "num_envs"),
        (
            ["--extras", '{"algo_params": {"seed": 3}}'],
            "'seed' is not a parameter of ppo but a property of the run",
        ),
        (["--extras", "[1]"], "--extras is [1], but it must be a JSON object."),
        (["--extras", "{"], "--extras is not JSON"),
        (["--total-timesteps", "0"], "'total_timesteps' is 0"),
        (["--config", "missing.json"], "The config missing.json cannot be read: No such file or directory."),
        (["--sed", "1"], "--sed"),
        (["--algo", "nowhere/script.py"], "nowhere/script.py does not exist"),
        (["--algo", "no.such.module"], "has no module 'no.such.module'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(var: Path, arguments: list[str], message: str) -> None:
    done = run_worker(*BASE, *arguments, "--dry-run")
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(var.iterdir()) == []


def test_without_a_daemon_the_events_go_to_stdout_and_the_exit_code_is_the_scripts(var: Path) -> None:
    script = str(SCRIPTS / "steps.py")
    arguments = ["--algo", script, "--env-id", "None-v0", "--total-timesteps", "2"]
    done = run_worker(*arguments, "--extras", '{"exit_code": 7, "notes": "by hand"}')
    assert done.returncode == 7
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["event"] == "run_started"
    assert events[-1]["event"] == "run_failed"
    assert events[-1]["payload"]["cause"] == "the script ended with exit code 7"
    run = VarPaths(var).run(events[0]["run_id"])
    manifest = json.loads(run.manifest.read_text())
    assert (manifest["status"], manifest["exit_code"], manifest["notes"]) == ("failed", 7, "by hand")


def test_the_manifest_has_the_documented_keys(var: Path) -> None:
    extras = {
        "tensorboard_dir": "tb",
        "wandb_run_path": "team/project/abc",
        "wandb_entity": "team",
        "wandb_project": "project",
        "optuna_db": "study.db",
        "checkpoints_dir": "saved",
        "notes": "n",
    }
    script = str(SCRIPTS / "steps.py")
    arguments = [
        "--algo",
        script,
        "--env-id",
        "None-v0",
        "--total-timesteps",
        "1",
        "--extras",
        json.dumps(extras),
    ]
    done = run_worker(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    run = VarPaths(var).run(json.loads(done.stdout.splitlines()[0])["run_id"])
    artifacts = json.loads(run.manifest.read_text())["artifacts"]
    assert artifacts["tensorboard"]["log_dir"] == str(run.run_dir / "tb")
    assert (run.run_dir / "tb").resolve() == run.event_files
    wandb = artifacts["wandb"]
    assert (wandb["run_path"], wandb["entity"], wandb["project"]) == ("team/project/abc", "team", "project")
    assert artifacts["optuna_db"] == str(run.run_dir / "study.db")
    assert artifacts["checkpoints_dir"] == str(run.run_dir / "saved")


def test_provenance_tells_versions_command_and_the_users_code(var: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x"]
    (folder / "code.py").write_text("a = 1\n")
    for command in (["init", "-q"], ["add", "code.py"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    (folder / "code.py").write_text("a = 2\n")
    script = str(SCRIPTS / "steps.py")
    arguments = ["--algo", script, "--env-id", "None-v0", "--total-timesteps", "1"]
    done = run_worker(*arguments, MOSAIC_USER_PATH=str(folder))
    run = VarPaths(var).run(json.loads(done.stdout.splitlines()[0])["run_id"])
    provenance = json.loads(run.provenance.read_text())
    assert provenance["versions"]["torch"].startswith("2.13.0")
    assert provenance["command"][-2:] == ["--env-id=None-v0", "--total-timesteps=1"]
    assert len(provenance["user_folder"]["git_commit"]) == 40
    assert "+a = 2" in provenance["user_folder"]["git_diff"]


def test_the_dry_run_imports_neither_torch_nor_gymnasium() -> None:
    code = (
        "import sys; from cleanrl_worker.cli import main; "
        f"assert main({[*BASE, '--dry-run', '--emit-summary']!r}) == 0; "
        "print([m for m in ('torch', 'gymnasium', 'numpy', 'grpc') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "[]"
