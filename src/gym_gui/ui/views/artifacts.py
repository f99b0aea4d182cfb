"""The Artifacts tab: the files that a run leaves, and its videos."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.run_files import Node, RunFacts, tree_of
from gym_gui.services.tasks import timer
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import PAGE, Button, Card, ElidedLabel, gap_splitter, hbox, label, open_path
from gym_gui.ui.widgets.frame_view import VideoPlayer
from mosaic.analytics.artifacts import list_artifacts
from mosaic.client import RunRecord
from mosaic.contract.outside import bytes_text

_NODE = Qt.ItemDataRole.UserRole
_WIDE = 430
_COLUMNS = ("Name", "", "Size", "Changed")
_LOOK_MS = 3000


class ArtifactList(QTreeWidget):
    """Shows a tree; what is open and chosen stays so when the tree is renewed."""

    chosen = Signal(object)
    """Node | None."""

    def __init__(self) -> None:
        super().__init__()
        self._root: Node | None = None
        self._rows: dict[str, QTreeWidgetItem] = {}
        self._path = ""
        self.setUniformRowHeights(True)
        self.setEditTriggers(QTreeWidget.EditTrigger.NoEditTriggers)
        self.setAccessibleName("Files of the run")
        self.setHeaderLabels(_COLUMNS)
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.currentItemChanged.connect(self._choose)

    def show_tree(self, root: Node) -> None:
        """Renew the tree."""
        if root == self._root:
            return
        opened = {path for path, row in self._rows.items() if row.isExpanded()}
        fresh, self._root = self._root is None, root
        selection = self.selectionModel()
        selection.blockSignals(True)
        self._rows = {}
        self.clear()
        self._add(root, self.invisibleRootItem())
        for path, row in self._rows.items():
            row.setExpanded(fresh or path in opened)
        self.choose(self._path)
        selection.blockSignals(False)

    def _add(self, node: Node, above: QTreeWidgetItem) -> None:
        for child in node.children:
            name = child.name + ("/" if child.artifact is None else "")
            texts = [name, child.kind, bytes_text(child.size), words.clock(child.modified)]
            row = self._rows[child.path] = QTreeWidgetItem(above, texts)
            row.setTextAlignment(2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            row.setData(0, _NODE, child)
            self._add(child, row)
        if node.hidden:
            QTreeWidgetItem(above, [f"and {node.hidden:,} older files"])

    def forget(self) -> None:
        """Another run: nothing is open or chosen."""
        self._root, self._path, self._rows = None, "", {}
        self.clear()

    def choose(self, path: str) -> bool:
        """Choose a file by its path; False when there is none."""
        row = self._rows.get(path)
        if row is not None:
            self.setCurrentItem(row)
        return row is not None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # The names need the room more.
        for column in (1, 3):
            self.setColumnHidden(column, self.width() < _WIDE)

    def _choose(self, row: QTreeWidgetItem | None) -> None:
        node: Node | None = row.data(0, _NODE) if row is not None else None
        self._path = node.path if node else ""
        self.chosen.emit(node)


class ArtifactsView(RunView):
    """The tree on the left; what is chosen on the right."""

    title = "Artifacts"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._node: Node | None = None
        self.total = label("", "label")
        self.files = ArtifactList()
        self.player = VideoPlayer()
        self.name = ElidedLabel("", "strong", middle=True)
        self.about = label("", "dim", selectable=True, wraps=True)
        self.open_run = Button("Open folder", "Ctrl+Shift+O", do=lambda: self._open(Path(self.run.run_dir)))
        self.open_here = Button("Show in folder", do=lambda: self._open(self._chosen_path().parent))
        self.copy = Button("Copy path", do=self._copy)
        self.evaluate = Button("Evaluate", do=lambda: self._open_form("policy", "policy"))
        self.resume = Button("Resume from it", do=lambda: self._open_form("resume", "checkpoint"))
        self._timer = timer(self, _LOOK_MS, self._look)
        self.files.chosen.connect(self._choose)
        head = hbox((self.total, 1), self.open_run)
        tree = Card(head, (self.files, 1))
        row = hbox(self.evaluate, self.resume, self.open_here, self.copy, 1)
        self._filler = QWidget()
        self.details = Card(self.name, self.about, row, (self.player, 1), (self._filler, 1))
        split = gap_splitter(Qt.Orientation.Horizontal, tree, self.details)
        # In a small window both give way, or the names of files would be cut short.
        split.setStretchFactor(1, 1)
        split.setSizes([560, 480])
        hbox(split, on=self, margins=PAGE)
        self._choose(None)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return facts.has_files

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self.files.forget()
        self.total.setText("Reading…")
        self._choose(None)

    def enter(self) -> None:
        super().enter()
        self._look()
        self._timer.start()

    def leave(self) -> None:
        super().leave()
        self._timer.stop()
        self.player.set_playing(False)

    def close_view(self) -> None:
        super().close_view()
        self.player.close_film()

    def _look(self) -> None:
        self.read(lambda run: tree_of(list_artifacts(Path(run.run_dir))), self._show)

    def _show(self, root: Node) -> None:
        self.total.setText(f"{root.files:,} files · {bytes_text(root.size)}")
        self.files.show_tree(root)
        if self.run.ended:
            self._timer.stop()

    def _chosen_path(self) -> Path:
        return Path(self.run.run_dir) / (self._node.path if self._node is not None else "")

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

    def _open_form(self, purpose: str, key: str) -> None:
        self.context.open_form(purpose, {key: str(self._chosen_path())})

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
