"""What a sweep has found, read beside the window while somebody looks; the processes that need Optuna; and
what is asked of the daemon about sweeps, in tasks."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QProcess, Signal

from gym_gui import log
from gym_gui.models.sweep import LEAST_FOR_IMPORTANCE, SweepPicture, may_be_weighed, picture_of
from gym_gui.services.tasks import Tasks, timer
from mosaic.client import Client, RunRecord
from mosaic.contract.errors import ConflictError
from mosaic.sweeps.beside import MODULE
from mosaic.sweeps.configs import best_configs, spec_of, take_up
from mosaic.sweeps.study import COMPLETE, Study, StudyReader, Trial

LOOK_MS = 1000
_FIRST_MS = 30
"""The tab is there first: reading a large study beside it would make the window wait for Python's lock."""
_AGAIN_SECONDS = 10.0
"""So long a live sweep rests before it is asked again which of its parameters matter."""
_END_MS = 2000
_KNOCK_MS = 250
_MOST_KNOCKS = 240


class Child(QObject):
    """A process beside the window, at most one at a time; `ended` tells its code, output and complaints."""

    ended = Signal(int, str, str)

    def __init__(self) -> None:
        super().__init__()
        self._process: QProcess | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self, arguments: Sequence[str], text: str = "") -> None:
        """Run Python with these arguments, and this text as its input."""
        self.close()
        process = self._process = QProcess(self)
        process.finished.connect(self._finish)
        process.errorOccurred.connect(self._not_started)
        process.start(sys.executable, ["-P", *arguments])
        process.write(text.encode())
        process.closeWriteChannel()

    def _finish(self, code: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        said = process.readAllStandardOutput(), process.readAllStandardError()
        out, err = (bytes(one.data()).decode(errors="replace") for one in said)
        process.deleteLater()
        self.ended.emit(code if process.exitStatus() == QProcess.ExitStatus.NormalExit else 1, out, err)

    def _not_started(self, error: QProcess.ProcessError) -> None:
        process = self._process
        if error == QProcess.ProcessError.FailedToStart and process is not None:
            self._process = None
            process.deleteLater()
            self.ended.emit(1, "", f"{sys.executable} cannot be started: {process.errorString()}.")

    def close(self) -> None:
        """End the process, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.blockSignals(True)
        process.terminate()
        if not process.waitForFinished(_END_MS):
            process.kill()
            process.waitForFinished(_END_MS)
        process.deleteLater()


class SweepFeed(QObject):
    """The picture of one sweep, made anew in a task when its study has changed."""

    ready = Signal(object)
    """The SweepPicture; None while the sweep has not begun."""
    weighed = Signal(object)
    """How much each parameter matters, by name; None when it cannot be told."""

    def __init__(self, tasks: Tasks) -> None:
        super().__init__()
        self._tasks = tasks
        self._reader: StudyReader | None = None
        self._run_dir = Path()
        self._ended = self._reading = self._asked = False
        self._seen: Study | None = None
        self._objective = 0
        self.weights: dict[str, float] | None = {}
        self.problem = ""
        """Why it cannot be told which parameters matter."""
        self._weighed_at, self._weighed_with = 0.0, (-1, -1)
        self._timer = timer(self, LOOK_MS, self.look)
        self._first = timer(self, _FIRST_MS, self.look, once=True)
        self._child = Child()
        self._child.ended.connect(self._take_weights)

    @property
    def weighing(self) -> bool:
        """Whether Optuna is being asked which parameters matter."""
        return self._child.running

    def open(self, run: RunRecord) -> None:
        """Follow a sweep."""
        folder = Path(run.run_dir)
        if folder != self._run_dir:
            self._child.close()
            self._reader, self._run_dir = None, folder
            self.weights, self.problem, self._weighed_with, self._weighed_at = {}, "", (-1, -1), 0.0
        if self._reader is None:
            self._reader, self._seen = StudyReader(folder), None
        self._ended = run.ended
        self._timer.start()
        self._first.start()

    def forget(self) -> None:
        """Whoever draws has nothing any more: the next look makes a picture again."""
        self._reader = None

    def update(self, run: RunRecord) -> None:
        """The sweep has news; one that has ended is read once more."""
        if run.ended and not self._ended:
            self._ended = True
            self.look()

    def choose(self, objective: int) -> None:
        """Draw another objective."""
        self._objective, self._seen = objective, None
        self._weighed_with = (-1, -1)
        self.look()

    def close(self) -> None:
        self._timer.stop()
        self._first.stop()
        self._child.close()

    def look(self) -> None:
        """Read what is new, unless that is being done."""
        reader = self._reader
        if reader is None or self._reading:
            self._asked = self._reading
            return
        self._reading, seen, objective, weights = True, self._seen, self._objective, self.weights

        def work() -> tuple[Study | None, SweepPicture | None]:
            study = reader.poll()
            if study is None or study is seen:
                return study, None
            return study, picture_of(study, objective, weights)

        def done(found: tuple[Study | None, SweepPicture | None]) -> None:
            self._reading = False
            if reader is not self._reader:
                self.look()
                return
            study, picture = found
            self._seen = study if objective == self._objective else None
            if picture is not None or study is None:
                self.ready.emit(picture)
            if study is not None:
                self._weigh(study)
            if self._asked or objective != self._objective:
                self._asked = False
                self.look()
            elif self._ended and not self._child.running:
                self._timer.stop()

        self._tasks.run(work, done, self._failed, owner=self)

    def _failed(self, error: Exception) -> None:
        self._reading = False
        self._timer.stop()
        log.fault("the study of a sweep could not be drawn", error)

    def _weigh(self, study: Study) -> None:
        """Ask which parameters matter when there are more complete trials than the last time."""
        if not may_be_weighed(study):
            return
        wanted = (len(study.with_state(COMPLETE)), self._objective)
        soon = (
            time.monotonic() - self._weighed_at < _AGAIN_SECONDS and self._objective == self._weighed_with[1]
        )
        if wanted == self._weighed_with or wanted[0] < LEAST_FOR_IMPORTANCE or self._child.running or soon:
            return
        self._weighed_with, self._weighed_at = wanted, time.monotonic()
        self._child.start(["-m", MODULE, "importance", str(self._run_dir), str(self._objective)])
        self.weighed.emit(self.weights)

    def _take_weights(self, code: int, out: str, err: str) -> None:
        if code == 0:
            self.weights = {str(name): float(share) for name, share in json.loads(out).items()}
            self._seen = None
        else:
            lines = err.strip().splitlines()
            self.weights, self.problem = None, lines[-1] if lines else "Optuna could not be asked."
        self.weighed.emit(self.weights)
        # The parameters that matter most come first everywhere.
        self.look()


class Dashboard(QObject):
    """Optuna's dashboard on one sweep, until the window closes or another sweep is asked for."""

    opened = Signal(str)
    failed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._child = Child()
        self._child.ended.connect(self._ended)
        self._knock = timer(self, _KNOCK_MS, self._try)
        self._of, self._port, self._knocks = "", 0, 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    @property
    def opening(self) -> bool:
        """Whether it was started and does not answer yet."""
        return self._knock.isActive()

    def open(self, run: RunRecord) -> None:
        """Serve the study of a sweep; `opened` tells where as soon as it answers."""
        if self._child.running and self._of == run.run_id:
            if not self._knock.isActive():
                self.opened.emit(self.address)
            return
        storage = spec_of(run).storage
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._of, self._knocks = run.run_id, 0
        self._child.start(["-m", MODULE, "dashboard", storage, run.run_dir, str(self._port)])
        self._knock.start()

    def _try(self) -> None:
        self._knocks += 1
        with socket.socket() as door:
            door.settimeout(0.02)
            if door.connect_ex(("127.0.0.1", self._port)) == 0:
                self._knock.stop()
                self.opened.emit(self.address)
            elif self._knocks > _MOST_KNOCKS:
                self.close()
                self.failed.emit("optuna-dashboard did not answer within a minute.")

    def _ended(self, code: int, out: str, err: str) -> None:
        opening = self._knock.isActive()
        self._knock.stop()
        if opening:
            lines = err.strip().splitlines()
            self.failed.emit(f"optuna-dashboard has ended: {lines[-1] if lines else f'code {code}'}")

    def close(self) -> None:
        self._knock.stop()
        self._child.close()


def train_with(
    client: Client, run: RunRecord, trial: Trial, seeds: Sequence[int], steps: int | None
) -> list[dict[str, Any]]:
    """Configs of runs with the parameters of a trial."""
    return best_configs(client.get(run.run_id), trial, seeds, steps)


def go_on(client: Client, run: RunRecord, more: int) -> RunRecord:
    """A new sweep with so many trials more, on the study of one that has ended."""
    return client.submit(take_up(client, client.get(run.run_id), more))


def stop(client: Client, run: RunRecord) -> None:
    """End a sweep, which ends its trials; one that has just ended is left alone."""
    with suppress(ConflictError):
        client.cancel(run.run_id, "stopped in the window")
