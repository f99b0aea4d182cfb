"""How soon a submitted run works and is seen: from the submit, and from a click in the window.

python benchmarks/startup.py --rounds 10

Each round also times the imports that training cannot do without: torch alone, and torch, gymnasium and
tensorboard. The window is one without a screen, in this process; who waits for a picture looks from the
submit on.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from gui_cases.using import opened, wait_until
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from tables import write_table

from gym_gui.app import Desktop
from gym_gui.ui.widgets.frame_view import FrameView
from mosaic.client import Client, RunRecord, train_config
from mosaic.client.daemon import stop_daemon
from mosaic.fastlane.grid import LiveGrid

HERE = Path(__file__).parent
TORCH, IMPORTS = "import torch", "import torch, gymnasium, tensorboard"
FIRST_STEP, PICTURE = "submit → first environment step", "submit → first picture of CartPole"
WINDOW = "click on Train in the window → first picture of CartPole painted"
PICTURE_SECONDS = 2.5
_LOOK_SECONDS = 1 / 60
_MOST_SECONDS = 120.0


def measure_import(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def measure_run(client: Client) -> dict[str, float]:
    """Seconds from the submit to each point of one short run that nobody looks at."""
    config = train_config("ppo", "first_step_env:FirstStep-v0", total_timesteps=2_000, folder=HERE)
    submitted = time.time()
    run = client.wait(client.submit(config).run_id, timeout=_MOST_SECONDS)
    assert run.outcome == "completed", run.reason
    reached = {f"submit → {entry.status}": entry.at - submitted for entry in run.history}
    first_step = float((Path(run.run_dir) / "first_step").read_text()) - submitted
    return {**reached, FIRST_STEP: first_step}


def measure_picture(client: Client) -> float:
    """Seconds from the submit until a viewer has the first picture."""
    config = train_config("ppo", "CartPole-v1", total_timesteps=100_000_000)
    submitted = time.monotonic()
    run = client.submit(config)
    with LiveGrid(run.run_id) as grid:
        while not grid.shown:
            assert time.monotonic() - submitted < _MOST_SECONDS, grid.status()
            grid.look()
            time.sleep(_LOOK_SECONDS)
        seconds = time.monotonic() - submitted
    end(client, run)
    return seconds


def end(client: Client, run: RunRecord) -> None:
    """End a run and wait until it is gone."""
    client.cancel(run.run_id, "the benchmark has seen enough of it")
    client.wait(run.run_id, timeout=_MOST_SECONDS)


class Painted(QObject):
    """Notes when a live picture is painted for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.at: float | None = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        paints = event.type() == QEvent.Type.Paint and isinstance(watched, FrameView)
        if self.at is None and paints and watched.count:
            self.at = time.monotonic()
        return False


@contextmanager
def painted() -> Iterator[Painted]:
    app, note = QApplication.instance(), Painted()
    assert app is not None
    app.installEventFilter(note)
    try:
        yield note
    finally:
        app.removeEventFilter(note)


def measure_window(desktop: Desktop) -> float:
    """Seconds from a click on the form's Train until its run's first picture is painted."""
    window = desktop.window
    window.open_form("train", {})
    wait_until(lambda: window.cover.form is not None, "the form is open")
    form = window.cover.form
    assert form is not None
    wait_until(form.footer.submit.isEnabled, "the form can be submitted")
    before = window.page.run.run_id if window.page.run is not None else ""
    clicked = time.monotonic()
    QTest.mouseClick(form.footer.submit, Qt.MouseButton.LeftButton)
    wait_until(
        lambda: window.page.run is not None and window.page.run.run_id != before, "the new run is shown"
    )
    with painted() as note:
        wait_until(lambda: note.at is not None, "a live picture is painted")
    assert note.at is not None and window.page.run is not None
    end(desktop.link.client(), window.page.run)
    return note.at - clicked


def measure(rounds: int) -> dict[str, list[float]]:
    """All that is measured, in turn, by what it is."""
    found: dict[str, list[float]] = {}

    def note(values: dict[str, float]) -> None:
        for name, value in values.items():
            found.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory() as var, Client.connect(Path(var)) as client:
        try:
            for _ in range(rounds):
                note({f"`{code}`": measure_import(code) for code in (TORCH, IMPORTS)})
                note(measure_run(client))
                note({PICTURE: measure_picture(client)})
                # A new one each time: the picture of the run before would be painted first.
                with opened(Path(var)) as desktop:
                    note({WINDOW: measure_window(desktop)})
        finally:
            stop_daemon(client.paths)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    app = QApplication(sys.argv[:1])
    loads = [os.getloadavg()[0]]
    found = measure(options.rounds)
    loads.append(os.getloadavg()[0])
    base = statistics.median(found[f"`{IMPORTS}`"])
    limits: dict[str, float | None] = {
        f"`{TORCH}`": None,
        f"`{IMPORTS}`": None,
        "submit → HSHK": 0.15,
        "submit → EXEC": 1.0,
        FIRST_STEP: 1.3 * base + 0.5,
        PICTURE: PICTURE_SECONDS,
        WINDOW: PICTURE_SECONDS,
    }
    rows = []
    for name, limit in limits.items():
        median, most = statistics.median(found[name]), max(found[name])
        held = ["", ""] if limit is None else [f"{limit:.3f}", "yes" if median <= limit else "no"]
        rows.append([name, f"{median:.3f}", f"{most:.3f}", *held])
    write_table(
        "startup",
        "Start-up",
        f"Seconds over {options.rounds} rounds, all in turn. The limit of the first step is 1.3 × the "
        "imports' median + 0.5 s; those of the pictures are for a machine that does nothing else. The load "
        f"average of this one was {loads[0]:.1f} at the start, of which the measuring itself has no part, "
        f"and {loads[1]:.1f} at the end.",
        ["", "median", "most", "limit", "within"],
        rows,
    )
    app.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
