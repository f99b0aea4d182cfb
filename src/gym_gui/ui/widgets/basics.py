"""The small parts that every view is made of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple, TypeVar

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGraphicsDropShadowEffect,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSlider,
    QSplitter,
    QStackedWidget,
    QStyle,
    QStyleOption,
    QStyleOptionButton,
    QVBoxLayout,
    QWidget,
)

from gym_gui.services.tasks import Doing, Notifications
from gym_gui.theme import LABEL, SPACE, number_font, theme

B = TypeVar("B", bound=QBoxLayout)
W = TypeVar("W", bound=QWidget)
_HINT_GAP = 7
Index = QModelIndex | QPersistentModelIndex
"""A place in a model, as Qt tells it."""
Item = QWidget | QLayout
Margins = int | tuple[int, int, int, int] | None
"""The same on all sides, or left, top, right and bottom; None leaves them to the style."""
PAGE = (SPACE[4], SPACE[3], SPACE[4], SPACE[3])
"""The margins of a page."""
_LEAST = 4
"""Fewer letters than this tell nothing, and look like a fault."""
_BETWEEN = " · "


class Gap(NamedTuple):
    """Empty room of so many pixels between two parts of a box."""

    pixels: int


Part = Item | Gap | int | tuple[Item, int] | tuple[Item, int, Qt.AlignmentFlag]
"""Of a box: a widget or a layout, also with its stretch and alignment; a number is a stretch alone."""


def hbox(
    *parts: Part, on: QWidget | None = None, margins: Margins = 0, spacing: int = SPACE[1]
) -> QHBoxLayout:
    """Parts beside each other, as the layout of a widget or to be put into another one."""
    return _filled(QHBoxLayout() if on is None else QHBoxLayout(on), parts, margins, spacing)


def vbox(
    *parts: Part, on: QWidget | None = None, margins: Margins = 0, spacing: int = SPACE[1]
) -> QVBoxLayout:
    """Parts under each other, as the layout of a widget or to be put into another one."""
    return _filled(QVBoxLayout() if on is None else QVBoxLayout(on), parts, margins, spacing)


def _filled(box: B, parts: Sequence[Part], margins: Margins, spacing: int) -> B:
    if margins is not None:
        box.setContentsMargins(*(margins if isinstance(margins, tuple) else (margins,) * 4))
    box.setSpacing(spacing)
    fill(box, *parts)
    return box


def fill(box: QBoxLayout, *parts: Part) -> None:
    """Put parts at the end of a box."""
    for part in parts:
        if isinstance(part, Gap):
            box.addSpacing(part.pixels)
        elif isinstance(part, int):
            box.addStretch(part)
        elif isinstance(part, QLayout):
            box.addLayout(part)
        elif isinstance(part, QWidget):
            box.addWidget(part)
        elif isinstance(part[0], QLayout):
            box.addLayout(part[0], part[1])
        else:
            box.addWidget(part[0], part[1], *part[2:])


def grid(on: QWidget, bottom: int = 0, across: int = SPACE[2], down: int = SPACE[2]) -> QGridLayout:
    """The layout of a widget in rows and columns, with so much room between and below them."""
    made = QGridLayout(on)
    made.setContentsMargins(0, 0, 0, bottom)
    made.setHorizontalSpacing(across)
    made.setVerticalSpacing(down)
    return made


def column_of(*parts: Part, margins: Margins = 0, spacing: int = SPACE[1]) -> QWidget:
    """Parts under each other in a widget of their own."""
    made = QWidget()
    vbox(*parts, on=made, margins=margins, spacing=spacing)
    return made


def drop(widget: QWidget) -> None:
    """Take a widget away for good."""
    widget.hide()
    widget.deleteLater()


def swap(box: QLayout, old: QWidget, fresh: QWidget) -> QWidget:
    """Put a widget in the place of another one, which goes; gives the new one."""
    box.replaceWidget(old, fresh)
    drop(old)
    return fresh


def empty(box: QLayout) -> None:
    """Take away all that is in a box."""
    while (item := box.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            drop(widget)
        elif (layout := item.layout()) is not None:
            layout.deleteLater()


def named(widget: W, name: str) -> W:
    """The widget, with the name by which a screen reader tells of it."""
    widget.setAccessibleName(name)
    return widget


def slider(last: int, name: str) -> QSlider:
    """Something to set a number from 0 to `last` with."""
    made = named(QSlider(Qt.Orientation.Horizontal), name)
    made.setRange(0, last)
    return made


def search_field(placeholder: str, name: str = "") -> QLineEdit:
    """A field to search or filter by, that can be cleared with a click."""
    return named(QLineEdit(placeholderText=placeholder, clearButtonEnabled=True), name or placeholder)


def stacked(*pages: QWidget) -> QStackedWidget:
    """Pages of which one is seen, at first the first."""
    made = QStackedWidget()
    for page in pages:
        made.addWidget(page)
    return made


def scrolled(page: QWidget) -> QScrollArea:
    """A page that scrolls up and down, and is as wide as there is room."""
    made = QScrollArea(widgetResizable=True)
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    made.setWidget(page)
    return made


def restyle(widget: QWidget, **properties: str | bool) -> None:
    """Give a widget other properties, and the looks that the stylesheet has for them."""
    changed = {name: value for name, value in properties.items() if widget.property(name) != value}
    for name, value in changed.items():
        widget.setProperty(name, value)
    if changed:
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def tip(text: str) -> str:
    """What a tooltip shows of a text of others: that text, and not what it would mean as HTML."""
    if "<" not in text:
        return text
    shown = escape(text).replace("\n", "<br>")
    return f"<span>{shown}</span>"


def label(text: str = "", role: str | None = None, selectable: bool = False, wraps: bool = False) -> QLabel:
    """A text; `role` names its looks in the stylesheet."""
    made = QLabel(text, textFormat=Qt.TextFormat.PlainText, wordWrap=wraps)
    made.setProperty("role", role)
    if selectable:
        made.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        made.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    return made


class Button(QPushButton):
    """A button that shows its shortcut beside its words."""

    def __init__(
        self,
        text: str,
        shortcut: str | None = None,
        role: str | None = None,
        do: Doing | None = None,
        checkable: bool = False,
        listens: bool = True,
    ) -> None:
        """`role` is `primary`, `danger`, `quiet`, `link` or `chip`; `do` is called when it is clicked.

        One that does not listen only shows its shortcut: something else sees to the key.
        """
        super().__init__(text)
        self.setCheckable(checkable)
        if do is not None:
            self.clicked.connect(do)
        self._keys = QKeySequence(shortcut if shortcut and listens else "")
        self._hint = self._shortcut = shortcut if shortcut == "+" else (shortcut or "").replace("+", " ")
        if role is not None:
            self.setProperty("role", role)
        if shortcut is not None:
            self.setShortcut(self._keys)
            self.setToolTip(self._shortcut)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def setText(self, text: str) -> None:
        super().setText(text)
        # Qt forgets the shortcut with the old words.
        if not self._keys.isEmpty():
            self.setShortcut(self._keys)

    def set_compact(self, compact: bool) -> None:
        """Leave the shortcut to the tooltip where there is little room."""
        hint = "" if compact else self._shortcut
        if hint != self._hint:
            self._hint = hint
            self.updateGeometry()
            self.update()

    def _hint_font(self) -> QFont:
        font = QFont(self.font())
        font.setPixelSize(LABEL - 1)
        font.setWeight(QFont.Weight.Normal)
        return font

    def sizeHint(self) -> QSize:
        size = super().sizeHint()
        if self._hint:
            size.setWidth(size.width() + _HINT_GAP + self._hint_width())
        return size

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _hint_width(self) -> int:
        return QFontMetrics(self._hint_font()).horizontalAdvance(self._hint)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._hint:
            super().paintEvent(event)
            return
        option = QStyleOptionButton()
        self.initStyleOption(option)
        # The style centres the words; a hair more room on the left leaves the hint its place on the right.
        words, option.text = option.text, ""
        painter = QPainter(self)
        self.style().drawControl(QStyle.ControlElement.CE_PushButton, option, painter, self)
        metrics = self.fontMetrics()
        wide = metrics.horizontalAdvance(words)
        left = (self.width() - wide - _HINT_GAP - self._hint_width()) // 2
        painter.setPen(self._ink())
        area = self.rect()
        painter.setFont(self.font())
        painter.drawText(area.adjusted(left, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, words)
        painter.setOpacity(0.6)
        painter.setFont(self._hint_font())
        painter.drawText(
            area.adjusted(left + wide + _HINT_GAP, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, self._hint
        )
        painter.end()

    def _ink(self) -> Qt.GlobalColor | str:
        if not self.isEnabled():
            return theme.palette["faint"]
        role = self.property("role")
        if role == "primary":
            return Qt.GlobalColor.white
        return theme.palette["bad" if role == "danger" else "text"]


class Card(QFrame):
    """A raised surface with a border and parts under each other, in the layout `column`."""

    def __init__(
        self,
        *parts: Part,
        role: str = "card",
        margin: Margins = SPACE[2],
        spacing: int = SPACE[1],
        over: QWidget | None = None,
        kind: Qt.WindowType = Qt.WindowType.Widget,
        lifted: bool = False,
    ) -> None:
        """One that is `lifted` casts a shadow on what it lies over."""
        super().__init__(over, kind)
        self.setProperty("role", role)
        self.column = vbox(*parts, on=self, margins=margin, spacing=spacing)
        if lifted:
            shadow = QGraphicsDropShadowEffect(self, blurRadius=28, color=QColor(0, 0, 0, 90))
            shadow.setOffset(0, 6)
            self.setGraphicsEffect(shadow)


class PassingCard(Card):
    """A card that Esc takes away."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)


def line(vertical: bool = False) -> QFrame:
    """One pixel between two things."""
    made = QFrame()
    made.setProperty("role", "line")
    if vertical:
        made.setFixedWidth(1)
    else:
        made.setFixedHeight(1)
    return made


class NumberLabel(QLabel):
    """A number that stands still while it changes: all figures are of one width."""

    def __init__(
        self, text: str = "", size: int = LABEL, bold: bool = False, role: str | None = None
    ) -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText)
        self.setFont(number_font(size, QFont.Weight.DemiBold if bold else QFont.Weight.Normal))
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setProperty("role", role)


def elide_title(size: QFontMetrics, title: str, room: int) -> str:
    """A title such as `algorithm · environment` with … in it where there is no room for all of it.

    The first part gives way to the second, and each keeps the beginning by which it is known.
    """
    first, dot, second = title.partition(_BETWEEN)
    if not dot or size.horizontalAdvance(title) <= room:
        return size.elidedText(title, Qt.TextElideMode.ElideMiddle, room)
    least = size.horizontalAdvance(f"{first[:_LEAST]}…")
    rest = room - size.horizontalAdvance(dot + second)
    first = size.elidedText(first, Qt.TextElideMode.ElideRight, max(rest, least)) + dot
    return first + size.elidedText(second, Qt.TextElideMode.ElideMiddle, room - size.horizontalAdvance(first))


def elide_parts(size: QFontMetrics, text: str, room: int) -> str:
    """A text such as `seed 7 · started 01:56` without the parts at its end that have no room as a whole."""
    while size.horizontalAdvance(text) > room:
        fewer = text.rpartition(_BETWEEN)[0]
        if not fewer:
            return size.elidedText(text, Qt.TextElideMode.ElideRight, room)
        text = fewer
    return text


class ElidedLabel(QLabel):
    """A label of one line that says less instead of pushing its neighbours; its tooltip has the rest."""

    def __init__(self, text: str = "", role: str | None = None, middle: bool = False) -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText)
        self._middle = middle
        self.setProperty("role", role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        size = self.fontMetrics()
        shown = (elide_title if self._middle else elide_parts)(size, self.text(), self.width())
        if shown != self.text() and len(shown) <= _LEAST:
            shown = ""
        self.setToolTip(tip(self.text()) if shown != self.text() else "")
        area, side = self.rect(), int(self.alignment() | Qt.AlignmentFlag.AlignVCenter)
        looks = (option.palette, self.isEnabled())
        self.style().drawItemText(painter, area, side, *looks, shown, self.foregroundRole())
        painter.end()


def gap_splitter(orientation: Qt.Orientation, first: QWidget, second: QWidget) -> QSplitter:
    """A splitter whose handle is the space between two cards; the first part takes what room there is."""
    made = QSplitter(orientation, childrenCollapsible=False, handleWidth=SPACE[2])
    made.setStyleSheet("QSplitter::handle { background: transparent; }")
    made.addWidget(first)
    made.addWidget(second)
    made.setStretchFactor(0, 1)
    return made


def open_url(address: str, notifications: Notifications) -> None:
    """Show a page in the browser, or say where it is."""
    if not QDesktopServices.openUrl(QUrl(address)):
        notifications.tell(f"No browser could be opened; the page is at {address}", "warn")


def open_path(path: Path, notifications: Notifications) -> None:
    """Show a file or a folder in the program that the system has for it, or say where it is."""
    if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
        notifications.tell(f"No program here shows {path}", "warn")
