"""The processes beside a run that pass it on to trackers: started, watched and ended by who runs it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mosaic.contract.process import tree_below
from mosaic.contract.variables import number_variable
from mosaic.tracking import FAILED, TITLES, TrackerLink, read_link, read_progress, write_link
from mosaic.tracking.request import Request

END_VARIABLE = "MOSAIC_TRACKING_SECONDS"
_END_SECONDS = 60.0
_TICK_SECONDS = 0.2
_STARTS = 3
"""A process that dies is started again, and continues where it was, until it has been started so often."""
_RESTART_SECONDS = 5.0


@dataclass
class _Process:
    """The process of one tracker."""

    popen: subprocess.Popen[bytes]
    pidfd: int
    starts: int
    started_at: float

    def ended(self) -> bool:
        # By this and not by its exit code, which others that wait for any child may take.
        return bool(select.select([self.pidfd], [], [], 0)[0])

    def tell(self, order: Mapping[str, object]) -> None:
        assert self.popen.stdin is not None
        with contextlib.suppress(OSError):
            self.popen.stdin.write(json.dumps(order).encode() + b"\n")
            self.popen.stdin.flush()

    def end(self) -> None:
        for below in tree_below(self.popen.pid):
            below.send(signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self.popen.kill()
        self.popen.wait()
        assert self.popen.stdin is not None
        with contextlib.suppress(OSError):
            self.popen.stdin.close()
        os.close(self.pidfd)


class Trackers:
    """One process for each tracker of a run. Nothing that goes wrong with one is raised here."""

    def __init__(
        self, requests: Sequence[Request], logs: Path, environment: Mapping[str, str], tied: bool = True
    ) -> None:
        """`logs` is the folder for what they print. With `tied` they are killed when this process ends; else
        they hand in what is left then."""
        self._logs, self._environment, self._tied = logs, dict(environment), tied
        self.end_seconds = number_variable(END_VARIABLE, _END_SECONDS)
        """How long they may take at the end of the run."""
        self._requests = {request.tracker: request for request in requests}
        self._processes: dict[str, _Process] = {}
        self._ending = False
        for name in self._requests:
            self._start(name, 1)

    def __bool__(self) -> bool:
        return bool(self._requests)

    @property
    def pids(self) -> set[int]:
        """The processes that are not part of the training."""
        return {process.popen.pid for process in self._processes.values()}

    def look(self) -> dict[str, str]:
        """What is wrong with each tracker, as sentences by its name; starts again what has died."""
        for name, process in () if self._ending else list(self._processes.items()):
            if process.ended() and time.monotonic() - process.started_at > _RESTART_SECONDS:
                self._take_end(name, process)
        found = {name: read_link(request.folder, name) for name, request in self._requests.items()}
        return {name: link.problem for name, link in found.items() if link is not None and link.problem}

    def end(self, outcome: str, seconds: Callable[[], float], meanwhile: Callable[[], object]) -> None:
        """Let them hand in what is left, and end them. `seconds` tells how much time is left for that."""
        self._ending = True
        for process in self._processes.values():
            process.tell({"end": outcome})
        while True:
            for name, process in list(self._processes.items()):
                if process.ended() and not self._handed_in(name):
                    # It died: another one still finds everything in the run's folder.
                    self._take_end(name, process)
                    if name in self._processes:
                        self._processes[name].tell({"end": outcome})
            left = [one for one in self._processes.values() if not one.ended()]
            remaining = seconds()
            if not left or remaining <= 0:
                break
            select.select([one.pidfd for one in left], [], [], min(_TICK_SECONDS, remaining))
            meanwhile()
        for name, process in self._processes.items():
            late = not process.ended()
            process.end()
            link = self._link(name)
            if link.state != FAILED and not link.finished and (late or not link.command):
                self._note(name, _left_over(self._requests[name], link, late))
        self._processes.clear()

    def kill(self) -> None:
        """End them at once."""
        for process in self._processes.values():
            process.end()
        self._processes.clear()

    def _start(self, name: str, starts: int) -> None:
        request = self._requests[name]
        command = [sys.executable, "-P", "-m", "mosaic.tracking.process"]
        if self._tied:
            command += ["--parent", str(os.getpid())]
        try:
            with open(self._logs / f"tracking-{name}.log", "ab") as log:
                popen = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=request.folder,
                    env=self._environment,
                    process_group=0,
                )
        except OSError as error:
            reason = (
                f"{TITLES[name]} does not follow this run: its process cannot be started ({error.strerror})."
            )
            self._note(name, TrackerLink(name, FAILED, problem=reason))
            return
        process = _Process(popen, os.pidfd_open(popen.pid), starts, time.monotonic())
        process.tell(request.as_json())
        self._processes[name] = process

    def _take_end(self, name: str, process: _Process) -> None:
        """A process has ended before the run has."""
        process.end()
        del self._processes[name]
        link = self._link(name)
        # One that has said why need not be asked again: it would say the same.
        if link.state == FAILED and link.problem:
            return
        if process.starts < _STARTS:
            self._start(name, process.starts + 1)
            return
        log = self._logs / f"tracking-{name}.log"
        problem = f"{TITLES[name]} no longer follows this run: its process has died, see {log}."
        self._note(name, replace(link, state=FAILED, problem=problem))

    def _handed_in(self, name: str) -> bool:
        """Whether a process that has ended had done its work, or has said what is in its way."""
        link = self._link(name)
        return link.finished or bool(link.command or link.problem)

    def _link(self, name: str) -> TrackerLink:
        return read_link(self._requests[name].folder, name) or TrackerLink(name)

    def _note(self, name: str, link: TrackerLink) -> None:
        folder = self._requests[name].folder
        with contextlib.suppress(OSError):
            write_link(folder, link, read_progress(folder, name))


def _left_over(request: Request, link: TrackerLink, late: bool) -> TrackerLink:
    """The link of a tracker that did not come to its end."""
    if link.problem and request.tracker != "wandb":
        # It says better why.
        return link
    why = "was not done in time" if late else "has ended too early"
    problem = f"{link.title} {why}: the last data of the run may be missing there"
    if request.tracker != "wandb":
        return replace(link, problem=f"{problem}.")
    from mosaic.tracking.wandb import sync_command

    command = sync_command(Path(link.folder)) if link.folder else ""
    return replace(
        link, command=command, problem=f"{problem}; `{command}` sends it." if command else f"{problem}."
    )
