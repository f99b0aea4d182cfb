"""A run as a command: what it starts is the same run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from gym_gui.models.command_line import config_page
from mosaic.cli.commands.train import train_configs
from mosaic.cli.starting import train_parser
from mosaic.client.command_line import NotTold, command_for
from mosaic.client.configs import train_config
from mosaic.contract.run_config import validate_train_run_config
from support.gui_records import record


def rebuilt(command: str) -> dict[str, Any]:
    """The config that the command would submit."""
    words = shlex.split(command)
    assert words[:2] == ["mosaic", "train"]
    (config,) = train_configs(train_parser(words[2:]).parse_args(words[2:]))
    return validate_train_run_config(config).as_json()


def accepted(config: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return validate_train_run_config({**config, **parts}).as_json()


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "parameters": {"params": {"learning_rate": 0.001, "num_envs": 8, "anneal_lr": False, "target_kl": None}},
    "strange texts": {
        "extras": {"notes": 'it\'s "quoted" $HOME `now` \n 100%; --force', "wandb_project_name": "12"},
        "tags": ["--odd", "two words"],
        "run_name": "-name's",
    },
    "an environment's settings": {"extras": {"env_kwargs": {"max_episode_steps": 50}}},
    "a grid": {
        "extras": {"fastlane_video_mode": "grid", "fastlane_grid_limit": 4, "tensorboard_dir": "tb/x"}
    },
    "resources": {"cpus": 2},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_the_command_submits_the_same_config(options: dict[str, Any]) -> None:
    config = accepted(train_config("ppo", "CartPole-v1", total_timesteps=5000, seed=7, **options))
    assert rebuilt(command_for(config)) == config


def test_limits_places_and_gpus_are_said() -> None:
    config = accepted(
        train_config("ppo", "CartPole-v1", total_timesteps=5000),
        resources={"cpus": 1, "memory_mb": 900, "gpus": {"requested": 2, "mandatory": True}},
        schedule={"max_wallclock_minutes": 12.5, "max_restarts": 3, "priority": -4},
    )
    assert rebuilt(command_for(config)) == config


def test_a_curriculum_is_said_with_its_stages() -> None:
    stages = [{"env_id": "MiniGrid-Empty-5x5-v0", "steps": 1000}, {"env_id": "MiniGrid-Empty-6x6-v0"}]
    config = accepted(train_config("ppo", total_timesteps=5000, extras={"curriculum_schedule": stages}))
    assert rebuilt(command_for(config)) == config


def test_what_the_daemon_filled_in_is_left_open_again() -> None:
    config = accepted(
        train_config("ppo", "CartPole-v1", total_timesteps=5000, extras={"tensorboard_dir": "/tb/01ABC"})
    )
    assert "'tensorboard_dir=/tb/${RUN_ID}'" in command_for(config, run_id="01ABC")


def test_a_script_of_the_users_own_is_started_from_its_folder(tmp_path: Path) -> None:
    config = record(asked={"env_id": "mine:Maze-v0"}).config
    assert command_for(config).startswith("cd /work && mosaic train ppo mine:Maze-v0 ")


def test_a_config_with_something_no_option_says_is_repeated_by_its_run() -> None:
    run = record("01ABC", asked={"worker_id": "w7"})
    assert command_for(run.config, run.run_id) == "mosaic rerun 01ABC"
    with pytest.raises(NotTold):
        command_for(run.config)


def test_an_evaluation_is_a_command_too() -> None:
    extras = {
        "mode": "policy_eval",
        "policy_path": "/p/ppo model.npz",
        "eval_episodes": 20,
        "deterministic": False,
    }
    run = record(asked={"extras": extras, "seed": 3})
    assert command_for(run.config) == (
        "mosaic eval '/p/ppo model.npz' --env CartPole-v1 --seed 3 --episodes 20 --stochastic "
        "--name ppo-cartpole-v1"
    )


def test_the_page_has_the_payload_even_when_its_file_is_gone(tmp_path: Path) -> None:
    page = config_page(record("01ABC"), tmp_path)
    assert not page.exists
    assert page.path == tmp_path / "trainer" / "configs" / "config-01ABC.json"
    assert '"env_id": "CartPole-v1"' in page.payload
    assert f"--var {tmp_path}" in page.command
