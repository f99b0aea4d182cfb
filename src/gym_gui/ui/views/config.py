"""The Config tab: exactly what a run was asked to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from PySide6.QtGui import QFontDatabase, QGuiApplication, QSyntaxHighlighter, QTextCharFormat
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout

from gym_gui.context import Context
from gym_gui.models.command_line import ConfigPage, config_page
from gym_gui.models.run_files import RunFacts
from gym_gui.theme import LABEL, SPACE, theme
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import button, card, label, open_path
from mosaic.client import RunRecord

_PARTS = (
    (re.compile(r'"(?:[^"\\]|\\.)*"(?=\s*:)'), "accent"),
    (re.compile(r'(?<=: )"(?:[^"\\]|\\.)*"'), "good"),
    (re.compile(r"(?<=[:\s])(?:true|false|null|-?\d[\d.eE+-]*)(?=,?$)"), "paused"),
)


class _Colours(QSyntaxHighlighter):
    def highlightBlock(self, text: str) -> None:
        for pattern, role in _PARTS:
            look = QTextCharFormat()
            look.setForeground(theme.palette.colour(role))
            for match in pattern.finditer(text):
                self.setFormat(match.start(), match.end() - match.start(), look)


class JsonView(QPlainTextEdit):
    """Read-only text in a fixed width."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(LABEL)
        self.setFont(font)
        self._colours = _Colours(self.document())
        theme.changed.connect(self._colours.rehighlight)


class ConfigView(RunView):
    """The command that starts the same run, the file, and the payload."""

    title: ClassVar[str] = "Config"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._run: RunRecord | None = None
        self._page: ConfigPage | None = None
        self._visible = False
        self.command = label("", selectable=True, wraps=True)
        self.path = label("", "dim", selectable=True, wraps=True)
        self.payload = JsonView()
        self.copy_command = button("Copy command")
        self.copy_path = button("Copy path")
        self.open_file = button("Open file")
        self.show_folder = button("Open folder")
        self.copy_payload = button("Copy payload")
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[4], SPACE[3], SPACE[4], SPACE[3])
        column.setSpacing(SPACE[2])
        top = card()
        top.column.addLayout(self._row("The same run from a terminal", self.copy_command))
        top.column.addWidget(self.command)
        column.addWidget(top)
        below = card()
        below.column.addLayout(
            self._row(
                "What the daemon has accepted",
                self.copy_payload,
                self.copy_path,
                self.open_file,
                self.show_folder,
            )
        )
        below.column.addWidget(self.path)
        below.column.addWidget(self.payload, 1)
        column.addWidget(below, 1)
        self.copy_command.clicked.connect(lambda: self._copy(self.command.text(), "the command"))
        self.copy_path.clicked.connect(lambda: self._copy(self.path.text(), "the path"))
        self.copy_payload.clicked.connect(lambda: self._copy(self.payload.toPlainText(), "the payload"))
        self.open_file.clicked.connect(lambda: self._open(self._page.path if self._page else None))
        self.show_folder.clicked.connect(lambda: self._open(self._page.path.parent if self._page else None))

    def _row(self, title: str, *buttons: QPushButton) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(SPACE[1])
        row.addWidget(label(title, "strong"), 1)
        for one in buttons:
            row.addWidget(one)
        return row

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return True

    def show_run(self, run: RunRecord) -> None:
        self._run, self._page = run, None
        for text in (self.command, self.path):
            text.setText("…")
        self.payload.clear()
        if self._visible:
            self._read()

    def update_run(self, run: RunRecord) -> None:
        self._run = run

    def enter(self) -> None:
        self._visible = True
        self._read()

    def leave(self) -> None:
        self._visible = False

    def close_view(self) -> None:
        self.leave()

    def _read(self) -> None:
        run, var = self._run, self.context.link.var
        if run is not None and self._page is None:
            self.context.tasks.run(lambda: config_page(run, var), self._show)

    def _show(self, page: ConfigPage) -> None:
        if self._run is None or page.run_id != self._run.run_id:
            return
        self._page = page
        self.command.setText(page.command)
        self.path.setText(str(page.path))
        self.payload.setPlainText(page.payload)
        self.open_file.setEnabled(page.exists)

    def _copy(self, text: str, what: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.context.notifications.tell(f"Copied {what}.", "good")

    def _open(self, path: Path | None) -> None:
        if path is not None:
            open_path(path, self.context.notifications)
