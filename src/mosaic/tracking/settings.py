"""What a run's `extras` say about trackers: which are asked for, and what each is told.

Only the standard library: the worker checks these before a run is queued, the window before it opens a page.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from mosaic.contract.errors import UserError, closest
from mosaic.contract.secrets import referred
from mosaic.tracking import TITLES

PREFIXES = tuple(f"{name}_" for name in TITLES)
"""An extra that begins so is for a tracker, and is never forwarded as a flag."""

_TEXT, _LIST, _SWITCH = "a text", "a list of texts", "true or false"
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "wandb": {
        **dict.fromkeys(("project_name", "project", "entity", "run_name", "group", "notes", "mode"), _TEXT),
        **dict.fromkeys(("email", "api_key", "base_url", "run_path", "http_proxy", "https_proxy"), _TEXT),
        "tags": _LIST,
        "use_vpn_proxy": _SWITCH,
    },
    "mlflow": {
        **dict.fromkeys(("tracking_uri", "experiment_name", "run_name", "notes"), _TEXT),
        "tags": _LIST,
    },
    "trackio": dict.fromkeys(("project", "run_name", "group", "space_id", "server_url", "notes"), _TEXT),
}
"""The extras of each tracker, without its prefix, and what each must be."""
PROJECT_SETTING = {"wandb": "project_name", "mlflow": "experiment_name", "trackio": "project"}
WANDB_MODES = ("online", "offline")
_USER = re.compile(r"(^|//)[^/\s]*@")


def wanted(extras: Mapping[str, Any]) -> list[str]:
    """The trackers that a run is asked to use."""
    return [name for name in TITLES if extras.get(f"track_{name}")]


def check_tracking(extras: Mapping[str, Any]) -> None:
    """Raise UserError for a setting of a tracker that does not exist, or has a value that it cannot have."""
    for key, value in extras.items():
        name = key.removeprefix("track_")
        if name in TITLES and key != name and not isinstance(value, bool | None):
            raise UserError(f"'extras.{key}' is {value!r:.80}, but it must be true or false.")
        prefix = next((one for one in PREFIXES if key.startswith(one)), None)
        if prefix is None or value is None:
            continue
        known = SETTINGS[prefix[:-1]]
        kind = known.get(key.removeprefix(prefix))
        if kind is None:
            names = [f"{prefix}{one}" for one in known]
            hint = closest(key, names) or f"; there are {', '.join(names)}."
            raise UserError(f"'extras.{key}' is not a setting of {TITLES[prefix[:-1]]}{hint}")
        if not _is(value, kind):
            raise UserError(f"'extras.{key}' is {value!r:.80}, but it must be {kind}.")
    mode = extras.get("wandb_mode")
    if mode not in (None, *WANDB_MODES):
        raise UserError(f"'extras.wandb_mode' is '{mode:.80}', but it must be {' or '.join(WANDB_MODES)}.")


def _is(value: object, kind: str) -> bool:
    if kind == _SWITCH:
        return isinstance(value, bool)
    # A single tag, or several with commas, as a command line says them.
    return isinstance(value, str) or (
        kind == _LIST and isinstance(value, list) and all(isinstance(one, str) for one in value)
    )


def settings_of(name: str, extras: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings of one tracker without its prefix; what stands for a variable has its value."""
    found = {}
    for key, value in extras.items():
        if key.startswith(f"{name}_") and value not in (None, ""):
            variable = referred(value)
            known = environment.get(variable, "") if variable else value
            if known not in (None, ""):
                found[key.removeprefix(f"{name}_")] = known
    if isinstance(found.get("tags"), str):
        found["tags"] = [one.strip() for one in found["tags"].split(",") if one.strip()]
    return found


def proxies(extras: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The proxies for Weights & Biases by `http` and `https`; none unless `wandb_use_vpn_proxy` asks.

    Those of the run, else `WANDB_VPN_HTTP_PROXY` and `WANDB_VPN_HTTPS_PROXY` of the environment, else of the
    file `.env` in `folder`. They may hold a password: show them only by `without_user`.
    """
    if not extras.get("wandb_use_vpn_proxy"):
        return {}
    own, usual = settings_of("wandb", extras, environment), None
    found = {}
    for scheme in ("http", "https"):
        variable = f"WANDB_VPN_{scheme.upper()}_PROXY"
        proxy = own.get(f"{scheme}_proxy") or environment.get(variable)
        if not proxy:
            usual = read_env_file(folder / ".env") if usual is None else usual
            proxy = usual.get(variable)
        if proxy:
            found[scheme] = str(proxy)
    return found


def read_env_file(path: Path) -> dict[str, str]:
    """The variables in a `.env` file; none when it cannot be read."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        value = value.strip()
        # What is quoted ends with its quote, whatever comes behind it.
        end = value.find(value[0], 1) if value[:1] in ("'", '"') else -1
        if equals and not name.startswith("#"):
            found[name.strip()] = value[1:end] if end > 0 else value.partition(" #")[0].rstrip()
    return found


def without_user(url: str) -> str:
    """An address that may be shown: without a user's name and password, and without a query.

    Also one that makes no sense, or has no scheme, may have a password in it.
    """
    shown = _USER.sub(r"\1", url, count=1)
    try:
        parts = urlsplit(shown)
    except ValueError:
        return shown
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")) if parts.netloc else shown


def program(name: str) -> str:
    """The program of a tracker as any shell finds it: with our interpreter, which PATH need not lead to."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


def usual_folder(var: Path, name: str) -> Path:
    """Where a tracker that keeps its data on this machine has those of all runs."""
    return Path(os.path.abspath(var)) / name
