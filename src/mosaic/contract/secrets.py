"""Secrets are lifted out of every config before it is stored or shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_SECRET_ENDINGS = ("api_key", "password", "secret", "_token", "access_key", "private_key")


def is_secret(key: str) -> bool:
    """Whether a config key of this name holds a secret."""
    return key.lower().replace("-", "_").endswith(_SECRET_ENDINGS)


def lift_secrets(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The config without its secrets, and the secrets as environment variables for the worker."""
    found: dict[str, str] = {}
    return _lift(config, found), found


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
