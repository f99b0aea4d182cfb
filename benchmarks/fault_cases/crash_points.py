"""The daemon is killed at each named point of a submit, a start, a pause, a stop, an end and a removal.

The daemon that dies is started with $MOSAIC_CRASH_POINT; the client then does what any client does: it starts
another one and sends its call again. Afterwards there must be one run for each submit, one start for each
that was meant, and no process, file or secret that nobody knows of.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fault_cases.crash_scenarios import (
    PLANS,
    Crash,
    Scenario,
    cancelled_while_waiting,
    completes,
    faults_once,
    removed,
)
from fault_cases.report import Report
from fault_cases.site import Site, environment
from mosaic.client import Client, RunRecord

RUNS: dict[Scenario, int] = {cancelled_while_waiting: 2, removed: 0}
STARTS: dict[Scenario, int] = {faults_once: 2}
OUTCOMES: dict[Scenario, str] = {completes: "completed", faults_once: "failed"}


def run(var: Path, plans: Sequence[tuple[Scenario, str]] = PLANS) -> Report:
    """One kill for each of `plans`, a scenario and a point of it."""
    report = Report(f"{len(plans)} kills at {len(set(plans))} points, each in its scenario")
    with environment(MOSAIC_CPUS="1", MOSAIC_GRACE_SECONDS="2"), Site(var) as site:
        client = site.client()
        for number, (scenario, point) in enumerate(plans):
            name = f"{scenario.__name__} at {point}"
            known = {run.run_id for run in client.runs()}
            crash = Crash(site, client, point)
            run_id = scenario(crash)
            _let_end(client)
            report.check(crash.happened(), f"{name}: the daemon was never killed")
            made = [client.get(run.run_id) for run in client.runs() if run.run_id not in known]
            _check_runs(report, site, name, scenario, run_id, made)
            _check_leftovers(report, site, client, name)
            report.say(f"kill {number + 1}: {name}")
    if report.passed:
        report.measure("0 runs or starts double; 0 processes, files or secrets left")
    return report


def _let_end(client: Client) -> None:
    for run in client.runs(["INIT", "HSHK", "RDY", "EXEC", "PAUSE", "FAULT"]):
        client.wait(run.run_id, timeout=90)


def _check_runs(
    report: Report, site: Site, name: str, scenario: Scenario, run_id: str, made: list[RunRecord]
) -> None:
    expected = RUNS.get(scenario, 1)
    report.check(len(made) == expected, f"{name}: {len(made)} runs instead of {expected}")
    for run in made:
        states = [entry.status for entry in run.history]
        starts = (
            0 if scenario is cancelled_while_waiting and run.run_id == run_id else STARTS.get(scenario, 1)
        )
        counts = {state: states.count(state) for state in ("HSHK", "RDY", "TERM")}
        wanted = {"HSHK": starts, "RDY": starts, "TERM": 1}
        report.check(counts == wanted, f"{name}: {' '.join(states)}")
        said = site.events(run.run_id).count("run_started") if starts else 0
        report.check(said == starts, f"{name}: {said} run_started instead of {starts}")
        outcome = OUTCOMES.get(scenario, "cancelled")
        report.check(run.outcome == outcome, f"{name}: {run.outcome} ({run.reason})")
        kept = site.paths.kept_logs(run.run_id) / "events.jsonl"
        if starts:
            whole = kept.exists() and kept.read_bytes() == site.paths.run(run.run_id).events.read_bytes()
            report.check(whole, f"{name}: the kept events are not those of the run")


def _check_leftovers(report: Report, site: Site, client: Client, name: str) -> None:
    paths, known = site.paths, {run.run_id for run in client.runs()}
    left = [file.name for file in paths.secrets.iterdir()]
    report.check(not left, f"{name}: secrets {left}")
    configs = {file.name for file in paths.configs.iterdir()}
    kinds = (paths.run_config, paths.worker_config, paths.run_record)
    expected = {kind(one).name for one in known for kind in kinds}
    report.check(configs == expected, f"{name}: config files differ by {configs ^ expected}")
    folders = {folder.name for folder in paths.runs.iterdir()} - known
    report.check(not folders, f"{name}: run folders {folders}")
    processes = site.processes()
    report.check(not processes, f"{name}: processes {processes}")
