"""Whether the window stays quick and small with much to show, beside what it must reach.

python benchmarks/gui.py [--short]

A window without a screen, in this process. A daemon, a run that publishes 16 environments at 30 frames a
second and 100 ended runs with 100,000 points each are in others. The page is written when all is measured in
full; else it is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from gui_cases.busy import BusyCases
from gui_cases.memory import ACTIONS, Hour
from gui_cases.site import ended_runs, site
from gui_cases.stalls import BEAT_MS
from gui_cases.using import opened, spend
from PySide6.QtWidgets import QApplication
from tables import Row, Table, table_row, write_tables

from gym_gui.app import SWITCH_SECONDS
from mosaic.fastlane.layout import FOLDER_VARIABLE, segment_folder

RUNS, POINTS, SLOTS = 100, 100_000, 16
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
    options = parser.parse_args()
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
        write_tables(
            "gui", "The window", text, tables, packages=("PySide6-Essentials", "pyqtgraph", "numpy", "grpcio")
        )
    return 0 if all(row.held for row in rows) else 1


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
