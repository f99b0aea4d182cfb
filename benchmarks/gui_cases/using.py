"""Hands at the window: what a person would do with it, without a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QEventLoop, QItemSelectionModel, QTimer
from PySide6.QtWidgets import QApplication

from gym_gui.app import Desktop
from gym_gui.theme import theme
from gym_gui.ui.window import Window

_LOOK_MS = 20
_MOST_SECONDS = 120.0


@contextmanager
def opened(var: Path) -> Iterator[Desktop]:
    """The window of a var folder, which knows its runs."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    desktop = Desktop(var)
    theme.apply(app, "dark")
    desktop.window.show()
    try:
        wait_until(lambda: desktop.link.listed, "the runs are listed")
        yield desktop
    finally:
        desktop.window.close()
        desktop.close()


def spend(milliseconds: float) -> None:
    """Let the window work for so long, in a real event loop."""
    loop = QEventLoop()
    QTimer.singleShot(int(milliseconds), loop.quit)
    loop.exec()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _MOST_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"the window never came to it: {what}"
        spend(_LOOK_MS)


def show_tab(window: Window, run_id: str, title: str, patiently: bool = True) -> bool:
    """Select a run and open one of its tabs; False when it has none of that name now."""
    window.cover.uncover()
    window.select_run(run_id)
    bar = window.page.bar

    def place() -> int:
        return next((at for at in range(bar.count()) if bar.tabText(at) == title), -1)

    if patiently:
        wait_until(lambda: place() >= 0, f"the tab {title}")
    if place() >= 0:
        bar.setCurrentIndex(place())
    return place() >= 0


def mark(window: Window, run_ids: list[str]) -> None:
    """Choose these runs in the list."""
    model, chosen = window.panel.model, window.panel.list.selectionModel()
    chosen.clearSelection()
    places = {model.place(model.listing.key_of(run_id)) for run_id in run_ids}
    for place in sorted(place for place in places if place is not None):
        chosen.select(model.index(place), QItemSelectionModel.SelectionFlag.Select)


def scroll(window: Window, share: float) -> None:
    """Move the list to this share of its length."""
    bar = window.panel.list.verticalScrollBar()
    bar.setValue(round(share * bar.maximum()))
