"""What a form's choices need and is not installed, with a button that installs it in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QProcess, QProcessEnvironment, Signal
from PySide6.QtWidgets import QPlainTextEdit, QProgressBar, QWidget

from gym_gui.models.form_choices import InstallProgress, Requirement, install_command
from gym_gui.ui.widgets.basics import Button, Card, fill, label, named, restyle

_END_MS = 3000
_MOST_LINES = 500


class InstallCard(Card):
    """Optional sets that are missing, the command that installs them, and how far that is.

    One installation at a time; it goes on while the window is used.
    """

    ended = Signal(bool, str)
    """Whether the installation has succeeded, and how it ended in a sentence."""

    def __init__(self, owner: QWidget) -> None:
        """It goes with its owner, also where that is closed before it has laid out its parts."""
        super().__init__(role="raised", over=owner)
        self._names: list[str] = []
        self._installing: list[str] = []
        self._progress = InstallProgress()
        self._rest = ""
        self._sentence = label("", wraps=True, selectable=True)
        self.command = label("", "help", wraps=True, selectable=True)
        self.button = Button("Install", do=lambda: self.install())
        self._bar = QProgressBar(minimum=0, maximum=0, textVisible=False)
        self.step = label("", "help", wraps=True)
        """What is being done now, or how it has ended."""
        self.log = named(QPlainTextEdit(readOnly=True), "Output of the installer")
        self.log.setMaximumBlockCount(_MOST_LINES)
        self.log.setFixedHeight(120)
        fill(self.column, self._sentence, self.command, self.button, self._bar, self.step, self.log)
        self._process = QProcess(self)
        self._process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
        self._process.readyReadStandardOutput.connect(self._read)
        self._process.finished.connect(self._finish)
        self._process.errorOccurred.connect(self._not_started)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.stop)
        self._show_progress(False)
        self.hide()

    @property
    def running(self) -> bool:
        return self._process.state() != QProcess.ProcessState.NotRunning

    def offer(self, missing: Sequence[Requirement]) -> None:
        """Show what is missing; nothing hides the card."""
        names = [one.name for one in missing]
        if names != self._names and self.button.isEnabled():
            # What was said of another set would be taken for this one's.
            self._show_progress(False)
            self.button.show()
        self._names = names
        self._sentence.setText("\n".join(one.sentence for one in missing))
        self.command.setText(f"mosaic extras install {' '.join(self._names)}")
        self.button.setText(f"Install {', '.join(self._names)}")
        self.setVisible(bool(missing))

    def install(self, command: Sequence[str] | None = None) -> None:
        """Install what is offered; `command` is another way to do it."""
        if self.running:
            return
        self._installing, self._progress, self._rest = self._names, InstallProgress(), ""
        program, *arguments = command or install_command(self._installing)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        for name, value in (("PROGRESS_BAR", "off"), ("NO_INPUT", "1"), ("DISABLE_PIP_VERSION_CHECK", "1")):
            environment.insert(f"PIP_{name}", value)
        self._process.setProcessEnvironment(environment)
        self.log.clear()
        self.button.setEnabled(False)
        self._show_progress(True)
        self.step.setText(self._progress.step)
        self._process.start(program, arguments)

    def stop(self) -> None:
        """End an installation that runs, and wait until it is gone."""
        if not self.running:
            return
        self._process.terminate()
        if not self._process.waitForFinished(_END_MS):
            self._process.kill()
            self._process.waitForFinished(_END_MS)

    def _read(self) -> None:
        text = self._rest + bytes(self._process.readAllStandardOutput().data()).decode(errors="replace")
        *lines, self._rest = text.split("\n")
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        self.log.appendPlainText(line.rstrip("\r"))
        self.step.setText(self._progress.take(line))

    def _finish(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read()
        if self._rest:
            self._take(self._rest)
        if status == QProcess.ExitStatus.NormalExit:
            self._end(code == 0, self._progress.verdict(self._installing, code))
        else:
            self._end(False, f"The installation of {', '.join(self._installing)} was stopped.")

    def _not_started(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._end(False, f"The installation cannot be started: {self._process.errorString()}.")

    def _end(self, good: bool, text: str) -> None:
        self._bar.hide()
        self.button.setEnabled(True)
        self.button.setVisible(not good)
        self.step.setText(text)
        restyle(self.step, role="help" if good else "help-error")
        self.ended.emit(good, text)

    def _show_progress(self, on: bool) -> None:
        for part in (self._bar, self.step, self.log):
            part.setVisible(on)
        restyle(self.step, role="help")
