"""Following runs, and the ways to show them: a live panel, plain lines, JSON lines, nothing."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, cast

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.live_render import VerticalOverflowMethod
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from mosaic.cli.live.board import Board, Row
from mosaic.cli.output import console, cut, facts, place_text, print_json, program, say
from mosaic.client import Client, HistoryEntry, RunHeadline, RunRecord, RunRemoved
from mosaic.contract import words
from mosaic.contract.errors import UserError

_LINE_SECONDS = 10.0


class View:
    """Shows a board while it is entered; this one shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def show(self, row: Row, update: HistoryEntry | RunHeadline) -> None:
        """`row` has taken in `update`."""


class JsonView(View):
    """A JSON line for each update."""

    def show(self, row: Row, update: HistoryEntry | RunHeadline) -> None:
        # A state change has `status`, a new headline has `headline`.
        print_json(asdict(update), line=True)


class PlainView(View):
    """A line at each state change, and one every ten seconds while a run trains."""

    def __init__(self, board: Board) -> None:
        self._several = len(board.rows) > 1
        self._board = board
        self._said: dict[str, str] = {}
        self._at: dict[str, float] = {}
        # Of trackers, which are no news with every line.
        self._problems: set[str] = set()

    def __enter__(self) -> Self:
        for row in self._board.rows.values():
            say(f"{row.name}: run {row.run_id} in {place_text(row.run_dir)}")
            self._say(row)
        return self

    def show(self, row: Row, update: HistoryEntry | RunHeadline) -> None:
        due = row.status == "EXEC" and time.monotonic() - self._at.get(row.run_id, 0.0) >= _LINE_SECONDS
        if due or self._said.get(row.run_id) != _news(row):
            self._say(row)

    def _say(self, row: Row) -> None:
        self._said[row.run_id], self._at[row.run_id] = _news(row), time.monotonic()
        say(plain_line(row, self._several))
        for problem in (row.headline.get("trackers") or {}).values():
            if problem not in self._problems:
                self._problems.add(problem)
                say(f"{row.name}: {problem}" if self._several else problem)


def _state(row: Row, gap: str = ", ") -> str:
    """The state with what a waiting run waits for, why a run starts again, and what it stalls in."""
    if row.state == "restarting" and row.restart:
        return row.restart
    if row.stall is not None:
        return f"stalled{gap}{row.stall}"
    return words.waiting(row.reason) if row.state == "waiting" else row.starting


def _news(row: Row) -> str:
    """What is told at once when it changes."""
    head = row.headline
    return f"{_state(row)} {words.phase(head.get('script_phase'))} {words.stage(head.get('curriculum'))}"


def plain_line(row: Row, several: bool) -> str:
    """A run in one line, without colours or cursor movements."""
    state = _state(row)
    start = f"{row.name}: {state}" if several else state
    if row.ended or row.status == "FAULT":
        return f"{start} ({row.reason})" if row.reason else start
    head = row.headline
    if row.status != "EXEC":
        return start
    phase = words.phase(head.get("script_phase"))
    start += f" phase {phase}" if phase else ""
    stage = words.stage(head.get("curriculum"))
    start += f" stage {stage}" if stage else ""
    if not head.get("step"):
        return start
    parts = [words.evaluation(head) or f"{words.whole(head['step'])} steps"]
    if head.get("total_steps"):
        parts = [
            words.percent(head.get("progress")),
            f"{words.whole(head['step'])} of {words.whole(head['total_steps'])} steps",
        ]
    parts.append(f"{words.whole(head.get('sps'))} steps/s")
    if head.get("last_return") is not None:
        parts.append(
            f"mean return {words.short(head.get('mean_return'))} (last {words.short(head['last_return'])})"
        )
    left = row.seconds_left()
    if left is not None:
        parts.append(f"{words.clock(left)} left")
    return f"{start}  {', '.join(parts)}"


class LiveView(View):
    """A panel that is redrawn in place a few times a second, and wiped at the end."""

    redraws_per_second = 4
    overflow: VerticalOverflowMethod = "ellipsis"

    def __init__(self, board: Board) -> None:
        self._board = board
        self._width = console().width
        self._live = Live(
            get_renderable=self._redraw,
            console=console(),
            refresh_per_second=self.redraws_per_second,
            transient=True,
            # Our own streams are plain; rich would take the escape sequences in what is printed for colours.
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow=self.overflow,
        )

    def draw(self) -> RenderableType:
        """What is to be seen now."""
        return render(self._board)

    def _redraw(self) -> RenderableType:
        before, self._width = self._width, console().width
        if self._width < before:
            # The terminal has broken the lines of the panel in two, or more: how many it takes now, only the
            # terminal knows.
            console().control(Control.clear(), Control.home())
        return self.draw()

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()


def view_for(board: Board, frames: bool = False) -> View:
    """The live panel at a terminal that can move its cursor, else plain lines; `frames` adds the pictures."""
    screen = console()
    able = screen.is_terminal and not screen.is_dumb_terminal
    if not frames:
        return LiveView(board) if able else PlainView(board)
    if not able:
        raise UserError(f"--frames needs a terminal; `{program()} snapshot RUN now.png` saves a picture.")
    if len(board.rows) > 1:
        raise UserError("--frames shows the pictures of one run: name only one.")
    from mosaic.cli.commands.pictures import FramesView

    return FramesView(board)


def follow(client: Client, board: Board, view: View) -> None:
    """Keep the board up to date until each of its runs has ended."""
    only = next(iter(board.rows)) if len(board.rows) == 1 else ""
    with view:
        if not board.live:
            return
        updates = cast(
            "Generator[HistoryEntry | RunHeadline | RunRecord | RunRemoved, Any, None]",
            client.watch(only, board.last_seq, headlines=True),
        )
        with closing(updates):
            for update in updates:
                if isinstance(update, RunRecord | RunRemoved):
                    continue
                row = board.apply(update)
                if row is not None:
                    view.show(row, update)
                if not board.live:
                    return


_MOST_RESTARTS = 3
_BY_WEIGHT = ("done", "mean return", "left", "steps/s", "last")
_LEAST_WIDTH = 16
"""Of a seed and a state, with a space behind them and the id."""


def render(board: Board) -> RenderableType:
    """The board as it is now."""
    rows = list(board.rows.values())
    if len(rows) == 1:
        return Group(_heading(rows[0]), _state_line(rows[0]), _numbers(rows[0]))
    return _many_runs(rows)


def _many_runs(rows: list[Row]) -> RenderableType:
    """A row for each run; what they share stands above."""
    alike = len({row.title for row in rows}) == 1
    ids = words.unique_prefixes([row.run_id for row in rows])
    above = Text(rows[0].title if alike else f"{len(rows)} runs", style="bold")
    notes = [*_notes(rows, ids, alike), f"folders: {place_text(Path(rows[0].run_dir).parent)}"]
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
                cut(str(row.seed) if self._alike else row.name),
                self._ids[row.run_id],
                _coloured(row),
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
    name, run_id = Column(ratio=1, no_wrap=True, overflow="ellipsis"), Column(justify="right", no_wrap=True)
    table = Table.grid(name, run_id, expand=True, padding=(0, 1))
    table.add_row(Text(row.name, style="bold"), Text(row.run_id, style="dim"))
    return table


def _state_line(row: Row) -> RenderableType:
    if row.status not in ("EXEC", "PAUSE") or row.starts_with or not row.headline.get("step"):
        return _state_in_full(row)
    done, rest = (Column(justify="right", no_wrap=True) for _ in range(2))
    columns = (Column(no_wrap=True), Column(ratio=1), done, rest)
    table = Table.grid(*columns, expand=True, padding=(0, 2, 0, 0))
    left = row.seconds_left()
    progress = words.percent(row.headline.get("progress"))
    shown = _state_in_full(row) if row.status == "PAUSE" else _coloured(row)
    table.add_row(shown, _bar(row), progress, "" if left is None else f"{words.clock(left)} left")
    return table


def _state_in_full(row: Row) -> Text:
    """The state with what explains it."""
    said = _state(row, gap="  ")
    if row.state == "paused":
        said = f"paused for {words.clock(time.time() - row.moved_at)}"
    reason = f"  {row.reason}" if row.reason and row.status == "FAULT" else ""
    return Text.assemble((said, words.style("stalled" if row.stall else row.state)), reason)


def _numbers(row: Row) -> RenderableType:
    head, elapsed = row.headline, row.elapsed()
    stage, shares = head.get("curriculum"), words.shares(head.get("time_shares") or {})
    rows: list[tuple[str, str | Text | None]] = [("phase", words.phase(head.get("script_phase")))]
    if stage:
        rows.append(("stage", f"{words.stage(stage)}   {words.percent(stage.get('progress'))}"))
    if batch := head.get("evaluation"):
        mean, std, least, most = (words.short(batch.get(name)) for name in ("mean", "std", "min", "max"))
        rows.append(("played", words.evaluation(head)))
        rows.append(("batch", f"{words.whole(batch['batch'])}   mean {mean} ± {std}   {least} to {most}"))
    rows += words.progress(head)
    if elapsed is not None:
        rows.append(("time", f"{words.clock(elapsed)}{'   ' if shares else ''}{shares}"))
    if row.restart and row.state != "restarting" and not row.ended:
        again = row.restart.removeprefix("restart ")
        rows.append(("restart", Text(again, style=words.style("restarting"), overflow="fold")))
    rows += [("tracker", problem) for problem in (head.get("trackers") or {}).values()]
    if row.state == "paused":
        command = f"{program()} resume {row.run_id}"
        rows.append(("to go on", Text(command, style="cyan", overflow="fold")))
    return facts([*rows, ("folder", place_text(row.run_dir))], width=8)


def _coloured(row: Row) -> Text:
    return Text(row.state, style=words.style(row.state))


def _bar(row: Row) -> RenderableType:
    progress = row.headline.get("progress")
    if progress is None:
        return Text("")
    done = "green" if row.outcome == "completed" else "yellow" if row.status == "PAUSE" else "cyan"
    return ProgressBar(total=1.0, completed=progress, style="bright_black", complete_style=done)
