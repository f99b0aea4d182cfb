"""A window that lives for long does not lose the objects that Python itself needs."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

CALLS = 200_000


class Speaker(QObject):
    spoke = Signal(str)


def test_hundreds_of_thousands_of_calls_leave_none_and_true_alive(qtbot: QtBot) -> None:
    label, speaker = QLabel(), Speaker()
    qtbot.addWidget(label)
    speaker.spoke.connect(label.setToolTip)
    for _ in range(CALLS):
        label.update()
        speaker.spoke.emit("")
    assert sys.getrefcount(None) > CALLS and sys.getrefcount(True) > CALLS
