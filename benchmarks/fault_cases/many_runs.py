"""A long queue of trivial runs on two slots, with daemons killed on the way.

Runs are submitted at a steady pace while others run, so that most of the submits meet a long queue; how long
a submit takes is measured at the client. Memory is compared between a daemon that has just recovered the
queue's beginning and the one that ends it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from fault_cases.report import Report, percentile, spread
from fault_cases.site import BENCHMARKS, SCRIPTS, Site, environment, script_config, take_history, wait_until
from mosaic.client import Client

SUBMIT_LIMIT_SECONDS = 0.05
MEMORY_LIMIT_MB = 50.0
_SLOTS = 2
_PACE_SECONDS = 0.02


def run(var: Path, runs: int = 20, kills: int = 1) -> Report:
    report = Report(f"{runs} runs on {_SLOTS} slots, {kills} daemon kills")
    path = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    with environment(MOSAIC_CPUS=str(_SLOTS), PYTHONPATH=path), Site(var) as site:
        client = site.client()
        memory = [_megabytes(site)]
        took, ids = _submit_all(report, client, runs)
        began = time.monotonic()
        for number in range(1, kills + 1):
            # Spread over the queue: the last kill finds a few runs left.
            _wait_for_ended(client, runs, runs * number // (kills + 1))
            memory.append(_megabytes(site))
            site.kill()
            site.start()
            report.say(f"killed and started again, {_count_ended(client)} have ended")
        _wait_for_ended(client, runs, runs)
        memory.append(_megabytes(site))
        report.measure(f"SubmitRun: {spread(took, 'ms')}")
        report.measure(f"{runs / (time.monotonic() - began):.1f} runs a second after the last submit")
        report.measure(f"memory of the daemons: {memory[0]:.0f} MB at first, at most {max(memory):.0f} MB")
        _check_runs(report, site, client, ids)
    slowest = percentile(sorted(took), 0.99)
    report.limit(slowest < SUBMIT_LIMIT_SECONDS, f"SubmitRun p99 is {slowest * 1000:.0f} ms")
    report.limit(
        max(memory) - memory[0] < MEMORY_LIMIT_MB, f"memory grew by {max(memory) - memory[0]:.0f} MB"
    )
    return report


def _submit_all(report: Report, client: Client, runs: int) -> tuple[list[float], list[str]]:
    config = script_config(SCRIPTS / "brief.py")
    config["metadata"]["worker"]["module"] = "fault_cases.tiny_worker"
    took, ids = list[float](), list[str]()
    for number in range(runs):
        asked = time.perf_counter()
        ids.append(client.submit(config).run_id)
        took.append(time.perf_counter() - asked)
        if number % 100 == 99:
            report.say(f"{number + 1} submitted: {spread(took, 'ms')}")
        time.sleep(_PACE_SECONDS)
    return took, ids


def _megabytes(site: Site) -> float:
    return float(psutil.Process(site.daemon().pid).memory_info().rss) / 2**20


def _count_ended(client: Client) -> int:
    return len(client.runs(["TERM"]))


def _wait_for_ended(client: Client, runs: int, number: int) -> None:
    def reached() -> bool:
        health = client.health()
        time.sleep(0.2)
        return runs - health.live_runs - health.waiting_runs >= number

    wait_until(reached, f"{number} runs have ended", seconds=1800)


def _check_runs(report: Report, site: Site, client: Client, ids: list[str]) -> None:
    health = client.health()
    seen = take_history(client, 0)
    report.check(
        [entry.seq for entry in seen] == list(range(1, health.last_seq + 1)), "the history has a gap"
    )
    starts = [entry.run_id for entry in seen if entry.status == "HSHK"]
    report.check(len(starts) == len(set(starts)) == len(ids), f"{len(starts)} starts of {len(ids)} runs")
    report.check(starts == ids, "runs were not started in the order of their submits")
    completed = sum(entry.outcome == "completed" for entry in seen)
    report.check(completed == len(ids), f"{completed} runs completed")
    said = sum(site.events(run_id).count("run_started") for run_id in ids)
    report.check(said == len(ids), f"{said} run_started in the event files")
    report.check(len(client.runs()) == len(ids), f"{len(client.runs())} runs are listed")
