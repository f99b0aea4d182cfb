"""The Artifacts tab: the files that a run leaves, and its videos."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.artifact_tree import Node, tree_of
from gym_gui.models.facts import RunFacts
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.artifact_list import ArtifactList
from gym_gui.ui.widgets.basics import button, card, label
from gym_gui.ui.widgets.elided import ElidedLabel
from gym_gui.ui.widgets.opening import open_path
from gym_gui.ui.widgets.splitting import gap_splitter
from gym_gui.ui.widgets.video_player import VideoPlayer
from mosaic.analytics.artifacts import list_artifacts
from mosaic.client import RunRecord
from mosaic.contract.outside import bytes_text

_LOOK_MS = 3000


class ArtifactsView(RunView):
    """The tree on the left; what is chosen on the right."""

    title: ClassVar[str] = "Artifacts"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._run: RunRecord | None = None
        self._node: Node | None = None
        self._visible = False
        self.total = label("", "label")
        self.files = ArtifactList()
        self.player = VideoPlayer()
        self.name = ElidedLabel("", "strong", middle=True)
        self.about = label("", "dim", selectable=True, wraps=True)
        self.open_run = button("Open folder", "Ctrl+Shift+O")
        self.open_here = button("Show in folder")
        self.copy = button("Copy path")
        self.evaluate = button("Evaluate")
        self.resume = button("Resume from it")
        self._timer = QTimer(self, interval=_LOOK_MS)
        self._build()
        self._timer.timeout.connect(self._look)
        self.files.chosen.connect(self._choose)
        self.open_run.clicked.connect(lambda: self._open(self._folder()))
        self.open_here.clicked.connect(lambda: self._open(self._chosen_path().parent))
        self.copy.clicked.connect(self._copy)
        self.evaluate.clicked.connect(
            lambda: self.context.open_form("policy", {"policy": str(self._chosen_path())})
        )
        self.resume.clicked.connect(
            lambda: self.context.open_form("resume", {"checkpoint": str(self._chosen_path())})
        )

    def _build(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.total, 1)
        head.addWidget(self.open_run)
        tree = card()
        tree.column.addLayout(head)
        tree.column.addWidget(self.files, 1)
        self.details = card()
        self.details.column.addWidget(self.name)
        self.details.column.addWidget(self.about)
        row = QHBoxLayout()
        row.setSpacing(SPACE[1])
        for one in (self.evaluate, self.resume, self.open_here, self.copy):
            row.addWidget(one)
        row.addStretch(1)
        self.details.column.addLayout(row)
        self.details.column.addWidget(self.player, 1)
        self._filler = QWidget()
        self.details.column.addWidget(self._filler, 1)
        split = gap_splitter(Qt.Orientation.Horizontal, tree, self.details)
        # In a small window both give way, or the names of files would be cut short.
        split.setStretchFactor(1, 1)
        split.setSizes([560, 480])
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[4], SPACE[3], SPACE[4], SPACE[3])
        column.addWidget(split)
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

    def update_run(self, run: RunRecord) -> None:
        self._run = run

    def enter(self) -> None:
        self._visible = True
        self._look()
        self._timer.start()

    def leave(self) -> None:
        self._visible = False
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
        if self._run is None or run_id != self._run.run_id:
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
