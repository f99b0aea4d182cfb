"""The window of a soak, in a process of its own: whatever ends it is seen by who has started it.

python -m gui_cases.soak_window VAR RECORD --seconds N --seed N --looks N

RECORD has a line of JSON for every action, before it is done, for each look at the memory and for whatever
went wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import logging
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import psutil
from PySide6.QtCore import (
    QMessageLogContext,
    QObject,
    QTimer,
    QtMsgType,
    QUrl,
    Slot,
    qInstallMessageHandler,
)
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QWidget

from gui_cases.hands import hands
from gui_cases.person import Pauses, Person
from gym_gui.app import SWITCH_SECONDS, Desktop

_LONG = 60.0
"""Seconds; a shorter soak says nothing about growth, and begins at once."""
_REST_MS = 2500.0
"""Before a look at the memory: what is no longer used has gone by then."""


class Soak(QObject):
    """Lets a person act until the time is over, from a timer: some menus keep an event loop of their own."""

    def __init__(self, desktop: Desktop, record: Callable[..., None], options: argparse.Namespace) -> None:
        super().__init__()
        self._desktop = desktop
        self._record = record
        self._seconds, self._looks = options.seconds, options.looks
        chance = random.Random(options.seed)
        self._person = Person(desktop.window, hands(), chance, lambda what: record(did=what))
        self._process = psutil.Process()
        self._began = time.monotonic()
        self._pauses = self._live()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._go_on)
        self._timer.start(0)

    def _go_on(self) -> None:
        pause = next(self._pauses, None)
        if pause is None:
            self._desktop.window.close()
        else:
            self._timer.start(int(pause))

    def _live(self) -> Pauses:
        while not (self._desktop.link.listed and len(self._desktop.window.context.runs) > 0):
            yield 50
        if self._seconds > _LONG:
            yield from self._person.look_round()
            self._began = time.monotonic()
        for number in range(self._looks):
            until = self._began + self._seconds * (number + 1) / self._looks
            while time.monotonic() < until:
                yield from self._person.act()
            yield from self._person.go_home()
            yield _REST_MS
            self._look()

    def _look(self) -> None:
        # A form that was left with changes waits to be opened again, one of each kind: how many there are,
        # and with how many fields, is the person's choice.
        left = self._desktop.window.cover.left_forms.values()
        waiting = {one for form in left for one in (form, *form.findChildren(QWidget))}
        kinds = Counter(type(one).__name__ for one in QApplication.allWidgets() if one not in waiting)
        self._record(
            kinds=kinds,
            look={
                "seconds": time.monotonic() - self._began,
                "actions": self._person.actions,
                "megabytes": self._process.memory_info().rss / 2**20,
                "widgets": kinds.total(),
                "left_forms": len(left),
                "in_left_forms": len(waiting),
                "objects": len(gc.get_objects()),
                "threads": threading.active_count(),
            },
        )


class Links(QObject):
    """Takes what would be opened in other programs: folders, pages."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in ("file", "http", "https"):
            QDesktopServices.setUrlHandler(scheme, self, "take")

    @Slot(QUrl)
    def take(self, address: QUrl) -> None:
        pass


class LoggedFaults(logging.Handler):
    """What the window has caught and logged is wrong too."""

    def __init__(self, record: Callable[..., None]) -> None:
        super().__init__(logging.ERROR)
        self._record = record
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, one: logging.LogRecord) -> None:
        self._record(wrong=self.format(one))


def report_all(record: Callable[..., None]) -> None:
    """Whatever goes wrong anywhere in this process is recorded."""

    def by_qt(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
        if kind not in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg):
            record(wrong=f"Qt {context.category}: {text}")

    def by_python(kind: Any, error: BaseException | None, trace: Any = None) -> None:
        record(wrong="".join(traceback.format_exception(kind, error, trace)))

    qInstallMessageHandler(by_qt)
    sys.excepthook = by_python
    threading.excepthook = lambda args: by_python(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: by_python(args.exc_type, args.exc_value, args.exc_traceback)
    logging.getLogger("gym_gui").addHandler(LoggedFaults(record))


def recorder(file: TextIO) -> Callable[..., None]:
    """Writes what it is given as a line, at once: a crash must not lose it. Threads may share it."""
    lock = threading.Lock()

    def record(**what: Any) -> None:
        with lock:
            file.write(json.dumps(what) + "\n")
            file.flush()

    return record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("var", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--looks", type=int, required=True)
    options = parser.parse_args()
    # Asked for by USR1 when the window does not answer.
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    with options.record.open("w", encoding="utf-8") as file:
        record = recorder(file)
        report_all(record)
        sys.setswitchinterval(SWITCH_SECONDS)
        app = QApplication(sys.argv[:1])
        desktop = Desktop(options.var)
        desktop.window.closed.connect(app.quit)
        desktop.window.show()
        kept = Links(), Soak(desktop, record, options)
        code = app.exec()
        desktop.close()
        del kept
        record(ended=code)
    return code


if __name__ == "__main__":
    sys.exit(main())
