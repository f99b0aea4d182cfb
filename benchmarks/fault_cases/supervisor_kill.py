"""A supervisor is killed while its script trains, has children, is stopped, or no daemon is there."""

from __future__ import annotations

import signal
from pathlib import Path

from fault_cases.report import Report
from fault_cases.site import SCRIPTS, Site, environment, script_config, wait_for, wait_until
from mosaic.client import Client
from mosaic.contract.process import ProcessIdentity, tree_below

MOMENTS = ("handshake", "training", "paused", "no daemon")


def run(var: Path, kills: int = 4) -> Report:
    """Each kill is at the next of `MOMENTS`."""
    report = Report(f"{kills} kills, in turn at: {', '.join(MOMENTS)}")
    left = 0
    with environment(MOSAIC_CPUS="2", MOSAIC_GRACE_SECONDS="1"), Site(var) as site:
        client = site.client()
        for number in range(kills):
            moment = MOMENTS[number % len(MOMENTS)]
            run_id = client.submit(script_config(SCRIPTS / "clings.py")).run_id
            family = _kill_at(site, client, run_id, moment)
            ended = client.wait(run_id, timeout=60)
            orphans = {*site.processes(run_id), *(one.pid for one in family if one.alive())}
            left += len(orphans)
            report.check(not orphans, f"kill {number + 1} ({moment}) left {orphans}")
            report.check(ended.outcome == "failed", f"kill {number + 1} ({moment}) ended {ended.outcome}")
            report.check("the supervisor ended" in str(ended.reason), f"{run_id}: reason {ended.reason!r}")
            states = [entry.status for entry in ended.history]
            report.check(states[-2:] == ["FAULT", "TERM"], f"{run_id} went {' '.join(states)}")
            report.say(f"kill {number + 1} ({moment}): {' '.join(states)}")
        _check_restart(report, site, client)
    report.measure(f"{left} processes left when the run was told to have ended")
    return report


def _kill_at(site: Site, client: Client, run_id: str, moment: str) -> list[ProcessIdentity]:
    """Kill the supervisor; gives all that was below it."""
    wait_for(client, run_id, "HSHK", "RDY", "EXEC")
    if moment != "handshake":
        wait_for(client, run_id, "EXEC")
        # Its child and the daemon that it cuts loose are there too.
        wait_until(lambda: len(site.processes(run_id)) >= 4, "the script has its children")
    if moment == "paused":
        client.pause(run_id)
    supervisor = ProcessIdentity.of(client.get(run_id).supervisor_pid or 0)
    assert supervisor is not None
    if moment == "no daemon":
        site.kill()
    family = tree_below(supervisor.pid)
    supervisor.send(signal.SIGKILL)
    wait_until(lambda: not supervisor.alive(), "the supervisor is gone")
    return family


def _check_restart(report: Report, site: Site, client: Client) -> None:
    """With restarts allowed, nothing of the first start lives when the second trains."""
    config = script_config(SCRIPTS / "clings.py")
    config["schedule"] = {"max_restarts": 1}
    run_id = client.submit(config).run_id
    _kill_at(site, client, run_id, "training")
    first = set(site.processes(run_id))
    starts = ["INIT", "HSHK", "RDY", "EXEC"]
    wait_until(
        lambda: [entry.status for entry in client.get(run_id).history] == [*starts, "FAULT", *starts],
        "the run is started again",
    )
    alive = first & set(site.processes(run_id))
    report.check(not alive, f"{alive} of the first start live beside the second")
    client.cancel(run_id)
    client.wait(run_id, timeout=60)
    report.check(not site.processes(run_id), "the restarted run left processes")
