"""What a run is told beside its algorithm's parameters: watching, tracking, resources, name and notes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_gui.models.form_state import Field, FormState
from mosaic.contract.errors import UserError
from mosaic.contract.outside import parse_json
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import referred

WATCH = (
    Field("live_mode", default="grid", label="Live view", choices=("grid", "single", "off")),
    Field("live_count", "int", 8, "at most this many environments", "Pictures", minimum=1, maximum=63),
    Field("live_slot", "int", 0, "the environment that is shown", "Picture of", minimum=0, maximum=63),
)
KEEP = (
    Field("tensorboard", "bool", True, label="TensorBoard", help="a link to the event files in one folder"),
    Field("wandb", "bool", False, label="Weights & Biases"),
    Field("mlflow", "bool", False, label="MLflow"),
    Field("trackio", "bool", False, label="trackio"),
)
HUB = (
    Field(
        "upload_model",
        "bool",
        False,
        "uploads the model when the run has completed",
        "To Hugging Face",
    ),
    Field.maybe("hf_entity", label="User or team", placeholder="the token's own"),
)
WANDB = (
    Field.maybe("wandb_project_name", label="Project", placeholder="cleanRL"),
    Field.maybe("wandb_entity", label="Team or user", placeholder="your own"),
    Field.maybe("wandb_run_name", label="Run name", placeholder="the name of the run"),
    Field.maybe("wandb_group", label="Group", placeholder="none"),
    Field.maybe("wandb_tags", label="Tags there", placeholder="only those of the run"),
    Field(
        "wandb_mode",
        default="online",
        help="offline: stored in the run's folder, for `wandb sync`",
        label="Sent",
        choices=("online", "offline"),
    ),
    Field.maybe(
        "wandb_api_key",
        "secret",
        help="a secret: in no config, log or database",
        label="API key",
        placeholder="that of this machine",
    ),
    Field("wandb_use_vpn_proxy", "bool", False, label="Through a proxy"),
    Field.maybe("wandb_http_proxy", label="HTTP proxy", placeholder="http://host:port"),
    Field.maybe(
        "wandb_https_proxy",
        help="empty: $WANDB_VPN_HTTP_PROXY and $WANDB_VPN_HTTPS_PROXY",
        label="HTTPS proxy",
        placeholder="http://host:port",
    ),
)
TRACKERS: Mapping[str, tuple[Field, ...]] = {
    "wandb": WANDB,
    "mlflow": (
        Field.maybe("mlflow_experiment_name", label="Experiment", placeholder="mosaic"),
        Field.maybe("mlflow_tracking_uri", label="Server", placeholder="a database on this machine"),
    ),
    "trackio": (Field.maybe("trackio_project", label="Project", placeholder="mosaic"),),
}
"""What each tracker asks for once it is on."""
ASKED = tuple(one for fields in TRACKERS.values() for one in fields)
PROXIES = ("wandb_http_proxy", "wandb_https_proxy")
RESOURCES = (
    Field("cpus", "int", 1, "reserved while the run is live", "CPUs", minimum=1),
    Field.maybe("memory_mb", "count", "reserved, in megabytes", "Memory", "not reserved", minimum=1),
    Field("gpu", "bool", False, "reserves a GPU; without a free one it trains on the CPU", "GPU"),
    Field("gpu_mandatory", "bool", False, "start only when one is free", "Wait for the GPU"),
    Field.maybe("max_minutes", "float", "of work; pauses do not count", "Minutes", "no limit", minimum=0.01),
    Field("max_restarts", "int", 0, "after a fault, from the last checkpoint", "Restarts", minimum=0),
    Field("priority", "int", 0, "the highest starts first", "Priority", minimum=-1000, maximum=1000),
    Field.maybe("python", "str", "of another virtual environment", "Interpreter", "this one"),
)
NAMING = (
    Field.maybe("run_name", "str", "its name in the list", "Name", "algorithm-environment"),
    Field("tags", "str", "", "words to find it by, separated by commas", "Tags"),
    Field("notes", "str", "", "kept with the run", "Notes"),
    Field(
        "secrets",
        help="names of parameters that no file keeps, separated by commas; a value @env:NAME is secret too",
        label="Secrets",
        placeholder="such as api_key",
    ),
    Field(
        "plain", help="names of parameters that only look like keys, and may be stored", label="No secrets"
    ),
)
TRUST = "trust"
"""Modules that the file of a policy or a checkpoint names, and that the person has said yes to."""
ALL = (*WATCH, *KEEP, *HUB, *ASKED, *RESOURCES, *NAMING, Field(TRUST))


@dataclass(frozen=True)
class RunSettings:
    """What these fields said, ready to be put into configs by another thread."""

    values: Mapping[str, Any]
    extras: Mapping[str, Any]
    python: str | None

    @classmethod
    def of(cls, state: FormState) -> RunSettings:
        """What the fields say; UserError when one of them is wrong."""
        values: dict[str, Any] = {one.name: state.value(one.name) for one in ALL}
        return cls(values, _extras(values), interpreter(values["python"]))

    def asked(self) -> dict[str, Any]:
        """What every config is made with."""
        listed = {name: _words(self.values[name]) for name in ("tags", "secrets", "plain")}
        return {"extras": self.extras, "run_name": self.values["run_name"], **listed}

    def finish(self, config: dict[str, Any]) -> dict[str, Any]:
        """A config with resources, limits and artifacts as they are asked for."""
        values = self.values
        resources: dict[str, Any] = {"cpus": values["cpus"]}
        if values["memory_mb"] is not None:
            resources["memory_mb"] = values["memory_mb"]
        if values["gpu"]:
            resources["gpus"] = {"requested": 1, "mandatory": values["gpu_mandatory"]}
        schedule: dict[str, Any] = {name: values[name] for name in ("max_restarts", "priority")}
        if values["max_minutes"] is not None:
            schedule["max_wallclock_minutes"] = values["max_minutes"]
        artifacts = {name: {"enabled": values[name]} for name in ("tensorboard", "wandb")}
        finished = {**config, "resources": resources, "schedule": schedule, "artifacts": artifacts}
        validate_train_run_config(finished)
        return finished


def interpreter(named: str | None) -> str | None:
    """The absolute path of another interpreter, not resolved further: a venv's own is a link."""
    if not named:
        return None
    found = shutil.which(os.path.expanduser(named))
    if found is None:
        raise UserError(f"Interpreter: '{named}' is not a program that can be run.")
    return str(Path(found).absolute())


def load_settings(state: FormState, config: Mapping[str, Any]) -> None:
    """Fill the fields from the config of an earlier run."""
    extras = config.get("metadata", {}).get("worker", {}).get("config", {}).get("extras") or {}
    resources, schedule = config.get("resources") or {}, config.get("schedule") or {}
    gpus = resources.get("gpus") or {}
    found = {
        "live_mode": extras.get("fastlane_video_mode", extras.get("video_mode")),
        "live_count": extras.get("fastlane_grid_limit", extras.get("grid_limit")),
        "live_slot": extras.get("fastlane_slot"),
        "tensorboard": ((config.get("artifacts") or {}).get("tensorboard") or {}).get("enabled"),
        **{name: extras.get(f"track_{name}") for name in TRACKERS},
        **{one.name: _one_line(extras.get(one.name)) for one in (*ASKED, *HUB)},
        "cpus": resources.get("cpus"),
        "memory_mb": resources.get("memory_mb"),
        "gpu": bool(gpus.get("requested")) or None,
        "gpu_mandatory": gpus.get("mandatory"),
        "max_minutes": schedule.get("max_wallclock_minutes"),
        "max_restarts": schedule.get("max_restarts"),
        "priority": schedule.get("priority"),
        "python": config.get("metadata", {}).get("worker", {}).get("python"),
        "tags": ", ".join(config.get("tags") or ()) or None,
        "notes": extras.get("notes"),
        "secrets": ", ".join(config.get("secrets") or ()) or None,
        "plain": ", ".join(config.get("plain") or ()) or None,
    }
    for name, value in found.items():
        field = state.fields.get(name)
        # A key is not kept, and nobody would see what stands in its place.
        if value is not None and field is not None and not (field.kind == "secret" and referred(value)):
            state.put(name, value)


def about_resources(state: FormState) -> str:
    """CPUs, GPU and limits in one line."""
    cpus, minutes = state.said("cpus"), state.said("max_minutes")
    parts = ["1 CPU" if cpus == "1" else f"{cpus} CPUs", "GPU" if state.is_on("gpu") else "no GPU"]
    parts.append(f"at most {minutes} min" if minutes else "no time limit")
    changed = [name for name in ("memory_mb", "max_restarts", "priority", "python") if state.is_changed(name)]
    return " · ".join([*parts, *(f"{state.fields[name].title} {state.said(name)}" for name in changed)])


def about_naming(state: FormState) -> str:
    """Name, tags, the beginning of the notes and what is secret in one line."""
    said = [" ".join(state.said(name).split()) for name in ("run_name", "tags", "notes", "secrets")]
    return " · ".join(filter(None, said)) or "empty"


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in text.split(","))))


def json_object(text: str) -> dict[str, Any] | None:
    """The object in a field of kind `json`; None when it is empty."""
    return dict(parse_json(text)) if text.strip() else None


def _extras(values: Mapping[str, Any]) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if values["live_mode"] != "grid":
        extras["fastlane_video_mode"] = values["live_mode"]
    if values["live_mode"] == "grid" and values["live_count"] != 8:
        extras["fastlane_grid_limit"] = values["live_count"]
    if values["live_mode"] == "single" and values["live_slot"]:
        extras["fastlane_slot"] = values["live_slot"]
    if values["gpu"]:
        extras["cuda"] = True
    if values[TRUST]:
        extras["trust_modules"] = list(_words(values[TRUST]))
    if values["notes"]:
        extras["notes"] = values["notes"]
    if values["upload_model"]:
        extras |= {one.name: values[one.name] for one in HUB if values[one.name]}
    for name, fields in TRACKERS.items():
        if values[name]:
            extras[f"track_{name}"] = True
            wanted = [one for one in fields if values["wandb_use_vpn_proxy"] or one.name not in PROXIES]
            said = {one.name: values[one.name] for one in wanted if values[one.name] != one.default}
            extras |= {name: value for name, value in said.items() if value}
    return extras


def _one_line(value: Any) -> Any:
    """A list, as a config may have it, as a field shows it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else value
