"""The worker's config and the command line made from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cleanrl_worker.config.scripts import Script
from cleanrl_worker.config.worker_config import CleanRLWorkerConfig, load_worker_config, parse_worker_config
from cleanrl_worker.supervisor.arguments import script_arguments, training_environment
from cleanrl_worker.supervisor.offers import CATALOG
from cleanrl_worker.supervisor.runtime import introduce
from mosaic.contract.errors import UserError

FLAT: dict[str, Any] = {"run_id": "R", "algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 100}
OURS = Script("cleanrl_worker.algorithms.ppo", "algorithm")
FOREIGN = Script("somebody.script", "foreign")
SEEDS = Path(__file__).parent.parent / "data" / "seeds"


def test_the_flat_form_and_the_nested_form_load_alike(tmp_path: Path) -> None:
    flat, nested = tmp_path / "flat.json", tmp_path / "nested.json"
    flat.write_text(json.dumps(FLAT))
    nested.write_text(json.dumps({"run_name": "x", "metadata": {"worker": {"config": FLAT}}}))
    assert load_worker_config(flat).as_json() == load_worker_config(nested).as_json()


def test_the_documented_run_config_loads() -> None:
    config = load_worker_config(SEEDS / "run-config-ppo-cartpole.json")
    assert (config.algo, config.env_id, config.seed, config.total_timesteps) == (
        "ppo",
        "CartPole-v1",
        42,
        50_000,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total_timesteps": 0}, "'total_timesteps' is 0, but it must be a whole number of at least 1"),
        ({"total_timesteps": None}, "'total_timesteps' is missing"),
        ({"extras": {"fastlane_video_mode": "sngle"}}, "'extras.fastlane_video_mode' is 'sngle'"),
        ({"extras": {"grid_limit": 0}}, "'extras.fastlane_grid_limit' is 0"),
        ({"total_timesteps": "many"}, "'total_timesteps' is 'many'"),
        ({"algo": ""}, "'algo' is '', but it must be a text"),
        ({"seed": -1}, "'seed' is -1"),
        ({"extras": [1]}, "'extras' is .*must be an object"),
        ({"extras": {"mode": "trian"}}, "'extras.mode' is 'trian', but it must be one of"),
        ({"env_idd": "x"}, "unknown key 'env_idd'; did you mean 'env_id'"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_worker_config({**FLAT, **change})


def test_a_nested_problem_is_named_by_its_whole_path() -> None:
    payload = {"metadata": {"worker": {"config": {**FLAT, "seed": "x"}}}}
    with pytest.raises(UserError, match=r"'metadata.worker.config.seed' is 'x'"):
        parse_worker_config(payload)


def test_overrides_win_and_extras_are_merged() -> None:
    config = parse_worker_config({**FLAT, "seed": 1, "extras": {"notes": "old", "cuda": False}})
    changed = config.with_overrides(seed=7, algo=None, extras={"notes": "new"})
    assert (changed.seed, changed.algo, changed.extras) == (7, "ppo", {"notes": "new", "cuda": False})


def _config(**extras: Any) -> CleanRLWorkerConfig:
    return parse_worker_config({**FLAT, "seed": 3, "extras": extras})


def test_algo_params_become_flags() -> None:
    params = {"num_envs": 8, "learning_rate": 3e-4, "anneal_lr": False, "norm_adv": True, "target_kl": None}
    base = ["--env-id=CartPole-v1", "--total-timesteps=100", "--seed=3"]
    ours = ["--num-envs=8", "--learning-rate=0.0003", "--no-anneal-lr", "--norm-adv"]
    assert script_arguments(_config(algo_params=params), OURS) == base + ours
    foreign = ["--num-envs=8", "--learning-rate=0.0003", "--anneal-lr=False", "--norm-adv"]
    assert script_arguments(_config(algo_params=params), FOREIGN) == base + foreign


def test_other_extras_become_flags_and_reserved_ones_do_not() -> None:
    extras = {"mode": "train", "notes": "n", "tensorboard_dir": "tb", "wandb_run_name": "w", "layers": [1, 2]}
    arguments = script_arguments(_config(**extras, my_flag=True), FOREIGN)
    assert arguments[3:] == ["--layers=1", "--layers=2", "--my-flag=true"]


def test_tracking_and_device_are_said_in_the_scripts_words() -> None:
    extras = {"track_wandb": True, "wandb_project": "p", "wandb_entity": "e", "use_cuda": False}
    flags = ["--track", "--wandb-project-name=p", "--wandb-entity=e", "--no-cuda"]
    assert script_arguments(_config(**extras), OURS)[3:] == flags


def test_a_seed_override_takes_the_seeds_place() -> None:
    assert "--seed=9" in script_arguments(_config(seed_override=9), OURS)


def test_a_model_to_resume_may_be_named_as_a_policy(tmp_path: Path) -> None:
    model = tmp_path / "m.cleanrl_model"
    model.write_bytes(b"weights")
    config = _config(mode="resume_training", policy_path=str(model))
    assert config.extras["checkpoint_path"] == str(model) and "policy_path" not in config.extras


def test_an_agents_name_is_told_to_the_daemon() -> None:
    config = parse_worker_config({**FLAT, "agent_id": "left"})
    assert introduce(config).details["agent_id"] == "left"
    assert parse_worker_config(config.as_json()).agent_id == "left"


def test_the_names_of_wandb_reach_the_training_process(tmp_path: Path) -> None:
    extras = {"track_wandb": True, "wandb_run_name": "mine", "wandb_email": "me@example.org"}
    told = training_environment(_config(**extras), tmp_path)
    assert (told["WANDB_NAME"], told["WANDB_EMAIL"]) == ("mine", "me@example.org")


def test_a_proxy_with_a_password_is_looked_up_where_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_HTTP_PROXY", "http://me:hunter2@proxy:1")
    monkeypatch.setenv("WANDB_VPN_HTTPS_PROXY", "http://other:2")
    extras = {"wandb_use_vpn_proxy": True, "wandb_http_proxy": "@env:WANDB_HTTP_PROXY"}
    told = training_environment(_config(**extras), tmp_path)
    assert told["HTTP_PROXY"] == "http://me:hunter2@proxy:1" and told["HTTPS_PROXY"] == "http://other:2"


def check(extras: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = CATALOG.check({**FLAT, "extras": extras}, None, None)["extras"]
    return found


def test_extras_that_are_parameters_of_ours_are_typed_as_such() -> None:
    params = {"exp_name": "mine", "cuda": False}
    found = check({"eval_episodes": 3, "anneal_lr": "false", "algo_params": params})
    typed = {"exp_name": "mine", "eval_episodes": 3, "anneal_lr": False}
    assert found == {"algo_params": typed, "cuda": False}
    tracked = check({"algo_params": {"track": "yes", "wandb_project_name": "p"}})
    assert tracked == {"track_wandb": True, "wandb_project_name": "p"}


@pytest.mark.parametrize(
    ("extras", "said"),
    [
        ({"foo_bar": 1}, "'extras.foo_bar' is neither a setting of the worker nor a parameter of ppo"),
        ({"checkpoints_dirr": "c"}, "did you mean 'checkpoints_dir'"),
        ({"eval_repeat": True}, "'extras.eval_repeat' is a setting of mode policy_eval"),
        ({"algo_params": {"resume_from": "x"}}, "a property of the run: give it as --resume"),
        ({"algo_params": {"exp_name": "@env:MINE"}}, r"'extras\.algo_params\.exp_name' cannot be a secret"),
        ({"checkpoints_dir": "@env:MINE"}, r"'extras\.checkpoints_dir' cannot be a secret for ppo"),
        ({"tensorboard_dir": "a" * 256}, r"'extras\.tensorboard_dir' is too long"),
        ({"algo_params": {"exp_name": "a" * 201}}, "'exp_name' is too long"),
    ],
)
def test_extras_that_would_be_dropped_or_fail_the_run_are_refused(extras: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        check(extras)
