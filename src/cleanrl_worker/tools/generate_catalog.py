"""Writes environments.json from what gymnasium has registered in this interpreter, and the table of
docs/environments.md from it.

`python -m cleanrl_worker.tools.generate_catalog [--check]`
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium

from cleanrl_worker.portable import probe
from cleanrl_worker.schemas.environments import (
    ALE,
    CATALOG_FILE,
    ENVPOOL,
    FAMILIES,
    PROCGEN,
    PYTHON,
    load_environments,
)
from cleanrl_worker.tools import write_or_check

PACKAGES = (
    "ale_py",
    "minigrid",
    "shimmy",
    "cleanrl_worker.kit.pixel_tasks",
    "cleanrl_worker.kit.vector_tasks",
    "cleanrl_worker.kit.matches",
)
SOURCES = (
    "gymnasium.envs.classic_control",
    "gymnasium.envs.toy_text",
    "gymnasium.envs.box2d",
    "minigrid",
    "cleanrl_worker",
)
UNUSABLE = ("MiniGrid-WFC-",)
"""Ids that begin so can be made, but not played: the package lacks the patterns that they are made from."""
PAGE = Path(__file__).parents[3] / "docs" / "environments.md"
BEGIN, END = "<!-- families: written by cleanrl_worker.tools.generate_catalog -->", "<!-- end of families -->"
# Published results are of version 4, so it stays beside its successor.
KEPT_VERSIONS = {"gymnasium.envs.mujoco": (4, 5)}


def generate() -> str:
    """The text of environments.json as it should be."""
    return to_text(describe_all(load_json()))


def to_text(entries: dict[str, Any]) -> str:
    """The catalog with one line for each environment."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}" for name, entry in entries.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load_json() -> dict[str, Any]:
    """The entries as they are now; none when there is no file."""
    return dict(json.loads(CATALOG_FILE.read_text("utf-8"))) if CATALOG_FILE.is_file() else {}


def describe_all(known: dict[str, Any]) -> dict[str, Any]:
    """The entry of every environment by id; one that lacks a package here keeps the entry in `known`."""
    for package in PACKAGES:
        importlib.import_module(package)
    entries = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for env_id in sorted(gymnasium.registry):
            entry = (describe(env_id) or known.get(env_id)) if is_listed(env_id) else None
            if entry is not None:
                entries[env_id] = {**entry, "backends": find_backends(env_id, known.get(env_id, {}))}
    return dict(sorted((entries | describe_procgen(known)).items()))


def describe_procgen(known: dict[str, Any]) -> dict[str, Any]:
    """The entries of the games that only EnvPool has; those in `known` where it is not installed."""
    try:
        specs = probe.import_backend(ENVPOOL).registration.registry.specs
        names = [name for name, (module, *_) in specs.items() if module == f"envpool.{PROCGEN}"]
        return {name: {**probe.describe_with(ENVPOOL, name, {}), "backends": [ENVPOOL]} for name in names}
    except probe.ProbeError:
        return {name: entry for name, entry in known.items() if entry["family"] == PROCGEN}


def find_backends(env_id: str, known: Mapping[str, Any]) -> list[str]:
    """What can step an environment that Python has; what lacks its package here is as in `known`."""
    found = [PYTHON]
    for backend, find in ((ENVPOOL, probe.name_in_envpool), (ALE, lambda name: probe.find_ale(name, {}))):
        if importlib.util.find_spec(probe.BACKEND_PACKAGES[backend]) is None:
            found += [backend] if backend in known.get("backends", ()) else []
            continue
        with contextlib.suppress(probe.ProbeError):
            find(env_id)
            found.append(backend)
    return found


def is_listed(env_id: str) -> bool:
    """Whether an id belongs in the catalog: a newest version, of Atari one id for each game."""
    spec = gymnasium.registry[env_id]
    source = str(spec.entry_point)
    if env_id.startswith(UNUSABLE):
        return False
    if source.startswith("ale_py"):
        return spec.namespace == "ALE"
    if spec.namespace == "dm_control":
        # The suite; the others show pictures, or take minutes for what the suite does in seconds.
        return "domain_name" in getattr(spec.entry_point, "keywords", {})
    for prefix, versions in KEPT_VERSIONS.items():
        if source.startswith(prefix):
            return spec.version in versions
    if not source.startswith(SOURCES):
        return False
    same_name = [
        other.version or 0
        for other in gymnasium.registry.values()
        if (other.namespace, other.name) == (spec.namespace, spec.name)
    ]
    return (spec.version or 0) == max(same_name)


def describe(env_id: str) -> dict[str, Any] | None:
    """The entry of one environment, or None when a package it needs is missing."""
    try:
        env = gymnasium.make(env_id)
    except (gymnasium.error.DependencyNotInstalled, ImportError):
        return None
    with contextlib.closing(env):
        return probe.describe_environment(env_id, env)


def generate_page() -> str:
    """The text of docs/environments.md with the families as the catalog has them."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    rows = [
        "| family | how to install it | environments | backends | example |",
        "| --- | --- | --- | --- | --- |",
    ]
    for family in FAMILIES.values():
        members = [entry for entry in load_environments().values() if entry.family == family.name]
        extras = dict.fromkeys(
            f"`./mosaic extras install {one.extra}`" if one.extra else "always available" for one in members
        )
        installs = ", ".join(extras)
        backends = dict.fromkeys(backend for one in members for backend in one.backends)
        example = f"`./mosaic train {family.algo} {family.env_id}`"
        about = f"{family.title} (`{family.name}`) | {installs} | {len(members)}"
        rows.append(f"| {about} | {', '.join(backends)} | {example} |")
    return f"{before}{BEGIN}\n" + "\n".join(rows) + f"\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    module = "generate_catalog"
    old = write_or_check(CATALOG_FILE, generate, module, __doc__)
    sys.exit(old or write_or_check(PAGE, generate_page, module, __doc__))
