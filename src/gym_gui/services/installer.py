"""Installs optional sets in a process of its own, and tells how far it is."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QObject, QProcess, QProcessEnvironment, Signal

from gym_gui.models.requirements import InstallProgress, install_command

_END_MS = 3000


class Installer(QObject):
    """One installation at a time; it goes on while the window is used."""

    stepped = Signal(str)
    """What is being done now."""
    wrote = Signal(str)
    """A line of the installer's own words."""
    finished = Signal(bool, str)
    """Whether it is installed, and how it ended in a sentence."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._names: list[str] = []
        self._progress = InstallProgress()
        self._rest = ""
        self._process = QProcess(self)
        self._process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
        self._process.readyReadStandardOutput.connect(self._read)
        self._process.finished.connect(self._end)
        self._process.errorOccurred.connect(self._not_started)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.stop)

    @property
    def running(self) -> bool:
        return self._process.state() != QProcess.ProcessState.NotRunning

    def install(self, names: Sequence[str], command: Sequence[str] | None = None) -> None:
        """Install sets by their names; `command` is another way to do it."""
        if self.running:
            return
        self._names, self._progress, self._rest = list(names), InstallProgress(), ""
        program, *arguments = command or install_command(names)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        environment.insert("PIP_PROGRESS_BAR", "off")
        environment.insert("PIP_NO_INPUT", "1")
        environment.insert("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        self._process.setProcessEnvironment(environment)
        self.stepped.emit(self._progress.step)
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
        self.wrote.emit(line.rstrip("\r"))
        self.stepped.emit(self._progress.take(line))

    def _end(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read()
        if self._rest:
            self._take(self._rest)
        if status != QProcess.ExitStatus.NormalExit:
            self.finished.emit(False, f"The installation of {', '.join(self._names)} was stopped.")
            return
        self.finished.emit(code == 0, self._progress.verdict(self._names, code))

    def _not_started(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self.finished.emit(False, f"The installation cannot be started: {self._process.errorString()}.")
