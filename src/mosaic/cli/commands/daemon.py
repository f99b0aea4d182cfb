"""`daemon` and `queue`: how the daemon is, what runs hold of the machine, and who waits for it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from mosaic.cli.live.board import Row
from mosaic.cli.output import console, cut, facts, place_text, print_json, program, say, table
from mosaic.cli.parsers import DAEMON_ACTIONS
from mosaic.cli.runs import connect, find_run, holds_runs, run_json
from mosaic.client import Client, HealthRecord, RunQuery, RunRecord
from mosaic.client.daemon import await_daemon, ensure_daemon, find_daemon, start_daemon, stop_daemon
from mosaic.contract import words
from mosaic.contract.capabilities import discover_workers
from mosaic.contract.errors import ConflictError, UserError, closest
from mosaic.contract.fsm import STARTED
from mosaic.contract.outside import bytes_text
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.contract.run_filter import WHOLE

_MOST_WAITING = 100


def run_daemon(args: argparse.Namespace) -> int:
    if args.action not in DAEMON_ACTIONS:
        hint = closest(args.action, DAEMON_ACTIONS) or f"; it takes {', '.join(DAEMON_ACTIONS)}."
        raise UserError(f"daemon cannot '{args.action}'{hint}")
    paths = VarPaths((args.var or resolve_var()).resolve())
    said = ""
    if args.action == "start":
        said = _start(paths, args.port)
    elif args.action == "stop":
        said = "The daemon has stopped; runs continue." if stop_daemon(paths) else "No daemon was running."
    if said and not args.json:
        say(said)
        return 0
    health = read_health(paths)
    if args.json:
        known = {} if health is None else health.as_json()
        print_json({"running": health is not None, "var": str(paths.root), **known})
    elif health is None:
        say(f"No daemon is running for {place_text(paths.root)}; the next command that needs one starts it.")
    else:
        _print_health(health, paths)
    return 0


def _start(paths: VarPaths, port: int | None) -> str:
    running = find_daemon(paths)
    if running is not None and port and not running.address.endswith(f":{port}"):
        raise UserError(
            f"The daemon already listens at {running.address}: `{program()} daemon stop` ends it first."
        )
    address = ensure_daemon(paths) if port is None else running or start_daemon(paths, port)
    return f"The daemon listens at {address.address} (pid {address.pid})."


def _print_health(health: HealthRecord, paths: VarPaths) -> None:
    place = f" at {health.address}, up {words.duration(health.uptime_seconds)}, version {health.version}"
    console().print(Text.assemble(("The daemon is running", "green"), place))
    gpus = f"{health.gpus_reserved} of {health.gpus} reserved" if health.gpus else "none"
    listed = facts(
        [
            ("pid", str(health.pid)),
            ("runs", f"{health.live_runs} live, {health.waiting_runs} waiting"),
            ("CPUs", f"{health.cpus_reserved} of {health.cpus} reserved"),
            ("memory", f"{health.memory_mb_reserved:,} of {health.memory_mb:,} MB reserved"),
            ("GPUs", gpus),
            ("folder", f"{place_text(paths.root)}, {bytes_text(health.disk_free_bytes)} free"),
            ("log", place_text(paths.daemon_log)),
        ],
        width=8,
    )
    for problem in health.problems:
        listed.add_row(Text("problem", style="red"), Text(problem, style="red"))
    for notice in health.notices:
        listed.add_row(Text("note", style="yellow"), Text(notice))
    console().print(listed)


def read_health(paths: VarPaths) -> HealthRecord | None:
    """How the daemon is; None when none runs. Starts nothing."""
    if await_daemon(paths) is None:
        return None
    with Client.connect(paths.root) as client:
        return client.health()


def reserved_text(health: HealthRecord) -> str:
    """What is reserved of the machine: `1 of 2 CPUs, 0 of 16,000 MB and 0 of 1 GPU reserved`."""
    parts = [
        f"{health.cpus_reserved} of {words.count(health.cpus, 'CPU')}",
        f"{health.memory_mb_reserved:,} of {health.memory_mb:,} MB",
    ]
    if health.gpus:
        parts.append(f"{health.gpus_reserved} of {words.count(health.gpus, 'GPU')}")
    return f"{', '.join(parts[:-1])} and {parts[-1]} reserved"


def request_json(run: RunRecord) -> dict[str, Any]:
    """What a run asked for, and the GPUs that it holds."""
    asked = run.config["resources"]
    gpus = {f"gpus_{name}": asked["gpus"][name] for name in ("requested", "mandatory")}
    return {"cpus": _cpus(run), "memory_mb": asked["memory_mb"], **gpus, "gpus": run.gpus}


def needs_text(run: RunRecord) -> str:
    """What a run must get to start: `2 CPUs, 4,096 MB, 1 GPU`."""
    gpus = run.config["resources"]["gpus"]
    free = "" if gpus["mandatory"] else " if free"
    return _listed(run, f"{words.count(gpus['requested'], 'GPU')}{free}" if gpus["requested"] else "")


def holds_text(run: RunRecord) -> str:
    """What others cannot have while it lives: `2 CPUs, 4,096 MB, GPU 0 3`."""
    return _listed(run, f"GPU {' '.join(map(str, run.gpus))}" if run.gpus else "")


def _listed(run: RunRecord, gpus: str) -> str:
    asked = run.config["resources"]
    memory = f"{asked['memory_mb']:,} MB" if asked["memory_mb"] else ""
    return ", ".join(filter(None, [words.count(_cpus(run), "CPU"), memory, gpus]))


def _cpus(run: RunRecord) -> int:
    """What is reserved for it: nothing, if it only waits for others."""
    worker = discover_workers().get(run.worker_type)
    waits = worker is not None and worker.waits_for_others
    return 0 if waits else int(run.config["resources"]["cpus"])


def run_queue(args: argparse.Namespace) -> int:
    moves = args.priority is not None or args.before is not None or args.first
    if args.run is None and moves:
        raise UserError("queue needs the RUN that is to move, in front of --priority, --before or --first.")
    if args.run is not None and not moves:
        raise UserError("queue RUN needs --priority N, --before RUN or --first.")
    live: list[RunRecord] = []
    waiting: list[RunRecord] = []
    health: HealthRecord | None = None
    # Where no run ever was there is no daemon either.
    if args.run is not None or holds_runs(args):
        with connect(args) as client:
            if args.run is not None:
                _reorder(client, args)
            live = sorted(client.runs(sorted(STARTED)), key=lambda run: run.started_at or 0.0)
            waiting, health = _waiting(client, 0 if args.json else _MOST_WAITING), client.health()
    if args.json:
        print_json(_queue_json(live, waiting, health))
    else:
        _print_queue(live, waiting, health)
    return 0


def _waiting(client: Client, most: int) -> list[RunRecord]:
    """Those that wait in the order in which they will start; with `most` only the first of them."""
    query = RunQuery(statuses=("INIT",), order_by="queue", ascending=True, fields=WHOLE)
    return list(client.each(query, most))


def _reorder(client: Client, args: argparse.Namespace) -> None:
    """Give a waiting run the place that the options say."""
    run = _find_waiting(client, args.run)
    if args.priority is not None:
        client.reorder(run.run_id, priority=args.priority)
        return
    other = _waiting(client, 1)[0] if args.first else _find_waiting(client, args.before)
    if other.run_id != run.run_id:
        client.reorder(run.run_id, before=other.run_id)
    elif not args.first:
        raise UserError(f"Run {run.run_id} cannot be placed before itself: name another run with --before.")


def _find_waiting(client: Client, name: str) -> RunRecord:
    run = find_run(client, name)
    if run.status != "INIT":
        state = words.state(run)
        raise ConflictError(f"Run {run.run_id} is {state}: only a waiting run has a place in the queue.")
    return run


def _queue_json(
    live: list[RunRecord], waiting: list[RunRecord], health: HealthRecord | None
) -> dict[str, Any]:
    def of(run: RunRecord) -> dict[str, Any]:
        return {**run_json(run), **request_json(run)}

    return {
        "live": [of(run) for run in live],
        "waiting": [{**of(run), "waits_for": run.reason} for run in waiting],
        **{
            name: {"reserved": getattr(health, f"{name}_reserved"), "total": getattr(health, name)}
            if health is not None
            else None
            for name in ("cpus", "memory_mb", "gpus")
        },
    }


def _print_queue(live: list[RunRecord], waiting: list[RunRecord], health: HealthRecord | None) -> None:
    reserved = reserved_text(health) if health else ""
    if not live and not waiting:
        say(f"There is no live or waiting run{f'; {reserved}' if reserved else ''}.")
        return
    ids = words.unique_prefixes([run.run_id for run in [*live, *waiting]])
    if live:
        console().print(_live_table(live, ids))
        say("")
    if waiting:
        console().print(_waiting_table(waiting, ids))
        more = health.waiting_runs - len(waiting) if health else 0
        say(f"\nand {more:,} more that wait; --json lists all.\n" if more > 0 else "")
    say(f"{reserved}.")


def _live_table(runs: list[RunRecord], ids: Mapping[str, str]) -> Table:
    titles = ("live", "run", "state", "done", "holds")
    listed = table(*titles, right=("done",), fold=("run", "holds"), least=max(map(len, ids.values())))
    for run in runs:
        row = Row(run)
        listed.add_row(
            ids[run.run_id],
            cut(row.name),
            Text(row.state, style=words.style(row.state)),
            words.percent(row.headline.get("progress")),
            holds_text(run),
        )
    return listed


def _waiting_table(runs: list[RunRecord], ids: Mapping[str, str]) -> Table:
    titles, least = ("waiting", "run", "priority", "needs"), max(map(len, ids.values()))
    listed = table(*titles, right=("priority",), fold=("run", "needs"), least=least)
    for run in runs:
        reason = words.with_short_ids((run.reason or "").removeprefix("waits "), ids)
        name = Text.assemble(Row(run).name, "\n", (reason, "dim"))
        listed.add_row(ids[run.run_id], name, str(run.priority), needs_text(run))
    return listed
