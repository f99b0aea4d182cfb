"""The power fails after any of the daemon's writes to its database.

The system calls of real daemons (two, the first ends by `kill -9`) on the database files are recorded by
strace, together with the log lines that a daemon writes after each state change and before anybody is told of
it. Then the power is cut after each recorded call. What a file holds afterwards:

- always what was written before its last fsync; a name is there when the folder was synced after it was made,
  and is gone when the folder was synced after it was removed;
- of everything later nothing ("dropped"), everything ("kept"), or any part, also halves of writes ("torn").

Whatever is left must open, be whole, and hold each state change that the log had told of by then.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
from collections import Counter
from pathlib import Path

from fault_cases.power_model import Disk
from fault_cases.report import Report
from fault_cases.site import BENCHMARKS, SCRIPTS, Site, environment, script_config
from fault_cases.traces import Step, read_trace, start_traced
from mosaic.client.daemon import stop_daemon

_TOLD = re.compile(r"T20(?:0 run=(\w+)|1 run=(\w+) \w+ → (\w+))")


def run(var: Path, runs: int = 4, seed: int = 1) -> Report:
    steps = _record(var, runs)
    writes = sum(step.kind == "write" for step in steps)
    syncs = sum(step.kind == "sync" for step in steps)
    report = Report(f"{len(steps)} recorded calls of {runs} runs: {writes} writes, {syncs} syncs")
    chance, disk, told, opened = random.Random(seed), Disk(), Counter[tuple[str, str]](), 0
    folder = var / "after"
    folder.mkdir()
    for number, step in enumerate(steps):
        changed = {"kept", "torn"} if step.kind != "log" else {"dropped", "kept"}
        if step.kind == "log":
            told.update(_told(step))
        elif disk.take(step):
            changed.add("dropped")
        # "dropped" is the same as before unless something was synced or told.
        for way in sorted(changed):
            survives = {"dropped": lambda: 0.0, "kept": lambda: 1.0, "torn": chance.random}[way]
            files = disk.after_loss(survives)
            trouble = _open(folder, files, told)
            report.check(not trouble, f"after call {number} ({step.kind} {step.path}), {way}: {trouble}")
            opened += 1
        if number % 1000 == 0:
            report.say(f"{number} of {len(steps)} prefixes")
    report.measure(f"{opened} databases opened after {len(steps)} prefixes; {told.total()} transitions told")
    return report


def _record(var: Path, runs: int) -> list[Step]:
    """Trivial runs under two traced daemons, the first of them killed half-way, the second ended in order."""
    (var / "recorded").mkdir()
    path = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    traces = [var / "first.trace", var / "second.trace"]
    with environment(MOSAIC_CPUS="2", PYTHONPATH=path), Site(var / "recorded") as site:
        config = script_config(SCRIPTS / "brief.py")
        config["metadata"]["worker"]["module"] = "fault_cases.tiny_worker"
        first = start_traced(site.paths, traces[0])
        client = site.client()
        ids = [client.submit(config).run_id for _ in range(runs)]
        client.wait(ids[len(ids) // 2], timeout=300)
        site.kill()
        first.wait()
        second = start_traced(site.paths, traces[1])
        for run_id in ids:
            client.wait(run_id, timeout=300)
        stop_daemon(site.paths)
        second.wait()
        return [step for trace in traces for step in read_trace(trace, site.paths)]


def _told(step: Step) -> list[tuple[str, str]]:
    found = _TOLD.findall(step.data.decode(errors="replace"))
    return [(accepted or moved, status or "INIT") for accepted, moved, status in found]


def _open(folder: Path, files: dict[str, bytes], told: Counter[tuple[str, str]]) -> str:
    """What is wrong with the database that a power loss left, or nothing."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        with sqlite3.connect(folder / "trainer.sqlite") as database:
            (fine,) = database.execute("PRAGMA quick_check").fetchone()
            present = Counter(
                database.execute("SELECT run_id, status FROM transitions").fetchall() if told else []
            )
        database.close()
    except sqlite3.Error as error:
        return f"it does not open: {error}"
    missing = told - present
    return f"{dict(missing)} missing" if missing else "" if fine == "ok" else str(fine)
