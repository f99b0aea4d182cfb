"""Starting and ending the application."""

from __future__ import annotations

import ctypes
import gc
import logging
import signal
import sys
import threading
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from gym_gui import log
from gym_gui.context import Settings
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Notifications, Tasks, timer
from gym_gui.theme import ASSETS, put_on
from gym_gui.ui.window import Window
from mosaic.contract.paths import VarPaths

SWITCH_SECONDS = 0.001
"""How long a thread that computes may keep the window waiting."""
_SIGNAL_MS = 300
_COLLECT_MS = 1000
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
"""The numbers that glibc gives to the most heaps of a process, and to the least size of what lies in none."""
_LARGE = 256 * 1024
"""Bytes. What is larger, such as the points of a curve, leaves holes in a heap for small things to fill."""
_MOST_NEW = 1000
"""Objects made since the last look that make another one worth while; a closed form leaves about as many."""


class Collector(QObject):
    """Looks for garbage on the thread of the window, and nowhere else.

    Python does it in any thread that happens to make an object, which would end widgets there; and it looks
    through old objects so seldom that dozens of closed forms pile up. What was freed goes back to the system:
    glibc keeps it, in a heap for each of the many threads that come and go with the runs that are looked at.
    """

    def __init__(self) -> None:
        super().__init__()
        libc = ctypes.CDLL(None)
        self._give_back = getattr(libc, "malloc_trim", None)
        if self._give_back is not None:
            libc.mallopt(_M_ARENA_MAX, 1)
            libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        gc.disable()
        # What is imported stays; to look through it too would take ten times as long.
        gc.freeze()
        self._timer = timer(self, _COLLECT_MS, self._look)
        self._timer.start()

    def _look(self) -> None:
        if gc.get_count()[0] > _MOST_NEW:
            gc.collect()
        if self._give_back is not None:
            self._give_back(0)

    def close(self) -> None:
        """Leave it to Python again."""
        self._timer.stop()
        gc.unfreeze()
        gc.enable()


class Desktop:
    """The services and the window of one var folder; `close` ends all of them and stops no run."""

    def __init__(self, var: Path) -> None:
        self.paths = VarPaths(var.resolve())
        self.paths.make()
        self._log: logging.Handler | None = log.set_up(self.paths.logs)
        self._collector = Collector()
        self.notifications = Notifications()
        self.settings = Settings(self.paths.root)
        # Before the window is made: its parts take the typeface that is on.
        put_on(self.settings.get("theme"))
        self.tasks = Tasks(self.notifications)
        self.link = DaemonLink(self.paths.root)
        self.window = Window(self.link, self.tasks, self.notifications, self.settings)
        self.window.closed.connect(self.close)
        self.link.start()
        log.info(log.Code.WINDOW_OPENED, str(self.paths.root))

    def close(self) -> None:
        """End every thread, write the settings down, close the log."""
        if self._log is None:
            return
        handler, self._log = self._log, None
        self.window.shut_down()
        self.link.close()
        self.tasks.close()
        self.settings.save()
        self._collector.close()
        log.info(log.Code.WINDOW_CLOSED, str(self.paths.root))
        log.take_down(handler)


def run(var: Path, argv: list[str]) -> int:
    """Show the window until it is closed; gives the exit code."""
    sys.setswitchinterval(SWITCH_SECONDS)
    app = QApplication(argv)
    app.setApplicationName("MOSAIC")
    app.setDesktopFileName("mosaic")
    app.setWindowIcon(QIcon(str(ASSETS / "icon.svg")))
    desktop = Desktop(var)
    catch_faults(desktop.notifications)
    let_signals_close(desktop.window)
    desktop.window.closed.connect(app.quit)
    desktop.window.show()
    code = app.exec()
    desktop.close()
    return code


def catch_faults(notifications: Notifications) -> None:
    """An exception that nobody caught is told and logged; the window goes on."""

    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QApplication.quit()
        else:
            notifications.tell_error(error)

    def told_by_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            notifications.tell_error(args.exc_value)

    sys.excepthook = told
    threading.excepthook = told_by_thread


def let_signals_close(window: Window) -> None:
    """Ctrl-C and TERM close the window as its own button does. Python sees them only when it has a turn."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not at once: it may come before the window is shown, and what is shown after it was closed stays.
        signal.signal(number, lambda *_: QTimer.singleShot(0, window.close))
    turn = timer(window, _SIGNAL_MS, lambda: None)
    turn.start()
