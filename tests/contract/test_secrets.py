"""Secrets leave every config where they are declared; what only looks like one is asked about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic.contract.errors import UserError
from mosaic.contract.secrets import lift_secrets, looks_secret, references_in, set_secrets_apart

HIDDEN = "hunter2-f00d"
KEY = "sk-0123456789abcdef0123"


def run_config(extras: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    worker = {"type": "cleanrl", "config": {"algo": "a.py", "extras": extras or {}}}
    return {"run_name": "a", "metadata": {"worker": worker, "ui": {}}, **more}


def extras_of(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["metadata"]["worker"]["config"]["extras"]
    return found


@pytest.mark.parametrize(
    ("extras", "secrets"),
    [
        ({"wandb_api_key": HIDDEN}, []),
        ({"algo_params": {"WANDB-API-KEY": HIDDEN}}, []),
        ({"algo_params": {"wandb_api_key": HIDDEN}}, ["Wandb-Api-Key"]),
        (
            {"stages": [[{"wandb_api_key": HIDDEN}]]},
            ["metadata.worker.config.extras.stages.0.0.wandb_api_key"],
        ),
        ({"stages": ({"wandb_api_key": HIDDEN},)}, ["stages"]),
    ],
)
def test_a_declared_secret_at_any_place_becomes_a_variable(
    extras: dict[str, Any], secrets: list[str]
) -> None:
    lifted = lift_secrets(run_config(extras, secrets=secrets), {})
    assert HIDDEN not in json.dumps(lifted.config)
    assert "@env:WANDB_API_KEY" in json.dumps(lifted.config), "a parameter is never dropped"
    assert lifted.values == {"WANDB_API_KEY": HIDDEN}
    assert HIDDEN not in repr(lifted)


def test_words_of_a_tokenizer_are_no_secrets() -> None:
    params = {"pad_token": "<pad>", "eos_token": "<|endoftext|>", "bos_token_id": 50256, "token": "hello"}
    config = run_config({"algo_params": params})
    assert lift_secrets(config, {}).config == config


def test_a_path_declares_one_of_two_equal_names() -> None:
    config = run_config({"a": {"token": HIDDEN}, "b": {"token": "plain"}}, secrets=["a.token"])
    assert extras_of(lift_secrets(config, {}).config) == {
        "a": {"token": "@env:TOKEN"},
        "b": {"token": "plain"},
    }


def test_two_secrets_of_one_name_and_those_of_programs_get_names_of_their_own() -> None:
    config = run_config({"a": {"path": "first"}, "b": {"path": "second"}}, secrets=["path"])
    assert lift_secrets(config, {}).values == {"SECRET_PATH": "first", "SECRET_PATH_2": "second"}


def test_a_reference_takes_the_callers_variable() -> None:
    lifted = lift_secrets(run_config({"key": "@env:MINE"}, environment={"A": "@env:MINE"}), {"MINE": HIDDEN})
    assert extras_of(lifted.config) == {"key": "@env:MINE"}
    assert lifted.values == {"MINE": HIDDEN, "A": HIDDEN}
    assert lifted.config["environment"] == {"A": "@env:A"}


def test_a_declared_name_that_no_setting_has_is_a_variable_of_the_caller() -> None:
    lifted = lift_secrets(run_config(secrets=["OPENAI"]), {"OPENAI": HIDDEN, "OTHER": "x"})
    assert lifted.config["environment"] == {"OPENAI": "@env:OPENAI"} and lifted.values == {"OPENAI": HIDDEN}


def test_variables_that_are_always_secrets() -> None:
    proxy = f"http://me:{HIDDEN}@proxy:1"
    variables = {"HF_TOKEN": HIDDEN, "https_proxy": proxy, "http_proxy": "http://proxy:1", "MODE": "fast"}
    lifted = lift_secrets(run_config(environment=variables), {})
    assert lifted.values == {"HF_TOKEN": HIDDEN, "https_proxy": proxy}
    assert lifted.config["environment"] == {
        "HF_TOKEN": "@env:HF_TOKEN",
        "https_proxy": "@env:https_proxy",
        "http_proxy": "http://proxy:1",
        "MODE": "fast",
    }


def test_the_config_that_was_given_is_not_changed() -> None:
    config = run_config({"wandb_api_key": HIDDEN}, environment={"HF_TOKEN": HIDDEN})
    before = json.dumps(config)
    lift_secrets(config, {})
    set_secrets_apart(config)
    assert json.dumps(config) == before


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_secret_sets_nothing(empty: str | None) -> None:
    config = run_config({"wandb_api_key": empty})
    assert lift_secrets(config, {}).config == config and not lift_secrets(config, {}).values


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (run_config({"openai": KEY}), ("'openai' looks like a key", "--secret openai", "--plain openai")),
        (run_config({"algo_params": {"db": f"postgresql://me:{HIDDEN}@h/x"}}), ("'db' looks", "--secret db")),
        (
            run_config(environment={"MY_PASSWORD": HIDDEN}),
            ("'environment.MY_PASSWORD'", "--secret MY_PASSWORD"),
        ),
        (run_config(tags=["a", KEY]), ("'tags.1' looks like a key",)),
        (run_config({"key": HIDDEN, "notes": f"it is {HIDDEN}"}, secrets=["key"]), ("'notes' looks",)),
        (
            run_config({"openai_key": HIDDEN}, secrets=["openay_key"]),
            ("'openay_key'", "did you mean 'openai_key'"),
        ),
        (run_config(secrets=[KEY]), ("by the name of its setting",)),
        (run_config({"pin": 9876543}, secrets=["pin"]), ("'pin' is declared as a secret", "only text")),
        (run_config(environment={"HF_TOKEN": [HIDDEN]}), ("'environment.HF_TOKEN'", "only text")),
        (run_config({"key": "@env:MINE"}), ("'key' is a secret", "MINE is not set here", "again")),
    ],
)
def test_what_cannot_go_is_refused_in_a_sentence_without_its_value(
    config: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(UserError) as refused:
        lift_secrets(config, {})
    text = str(refused.value)
    assert all(word in text for word in words), text
    assert text.count(".") - text.count("'.") <= 3 and "\n" not in text
    assert not any(value in text for value in (HIDDEN, KEY, "9876543"))


def test_who_insists_may_store_what_looks_like_a_key() -> None:
    config = run_config({"openai": KEY}, plain=["openai"])
    assert lift_secrets(config, {}).config == config


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x", "sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU"),
        ("x", "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"),
        ("notes", "log in with ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"),
        ("x", "AKIAIOSFODNN7EXAMPLE"),
        ("x", "-----BEGIN RSA PRIVATE KEY-----\nMIIE"),
        ("url", "https://me:pw@host/x"),
        ("token", "8f14e45fceea167a5a36dedd4bea2543"),
        ("authToken", "anything at all"),
        ("aws_secret_access_key", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("password", "hunter2"),
    ],
)
def test_keys_are_seen(name: str, text: str) -> None:
    assert looks_secret(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("learning_rate", "2.5e-4"),
        ("commit", "8f14e45fceea167a5a36dedd4bea25438f14e45f"),
        ("git_revision", "8f14e45fceea167a5a36dedd4bea25438f14e45f"),
        ("checkpoint_path", "/data/runs/01K9ZW3V9Q8YABCDEFGHJKMNPQ/checkpoints/step-000000100352.npz"),
        ("run_name", "sk-learn-Baseline-2024-experiment"),
        ("exp_name", "task-8f14e45fceea167a5a36dedd4bea2543"),
        ("env_id", "MiniGrid-DoorKey-16x16-v0"),
        ("private_key", "~/.ssh/id_rsa"),
        ("url", "ssh://git@example.org/x.git"),
        ("mask_token", "<mask_0001_of_the_tokenizer>"),
        ("schedule_key", "linear-decay-from-3e-4-to-1e-5"),
        ("api_key", "${API_KEY}"),
        ("monkey", "8f14e45fceea167a5a36dedd4bea2543"),
    ],
)
def test_what_runs_are_full_of_is_not_taken_for_a_key(name: str, text: str) -> None:
    assert not looks_secret(name, text)


_KEYS = st.sampled_from(["wandb_api_key", "HF-Login", "login", "path", "notes", "extras", "seed"])
_CONFIGS = st.recursive(
    st.sampled_from([HIDDEN, "other-f00d", "", None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_KEYS, _CONFIGS, max_size=4))
def test_lifting_drops_nothing_and_can_be_repeated(extras: dict[str, Any]) -> None:
    declared = [
        name
        for name in ("hf_login", "login", "path", "notes", "seed")
        if name in json.dumps(extras).lower().replace("-", "_")
    ]
    config = run_config(extras, secrets=declared)
    try:
        lifted = lift_secrets(config, {})
    except UserError:
        # A value that is not declared is the same as one that is.
        return
    assert _shape(lifted.config) == _shape(config)
    assert {name for _, name in references_in(lifted.config)} == set(lifted.values)
    again = lift_secrets(lifted.config, lifted.values)
    assert (again.config, again.values) == (lifted.config, lifted.values)
    apart = set_secrets_apart(config)
    assert not any(value in json.dumps(apart["metadata"]) for value in lifted.values.values())
    assert lift_secrets(apart, {}).values == lifted.values


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return [_shape(item) for item in value] if isinstance(value, list | tuple) else type(value)
