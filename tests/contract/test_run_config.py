"""The run config: what is accepted, and what a wrong payload is told."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic.contract.errors import UserError
from mosaic.contract.run_config import fill_in, validate_train_run_config

SEEDS = Path(__file__).parents[1] / "data" / "seeds"

SMALLEST: dict[str, Any] = {"run_name": "try", "metadata": {"worker": {"type": "cleanrl"}}}


def seed(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SEEDS / name).read_text())
    return loaded


def changed(path: str, value: Any) -> dict[str, Any]:
    """The smallest config with one value set at a dotted path."""
    config = copy.deepcopy(SMALLEST)
    *folders, last = path.split(".")
    place = config
    for folder in folders:
        place = place.setdefault(folder, {})
    place[last] = value
    return config


def refusal(payload: Any) -> str:
    with pytest.raises(UserError) as caught:
        validate_train_run_config(payload)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_published_example_loads() -> None:
    config = validate_train_run_config(seed("run-config-ppo-cartpole.json"))
    assert config.run_name == "cleanrl-ppo-cartpole"
    assert config.resources.cpus == 2
    assert (config.resources.gpus.requested, config.resources.gpus.mandatory) == (0, False)
    assert config.metadata.worker.module == "cleanrl_worker.cli"
    assert config.metadata.worker.config["total_timesteps"] == 50000


def test_the_curriculum_example_loads_as_extras_of_a_run() -> None:
    payload = seed("run-config-ppo-cartpole.json")
    extras = seed("extras-curriculum.json")
    payload["metadata"]["worker"]["config"]["extras"] = extras
    assert validate_train_run_config(payload).metadata.worker.config["extras"] == extras


def test_the_smallest_config_gets_defaults() -> None:
    config = validate_train_run_config(SMALLEST)
    assert config.resources.cpus == 1
    assert config.resources.memory_mb is None
    assert config.artifacts.tensorboard.enabled
    assert not config.artifacts.wandb.enabled
    assert config.schedule.max_wallclock_minutes is None
    assert config.schedule.max_restarts == 0


def test_an_accepted_config_is_accepted_again_unchanged() -> None:
    config = validate_train_run_config(seed("run-config-ppo-cartpole.json"))
    again = validate_train_run_config(json.loads(json.dumps(config.as_json())))
    assert again == config


@pytest.mark.parametrize("cpus", [3, {"requested": 3}])
def test_a_number_and_a_request_for_it_mean_the_same(cpus: Any) -> None:
    assert validate_train_run_config(changed("resources.cpus", cpus)).resources.cpus == 3
    assert validate_train_run_config(changed("resources.memory_mb", cpus)).resources.memory_mb == 3


@pytest.mark.parametrize(
    ("gpus", "requested", "mandatory"),
    [
        (0, 0, False),
        (2, 2, False),
        ({}, 0, False),
        ({"requested": 1}, 1, False),
        ({"requested": 1, "mandatory": 1}, 1, True),
        ({"requested": 1, "mandatory": True}, 1, True),
    ],
)
def test_gpus_have_a_short_and_a_long_form(gpus: Any, requested: int, mandatory: bool) -> None:
    found = validate_train_run_config(changed("resources.gpus", gpus)).resources.gpus
    assert (found.requested, found.mandatory) == (requested, mandatory)


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("run_nam", "run_name"),
        ("resource", "resources"),
        ("resources.cpu", "cpus"),
        ("resources.gpus.request", "requested"),
        ("artifacts.tensorbord", "tensorboard"),
        ("artifacts.tensorboard.enable", "enabled"),
        ("schedule.max_restart", "max_restarts"),
        ("metadata.workers", "worker"),
        ("metadata.worker.modul", "module"),
    ],
)
def test_an_unknown_key_is_told_with_its_path_and_the_nearest_name(path: str, nearest: str) -> None:
    message = refusal(changed(path, 1))
    assert f"'{path}' is not a known key" in message
    assert f"did you mean '{nearest}'" in message


def test_an_unknown_key_with_no_near_name_gets_the_allowed_ones() -> None:
    message = refusal(changed("artifacts.zzz", {}))
    assert "'artifacts.zzz' is not a known key" in message
    assert "tensorboard, wandb" in message


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("run_name", "", "at least 1 character"),
        ("run_name", 7, "valid string"),
        ("run_name", "n" * 201, "at most 200 characters"),
        ("resources", "all", "dictionary"),
        ("resources.cpus", -1, "greater than or equal to 1"),
        ("resources.cpus", 0, "greater than or equal to 1"),
        ("resources.cpus", "many", "valid integer"),
        ("resources.cpus", 1.5, "valid integer"),
        ("resources.cpus", {"requested": -2}, "greater than or equal to 1"),
        ("resources.cpus", {"wanted": 2}, "valid integer"),
        ("resources.memory_mb", 0, "greater than or equal to 1"),
        ("resources.gpus", -1, "greater than or equal to 0"),
        ("resources.gpus", "one", "dictionary"),
        ("resources.gpus.requested", -1, "greater than or equal to 0"),
        ("resources.gpus.mandatory", "perhaps", "valid boolean"),
        ("artifacts.tensorboard", True, "dictionary"),
        ("artifacts.wandb.enabled", 3, "valid boolean"),
        ("schedule.max_wallclock_minutes", 0, "greater than 0"),
        ("schedule.max_wallclock_minutes", "soon", "valid number"),
        ("schedule.max_restarts", -1, "greater than or equal to 0"),
        ("tags", "fast", "valid list"),
        ("tags", [1], "valid string"),
        ("metadata.worker.type", "", "at least 1 character"),
        ("metadata.worker.config", [], "valid dictionary"),
        ("metadata.worker", "cleanrl", "dictionary"),
    ],
)
def test_a_wrong_value_is_told_with_path_value_and_what_is_allowed(path: str, value: Any, told: str) -> None:
    message = refusal(changed(path, value))
    innermost = value
    while isinstance(innermost, dict | list) and innermost and path != "resources.cpus":
        innermost = innermost[0]
    assert f"'{path}" in message
    assert repr(innermost)[:70] in message or repr(innermost).strip("{}").split(": ")[-1] in message
    assert told in message
    assert "pydantic" not in message.lower()
    assert "TrainRunConfig" not in message


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_limit_that_is_no_number_is_refused(number: float) -> None:
    assert "schedule.max_wallclock_minutes" in refusal(changed("schedule.max_wallclock_minutes", number))


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_a_number_that_json_lacks_is_refused_at_any_depth(number: float) -> None:
    message = refusal(changed("metadata.worker.config", {"extras": {"algo_params": [1.0, number]}}))
    assert "metadata.worker.config" in message
    assert f"'extras.algo_params.1' is {number}" in message


@pytest.mark.parametrize("missing", ["run_name", "metadata"])
def test_a_missing_part_is_named(missing: str) -> None:
    payload = {key: value for key, value in SMALLEST.items() if key != missing}
    assert f"'{missing}' is missing" in refusal(payload)


def test_a_missing_worker_and_a_missing_type_are_named() -> None:
    assert "'metadata.worker' is missing" in refusal({"run_name": "try", "metadata": {}})
    assert "'metadata.worker.type' is missing" in refusal({"run_name": "t", "metadata": {"worker": {}}})


@pytest.mark.parametrize("payload", [None, 5, "text", [], [SMALLEST], True])
def test_what_is_no_object_is_refused(payload: Any) -> None:
    message = refusal(payload)
    assert "the whole payload" in message
    assert repr(payload)[:40] in message


def test_many_problems_are_counted_and_the_first_is_told() -> None:
    payload = {**changed("resources.cpus", 0), "tags": "fast", "run_nam": "x"}
    assert "(2 more problems)" in refusal(payload)
    assert "(1 more problem)" in refusal({**changed("resources.cpus", 0), "tags": "fast"})


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(refusal(changed("resources.cpus", "x" * 10_000))) < 400


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["run_name", "resources", "tags", "metadata", "x"]), _JSON))
def test_any_payload_is_accepted_or_refused_with_a_sentence(payload: dict[str, Any]) -> None:
    try:
        validate_train_run_config(payload)
    except UserError as error:
        assert str(error).startswith("The run config is not valid: ")


def test_placeholders_are_filled_in_at_every_depth_and_nowhere_else() -> None:
    config = validate_train_run_config(seed("run-config-ppo-cartpole.json"))
    filled = fill_in(config, {"RUN_ID": "01RUN", "VAR_TENSORBOARD_DIR": "/var/tb"})
    worker = filled.metadata.worker.config
    assert worker["run_id"] == "01RUN"
    assert worker["extras"]["tensorboard_dir"] == "/var/tb/01RUN"
    assert worker["extras"]["requirements"] == ["base"]
    assert config.metadata.worker.config["run_id"] == "${RUN_ID}"


def test_a_placeholder_nobody_knows_stays() -> None:
    config = validate_train_run_config(changed("metadata.worker.config", {"note": "${HOME} ${RUN_ID}"}))
    assert fill_in(config, {"RUN_ID": "01RUN"}).metadata.worker.config["note"] == "${HOME} 01RUN"
