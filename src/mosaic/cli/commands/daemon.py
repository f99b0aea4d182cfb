"""`mosaic daemon start|stop|status`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli import values, words
from mosaic.cli.output import console, print_json, say
from mosaic.cli.parser import Parser
from mosaic.cli.program import program
from mosaic.contract.errors import UserError, closest
from mosaic.contract.paths import VarPaths, resolve_var
from mosaic.contract.sizes import bytes_text

if TYPE_CHECKING:
    from mosaic.client import HealthRecord

_ACTIONS = ("start", "stop", "status")


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "daemon",
        "[start|stop|status] [options]",
        "The daemon queues runs and keeps their state. It starts by itself when it is needed, and stopping\n"
        "it ends no run.",
        examples=("status", "stop", "start --port 50060"),
    )
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", default="status", help=f"{', '.join(_ACTIONS)} (status)"
    )
    parser.add_argument(
        "--port", type=values.port, metavar="N", help="start: listen on this port only; 0 takes any free one"
    )
    parser.add_general(json="whether it runs, its address, version and load")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.action not in _ACTIONS:
        hint = closest(args.action, _ACTIONS) or f"; it takes {', '.join(_ACTIONS)}."
        raise UserError(f"daemon cannot '{args.action}'{hint}")
    paths = VarPaths((args.var or resolve_var()).resolve())
    said = ""
    if args.action == "start":
        said = _start(paths, args.port)
    elif args.action == "stop":
        said = _stop(paths)
    if said and not args.json:
        say(said)
    else:
        _status(paths, args.json)
    return 0


def _start(paths: VarPaths, port: int | None) -> str:
    from mosaic.client.daemon import ensure_daemon, find_daemon, start_daemon

    running = find_daemon(paths)
    if running is not None and port and not running.address.endswith(f":{port}"):
        raise UserError(
            f"The daemon already listens at {running.address}: `{program()} daemon stop` ends it first."
        )
    address = ensure_daemon(paths) if port is None else running or start_daemon(paths, port)
    return f"The daemon listens at {address.address} (pid {address.pid})."


def _stop(paths: VarPaths) -> str:
    from mosaic.client.daemon import stop_daemon

    return "The daemon has ended; runs go on." if stop_daemon(paths) else "No daemon was running."


def _status(paths: VarPaths, as_json: bool) -> None:
    health = read_health(paths)
    if as_json:
        facts = {} if health is None else health.as_json()
        print_json({"running": health is not None, "var": str(paths.root), **facts})
    elif health is None:
        say(f"No daemon runs for {words.place(paths.root)}; the next command that needs one starts it.")
    else:
        _print(health, paths)


def _print(health: HealthRecord, paths: VarPaths) -> None:
    from rich.table import Table
    from rich.text import Text

    from mosaic.cli.reserved import totals

    since = words.duration(health.uptime_seconds)
    console().print(
        Text.assemble(
            ("The daemon runs", "green"), f" at {health.address} for {since}, version {health.version}"
        )
    )
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=8)
    table.add_column(overflow="fold")
    rows = [
        ("pid", str(health.pid)),
        ("runs", f"{health.live_runs} live, {health.waiting_runs} waiting"),
        *totals(health),
        ("folder", f"{words.place(paths.root)}, {bytes_text(health.disk_free_bytes)} free"),
        ("log", words.place(paths.daemon_log)),
    ]
    for label, value in rows:
        table.add_row(label, Text(value))
    for problem in health.problems:
        table.add_row(Text("problem", style="red"), Text(problem, style="red"))
    for notice in health.notices:
        table.add_row(Text("note", style="yellow"), Text(notice))
    console().print(table)


def read_health(paths: VarPaths) -> HealthRecord | None:
    """How the daemon is; None when none runs. Starts nothing."""
    from mosaic.client import Client
    from mosaic.client.daemon import await_daemon

    if await_daemon(paths) is None:
        return None
    with Client.connect(paths.root) as client:
        return client.health()
