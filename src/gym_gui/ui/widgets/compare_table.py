"""The runs that are compared, a row for each group: the key of the charts and the differences at once."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from gym_gui.models.compare import Group
from gym_gui.theme import number_font, theme
from gym_gui.ui.presenters.compare import CompareTable
from gym_gui.ui.widgets.line_colours import line_colour

_RIGHT_FROM = 1
_DOT = 10


class CompareTableView(QTableWidget):
    """A tick before a row shows its lines; settings that are not the default stand out."""

    shown_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._groups: list[Group] = []
        self._hidden: set[str] = set()
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(30)
        self._header = self.horizontalHeader()
        self._header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.setIconSize(QSize(_DOT, _DOT))
        self.setAccessibleName("Compared runs and their differences")
        self.itemChanged.connect(self._ticked)
        theme.changed.connect(self._recolour)

    def show_table(self, table: CompareTable, groups: Sequence[Group]) -> None:
        """Renew the rows; what was hidden stays so."""
        self.blockSignals(True)
        self._groups = list(groups)
        self.setColumnCount(len(table.columns))
        self.setHorizontalHeaderLabels(list(table.columns))
        self._header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        self.setRowCount(len(table.rows))
        for place, cells in enumerate(table.rows):
            row = [QTableWidgetItem(cell.text) for cell in cells]
            for column, (cell, item) in enumerate(zip(cells, row, strict=True)):
                if column >= _RIGHT_FROM:
                    item.setFont(number_font())
                if cell.usual:
                    item.setForeground(theme.palette.colour("faint"))
                self.setItem(place, column, item)
            first = row[0]
            first.setFlags(first.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            hidden = self._groups[place].label in self._hidden
            first.setCheckState(Qt.CheckState.Unchecked if hidden else Qt.CheckState.Checked)
            first.setIcon(_dot(line_colour(self._groups[place].colour)))
        # The tick and the dot before a name are not counted by its size hint.
        self.setColumnWidth(0, self.sizeHintForColumn(0) + 2 * _DOT)
        self.blockSignals(False)

    def shown(self) -> list[Group]:
        """The groups that are to be drawn."""
        return [group for group in self._groups if group.label not in self._hidden]

    def _ticked(self, item: QTableWidgetItem) -> None:
        if item.column() != 0:
            return
        name = self._groups[item.row()].label
        if item.checkState() == Qt.CheckState.Checked:
            self._hidden.discard(name)
        else:
            self._hidden.add(name)
        self.shown_changed.emit()

    def _recolour(self) -> None:
        self.blockSignals(True)
        for place, group in enumerate(self._groups):
            item = self.item(place, 0)
            if item is not None:
                item.setIcon(_dot(line_colour(group.colour)))
        self.blockSignals(False)


def _dot(colour: QColor) -> QIcon:
    picture = QPixmap(_DOT * 2, _DOT * 2)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(2, 2, _DOT * 2 - 4, _DOT * 2 - 4)
    painter.end()
    return QIcon(picture)
