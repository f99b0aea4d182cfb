"""Following runs, and the ways to show them: a live panel, plain lines, JSON lines, nothing."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self, cast

from mosaic.cli import words
from mosaic.cli.live.board import Board, Row
from mosaic.cli.output import console, print_json_line, say
from mosaic.cli.words import program
from mosaic.contract.errors import UserError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live_render import VerticalOverflowMethod

    from mosaic.client import Client, HistoryEntry, RunHeadline

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
        print_json_line(asdict(update))


class PlainView(View):
    """A line at each state change, and one every ten seconds while a run trains."""

    def __init__(self, board: Board) -> None:
        self._several = len(board.rows) > 1
        self._board = board
        self._said: dict[str, str] = {}
        self._at: dict[str, float] = {}

    def __enter__(self) -> Self:
        for row in self._board.rows.values():
            say(f"{row.name}: run {row.run_id} in {words.place(row.run_dir)}")
            self._say(row)
        return self

    def show(self, row: Row, update: HistoryEntry | RunHeadline) -> None:
        due = row.status == "EXEC" and time.monotonic() - self._at.get(row.run_id, 0.0) >= _LINE_SECONDS
        if due or self._said.get(row.run_id) != _news(row):
            self._say(row)

    def _say(self, row: Row) -> None:
        self._said[row.run_id], self._at[row.run_id] = _news(row), time.monotonic()
        say(plain_line(row, self._several))


def _state(row: Row) -> str:
    """The state with what a waiting run waits for, and why a run starts again."""
    if row.state == "restarting" and row.restart:
        return row.restart
    if row.stall is not None:
        return f"stalled, {row.stall}"
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
        from rich.live import Live

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
        from mosaic.cli.live.panel import render

        return render(self._board)

    def _redraw(self) -> RenderableType:
        from rich.control import Control

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
    from mosaic.cli.live.frames import FramesView

    return FramesView(board)


def follow(client: Client, board: Board, view: View) -> None:
    """Keep the board up to date until each of its runs has ended."""
    from mosaic.client import RunRecord, RunRemoved

    only = next(iter(board.rows)) if len(board.rows) == 1 else ""
    with view:
        if board.all_ended():
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
                if board.all_ended():
                    return
