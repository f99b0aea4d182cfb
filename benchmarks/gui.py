"""Whether the window stays quick and small with much to show, beside what it must reach.

python benchmarks/gui.py [--short]
python benchmarks/gui.py --soak MINUTES [--seed N] [--short]

A window without a screen, in this process. A daemon, a run that publishes 16 environments at 30 frames a
second and 100 ended runs with 100,000 points each are in others. The page is written when all is measured in
full; else it is printed.

A soak is another thing, and has a table of its own on that page: a window on a screen of its own (Xvfb, with
a window manager when there is one), in a process of its own, is used at random by mouse and keyboard while
runs train and end.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from gui_cases.busy import BusyCases
from gui_cases.memory import ACTIONS, Hour
from gui_cases.site import ended_runs, site
from gui_cases.soak import soak
from gui_cases.stalls import BEAT_MS
from gui_cases.using import opened, spend
from PySide6.QtWidgets import QApplication
from tables import Row, Table, put_section, section_of, table_row, write_tables

from gym_gui.app import SWITCH_SECONDS
from mosaic.fastlane.layout import FOLDER_VARIABLE, segment_folder

RUNS, POINTS, SLOTS = 100, 100_000, 16
PACKAGES = ("PySide6-Essentials", "pyqtgraph", "numpy", "grpcio")
SOAK = "Soak"
SOAK_TEXT = """\
Forms, tabs, themes, comparisons, filters, the finder, the list and the window's size, used at random by mouse
and keyboard; real runs train and end meanwhile. Memory is looked at each time after the window has come back
to the runs and rested.

    python benchmarks/gui.py --soak {minutes:g} --seed {seed}

{versions}; the load average of the machine was {load:.1f} at the end."""
HEADER = ["what was done", "measured", "limit", "held"]
TEXT = """\
The window with much to show, beside what it must reach.

- Stalls: a timer in the window's own event loop should ring every {beat} ms. What counts is how much later
  than that each ring came, whatever held it up: drawing, reading, another thread, another process on the
  same core. Own work is the CPU time of the window's thread in the same spans.
- The writers are real runs under a daemon of their own. Each picture has 300 × 200 pixels. The window has
  1440 × 900, in software without a screen.
- Memory is that of the whole process (resident), over as many actions as a person makes in an hour at one a
  second, made as fast as the window takes them.

The load average of the machine was {before:.1f} before and {after:.1f} after."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="few runs, short times; nothing is written")
    parser.add_argument("--only", metavar="WORDS", default="", help="the cases with these words; as --short")
    parser.add_argument("--soak", metavar="MINUTES", type=float, help="use the window at random for so long")
    parser.add_argument("--seed", type=int, default=1, help="of a soak")
    options = parser.parse_args()
    if options.soak is not None:
        return soaked(options.soak, options.seed, options.short)
    short = options.short or bool(options.only)
    before = os.getloadavg()[0]
    app = QApplication(sys.argv[:1])
    sys.setswitchinterval(SWITCH_SECONDS)
    # Live frames in a folder of this run's own: others on the machine may look for segments that nobody uses.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=segment_folder()) as frames:
        os.environ[FOLDER_VARIABLE] = frames
        var = Path(folder).resolve()
        with site(var, 10 if short else RUNS, POINTS, SLOTS) as live:
            rows = measure(var, live.run_id, short, options.only)
    app.quit()
    *stalls, memory = rows
    if not short:
        text = TEXT.format(beat=BEAT_MS, before=before, after=os.getloadavg()[0])
        tables = [
            Table(HEADER, [row.cells() for row in stalls], "Stalls of the event loop"),
            Table(HEADER, [memory.cells()], "Memory"),
        ]
        kept = section_of("gui", SOAK)
        write_tables("gui", "The window", text, tables, packages=PACKAGES)
        if kept:
            put_section("gui", kept)
    return 0 if all(row.held for row in rows) else 1


def soaked(minutes: float, seed: int, short: bool) -> int:
    """Use a window at random, and write what came of it unless it was a short one."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=segment_folder()) as frames:
        os.environ[FOLDER_VARIABLE] = frames
        done = soak(Path(folder).resolve(), minutes, seed, short)
    table = Table(HEADER, [row.cells() for row in done.rows()])
    print("\n".join(table.lines()))
    if not done.held:
        print(done.story())
    if not short:
        versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
        text = SOAK_TEXT.format(minutes=minutes, seed=seed, versions=versions, load=os.getloadavg()[0])
        put_section("gui", [f"## {SOAK}", "", *text.splitlines(), "", *table.lines()])
    return 0 if done.held else 1


def measure(var: Path, live: str, short: bool, only: str) -> list[Row]:
    """Every case in one window; the one about memory comes last."""
    with opened(var) as desktop:
        spend(3000)
        ended = ended_runs(desktop.link.client())
        busy = BusyCases(desktop.window, live, ended, 5 if short else 30)
        hour = Hour(desktop.window, live, ended)
        cases = [
            (name, lambda name=name, work=work: busy.measure(name, work))
            for name, work in busy.cases().items()
        ]
        cases.append(("Memory", lambda: hour.measure(240 if short else ACTIONS)))
        rows = []
        for name, measured in cases:
            if only in name:
                rows.append(measured())
                print(table_row(rows[-1].cells()), flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
