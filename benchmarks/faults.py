"""What the daemon survives: kills, cut connections, full disks, losses of power and of its database, scripts
that cling, copies of its folder.

python benchmarks/faults.py [--only NAME …] [--quick]

Each case has a var folder of its own. Results of cases that are not run again stay in the table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fault_cases import (
    clinging_script,
    copied_folder,
    crash_points,
    cut_connection,
    daemon_kill,
    full_disk,
    lost_database,
    many_runs,
    power_loss,
    space_wait,
    supervisor_kill,
    watchers,
)
from fault_cases.crash_scenarios import PLANS
from fault_cases.report import Report
from tables import kept_rows, write_table

DOWNS = [20.0 if number % 12 == 11 else 2.0 if number % 4 == 1 else 0.0 for number in range(50)]
CUTS = [*[1.0] * 22, *[20.0] * 6, *[60.0] * 2]


@dataclass(frozen=True)
class Case:
    """One row of the table, in full and in short."""

    name: str
    title: str
    wanted: str
    full: Callable[[Path], Report]
    quick: Callable[[Path], Report]


CASES = [
    Case(
        "daemon_kill",
        "daemon `kill -9` under live workers",
        "same pids, one start each, 0 events lost or doubled, re-attached within 2 s",
        lambda var: daemon_kill.run(var, 8, DOWNS),
        lambda var: daemon_kill.run(var, 3, [0.0, 1.0]),
    ),
    Case(
        "crash_points",
        "daemon killed at named points of submit and of every transition",
        "0 duplicates, 0 orphans",
        lambda var: crash_points.run(var, [PLANS[number % len(PLANS)] for number in range(200)]),
        lambda var: crash_points.run(var, PLANS[::4]),
    ),
    Case(
        "many_runs",
        "1,000 runs of a trivial worker on 2 slots",
        "all terminal, each started once, in order; `SubmitRun` p99 < 50 ms; memory growth < 50 MB",
        lambda var: many_runs.run(var, 1000, 5),
        lambda var: many_runs.run(var, 40, 2),
    ),
    Case(
        "supervisor_kill",
        "supervisor `kill -9`",
        "0 orphaned training processes",
        lambda var: supervisor_kill.run(var, 50),
        lambda var: supervisor_kill.run(var, 4),
    ),
    Case(
        "watchers",
        "100 watchers, one stopped",
        "the others see each event within 100 ms",
        lambda var: watchers.run(var, 100, 300),
        lambda var: watchers.run(var, 20, 20),
    ),
    Case(
        "cut_connection",
        "connection cut through a proxy",
        "no gap, no double",
        lambda var: cut_connection.run(var, CUTS),
        lambda var: cut_connection.run(var, [1.0, 2.0]),
    ),
    Case(
        "full_disk",
        "disk full on a small tmpfs during each kind of write",
        "previous state readable, waited for or the cause named, daemon alive and saying so",
        full_disk.run,
        full_disk.run,
    ),
    Case(
        "space_wait",
        "disk full for five minutes with live runs, filled again at once",
        "same pids, nothing lost, runs go on; listing, cancel, rm and gc work, also without a daemon",
        lambda var: space_wait.run(var, 300),
        lambda var: space_wait.run(var, 10),
    ),
    Case(
        "power_loss",
        "power-loss model over every prefix of the recorded writes",
        "database opens, every acknowledged transition present",
        lambda var: power_loss.run(var, 60),
        lambda var: power_loss.run(var, 4),
    ),
    Case(
        "lost_database",
        "database lost under live runs",
        "every run as it was: processes, history, labels, queue; rebuilt within 3 s",
        lambda var: lost_database.run(var, 8, 40),
        lambda var: lost_database.run(var, 2, 6),
    ),
    Case(
        "copied_folder",
        "var folder copied while in use",
        "the copy has a daemon of its own, and nothing changes in the original",
        lambda var: copied_folder.run(var, 4, 40),
        lambda var: copied_folder.run(var, 2, 2),
    ),
    Case(
        "clinging_script",
        "a script that forks, daemonises and ignores SIGTERM, cancelled",
        "nothing of it left after the grace period",
        lambda var: clinging_script.run(var, 50),
        lambda var: clinging_script.run(var, 3),
    ),
]
HEADER = ["test", "pass when", "counts", "measured", "failures", "passed"]


def measure(case: Case, quick: bool) -> list[str]:
    """One row of the table."""
    print(f"{case.name}: {case.title}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as var:
        try:
            report = (case.quick if quick else case.full)(Path(var))
        except Exception as error:
            traceback.print_exc()
            report = Report("broken off", [f"{type(error).__name__}: {error}"])
    minutes = (time.monotonic() - began) / 60
    wrong = [*report.failures, *report.too_slow]
    failures = f"{len(wrong)}: {wrong[0]}" if wrong else "0"
    measured = "; ".join([*report.measured, f"{minutes:.1f} minutes in all"])
    verdict = "yes" if report.passed else "**no**"
    return [case.title, case.wanted, report.counts, measured, failures.replace("|", "/"), verdict]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=str(names))
    parser.add_argument("--quick", action="store_true", help="small counts; the table is printed, not kept")
    options = parser.parse_args()
    rows = {} if options.quick else {row[0]: row for row in kept_rows("faults", HEADER)}
    # The table is of all cases, however many calls it took.
    del sys.argv[1:]
    for case in CASES:
        if case.name not in options.only:
            continue
        rows[case.title] = measure(case, options.quick)
        print("  " + " | ".join(rows[case.title]), flush=True)
        if not options.quick:
            _write(rows)
    return 0 if all(row[-1] == "yes" for row in rows.values()) else 1


def _write(rows: dict[str, list[str]]) -> None:
    write_table(
        "faults",
        "Faults",
        "What the daemon, its runs and its clients survive; one case after the other on a shared machine.",
        HEADER,
        [rows[case.title] for case in CASES if case.title in rows],
    )


if __name__ == "__main__":
    sys.exit(main())
