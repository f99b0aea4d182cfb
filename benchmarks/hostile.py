"""What MOSAIC makes of hostile use: wrong words, strange surroundings, foreign files, lost data.

python benchmarks/hostile.py [--only AREA …] [--jobs N]

Every check runs the real command line, daemon and processes, in folders of its own and on loopback. Good is
the right exit code, one sentence without a traceback, nothing written where nothing should be, no INTERNAL,
and the run's state as stated. Two areas run at once. Filling a disk needs the right to mount.

Results of areas that are not tried again stay in the table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from hostile_cases import (
    command_line,
    escapes,
    folders,
    foreign_code,
    outcomes,
    processes,
    secrets,
    surroundings,
    wire,
)
from hostile_cases.ground import Bad, Check, Ground
from tables import Table, kept_rows, write_tables

HEADER = ["area", "points of the issue", "tried", "good", "seconds"]
BAD_HEADER = ["area", "check", "what was seen"]


@dataclass
class Area:
    """A table of checks, and what came of them."""

    name: str
    points: str
    make: Callable[[Ground], Iterable[Check]]
    tried: int = 0
    bad: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


def areas() -> list[Area]:
    """All areas; those that take longest come first, so that none is left to run alone at the end."""
    return [
        Area("wrong words on the command line", "12, 17", command_line.checks),
        Area("words of others at a terminal", "9", escapes.checks),
        Area("processes that hide", "16", processes.checks),
        Area("environments that break", "4, 12, 13", outcomes.environment_checks),
        Area("variables, ports, paths, streams", "17", surroundings.checks),
        Area("lost and damaged databases", "2", folders.database_checks),
        Area("secrets", "6", secrets.checks),
        Area("daemon.json and stopped daemons", "14, 17", folders.daemon_checks),
        Area("modules that files name", "7", foreign_code.checks),
        Area("scripts that leave, fail and lie", "4, 5", outcomes.checks),
        Area("clocks that jump", "10", processes.clock_checks),
        Area("strange run ids", "17", command_line.id_checks),
        Area("modules in the caller's folder", "8", foreign_code.shadow_checks),
        Area("copied var folders", "1", folders.copy_checks),
        Area("terminals of any width", "17", surroundings.terminal_checks),
        Area("52,000 runs", "11", folders.many_checks),
        Area("reading makes nothing", "15", command_line.reading_checks),
        Area("full disks", "3", folders.disk_checks),
        Area("calls to the daemon", "11, 17", wire.checks),
    ]


_PRINTING = threading.Lock()


def _say(text: str) -> None:
    with _PRINTING:
        print(text, flush=True)


def run(area: Area) -> None:
    """Do all checks of an area; whatever goes wrong is kept with its name."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mosaic-hostile-", ignore_cleanup_errors=True) as place:
        ground = Ground(Path(place).resolve())
        try:
            for check in area.make(ground):
                area.tried += 1
                problem = _problem(check)
                if problem is not None:
                    area.bad.append((check.name, problem))
                    _say(f"BAD  {area.name}: {check.name}: {problem}")
        except Exception as error:
            area.tried += 1
            area.bad.append(("the rest could not be tried", _shown(error)))
            _say(f"BAD  {area.name}: the rest could not be tried: {_shown(error)}\n{traceback.format_exc()}")
        finally:
            ground.close()
    area.seconds = time.monotonic() - began
    _say(f"{area.name}: {area.tried - len(area.bad)} of {area.tried} good, {area.seconds:.0f} s")
    with _PRINTING:
        _write(area)


def _problem(check: Check) -> str | None:
    try:
        check.look()
    except Exception as error:
        return _shown(error)
    return None


def _shown(error: Exception) -> str:
    return str(error) if isinstance(error, Bad) else f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="AREA", help="areas whose names begin so")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="areas at once (2)")
    args = parser.parse_args()
    chosen = [area for area in areas() if args.only is None or area.name.startswith(tuple(args.only))]
    # The table is of all areas, however many calls it took.
    del sys.argv[1:]
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(run, chosen))
    tried, bad = sum(area.tried for area in chosen), sum(len(area.bad) for area in chosen)
    print(f"{tried - bad} of {tried} good")
    return 1 if bad else 0


def _write(area: Area) -> None:
    found = {row[0]: row for row in kept_rows("hostile", HEADER)}
    counts = [str(area.tried), str(area.tried - len(area.bad)), f"{area.seconds:.0f}"]
    found[area.name] = [area.name, area.points, *counts]
    rows = [found[area.name] for area in areas() if area.name in found]
    tried, good = (sum(int(row[place]) for row in rows) for place in (2, 3))
    tables = [Table(HEADER, [*rows, ["**all**", "", f"**{tried}**", f"**{good}**", ""]])]
    faults = [row for row in kept_rows("hostile", BAD_HEADER) if row[0] != area.name]
    faults += [[area.name, _cell(name), _cell(problem)] for name, problem in area.bad]
    if faults:
        tables.append(Table(BAD_HEADER, faults, "Not good"))
    text = (__doc__ or "").split("\n\n")[2].replace("\n", " ")
    write_tables("hostile", "Hostile use", text, tables)


def _cell(text: str) -> str:
    return "".join(letter if letter.isprintable() else "�" for letter in text).replace("|", "\\|")[:500]


if __name__ == "__main__":
    sys.exit(main())
