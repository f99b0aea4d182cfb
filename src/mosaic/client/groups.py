"""Runs in groups: seeds of one configuration, and in what the others differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from mosaic.client.configs import settings_of
from mosaic.client.records import RunRecord
from mosaic.contract.capabilities import parameter_defaults

_ABSENT = object()
_MOST_IN_LABEL = 3
_HEADS = ("algo", "env_id")
Defaults = Mapping[str, Mapping[str, Any]] | None
"""The parameters of each algorithm by their names, as far as they are known."""


@dataclass(frozen=True)
class Group:
    """The runs of one configuration, which differ in their seeds alone."""

    label: str
    runs: tuple[RunRecord, ...]
    colour: int

    @property
    def seeds(self) -> list[int | None]:
        return [settings_of(run).get("seed") for run in self.runs]

    @property
    def one_for_each_seed(self) -> tuple[RunRecord, ...]:
        """What means are made of: of runs of one seed, which repeat each other, the one that got furthest."""
        found: dict[object, RunRecord] = {}
        for run, seed in zip(self.runs, self.seeds, strict=True):
            key = run.run_id if seed is None else seed
            if _reached(run) >= _reached(found.get(key, run)):
                found[key] = run
        return tuple(found.values())


@dataclass(frozen=True)
class Difference:
    """One setting that is not the same everywhere: a value for each group, and which of them are defaults."""

    name: str
    values: tuple[str, ...]
    defaults: tuple[bool, ...]


def _reached(run: RunRecord) -> float:
    return float(run.headline.get("step") or 0)


def group_runs(runs: Sequence[RunRecord], defaults: Defaults = None) -> list[Group]:
    """The runs by configuration, in the order given."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        settings = {**_defaults_of(run, defaults), **settings_of(run)}
        settings.pop("seed", None)
        found.setdefault(json.dumps(settings, sort_keys=True, default=str), []).append(run)
    labels = _labels([members[0] for members in found.values()], defaults)
    pairs = zip(labels, found.values(), strict=True)
    return [Group(label, tuple(members), number) for number, (label, members) in enumerate(pairs)]


def _defaults_of(run: RunRecord, defaults: Defaults) -> Mapping[str, Any]:
    return (defaults or {}).get(str(run.worker_config.get("algo")), {})


def differences(runs: Sequence[RunRecord], defaults: Defaults = None) -> list[Difference]:
    """The settings in which runs, one of each group, differ. Which seeds each has is told elsewhere."""
    settings = [settings_of(run) for run in runs]
    known = [_defaults_of(run, defaults) for run in runs]
    names = dict.fromkeys(name for one in (*settings, *known) for name in one if name != "seed")
    rows = []
    for name in names:
        values, usual = [], []
        for own, default in zip(settings, known, strict=True):
            value = own.get(name, default.get(name, _ABSENT))
            values.append(_text(name, value))
            usual.append(name not in own or (name in default and own[name] == default[name]))
        if len(set(values)) > 1:
            rows.append(Difference(name, tuple(values), tuple(usual)))
    return rows


def _text(name: str, value: Any) -> str:
    if value is _ABSENT or value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and name == "total_timesteps":
        return f"{value:,}"
    if name == "algo":
        return PurePath(str(value)).name
    return value if isinstance(value, str) else json.dumps(value)


def _labels(firsts: Sequence[RunRecord], defaults: Defaults) -> list[str]:
    """What tells each group from the others, in few words."""
    if len(firsts) == 1:
        asked = settings_of(firsts[0])
        return [" · ".join(_text(name, asked[name]) for name in _HEADS if asked.get(name))]
    if given := _given_labels(firsts):
        return given
    rows = differences(firsts, defaults)
    # Algorithms differ in all that only one of them has: the table tells it, a name need not.
    heads = [row for row in rows if row.name in _HEADS]
    chosen = [row for row in rows if row.name in _HEADS or not all(row.defaults)]
    for fewer in (heads, chosen):
        told_apart = len(set(zip(*(row.values for row in fewer), strict=True))) == len(firsts)
        if told_apart and len(rows) > _MOST_IN_LABEL:
            rows = fewer
            break
    made = []
    for place in range(len(firsts)):
        parts = [
            row.values[place] if row.name in _HEADS else f"{row.name} {row.values[place]}" for row in rows
        ]
        more = f" +{len(parts) - _MOST_IN_LABEL}" if len(parts) > _MOST_IN_LABEL else ""
        made.append(" · ".join(parts[:_MOST_IN_LABEL]) + more)
    return made


def _given_labels(firsts: Sequence[RunRecord]) -> list[str]:
    """What a benchmark calls its algorithms, where that tells all groups apart; else nothing."""
    labels = [str(run.config.get("metadata", {}).get("ui", {}).get("label") or "") for run in firsts]
    if not all(labels):
        return []
    places = [run.worker_config.get("env_id") for run in firsts]
    several = [f"{label} · {place}" if place else label for label, place in zip(labels, places, strict=True)]
    return next((made for made in (labels, several) if len(set(made)) == len(firsts)), [])


def group_by(runs: Sequence[RunRecord], by: str, defaults: Defaults = None) -> list[Group]:
    """The runs by `config`, `algo`, `env`, `tag` or `run`; one with several tags is in the group of each."""
    if by == "config":
        return group_runs(runs, defaults)
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        for label in _names_of(run, by):
            found.setdefault(label, []).append(run)
    return [Group(label, tuple(members), number) for number, (label, members) in enumerate(found.items())]


def _names_of(run: RunRecord, by: str) -> Sequence[str]:
    asked = run.worker_config
    if by == "tag":
        return run.tags or ["no tag"]
    if by == "run":
        return [f"{run.run_name} {run.run_id}"]
    value = asked.get({"algo": "algo", "env": "env_id"}[by])
    return ["–" if value is None else _text("algo" if by == "algo" else by, value)]


def defaults_for(runs: Sequence[RunRecord]) -> dict[str, dict[str, Any]]:
    """The defaults of each algorithm's parameters. Catalogs load slowly: not in the window's thread."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        algo = str(run.worker_config.get("algo"))
        if algo not in found:
            found[algo] = parameter_defaults(run.worker_type, algo)
    return found
