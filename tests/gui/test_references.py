"""PySide6 takes no references from the objects that Python itself needs, as 6.12 does on Python 3.11."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

CALLS = 20_000


class Speaker(QObject):
    spoke = Signal(str)


def test_thousands_of_signals_cost_no_references(qtbot: QtBot) -> None:
    label, speaker = QLabel(), Speaker()
    qtbot.addWidget(label)
    speaker.spoke.connect(label.setToolTip)
    singletons = (None, True, False)
    before = [sys.getrefcount(one) for one in singletons]
    for _ in range(CALLS):
        label.update()
        speaker.spoke.emit("")
    lost = [count - sys.getrefcount(one) for count, one in zip(before, singletons, strict=True)]
    assert max(lost) < CALLS / 100
