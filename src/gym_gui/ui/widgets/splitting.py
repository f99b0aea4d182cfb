"""Two parts with a gap between them that can be moved."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QWidget

from gym_gui.theme import SPACE


def gap_splitter(orientation: Qt.Orientation, first: QWidget, second: QWidget) -> QSplitter:
    """A splitter whose handle is the space between two cards; the first part takes what room there is."""
    made = QSplitter(orientation)
    made.setChildrenCollapsible(False)
    made.setHandleWidth(SPACE[2])
    made.setStyleSheet("QSplitter::handle { background: transparent; }")
    made.addWidget(first)
    made.addWidget(second)
    made.setStretchFactor(0, 1)
    return made
