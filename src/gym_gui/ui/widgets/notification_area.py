"""The one place where the window speaks up: a card for the newest, and a list of all that was told."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QHBoxLayout, QSizePolicy, QWidget

from gym_gui.models import words
from gym_gui.services.tasks import Notification, Notifications
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.bars import Dot
from gym_gui.ui.widgets.basics import (
    Button,
    Card,
    Part,
    PassingCard,
    column_of,
    drop,
    fill,
    hbox,
    label,
    line,
    named,
    scrolled,
    vbox,
)

_MOST = 50
_MARGINS = (SPACE[2], SPACE[1], SPACE[1], SPACE[1])
_WIDTH, _HISTORY_HEIGHT = 440, 420
_SECONDS = {"info": 6, "good": 6, "warn": 12, "bad": 0}
"""0 stays until it is dismissed."""
_WORDS = {"info": "Note", "good": "Done", "warn": "Attention", "bad": "Error"}


def _mark(told: Notification) -> Dot:
    return named(Dot("accent" if told.kind == "info" else told.kind), _WORDS[told.kind])


class NotificationCard(Card):
    """One notification, with what can be done about it, and how many there are under it."""

    def __init__(self, area: NotificationArea, told: Notification) -> None:
        super().__init__(role="raised", margin=_MARGINS, lifted=True)
        self.told = told
        self._area = area
        text = label(told.text, selectable=True, wraps=True)
        text.setAccessibleName(f"{_WORDS[told.kind]}: {told.text}")
        text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
        self.more = Button("", role="link", do=area.history_wanted)
        self.dismiss = Button("Dismiss", role="quiet", do=area.dismiss)
        row = hbox((_mark(told), 0, Qt.AlignmentFlag.AlignVCenter), (text, 1))
        self.action = None
        if told.action is not None:
            self.action = Button(told.action[0], role="link", do=told.action[1])
            self.action.clicked.connect(self.close_card)
            fill(row, self.action)
        fill(row, self.more, self.dismiss)
        self.column.addLayout(row)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.close_card)
        if _SECONDS[told.kind]:
            self._timer.start(_SECONDS[told.kind] * 1000)

    def enterEvent(self, event: QEvent) -> None:
        """While it is read it stays."""
        self._timer.stop()

    def close_card(self) -> None:
        self._timer.stop()
        self._area.drop(self)


class NotificationArea(QWidget):
    """A single card above the left lower corner of the window that it lies on, however much was told.

    The right corner has the buttons of the forms.
    """

    history_wanted = Signal()

    def __init__(self, notifications: Notifications, over: QWidget, margin: int) -> None:
        super().__init__(over)
        self._over = over
        self._margin = margin
        self.muted = False
        """Whether what comes by itself, such as the end of a run, is kept in the history only."""
        self.cards: list[NotificationCard] = []
        """Those that are open, of which the last is to be seen."""
        self._column = vbox(on=self)
        self.setFixedWidth(_WIDTH)
        self.hide()
        over.installEventFilter(self)
        notifications.posted.connect(self.show_notification)

    def show_notification(self, told: Notification) -> None:
        if self.muted and told.aside:
            return
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
            drop(card)
            self._place()

    def dismiss(self) -> None:
        """Close all: the history has them."""
        for card in list(self.cards):
            card.close_card()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def _place(self) -> None:
        self.setVisible(bool(self.cards))
        if not self.cards:
            return
        for card in self.cards:
            card.setVisible(card is self.cards[-1])
        more = len(self.cards) - 1
        self.cards[-1].more.setText(f"{more} more")
        self.cards[-1].more.setVisible(more > 0)
        self._column.activate()
        height = max(self._column.totalHeightForWidth(_WIDTH), self._column.totalMinimumSize().height())
        self.resize(_WIDTH, height)
        self.move(SPACE[3], self._over.rect().bottom() - height - self._margin)
        self.raise_()


class NotificationHistory(PassingCard):
    """All that was told since the window was opened, newest first; Esc or a click elsewhere takes it away."""

    muted = Signal(bool)
    opened = Signal()

    def __init__(self, notifications: Notifications, over: QWidget, margin: int) -> None:
        super().__init__(over=over, margin=1, spacing=0, lifted=True)
        self._notifications = notifications
        self._over = over
        self._margin = margin
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.mute = QCheckBox("Do not pop up when runs end")
        self.mute.toggled.connect(self.muted)
        self.close_button = Button("Close", role="quiet", do=self.hide)
        title = label("Messages", "strong")
        head = hbox(title, 1, self.mute, self.close_button, margins=_MARGINS, spacing=SPACE[2])
        self._area = scrolled(QWidget())
        fill(self.column, head, line(), (self._area, 1))
        notifications.posted.connect(self._posted)
        over.installEventFilter(self)
        QApplication.instance().focusChanged.connect(self._focus_moved)  # type: ignore[union-attr]
        self.hide()

    def open(self) -> None:
        """Show it in the lower right corner of the window, or take it away when it is there."""
        if self.isVisible():
            self.hide()
            return
        self._fill()
        # What is not shown yet has not its typeface, and so not its height.
        self.show()
        self._place()
        self.raise_()
        self.setFocus()
        self.opened.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return False

    def _focus_moved(self, _: QWidget | None, to: QWidget | None) -> None:
        if self.isVisible() and to is not None and to is not self and not self.isAncestorOf(to):
            self.hide()

    def hideEvent(self, event: QHideEvent) -> None:
        """Hundreds of rows are not kept for when it is opened again: they are made anew then."""
        super().hideEvent(event)
        page = self._area.takeWidget()
        if page is not None:
            page.deleteLater()

    def _posted(self, told: Notification) -> None:
        if self.isVisible():
            self._fill()
            self._place()
            self.opened.emit()

    def _place(self) -> None:
        page, whole = self._page.layout(), self.layout()
        assert page is not None and whole is not None
        # A scroll bar that is there takes the room that makes it needed: it comes last.
        self._area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.resize(_WIDTH, _HISTORY_HEIGHT)
        whole.activate()
        around = _HISTORY_HEIGHT - self._area.viewport().height()
        wanted = around + page.totalHeightForWidth(self._area.viewport().width())
        height = min(wanted, _HISTORY_HEIGHT, self._over.height() - 2 * self._margin - SPACE[4])
        if height < wanted:
            self._area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        left, top = self._over.width() - _WIDTH - SPACE[3], self._over.height() - height - self._margin
        self.setGeometry(left, top, _WIDTH, height)

    def _fill(self) -> None:
        rows: list[Part] = [self._row(told) for told in reversed(self._notifications.history)]
        shown = rows or [label("No messages yet.", "dim")]
        self._page = page = column_of(*shown, 1, margins=(SPACE[2], SPACE[1], SPACE[2], SPACE[1]))
        self._area.setWidget(page)

    def _row(self, told: Notification) -> QHBoxLayout:
        top = Qt.AlignmentFlag.AlignTop
        # In the middle of the first line of the text.
        mark = vbox((_mark(told), 0, top), margins=(0, SPACE[0], 0, 0))
        row = hbox(mark, (label(told.text, selectable=True, wraps=True), 1, top))
        if told.action is not None:
            name, act = told.action
            link = Button(name, role="link", do=self.hide)
            link.clicked.connect(act)
            fill(row, (link, 0, top))
        fill(row, (label(words.clock(told.at), "faint"), 0, top))
        return row
