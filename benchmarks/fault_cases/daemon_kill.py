"""The daemon is killed under live workers and started again, at once or after a while.

In each round one worker is paused or resumed before the kill, so that rounds have events of their own.
Workers write scalars all the time, so that each supervisor has news for a heartbeat every second, also while
no daemon runs. Re-attached means: counted from the start of the new daemon's process, it answers that every
run goes on with the same processes. How long it takes until a headline of each run that works has come
through the new daemon is measured too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fault_cases.report import Report, spread
from fault_cases.site import SCRIPTS, Site, environment, script_config, take_history, wait_for
from mosaic.client import Client, HistoryEntry, RunHeadline, RunRecord

LIMIT_SECONDS = 2.0


def run(var: Path, workers: int = 8, downs: Sequence[float] = (0.0,)) -> Report:
    """One round for each of `downs`, the seconds without a daemon."""
    kinds = ", ".join(f"{downs.count(down)} × {down:g} s" for down in sorted(set(downs)))
    report = Report(f"{len(downs)} kills under {workers} workers; down {kinds}")
    answered, heard = list[float](), list[float]()
    with environment(MOSAIC_CPUS=str(workers), MOSAIC_GRACE_SECONDS="2"), Site(var) as site:
        client = site.client()
        runs = _start_workers(client, workers)
        expected = {run.run_id: ["INIT", "HSHK", "RDY", "EXEC"] for run in runs}
        seen = take_history(client, 0)
        for number, down in enumerate(downs):
            paused = _pause_or_resume(client, runs, number, expected)
            site.kill()
            time.sleep(down)
            started = time.monotonic()
            site.start()
            again = [client.get(run.run_id) for run in runs]
            answered.append(time.monotonic() - started)
            _check_same(report, runs, again, paused)
            working = {run.run_id for run in again if run.status == "EXEC"}
            heard.append(_wait_for_headlines(client, working, started))
            seen += take_history(client, seen[-1].seq)
            report.say(f"round {number + 1}: down {down:g} s, back after {answered[-1]:.2f} s")
        for run in runs:
            client.cancel(run.run_id)
        for run in runs:
            client.wait(run.run_id, timeout=60)
        seen += take_history(client, seen[-1].seq)
        _check_history(report, site, client, expected, seen)
    report.measure(f"daemon answers for all runs: {spread(answered)}")
    report.measure(f"a headline of every working run: {spread(heard)}")
    report.measure(f"{len(seen)} state changes seen once each")
    late = sum(seconds >= LIMIT_SECONDS for seconds in answered)
    report.measure(f"{late} rounds beyond {LIMIT_SECONDS:g} s")
    report.limit(max(answered) < LIMIT_SECONDS, f"re-attaching took {max(answered):.2f} s")
    return report


def _start_workers(client: Client, workers: int) -> list[RunRecord]:
    config = script_config(SCRIPTS / "beats.py")
    runs = [client.submit(config) for _ in range(workers)]
    for run in runs:
        wait_for(client, run.run_id, "EXEC")
    return [client.get(run.run_id) for run in runs]


def _pause_or_resume(
    client: Client, runs: Sequence[RunRecord], number: int, expected: dict[str, list[str]]
) -> set[str]:
    """Every second round a worker is paused; the round after it goes on. Gives those that are paused now."""
    run_id = runs[(number // 2) % len(runs)].run_id
    if number % 2:
        client.resume(run_id)
        expected[run_id].append("EXEC")
        return set()
    client.pause(run_id)
    expected[run_id].append("PAUSE")
    return {run_id}


def _check_same(
    report: Report, runs: Sequence[RunRecord], again: Sequence[RunRecord], paused: set[str]
) -> None:
    for before, after in zip(runs, again, strict=True):
        expected = "PAUSE" if after.run_id in paused else "EXEC"
        report.check(after.status == expected, f"{after.run_id} is {after.status}, not {expected}")
        pids = [(run.supervisor_pid, run.training_pid) for run in (before, after)]
        report.check(pids[0] == pids[1], f"{after.run_id} changed its processes: {pids}")


def _wait_for_headlines(client: Client, working: set[str], started: float) -> float:
    """Seconds until a headline of each working run has come through the new daemon."""
    missing = set(working)
    for update in client.watch(since_seq=client.health().last_seq, headlines=True, timeout=60):
        if isinstance(update, RunHeadline):
            missing.discard(update.run_id)
        if not missing:
            break
    assert not missing, f"no headline of {missing} in 60 s"
    return time.monotonic() - started


def _check_history(
    report: Report,
    site: Site,
    client: Client,
    expected: Mapping[str, Sequence[str]],
    seen: Sequence[HistoryEntry],
) -> None:
    numbers = [entry.seq for entry in seen]
    report.check(numbers == list(range(1, len(seen) + 1)), "the watcher's state changes have a gap or double")
    for run_id, way in expected.items():
        history = client.get(run_id).history
        mine = [entry.seq for entry in seen if entry.run_id == run_id]
        report.check(mine == [entry.seq for entry in history], f"{run_id}: the watcher missed something")
        states = [entry.status for entry in history]
        report.check(states == [*way, "TERM"], f"{run_id} went {' '.join(states)}")
        kinds = site.events(run_id)
        report.check(kinds.count("run_started") == 1, f"{run_id} has {kinds.count('run_started')} starts")
        report.check(kinds[-1] == "run_cancelled", f"the last event of {run_id} is {kinds[-1]}")
        report.check(not site.processes(run_id), f"{run_id} left processes")
