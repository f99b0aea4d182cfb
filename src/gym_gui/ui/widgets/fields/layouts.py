"""How fields are laid out: columns that scroll, rows of two, parts that fold, lists of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gym_gui.theme import SPACE, TEXT
from gym_gui.ui.widgets.basics import ElidedLabel, NumberLabel, grid, hbox, label, line, named, vbox


class ScrollColumn(QScrollArea):
    """A column that scrolls when there is no room; its layout is `column`."""

    def __init__(self, margin: int = SPACE[4]) -> None:
        super().__init__(widgetResizable=True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Keys go to the fields.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        body = QWidget()
        self.column = vbox(on=body, margins=margin, spacing=SPACE[2])
        self.setWidget(body)


class FormColumns(QFrame):
    """The three columns of a form: what, how, and what is told beside it."""

    def __init__(self, left: QWidget, middle: QWidget, side: QWidget) -> None:
        super().__init__()
        self.setProperty("role", "panel")
        row = hbox(on=self, spacing=0)
        for number, (part, share, least) in enumerate(((left, 26, 260), (middle, 44, 380), (side, 26, 240))):
            if number:
                row.addWidget(line(vertical=True))
            part.setMinimumWidth(least)
            row.addWidget(part, share)


def folds(*sections: QWidget, above: int = 0) -> QVBoxLayout:
    """Sections that open, close together under each other."""
    return vbox(*sections, margins=(0, above, 0, 0), spacing=0)


class PairGrid(QWidget):
    """Widgets in two columns of the same width."""

    def __init__(self, parts: Iterable[QWidget] = (), bottom: int = 0) -> None:
        super().__init__()
        self._grid = grid(self, bottom, across=SPACE[3])
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 1)
        self._count = 0
        for part in parts:
            self.add(part)

    def add(self, part: QWidget, wide: bool = False) -> PairGrid:
        """The next widget; a wide one takes a row of its own. Gives the grid."""
        if wide and self._count % 2:
            self._count += 1
        row, column = divmod(self._count, 2)
        self._grid.addWidget(part, row, column, 1, 2 if wide else 1, Qt.AlignmentFlag.AlignTop)
        self._count += 2 if wide else 1
        return self


def side_by_side(*parts: QWidget) -> QWidget:
    """Widgets in one row, each of the same width."""
    made = QWidget()
    hbox(*((part, 1, Qt.AlignmentFlag.AlignTop) for part in parts), on=made, spacing=SPACE[3])
    return made


class ChoiceBox(QComboBox):
    """A box of choices that gives way in a narrow column, and does not change when it is scrolled past."""

    def __init__(self) -> None:
        super().__init__(minimumContentsLength=4)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Section(QWidget):
    """A heading that opens and closes what is under it; closed, it says what is set there.

    What is under it is made when it is opened for the first time: a form opens the sooner. What is there
    already belongs to it from the beginning, and goes with it.
    """

    def __init__(self, title: str, content: QWidget | Callable[[], QWidget]) -> None:
        super().__init__()
        self._content = content
        self.body: QWidget | None = None
        self.summary = ""
        self._head = named(QPushButton(), title)
        self._head.setProperty("role", "fold")
        self._head.setCheckable(True)
        self._head.setCursor(Qt.CursorShape.PointingHandCursor)
        self._summary = ElidedLabel("", "help")
        self._summary.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._summary.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._arrow = label("▸", "help")
        row = hbox(on=self._head)
        for part, stretch in ((label(title, "strong"), 0), (self._summary, 1), (self._arrow, 0)):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            row.addWidget(part, stretch)
        self._head.toggled.connect(self._toggle)
        self._column = vbox(self._head, on=self, spacing=0)
        if isinstance(content, QWidget):
            self._put(content)
            content.hide()

    def summarise(self, text: str) -> None:
        """What is set inside, for the closed heading."""
        self.summary = text
        self._summary.setText("" if self.is_open else text)
        self._head.setAccessibleDescription(text)

    @property
    def is_open(self) -> bool:
        return self._head.isChecked()

    def open(self, on: bool = True) -> None:
        self._head.setChecked(on)

    def _toggle(self, on: bool) -> None:
        body = self.body
        if body is None:
            assert not isinstance(self._content, QWidget)
            body = self._put(self._content())
        body.setVisible(on)
        self._summary.setText("" if on else self.summary)
        self._arrow.setText("▾" if on else "▸")

    def _put(self, body: QWidget) -> QWidget:
        self.body = body
        self._column.addWidget(body)
        return body


class FactList(QWidget):
    """Rows of name and value, which change in place, so that nothing moves while values do."""

    def __init__(self, numbers: bool = False) -> None:
        """The values are `numbers`, which stand at the right, or texts, which may be long."""
        super().__init__()
        self._numbers = numbers
        self._rows: list[tuple[QLabel, QLabel]] = []
        room = (0, SPACE[2]) if numbers else (SPACE[2], SPACE[3])
        self._grid = grid(self, *room, down=SPACE[0])
        self._grid.setColumnStretch(1, 1)

    def show_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        while len(self._rows) < len(facts):
            self._add()
        for place, row in enumerate(self._rows):
            for part, text in zip(row, facts[place] if place < len(facts) else ("", ""), strict=True):
                part.setVisible(place < len(facts))
                part.setText(text)

    def _add(self) -> None:
        name = label("", "dim" if self._numbers else "label")
        value = NumberLabel("", TEXT) if self._numbers else label("", selectable=True, wraps=True)
        if self._numbers:
            value.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._grid.addWidget(name, len(self._rows), 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, len(self._rows), 1)
        self._rows.append((name, value))
