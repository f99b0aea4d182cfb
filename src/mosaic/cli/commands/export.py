"""`export` and `import`: runs as one file, and back, on another machine too."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TextIO, cast

from mosaic.cli.output import place_text, print_json, program, say
from mosaic.cli.runs import choose_runs, connect
from mosaic.client.archive import Imported, check_archive_path, export_runs, import_archive
from mosaic.contract import words
from mosaic.contract.outside import bytes_text

_REDRAW_SECONDS = 0.2


def run_export(args: argparse.Namespace) -> int:
    check_archive_path(args.output)
    with connect(args) as client, shown_progress() as progress:
        runs = [run.run_id for run in choose_runs(client, args.wanted, args)]
        made = export_runs(client, runs, args.output, not args.without_checkpoints, progress)
    if args.json:
        print_json({**asdict(made), "path": str(made.path)})
    else:
        what = f"{words.count(len(made.run_ids), 'run')}, {words.count(made.files, 'file')}"
        say(f"{place_text(made.path)}: {what}, {bytes_text(made.size)}")
    return 0


def run_import(args: argparse.Namespace) -> int:
    with connect(args, make=True) as client, shown_progress() as progress:
        found = import_archive(client, args.file, args.as_new, progress)
    if args.json:
        print_json([asdict(one) for one in found])
        return 0
    for one in found:
        say(_told(one))
    if fresh := [one.run_id for one in found if one.new]:
        say(f"To see what was imported:\n  {program()} show {fresh[0]}")
    return 0


def _told(one: Imported) -> str:
    if not one.new:
        return f"{one.run_id} already exists, with the same files"
    return f"{one.run_id} is imported" + (
        f", as a copy of {one.archived_id}" * (one.run_id != one.archived_id)
    )


@contextmanager
def shown_progress() -> Iterator[Callable[[int, int, str], None]]:
    """How far a long work is, on one line of a terminal, which is gone afterwards."""
    terminal, drawn, begun = sys.stderr.isatty(), 0.0, time.monotonic()

    def progress(done: int, total: int, what: str) -> None:
        nonlocal drawn
        now = time.monotonic()
        # What is done at once needs no line.
        if terminal and now - max(drawn, begun) > _REDRAW_SECONDS:
            drawn = now
            print(
                f"\r\x1b[K{what} {words.percent(done / total if total else 1.0)}",
                end="",
                file=_raw(),
                flush=True,
            )

    try:
        yield progress
    finally:
        if drawn:
            print("\r\x1b[K", end="", file=_raw(), flush=True)


def _raw() -> TextIO:
    """The terminal itself: the stream before it shows our escape sequences as letters."""
    return cast("TextIO", getattr(sys.stderr, "raw", sys.stderr))
