"""The var folder is copied while it is in use, and the copy is used.

Each round copies the folder with `cp -a` under live and waiting runs, whatever is just being written. A
client of the copy finds all runs, ended, and removes them. In the original nothing may change: not its
daemon, not a run, not a process, not a file of an ended run. Every second copy is made and used while the
original has no daemon.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from fault_cases.report import Report, spread
from fault_cases.site import SCRIPTS, Site, environment, processes_with, script_config, take_history, wait_for
from mosaic.client import Client, RunRecord
from mosaic.client.daemon import find_daemon, stop_daemon
from mosaic.contract.paths import VAR_VARIABLE, VarPaths


def run(var: Path, workers: int = 4, copies: int = 10) -> Report:
    report = Report(f"{copies} copies under {workers} live and 2 waiting runs, half of them without a daemon")
    taken = list[float]()
    with environment(MOSAIC_CPUS=str(workers), MOSAIC_GRACE_SECONDS="2"), Site(var / "original") as site:
        client = site.client()
        ended, live = _start(client, workers)
        waiting = [client.submit(script_config(SCRIPTS / "brief.py")) for _ in range(2)]
        known = [ended, *live, *waiting]
        for number in range(copies):
            down = number % 2 == 1
            before = [_told(client, run) for run in known]
            seen, daemon = client.health().last_seq, client.health().pid
            if down:
                site.kill()
            began = time.monotonic()
            _use_a_copy(report, site.paths, VarPaths(var / f"copy{number}"), known)
            taken.append(time.monotonic() - began)
            after = [_told(client, run) for run in known]
            for old, new in zip(before, after, strict=True):
                report.check(old == new, f"copy {number + 1}: {old} became {new}")
            report.check(down or client.health().pid == daemon, "the original's daemon was replaced")
            report.check(not take_history(client, seen), "the original has state changes")
            for one in live:
                report.check(len(site.processes(one.run_id)) >= 2, f"{one.run_id} lost processes")
            report.check(Path(ended.run_dir, "analytics.json").exists(), "the original lost a file")
            report.say(f"copy {number + 1}{' without a daemon' if down else ''}: {taken[-1]:.2f} s")
        for one in (*waiting, *live):
            client.cancel(one.run_id)
        for one in live:
            client.wait(one.run_id, timeout=60)
            starts = site.events(one.run_id).count("run_started")
            report.check(starts == 1, f"{one.run_id} has {starts} starts")
    report.measure(f"copied, listed, emptied: {spread(taken)}")
    return report


def _start(client: Client, workers: int) -> tuple[RunRecord, list[RunRecord]]:
    ended = client.wait(client.submit(script_config(SCRIPTS / "brief.py")).run_id, timeout=60)
    config = script_config(SCRIPTS / "beats.py", params={"pause": 0.02})
    config["schedule"] = {"max_restarts": 3}
    live = [client.submit(config) for _ in range(workers)]
    for run in live:
        wait_for(client, run.run_id, "EXEC")
    return ended, live


def _told(client: Client, run: RunRecord) -> RunRecord:
    return replace(client.get(run.run_id), headline={})


def _use_a_copy(report: Report, original: VarPaths, copy: VarPaths, known: list[RunRecord]) -> None:
    # A file that was there for a moment only is not in the copy, which `cp` tells by its exit code.
    subprocess.run(["cp", "-a", str(original.root), str(copy.root)], stderr=subprocess.DEVNULL)
    try:
        with Client.connect(copy.root) as client:
            other = find_daemon(original)
            shared = other is not None and other.pid == client.health().pid
            report.check(not shared, "the copy has the original's daemon")
            found = {run.run_id for run in client.runs()}
            missing = {run.run_id for run in known} - found
            report.check(not missing, f"the copy lacks {missing}")
            for run_id in found:
                run = client.wait(run_id, timeout=60)
                report.check(run.ended, f"{run_id} is {run.status} in the copy")
                client.remove(run_id)
            report.check(not client.runs(), "the copy still has runs")
            started = processes_with("MOSAIC_RUN_ID=", f"{VAR_VARIABLE}={copy.root}")
            report.check(not started, f"the copy has started {started}")
    finally:
        stop_daemon(copy)
        shutil.rmtree(copy.root)
