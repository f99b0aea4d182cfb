"""Everything that the window can show, put on one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QItemSelectionModel
from PySide6.QtTest import QTest

from gym_gui.tools.sample_runs import SampleRuns
from gym_gui.ui.presenters.play import SPEEDS
from gym_gui.ui.views.play import PlayView
from gym_gui.ui.window import Window
from mosaic.client import RunRecord

_STEP_MS = 50
_STEPS = 20
_MOST_MS = 180_000


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
        lambda: view.run_id == run.run_id and view.start.go.isEnabled(),
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
