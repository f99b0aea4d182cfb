"""The check of an order: the dry run of the worker that will run it, told in a few lines."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gym_gui.models.form_choices import Requirement
from gym_gui.models.form_state import show
from gym_gui.ui.presenters.form import Config, Order
from mosaic.contract import words
from mosaic.contract.capabilities import DescribingCatalog, WorkerCatalog
from mosaic.contract.errors import MosaicError, UntrustedModuleError
from mosaic.contract.secrets import lift_secrets

Fact = tuple[str, str]
_BESIDE = ("env_id", "total_timesteps", "seed", "curriculum", "track", "policy_path")
"""Told elsewhere."""


@dataclass(frozen=True)
class CheckReport:
    """What a check has found."""

    ok: bool
    headline: str
    """One line for the foot of the form."""
    sentence: str = ""
    """What is wrong and what to do, or what a resumed run restores."""
    facts: tuple[Fact, ...] = ()
    changes: tuple[Fact, ...] = ()
    """Parameters that are not the defaults."""
    missing: tuple[Requirement, ...] = ()
    untrusted: str = ""
    """The module that only a file names: with a yes to it, the order can be checked again."""
    configs: tuple[Config, ...] = field(default=(), repr=False)
    """What can be submitted; may hold a secret."""
    at: float = field(default_factory=time.time)

    def as_text(self) -> str:
        """The whole result, for the notes and for copying."""
        head = f"{time.strftime('%H:%M:%S', time.localtime(self.at))}  {self.headline}"
        width = max((len(name) for name, _ in (*self.facts, *self.changes)), default=0)
        rows = [f"{name:<{width}}  {value}" for name, value in (*self.facts, *self.changes)]
        return "\n".join([head, *filter(None, [self.sentence]), *rows])


def check_order(
    order: Order, catalog: WorkerCatalog, missing: Sequence[Requirement] = (), speed: float | None = None
) -> CheckReport:
    """Check an order without starting anything. Not for the thread of the window."""
    if missing:
        listed = ", ".join(one.name for one in missing)
        sentences = " ".join(one.sentence for one in missing)
        return CheckReport(False, f"missing: {listed}", sentences, missing=tuple(missing))
    try:
        configs = order.configs()
        summary = _describe(lift_secrets(configs[0], os.environ).config, catalog)
    except MosaicError as error:
        module = error.module if isinstance(error, UntrustedModuleError) else ""
        return CheckReport(False, "something is wrong", str(error), untrusted=module)
    return CheckReport(
        ok=True,
        headline=_headline(configs, summary, speed),
        sentence=_explanation(summary),
        facts=tuple(_facts(summary)),
        changes=tuple(_changes(summary)),
        configs=tuple(configs),
    )


def _describe(config: Mapping[str, Any], catalog: WorkerCatalog) -> Mapping[str, Any]:
    """What the worker tells of a run; nothing when it tells nothing."""
    if not isinstance(catalog, DescribingCatalog):
        return {}
    request = config["metadata"]["worker"]
    folder = Path(str(config["metadata"]["ui"]["python_path"]).partition(os.pathsep)[0])
    return catalog.describe(request["config"], request["python"], folder, ())


def _headline(configs: Sequence[Config], summary: Mapping[str, Any], speed: float | None) -> str:
    count = len(configs)
    parts = [words.count(count, "run")]
    steps = configs[0]["metadata"]["worker"]["config"].get("total_timesteps")
    if speed and steps and summary.get("mode") == "train":
        parts.append(f"about {_time(steps / speed)}{' each' if count > 1 else ''}")
    memory = summary.get("estimated_memory_mb")
    if memory:
        parts.append(f"{memory['total'] / 1000:.1f} GB")
    pictures = summary.get("pictures") or {}
    return " · ".join([*parts, "no pictures" if pictures.get("install") else "nothing missing"])


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def _explanation(summary: Mapping[str, Any]) -> str:
    resumed = summary.get("resumed_from")
    told = [resumed["explanation"] if resumed else "", summary.get("warning", "")]
    return " ".join(filter(None, told))


def _facts(summary: Mapping[str, Any]) -> list[Fact]:
    if not summary:
        return []
    environment, device = summary["environment"], summary["device"]
    policy, script = summary["policy"], summary["script"] or {}
    memory = summary["estimated_memory_mb"]
    found = [
        ("runs", summary["module"]),
        ("plays", policy and policy["path"]),
        ("environment", environment["env_id"]),
        *_spaces(environment),
        *words.curriculum_facts(summary["curriculum"] or ()),
        ("does", script.get("description")),
        ("phases", script.get("phases")),
        ("device", device and f"{device['name']} ({device['reason']})"),
        ("memory", memory and f"about {memory['total']:,} MB"),
        ("pictures", words.pictures_text(summary["pictures"])),
        ("command", shlex.join(summary["command"])),
    ]
    return [(name, str(value)) for name, value in found if value]


def _spaces(environment: Mapping[str, Any]) -> list[Fact]:
    if not environment["known"]:
        return []
    spaces = [
        ("sees", words.space_text(environment["observation"])),
        ("does", words.space_text(environment["action"])),
    ]
    limit = environment["max_episode_steps"]
    return [*spaces, ("episodes", f"up to {limit:,} steps")] if limit else spaces


def _changes(summary: Mapping[str, Any]) -> list[Fact]:
    return [
        (one["name"], show(one["value"]) or "none")
        for one in summary.get("parameters", ())
        if one["source"] in ("config", "cli") and one["name"] not in _BESIDE
    ]
