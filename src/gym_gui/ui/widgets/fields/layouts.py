"""How fields are laid out: columns that scroll, and rows of two."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import line


class ScrollColumn(QScrollArea):
    """A column that scrolls when there is no room; its layout is `column`."""

    def __init__(self, margin: int = SPACE[4], spacing: int = SPACE[2]) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Keys go to the fields.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        body = QWidget()
        self.column = QVBoxLayout(body)
        self.column.setContentsMargins(margin, margin, margin, margin)
        self.column.setSpacing(spacing)
        self.setWidget(body)


class FormColumns(QFrame):
    """The three columns of a form: what, how, and what is told beside it."""

    def __init__(self, left: QWidget, middle: QWidget, side: QWidget) -> None:
        super().__init__()
        self.setProperty("role", "panel")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for number, (part, share, least) in enumerate(
            ((left, 26, 260), (middle, 44, 380), (side, 26, 240)),
        ):
            if number:
                row.addWidget(line(vertical=True))
            part.setMinimumWidth(least)
            row.addWidget(part, share)


def folds(*sections: QWidget, above: int = 0) -> QVBoxLayout:
    """Sections that open, close together under each other."""
    column = QVBoxLayout()
    column.setContentsMargins(0, above, 0, 0)
    column.setSpacing(0)
    for section in sections:
        column.addWidget(section)
    return column


class PairGrid(QWidget):
    """Widgets in two columns of the same width."""

    def __init__(self, parts: Iterable[QWidget] = (), top: int = 0, bottom: int = 0) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, top, 0, bottom)
        self._grid.setHorizontalSpacing(SPACE[3])
        self._grid.setVerticalSpacing(SPACE[2])
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
    row = QHBoxLayout(made)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(SPACE[3])
    for part in parts:
        row.addWidget(part, 1, Qt.AlignmentFlag.AlignTop)
    return made


class ChoiceBox(QComboBox):
    """A box of choices that gives way in a narrow column, and does not change when it is scrolled past."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(4)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
