"""The files of a run as a tree that can be walked with the keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTreeView

from gym_gui.models import words
from gym_gui.models.artifact_tree import Node
from mosaic.contract.outside import bytes_text

_NODE = Qt.ItemDataRole.UserRole
_WIDE = 430
_COLUMNS = ("Name", "", "Size", "Changed")
_NOWHERE = QModelIndex()

Index = QModelIndex | QPersistentModelIndex


class FileTree(QAbstractItemModel):
    """A tree of files for a view. Each row is known by a number; the root is number 0.

    A model of items would leave those of every earlier tree in memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.show_tree(Node("", ""))

    def show_tree(self, root: Node) -> None:
        """Show another tree instead."""
        self.beginResetModel()
        self._nodes: list[Node | str] = [root]
        """A text stands for the files that are left out."""
        self._parents, self._rows = [0], [0]
        self._children: list[list[int]] = [[]]
        self._add(0, root)
        self.endResetModel()

    def _add(self, above: int, node: Node) -> None:
        left_out: list[Node | str] = [f"and {node.hidden:,} older files"] if node.hidden else []
        for row, child in enumerate([*node.children, *left_out]):
            number = len(self._nodes)
            self._nodes.append(child)
            self._parents.append(above)
            self._rows.append(row)
            self._children.append([])
            self._children[above].append(number)
            if isinstance(child, Node):
                self._add(number, child)

    def index(self, row: int, column: int, parent: Index = _NOWHERE) -> QModelIndex:
        below = self._children[_number(parent)]
        return self.createIndex(row, column, below[row]) if 0 <= row < len(below) else QModelIndex()

    def parent(self, index: Index = _NOWHERE) -> QModelIndex:  # type: ignore[override]
        above = self._parents[_number(index)]
        return self.createIndex(self._rows[above], 0, above) if above else QModelIndex()

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.column() > 0 else len(self._children[_number(parent)])

    def columnCount(self, parent: Index = _NOWHERE) -> int:
        return len(_COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        return _COLUMNS[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        node = self._nodes[_number(index)]
        if role == _NODE:
            return node if isinstance(node, Node) else None
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() == 2:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if isinstance(node, str):
            return node if index.column() == 0 else None
        name = node.name + ("/" if node.artifact is None else "")
        return (name, node.kind, bytes_text(node.size), words.clock(node.modified))[index.column()]


def _number(index: Index) -> int:
    return int(index.internalId()) if index.isValid() else 0


class ArtifactList(QTreeView):
    """Shows a tree; what is open and chosen stays so when the tree is renewed."""

    chosen = Signal(object)
    """Node | None."""

    def __init__(self) -> None:
        super().__init__()
        self._items = FileTree()
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
        self._items.show_tree(root)
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
        self._items.show_tree(Node("", ""))

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
