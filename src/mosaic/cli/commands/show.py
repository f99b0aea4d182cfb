"""`mosaic show RUN`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli import words
from mosaic.cli.finding import RUN_HELP
from mosaic.cli.output import console, print_json
from mosaic.cli.parser import Parser
from mosaic.cli.reserved import Request
from mosaic.contract.outside import read_json
from mosaic.contract.paths import RunPaths
from mosaic.contract.sizes import bytes_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mosaic.analytics.artifacts import Artifact
    from mosaic.client import RunRecord

_MOST_FILES = 30


def parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        "show",
        "RUN [options]",
        "Everything about one run: how it stands, its numbers, its history, its files.",
        examples=("last", "01K9ZW --json"),
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_general(json="the run with history, headline, process ids and files")
    return parser


def run(args: argparse.Namespace) -> int:
    from mosaic.cli.connecting import connect
    from mosaic.cli.finding import find_run
    from mosaic.cli.shapes import full_run_json

    with connect(args) as client:
        found = find_run(client, args.run)
        files = client.artifacts(found.run_id)
    if args.json:
        print_json(full_run_json(found, files))
    else:
        for part in (_facts(found), _history(found), _files(files)):
            console().print(part)
    return 0


def _facts(run: RunRecord) -> RenderableType:
    from rich.text import Text

    from mosaic.cli.live.board import Row

    row, extras = Row.from_record(run), run.worker_config.get("extras") or {}
    elapsed = row.elapsed()
    shown = words.waiting(run.reason) if row.state == "waiting" else row.starting
    state = Text(shown, style=words.style(row.state))
    if run.reason and row.state != "waiting":
        state.append(f"  {run.reason.removeprefix(f'{row.state} ')}", style="default")
    if row.stall is not None:
        state.append(f"  {row.stall}", style="default")
    facts: list[tuple[str, Any]] = [
        ("run", f"{run.run_id}  {run.run_name}"),
        ("trains", row.name),
        ("state", state),
        ("submitted", f"{words.moment(run.submitted_at)} ({words.age(run.submitted_at)})"),
        ("time", None if elapsed is None else words.duration(elapsed)),
        ("stack", "\n".join((run.headline.get("stall") or {}).get("stack", ()))),
        ("phase", words.phase(run.headline.get("script_phase"))),
        ("stage", words.stage(run.headline.get("curriculum"))),
        *_numbers(run),
        ("parameters", _settings(extras.get("algo_params"))),
        ("computed by", _computed(run)),
        ("goes on from", words.place(extras["checkpoint_path"]) if extras.get("checkpoint_path") else None),
        ("tags", ", ".join(run.tags)),
        ("notes", run.notes),
        *_place(run),
        ("exit code", str(run.exit_code) if run.exit_code else None),
        ("processes", _processes(run)),
        ("folder", words.place(run.run_dir)),
    ]
    return _grid([(label, value) for label, value in facts if value])


def _numbers(run: RunRecord) -> list[tuple[str, str]]:
    head = run.headline
    if not head.get("step"):
        return []
    total = f" of {words.whole(head['total_steps'])}" if head.get("total_steps") else ""
    returns = f"mean {words.short(head.get('mean_return'))}   last {words.short(head.get('last_return'))}"
    return [
        ("steps", f"{words.whole(head['step'])}{total}   {words.whole(head.get('sps'))} per second"),
        ("return", f"{returns}   {words.whole(head.get('episodes'))} episodes"),
        ("time goes to", words.shares(head.get("time_shares") or {})),
    ]


def _place(run: RunRecord) -> list[tuple[str, str]]:
    """What a run that has not ended reserves, its limits, and where it stands in the queue."""
    if run.ended:
        return []
    request, schedule = Request.of(run), run.config["schedule"]
    minutes, restarts = schedule["max_wallclock_minutes"], schedule["max_restarts"]
    limits = [f"{minutes:g} minutes of work"] if minutes else []
    limits += [f"{restarts} restart{'s' * (restarts > 1)}"] if restarts else []
    waits = run.status == "INIT"
    return [
        ("needs" if waits else "holds", request.needs() if waits else request.holds()),
        ("priority", str(run.priority) if waits or run.priority else ""),
        ("limits", ", ".join(limits)),
    ]


def _settings(params: dict[str, Any] | None) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in (params or {}).items())


def _computed(run: RunRecord) -> str:
    """What computes the losses, a kernel or torch, and why."""
    try:
        losses = read_json(RunPaths(Path(run.run_dir)).provenance)["losses"]
        said = dict.fromkeys(f"{loss['by']}: {loss['why']}" for loss in losses.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return "; ".join(said)


def _processes(run: RunRecord) -> str:
    if run.ended:
        return ""
    known = {"supervisor": run.supervisor_pid, "training": run.training_pid}
    return ", ".join(f"{name} {pid}" for name, pid in known.items() if pid)


def _grid(rows: list[tuple[str, Any]]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=12)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(label, Text(value) if isinstance(value, str) else value)
    return table


def _history(run: RunRecord) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    table.add_column("\nHistory", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True, style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    before = run.history[0].at if run.history else 0.0
    for entry in run.history:
        table.add_row(
            words.moment(entry.at),
            f"+{words.duration(entry.at - before)}",
            f"{entry.status:<5} {words.state(entry.status, entry.outcome)}",
            Text(entry.reason or ""),
        )
        before = entry.at
    return table


def _files(files: Sequence[Artifact]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    table.add_column("\nFiles", justify="left", overflow="fold")
    table.add_column("", justify="right", no_wrap=True)
    for file in files[:_MOST_FILES]:
        table.add_row(Text(file.path), bytes_text(file.size))
    if len(files) > _MOST_FILES:
        rest = files[_MOST_FILES:]
        table.add_row(f"and {len(rest)} more", bytes_text(sum(file.size for file in rest)))
    if not files:
        table.add_row("none", "")
    return table
