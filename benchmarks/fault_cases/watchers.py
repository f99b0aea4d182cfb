"""Many clients watch all runs while one of them is stopped with its stream open.

Events are runs that are submitted and cancelled while they wait; the reasons of the cancels are long, so that
what the stopped watcher leaves lying is more than the buffers of its connection hold. After a while gRPC
gives up a connection that takes nothing; the watcher goes on from its cursor when it runs again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from fault_cases.report import Report, percentile, spread
from fault_cases.site import BENCHMARKS, SCRIPTS, Site, environment, script_config, wait_for
from mosaic.client import Client
from mosaic.contract.connection import DaemonAddress

LIMIT_SECONDS = 0.1
_A_PROCESS = 33
_PACE_SECONDS = 0.1
_REASON = "enough of it " * 200
_BEFORE = 4
"""Events of the run that holds the CPU: INIT, HSHK, RDY, EXEC."""


def run(var: Path, watchers: int = 10, events: int = 10) -> Report:
    report = Report(f"{watchers} watchers, 1 of them stopped; {events} events")
    with environment(MOSAIC_CPUS="1", MOSAIC_GRACE_SECONDS="1"), Site(var) as site:
        client = site.client()
        holder = client.submit(script_config(SCRIPTS / "brief.py", params={"seconds": 600})).run_id
        wait_for(client, holder, "EXEC")
        last = _BEFORE + events
        others = [_A_PROCESS] * ((watchers - 1) // _A_PROCESS) + [(watchers - 1) % _A_PROCESS]
        started = [_start(site, count, last) for count in [1, *filter(None, others)]]
        try:
            for process in started:
                assert process.stdout is not None
                process.stdout.readline()
            started[0].send_signal(signal.SIGSTOP)
            before = psutil.Process(site.daemon().pid).memory_info().rss
            _make_events(report, client, events)
            grown = (psutil.Process(site.daemon().pid).memory_info().rss - before) / 2**20
            seen = [_result(process) for process in started[1:]]
            started[0].send_signal(signal.SIGCONT)
            late = _result(started[0])
        finally:
            for process in started:
                process.kill()
                process.communicate()
        client.cancel(holder)
        client.wait(holder, timeout=60)
    delays = sorted(delay for one in seen for delay in one["delays"])
    report.measure(f"event to sight: {spread(delays, 'ms')}, {len(delays)} sights; memory +{grown:.1f} MB")
    report.measure("the stopped one has every event once after it goes on")
    report.check(len(delays) == (watchers - 1) * events, f"{len(delays)} sights")
    report.check(not any(one["reopened"] for one in seen), "a stream of a watcher that runs was lost")
    report.check(all(one["whole"] for one in [*seen, late]), "a watcher saw a gap or a double")
    report.limit(delays[-1] < LIMIT_SECONDS, f"an event was seen after {delays[-1] * 1000:.0f} ms")
    beyond = sum(delay >= LIMIT_SECONDS for delay in delays)
    report.measure(
        f"{beyond} sights beyond {LIMIT_SECONDS * 1000:.0f} ms, p99.9 {percentile(delays, 0.999):.3f} s"
    )
    return report


def _start(site: Site, count: int, last: int) -> subprocess.Popen[str]:
    address = DaemonAddress.read(site.paths.daemon_file)
    assert address is not None
    command = [
        sys.executable,
        "-m",
        "fault_cases.watcher",
        address.address,
        address.metadata()[0][1],
        str(count),
        str(last),
    ]
    path = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)


def _make_events(report: Report, client: Client, events: int) -> None:
    config = script_config(SCRIPTS / "brief.py")
    for number in range(0, events, 2):
        run_id = client.submit(config).run_id
        time.sleep(_PACE_SECONDS)
        client.cancel(run_id, _REASON)
        time.sleep(_PACE_SECONDS)
        if number % 50 == 0:
            report.say(f"{number} events")


def _result(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate(timeout=60)
    result: dict[str, Any] = json.loads(output)
    return result
