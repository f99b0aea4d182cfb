"""Options become the right run config, checked before anything starts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mosaic.cli import main
from support.runs import SCRIPTS


@pytest.fixture
def dry(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`mosaic train … --dry-run --json`: gives the run config that it prints."""
    monkeypatch.setenv("MOSAIC_VAR", str(tmp_path / "var"))

    def run(*argv: str) -> Any:
        code = main(["train", *argv, "--dry-run", "--json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        assert not (tmp_path / "var").exists()
        return json.loads(out)

    return run


def test_parameters_are_typed_however_they_are_given(dry: Any) -> None:
    config = dry(
        "ppo",
        "CartPole-v1",
        "--set",
        "num_envs=8",
        "--learning-rate",
        "1e-3",
        "--no-anneal-lr",
        "--clip-vloss",
    )
    asked = config["metadata"]["worker"]["config"]
    assert asked["extras"]["algo_params"] == {
        "num_envs": 8,
        "learning_rate": 0.001,
        "anneal_lr": False,
        "clip_vloss": True,
    }
    assert (asked["algo"], asked["env_id"], asked["seed"]) == ("ppo", "CartPole-v1", 1)
    assert asked["total_timesteps"] == 500_000


def test_everything_beside_the_parameters_reaches_the_config(
    dry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSAIC_CPUS", "2")
    monkeypatch.setenv("MOSAIC_GPUS", "0,1")
    config = dry(
        *(
            "ppo",
            "CartPole-v1",
            "--steps",
            "20k",
            "--seed",
            "9",
            "--tag",
            "a",
            "--tag",
            "b",
            "--name",
            "mine",
        ),
        *("--cpus", "2", "--max-minutes", "1.5", "--max-restarts", "3", "--extra", "notes=hello", "--cuda"),
        *("--priority", "-4", "--memory-mb", "512", "--gpus", "2", "--gpus-mandatory"),
    )
    asked = config["metadata"]["worker"]["config"]
    assert config["run_name"] == "mine"
    assert config["tags"] == ["a", "b"]
    assert config["schedule"] == {"max_wallclock_minutes": 1.5, "max_restarts": 3, "priority": -4}
    assert config["resources"] == {"cpus": 2, "memory_mb": 512, "gpus": {"requested": 2, "mandatory": True}}
    assert (asked["total_timesteps"], asked["seed"]) == (20_000, 9)
    assert asked["extras"] == {"notes": "hello", "cuda": True}


def test_to_train_on_a_gpu_reserves_one(dry: Any) -> None:
    assert "gpus" not in dry("ppo", "CartPole-v1")["resources"]
    assert dry("ppo", "CartPole-v1", "--cuda")["resources"]["gpus"] == {"requested": 1}


def test_a_value_that_looks_like_an_option_hides_no_algorithm(dry: Any) -> None:
    config = dry("--priority", "-5", "ppo", "CartPole-v1", "--gamma", "0.9")
    assert config["schedule"]["priority"] == -5
    assert config["metadata"]["worker"]["config"]["extras"]["algo_params"] == {"gamma": 0.9}


def test_each_seed_gets_a_config(dry: Any) -> None:
    configs = dry("ppo", "CartPole-v1", "--seeds", "1-2,7")
    assert [config["metadata"]["worker"]["config"]["seed"] for config in configs] == [1, 2, 7]


def test_the_words_of_options_are_no_algorithm(dry: Any) -> None:
    config = dry("--tag", "dqn", "--steps", "5k", "ppo", "CartPole-v1", "--gamma", "0.9")
    assert config["metadata"]["worker"]["config"]["extras"]["algo_params"] == {"gamma": 0.9}


def test_a_config_file_can_be_changed_by_options(dry: Any, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(dry("ppo", "CartPole-v1", "--gamma", "0.9", "--tag", "a")))
    config = dry("--config", str(file), "--set", "num_envs=2", "--seed", "5", "--tag", "b")
    asked = config["metadata"]["worker"]["config"]
    assert asked["extras"]["algo_params"] == {"gamma": 0.9, "num_envs": 2}
    assert asked["seed"] == 5
    assert config["tags"] == ["a", "b"]


def test_a_script_of_ones_own_gets_its_settings_as_they_are(dry: Any, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("print('hello')\n")
    config = dry(str(script), "CartPole-v1", "--set", "lr=1e-3", "--set", "fast=true")
    asked = config["metadata"]["worker"]["config"]
    assert asked["algo"] == str(script)
    assert asked["extras"]["algo_params"] == {"lr": "1e-3", "fast": True}


def test_underscores_and_env_id_are_other_ways_to_say_the_same(dry: Any) -> None:
    said = dry("ppo", "--env-id", "CartPole-v1", "--learning_rate=1e-3", "--total_timesteps", "20k")
    assert said == dry("ppo", "CartPole-v1", "--learning-rate", "1e-3", "--steps", "20k")


@pytest.mark.parametrize("script", ["tyro_script.py", "argparse_script.py"])
def test_flags_of_a_script_are_given_directly(dry: Any, script: str) -> None:
    off = "--no-anneal" if script.startswith("tyro") else "--no-norm"
    config = dry(str(SCRIPTS / script), "CartPole-v1", "--learning-rate", "0.5", off)
    asked = config["metadata"]["worker"]["config"]
    assert asked["extras"]["algo_params"] == {"learning_rate": 0.5, off.removeprefix("--no-"): False}


def test_flags_of_a_script_that_nobody_can_read_are_taken_as_they_are(dry: Any, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.touch()
    words = ("--depth", "3", "--shift", "-0.5", "--fast", "--no-log", "--name-of=it")
    asked = dry(str(script), "CartPole-v1", *words)["metadata"]["worker"]["config"]
    assert asked["extras"]["algo_params"] == {
        "depth": "3",
        "shift": "-0.5",
        "fast": True,
        "log": False,
        "name_of": "it",
    }


def test_tracking_in_the_artifacts_reaches_the_worker(dry: Any, tmp_path: Path) -> None:
    asked = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 9}
    # Another interpreter has packages of its own, so that W&B need not be here.
    worker = {"type": "cleanrl", "python": sys.executable, "config": asked}
    config = {"run_name": "x", "artifacts": {"wandb": {"enabled": True}}, "metadata": {"worker": worker}}
    (tmp_path / "run.json").write_text(json.dumps(config))
    found = dry("--config", str(tmp_path / "run.json"))["metadata"]["worker"]["config"]
    assert found["extras"] == {"track_wandb": True}


def test_variables_for_the_run_are_given_by_name_or_with_a_value(
    dry: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HERE", "it is")
    assert dry("ppo", "CartPole-v1", "--env", "HERE", "--env", "THERE=a=b")["environment"] == {
        "HERE": "it is",
        "THERE": "a=b",
    }
    for wrong, said in (("CartPole-v1", "is --env-id"), ("NOWHERE", "'NOWHERE' is not set here")):
        assert main(["train", "ppo", "CartPole-v1", "--env", wrong, "--dry-run"]) == 2
        assert said in capsys.readouterr().err
