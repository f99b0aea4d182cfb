"""The Logs tab: what a run has printed."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout

from gym_gui.context import Context
from gym_gui.models.facts import RunFacts
from gym_gui.models.log_lines import MOST_LINES
from gym_gui.services.log_stream import STREAMS, LogStream
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import button, label
from gym_gui.ui.widgets.log_view import LogView
from mosaic.client import RunRecord

_LINES_AT_ONCE = 400
_PAUSE_MS = 30


class LogsView(RunView):
    """One log at a time: output, errors, events or the supervisor's."""

    title: ClassVar[str] = "Logs"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._run: RunRecord | None = None
        self._log: LogStream | None = None
        self._visible = False
        self.view = LogView()
        self.search = QLineEdit(placeholderText="Find…   /")
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(280)
        self.found = label("", "label")
        self.about = label("", "faint")
        self.streams: dict[str, QPushButton] = {}
        self.follow = self._chip("Follow")
        self.wrap = self._chip("Wrap lines")
        self._timer = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._build()
        self._connect()

    def _chip(self, text: str) -> QPushButton:
        made = button(text, role="chip")
        made.setCheckable(True)
        return made

    def _build(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(SPACE[0])
        self._which = QButtonGroup(self)
        for stream, words in STREAMS.items():
            chip = self._chip(words)
            self._which.addButton(chip)
            self.streams[stream] = chip
            row.addWidget(chip)
        row.addSpacing(SPACE[2])
        row.addWidget(self.search, 1)
        self.before, self.after = button("↑", role="quiet"), button("↓", role="quiet")
        for one, words in ((self.before, "Previous place"), (self.after, "Next place")):
            one.setAccessibleName(words)
            one.setStyleSheet("padding: 0 8px;")
            row.addWidget(one)
        row.addWidget(self.found)
        row.addStretch(1)
        row.addWidget(self.wrap)
        row.addWidget(self.follow)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[4], SPACE[3], SPACE[4], SPACE[1])
        column.setSpacing(SPACE[1])
        column.addLayout(row)
        column.addWidget(self.view, 1)
        column.addWidget(self.about)
        self.streams["stdout"].setChecked(True)
        self.follow.setChecked(True)

    def _connect(self) -> None:
        self._which.buttonClicked.connect(lambda _: self._open())
        self._timer.timeout.connect(self._take)
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
        self._run = run
        # Who looks at the log of a run that failed wants to know why.
        self.streams["stderr" if run.outcome == "failed" else "stdout"].setChecked(True)
        if self._visible:
            self._open()
        else:
            self.view.clear()

    def update_run(self, run: RunRecord) -> None:
        self._run = run

    def enter(self) -> None:
        self._visible = True
        self._open()

    def leave(self) -> None:
        self._visible = False
        self._shut()

    def close_view(self) -> None:
        self.leave()

    def _open(self) -> None:
        self._shut()
        self.view.clear()
        self.about.setText("")
        if self._run is None or not self._visible:
            return
        words = STREAMS[self.stream].lower()
        nothing = f"Nothing in its {words} log." if self._run.ended else f"Nothing in its {words} log yet."
        self.view.setPlaceholderText(nothing)
        self.view.set_follows(True)
        self._log = LogStream(self.context.link, self._run.run_id, self.stream)
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
