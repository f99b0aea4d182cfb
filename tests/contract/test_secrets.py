"""Secrets leave every config, wherever and however they are spelled in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic.contract.secrets import is_secret, lift_secrets

HIDDEN = "hunter2-f00d"


@pytest.mark.parametrize(
    "key",
    [
        "wandb_api_key",
        "WANDB_API_KEY",
        "wandb-api-key",
        "api_key",
        "password",
        "smtp_password",
        "client_secret",
        "hf_token",
        "aws_access_key",
        "ssh-private-key",
    ],
)
def test_names_of_secrets_are_known(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", ["learning_rate", "wandb_entity", "key", "tokens", "seed", "env_id", "notes"])
def test_plain_names_are_none(key: str) -> None:
    assert not is_secret(key)


@pytest.mark.parametrize(
    "config",
    [
        {"wandb_api_key": HIDDEN},
        {"extras": {"wandb_api_key": HIDDEN}},
        {"extras": {"algo_params": {"wandb-api-key": HIDDEN}}},
        {"stages": [{"name": "a"}, {"wandb_api_key": HIDDEN}]},
        {"stages": [[{"WANDB_API_KEY": HIDDEN}]]},
        {"stages": ({"wandb_api_key": HIDDEN},)},
    ],
)
def test_a_secret_at_any_place_becomes_an_environment_variable(config: dict[str, Any]) -> None:
    cleaned, secrets = lift_secrets(config)
    assert HIDDEN not in json.dumps(cleaned)
    assert secrets == {"WANDB_API_KEY": HIDDEN}


def test_what_is_no_secret_stays_as_it_is() -> None:
    config = {"algo": "ppo", "seed": 1, "extras": {"tags": ["a", {"b": None}], "track_wandb": True}}
    assert lift_secrets(config) == (config, {})


def test_the_config_that_was_given_is_not_changed() -> None:
    config = {"extras": {"wandb_api_key": HIDDEN}}
    lift_secrets(config)
    assert config == {"extras": {"wandb_api_key": HIDDEN}}


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_secret_goes_but_sets_nothing(empty: str | None) -> None:
    assert lift_secrets({"wandb_api_key": empty}) == ({}, {})


@pytest.mark.parametrize("value", [[HIDDEN], {"value": HIDDEN}, [{"deep": [HIDDEN]}], 1.5, 7, True])
def test_a_secret_that_is_no_text_goes_as_json(value: Any) -> None:
    cleaned, secrets = lift_secrets({"extras": {"client_secret": value}})
    assert cleaned == {"extras": {}}
    assert json.loads(secrets["CLIENT_SECRET"]) == value


_KEYS = st.sampled_from(["wandb_api_key", "HF-Token", "password", "notes", "extras", "seed"])
_CONFIGS = st.recursive(
    st.just(HIDDEN) | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_KEYS, _CONFIGS, max_size=4))
def test_no_secret_key_is_left_anywhere(config: dict[str, Any]) -> None:
    def keys(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [*value, *(key for item in value.values() for key in keys(item))]
        return [key for item in value for key in keys(item)] if isinstance(value, list) else []

    cleaned, secrets = lift_secrets(config)
    assert not [key for key in keys(cleaned) if is_secret(key)]
    assert all(name == name.upper() and "-" not in name for name in secrets)
