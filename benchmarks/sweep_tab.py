"""Whether the Sweep tab opens at once on a study of 1,000 trials, and never holds the window up.

python benchmarks/sweep_tab.py [--trials N] [--pictures FOLDER] [--short]

A window without a screen, in this process; the study is made up, its file is that of a real sweep. Then 200
trials more end while the tab is looked at. The page is written when all is measured in full.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from gui_cases.stalls import BEAT_MS, StallMeter, Stalls
from gui_cases.using import opened, spend, wait_until
from PySide6.QtWidgets import QApplication
from tables import Row, Table, table_row, write_tables

from gym_gui.app import SWITCH_SECONDS, Desktop
from gym_gui.theme import theme
from gym_gui.ui.views.sweep import SweepView
from gym_gui.ui.window import Window
from mosaic.client import RunRecord
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import VarPaths
from mosaic.sweeps.study import COMPLETE, FAILED, PRUNED, RUNNING, Study, StudyWriter, Trial

TRIALS, MORE = 1000, 200
OPEN_SECONDS, STALL_MS = 1.0, 100.0
SWEEP = "0SWEEP00000000000000000000"
HEADER = ["what was done", "measured", "limit", "held"]
TEXT = """\
A sweep of {trials:,} trials with ten parameters and twenty intermediate values each. Opening is the time from
choosing the run to the last chart being painted, in a window that shows runs already. A stall is how much
later than every {beat} ms a timer of the window's own event loop rang, whatever held it up; own work is the
CPU time of the window's thread in the same span. The window has 1440 × 900, in software without a screen.

The load average of the machine was {load:.1f}."""
SPACE: dict[str, dict[str, Any]] = {
    "learning_rate": {"low": 1e-5, "high": 1e-2, "log": True, "step": None, "whole": False},
    "ent_coef": {"low": 1e-8, "high": 0.1, "log": True, "step": None, "whole": False},
    "gamma": {"choices": [0.9, 0.95, 0.98, 0.99, 0.995, 0.999]},
    "gae_lambda": {"choices": [0.8, 0.9, 0.92, 0.95, 0.98, 1.0]},
    "num_steps": {"choices": [32, 64, 128, 256, 512]},
    "num_envs": {"low": 1, "high": 16, "log": False, "step": 1, "whole": True},
    "num_minibatches": {"choices": [1, 2, 4, 8]},
    "update_epochs": {"low": 1, "high": 20, "log": True, "step": None, "whole": True},
    "clip_coef": {"low": 0.1, "high": 0.4, "log": False, "step": None, "whole": False},
    "anneal_lr": {"choices": [True, False]},
}


def made_trial(number: int, chance: random.Random, objectives: int = 1) -> Trial:
    """A trial that is the better the nearer its learning rate is to 1e-3 and its clipping to 0.2."""
    params: dict[str, bool | int | float | str | None] = {}
    for name, told in SPACE.items():
        if "choices" in told:
            params[name] = chance.choice(told["choices"])
        elif told["log"]:
            value = told["low"] * (told["high"] / told["low"]) ** chance.random()
            params[name] = round(value) if told["whole"] else value
        else:
            value = chance.uniform(told["low"], told["high"])
            params[name] = round(value) if told["whole"] else value
    rate, clip = float(params["learning_rate"] or 1), float(params["clip_coef"] or 0)
    miss = abs(math.log10(rate) + 3) + 4 * abs(clip - 0.2)
    end = 500 * math.exp(-miss) + chance.gauss(0, 20)
    curve = {step * 2500: end * (1 - math.exp(-step / 6)) + chance.gauss(0, 12) for step in range(1, 21)}
    state, reason = COMPLETE, ""
    if objectives == 1 and number > 5 and chance.random() < 0.35:
        cut = chance.randint(4, 12)
        curve = dict(list(curve.items())[:cut])
        state, reason = PRUNED, f"pruned at step {cut * 2500:,}"
    elif chance.random() < 0.02:
        state, reason = FAILED, "exit code 1: ValueError: the batch of 32 cannot be split into 8 minibatches"
    values = (end, 20 + 60 * chance.random() + end / 20)[:objectives] if state == COMPLETE else ()
    began, points = 1.7e9 + number * 40, curve if objectives == 1 else {}
    return Trial(number, state, params, values, points, (f"{number:026d}",), reason, began, began + 35)


def made_study(trials: int, objectives: int = 1, wanted: int | None = None) -> Study:
    """A study with so many trials that have ended."""
    chance = random.Random(7)
    names = ("charts/episodic_return (mean of the last 50)", "charts/SPS (last)")[:objectives]
    ways = ("maximize", "maximize")[:objectives]
    made = tuple(made_trial(number, chance, objectives) for number in range(trials))
    return Study("sweep", names, ways, SPACE, made, wanted or trials, SWEEP)


def made_run(folder: Path, trials: int) -> RunRecord:
    """A live sweep that no daemon has, with its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    now = time.time()
    return RunRecord(
        run_id=SWEEP,
        run_name="Sweep of ppo · CartPole-v1",
        worker_type="sweep",
        status="EXEC",
        outcome=None,
        reason=None,
        run_dir=str(folder),
        tags=[],
        submitted_at=now - 600,
        started_at=now - 590,
        ended_at=None,
        exit_code=None,
        supervisor_pid=None,
        training_pid=None,
        priority=1000,
        place=0.0,
        gpus=[],
        config={"metadata": {"worker": {"type": "sweep", "config": {}}, "ui": {}}},
        headline={
            "phase": "searching",
            "trials": trials,
            "total_trials": trials + MORE,
            "mean_return": 499.9,
        },
        worker={},
    )


@contextmanager
def window_on(var: Path) -> Iterator[Desktop]:
    """A window with a daemon of its own, both of which end."""
    var.mkdir(parents=True, exist_ok=True)
    try:
        with opened(var) as desktop:
            yield desktop
    finally:
        stop_daemon(VarPaths(var))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--pictures", type=Path, help="also save what is to be seen, there")
    parser.add_argument("--short", action="store_true", help="nothing is written")
    options = parser.parse_args()
    app = QApplication(sys.argv[:1])
    sys.setswitchinterval(SWITCH_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(app, Path(folder).resolve() / "var", options.trials, options.pictures)
    app.quit()
    if not options.short:
        text = TEXT.format(trials=options.trials, beat=BEAT_MS, load=os.getloadavg()[0])
        packages = ("PySide6-Essentials", "pyqtgraph", "numpy")
        table = Table(HEADER, [row.cells() for row in rows])
        write_tables("sweep_tab", "The Sweep tab", text, [table], packages=packages)
    return 0 if all(row.held for row in rows) else 1


def measure(app: QApplication, var: Path, trials: int, pictures: Path | None) -> list[Row]:
    with window_on(var) as desktop:
        window = desktop.window
        folder = var / "trainer" / "runs" / SWEEP
        run = made_run(folder, trials)
        writer, study = StudyWriter(folder), made_study(trials, wanted=trials + MORE)
        writer.begin(study)
        spend(1500)
        meter = StallMeter()
        meter.start()
        began = time.perf_counter()
        desktop.link.runs_changed.emit([run])
        window.select_run(SWEEP)
        wait_until(lambda: SweepView in window.page.views, "the tab is there")
        view = window.page.views[SweepView]
        assert isinstance(view, SweepView)
        wait_until(
            lambda: view.settled and view.study is not None and len(view.study.trials) == trials,
            "all is drawn",
        )
        seconds = time.perf_counter() - began
        opening = meter.stop()
        rows = [
            Row(
                f"The tab of {trials:,} trials is opened",
                f"{seconds:.2f} s",
                f"< {OPEN_SECONDS:g} s",
                seconds < OPEN_SECONDS,
            ),
            _stalls("Stalls while it opens", opening),
        ]
        wait_until(lambda: view.feed.weights, "the parameters are weighed")
        save(app, window, pictures, "tab")
        meter.start()
        chance = random.Random(8)
        for number in range(trials, trials + MORE):
            one = made_trial(number, chance)
            told = {k: v for k, v in vars(one).items() if k not in ("number", "intermediate")}
            writer.add(number, **{**told, "state": RUNNING, "values": ()})
            for step, value in one.intermediate.items():
                writer.add(number, intermediate={step: value})
            writer.add(number, state=one.state, values=one.values)
            spend(40)
        wait_until(lambda: view.settled and counted(view) == trials + MORE, "all are drawn")
        rows.append(_stalls(f"Stalls while {MORE} more end", meter.stop()))
        meter.start()
        for column in range(view.table.rows.columnCount()):
            view.table.horizontalHeader().sectionClicked.emit(column)
            spend(60)
        for number in range(0, trials, max(1, trials // 60)):
            view.mark(number)
            spend(15)
        rows.append(_stalls("Stalls while the table is sorted and trials are marked", meter.stop()))
        for row in rows:
            print(table_row(row.cells()), flush=True)
    return rows


def counted(view: SweepView) -> int:
    """How many trials are shown."""
    return 0 if view.study is None else len(view.study.trials)


def _stalls(what: str, stalls: Stalls) -> Row:
    return Row(what, stalls.text(), f"< {STALL_MS:g} ms", stalls.worst < STALL_MS)


def save(app: QApplication, window: Window, folder: Path | None, name: str) -> None:
    """The window in both themes."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for look in ("light", "dark"):
        theme.apply(app, look)
        window.resize(1440, 900)
        spend(1200)
        window.grab().save(str(folder / f"{name}-{look}.png"))


if __name__ == "__main__":
    sys.exit(main())
