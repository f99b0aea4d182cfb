"""What frames the window: the top bar, the bottom bar, the empty middle, and the finder over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gym_gui.models import words
from gym_gui.models.runs import RunBook
from gym_gui.theme import LABEL, SPACE, number_font, theme
from gym_gui.ui.presenters.window import (
    COMMANDS,
    EmptyWords,
    Found,
    Usage,
    daemon_words,
    found_by,
    machine_words,
    queue_words,
    room_words,
)
from gym_gui.ui.widgets.basics import Button, button, cast_shadow, elide_title, label, restyle, tip
from mosaic.client import HealthRecord

_TOP_HEIGHT = 48
_ROOMY = 1180
"""Narrower than this, only the two shortcuts used most stand in their buttons; the others in the tooltips."""


class Toolbar(QFrame):
    """Forms by purpose, training again, comparing and finding."""

    form_wanted = Signal(str)
    again_wanted = Signal()
    compare_wanted = Signal()
    find_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "bar-top")
        self.setFixedHeight(_TOP_HEIGHT)
        self.train = self._form_button("Train", "Ctrl+T", "train", "primary")
        self.again = self._plain("Train again", "Ctrl+Shift+T", self.again_wanted)
        self.again.setEnabled(False)
        self.policy = self._form_button("Evaluate policy", "Ctrl+E", "policy")
        self.resume = self._form_button("Resume", "Ctrl+R", "resume")
        self.script = self._form_button("Script", "Ctrl+J", "script")
        self.compare = self._plain("Compare", "Ctrl+D", self.compare_wanted)
        self.finding = self._plain("Find", "Ctrl+K", self.find_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE[3], 0, SPACE[3], 0)
        row.setSpacing(SPACE[1])
        row.addWidget(label("MOSAIC", "brand"))
        row.addSpacing(SPACE[3])
        for one in (self.train, self.again, self.policy, self.resume, self.script):
            row.addWidget(one)
        row.addStretch(1)
        row.addWidget(self.compare)
        row.addWidget(self.finding)
        self.set_chosen(0)

    def set_chosen(self, count: int) -> None:
        """How many runs the list has marked."""
        self.compare.setText(f"Compare {count} runs" if count > 1 else "Compare")
        self.compare.setEnabled(count > 1)
        self.compare.setToolTip(
            "Ctrl+D"
            if count > 1
            else "Choose several runs in the list with Ctrl or Shift, then compare them."
        )

    def set_again(self, what: str | None) -> None:
        """What would be trained again; None when there is nothing yet."""
        self.again.setEnabled(what is not None)
        self.again.setToolTip(tip(f"{what}, as it was the last time") if what else "Nothing was trained yet.")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for one in (self.again, self.policy, self.resume, self.script, self.compare):
            one.set_compact(self.width() < _ROOMY)

    def _plain(self, text: str, shortcut: str, signal: object) -> Button:
        made = button(text, shortcut)
        made.clicked.connect(lambda: signal.emit())  # type: ignore[attr-defined]
        return made

    def _form_button(self, text: str, shortcut: str, purpose: str, role: str | None = None) -> Button:
        made = button(text, shortcut, role)
        made.clicked.connect(lambda: self.form_wanted.emit(purpose))
        return made


STATUS_HEIGHT = 28


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
        self.setFixedHeight(STATUS_HEIGHT)
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


_EMPTY_WIDTH = 460


class EmptyState(QWidget):
    """A title, a few sentences and at most two buttons."""

    first_run_wanted = Signal()
    form_wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.title = label("", "title", wraps=True)
        self.text = label("", "dim", selectable=True, wraps=True)
        self.go = button("Train CartPole", role="primary")
        self.go.clicked.connect(self.first_run_wanted)
        self.choose = button("Choose what to train")
        self.choose.clicked.connect(lambda: self.form_wanted.emit("train"))
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACE[1])
        buttons.addWidget(self.go)
        buttons.addWidget(self.choose)
        buttons.addStretch(1)
        inner = QWidget()
        inner.setFixedWidth(_EMPTY_WIDTH)
        column = QVBoxLayout(inner)
        column.setSpacing(SPACE[2])
        column.addWidget(self.title)
        column.addWidget(self.text)
        column.addSpacing(SPACE[0])
        column.addLayout(buttons)
        across = QHBoxLayout()
        across.addStretch(1)
        across.addWidget(inner)
        across.addStretch(1)
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        outer.addLayout(across)
        outer.addStretch(3)

    def show_words(self, told: EmptyWords) -> None:
        self.title.setText(told.title)
        self.text.setText(told.text)
        self.go.setVisible(told.can_train)
        self.choose.setVisible(told.can_train)

    def set_busy(self, busy: bool) -> None:
        """The first run is on its way."""
        self.go.setEnabled(not busy)
        self.go.setText("Starting…" if busy else "Train CartPole")


_WIDTH, _HEIGHT, _LINE = 560, 420, 34


class _Lines(QStyledItemDelegate):
    """Words on the left, the shortcut or what tells a run on the right."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index) -> None:  # type: ignore[no-untyped-def]
        found = index.data(Qt.ItemDataRole.UserRole)
        area = option.rect
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.palette.raised))
            painter.drawRoundedRect(area, 6, 6)
        inner = area.adjusted(SPACE[2], 0, -SPACE[2], 0)
        painter.setFont(number_font(LABEL))
        hint_width = painter.fontMetrics().horizontalAdvance(found.hint) + SPACE[2]
        painter.setPen(QColor(theme.palette.faint))
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, found.hint)
        painter.setFont(number_font())
        painter.setPen(QColor(theme.palette.text))
        room = inner.width() - hint_width
        title = elide_title(painter.fontMetrics(), found.title, room)
        painter.drawText(inner, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
        painter.restore()


class Finder(QFrame):
    """A field with lines below it, over the window; Esc takes it away."""

    chosen = Signal(object)
    """The `Found` line."""

    def __init__(self, over: QWidget, book: RunBook, more: Callable[[], Sequence[Found]]) -> None:
        """`more` tells the commands that are there only now and then."""
        super().__init__(over)
        self._over = over
        self._book = book
        self._more = more
        self._commands: list[Found] = []
        self.setProperty("role", "card")
        cast_shadow(self)
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find a run or a command…")
        self.field.setAccessibleName("Find")
        self.field.textChanged.connect(self._fill)
        self.field.installEventFilter(self)
        self.lines = QListWidget()
        self.lines.setItemDelegate(_Lines(self.lines))
        self.lines.setUniformItemSizes(True)
        self.lines.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.lines.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.lines.itemClicked.connect(self._take)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[1], SPACE[1], SPACE[1], SPACE[1])
        column.setSpacing(SPACE[1])
        column.addWidget(self.field)
        column.addWidget(self.lines)
        self.hide()

    def open(self) -> None:
        """Show it, empty, in the upper middle of the window."""
        width = min(_WIDTH, self._over.width() - 2 * SPACE[4])
        height = min(_HEIGHT, self._over.height() - 120)
        self.setGeometry((self._over.width() - width) // 2, 64, width, height)
        self._commands = [*self._more(), *COMMANDS]
        self.field.clear()
        self._fill("")
        self.show()
        self.raise_()
        self.field.setFocus()

    def look_again(self) -> None:
        """More runs are known now."""
        if self.isVisible():
            row = self.lines.currentRow()
            self._fill(self.field.text())
            self.lines.setCurrentRow(row)

    def _fill(self, text: str) -> None:
        self.lines.clear()
        for found in found_by(text, self._book, self._commands):
            item = QListWidgetItem()
            item.setData(Qt.ItemDataRole.UserRole, found)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{found.title}, {found.hint}")
            item.setSizeHint(QSize(0, _LINE))
            self.lines.addItem(item)
        self.lines.setCurrentRow(0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The field keeps the keys; up and down move in the lines."""
        if event.type() == QEvent.Type.FocusOut:
            self.hide()
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        key, row = event.key(), self.lines.currentRow()
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            row += 1 if key == Qt.Key.Key_Down else -1
            self.lines.setCurrentRow(max(0, min(self.lines.count() - 1, row)))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._take(self.lines.currentItem())
        elif key == Qt.Key.Key_Escape:
            self.hide()
        else:
            return False
        return True

    def _take(self, item: QListWidgetItem | None) -> None:
        found = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        self.hide()
        if isinstance(found, Found):
            self.chosen.emit(found)
