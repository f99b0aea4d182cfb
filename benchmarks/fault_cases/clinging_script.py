"""A script that forks, daemonises and ignores SIGTERM is cancelled: nothing of it is left afterwards."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fault_cases.report import Report, spread
from fault_cases.site import SCRIPTS, Site, environment, script_config, wait_for, wait_until

GRACE_SECONDS = 1.0
_AT_ONCE = 5


def run(var: Path, cancels: int = 3) -> Report:
    report = Report(f"{cancels} cancels, grace period {GRACE_SECONDS:g} s")
    took, left = list[float](), 0
    with (
        environment(MOSAIC_CPUS=str(_AT_ONCE), MOSAIC_GRACE_SECONDS=f"{GRACE_SECONDS:g}"),
        Site(var) as site,
    ):
        client = site.client()
        for first in range(0, cancels, _AT_ONCE):
            config = script_config(SCRIPTS / "clings.py")
            runs = [client.submit(config).run_id for _ in range(min(_AT_ONCE, cancels - first))]
            for run_id in runs:
                wait_for(client, run_id, "EXEC")
            wait_until(partial(_have_cut_loose, site, runs), "every script has its children")
            asked = time.monotonic()
            for run_id in runs:
                client.cancel(run_id)
            for run_id in runs:
                ended = client.wait(run_id, timeout=60)
                took.append(time.monotonic() - asked)
                orphans = site.processes(run_id)
                left += len(orphans)
                report.check(not orphans, f"{run_id} left {orphans}")
                report.check(ended.outcome == "cancelled", f"{run_id} ended {ended.outcome}: {ended.reason}")
                report.check(site.events(run_id)[-1] == "run_cancelled", f"{run_id} has no last word")
            report.say(f"{first + len(runs)} cancelled")
    report.measure(f"{left} of at least {4 * cancels} processes left")
    report.measure(f"cancel to the end of the run: {spread(took)}")
    return report


def _have_cut_loose(site: Site, runs: Sequence[str]) -> bool:
    """Supervisor, script, child and daemon of each."""
    return all(len(site.processes(run_id)) >= 4 for run_id in runs)
