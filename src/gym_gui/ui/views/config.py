"""The Config tab: exactly what a run was asked to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from PySide6.QtGui import QFontDatabase, QGuiApplication, QSyntaxHighlighter, QTextCharFormat
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton

from gym_gui.context import Context
from gym_gui.models.command_line import ConfigPage, config_page
from gym_gui.theme import LABEL, SPACE, theme
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import PAGE, Button, Card, hbox, label, open_path, vbox
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
        self._page: ConfigPage | None = None
        self.command = label("", selectable=True, wraps=True)
        self.path = label("", "dim", selectable=True, wraps=True)
        self.payload = JsonView()
        self.copy_command = Button("Copy command", do=lambda: self._copy(self.command.text(), "the command"))
        self.copy_path = Button("Copy path", do=lambda: self._copy(self.path.text(), "the path"))
        self.open_file = Button("Open file", do=lambda: self._open(self._page.path if self._page else None))
        self.show_folder = Button(
            "Open folder", do=lambda: self._open(self._page.path.parent if self._page else None)
        )
        self.copy_payload = Button(
            "Copy payload", do=lambda: self._copy(self.payload.toPlainText(), "the payload")
        )
        top = Card(self._row("The same run from a terminal", self.copy_command), self.command)
        below = Card(
            self._row(
                "What the daemon has accepted",
                self.copy_payload,
                self.copy_path,
                self.open_file,
                self.show_folder,
            ),
            self.path,
            (self.payload, 1),
        )
        vbox(top, (below, 1), on=self, margins=PAGE, spacing=SPACE[2])

    def _row(self, title: str, *buttons: QPushButton) -> QHBoxLayout:
        return hbox((label(title, "strong"), 1), *buttons)

    def show_run(self, run: RunRecord) -> None:
        self._run, self._page = run, None
        for text in (self.command, self.path):
            text.setText("…")
        self.payload.clear()
        if self._visible:
            self._read()

    def enter(self) -> None:
        super().enter()
        self._read()

    def leave(self) -> None:
        super().leave()

    def _read(self) -> None:
        run, var = self._run, self.context.link.var
        if run is not None and self._page is None:
            self.context.tasks.run(lambda: config_page(run, var), self._show)

    def _show(self, page: ConfigPage) -> None:
        if not self.is_shown(page.run_id):
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
