"""The one TensorBoard of the window: started when somebody looks, ended when nobody has for a while."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QProcess, Signal

from gym_gui import log
from mosaic.client import RunRecord
from mosaic.client.board import Status, Wish, command, names_for

IDLE_SECONDS = 600.0
"""A page in the browser asks for news while it is seen, every half minute."""
_END_MS = 2000


class Board(QObject):
    """A process that serves the runs that were shown last; a page in the browser follows the window."""

    changed = Signal()

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        super().__init__()
        self.status = Status()
        self._idle_seconds = idle_seconds
        self._process: QProcess | None = None
        self._wish = Wish({}, False)

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.processId()

    def show(self, runs: Sequence[RunRecord]) -> None:
        """Serve these runs and no others from now on, until `release` and a while longer."""
        wish = Wish(names_for(runs))
        if self._process is None:
            self._start()
        elif wish == self._wish:
            return
        elif wish.runs != self._wish.runs:
            # What is listed now is of other runs.
            self.status = Status(self.status.address)
        self._wish = wish
        self._write()

    def release(self) -> None:
        """Nobody looks within the window any more."""
        if self._process is not None and self._wish.held:
            self._wish = Wish(self._wish.runs, False)
            self._write()

    def close(self) -> None:
        """End the process, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.blockSignals(True)
        process.closeWriteChannel()
        process.terminate()
        if not process.waitForFinished(_END_MS):
            process.kill()
            process.waitForFinished(_END_MS)
        process.deleteLater()
        self.status, self._wish = Status(), Wish({}, False)

    def _start(self) -> None:
        self.status = Status()
        process = self._process = QProcess(self)
        process.setStandardErrorFile(QProcess.nullDevice())
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(self._ended)
        process.errorOccurred.connect(self._not_started)
        program, *arguments = command(idle_seconds=self._idle_seconds)
        process.start(program, arguments)

    def _write(self) -> None:
        assert self._process is not None
        self._process.write(self._wish.line())

    def _read(self) -> None:
        while self._process is not None and self._process.canReadLine():
            status = Status.read(bytes(self._process.readLine().data()))
            # Before it has read the last line it tells of the runs that it was asked for before.
            if status.error or status.runs == tuple(self._wish.runs):
                self._take(status)

    def _take(self, status: Status) -> None:
        self.status = status
        if status.error:
            log.warning(log.Code.STREAM_LOST, status.error)
        self.changed.emit()

    def _ended(self) -> None:
        if self._process is None:
            return
        self._read()
        self._process.deleteLater()
        self._process = None
        error = self.status.error
        if not error and self._wish.held:
            error = "TensorBoard has ended by itself."
        self._wish = Wish({}, False)
        self._take(Status(error=error))

    def _not_started(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart and self._process is not None:
            self._take(Status(error=f"TensorBoard cannot be started: {self._process.errorString()}."))
            self._ended()
