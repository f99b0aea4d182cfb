"""What presenters make of a form: orders, checks, commands, pages. No Qt is needed for any of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from gym_gui.models.command_line import command_of
from gym_gui.ui.presenters.cleanrl_forms import CleanRLForms, TrainForm
from gym_gui.ui.presenters.form_page import check_order, read_page
from gym_gui.ui.workers import presenter_for
from mosaic.contract.capabilities import find_worker
from mosaic.contract.errors import UserError
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import lift_secrets


@pytest.fixture
def forms(tmp_path: Path) -> CleanRLForms:
    made = presenter_for(find_worker("cleanrl"), tmp_path)
    assert isinstance(made, CleanRLForms)
    return made


def train(forms: CleanRLForms, prefill: dict[str, Any]) -> TrainForm:
    made = forms.form("train", prefill)
    assert isinstance(made, TrainForm)
    return made


@pytest.fixture
def form(forms: CleanRLForms) -> TrainForm:
    return train(forms, {})


def test_a_form_begins_with_what_can_be_trained_at_once(form: TrainForm) -> None:
    assert form.problems() == [] and form.missing() == []
    assert (form.algo, form.env_id(), form.primary()) == ("ppo", "CartPole-v1", "Train")
    assert form.run.text("total_timesteps") == "500,000"


def test_one_run_for_each_seed(form: TrainForm) -> None:
    form.run.set("seeds", "1-3")
    form.run.set("total_timesteps", "2k")
    form.params.set("learning_rate", "1e-3")
    assert form.primary() == "Train 3 runs"
    configs = form.order().configs()
    workers = [config["metadata"]["worker"]["config"] for config in configs]
    assert [worker["seed"] for worker in workers] == [1, 2, 3]
    assert all(worker["total_timesteps"] == 2000 for worker in workers)
    assert workers[0]["extras"]["algo_params"] == {"learning_rate": 0.001}
    for config in configs:
        validate_train_run_config(config)


def test_everything_beside_the_parameters_goes_into_the_config(form: TrainForm) -> None:
    values = {
        "live_mode": "single",
        "live_slot": "1",
        "tensorboard": "off",
        "cpus": "2",
        "memory_mb": "2,000",
        "gpu": "on",
        "gpu_mandatory": "on",
        "max_minutes": "30",
        "max_restarts": "1",
        "priority": "-5",
        "tags": "first, second",
        "notes": "to see\nwhether",
        "run_name": "mine",
        "env_kwargs": '{"sutton_barto_reward": true}',
    }
    for name, text in values.items():
        form.run.set(name, text)
    form.params.set("save_model", "off")
    (config,) = form.order().configs()
    accepted = validate_train_run_config(config)
    extras = config["metadata"]["worker"]["config"]["extras"]
    assert (accepted.run_name, accepted.tags) == ("mine", ["first", "second"])
    assert (accepted.resources.cpus, accepted.resources.memory_mb) == (2, 2000)
    assert (accepted.resources.gpus.requested, accepted.resources.gpus.mandatory) == (1, True)
    assert (accepted.schedule.max_wallclock_minutes, accepted.schedule.priority) == (30, -5)
    assert accepted.schedule.max_restarts == 1 and not accepted.artifacts.tensorboard.enabled
    assert extras["notes"] == "to see\nwhether" and extras["cuda"] is True
    assert (extras["fastlane_video_mode"], extras["fastlane_slot"]) == ("single", 1)
    assert extras["env_kwargs"] == {"sutton_barto_reward": True}
    assert extras["algo_params"] == {"save_model": False}


def test_each_algorithm_keeps_its_own_changes_and_budget(form: TrainForm) -> None:
    form.params.set("learning_rate", "0.001")
    form.choose("sac_continuous_action")
    assert form.env_id() != "CartPole-v1", "it cannot train there"
    assert form.problems() == [] and form.params.changed() == []
    assert form.run.text("total_timesteps") == "1,000,000"
    form.choose("ppo")
    assert form.params.changed() == ["learning_rate"] and form.run.text("total_timesteps") == "500,000"
    form.run.set("total_timesteps", "7,000")
    form.choose("dqn")
    assert form.run.text("total_timesteps") == "7,000", "what was typed stays"


def test_what_is_wrong_is_said_before_anybody_is_asked(form: TrainForm) -> None:
    form.run.set("env_id", "Pendulum-v1")
    assert "ppo takes" in form.problems()[0]
    form.run.set("env_id", "")
    assert "No environment" in form.problems()[0]
    form.run.set("env_id", "CartPole-v1")
    form.run.set("seeds", "x")
    assert "Seeds are 'x'" in form.problems()[0] and form.primary() == "Train"
    form.run.set("seeds", "1")
    form.params.set("gamma", "2")
    with pytest.raises(UserError, match="gamma is 2"):
        form.order()


def test_missing_sets_are_known_before_the_check(form: TrainForm) -> None:
    form.take_installed({"mujoco": False, "video": False, "wandb": False, "minigrid": False})
    form.choose("ppo_continuous_action")
    form.run.set("env_id", "Ant-v5")
    form.params.put("capture_video", True)
    form.run.put("wandb", True)
    assert [one.name for one in form.missing()] == ["mujoco", "video", "wandb"]
    report = check_order(form.order(), form.source.catalog, form.missing())
    assert not report.ok and "mujoco" in report.headline and report.configs == ()
    form.run.set("python", "python3")
    assert form.missing() == [], "another interpreter has packages of its own"
    form.take_installed({"mujoco": True})
    assert form.environments.find("Ant-v5").missing == ""  # type: ignore[union-attr]


def test_a_curriculum_leads_to_its_last_stage(form: TrainForm) -> None:
    form.stages.choose("BABYAI_DOORKEY_CURRICULUM")
    assert form.env_id() == "MiniGrid-DoorKey-16x16-v0" and form.problems() == []
    (config,) = form.order().configs()
    worker = config["metadata"]["worker"]["config"]
    assert worker["env_id"] == "MiniGrid-DoorKey-16x16-v0"
    assert worker["extras"]["curriculum_schedule"][0]["env_id"] == ("MiniGrid-DoorKey-5x5-v0")
    report = check_order(form.order(), form.source.catalog)
    assert report.ok and ("stage 1", "MiniGrid-DoorKey-5x5-v0 until steps>=100000") in report.facts
    form.stages.choose("BABYAI_GOTO_CURRICULUM")
    report = check_order(form.order(), form.source.catalog)
    assert not report.ok and "give it more than 600,000 steps" in report.sentence
    form.choose("sac_continuous_action")
    assert form.problems(), "its actions are others"


def test_the_check_tells_what_would_run(form: TrainForm) -> None:
    form.params.set("num_envs", "8")
    form.run.set("seeds", "1, 2")
    report = check_order(form.order(), form.source.catalog, speed=20_000.0)
    assert report.ok and len(report.configs) == 2
    assert report.headline.startswith("2 runs · about 25 s each") and "nothing missing" in report.headline
    facts = dict(report.facts)
    assert facts["runs"] == "cleanrl_worker.algorithms.ppo" and facts["sees"] == "box of 4"
    assert ("num_envs", "8") in report.changes
    assert "num_envs" in report.as_text()


def test_the_check_tells_whether_pictures_will_come(form: TrainForm, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dict(check_order(form.order(), form.source.catalog).facts)["pictures"].startswith("yes")
    monkeypatch.setattr("cleanrl_worker.supervisor.offers.find_spec", lambda name: None)
    report = check_order(form.order(), form.source.catalog)
    assert report.ok and report.headline.endswith("no pictures")
    assert dict(report.facts)["pictures"].endswith("run mosaic extras install classic")


def test_the_check_finds_what_only_the_worker_can_know(form: TrainForm) -> None:
    form.run.set("env_id", "no_such_module:Thing-v0")
    report = check_order(form.order(), form.source.catalog)
    assert not report.ok and "no_such_module" in report.sentence
    form.run.set("env_id", "CartPole-v1")
    form.stages.load([{"env_id": "CartPole-v1", "condition": "stepz>=5"}, {"env_id": "CartPole-v1"}])
    report = check_order(form.order(), form.source.catalog)
    assert not report.ok and "stepz" in report.sentence


def test_a_key_goes_as_a_secret_and_is_shown_nowhere(form: TrainForm) -> None:
    form.source.installed["wandb"] = True
    form.run.put("wandb", True)
    form.run.set("wandb_project_name", "walkers")
    form.run.set("wandb_api_key", "very-secret-0123")
    form.run.set("wandb_http_proxy", "http://proxy:1")
    order = form.order()
    assert order.asked["extras"]["wandb_api_key"] == "very-secret-0123"
    assert "wandb_http_proxy" not in order.asked["extras"], "only when it is asked for"
    form.run.put("wandb_use_vpn_proxy", True)
    assert form.order().asked["extras"]["wandb_http_proxy"] == "http://proxy:1"
    config = order.settings.finish(
        {"run_name": "a", "tags": [], "metadata": {"worker": {"type": "cleanrl", "config": {}}}}
    )
    assert config["artifacts"]["wandb"] == {"enabled": True}


def test_a_command_asks_for_the_same_runs(form: TrainForm) -> None:
    form.run.set("seeds", "1-3")
    form.run.set("total_timesteps", "2000")
    form.params.set("learning_rate", "0.001")
    form.run.set("tags", "a b")
    text, note = command_of(form.order().configs())
    words = shlex.split(text)
    assert words[:4] == ["mosaic", "train", "ppo", "CartPole-v1"]
    assert words[words.index("--seeds") + 1] == "1-3" and "--seed" not in words
    assert "learning_rate=0.001" in words and words[words.index("--tag") + 1] == "a b"
    assert note == ""


def test_a_command_never_holds_a_key(form: TrainForm) -> None:
    configs = form.order().configs()
    configs[0]["metadata"]["worker"]["config"]["extras"]["wandb_api_key"] = "very-secret-0123"
    text, note = command_of(configs)
    assert "very-secret" not in text and "WANDB_API_KEY" in note


def test_what_a_form_marks_as_secret_is_shown_nowhere_and_asked_for_again(forms: CleanRLForms) -> None:
    form = train(forms, {})
    form.run.set("env_kwargs", '{"login": "very-secret-0123"}')
    form.run.set("secrets", "login")
    order = form.order()
    report = check_order(order, form.source.catalog)
    assert report.ok, report.sentence
    assert "very-secret" not in report.as_text()
    lifted = lift_secrets(report.configs[0], {})
    assert lifted.values == {"LOGIN": "very-secret-0123"}
    text, note = command_of(report.configs)
    assert "@env:LOGIN" in text and "very-secret" not in text and "LOGIN" in note
    again = train(forms, {})
    again.load({"config": lifted.config})
    assert again.run.text("secrets") == "login"
    report = check_order(again.order(), again.source.catalog)
    assert not report.ok and "set LOGIN, or give 'env_kwargs.login' again" in report.sentence


def test_a_form_is_told_of_what_looks_like_a_key(forms: CleanRLForms) -> None:
    form = train(forms, {})
    form.run.set("env_kwargs", '{"password": "very-secret-0123"}')
    report = check_order(form.order(), form.source.catalog)
    assert not report.ok and "'env_kwargs.password' looks like a key" in report.sentence
    assert "very-secret" not in report.sentence


def test_a_form_is_filled_from_an_earlier_run(forms: CleanRLForms, form: TrainForm) -> None:
    form.choose("dqn")
    form.run.set("env_id", "Acrobot-v1")
    form.run.set("seeds", "7")
    form.run.set("total_timesteps", "3,000")
    form.run.set("cpus", "2")
    form.run.set("notes", "again")
    form.run.set("env_kwargs", '{"a": "it\'s"}')
    form.params.set("batch_size", "64")
    order = form.order()
    config = {
        **order.settings.finish(
            {
                "run_name": "old",
                "tags": ["x"],
                "metadata": {
                    "worker": {
                        "type": "cleanrl",
                        "config": {
                            "algo": "dqn",
                            "env_id": "Acrobot-v1",
                            "total_timesteps": 3000,
                            "seed": 7,
                            "extras": {**order.asked["extras"], "algo_params": {"batch_size": 64}},
                        },
                    }
                },
            }
        )
    }
    filled = train(forms, {"config": config})
    assert (filled.algo, filled.env_id(), filled.seeds()) == ("dqn", "Acrobot-v1", (7,))
    assert filled.params.changes() == {"batch_size": 64}
    assert (filled.run.value("cpus"), filled.run.value("notes")) == (2, "again")
    assert json.loads(filled.run.text("env_kwargs")) == {"a": "it's"}
    assert filled.run.value("total_timesteps") == 3000


def test_parameters_stand_in_groups_and_say_what_is_set(form: TrainForm) -> None:
    groups = form.sheet.groups("ppo")
    names = [name for group in groups for name in group.names]
    assert groups[0].title == "" and "learning_rate" in groups[0].names
    assert sorted([*names, *form.sheet.kept("ppo")]) == sorted(form.params.fields)
    for algo in form.algorithms:
        assert form.sheet.groups(algo)[0].names


def test_the_page_of_an_algorithm_is_cut_to_what_helps(form: TrainForm) -> None:
    page = read_page(form.source.catalog, "ppo")
    assert "proximal policy optimisation" in page.text
    assert list(page.sections) == [
        "When to use it",
        "Parameters that matter",
        "Details that matter",
    ]
    points = [point for one in page.sections.values() for point in one]
    assert all(not set("|") & set(point) and "](" not in point for point in (page.text, *points))
    assert page.picture is not None and page.picture.is_file()
    assert any(line.startswith("CartPole-v1: 500.00 ± 0.00 after 500,000 steps") for line in page.results)
    for algo in form.algorithms:
        page = read_page(form.source.catalog, algo)
        assert page.text and all(page.sections.values())
        assert "```" not in page.text


def test_what_an_algorithm_needs_is_offered_with_an_environment_of_its_own(
    form: TrainForm,
) -> None:
    form.take_installed({"envpool": False, "atari": False, "jax": False})
    form.choose("ppo_atari_envpool")
    assert form.env_id() == "ALE/Breakout-v5"
    assert {one.name for one in form.missing()} == {"envpool", "atari"}
    form.choose("ppo_atari")
    form.params.put("env_backend", "envpool")
    assert "envpool" in {one.name for one in form.missing()}
    form.choose("dqn_jax")
    assert {one.name for one in form.missing()} == {"jax"}


def test_a_purpose_without_a_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no form to 'dance'"):
        presenter_for(find_worker("cleanrl"), tmp_path).form("dance", {})
