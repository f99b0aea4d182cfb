"""Plots that wait to be drawn, one at a time, so that a page full of news never stops the window."""

from __future__ import annotations

from typing import Protocol

import shiboken6
from PySide6.QtCore import QObject, QTimer

_PAUSE_MS = 3
"""Between two plots, so that whatever else is due comes first."""


class Drawn(Protocol):
    """Something that can be drawn."""

    def draw(self) -> None: ...


class DrawQueue:
    """Each plot waits at most once, however often it is asked for."""

    def __init__(self) -> None:
        self._waiting: dict[Drawn, None] = {}
        self._timer: QTimer | None = None

    def add(self, plot: Drawn) -> None:
        """Draw it soon."""
        self._waiting[plot] = None
        if self._timer is None or not shiboken6.isValid(self._timer):
            self._timer = QTimer(interval=_PAUSE_MS)
            self._timer.timeout.connect(self._draw_next)
        if not self._timer.isActive():
            self._timer.start()

    def remove(self, plot: Drawn) -> None:
        """It need not be drawn."""
        self._waiting.pop(plot, None)
        self._rest_if_done()

    def _draw_next(self) -> None:
        while self._waiting:
            plot = next(iter(self._waiting))
            del self._waiting[plot]
            if not isinstance(plot, QObject) or shiboken6.isValid(plot):
                plot.draw()
                break
        self._rest_if_done()

    def _rest_if_done(self) -> None:
        if not self._waiting and self._timer is not None and shiboken6.isValid(self._timer):
            self._timer.stop()


draw_queue = DrawQueue()
"""The one queue of the window's thread."""
