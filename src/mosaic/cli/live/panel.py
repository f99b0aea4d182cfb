"""The live panel: one run in full, or a table with a row for each of several."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mosaic.cli import words
from mosaic.cli.live.board import Board, Row
from mosaic.cli.output import facts
from mosaic.cli.words import program

_MOST_RESTARTS = 3
_BY_WEIGHT = ("done", "mean return", "left", "steps/s", "last")
_LEAST_WIDTH = 16
"""Of a seed and a state, with a space behind them and the id."""


def render(board: Board) -> RenderableType:
    """The board as it is now."""
    rows = list(board.rows.values())
    return one_run(rows[0]) if len(rows) == 1 else many_runs(rows)


def one_run(row: Row) -> RenderableType:
    """A run: its state and progress, then its numbers."""
    return Group(_heading(row), _state_line(row), _numbers(row))


def many_runs(rows: list[Row]) -> RenderableType:
    """A row for each run; what they share stands above."""
    alike = len({row.title for row in rows}) == 1
    ids = words.unique_prefixes([row.run_id for row in rows])
    above = Text(rows[0].title if alike else f"{len(rows)} runs", style="bold")
    notes = [*_notes(rows, ids, alike), f"folders: {words.place(Path(rows[0].run_dir).parent)}"]
    return Group(
        above, _Rows(rows, ids, alike), *(Text(note, style="dim", overflow="fold") for note in notes)
    )


class _Rows:
    """The table of several runs, with as many of its numbers as there is room for."""

    def __init__(self, rows: list[Row], ids: Mapping[str, str], alike: bool) -> None:
        self._rows, self._ids, self._alike = rows, ids, alike

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        numbers = [_row_numbers(row) for row in self._rows]
        widths = {title: max(len(title), *(len(one[title]) for one in numbers)) + 1 for title in numbers[0]}
        longest = max(map(len, self._ids.values()))
        left = options.max_width - longest - _LEAST_WIDTH
        shown = []
        for title in _BY_WEIGHT:
            left -= widths[title]
            if left >= 0:
                shown.append(title)
        table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="dim", show_edge=False)
        # Only the name gives way when the terminal is narrow.
        table.add_column("seed" if self._alike else "run", min_width=4)
        table.add_column("id", no_wrap=True, style="dim", min_width=longest)
        table.add_column("state", no_wrap=True, min_width=9)
        if left > 1:
            table.add_column("", ratio=1)
        for title in numbers[0]:
            if title in shown:
                table.add_column(title, justify="right", no_wrap=True)
        for row, told in zip(self._rows, numbers, strict=True):
            table.add_row(
                Text(str(row.seed) if self._alike else row.name, no_wrap=True, overflow="ellipsis"),
                self._ids[row.run_id],
                _state(row),
                *([_bar(row)] if left > 1 else []),
                *(told[title] for title in told if title in shown),
            )
        yield table


def _row_numbers(row: Row) -> dict[str, str]:
    head, left = row.headline, row.seconds_left()
    return {
        "done": words.percent(head.get("progress")),
        "left": "" if left is None else words.clock(left),
        "steps/s": words.whole(head.get("sps")),
        "mean return": words.short(head.get("mean_return")),
        "last": words.short(head.get("last_return")),
    }


def _notes(rows: list[Row], ids: Mapping[str, str], alike: bool) -> list[str]:
    """What the first waiting run waits for, and why runs were started again."""
    notes = [words.waiting(row.reason) for row in rows if row.waits and row.reason][:1]
    again = [row for row in rows if row.restart and not row.ended]
    notes += [f"{f'seed {row.seed}' if alike else row.name}: {row.restart}" for row in again[:_MOST_RESTARTS]]
    if len(again) > _MOST_RESTARTS:
        notes.append(f"and {len(again) - _MOST_RESTARTS} more restarts")
    return [words.with_short_ids(note, ids) for note in notes]


def _heading(row: Row) -> RenderableType:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column(justify="right", no_wrap=True)
    table.add_row(Text(row.name, style="bold"), Text(row.run_id, style="dim"))
    return table


def _state_line(row: Row) -> RenderableType:
    if row.status not in ("EXEC", "PAUSE") or row.starts_with or not row.headline.get("step"):
        return _state_in_full(row)
    table = Table.grid(expand=True, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    left = row.seconds_left()
    progress = words.percent(row.headline.get("progress"))
    shown = _state_in_full(row) if row.status == "PAUSE" else _state(row)
    table.add_row(shown, _bar(row), progress, "" if left is None else f"{words.clock(left)} left")
    return table


def _state_in_full(row: Row) -> Text:
    """The state with what explains it."""
    paused = row.paused_for()
    if row.state == "waiting":
        return Text(words.waiting(row.reason), style=words.style("waiting"))
    if row.state == "restarting" and row.restart:
        return Text(row.restart, style=words.style("restarting"), overflow="fold")
    if row.state == "paused" and paused is not None:
        return Text(f"paused for {words.clock(paused)}", style=words.style("paused"))
    if row.stall is not None:
        return Text(f"stalled  {row.stall}", style=words.style("stalled"), overflow="fold")
    if row.starts_with:
        return Text(row.starting, style=words.style(row.state))
    reason = f"  {row.reason}" if row.reason and row.status == "FAULT" else ""
    return Text.assemble(_state(row), reason)


def _numbers(row: Row) -> RenderableType:
    head, elapsed = row.headline, row.elapsed()
    stage, shares = head.get("curriculum"), words.shares(head.get("time_shares") or {})
    rows: list[tuple[str, str | Text | None]] = [("phase", words.phase(head.get("script_phase")))]
    if stage:
        rows.append(("stage", f"{words.stage(stage)}   {words.percent(stage.get('progress'))}"))
    if batch := head.get("evaluation"):
        scores = f"mean {words.short(batch['mean'])} ± {words.short(batch['std'])}"
        spread = f"{words.short(batch['min'])} to {words.short(batch['max'])}"
        rows.append(("played", words.evaluation(head)))
        rows.append(("batch", f"{words.whole(batch['batch'])}   {scores}   {spread}"))
    rows += words.progress(head)
    if elapsed is not None:
        rows.append(("time", f"{words.clock(elapsed)}{'   ' if shares else ''}{shares}"))
    if row.restart and row.state != "restarting" and not row.ended:
        again = row.restart.removeprefix("restart ")
        rows.append(("restart", Text(again, style=words.style("restarting"), overflow="fold")))
    if row.state == "paused":
        command = f"{program()} resume {row.run_id}"
        rows.append(("to go on", Text(command, style="cyan", overflow="fold")))
    return facts([*rows, ("folder", words.place(row.run_dir))], width=8)


def _state(row: Row) -> Text:
    return Text(row.state, style=words.style(row.state))


def _bar(row: Row) -> RenderableType:
    progress = row.headline.get("progress")
    if progress is None:
        return Text("")
    done = "green" if row.outcome == "completed" else "yellow" if row.status == "PAUSE" else "cyan"
    return ProgressBar(total=1.0, completed=progress, style="bright_black", complete_style=done)
