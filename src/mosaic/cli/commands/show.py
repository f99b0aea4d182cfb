"""`show`, `watch` and `logs`: a run in full, as it goes on, and what it has printed."""

from __future__ import annotations

import argparse
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Column, Table
from rich.text import Text

from mosaic.analytics.artifacts import Artifact, read_losses
from mosaic.cli.commands.daemon import holds_text, needs_text
from mosaic.cli.launch import exit_code
from mosaic.cli.live.board import Board, Row
from mosaic.cli.live.summary import print_summary
from mosaic.cli.live.views import JsonView, follow, view_for
from mosaic.cli.output import (
    as_left,
    byte_lines,
    console,
    facts,
    place_text,
    print_json,
    program,
    say,
    say_raw,
    text_of,
)
from mosaic.cli.runs import connect, find_run, find_runs, run_json
from mosaic.client import Client, RunRecord
from mosaic.contract import words
from mosaic.contract.errors import NotFoundError
from mosaic.contract.outside import bytes_text
from mosaic.contract.paths import VarPaths
from mosaic.hub.uploads import FAILED, read_upload
from mosaic.tracking import links

if TYPE_CHECKING:
    from mosaic.analytics.store import RunMetrics

_MOST_FILES = 30


def run_show(args: argparse.Namespace) -> int:
    with connect(args) as client:
        found = find_run(client, args.run)
        files = client.artifacts(found.run_id)
        metrics = client.metrics(found.run_id)
    if args.json:
        print_json(full_run_json(found, files, metrics))
    else:
        for part in (_facts(found, metrics.problems), _history(found), _media(metrics), _files(files)):
            if part is not None:
                console().print(part)
    return 0


def full_run_json(run: RunRecord, files: Sequence[Artifact], metrics: RunMetrics) -> dict[str, Any]:
    """Everything about one run."""
    entries = ("seq", "status", "outcome", "at", "reason")
    return {
        **run_json(run),
        "history": [{name: getattr(entry, name) for name in entries} for entry in run.history],
        "supervisor_pid": run.supervisor_pid,
        "training_pid": run.training_pid,
        "worker": run.worker,
        "config": run.config,
        "losses": read_losses(Path(run.run_dir)),
        "trackers": [link.as_json() for link in links(Path(run.run_dir))],
        "hub": asdict(upload) if (upload := read_upload(Path(run.run_dir))) is not None else None,
        "files": [asdict(file) for file in files],
        "media": [
            {"name": track.name, "kind": track.kind, "steps": [one.step for one in track.items]}
            for track in metrics.media()
        ],
        "problems": metrics.problems,
    }


def _facts(run: RunRecord, problems: Sequence[str]) -> Table:
    row, extras, head = Row(run), run.worker_config.get("extras") or {}, run.headline
    elapsed = row.elapsed()
    shown = words.waiting(run.reason) if row.state == "waiting" else row.starting
    state = Text(shown, style=words.style(row.state))
    if run.reason and row.state != "waiting":
        state.append(f"  {run.reason.removeprefix(f'{row.state} ')}", style="default")
    if row.stall is not None:
        state.append(f"  {row.stall}", style="default")
    params = extras.get("algo_params") or {}
    processes = {"supervisor": run.supervisor_pid, "training": run.training_pid} if not run.ended else {}
    losses = dict.fromkeys(f"{loss['by']}: {loss['why']}" for loss in read_losses(Path(run.run_dir)).values())
    gone = "" if not run.ended or Path(run.run_dir).is_dir() else ", which is not there any more"
    rows: list[tuple[str, str | Text | None]] = [
        ("run", f"{run.run_id}  {run.run_name}"),
        ("trains", row.name),
        ("state", state),
        ("submitted", f"{words.moment(run.submitted_at)} ({words.ago(run.submitted_at)})"),
        ("time", None if elapsed is None else words.duration(elapsed)),
        ("stack", "\n".join((head.get("stall") or {}).get("stack", ()))),
        ("phase", words.phase(head.get("script_phase"))),
        ("stage", words.stage(head.get("curriculum"))),
        *words.progress(head),
        ("time goes to", words.shares(head.get("time_shares") or {}) if head.get("step") else ""),
        ("parameters", ", ".join(f"{name}={json.dumps(value)}" for name, value in params.items())),
        ("computed by", "; ".join(losses)),
        ("resumed from", place_text(extras["checkpoint_path"]) if extras.get("checkpoint_path") else None),
        ("checked", _checked(run)),
        ("hub", _hub(run)),
        ("tags", ", ".join(run.tags)),
        ("notes", run.notes),
        ("tracked by", "\n".join(link.text for link in links(Path(run.run_dir)))),
        *_place(run),
        ("exit code", str(run.exit_code) if run.exit_code else None),
        ("processes", ", ".join(f"{name} {pid}" for name, pid in processes.items() if pid)),
        ("folder", place_text(run.run_dir) + gone),
        ("damaged", Text("\n".join(problems), style="yellow") if problems else None),
    ]
    return facts(rows)


def _checked(run: RunRecord) -> str:
    """What was found before the run was queued, line by line."""
    # What it trains stands above, and whether there are pictures is of no use later.
    return "\n".join(
        f"{name}: {told}" for name, told in run.checked if name not in ("environment", "pictures")
    )


def _hub(run: RunRecord) -> str | None:
    """Where the run's model is on the hub, or what to do as it is not."""
    upload = read_upload(Path(run.run_dir))
    if upload is None:
        wanted = (run.worker_config.get("extras") or {}).get("upload_model") and not run.ended
        return "its model is uploaded when the run has completed" if wanted else None
    again = f" `{program()} push {run.run_id}` does it again." if upload.state == FAILED else ""
    return upload.told() + again


def _place(run: RunRecord) -> list[tuple[str, str]]:
    """What a run that has not ended reserves, its limits, and where it stands in the queue."""
    if run.ended:
        return []
    schedule = run.config["schedule"]
    minutes, restarts = schedule["max_wallclock_minutes"], schedule["max_restarts"]
    limits = [f"{minutes:g} minutes of work"] if minutes else []
    limits += [words.count(restarts, "restart")] if restarts else []
    waits = run.status == "INIT"
    return [
        ("needs" if waits else "holds", needs_text(run) if waits else holds_text(run)),
        ("priority", str(run.priority) if waits or run.priority else ""),
        ("limits", ", ".join(limits)),
    ]


def _history(run: RunRecord) -> Table:
    since = Column(justify="right", no_wrap=True, style="dim")
    columns = (Column("\nHistory", no_wrap=True), since, Column(no_wrap=True), Column(overflow="fold"))
    table = Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    before = run.history[0].at if run.history else 0.0
    for entry in run.history:
        table.add_row(
            words.moment(entry.at),
            f"+{words.duration(entry.at - before)}",
            f"{entry.status:<5} {words.state(entry)}",
            Text(entry.reason or ""),
        )
        before = entry.at
    return table


def _media(metrics: RunMetrics) -> Table | None:
    """What the event files hold besides numbers; the window shows it."""
    from mosaic.analytics.media import shown_name

    tracks = metrics.media()
    if not tracks:
        return None
    number = Column(justify="right", no_wrap=True)
    columns = (Column("\nMedia", overflow="fold"), Column(no_wrap=True), number, Column(no_wrap=True))
    table = Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for track in tracks[:_MOST_FILES]:
        first, last = track.items[0].step, track.items[-1].step
        steps = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
        table.add_row(Text(shown_name(track.items[0])), track.kind, f"{len(track.items):,}", steps)
    if rest := tracks[_MOST_FILES:]:
        table.add_row(f"and {len(rest)} more", "", f"{sum(len(one.items) for one in rest):,}")
    return table


def _files(files: Sequence[Artifact]) -> Table:
    columns = (Column("\nFiles", overflow="fold"), Column(justify="right", no_wrap=True))
    table = Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for file in files[:_MOST_FILES]:
        table.add_row(Text(file.path), bytes_text(file.size))
    if rest := files[_MOST_FILES:]:
        table.add_row(f"and {len(rest)} more", bytes_text(sum(file.size for file in rest)))
    if not files:
        table.add_row("none", "")
    return table


def run_watch(args: argparse.Namespace) -> int:
    """Ends like `train`: 0 when every run completed."""
    with connect(args) as client:
        runs = find_runs(client, args.runs)
        board = Board(runs)
        for run in runs if args.json else ():
            print_json(asdict(run.history[-1]), line=True)
        try:
            follow(client, board, JsonView() if args.json else view_for(board, frames=args.frames))
        except KeyboardInterrupt:
            if not args.json:
                say("Left; the runs continue." if len(board.rows) > 1 else "Left; the run continues.")
            raise
        ended = [client.get(run_id) for run_id in board.rows]
        if not args.json:
            print_summary(client, ended)
        return exit_code(ended)


def run_logs(args: argparse.Namespace) -> int:
    with connect(args) as client:
        try:
            run_id = find_run(client, args.run).run_id
        except NotFoundError:
            removed = _find_removed(client.paths, args.run)
            if removed is None:
                raise
            kept = client.paths.run_logs(removed)[args.stream]
            return _tell(removed, [kept.read_bytes()] if kept.exists() else [], args)
        if not args.follow:
            return _tell(run_id, client.logs(run_id, args.stream), args)
        show = _printer(args)
        for line in _followed(client, run_id, args):
            show(line)
    return 0


def _printer(args: argparse.Namespace) -> Callable[[bytes], None]:
    """What shows a line."""
    if args.json:
        return lambda line: print_json({"stream": args.stream, "line": text_of(line)}, line=True)
    return say_raw if args.raw else lambda line: say(as_left(line))


def _tell(run_id: str, log: Iterable[bytes], args: argparse.Namespace) -> int:
    """What a log has now."""
    lines = deque(byte_lines(log), maxlen=args.lines) if args.json or args.lines else byte_lines(log)
    if args.json:
        print_json({"run_id": run_id, "stream": args.stream, "lines": list(map(text_of, lines))})
        return 0
    show = _printer(args)
    for line in lines:
        show(line)
    return 0


def _find_removed(paths: VarPaths, name: str) -> str | None:
    """The id of the only removed run that begins so and whose logs were kept."""
    found = [folder.name for folder in paths.kept_logs("").iterdir() if folder.name.startswith(name.upper())]
    return found[0] if len(found) == 1 else None


def _followed(client: Client, run_id: str, args: argparse.Namespace) -> Iterator[bytes]:
    """All lines, or the last ones there are now; then new ones, with no line cut at the seam."""
    offset = 0
    if args.lines is not None:
        so_far = b"".join(client.logs(run_id, args.stream))
        offset = so_far.rfind(b"\n") + 1
        yield from deque(byte_lines([so_far[:offset]]), maxlen=args.lines)
    yield from byte_lines(client.logs(run_id, args.stream, follow=True, offset=offset))
