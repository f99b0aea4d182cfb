"""The Artifacts tab: the files that a run leaves, and its videos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTreeView, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.run_files import Node, RunFacts, tree_of
from gym_gui.services.tasks import timer
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import (
    PAGE,
    Button,
    Card,
    ElidedLabel,
    gap_splitter,
    hbox,
    label,
    open_path,
    vbox,
)
from gym_gui.ui.widgets.frame_view import VideoPlayer
from mosaic.analytics.artifacts import list_artifacts
from mosaic.client import RunRecord
from mosaic.contract.outside import bytes_text

_NODE = Qt.ItemDataRole.UserRole
_WIDE = 430
_COLUMNS = ("Name", "", "Size", "Changed")
_NOWHERE = QModelIndex()

Index = QModelIndex | QPersistentModelIndex
_LOOK_MS = 3000


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


class ArtifactsView(RunView):
    """The tree on the left; what is chosen on the right."""

    title: ClassVar[str] = "Artifacts"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._node: Node | None = None
        self.total = label("", "label")
        self.files = ArtifactList()
        self.player = VideoPlayer()
        self.name = ElidedLabel("", "strong", middle=True)
        self.about = label("", "dim", selectable=True, wraps=True)
        self.open_run = Button("Open folder", "Ctrl+Shift+O", do=lambda: self._open(self._folder()))
        self.open_here = Button("Show in folder", do=lambda: self._open(self._chosen_path().parent))
        self.copy = Button("Copy path", do=self._copy)
        self.evaluate = Button(
            "Evaluate", do=lambda: self.context.open_form("policy", {"policy": str(self._chosen_path())})
        )
        self.resume = Button(
            "Resume from it",
            do=lambda: self.context.open_form("resume", {"checkpoint": str(self._chosen_path())}),
        )
        self._timer = timer(self, _LOOK_MS, self._look)
        self._build()
        self.files.chosen.connect(self._choose)

    def _build(self) -> None:
        head = hbox((self.total, 1), self.open_run)
        tree = Card(head, (self.files, 1))
        row = hbox(self.evaluate, self.resume, self.open_here, self.copy, 1)
        self._filler = QWidget()
        self.details = Card(self.name, self.about, row, (self.player, 1), (self._filler, 1))
        split = gap_splitter(Qt.Orientation.Horizontal, tree, self.details)
        # In a small window both give way, or the names of files would be cut short.
        split.setStretchFactor(1, 1)
        split.setSizes([560, 480])
        vbox(split, on=self, margins=PAGE)
        self._choose(None)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_files

    def show_run(self, run: RunRecord) -> None:
        self._run = run
        self.files.forget()
        self.total.setText("Reading…")
        self._choose(None)
        if self._visible:
            self._look()

    def enter(self) -> None:
        super().enter()
        self._look()
        self._timer.start()

    def leave(self) -> None:
        super().leave()
        self._timer.stop()
        self.player.set_playing(False)

    def close_view(self) -> None:
        self._visible = False
        self._timer.stop()
        self.player.close_film()

    def _look(self) -> None:
        run = self._run
        if run is not None:
            folder = Path(run.run_dir)
            self.context.tasks.run(lambda: (run.run_id, tree_of(list_artifacts(folder))), self._show)

    def _show(self, found: tuple[str, Node]) -> None:
        run_id, root = found
        if self._run is None or not self.is_shown(run_id):
            return
        self.total.setText(f"{root.files:,} files · {bytes_text(root.size)}")
        self.files.show_tree(root)
        if self._run.ended:
            self._timer.stop()

    def _folder(self) -> Path:
        return Path(self._run.run_dir) if self._run is not None else Path()

    def _chosen_path(self) -> Path:
        return self._folder() / (self._node.path if self._node is not None else "")

    def _choose(self, node: Node | None) -> None:
        playing = self._node is not None and node is not None and node.path == self._node.path
        self._node = node
        self.name.setText(node.name if node else "Nothing chosen")
        self.about.setText(_about(node))
        for one in (self.open_here, self.copy):
            one.setVisible(node is not None)
        self.evaluate.setVisible(node is not None and node.policy)
        self.resume.setVisible(node is not None and node.policy)
        film = node is not None and node.playable
        self.player.setVisible(film)
        self._filler.setVisible(not film)
        if film and not playing:
            self.player.open(self._chosen_path())
        elif not film:
            self.player.close_film()

    def _open(self, folder: Path) -> None:
        open_path(folder, self.context.notifications)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(str(self._chosen_path()))
        self.context.notifications.tell("Copied the path.", "good")


def _about(node: Node | None) -> str:
    if node is None:
        return "Choose a file: a video is played here, a policy can be evaluated or trained further."
    kind = node.kind or ("folder" if node.artifact is None else "file")
    inside = f"{node.files:,} files, " if node.artifact is None else ""
    return f"{kind} · {inside}{bytes_text(node.size)} · {words.ago(node.modified)}\n{node.path}"
