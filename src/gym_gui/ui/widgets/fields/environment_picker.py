"""The list of environments that opens under a field: searched, by family, or all there are."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QVBoxLayout, QWidget

from gym_gui.models.environments import ALL_FAMILIES, EnvironmentList, family_name
from gym_gui.models.list_row import ListRow
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import label
from gym_gui.ui.widgets.fields.layouts import ChoiceBox
from gym_gui.ui.widgets.fields.pick_list import PickList

_WIDTH, _HEIGHT = 448, 380


class EnvironmentPicker(QFrame):
    """A popup. `chosen` tells the id; one that nobody knows can be taken as it was typed."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("role", "card")
        self._environments = EnvironmentList(())
        self._now = ""
        self.list = PickList("Search environments")
        self.family = ChoiceBox()
        self.family.setAccessibleName("Family")
        self.everything = QCheckBox("Also what does not fit")
        self._count = label("", "faint")
        self.list.searched.connect(self._filter)
        self.list.chosen.connect(self._choose)
        self.family.currentIndexChanged.connect(self._filter)
        self.everything.toggled.connect(self._filter)
        row = QHBoxLayout()
        row.setSpacing(SPACE[2])
        row.addWidget(self.family, 1)
        row.addWidget(self.everything)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[2], SPACE[2], SPACE[2], SPACE[1])
        column.setSpacing(SPACE[1])
        column.addLayout(row)
        column.addWidget(self.list, 1)
        column.addWidget(self._count)
        self.resize(_WIDTH, _HEIGHT)

    def open_under(self, field: QWidget, environments: EnvironmentList, now: str, search: str) -> None:
        """Show what there is, below a field, with a beginning of what is searched for."""
        self._environments, self._now = environments, now
        self._show_families()
        self.list.search.setText(search)
        self._filter()
        place = field.mapToGlobal(QPoint(0, field.height() + 2))
        room = field.screen().availableGeometry()
        self.move(
            max(room.left(), min(place.x(), room.right() - self.width())),
            max(room.top(), min(place.y(), room.bottom() - self.height())),
        )
        self.show()
        self.list.search.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    def _show_families(self) -> None:
        blocked = self.family.blockSignals(True)
        chosen = self.family.currentData() or ALL_FAMILIES
        self.family.clear()
        self.family.addItem("All families", ALL_FAMILIES)
        for family in self._environments.families():
            self.family.addItem(family_name(family), family)
        self.family.setCurrentIndex(max(0, self.family.findData(chosen)))
        self.family.blockSignals(blocked)

    def _filter(self) -> None:
        text = self.list.search.text().strip()
        family = self.family.currentData() or ALL_FAMILIES
        found = self._environments.matching(text, family, self.everything.isChecked())
        rows = [choice.row for choice in found]
        if text and self._environments.find(text) is None:
            rows.append(ListRow(text, f"Use “{text}”", aside="an id of your own, as module:EnvId"))
        self.list.show_rows(rows, self._now)
        self._count.setText(f"{len(found)} of {len(self._environments.choices)} environments")

    def _choose(self, env_id: str) -> None:
        self.hide()
        self.chosen.emit(env_id)
