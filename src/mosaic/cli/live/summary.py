"""What stands on the screen when runs have ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from mosaic.cli import words
from mosaic.cli.lines import as_left, last_lines
from mosaic.cli.live.board import Row
from mosaic.cli.output import console, say
from mosaic.cli.program import program
from mosaic.contract.paths import RunPaths

if TYPE_CHECKING:
    from mosaic.analytics.artifacts import Artifact
    from mosaic.client import Client, RunRecord

_STDERR_LINES = 12
_MARKS = {"completed": "✓", "cancelled": "■"}


def print_summary(client: Client, runs: Sequence[RunRecord]) -> None:
    """How the runs went, where their results are and what to do next."""
    if len(runs) == 1:
        _print_one(client, runs[0])
    else:
        _print_many(client, runs)


def _print_one(client: Client, run: RunRecord) -> None:
    row = Row.from_record(run)
    console().print(verdict(row))
    if run.reason and run.outcome != "cancelled":
        console().print(Text(run.reason, style="red"))
    table = facts_table()
    head = run.headline
    if head.get("mean_return") is not None:
        table.add_row("mean return", words.short(head["mean_return"]))
    if head.get("script_phase"):
        table.add_row("phase", Text(words.phase(head["script_phase"]), overflow="fold"))
    if head.get("curriculum"):
        table.add_row("stage", Text(words.stage(head["curriculum"]), overflow="fold"))
    if head.get("step"):
        table.add_row("steps", f"{words.whole(head['step'])}   {words.whole(head.get('sps'))} per second")
    if row.restart:
        table.add_row("restarts", row.restart.removeprefix("restart ").partition(" after:")[0])
    table.add_row("run", run.run_id)
    table.add_row("folder", _path(run.run_dir))
    for label, path in _results(client.artifacts(run.run_id)):
        table.add_row(label, _path(path))
    console().print(table)
    if run.outcome == "failed":
        _print_stderr(client, run)
    # With a full checkpoint a run that was stopped goes on exactly where it was.
    saved = RunPaths(Path(run.run_dir)).full_checkpoints()
    _print_next(run.outcome, [run.run_id], again="train --resume" if saved else "rerun")


def _print_many(client: Client, runs: Sequence[RunRecord]) -> None:
    rows = [Row.from_record(run) for run in runs]
    short = words.unique_prefixes([row.run_id for row in rows])
    same = len({row.title for row in rows}) == 1
    if same:
        console().print(Text(rows[0].title, style="bold"))
    console().print(_outcomes(rows, short, same))
    facts = facts_table()
    returns = [row.headline["mean_return"] for row in rows if row.outcome == "completed" and _has_return(row)]
    if same and len(returns) > 1:
        spread = f"{words.short(fmean(returns))} ± {words.short(stdev(returns))} over {len(returns)} runs"
        facts.add_row("mean return", spread)
    facts.add_row("folders", _path(Path(rows[0].run_dir).parent))
    console().print(facts)
    failed = next((run for run in runs if run.outcome == "failed"), None)
    if failed is None:
        _print_next("completed", list(short.values()))
        return
    console().print(Text(f"{Row.from_record(failed).name}: {failed.reason}", style="red"))
    _print_stderr(client, failed)
    _print_next("failed", [failed.run_id])


def _outcomes(rows: Sequence[Row], short: Mapping[str, str], same: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("seed" if same else "run", overflow="ellipsis", no_wrap=True)
    for title in ("time", "mean return"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("id", no_wrap=True)
    for row in rows:
        elapsed = row.elapsed()
        table.add_row(
            _state(row),
            str(row.seed) if same else row.name,
            "–" if elapsed is None else words.duration(elapsed),
            words.short(row.headline.get("mean_return")),
            short[row.run_id],
        )
    return table


def _has_return(row: Row) -> bool:
    return row.headline.get("mean_return") is not None


def verdict(row: Row) -> Text:
    """How a run ended, after how long, and which it is."""
    elapsed = row.elapsed()
    took = f" after {words.duration(elapsed)}" if elapsed is not None else ""
    return Text.assemble(_state(row), took, "   ", (row.name, "bold"))


def _state(row: Row) -> Text:
    return Text(f"{_MARKS.get(row.outcome or '', '✗')} {row.state}", style=words.style(row.state))


def facts_table() -> Table:
    """A grid of labels and values."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=13)
    table.add_column(overflow="fold")
    return table


def _results(files: Iterable[Artifact]) -> list[tuple[str, str]]:
    """What people look for, by paths inside the run's folder: the folders of event files and the models."""
    by_kind: dict[str, dict[str, None]] = {"events": {}, "model": {}}
    for file in files:
        if file.kind == "events":
            by_kind["events"][str(Path(file.path).parent)] = None
        elif file.kind == "model":
            by_kind["model"][file.path] = None
    labels = {"events": "  event files", "model": "  model"}
    return [(labels[kind], path) for kind, paths in by_kind.items() for path in paths]


def _path(path: str | Path) -> Text:
    return Text(words.place(path) if Path(path).is_absolute() else str(path), overflow="fold")


def _print_stderr(client: Client, run: RunRecord) -> None:
    lines = last_lines(client.logs(run.run_id, "stderr"), _STDERR_LINES)
    if lines:
        console().print(Text("last lines of its stderr:", style="dim"))
        for line in lines:
            # Not broken by us: people copy these lines, and their terminals break them as well.
            say(f"  {as_left(line)}")


def _print_next(outcome: str | None, ids: list[str], again: str = "rerun") -> None:
    name, last = program(), f"{again} {ids[0]}"
    first = {"failed": f"logs {ids[0]} --stderr", "cancelled": last, "timed_out": last}
    commands = [f"{name} {first.get(outcome or '', 'tensorboard ' + ' '.join(ids))}", f"{name} show {ids[0]}"]
    table = facts_table()
    for at, command in enumerate(commands):
        table.add_row("" if at else "next", Text(command, style="cyan", overflow="fold"))
    console().print(table)
