"""Evaluations as runs: submitted, watched, paused, cancelled, recovered, and told of like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_worker.supervisor.offers import CATALOG
from conftest import RunMosaic
from mosaic.analytics.eval_summary import EvalSummary, read_eval_summary
from mosaic.client import Client, RunRecord, eval_config, list_policies, resume_config, train_config
from mosaic.contract.errors import NotFoundError, UserError
from mosaic.contract.events import LifecycleReader
from mosaic.contract.paths import RunPaths
from mosaic.fastlane.grid import LiveGrid
from support.foreign_models import FOREIGN
from support.runs import SCRIPTS, end, wait_for_status

QUICK = {"checkpoint_every": 1_000, "eval_episodes": 0}


@pytest.fixture
def trained(client: Client) -> RunRecord:
    """A short training, done."""
    config = train_config("ppo", "CartPole-v1", total_timesteps=2_048, seed=5, params=QUICK)
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert run.outcome == "completed", run.reason
    return run


def summary_of(run: RunRecord) -> EvalSummary:
    found = read_eval_summary(Path(run.run_dir))
    assert found is not None
    return found


def manifest_of(run: RunRecord) -> dict[str, Any]:
    return dict(json.loads(RunPaths(Path(run.run_dir)).manifest.read_text()))


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has_batches(run: RunRecord, count: int) -> bool:
    found = read_eval_summary(Path(run.run_dir))
    return found is not None and found.overall.batch >= count


def test_an_evaluation_is_a_run_with_events_manifest_and_curves(client: Client, trained: RunRecord) -> None:
    config = eval_config(trained.run_id, episodes=30, batch_size=10)
    asked = config["metadata"]["worker"]["config"]
    assert (asked["algo"], asked["env_id"], asked["seed"]) == ("ppo", "CartPole-v1", 5)
    run = client.wait(client.submit(config).run_id, timeout=120)
    assert run.outcome == "completed", run.reason
    summary = summary_of(run)
    assert [batch.episodes for batch in summary.batches] == [10, 10, 10]
    assert summary.policy["path"].endswith("ppo.cleanrl_model")

    events = LifecycleReader(RunPaths(Path(run.run_dir)).events).poll()
    assert (events[0].event, events[-1].event) == ("run_started", "run_completed")
    assert events[0].payload["mode"] == "policy_eval"
    headline = events[-1].payload["headline"]
    assert (headline["episodes"], headline["progress"], headline["phase"]) == (30, 1.0, "evaluating")
    assert headline["mean_return"] == summary.overall.mean
    assert headline["evaluation"]["batch"] == 3
    manifest = manifest_of(run)
    assert manifest["evaluation"]["overall"]["episodes"] == 30
    curves = str(Path(run.run_dir) / "tensorboard_eval")
    assert manifest["artifacts"]["tensorboard"]["log_dir"] == curves
    assert client.metrics(run.run_id).series("eval/mean_return").steps.tolist() == [10, 20, 30]
    assert not (Path(run.run_dir) / "runs").exists()

    again = eval_config(Path(summary.policy["path"]), episodes=30, batch_size=30)
    repeated = client.wait(client.submit(again).run_id, timeout=120)
    assert summary_of(repeated).overall.mean == summary.overall.mean


def test_it_repeats_until_cancelled_and_is_watched_paused_and_recovered(
    client: Client, trained: RunRecord
) -> None:
    config = eval_config(trained.run_id, batch_size=5, repeat=True)
    config["schedule"] = {"max_restarts": 1}
    run = client.submit(config)
    with LiveGrid(run.run_id) as grid:
        wait_until(lambda: grid.look() or bool(grid.shown))
    wait_until(lambda: has_batches(run, 3))
    client.pause(run.run_id)
    wait_for_status(client, run.run_id, "PAUSE")
    client.resume(run.run_id)
    training_pid = wait_for_status(client, run.run_id, "EXEC").training_pid
    assert training_pid is not None
    before = summary_of(run)
    os.kill(training_pid, 9)
    wait_until(lambda: has_batches(run, before.overall.batch + 3))
    assert [entry.status for entry in client.get(run.run_id).history].count("FAULT") == 1
    wait_until(lambda: client.get(run.run_id).headline.get("evaluation", {}).get("batch", 0) > 3)
    running = manifest_of(run)
    assert (running["status"], running["mode"]) == ("running", "policy_eval")
    end(client, run)
    ended = client.get(run.run_id)
    assert ended.outcome == "cancelled"
    summary = summary_of(run)
    assert summary.batches[: len(before.batches)] == before.batches
    assert [batch.batch for batch in summary.batches] == list(range(1, summary.overall.batch + 1))
    manifest = manifest_of(run)
    assert manifest["status"] == "cancelled"
    assert manifest["evaluation"]["overall"]["episodes"] == summary.overall.episodes


def test_the_command_plays_and_tells_how_good_it_is(run_mosaic: RunMosaic, trained: RunRecord) -> None:
    options = ("--episodes", "12", "--batch-size", "6", "--seed", "9", "--gamma", "0.5")
    page = run_mosaic("eval", "last", *options).stdout
    for part in ("✓ completed", "mean return", " ± ", "95 % interval", "IQM", "γ = 0.5", "12 in 2 batches"):
        assert part in page
    done = run_mosaic("eval", trained.run_id[:20], *options, "--stochastic", "--json")
    told = json.loads(done.stdout)
    assert (told["outcome"], told["evaluation"]["overall"]["episodes"]) == ("completed", 12)
    assert told["evaluation"]["policy"]["deterministic"] is False
    assert told["evaluation"]["policy"]["first_seed"] == 1_000_009

    listed = json.loads(run_mosaic("policies", "--json").stdout)
    assert {(one["run_id"], one["algo"], one["env_id"]) for one in listed} == {
        (trained.run_id, "ppo", "CartPole-v1")
    }, "an evaluation makes no policy of its own"
    assert {one["is_model"] for one in listed} == {True, False}
    table = run_mosaic("policies", "--algo", "ppo", env={"COLUMNS": "160"}).stdout
    assert "ppo.cleanrl_model" in table and "2,048" in table
    assert "No policy matches" in run_mosaic("policies", "--algo", "dqn").stdout


@pytest.fixture
def model(var: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A model file that lies anywhere; no daemon is needed."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    flags = ["--total-timesteps=256", "--num-steps=64", "--eval-episodes=0"]
    subprocess.run(
        [sys.executable, "-m", "cleanrl_worker.algorithms.ppo", *flags], cwd=folder, check=True, timeout=120
    )
    (path,) = folder.glob("runs/*/ppo.cleanrl_model")
    monkeypatch.chdir(tmp_path)
    yield path


def test_what_does_not_fit_is_refused_before_anything_starts(model: Path, run_mosaic: RunMosaic) -> None:
    cases = [
        (["--env", "Acrobot-v1"], "has other observations (box (6) of float32 instead of box (4)"),
        (["--env", "Pendulum-v1"], "ppo takes"),
        (["--env", "CartPole-v9"], "CartPole-v9"),
        (["--algo", "dqn"], "is a policy of ppo, not of dqn"),
        (["--gamma", "2"], "--gamma: '2' is not a number from 0 to 1"),
        (["--episodes", "0"], "--episodes: '0' is not a positive whole number"),
    ]
    for options, message in cases:
        done = run_mosaic("eval", str(model), *options, "--dry-run", check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert message in done.stderr
    done = run_mosaic("eval", str(model), "--dry-run", "--episodes", "7", "--emit-summary")
    summary = json.loads(done.stdout)
    assert summary["module"] == "cleanrl_worker.evaluation.evaluate_policy"
    assert f"--policy-path={model}" in summary["command"]
    assert "--eval-episodes=7" in summary["command"]
    gone = run_mosaic("eval", "nowhere", check=False)
    assert (gone.returncode, "There is no policy 'nowhere'" in gone.stderr) == (2, True)


def test_configs_are_built_and_refused_in_python_too(model: Path, var: Path) -> None:
    config = eval_config(model, deterministic=False, max_episode_steps=10, capture_video=True, tags=["t"])
    extras = config["metadata"]["worker"]["config"]["extras"]
    assert extras["mode"] == "policy_eval" and extras["policy_path"] == str(model)
    assert (extras["deterministic"], extras["eval_capture_video"]) == (False, True)
    assert config["run_name"] == "eval-ppo-cartpole-v1"
    with pytest.raises(UserError, match="has no setting 'gama'; did you mean 'gamma'"):
        eval_config(model, extras={"gama": 0.5})
    with pytest.raises(UserError, match="'gamma' is 3"):
        eval_config(model, gamma=3)
    assert list_policies() == []


def test_the_model_of_a_script_that_we_ran_is_evaluated_by_its_run_alone(
    client: Client, run_mosaic: RunMosaic
) -> None:
    config = train_config(str(SCRIPTS / "ppo.py"), "CartPole-v1", seed=3)
    run = client.wait(client.submit(config).run_id, timeout=60)
    assert run.outcome == "completed", run.reason
    listed = run_mosaic("policies").stdout
    assert f"eval {run.run_id}\n" in listed.replace("\n ", "")
    (facts,) = list_policies(client.paths.root)
    assert (facts.algo, facts.env_id, facts.seed) == ("ppo", "CartPole-v1", 3)
    told = run_mosaic("eval", run.run_id, "--episodes", "2").stdout
    assert "mean return" in told and "mind" not in told


def test_statistics_that_are_missing_are_told_with_the_scores(client: Client, run_mosaic: RunMosaic) -> None:
    params = {"exp_name": "ppo_continuous_action"}
    config = train_config(str(SCRIPTS / "ppo.py"), "Pendulum-v1", params=params)
    run = client.wait(client.submit(config).run_id, timeout=60)
    told = " ".join(run_mosaic("eval", run.run_id, "--episodes", "1").stdout.split())
    assert "mind The observation statistics of this policy are missing" in told


@pytest.mark.parametrize(
    ("kind", "algo", "said"),
    [
        ("dqn", "ppo", "is not a model of ppo for CartPole-v1: it lacks critic.0.weight"),
        (None, "dqn", "is not a PyTorch file of plain weights, so it cannot be loaded"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_a_run_starts(
    kind: str | None, algo: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "theirs.cleanrl_model"
    if kind is None:
        path.write_bytes(b"weights that were cut o")
    else:
        torch.save(FOREIGN[kind][1](), path)
    with pytest.raises(UserError, match=said):
        eval_config(path, algo=algo, env_id="CartPole-v1")
    with pytest.raises(UserError, match=said):
        resume_config(path, algo=algo, env_id="CartPole-v1", total_timesteps=100)


def test_a_model_that_is_not_there_is_refused_before_a_run_starts(tmp_path: Path) -> None:
    extras = {"mode": "policy_eval", "policy_path": str(tmp_path / "gone.cleanrl_model")}
    asked = {"run_id": "r", "algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 1, "extras": extras}
    for folder in (tmp_path, None):
        with pytest.raises(NotFoundError, match=r"There is no .*gone.cleanrl_model"):
            CATALOG.check(asked, None, folder)
