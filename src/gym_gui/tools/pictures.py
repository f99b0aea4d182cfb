"""Pictures of every view and form, at two sizes and in both themes, from runs that are trained for it.

python -m gym_gui.tools.pictures FOLDER [--only NAME …] [--var FOLDER]

It needs no screen. Without --var the runs are trained in a folder that is removed again, which takes a few
minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QItemSelectionModel
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from gym_gui.app import Desktop
from gym_gui.theme import theme
from gym_gui.ui.presenters.play import SPEEDS
from gym_gui.ui.views.play import PlayView
from gym_gui.ui.window import Window
from mosaic.client import Client, RunRecord, eval_config, train_config
from mosaic.client.daemon import stop_daemon
from mosaic.contract.paths import VarPaths
from mosaic.fastlane.layout import FOLDER_VARIABLE

_MOST_SECONDS = 600.0
_LIVE_STEPS = 50_000_000
_STEP_MS = 50
_STEPS = 20
_MOST_MS = 180_000
SIZES = ((1440, 900), (1024, 700))
THEMES = ("dark", "light")
_REDRAW_MS = 400
_MOST_LOOKS = 8


@dataclass(frozen=True)
class SampleRuns:
    """The runs by what they are there for."""

    seeds: list[RunRecord]
    """One configuration with three seeds."""
    other: RunRecord
    """Another algorithm on the same environment, with videos."""
    continuous: RunRecord
    evaluation: RunRecord
    failed: RunRecord
    live: RunRecord
    waiting: RunRecord


def make_runs(client: Client, folder: Path) -> SampleRuns:
    """Train all of them, or use those that an earlier call has left; takes a minute or two.

    Modules and scripts are looked for in `folder`.
    """
    ended = {
        (tag, run.worker_config.get("seed")): run
        for run in client.runs()
        if run.outcome in ("completed", "failed")
        for tag in run.tags
    }

    def submit(tag: str, config: dict[str, Any]) -> RunRecord:
        seed = config["metadata"]["worker"]["config"].get("seed")
        return ended.get((tag, seed)) or client.submit(config)

    def train(tag: str, algo: str, env_id: str, steps: int, **options: Any) -> RunRecord:
        config = train_config(algo, env_id, total_timesteps=steps, tags=[tag], folder=folder, **options)
        return submit(tag, config)

    seeds = [train("seeds", "ppo", "CartPole-v1", 60_000, seed=seed) for seed in (1, 2, 3)]
    other = train("other", "dqn", "CartPole-v1", 30_000, params={"capture_video": True})
    continuous = train("continuous", "ppo_continuous_action", "Pendulum-v1", 30_000)
    script = folder / "my_ppo.py"
    script.write_text('raise SystemExit("the replay buffer needs 24 GB, and 16 GB are free")\n', "utf-8")
    failed = train("failed", str(script), "Robot-v0", 10)
    for run in (*seeds, other, continuous, failed):
        client.wait(run.run_id, timeout=_MOST_SECONDS)
    played = eval_config(
        seeds[0].run_id, episodes=40, batch_size=10, tags=["evaluation"], folder=folder, var=client.paths.root
    )
    evaluation = submit("evaluation", played)
    client.wait(evaluation.run_id, timeout=_MOST_SECONDS)
    live = train("live", "ppo", "CartPole-v1", _LIVE_STEPS, seed=7, params={"num_envs": 8})
    every_cpu = client.health().cpus
    waiting = train("waiting", "sac_continuous_action", "Pendulum-v1", 20_000, cpus=every_cpu)
    _until_training(client, live)
    return SampleRuns(seeds, other, continuous, evaluation, failed, live, waiting)


def end_runs(client: Client) -> None:
    """Cancel what still lives or waits, and wait until it is gone."""
    live = [run for run in client.runs() if not run.ended]
    for run in sorted(live, key=lambda run: run.status != "INIT"):
        client.cancel(run.run_id, "the pictures are taken")
    for run in live:
        client.wait(run.run_id, timeout=_MOST_SECONDS)


def _until_training(client: Client, run: RunRecord) -> None:
    """Return when the run has numbers to show."""
    deadline = time.monotonic() + _MOST_SECONDS
    while not client.get(run.run_id).headline.get("episodes"):
        assert time.monotonic() < deadline, f"run {run.run_id} has no numbers yet"
        time.sleep(0.5)


@dataclass(frozen=True)
class Scene:
    """A name for the file, and what brings the window there."""

    name: str
    put_on: Callable[[], object]
    settle_ms: int = 1500


def scenes(window: Window, runs: SampleRuns) -> Iterator[Scene]:
    """All of them, in an order in which each can follow the one before."""
    live, other = runs.live, runs.other
    yield Scene("overview", lambda: show_tab(window, live, "Overview"), 4000)
    yield Scene("live", lambda: show_tab(window, live, "Live"), 4000)
    yield Scene("charts", lambda: show_tab(window, runs.seeds[0], "Charts"), 3000)
    yield Scene("logs", lambda: show_tab(window, live, "Logs"))
    yield Scene("config", lambda: show_tab(window, other, "Config"))
    yield Scene("artifacts", lambda: show_tab(window, other, "Artifacts"), 3000)
    yield Scene("play", lambda: play(window, runs.seeds[0]))
    yield Scene("play-continuous", lambda: play(window, runs.continuous))
    yield Scene("play-ended", lambda: play_to_the_end(window, runs.seeds[0]))
    yield Scene("play-start", lambda: show_tab(window, runs.seeds[1], "Play"))
    yield Scene("evaluation", lambda: show_tab(window, runs.evaluation, "Overview"), 3000)
    yield Scene("failed", lambda: show_tab(window, runs.failed, "Overview"))
    yield Scene("waiting", lambda: show_tab(window, runs.waiting, "Overview"))
    yield Scene("compare", lambda: compare(window, [*runs.seeds, other]), 4000)
    yield Scene("table", lambda: open_table(window))
    for purpose in ("train", "policy", "resume", "script"):
        yield Scene(f"form-{purpose}", partial(open_form, window, purpose, live), 3000)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Let the window work until something holds."""
    for _ in range(_MOST_MS // _STEP_MS):
        if holds():
            return
        QTest.qWait(_STEP_MS)
    raise TimeoutError(f"The window never came to it: {what}.")


def show_tab(window: Window, run: RunRecord, title: str) -> None:
    """Select a run and open one of its tabs."""
    window.cover.uncover()
    wait_until(lambda: window.context.runs.get(run.run_id) is not None, f"run {run.run_id} is listed")
    window.select_run(run.run_id)
    bar = window.page.bar

    def place() -> int:
        return next((at for at in range(bar.count()) if bar.tabText(at) == title), -1)

    wait_until(lambda: place() >= 0, f"the tab {title} of run {run.run_id} is there")
    bar.setCurrentIndex(place())


def play(window: Window, run: RunRecord) -> PlayView:
    """Open a session and take a few steps."""
    show_tab(window, run, "Play")
    view = window.page.views[PlayView]
    assert isinstance(view, PlayView)
    wait_until(
        lambda: view.run.run_id == run.run_id and view.start.go.isEnabled(),
        f"a policy of run {run.run_id} can be played",
    )
    view.start.go.click()
    wait_until(lambda: view.presenter.phase != "loading", "the session has begun")
    assert view.presenter.open, view.presenter.sentence[0]
    for number in range(1, _STEPS + 1):
        view.stage.controls.stepped.emit()
        wait_until(partial(_has_taken, view, number), f"step {number} is taken")
    return view


def play_to_the_end(window: Window, run: RunRecord) -> None:
    """Let a session run until its episode is over."""
    view = play(window, run)
    view.stage.controls.speed_changed.emit(SPEEDS[-1])
    view.stage.controls.ran.emit(True)
    wait_until(lambda: view.presenter.phase == "ended", "the episode is over")


def _has_taken(view: PlayView, number: int) -> bool:
    seen = view.presenter.seen
    return seen is not None and (seen.last or seen.message.get("step", 0) >= number)


def compare(window: Window, runs: list[RunRecord]) -> None:
    """Mark runs in the list and compare them."""
    window.cover.uncover()
    chosen = window.panel.list.selectionModel()
    chosen.clearSelection()
    for run in runs:
        place = window.panel.model.place(window.panel.model.listing.key_of(run.run_id))
        if place is not None:
            chosen.select(window.panel.model.index(place), QItemSelectionModel.SelectionFlag.Select)
    window.compare()
    wait_until(lambda: window.cover.comparison is not None, "the comparison is there")


def open_table(window: Window) -> None:
    """Show all runs in the table."""
    window.cover.uncover()
    window.open_table()


def open_form(window: Window, purpose: str, run: RunRecord) -> None:
    """Open a form over the run."""
    window.cover.uncover()
    window.close_table()
    window.select_run(run.run_id)
    before = window.cover.form
    window.open_form(purpose, {})
    wait_until(lambda: window.cover.form not in (None, before), f"the form '{purpose}' is there")


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_options(argv)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault(FOLDER_VARIABLE, scratch)
        if not options.only or "empty" in options.only:
            take_empty(app, Path(scratch, "empty"), options.folder)
        var = options.var or Path(scratch, "var")
        take_all(app, var.resolve(), options.folder, options.only)
    return 0


def take_all(app: QApplication, var: Path, folder: Path, only: Sequence[str]) -> None:
    """Train what is missing, then show and take everything."""
    var.mkdir(parents=True, exist_ok=True)
    with Client.connect(var) as client:
        try:
            runs = make_runs(client, var)
            desktop = Desktop(var)
            desktop.window.show()
            try:
                for scene in scenes(desktop.window, runs):
                    if not only or scene.name in only:
                        scene.put_on()
                        QTest.qWait(scene.settle_ms)
                        take(app, desktop, folder, scene.name)
            finally:
                desktop.window.close()
                desktop.close()
        finally:
            end_runs(client)
            stop_daemon(client.paths)


def take_empty(app: QApplication, var: Path, folder: Path) -> None:
    """The window before the first run."""
    var.mkdir()
    desktop = Desktop(var)
    desktop.window.show()
    try:
        wait_until(lambda: desktop.link.listed, "the daemon has answered")
        take(app, desktop, folder, "empty")
    finally:
        desktop.window.close()
        desktop.close()
        stop_daemon(VarPaths(var))


def take(app: QApplication, desktop: Desktop, folder: Path, name: str) -> None:
    """What is to be seen now, at every size and in every theme."""
    for look in THEMES:
        theme.apply(app, look)
        for width, height in SIZES:
            desktop.window.resize(width, height)
            path = folder / f"{name}-{look}-{width}x{height}.png"
            settled(desktop.window).save(str(path))
            print(path, flush=True)


def settled(window: QWidget) -> QImage:
    """The window once it looks the same twice; one that goes on moving, after a while."""
    picture = QImage()
    for _ in range(_MOST_LOOKS):
        before = picture
        QTest.qWait(_REDRAW_MS)
        picture = window.grab().toImage()
        if picture == before:
            break
    return picture


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gym_gui.tools.pictures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these, such as play")
    parser.add_argument("--var", type=Path, help="a var folder whose sample runs are kept and used again")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
