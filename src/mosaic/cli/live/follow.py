"""Feeding a board from the daemon while a view shows it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from mosaic.cli.live.board import Board, Row

if TYPE_CHECKING:
    from mosaic.client import Client, HistoryEntry, RunHeadline


class View(Protocol):
    """Shows a board while it is entered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, row: Row, update: HistoryEntry | RunHeadline) -> None:
        """`row` has taken in `update`."""


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
