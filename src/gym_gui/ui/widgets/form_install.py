"""What a form's choices need and is not installed, with a button that installs it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPlainTextEdit, QProgressBar, QVBoxLayout, QWidget

from gym_gui.models.requirements import Requirement
from gym_gui.services.installer import Installer
from gym_gui.ui.widgets.basics import button, card, label, restyle

_MOST_LINES = 500


class InstallCard(QWidget):
    """Optional sets that are missing, the command that installs them, and how far that is."""

    ended = Signal(bool, str)
    """Whether the installation has succeeded, and how it ended in a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._sentence = label("", wraps=True, selectable=True)
        self._command = label("", "help", wraps=True, selectable=True)
        self.button = button("Install")
        self.button.clicked.connect(self._begin)
        self.installer = Installer(self)
        self.installer.finished.connect(self._end)
        self._bar = QProgressBar()
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        self._step = label("", "help", wraps=True)
        self._log = QPlainTextEdit()
        self._log.setReadOnly(True)
        self._log.setMaximumBlockCount(_MOST_LINES)
        self._log.setFixedHeight(120)
        self._log.setAccessibleName("Words of the installer")
        inner = card("raised")
        for part in (self._sentence, self._command, self.button, self._bar, self._step, self._log):
            inner.column.addWidget(part)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(inner)
        self.installer.stepped.connect(self._step.setText)
        self.installer.wrote.connect(self._log.appendPlainText)
        self._show_progress(False)
        self.hide()

    def offer(self, missing: Sequence[Requirement]) -> None:
        """Show what is missing; nothing hides the card."""
        names = [one.name for one in missing]
        if names != self._names and self.button.isEnabled():
            # What was said of another set would be taken for this one's.
            self._show_progress(False)
            self.button.show()
        self._names = names
        self._sentence.setText("\n".join(one.sentence for one in missing))
        self._command.setText(f"mosaic extras install {' '.join(self._names)}")
        self.button.setText(f"Install {', '.join(self._names)}")
        self.setVisible(bool(missing))

    @property
    def command_text(self) -> str:
        return self._command.text()

    def _begin(self) -> None:
        self._log.clear()
        self.button.setEnabled(False)
        self._show_progress(True)
        self.installer.install(self._names)

    def _end(self, good: bool, text: str) -> None:
        self._bar.hide()
        self.button.setEnabled(True)
        self.button.setVisible(not good)
        self._step.setText(text)
        restyle(self._step, role="help" if good else "help-error")
        self.ended.emit(good, text)

    def _show_progress(self, on: bool) -> None:
        for part in (self._bar, self._step, self._log):
            part.setVisible(on)
        restyle(self._step, role="help")
