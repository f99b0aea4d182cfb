"""The Logs tab, what a run has printed, and the Config tab, exactly what it was asked to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import (
    QFontDatabase,
    QGuiApplication,
    QKeySequence,
    QShortcut,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QButtonGroup, QPlainTextEdit, QTextEdit

from gym_gui.context import Context
from gym_gui.models.command_line import ConfigPage, config_page
from gym_gui.models.run_files import RunFacts
from gym_gui.services.log_stream import MOST_LINES, STREAMS, LogStream
from gym_gui.services.tasks import timer
from gym_gui.theme import LABEL, SPACE, theme
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import PAGE, Button, Card, Gap, hbox, label, open_path, search_field, vbox
from mosaic.client import RunRecord

_LINES_MARKED = 200
_LINES_AT_ONCE = 400
_PAUSE_MS = 30
_PARTS = (
    (re.compile(r'"(?:[^"\\]|\\.)*"(?=\s*:)'), "accent"),
    (re.compile(r'(?<=: )"(?:[^"\\]|\\.)*"'), "good"),
    (re.compile(r"(?<=[:\s])(?:true|false|null|-?\d[\d.eE+-]*)(?=,?$)"), "paused"),
)
"""The names, texts and other values of a JSON file, each with the role of its colour."""


class FixedText(QPlainTextEdit):
    """Read-only text in a fixed width."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(LABEL)
        self.setFont(font)


class LogView(FixedText):
    """While its end can be seen it follows; scrolling up lets it stand still."""

    follows_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.setMaximumBlockCount(MOST_LINES)
        self.setUndoRedoEnabled(False)
        self._sought = ""
        self.follows = True
        self._adding = False
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.updateRequest.connect(lambda _rect, moved: self._mark() if moved else None)
        theme.changed.connect(self._mark)

    def set_follows(self, follows: bool) -> None:
        """Stay at the end from now on, or where it is."""
        self._note(follows)
        if follows:
            self._go_to_end()

    def _note(self, follows: bool) -> None:
        if follows != self.follows:
            self.follows = follows
            self.follows_changed.emit(follows)

    def add_lines(self, lines: Sequence[str]) -> None:
        """Put lines at the end."""
        if not lines:
            return
        self._adding = True
        bar = self.verticalScrollBar()
        before, blocks = bar.value(), self.blockCount()
        self.appendPlainText("\n".join(lines))
        if self.follows:
            self._go_to_end()
        else:
            # Lines that were forgotten above must not move those that are being read.
            lost = max(0, blocks + len(lines) - MOST_LINES)
            bar.setValue(max(0, before - lost))
        self._adding = False
        self._mark()

    def _go_to_end(self) -> None:
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _scrolled(self, value: int) -> None:
        if not self._adding:
            self._note(value >= self.verticalScrollBar().maximum())

    def seek(self, text: str) -> None:
        """Mark a text wherever it can be seen."""
        self._sought = text
        self._mark()

    def find_next(self, backward: bool = False) -> bool:
        """Go to the next place of the text that is sought; from the other end when there is none left."""
        if not self._sought:
            return False
        flags = QTextDocument.FindFlag.FindBackward if backward else QTextDocument.FindFlag(0)
        if self.find(self._sought, flags):
            return True
        cursor = self.textCursor()
        end = QTextCursor.MoveOperation.End if backward else QTextCursor.MoveOperation.Start
        cursor.movePosition(end)
        self.setTextCursor(cursor)
        return self.find(self._sought, flags)

    def _mark(self) -> None:
        found: list[QTextEdit.ExtraSelection] = []
        block = self.firstVisibleBlock()
        wanted = re.compile(re.escape(self._sought), re.IGNORECASE)
        for _ in range(_LINES_MARKED if self._sought else 0):
            if not block.isValid():
                break
            for match in wanted.finditer(block.text()):
                found.append(self._selection(block.position() + match.start(), len(match[0])))
            block = block.next()
        self.setExtraSelections(found)

    def _selection(self, position: int, length: int) -> QTextEdit.ExtraSelection:
        marked = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        marked.cursor = cursor
        marked.format.setBackground(theme.palette.colour("warn", 0.4))
        return marked


class LogsView(RunView):
    """One log at a time: output, errors, events or the supervisor's."""

    title = "Logs"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._log: LogStream | None = None
        self.view = LogView()
        self.search = search_field("Find…   /", "Find")
        self.search.setMaximumWidth(280)
        self.found = label("", "label")
        self.about = label("", "faint")
        self.streams = {one: _chip(words) for one, words in STREAMS.items()}
        self.follow, self.wrap = _chip("Follow"), _chip("Wrap lines")
        self._timer = timer(self, _PAUSE_MS, self._take, once=True)
        self._which = QButtonGroup(self)
        for chip in self.streams.values():
            self._which.addButton(chip)
        self.before, self.after = Button("↑", role="quiet"), Button("↓", role="quiet")
        for one, words in ((self.before, "Previous match"), (self.after, "Next match")):
            one.setAccessibleName(words)
            one.setStyleSheet("padding: 0 8px;")
        sought = (Gap(SPACE[2]), (self.search, 1), self.before, self.after, self.found)
        row = hbox(*self.streams.values(), *sought, 1, self.wrap, self.follow, spacing=SPACE[0])
        vbox(row, (self.view, 1), self.about, on=self, margins=(SPACE[4], SPACE[3], SPACE[4], SPACE[1]))
        self.streams["stdout"].setChecked(True)
        self.follow.setChecked(True)
        self._which.buttonClicked.connect(lambda _: self._open())
        self.search.textChanged.connect(self._seek)
        self.search.returnPressed.connect(lambda: self.view.find_next())
        self.after.clicked.connect(lambda: self.view.find_next())
        self.before.clicked.connect(lambda: self.view.find_next(backward=True))
        self.follow.toggled.connect(self.view.set_follows)
        self.view.follows_changed.connect(self.follow.setChecked)
        self.wrap.toggled.connect(self._wrap)
        QShortcut(QKeySequence("/"), self).activated.connect(self.search.setFocus)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return run.started_at is not None or run.ended

    @property
    def stream(self) -> str:
        """Which log is shown."""
        return next((name for name, chip in self.streams.items() if chip.isChecked()), "stdout")

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        # Who looks at the log of a run that failed wants to know why.
        self.streams["stderr" if run.outcome == "failed" else "stdout"].setChecked(True)
        self.view.clear()

    def enter(self) -> None:
        super().enter()
        self._open()

    def leave(self) -> None:
        super().leave()
        self._shut()

    def _open(self) -> None:
        self._shut()
        self.view.clear()
        self.about.setText("")
        words = STREAMS[self.stream].lower()
        nothing = f"Nothing in its {words} log." if self.run.ended else f"Nothing in its {words} log yet."
        self.view.setPlaceholderText(nothing)
        self.view.set_follows(True)
        self._log = LogStream(self.context.link, self.run.run_id, self.stream)
        self._log.news.connect(self._timer.start)
        # The first lines may have come before anybody listened.
        self._timer.start()

    def _shut(self) -> None:
        self._timer.stop()
        if self._log is not None:
            self._log.close()
            self._log.deleteLater()
            self._log = None

    def _take(self) -> None:
        if self._log is None:
            return
        lines, more = self._log.take(_LINES_AT_ONCE)
        self.view.add_lines(lines)
        cut = f" · only the newest {MOST_LINES:,} or 4 MB are shown" if self._log.shortened else ""
        self.about.setText(f"{len(self._log):,} lines{cut}")
        if more:
            self._timer.start()
        elif self.search.text():
            self._count()

    def _seek(self, text: str) -> None:
        self.view.seek(text)
        self._count()
        if text:
            self.view.find_next()

    def _count(self) -> None:
        text = self.search.text()
        if not text or self._log is None:
            self.found.setText("")
            return
        count = self._log.count(text)
        self.found.setText("no line" if not count else f"{count:,} line{'s' * (count > 1)}")

    def _wrap(self, wraps: bool) -> None:
        modes = LogView.LineWrapMode
        self.view.setLineWrapMode(modes.WidgetWidth if wraps else modes.NoWrap)


def _chip(text: str) -> Button:
    return Button(text, role="chip", checkable=True)


class JsonColours(QSyntaxHighlighter):
    """Gives the parts of a JSON file their colours."""

    def highlightBlock(self, text: str) -> None:
        for pattern, role in _PARTS:
            look = QTextCharFormat()
            look.setForeground(theme.palette.colour(role))
            for match in pattern.finditer(text):
                self.setFormat(match.start(), match.end() - match.start(), look)


class ConfigView(RunView):
    """The command that starts the same run, the file, and the payload."""

    title = "Config"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._page: ConfigPage | None = None
        self.command = label("", selectable=True, wraps=True)
        self.path = label("", "dim", selectable=True, wraps=True)
        self.payload = FixedText()
        self._colours = JsonColours(self.payload.document())
        theme.changed.connect(self._colours.rehighlight)
        self.copy_command = Button("Copy command", do=lambda: self._copy(self.command.text(), "the command"))
        copy_payload = Button(
            "Copy payload", do=lambda: self._copy(self.payload.toPlainText(), "the payload")
        )
        copy_path = Button("Copy path", do=lambda: self._copy(self.path.text(), "the path"))
        self.open_file = Button("Open file", do=lambda: self._open(Path(self.path.text())))
        open_folder = Button("Open folder", do=lambda: self._open(Path(self.path.text()).parent))
        above = hbox((label("The same run from a terminal", "strong"), 1), self.copy_command)
        heading = label("What the daemon has accepted", "strong")
        below = hbox((heading, 1), copy_payload, copy_path, self.open_file, open_folder)
        page = (Card(above, self.command), (Card(below, self.path, (self.payload, 1)), 1))
        vbox(*page, on=self, margins=PAGE, spacing=SPACE[2])

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self._page = None
        for text in (self.command, self.path):
            text.setText("…")
        self.payload.clear()

    def enter(self) -> None:
        super().enter()
        if self._page is None:
            self.read(lambda run: config_page(run, self.context.link.var), self._show)

    def _show(self, page: ConfigPage) -> None:
        self._page = page
        self.command.setText(page.command)
        self.path.setText(str(page.path))
        self.payload.setPlainText(page.payload)
        self.open_file.setEnabled(page.exists)

    def _copy(self, text: str, what: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.context.notifications.tell(f"Copied {what}.", "good")

    def _open(self, path: Path) -> None:
        if self._page is not None:
            open_path(path, self.context.notifications)
