"""Secrets are lifted out of every config before it is stored or shown; what a run takes from its caller."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_CALLERS = re.compile(r"(WANDB|HF)_\w+|CUDA_VISIBLE_DEVICES|MUJOCO_GL|(https?|no)_proxy|(HTTPS?|NO)_PROXY")
_CREDENTIALS = re.compile(r"://[^/@\s]+@")
"""A user's name, and often a password, in an address such as that of a proxy."""
_SECRET_ENDINGS = ("api_key", "password", "secret", "_token", "access_key", "private_key")


def is_secret(key: str) -> bool:
    """Whether a config key of this name holds a secret."""
    return key.lower().replace("-", "_").endswith(_SECRET_ENDINGS)


def is_callers(name: str) -> bool:
    """Whether a run takes this variable from whoever asks for it, never from whoever started the daemon."""
    return _CALLERS.fullmatch(name) is not None


def callers_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What a run takes from the environment of its caller."""
    return {name: value for name, value in environment.items() if is_callers(name)}


def lift_secrets(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The config without its secrets, and the secrets as environment variables for the worker."""
    found: dict[str, str] = {}
    variables = config.get("environment")
    if not isinstance(variables, Mapping):
        return _lift(config, found), found
    # These have their right names already.
    hidden = {name: str(value) for name, value in variables.items() if _is_hidden(str(name), str(value))}
    kept = {name: value for name, value in variables.items() if name not in hidden}
    return _lift({**config, "environment": {}}, found) | {"environment": kept}, found | hidden


def _is_hidden(name: str, value: str) -> bool:
    return is_secret(name) or _CREDENTIALS.search(value) is not None


def _lift(value: Any, found: dict[str, str]) -> Any:
    if isinstance(value, Mapping):
        kept = {}
        for key, item in value.items():
            if isinstance(key, str) and is_secret(key):
                if item not in ("", None):
                    found[key.upper().replace("-", "_")] = item if isinstance(item, str) else json.dumps(item)
            else:
                kept[key] = _lift(item, found)
        return kept
    if isinstance(value, list | tuple):
        return [_lift(item, found) for item in value]
    return value
