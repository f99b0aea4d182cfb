"""How fast what runs have measured is read: beside TensorBoard's own reader, and many runs at once.

nice python benchmarks/metrics.py [--short]

The event files are written by the writer of our algorithms and by torch's. Everything is done by one process
on files that the system has in memory; each figure is the middle of three rounds, the readers in turn.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from gui_cases.stalls import BEAT_MS, StallMeter
from gui_cases.using import mark, opened, spend, wait_until
from many_runs import fill
from PySide6.QtWidgets import QApplication
from tables import Row, write_table
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gym_gui.app import SWITCH_SECONDS
from gym_gui.ui.views.compare import CompareView
from mosaic.analytics.artifacts import CACHE_NAME
from mosaic.analytics.event_files import EventWriter
from mosaic.analytics.store import RunMetrics
from mosaic.client import Client
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import VarPaths

SCALARS, RUNS, POINTS, OVERLAID, ROUNDS = 1_000_000, 100, 100_000, 20, 3
RETURN = "charts/episodic_return"
NAMES = (
    RETURN,
    *("charts/episodic_length", "charts/SPS", "charts/learning_rate", "losses/value_loss"),
    *("losses/policy_loss", "losses/entropy", "losses/approx_kl", "losses/clipfrac", "time/update"),
)
TIMES_AS_FAST, AGAIN_SECONDS, CLIENT_SECONDS, WINDOW_SECONDS, STALL_MS = 10.0, 0.1, 2.0, 1.0, 100.0
HEADER = ("what was done", "measured", "limit", "held")
TEXT = """\
How fast the metrics of runs are read ({command} writes this page).

- `EventAccumulator` is TensorBoard's reader, with no limit on what it keeps. Both read the same files, in
  turn, {rounds} rounds; the middle counts. The first reading of ours checks the checksum of each record and
  writes the cache; the second one reads that.
- The many runs are ended runs in a daemon's database with {points:,} points each in {names} metrics, their
  caches written. Each is opened as `client.metrics(RUN)` and its returns are asked for.
- The window overlays {overlaid} of them; what counts is the time from the click until the last line is drawn,
  and how late a timer of {beat} ms rings in its event loop meanwhile.

The load average of the machine was {before:.1f} before and {after:.1f} after, on {cores} cores."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="a tenth of everything; nothing is written")
    options = parser.parse_args()
    part = 10 if options.short else 1
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        rows = [*readings(folder / "ours", SCALARS // part, write_ours)]
        rows += readings(folder / "torch", SCALARS // part, write_torch)
        rows += many(folder / "var", RUNS // part, POINTS, OVERLAID // min(part, 4))
    cells = [row.cells() for row in rows]
    if options.short:
        print("\n".join(" | ".join(row) for row in cells))
    else:
        shown = {
            "rounds": ROUNDS,
            "points": POINTS,
            "names": len(NAMES),
            "overlaid": OVERLAID,
            "beat": BEAT_MS,
        }
        load = {"before": before, "after": os.getloadavg()[0], "cores": os.cpu_count()}
        text = TEXT.format(command="`benchmarks/metrics.py`", **shown, **load)
        write_table("metrics", "Reading metrics", text, HEADER, cells)
    return 0 if all(row.held for row in rows) else 1


def write_ours(folder: Path, scalars: int) -> None:
    with closing(EventWriter(folder)) as writer:
        for step in range(scalars // len(NAMES)):
            for place, name in enumerate(NAMES):
                writer.add_scalar(name, math.sin(step / 1000 + place), 128 * step)


def write_torch(folder: Path, scalars: int) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for step in range(scalars // len(NAMES)):
            for place, name in enumerate(NAMES):
                writer.add_scalar(name, math.sin(step / 1000 + place), 128 * step)


def readings(folder: Path, scalars: int, write: Callable[[Path, int], None]) -> Iterator[Row]:
    """The first and the second reading of a file, beside TensorBoard's."""
    write(folder / "runs", scalars)
    theirs, first, again = list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        theirs.append(timed(lambda: accumulate(folder / "runs", scalars)))
        (folder / CACHE_NAME).unlink(missing_ok=True)
        first.append(timed(lambda: read_all(folder, scalars)))
        again.append(timed(lambda: read_all(folder, scalars)))
    one, two, three = map(statistics.median, (theirs, first, again))
    ratio, writer = one / two, "EventWriter" if write is write_ours else "torch's SummaryWriter"
    told = f"{two:.2f} s, EventAccumulator {one:.1f} s: {ratio:.0f} × as fast"
    yield Row(
        f"First reading of {scalars:,} scalars of {writer}",
        told,
        f"{TIMES_AS_FAST:g} ×",
        ratio >= TIMES_AS_FAST,
    )
    limit = f"{1000 * AGAIN_SECONDS:.0f} ms"
    yield Row("The same, opened again", f"{1000 * three:.0f} ms", limit, three <= AGAIN_SECONDS)


def accumulate(folder: Path, scalars: int) -> None:
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    assert len(found.Scalars(RETURN)) == scalars // len(NAMES)


def read_all(folder: Path, scalars: int) -> None:
    metrics = RunMetrics.open(folder)
    assert sum(len(metrics.series(name)) for name in metrics.names) == scalars // len(NAMES) * len(NAMES)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def many(var: Path, runs: int, points: int, overlaid: int) -> Iterator[Row]:
    """Many runs of a daemon, through the client and in the window."""
    fill(VarPaths(var), runs, 0)
    try:
        yield from opened_many(var, points, overlaid)
    finally:
        stop_daemon(VarPaths(var))


def opened_many(var: Path, points: int, overlaid: int) -> Iterator[Row]:
    with Client.connect(var) as client:
        ids = [run.run_id for run in client.runs()]
        for run_id in ids:
            write_ours(client.paths.run(run_id).run_dir / "runs", points)
        cold = timed(lambda: open_all(client, ids, points))
        warm = statistics.median(timed(lambda: open_all(client, ids, points)) for _ in range(ROUNDS))
        told = f"{warm:.2f} s; the first time {cold:.1f} s"
        what = f"{len(ids)} runs of {points:,} points through the client"
        yield Row(what, told, f"{CLIENT_SECONDS:g} s", warm <= CLIENT_SECONDS)
        yield from in_window(var, ids[:overlaid], points)


def open_all(client: Client, ids: list[str], points: int) -> None:
    for run_id in ids:
        assert len(client.metrics(run_id).series(RETURN)) == points // len(NAMES)


def in_window(var: Path, ids: list[str], points: int) -> Iterator[Row]:
    """Overlays the runs several times in one window; the middle of the times, the worst of the stalls."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    sys.setswitchinterval(SWITCH_SECONDS)
    seconds, stalls, work = list[float](), list[float](), list[float]()
    with opened(var) as desktop:
        window = desktop.window
        spend(2000)
        for _ in range(ROUNDS):
            mark(window, ids)
            spend(1000)
            meter = StallMeter()
            meter.start()
            began = time.perf_counter()
            window.compare()
            view = window.findChild(CompareView)
            assert view is not None
            view.average.setChecked(False)
            wait_until(partial(drawn, view, len(ids)), "all lines are drawn")
            seconds.append(time.perf_counter() - began)
            spend(500)
            stall = meter.stop()
            stalls.append(stall.worst)
            work.append(max(stall.work))
            window.cover.uncover()
            # The next time nothing of them is known.
            view.compared.open([])
            view.compared.close()
            spend(500)
    del app
    middle = statistics.median(seconds)
    what = f"{len(ids)} runs of {points:,} points overlaid in the window"
    told = (
        f"{middle:.2f} s; the event loop at worst {max(stalls):.0f} ms late ({max(work):.0f} ms of own work)"
    )
    held = middle <= WINDOW_SECONDS and max(stalls) <= STALL_MS
    yield Row(what, told, f"{WINDOW_SECONDS:g} s; {STALL_MS:.0f} ms", held)


def drawn(view: CompareView, lines: int) -> bool:
    chart = view.grid.chart(RETURN)
    return (
        chart is not None and len(chart.plot.lines) == lines and all(len(line.x) for line in chart.plot.lines)
    )


if __name__ == "__main__":
    sys.exit(main())
