"""Submitting runs and staying with them, through Ctrl-C and SIGTERM: what train, rerun and eval share."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from mosaic.cli.app import INTERRUPTED
from mosaic.cli.live.board import Board
from mosaic.cli.live.summary import print_summary
from mosaic.cli.live.views import View, follow, view_for
from mosaic.cli.output import note, print_json, say
from mosaic.cli.runs import connect, run_json
from mosaic.cli.words import program
from mosaic.client import Client, RunRecord
from mosaic.contract.capabilities import DescribingCatalog, find_worker
from mosaic.contract.errors import ConflictError, MosaicError

TERMINATED = 143


class Terminated(BaseException):
    """SIGTERM came."""


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def termination_raises() -> Iterator[None]:
    """SIGTERM becomes an exception, as Ctrl-C already is."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def signals_postponed() -> Iterator[None]:
    """A signal that comes inside takes effect at the end: what was submitted is then known in full."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def wants_cancel() -> bool:
    """Ask whether to cancel. Without a terminal nobody can answer, so that means yes."""
    if not sys.stdin.isatty():
        return True
    answer = "?"
    try:
        while answer not in ("", "d", "detach", "c", "cancel"):
            print("\n[d]etach or [c]ancel (Enter: detach)? ", end="", file=sys.stderr, flush=True)
            answer = sys.stdin.readline().strip().lower()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return False
    return answer in ("c", "cancel")


Report = Callable[[Client, list[RunRecord]], None]
Shape = Callable[[RunRecord], dict[str, Any]]


def launch(
    configs: Sequence[Mapping[str, Any]],
    args: argparse.Namespace,
    report: Report = print_summary,
    shape: Shape = run_json,
) -> int:
    """Submit each config, follow the runs to their end, tell how it went; gives the exit code.

    `report` tells it to people, `shape` is what --json prints of a run.
    """
    if args.dry_run:
        from mosaic.cli.dry_run import dry_run

        return dry_run(configs, args)
    if warning := _warning(configs[0]):
        note(warning)
    with connect(args, make=True) as client, termination_raises():
        return _Launch(client, args.json, report, shape).go(configs, args.detach)


def _warning(config: Mapping[str, Any]) -> str:
    """What the worker has to say of a run before it starts."""
    request = config["metadata"]["worker"]
    worker = find_worker(request["type"])
    catalog = worker.load_catalog() if worker.catalog else None
    return catalog.warning(request["config"]) if isinstance(catalog, DescribingCatalog) else ""


class _Launch:
    def __init__(self, client: Client, as_json: bool, report: Report, shape: Shape) -> None:
        self._client = client
        self._json = as_json
        self._tell = report
        self._shape = shape
        self._board = Board()

    def go(self, configs: Sequence[Mapping[str, Any]], detach: bool) -> int:
        try:
            with signals_postponed():
                self._submit(configs)
            if not detach:
                follow(self._client, self._board, self._view())
        except KeyboardInterrupt:
            if not wants_cancel():
                return self._leave()
            return self._cancel(INTERRUPTED, "asked with Ctrl-C where it was started")
        except Terminated:
            return self._cancel(TERMINATED, "the command that started it was told to end")
        return self._leave() if detach else self._report()

    def _view(self) -> View:
        return View() if self._json else view_for(self._board)

    def _submit(self, configs: Sequence[Mapping[str, Any]]) -> None:
        try:
            for config in configs:
                self._board.add(self._client.get(self._client.submit(config).run_id))
        except MosaicError:
            # All or none: a refused run leaves no half of its family behind.
            self._ask_to_end("another run of the same command was refused")
            raise

    def _leave(self) -> int:
        runs = self._records()
        if self._json:
            self._print_json(runs)
            return 0
        ids = " ".join(run.run_id for run in runs)
        sentence = "The runs go on" if len(runs) > 1 else "The run goes on"
        say(f"{sentence} without this terminal. To look again, or to cancel:")
        say(f"  {program()} watch {ids}\n  {program()} cancel {ids}")
        return 0

    def _cancel(self, code: int, reason: str) -> int:
        self._ask_to_end(reason)
        try:
            follow(self._client, self._board, self._view())
        except (KeyboardInterrupt, Terminated):
            note("Not waiting any longer; the runs are still being ended.")
            return code
        self._report()
        return code

    def _ask_to_end(self, reason: str) -> None:
        for row in self._board.live:
            try:
                self._client.cancel(row.run_id, reason)
            except ConflictError:
                continue
            row.ending = True

    def _report(self) -> int:
        runs = self._records()
        if self._json:
            self._print_json(runs)
        else:
            self._tell(self._client, runs)
        return exit_code(runs)

    def _records(self) -> list[RunRecord]:
        return [self._client.get(run_id) for run_id in self._board.rows]

    def _print_json(self, runs: list[RunRecord]) -> None:
        shapes = [self._shape(run) for run in runs]
        print_json(shapes[0] if len(shapes) == 1 else {"runs": shapes})


def exit_code(runs: Sequence[RunRecord]) -> int:
    """0 when every run completed."""
    return 0 if all(run.outcome == "completed" for run in runs) else 1
