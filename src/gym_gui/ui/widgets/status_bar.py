"""The bottom bar: the daemon, this machine, the queue."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QWidget

from gym_gui.models import words
from gym_gui.services.machine import Usage
from gym_gui.theme import LABEL, SPACE, number_font, theme
from gym_gui.ui.presenters.status import daemon_words, machine_words, queue_words, room_words
from gym_gui.ui.widgets.basics import button, restyle, tip
from mosaic.client import HealthRecord

HEIGHT = 28


class Dot(QWidget):
    """A state as a colour, beside the words for it."""

    def __init__(self) -> None:
        super().__init__()
        self._role = "faint"
        self.setFixedSize(QSize(8, 8))
        theme.changed.connect(self.update)

    def set_role(self, role: str) -> None:
        self._role = role
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(theme.palette, self._role)))
        painter.drawEllipse(self.rect().adjusted(0, 0, -1, -1))


class StatusBar(QFrame):
    """One line that is always true."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "bar-bottom")
        self.setFixedHeight(HEIGHT)
        self.dot = Dot()
        self.daemon = _text()
        self.daemon.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.messages = button("Messages", role="quiet-link")
        # A click that took the focus would close what it is to open or close.
        self.messages.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._unread = 0
        self.cpu, self.memory, self.gpu, self.queue, self.room = (_text() for _ in range(5))
        # It changes all the time, and its neighbours stand still.
        self.cpu.setMinimumWidth(self.cpu.fontMetrics().horizontalAdvance("CPU 100 %"))
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE[3], 0, SPACE[3], 0)
        row.setSpacing(SPACE[4])
        first = QHBoxLayout()
        first.setSpacing(SPACE[1] - 2)
        first.addWidget(self.dot)
        first.addWidget(self.daemon)
        row.addLayout(first)
        for part in (self.cpu, self.memory, self.gpu, self.queue):
            row.addWidget(part)
        row.addStretch(1)
        row.addWidget(self.messages)
        row.addWidget(self.room)
        self.show_daemon("connecting", "")

    def count_message(self) -> None:
        """Something was told, and has not been read in the history."""
        self._unread += 1
        self.messages.setText(f"Messages {self._unread:,}")
        restyle(self.messages, role="link")

    def messages_read(self) -> None:
        self._unread = 0
        self.messages.setText("Messages")
        restyle(self.messages, role="quiet-link")

    def show_daemon(self, state: str, reason: str) -> None:
        told = daemon_words(state, reason)
        self.daemon.setText(told.short)
        self.daemon.setToolTip(tip(told.long))
        self.dot.set_role(told.role)
        if state != "alive":
            self.queue.clear()

    def show_health(self, health: HealthRecord | None) -> None:
        self.queue.setText("" if health is None else queue_words(health))
        self.room.setText("" if health is None else room_words(health))
        told = "" if health is None else "\n".join([*health.problems, *health.notices])
        self.room.setToolTip(tip(told))
        self.daemon.setToolTip(
            ""
            if health is None
            else f"Version {health.version}, process {health.pid}, up {words.duration(health.uptime_seconds)}"
        )

    def show_usage(self, usage: Usage) -> None:
        for part, text in zip((self.cpu, self.memory, self.gpu), machine_words(usage), strict=True):
            part.setText(text)


def _text() -> QLabel:
    made = QLabel()
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("role", "label")
    made.setFont(number_font(LABEL))
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made
