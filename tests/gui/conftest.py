"""Fixtures for tests of the window: no screen, a real daemon, and a guard against timers that go on."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QThread, QTimer
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from gym_gui.app import Desktop
from gym_gui.services.web import VARIABLE
from gym_gui.theme import theme
from support.window import Driver

os.environ["QT_QPA_PLATFORM"] = "offscreen"
# Chromium's threads stay as long as the process: pages are tested in windows of their own.
os.environ[VARIABLE] = "0"


@pytest.fixture(scope="session", autouse=True)
def dressed_app(qapp: QApplication) -> QApplication:
    """The application with its theme on. What Qt opens on first use stays open, so it is used once here."""
    theme.apply(qapp, "dark")
    warm = QLabel("warm")
    warm.resize(200, 80)
    warm.show()
    qapp.processEvents()
    warm.grab()
    warm.close()
    return qapp


@pytest.fixture(autouse=True)
def no_timer_stays(leak_marks: list[str], qapp: QApplication) -> Iterator[None]:
    """Fails a test that leaves a timer or a thread of Qt running, or a window on the screen."""
    before = _running()
    yield
    qapp.processEvents()
    gc.collect()
    left = [f"{type(one).__name__} of {one.parent()!r}" for one in _running() if one not in before]
    shown = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    for widget in shown:
        left.append(f"the window {widget!r}")
        widget.close()
    if left:
        pytest.fail("The test left running:\n  " + "\n  ".join(left), pytrace=False)


def _running() -> list[QTimer | QThread]:
    # Asking `isinstance` would wake what only poses as something else, and warns when it is looked at.
    things = [one for one in gc.get_objects() if issubclass(type(one), QTimer | QThread)]
    alive = [one for one in things if shiboken6.isValid(one)]
    return [one for one in alive if (one.isActive() if isinstance(one, QTimer) else one.isRunning())]


@pytest.fixture
def desktop(var: Path, qtbot: QtBot) -> Iterator[Desktop]:
    """The whole window, shown; it is closed at the end and must leave nothing."""
    opened = Desktop(var)
    opened.window.resize(1440, 900)
    opened.window.show()
    yield opened
    opened.window.close()
    opened.close()
    opened.window.deleteLater()
    QCoreApplication.sendPostedEvents(opened.window, QEvent.Type.DeferredDelete.value)


@pytest.fixture
def driver(desktop: Desktop, qtbot: QtBot) -> Driver:
    """The window once it has found its daemon and knows the runs."""
    found = Driver(desktop, qtbot)
    found.until(lambda: desktop.link.listed and desktop.link.state == "alive")
    return found
