"""What `--dry-run` prints: a run in full before it is started."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from mosaic.cli import words
from mosaic.cli.output import console, facts, note, print_json
from mosaic.cli.words import as_typed
from mosaic.contract.capabilities import DescribingCatalog, find_worker
from mosaic.contract.machine import Machine, check_possible
from mosaic.contract.paths import VarPaths, choose_var
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import lift_secrets

_ALIASES = {"use_cuda": "cuda", "wandb": "track", "env": "env_id"}


def dry_run(configs: Sequence[Mapping[str, Any]], args: argparse.Namespace) -> int:
    """Tell what would run: a table, with --json the run config, with --emit-summary all about it as JSON."""
    # As they would be stored: what is shown has no secrets in it.
    configs = [lift_secrets(config, os.environ).config for config in configs]
    first = configs[0]
    check_possible(validate_train_run_config(first).resources, _machine(args))
    summary = None if args.json and not args.emit_summary else describe(first, args)
    if args.emit_summary:
        print_json(summary)
    elif summary is None:
        print_json(first if len(configs) == 1 else configs)
    else:
        for part in render(summary):
            console().print(part)
        if len(configs) > 1:
            seeds = ", ".join(str(one["metadata"]["worker"]["config"].get("seed")) for one in configs)
            console().print(f"\n{len(configs)} runs, with the seeds {seeds}")
    note("All checks passed; nothing was started.")
    return 0


def _machine(args: argparse.Namespace) -> Machine:
    """What the daemon may hand out; while none runs, what one that is started here could."""
    from mosaic.cli.commands.daemon import read_health

    health = read_health(VarPaths(choose_var(args.var)))
    return Machine(health.cpus, health.memory_mb, tuple(range(health.gpus))) if health else Machine.detect()


def describe(config: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any] | None:
    """What the worker tells of a run; None when it can tell nothing."""
    request = config["metadata"]["worker"]
    worker = find_worker(request["type"])
    catalog = worker.load_catalog() if worker.catalog else None
    if not isinstance(catalog, DescribingCatalog):
        return None
    folder = Path(str(config["metadata"]["ui"]["python_path"]).partition(os.pathsep)[0])
    summary = catalog.describe(request["config"], request["python"], folder, _typed(args))
    if getattr(args, "config", None) is None and getattr(args, "run", None) is None:
        # Nobody wrote a config: what was not typed is what this command fills in.
        for one in summary["parameters"]:
            one["source"] = "default" if one["source"] == "config" else one["source"]
    return summary


def _typed(args: argparse.Namespace) -> set[str]:
    """The names of the parameters that were said on the command line."""
    single = ("env", "total_timesteps", "seed", "env_kwargs", "curriculum", "cuda", "wandb")
    named = {name for name in single if getattr(args, name, None) not in (None, False)}
    named |= {"seed"} if args.seeds is not None else set()
    named |= {name for name, _ in (*args.set, *args.extra)}
    return {_ALIASES.get(name, name) for name in named}


def render(summary: Mapping[str, Any]) -> list[Table]:
    """A summary as tables: the run, then its parameters."""
    return [_facts(summary), *([_parameters(summary["parameters"])] if summary["parameters"] else [])]


def _facts(summary: Mapping[str, Any]) -> Table:
    script = summary["script"] or {}
    device, resumed, policy = summary["device"], summary["resumed_from"], summary["policy"]
    rows = [
        ("mode", summary["mode"]),
        ("module", summary["module"]),
        ("goes on from", resumed and resumed["explanation"]),
        ("plays", policy and words.place(policy["path"])),
        *_environment(summary["environment"]),
        *_curriculum(summary["curriculum"] or []),
        ("does", script.get("description")),
        ("phases", script.get("phases")),
        ("device", device and f"{device['name']} ({device['reason']})"),
        ("memory", _memory(summary["estimated_memory_mb"])),
        ("pictures", _pictures(summary["pictures"])),
        ("note", summary["warning"]),
        ("missing", ", ".join(one["install"] for one in summary["missing_extras"])),
        ("command", shlex.join(summary["command"])),
    ]
    return facts((label, str(value) if value else None) for label, value in rows)


def _environment(environment: Mapping[str, Any]) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = [("environment", environment["env_id"])]
    if environment["known"]:
        facts += [(f"  {role}s", _space(environment[role])) for role in ("observation", "action")]
        facts.append(("  episodes", f"up to {words.whole(environment['max_episode_steps'])} steps"))
    return facts if not environment["known"] or environment["max_episode_steps"] else facts[:-1]


def _curriculum(stages: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> list[tuple[str, str]]:
    """A line for each stage of a curriculum: where it trains, and until when; or for each task to draw."""
    if isinstance(stages, Mapping):
        tasks = enumerate(stages["tasks"], 1)
        named = [(f"  task {number}", str(task)) for number, task in tasks]
        return [("curriculum", f"{stages['curriculum']} of Syllabus-RL"), *named]
    return [
        (f"  stage {number}", f"{stage['env_id']} until {stage.get('condition', 'the end of the budget')}")
        for number, stage in enumerate(stages, 1)
    ]


def _space(space: Mapping[str, Any]) -> str:
    """`box of 4 × 84 × 84 (uint8)`, `discrete, 7 choices`, `dict of image, mission`."""
    kind = space["kind"].replace("_", " ")
    if "spaces" in space:
        return f"{kind} of {', '.join(space['spaces'])}"
    if "n" in space:
        return f"{kind}, {space['n']} choices"
    shape = " × ".join(map(str, space.get("shape", ())))
    dtype = f" ({space['dtype']})" if space.get("dtype") else ""
    return f"{kind} of {shape}{dtype}" if shape else kind


def _pictures(pictures: Mapping[str, Any]) -> str:
    """Whether there will be something to see, or what keeps it away and what to do."""
    if pictures["come"]:
        return "yes, while somebody looks"
    told = f"{'not known' if pictures['come'] is None else 'none'}: {pictures['reason']}"
    return as_typed(f"{told}; run `{pictures['install']}`") if pictures["install"] else told


def _memory(parts: Mapping[str, int] | None) -> str:
    if parts is None:
        return ""
    shown = [
        f"{name.replace('_', ' ')} {value:,}" for name, value in parts.items() if name != "total" and value
    ]
    return f"about {parts['total']:,} MB ({', '.join(shown)})"


def _parameters(parameters: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    table.add_column("\nParameter", no_wrap=True)
    table.add_column("", overflow="fold")
    table.add_column("\nfrom", no_wrap=True, style="dim")
    for one in parameters:
        value = one["value"]
        style = "" if one["source"] == "default" else "bold"
        shown = value if isinstance(value, str) else json.dumps(value)
        table.add_row(Text(one["name"], style=style), Text(shown, style=style), one["source"])
    return table
