"""`resume_training`: a new run that goes on from a checkpoint, from another run, or from a model alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from cleanrl_worker.algorithms import c51, ppo_continuous_action, td3_continuous_action
from cleanrl_worker.config.checkpoint_files import FORMAT, list_checkpoints, read_card, read_origin
from cleanrl_worker.kit.state import decode, encode
from conftest import RunMosaic
from mosaic.client import Client, RunRecord, resume_config, train_config
from mosaic.contract.events import LifecycleReader
from mosaic.contract.paths import RunPaths
from support.runs import SCRIPTS, long_config

STEPS = 12_000
QUICK = {"checkpoint_every": 2_000, "eval_episodes": 0}


def model_of(folder: str | Path) -> bytes:
    return next(Path(folder).glob("runs/*/*.cleanrl_model")).read_bytes()


def start_event(run: RunRecord) -> dict[str, Any]:
    events = LifecycleReader(RunPaths(Path(run.run_dir)).events).poll()
    return dict(next(event for event in events if event.event == "run_started").payload)


def test_a_new_run_finishes_or_extends_an_earlier_one_and_needs_it_no_longer(
    client: Client, run_mosaic: RunMosaic
) -> None:
    config = train_config("ppo", "CartPole-v1", total_timesteps=STEPS, seed=3, params=QUICK)
    whole = client.wait(client.submit(config).run_id, timeout=120)
    expected = model_of(whole.run_dir)
    origin = list_checkpoints(RunPaths(Path(whole.run_dir)).checkpoints)[0]
    before = {path: path.stat().st_mtime_ns for path in Path(whole.run_dir).rglob("*")}

    resumed_config = resume_config(origin)
    assert resumed_config["metadata"]["worker"]["config"]["seed"] == 3
    resumed_config["schedule"] = {"max_restarts": 1}
    resumed = client.submit(resumed_config)
    for chunk in client.logs(resumed.run_id, stream="events", follow=True):
        if b"run_started" in chunk:
            break
    assert {path: path.stat().st_mtime_ns for path in Path(whole.run_dir).rglob("*")} == before
    client.remove(whole.run_id)
    training_pid = client.get(resumed.run_id).training_pid
    assert training_pid is not None
    os.kill(training_pid, 9)
    resumed = client.wait(resumed.run_id, timeout=120)
    assert [entry.status for entry in resumed.history].count("FAULT") == 1
    assert (resumed.outcome, model_of(resumed.run_dir)) == ("completed", expected)
    payload = start_event(resumed)
    assert payload["mode"] == "resume_training"
    assert payload["resumed_from"]["checkpoint"] == str(origin)

    refused = run_mosaic("train", "--resume", "last", check=False)
    assert refused.returncode == 2
    assert "has trained all of its 12,000 steps: to extend it" in refused.stderr
    paused = run_mosaic("resume", resumed.run_id, check=False)
    assert f"train --resume {resumed.run_id}`" in paused.stderr
    done = run_mosaic("train", "--resume", resumed.run_id[:20], "--extend", "2k", "--json")
    assert "to 14,000 steps instead of 12,000; the learning rate is recomputed" in done.stderr
    extended = client.get(json.loads(done.stdout)["run_id"])
    assert (extended.outcome, extended.headline["step"]) == ("completed", 14_000)
    stderr = RunPaths(Path(extended.run_dir)).stderr.read_text()
    assert "the learning rate is recomputed over the new budget" in stderr


ARGS = {
    "env_id": "CartPole-v1",
    "env_kwargs": "{}",
    "seed": 3,
    "total_timesteps": 1000,
    "num_envs": 4,
    "learning_rate": 2.5e-4,
    "anneal_lr": True,
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    content = {"format": FORMAT, "algo": "ppo", "step": 400, "folder": "x", "args": ARGS, "parts": {}}
    path = tmp_path / "step-000000000400.npz"
    path.write_bytes(encode(content))
    return path


def test_a_checkpoint_that_went_away_while_its_run_waited_is_named(client: Client, checkpoint: Path) -> None:
    first = client.submit(long_config(cpus=len(os.sched_getaffinity(0))))
    config = resume_config(checkpoint)
    config["schedule"] = {"max_restarts": 1}
    waiting = client.submit(config)
    checkpoint.unlink()
    client.cancel(first.run_id)
    ended = client.wait(waiting.run_id, timeout=60)
    assert ended.outcome == "failed" and ended.reason is not None
    assert str(checkpoint) in ended.reason and "ended unexpectedly" not in ended.reason
    assert [entry.status for entry in ended.history].count("FAULT") == 1, "trying again would not help"


def run_worker(*arguments: str, **extras: Any) -> subprocess.CompletedProcess[str]:
    text = json.dumps({"mode": "resume_training", **extras})
    command = [sys.executable, "-m", "cleanrl_worker.cli", *arguments, "--extras", text]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_checkpoint_alone_is_enough_and_the_dry_run_tells_what_becomes_of_it(
    var: Path, checkpoint: Path
) -> None:
    done = run_worker("--dry-run", "--emit-summary", checkpoint_path=str(checkpoint))
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["resumed_from"]["step"] == 400
    assert summary["resumed_from"]["explanation"].endswith("and finishes its 1,000 steps.")
    for flag in ("--env-id=CartPole-v1", "--seed=3", "--total-timesteps=1000", "--num-envs=4"):
        assert flag in summary["args"]
    longer = run_worker(
        "--total-timesteps=5000", "--dry-run", "--emit-summary", checkpoint_path=str(checkpoint)
    )
    explanation = json.loads(longer.stdout)["resumed_from"]["explanation"]
    assert "to 5,000 steps instead of 1,000; the learning rate is recomputed" in explanation
    assert list(var.iterdir()) == []


def test_the_dry_run_reads_a_checkpoint_without_numpy_and_torch(var: Path, checkpoint: Path) -> None:
    extras = json.dumps({"mode": "resume_training", "checkpoint_path": str(checkpoint)})
    code = (
        "import sys; from cleanrl_worker.cli import main; "
        f"assert main(['--extras', {extras!r}, '--dry-run', '--emit-summary']) == 0; "
        "print([m for m in ('torch', 'gymnasium', 'numpy', 'grpc') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "extras", "message"),
    [
        (["--algo", "dqn"], {}, "is of ppo, not of dqn."),
        (["--env-id", "Acrobot-v1"], {}, "env_id is 'Acrobot-v1', but 'CartPole-v1' in"),
        (["--seed", "4"], {}, "seed is 4, but 3 in"),
        ([], {"algo_params": {"learning_rate": 0.1}}, "learning_rate is 0.1, but 0.00025 in"),
        ([], {"num_envs": 8}, "num_envs is 8, but 4 in"),
        ([], {"env_kwargs": {"sutton_barto_reward": True}}, "env_kwargs is {'sutton_barto_reward': True}"),
        (["--total-timesteps", "300"], {}, "total_timesteps is 300, but"),
        (["--total-timesteps", "403"], {}, "has trained all of its 403 steps: to extend it"),
        (
            ["--algo", str(SCRIPTS / "steps.py")],
            {},
            "steps.py' cannot be resumed: only algorithms on the training kit",
        ),
        ([], {"checkpoint_path": "nowhere"}, "There is no checkpoint 'nowhere'"),
        ([], {"checkpoint_path": __file__}, "is not a checkpoint, or is a broken one"),
        ([], {"checkpoint_path": None}, "'extras.checkpoint_path' is missing"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_what_does_not_go_together_is_refused_before_anything_starts(
    var: Path, checkpoint: Path, arguments: list[str], extras: dict[str, Any], message: str, dry: bool
) -> None:
    arguments = [*arguments, *(["--dry-run"] if dry else [])]
    done = run_worker(*arguments, **{"checkpoint_path": str(checkpoint), **extras})
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(var.iterdir()) == []


def test_what_leaves_the_training_alone_may_differ(var: Path, checkpoint: Path) -> None:
    params = {"checkpoint_every": 100, "save_model": False, "eval_episodes": 1, "kernels": False}
    done = run_worker("--dry-run", "--emit-summary", checkpoint_path=str(checkpoint), algo_params=params)
    assert done.returncode == 0, done.stderr
    arguments = json.loads(done.stdout)["args"]
    for flag in ("--checkpoint-every=100", "--no-save-model", "--eval-episodes=1", "--no-kernels"):
        assert flag in arguments


def train(module: ModuleType, folder: Path, *flags: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert module.main(["--total-timesteps=600", "--eval-episodes=0", *flags]) == 0
    return next(folder.glob("runs/*/*.cleanrl_model"))


@pytest.mark.parametrize(
    ("module", "env_id", "flags", "still"),
    [
        (ppo_continuous_action, "Pendulum-v1", ["--num-steps=100"], ["--learning-rate=0"]),
        (c51, "CartPole-v1", ["--learning-starts=100"], ["--learning-rate=0"]),
        (td3_continuous_action, "Pendulum-v1", ["--learning-starts=500"], ["--learning-rate=0"]),
    ],
)
def test_a_model_alone_gives_its_weights_to_a_new_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: ModuleType,
    env_id: str,
    flags: list[str],
    still: list[str],
) -> None:
    flags = [f"--env-id={env_id}", *flags]
    model = train(module, tmp_path / "first", *flags, monkeypatch=monkeypatch)
    again = train(
        module, tmp_path / "second", *flags, *still, f"--resume-from={model}", monkeypatch=monkeypatch
    )
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1, said
    (line,) = said
    assert f"Starts with the weights of {model}; counters, optimizer, schedules" in line
    old, new = (torch.load(path, weights_only=True) for path in (model, again))
    if module is c51:
        old, new = old["model_weights"], new["model_weights"]
    for one, other in zip(flatten(old), flatten(new), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    cards = [read_card(path) for path in (model, again)]
    assert cards[0] is not None and cards[1] is not None
    if cards[0].normaliser is not None and cards[1].normaliser is not None:
        assert "normaliser statistics are taken from beside it" in line
        assert cards[1].normaliser["count"] > cards[0].normaliser["count"] + 500
    parts = decode(list_checkpoints(tmp_path / "second" / "checkpoints")[-1])["parts"]
    if module is td3_continuous_action:
        for name, weights in parts["critics"].items():
            np.testing.assert_array_equal(parts["target_critics"][name], weights)
    assert read_origin(list_checkpoints(tmp_path / "second" / "checkpoints")[-1]).step == 600


def flatten(weights: Any) -> list[torch.Tensor]:
    parts = weights if isinstance(weights, tuple) else (weights,)
    return [tensor for part in parts for tensor in part.values()]


def test_a_model_of_other_shapes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "c51.cleanrl_model"
    torch.save({"model_weights": {"network.0.weight": torch.zeros(2, 2)}, "args": {}}, model)
    monkeypatch.chdir(tmp_path)
    flags = ["--env-id=CartPole-v1", "--total-timesteps=200", f"--resume-from={model}"]
    assert c51.main(flags) == 2
    assert "do not fit this run: it lacks" in capsys.readouterr().err
