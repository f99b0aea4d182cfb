"""The one place where the window speaks up."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from gym_gui.services.notifications import Notification, Notifications
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import button, cast_shadow, label
from gym_gui.ui.widgets.status_bar import Dot

_MOST = 4
_WIDTH = 400
_SECONDS = {"info": 6, "good": 6, "warn": 12, "bad": 0}
"""0 stays until it is dismissed."""
_ROLES = {"info": "accent", "good": "good", "warn": "warn", "bad": "bad"}
_WORDS = {"info": "Note", "good": "Done", "warn": "Attention", "bad": "Error"}


class NotificationCard(QFrame):
    """One notification, with what can be done about it."""

    def __init__(self, area: NotificationArea, told: Notification) -> None:
        super().__init__()
        self.told = told
        self._area = area
        self.setProperty("role", "raised")
        cast_shadow(self)
        dot = Dot()
        dot.set_role(_ROLES[told.kind])
        dot.setAccessibleName(_WORDS[told.kind])
        text = label(told.text, selectable=True, wraps=True)
        text.setAccessibleName(f"{_WORDS[told.kind]}: {told.text}")
        text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
        self.dismiss = button("Dismiss", role="quiet")
        self.dismiss.clicked.connect(self.close_card)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE[2], SPACE[1], SPACE[1], SPACE[1])
        row.setSpacing(SPACE[1])
        row.addWidget(dot, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(text, 1)
        self.action = None
        if told.action is not None:
            self.action = button(told.action[0], role="link")
            self.action.clicked.connect(self._act)
            row.addWidget(self.action)
        row.addWidget(self.dismiss)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.close_card)
        if _SECONDS[told.kind]:
            self._timer.start(_SECONDS[told.kind] * 1000)

    def _act(self) -> None:
        if self.told.action is not None:
            self.told.action[1]()
        self.close_card()

    def enterEvent(self, event: QEvent) -> None:
        """While it is read it stays."""
        self._timer.stop()

    def close_card(self) -> None:
        self._timer.stop()
        self._area.drop(self)


class NotificationArea(QWidget):
    """Cards above the left lower corner of the window that it lies on, newest below.

    The right one has the buttons of the forms.
    """

    def __init__(self, notifications: Notifications, over: QWidget, margin: int) -> None:
        super().__init__(over)
        self._over = over
        self._margin = margin
        self.cards: list[NotificationCard] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(SPACE[1])
        self.setFixedWidth(_WIDTH)
        self.hide()
        over.installEventFilter(self)
        notifications.posted.connect(self.show_notification)

    def show_notification(self, told: Notification) -> None:
        # The same again takes the place of the first: an error that repeats must not fill the window.
        for card in [card for card in self.cards if card.told.text == told.text]:
            self.drop(card)
        while len(self.cards) >= _MOST:
            self.drop(self.cards[0])
        card = NotificationCard(self, told)
        self.cards.append(card)
        self._column.addWidget(card)
        self._place()

    def drop(self, card: NotificationCard) -> None:
        if card in self.cards:
            self.cards.remove(card)
            self._column.removeWidget(card)
            card.hide()
            card.deleteLater()
            self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def _place(self) -> None:
        self.setVisible(bool(self.cards))
        if not self.cards:
            return
        self._column.activate()
        height = max(self._column.totalHeightForWidth(_WIDTH), self._column.totalMinimumSize().height())
        self.resize(_WIDTH, height)
        area = self._over.rect()
        self.move(SPACE[3], area.bottom() - height - self._margin)
        self.raise_()
