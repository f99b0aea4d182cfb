"""What frames the window: the top bar, the bottom bar, the empty middle, and the finder over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from gym_gui.models import words
from gym_gui.models.form_choices import ListRow
from gym_gui.models.runs import RunBook
from gym_gui.theme import SPACE, theme
from gym_gui.ui.presenters.window import (
    COMMANDS,
    Found,
    daemon_words,
    found_by,
    queue_words,
    room_words,
)
from gym_gui.ui.widgets.basics import Button, Card, Gap, NumberLabel, hbox, label, restyle, tip, vbox
from gym_gui.ui.widgets.fields.pickers import PickList
from mosaic.client import HealthRecord

_TOP_HEIGHT = 48
_ROOMY = 1180
"""Narrower than this, only the two shortcuts used most stand in their buttons; the others in the tooltips."""
STATUS_HEIGHT = 28
_EMPTY_WIDTH = 460
_WIDTH, _HEIGHT = 560, 420


class Toolbar(QFrame):
    """Forms by purpose, training again, comparing and finding."""

    form_wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "bar-top")
        self.setFixedHeight(_TOP_HEIGHT)
        self.train = Button("Train", "Ctrl+T", "primary", do=lambda: self.form_wanted.emit("train"))
        self.again = Button("Train again", "Ctrl+Shift+T")
        self.again.setEnabled(False)
        self.policy = Button("Evaluate policy", "Ctrl+E", do=lambda: self.form_wanted.emit("policy"))
        self.resume = Button("Resume", "Ctrl+R", do=lambda: self.form_wanted.emit("resume"))
        self.script = Button("Script", "Ctrl+J", do=lambda: self.form_wanted.emit("script"))
        self.hand = Button("Play by hand", "Ctrl+H", do=lambda: self.form_wanted.emit("hand"))
        self.compare = Button("Compare", "Ctrl+D")
        self.finding = Button("Find", "Ctrl+K")
        forms = (self.train, self.again, self.policy, self.resume, self.script, self.hand)
        brand = (label("MOSAIC", "brand"), Gap(SPACE[3]))
        hbox(*brand, *forms, 1, self.compare, self.finding, on=self, margins=(SPACE[3], 0, SPACE[3], 0))
        self.set_chosen(0)

    def set_chosen(self, count: int) -> None:
        """How many runs the list has marked."""
        self.compare.setText(f"Compare {count} runs" if count > 1 else "Compare")
        self.compare.setEnabled(count > 1)
        few = "Select several runs in the list with Ctrl or Shift, then compare them."
        self.compare.setToolTip("Ctrl+D" if count > 1 else few)

    def set_again(self, what: str | None) -> None:
        """What would be trained again; None when there is nothing yet."""
        self.again.setEnabled(what is not None)
        text = tip(f"{what}, with the same settings") if what else "Nothing has been trained yet."
        self.again.setToolTip(text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for one in (self.again, self.policy, self.resume, self.script, self.hand, self.compare):
            one.set_compact(self.width() < _ROOMY)


class Dot(QWidget):
    """A state as a colour, beside the words for it."""

    def __init__(self, role: str = "faint") -> None:
        super().__init__()
        self._role = role
        self.setFixedSize(QSize(8, 8))
        theme.changed.connect(self.update)

    def set_role(self, role: str) -> None:
        self._role = role
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.palette.colour(self._role))
        painter.drawEllipse(self.rect().adjusted(0, 0, -1, -1))


class StatusBar(QFrame):
    """One line that is always true."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "bar-bottom")
        self.setFixedHeight(STATUS_HEIGHT)
        self.dot = Dot()
        self.daemon = NumberLabel(role="label")
        self.daemon.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.messages = Button("Messages", role="quiet-link")
        # A click that took the focus would close what it is to open or close.
        self.messages.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._unread = 0
        self.cpu, self.memory, self.gpu, self.queue, self.room = (NumberLabel(role="label") for _ in range(5))
        # It changes all the time, and its neighbours stand still.
        self.cpu.setMinimumWidth(self.cpu.fontMetrics().horizontalAdvance("CPU 100 %"))
        state = hbox(self.dot, self.daemon, spacing=SPACE[1] - 2)
        parts = (state, self.cpu, self.memory, self.gpu, self.queue, 1, self.messages, self.room)
        hbox(*parts, on=self, margins=(SPACE[3], 0, SPACE[3], 0), spacing=SPACE[4])
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
        short, long, role = daemon_words(state, reason)
        self.daemon.setText(short)
        self.daemon.setToolTip(tip(long))
        self.dot.set_role(role)
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

    def show_usage(self, usage: tuple[str, str, str]) -> None:
        """The `machine_words`."""
        for part, text in zip((self.cpu, self.memory, self.gpu), usage, strict=True):
            part.setText(text)


class EmptyState(QWidget):
    """A title, a few sentences and at most two buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.title = label("", "title", wraps=True)
        self.text = label("", "dim", selectable=True, wraps=True)
        self.go = Button("Train CartPole", role="primary")
        self.choose = Button("Choose what to train")
        buttons = hbox(self.go, self.choose, 1)
        inner = QWidget()
        inner.setFixedWidth(_EMPTY_WIDTH)
        vbox(self.title, self.text, Gap(SPACE[0]), buttons, on=inner, margins=None, spacing=SPACE[2])
        vbox(2, hbox(1, inner, 1), 3, on=self, margins=None)

    def show_words(self, title: str, text: str, can_train: bool) -> None:
        self.title.setText(title)
        self.text.setText(text)
        self.go.setVisible(can_train)
        self.choose.setVisible(can_train)

    def set_busy(self, busy: bool) -> None:
        """The first run is on its way."""
        self.go.setEnabled(not busy)
        self.go.setText("Starting…" if busy else "Train CartPole")


class Finder(Card):
    """A field with lines below it, over the window; Esc takes it away."""

    chosen = Signal(object)
    """The `Found` line."""

    def __init__(self, over: QWidget, book: RunBook, more: Callable[[], Sequence[Found]]) -> None:
        """`more` tells the commands that are there only now and then."""
        self.list = PickList("Find a run or a command…")
        super().__init__(self.list, margin=SPACE[1], over=over, lifted=True)
        self._over, self._book, self._more = over, book, more
        self._commands: list[Found] = []
        self._lines: list[Found] = []
        self.field = self.list.search
        self.field.textChanged.connect(self._fill)
        self.field.installEventFilter(self)
        self.list.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.chosen.connect(self._take)
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
            chosen = self.list.view.currentIndex().row()
            self._fill(self.field.text(), self._lines[chosen].name if chosen >= 0 else "")

    def _fill(self, text: str, chosen: str = "") -> None:
        self._lines = found_by(text, self._book, self._commands)
        rows = [ListRow(found.name, found.title, aside=found.hint) for found in self._lines]
        self.list.show_rows(rows, chosen or (rows[0].key if rows else ""))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.hide()
        elif isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            self.hide()
            return True
        return False

    def _take(self, name: str) -> None:
        # A double click is told of twice.
        if self.isVisible():
            self.hide()
            self.chosen.emit(next(one for one in self._lines if one.name == name))
