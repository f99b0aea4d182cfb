"""The files of a run as a tree that can be walked with the keyboard."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QResizeEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QHeaderView, QTreeView

from gym_gui.models import words
from gym_gui.models.artifact_tree import Node
from mosaic.contract.sizes import bytes_text

_NODE = Qt.ItemDataRole.UserRole
_WIDE = 430
_COLUMNS = ("Name", "", "Size", "Changed")


class ArtifactList(QTreeView):
    """Shows a tree; what is open and chosen stays so when the tree is renewed."""

    chosen = Signal(object)
    """Node | None."""

    def __init__(self) -> None:
        super().__init__()
        self._items = QStandardItemModel()
        self._root: Node | None = None
        self._path = ""
        self.setModel(self._items)
        self.setUniformRowHeights(True)
        self.setEditTriggers(QTreeView.EditTrigger.NoEditTriggers)
        self.setAccessibleName("Files of the run")
        self.selectionModel().currentChanged.connect(self._choose)

    def show_tree(self, root: Node) -> None:
        """Renew the tree."""
        if root == self._root:
            return
        opened = {node.path for index, node in self._walk() if self.isExpanded(index)}
        fresh = self._root is None
        self._root = root
        selection = self.selectionModel()
        selection.blockSignals(True)
        self._items.clear()
        self._items.setHorizontalHeaderLabels(list(_COLUMNS))
        self._add(self._items.invisibleRootItem(), root)
        self._set_columns()
        for column in (1, 3):
            self.setColumnHidden(column, self.width() < _WIDE)
        for index, node in self._walk():
            if node.artifact is None and (fresh or node.path in opened):
                self.expand(index)
            if node.path == self._path:
                self.setCurrentIndex(index)
        selection.blockSignals(False)

    def forget(self) -> None:
        """Another run: nothing is open or chosen."""
        self._root, self._path = None, ""
        self._items.clear()

    def choose(self, path: str) -> bool:
        """Choose a file by its path; False when there is none."""
        for index, node in self._walk():
            if node.path == path:
                self.setCurrentIndex(index)
                return True
        return False

    def _set_columns(self) -> None:
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in range(1, len(_COLUMNS)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # The names need the room more.
        for column in (1, 3):
            self.setColumnHidden(column, self.width() < _WIDE)

    def _add(self, parent: QStandardItem, node: Node) -> None:
        for child in node.children:
            name = QStandardItem(child.name + ("/" if child.artifact is None else ""))
            name.setData(child, _NODE)
            size = QStandardItem(bytes_text(child.size))
            size.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            parent.appendRow(
                [name, QStandardItem(child.kind), size, QStandardItem(words.clock(child.modified))]
            )
            self._add(name, child)
        if node.hidden:
            parent.appendRow([QStandardItem(f"and {node.hidden:,} older files")])

    def _walk(self, parent: QModelIndex | None = None) -> Iterator[tuple[QModelIndex, Node]]:
        above = parent or QModelIndex()
        for row in range(self._items.rowCount(above)):
            index = self._items.index(row, 0, above)
            node = index.data(_NODE)
            if isinstance(node, Node):
                yield index, node
                yield from self._walk(index)

    def _choose(self, index: QModelIndex) -> None:
        node = index.siblingAtColumn(0).data(_NODE)
        found = node if isinstance(node, Node) else None
        self._path = found.path if found else ""
        self.chosen.emit(found)
