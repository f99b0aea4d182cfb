"""The sections of a report that say what was run: settings, code, hardware, problems, notes and commands."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.analytics.report_data import Comparison, methods_of
from mosaic.analytics.report_page import Markup, el, key, number_cell
from mosaic.client.command_line import command_for
from mosaic.client.configs import again_config, settings_of
from mosaic.client.groups import Defaults, Difference
from mosaic.client.records import RunRecord
from mosaic.contract import words
from mosaic.contract.outside import read_json
from mosaic.contract.paths import RunPaths

_MOST_DIFF = 60_000
_SEED = re.compile(r"--seed (\d+)\b")


def run_label(run: RunRecord) -> str:
    seed = settings_of(run).get("seed")
    return f"{run.run_name}, seed {seed}" if seed is not None else run.run_name


def settings_section(compared: Comparison, defaults: Defaults) -> Markup:
    parts: list[Markup] = [el("h2", "Settings")]
    rest = [row for row in compared.differ if row not in compared.chosen]
    if compared.chosen:
        parts.append(_differences(compared, compared.chosen))
    if rest:
        told = el("summary", f"Defaults that not all algorithms share ({len(rest)})")
        parts.append(el("details", told, _differences(compared, rest)))
    differ = {row.name for row in compared.differ} | {"seed"}
    first = compared.groups[0].runs[0]
    algo = str(first.worker_config.get("algo"))
    usual = (defaults or {}).get(algo, {})
    shared = {**usual, **settings_of(first)}
    facts = [
        (el("dt", el("code", name)), el("dd", value if isinstance(value, str) else json.dumps(value)))
        for name, value in sorted(shared.items())
        if name not in differ and value is not None
    ]
    title = "What all of them share" if len(compared.groups) > 1 else "All settings"
    parts.append(el("details", el("summary", f"{title} ({len(facts)})"), el("dl", facts, cls="facts")))
    return el("section", parts)


def _differences(compared: Comparison, wanted: Sequence[Difference]) -> Markup:
    methods = methods_of(compared)
    heads = [
        el("th", "what differs"),
        *(el("th", key(methods[group.label].number), group.label) for group in compared.groups),
    ]
    rows = [
        el(
            "tr",
            el("td", el("code", row.name)),
            [
                el("td", value, cls="usual" if usual else None)
                for value, usual in zip(row.values, row.defaults, strict=True)
            ],
        )
        for row in wanted
    ]
    return el("table", el("thead", el("tr", heads)), el("tbody", rows))


def origin_section(runs: Sequence[RunRecord]) -> Markup:
    """Code version, packages and hardware: what is the same for all runs is told once."""
    told = {run.run_id: _provenance(run) for run in runs}
    found: dict[str, dict[str, list[RunRecord]]] = {}
    diffs: dict[str, str] = {}
    for run in runs:
        for name, value in _origin_facts(told[run.run_id]):
            found.setdefault(name, {}).setdefault(value, []).append(run)
        diff = _at(told[run.run_id], "user_folder", "git_diff")
        if isinstance(diff, str) and diff.strip():
            diffs.setdefault(hashlib.sha256(diff.encode("utf-8", "replace")).hexdigest()[:12], diff)
    facts = []
    for name, values in found.items():
        for value, whose in values.items():
            many = len(values) > 1 or len(whose) < len(runs)
            about = f"  ({_whose(whose)})" if many else ""
            facts.append((el("dt", name), el("dd", value, el("span", about, cls="note") if about else None)))
    folded = []
    for name, diff in diffs.items():
        cut = "\n…" if len(diff) > _MOST_DIFF else ""
        folded.append(
            el("details", el("summary", f"Uncommitted changes {name}"), el("pre", diff[:_MOST_DIFF] + cut))
        )
    nothing = el("p", "The runs have no provenance.", cls="note")
    return el(
        "section",
        el("h2", "Code and hardware"),
        el("dl", facts, cls="facts") if facts else nothing,
        folded,
    )


def _provenance(run: RunRecord) -> Mapping[str, Any]:
    try:
        told = read_json(RunPaths(Path(run.run_dir)).provenance)
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _at(told: Any, *path: str) -> Any:
    for part in path:
        told = told.get(part) if isinstance(told, Mapping) else None
    return told


def _origin_facts(told: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if not told:
        return
    commit, diff = _at(told, "user_folder", "git_commit"), _at(told, "user_folder", "git_diff")
    if not isinstance(commit, str):
        yield "code", "the folder is not a git checkout"
    elif isinstance(diff, str) and diff.strip():
        changed = sum(
            line[:1] in "+-" and line[:3] not in ("+++", "---") for line in diff.splitlines() if line
        )
        name = hashlib.sha256(diff.encode("utf-8", "replace")).hexdigest()[:12]
        yield "code", f"commit {commit[:12]} with uncommitted changes {name} ({changed:,} lines)"
    else:
        yield "code", f"commit {commit[:12]}, nothing uncommitted"
    algorithm = _at(told, "algorithm")
    if isinstance(algorithm, Mapping):
        yield "script", ", ".join(f"{key} {value}" for key, value in algorithm.items() if value is not None)
    versions = _at(told, "versions")
    if isinstance(versions, Mapping):
        yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    hardware = _at(told, "hardware")
    if isinstance(hardware, Mapping):
        cpus = f"{hardware.get('cpus_usable')} of {hardware.get('cpus')} CPUs"
        memory = re.match(r"(\d+) kB", str(hardware.get("memory")))
        ram = f", {int(memory[1]) / 2**20:.0f} GiB of memory" if memory else ""
        yield "hardware", f"{hardware.get('cpu')}, {cpus}{ram}, {hardware.get('system')}"


def _whose(runs: Sequence[RunRecord]) -> str:
    names = [run.run_id for run in runs[:4]]
    return ", ".join(names) + (f" and {len(runs) - 4} more" if len(runs) > 4 else "")


def problems_section(runs: Sequence[RunRecord], compared: Comparison, others: Sequence[str]) -> Markup | None:
    told = []
    for run in runs:
        if run.outcome not in (None, "completed") or run.status == "FAULT":
            why = f": {run.reason}" if run.reason else ""
            told.append(f"{run.run_id} ({run_label(run)}) {words.state(run)}{why}")
        if run.ended and not Path(run.run_dir).is_dir():
            told.append(f"{run.run_id} ({run_label(run)}): its folder {run.run_dir} is not there any more.")
    told += [problem for problem in (*compared.problems, *others) if problem]
    silent = [one.run.run_id for group in compared.groups for one in group.members if not len(one.series)]
    told += [f"{run_id} has not measured {compared.metric}." for run_id in dict.fromkeys(silent)]
    if not told:
        return None
    return el("section", el("h2", "Problems"), el("ul", [el("li", one) for one in told], cls="plain"))


def notes_section(runs: Sequence[RunRecord]) -> Markup | None:
    noted = [run for run in runs if run.notes]
    if not noted:
        return None
    facts = [
        (el("dt", run_label(run), " ", el("span", run.run_id, cls="note")), el("dd", run.notes, cls="said"))
        for run in noted
    ]
    return el("section", el("h2", "Notes"), el("dl", facts, cls="facts"))


def commands_section(compared: Comparison) -> Markup:
    groups = {tuple(run.run_id for run in group.runs): group for group in compared.groups}
    parts: list[Any] = [el("h2", "To reproduce")]
    for group in groups.values():
        commands = _commands(group.runs)
        config = json.dumps(
            again_config(group.runs[0].config, group.runs[0].run_id), indent=2, ensure_ascii=False
        )
        parts.append(el("h3", group.label))
        parts.append(el("pre", *map(_unbroken, re.split(r"( |\n)", "\n".join(commands)))))
        title = "The config" + (
            " of the first run; the others differ only in the seed" if len(group.runs) > 1 else ""
        )
        parts.append(el("details", el("summary", title), el("pre", config)))
    return el("section", parts)


def _unbroken(word: str) -> Markup | str:
    """A word of a command; the name of an option is not broken at its dashes, where a line ends."""
    return el("span", word, cls="whole") if word.startswith("--") else word


def _commands(runs: Sequence[RunRecord]) -> list[str]:
    """The command of each run; of those that differ in their seed alone one command for all."""
    found: dict[str, list[str]] = {}
    for run in runs:
        command = command_for(run.config, run.run_id, ("./mosaic",))
        seeds = _SEED.findall(command)
        found.setdefault(_SEED.sub("--seed {}", command) if len(seeds) == 1 else command, []).extend(
            seeds[:1]
        )
    made = []
    for command, seeds in found.items():
        wanted = sorted({int(seed) for seed in seeds})
        if len(wanted) > 1:
            made.append(command.replace("--seed {}", f"--seeds {_listed(wanted)}", 1))
        else:
            made.append(command.replace("--seed {}", f"--seed {wanted[0]}", 1) if wanted else command)
    return made


def _listed(seeds: Sequence[int]) -> str:
    if seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))


def runs_section(runs: Sequence[RunRecord]) -> Markup:
    rows = []
    for run in runs:
        state = words.state(run)
        seconds = None if run.started_at is None else (run.ended_at or time.time()) - run.started_at
        seed = settings_of(run).get("seed")
        rows.append(
            el(
                "tr",
                el("td", el("code", run.run_id, cls="whole")),
                el("td", run.run_name, cls="loose"),
                number_cell(words.NONE if seed is None else str(seed)),
                el(
                    "td",
                    state,
                    cls={"completed": "good", "failed": "bad", "timed out": "bad"}.get(state, "warn"),
                ),
                number_cell(words.short(run.headline.get("mean_return"))),
                number_cell(words.whole(run.headline.get("step"))),
                number_cell(words.NONE if seconds is None else words.duration(seconds)),
            )
        )
    named = ("mean return", "steps", "time")
    heads = [
        el("th", "run"),
        el("th", "name"),
        el("th", "seed", cls="num"),
        el("th", "state"),
        *(el("th", one, cls="num") for one in named),
    ]
    return el(
        "section",
        el("h2", "All runs"),
        el("table", el("thead", el("tr", heads)), el("tbody", rows), cls="long"),
    )
