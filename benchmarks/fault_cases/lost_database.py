"""The run database is lost under live runs: removed, emptied, cut, overwritten; under a daemon and without.

In each round one worker is paused or resumed first, so that rounds have state changes of their own. Rebuilt
means: counted from the loss, or from the start of the new daemon's process, the database is there again and
the daemon answers for every run. Then each run must be as it was: its processes, its state and history, its
name, tags and notes, its place in the queue.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from fault_cases.report import Report, spread
from fault_cases.site import SCRIPTS, Site, environment, script_config, take_history, wait_for, wait_until
from mosaic.client import Client, RunRecord
from mosaic.contract.paths import VarPaths

LIMIT_SECONDS = 3.0
_PAGE = 4096


def remove(paths: VarPaths) -> None:
    for file in paths.trainer.glob("trainer.sqlite*"):
        file.unlink()


def empty(paths: VarPaths) -> None:
    os.truncate(paths.database, 0)


def cut(paths: VarPaths) -> None:
    """To half of its pages."""
    os.truncate(paths.database, paths.database.stat().st_size // (2 * _PAGE) * _PAGE)


def overwrite(paths: VarPaths) -> None:
    """Every page but the first."""
    with closing(sqlite3.connect(paths.database)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = paths.database.stat().st_size // _PAGE
    with paths.database.open("rb+") as file:
        file.seek(_PAGE)
        file.write(os.urandom((pages - 1) * _PAGE))


def fill(paths: VarPaths) -> None:
    """With something that is not a database."""
    paths.database.write_bytes(b"no database " * 1000)


LOSSES: list[Callable[[VarPaths], None]] = [remove, empty, cut, overwrite, fill]
"""Cutting and filling a file that SQLite has open may be told or written over by it: both must end well."""


def run(var: Path, workers: int = 8, rounds: int = 10) -> Report:
    """Each loss under a daemon, then each while none runs, and so on."""
    downs = [number // len(LOSSES) % 2 == 1 for number in range(rounds)]
    kinds = f"{len(LOSSES)} kinds, {sum(downs)} times without a daemon"
    report = Report(f"{rounds} losses of {kinds}, under {workers} live and 2 waiting runs")
    answered = list[float]()
    with environment(MOSAIC_CPUS=str(workers), MOSAIC_GRACE_SECONDS="2"), Site(var) as site:
        client = site.client()
        live, others = _start(client, workers)
        seen = take_history(client, 0)[-1].seq
        expected = {run.run_id: [entry.status for entry in run.history] for run in live}
        for number, down in enumerate(downs):
            lose = LOSSES[number % len(LOSSES)]
            _pause_or_resume(client, live, number, expected)
            before = [_told(client.get(run.run_id)) for run in (*live, *others)]
            queue = _queue(client)
            if down:
                site.kill()
            lose(site.paths)
            began = time.monotonic()
            if down:
                site.start()
            wait_until(lambda: _is_there(site.paths.database), "the database is there again")
            after = [_told(client.get(run.run_id)) for run in (*live, *others)]
            answered.append(time.monotonic() - began)
            what = f"{lose.__name__}{' without a daemon' if down else ''}"
            for old, new in zip(before, after, strict=True):
                report.check(old == new, f"{what}: {old} became {new}")
            report.check(_queue(client) == queue, f"{what}: the queue was {queue} and is {_queue(client)}")
            told = [entry.seq for entry in take_history(client, seen)]
            report.check(len(told) == 1, f"{what}: a watcher saw {told}, where 1 change was made")
            seen = told[-1] if told else seen
            report.say(f"round {number + 1}: {what}, back after {answered[-1]:.2f} s")
        report.check(bool(client.health().notices), "nobody was told that anything was rebuilt")
        for one in (*others[1:], *live):
            client.cancel(one.run_id)
        for one in live:
            client.wait(one.run_id, timeout=60)
            states = [entry.status for entry in client.get(one.run_id).history]
            report.check(states == [*expected[one.run_id], "TERM"], f"{one.run_id} went {' '.join(states)}")
            starts = site.events(one.run_id).count("run_started")
            report.check(starts == 1, f"{one.run_id} has {starts} starts")
            report.check(not site.processes(one.run_id), f"{one.run_id} left processes")
    report.measure(f"daemon answers for all runs: {spread(answered)}")
    report.limit(max(answered) < LIMIT_SECONDS, f"rebuilding took {max(answered):.2f} s")
    return report


def _start(client: Client, workers: int) -> tuple[list[RunRecord], list[RunRecord]]:
    """Live runs; and one that has ended with other labels than it began with, and two that wait."""
    ended = client.wait(client.submit(script_config(SCRIPTS / "brief.py")).run_id, timeout=60)
    client.label(ended.run_id, "renamed", ["kept"], "as noted")
    live = [client.submit(script_config(SCRIPTS / "beats.py")) for _ in range(workers)]
    for run in live:
        wait_for(client, run.run_id, "EXEC")
    waiting = [client.submit(script_config(SCRIPTS / "brief.py")) for _ in range(2)]
    client.reorder(waiting[1].run_id, before=waiting[0].run_id)
    return [client.get(run.run_id) for run in live], [ended, *waiting]


def _is_there(database: Path) -> bool:
    return database.exists() and database.stat().st_size > 0


def _told(run: RunRecord) -> RunRecord:
    """A run without what changes by itself."""
    return replace(run, headline={}, place=0.0)


def _queue(client: Client) -> list[str]:
    waiting = sorted(client.runs(["INIT"]), key=lambda run: (-run.priority, run.place))
    return [run.run_id for run in waiting]


def _pause_or_resume(
    client: Client, runs: Sequence[RunRecord], number: int, expected: dict[str, list[str]]
) -> None:
    run_id = runs[(number // 2) % len(runs)].run_id
    if number % 2:
        client.resume(run_id)
    else:
        client.pause(run_id)
    expected[run_id].append("EXEC" if number % 2 else "PAUSE")
