"""Mouse and keyboard at a window: those of the X server where there is one, else those of Qt's tests."""

from __future__ import annotations

import subprocess
from typing import Protocol

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

_TOOL_SECONDS = 20
_MODIFIERS = {
    "": Qt.KeyboardModifier.NoModifier,
    "ctrl": Qt.KeyboardModifier.ControlModifier,
    "shift": Qt.KeyboardModifier.ShiftModifier,
}
_QT_NAMES = {"Escape": "Esc"}
"""Keys that X calls otherwise."""


class Hands(Protocol):
    """What a person does with them; places are those of the screen, keys are named as X names them."""

    def click(self, at: QPoint, modifier: str = "") -> None: ...

    def wheel(self, at: QPoint, down: bool) -> None: ...

    def key(self, keys: str) -> None: ...

    def type(self, text: str) -> None: ...

    def resize(self, window: QWidget, width: int, height: int) -> None: ...


class ScreenHands:
    """Events that come from the X server, as from a real mouse: by `xdotool`."""

    def click(self, at: QPoint, modifier: str = "") -> None:
        held = ["keydown", modifier] if modifier else []
        freed = ["keyup", modifier] if modifier else []
        _tool("mousemove", str(at.x()), str(at.y()), *held, "click", "1", *freed)

    def wheel(self, at: QPoint, down: bool) -> None:
        _tool("mousemove", str(at.x()), str(at.y()), "click", "--repeat", "3", "5" if down else "4")

    def key(self, keys: str) -> None:
        _tool("key", "--clearmodifiers", keys)

    def type(self, text: str) -> None:
        _tool("type", "--clearmodifiers", "--delay", "4", text)

    def resize(self, window: QWidget, width: int, height: int) -> None:
        _tool("windowsize", str(int(window.winId())), str(width), str(height))


class QtHands:
    """Events made by Qt for the window under a place, where there is no screen."""

    def click(self, at: QPoint, modifier: str = "") -> None:
        widget = QApplication.widgetAt(at)
        if widget is not None:
            place = widget.mapFromGlobal(at)
            QTest.mouseClick(widget, Qt.MouseButton.LeftButton, _MODIFIERS[modifier], place)

    def wheel(self, at: QPoint, down: bool) -> None:
        widget = QApplication.widgetAt(at)
        if widget is not None:
            turned = QPoint(0, -360 if down else 360)
            event = QWheelEvent(
                QPointF(widget.mapFromGlobal(at)),
                QPointF(at),
                QPoint(),
                turned,
                Qt.MouseButton.NoButton,
                Qt.KeyboardModifier.NoModifier,
                Qt.ScrollPhase.NoScrollPhase,
                False,
            )
            QApplication.sendEvent(widget, event)

    def key(self, keys: str) -> None:
        widget = _typed_into()
        pressed = QKeySequence("+".join(_QT_NAMES.get(part, part) for part in keys.split("+")))[0]
        if widget is not None:
            QTest.keyClick(widget, pressed.key(), pressed.keyboardModifiers())

    def type(self, text: str) -> None:
        widget = _typed_into()
        if widget is not None:
            QTest.keyClicks(widget, text)

    def resize(self, window: QWidget, width: int, height: int) -> None:
        window.resize(width, height)


def hands() -> Hands:
    """Those that fit the screen."""
    return ScreenHands() if QGuiApplication.platformName() == "xcb" else QtHands()


def _typed_into() -> QWidget | None:
    return QApplication.activePopupWidget() or QApplication.focusWidget() or QApplication.activeWindow()


def _tool(*words: str) -> None:
    subprocess.run(["xdotool", *words], timeout=_TOOL_SECONDS, check=False, stderr=subprocess.DEVNULL)
