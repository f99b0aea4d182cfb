"""The training process and all below it: started, watched and ended as one; and its supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Protocol

from mosaic.contract.paths import RunPaths
from mosaic.contract.process import (
    ProcessIdentity,
    family_mark,
    grace_seconds,
    process_state,
    tree_below,
    wear_mark,
)

_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 10.0
_STOP_SECONDS = 5.0
_AT_REST = ("T", "t", "Z", "X", None)
"""Stopped, ended or gone, in the kernel's letters."""


class TrainingProcess:
    """One training process in a process group of its own. It imports at once and trains after `go`.

    It is started as `*program --parent PID --go-fd N *arguments` and is expected to end with process PID and
    to wait for a byte from descriptor N before it trains (`mosaic.worker.tether` does both).
    """

    def __init__(
        self,
        program: Sequence[str],
        arguments: Sequence[str],
        paths: RunPaths,
        environment: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        pipes: tuple[int, int] | None = None,
    ) -> None:
        """`pipes` are descriptors for its stdin and stdout; else it reads nothing and writes to its log."""
        # Children that the script cuts loose become ours, so that nothing outlives the run.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if paths.lock.exists():
            # When we are killed they are nobody's: by this the daemon finds them.
            wear_mark(family_mark(paths.lock))
        go_read, self._go = os.pipe()
        tied = [*program, "--parent", str(os.getpid()), "--go-fd", str(go_read), *arguments]
        with paths.stdout.open("ab") as stdout, paths.stderr.open("ab") as stderr:
            try:
                self._process = subprocess.Popen(
                    tied,
                    stdin=pipes[0] if pipes else subprocess.DEVNULL,
                    stdout=pipes[1] if pipes else stdout,
                    stderr=stderr,
                    cwd=paths.run_dir,
                    env=dict(environment),
                    pass_fds=[go_read, *pass_fds],
                    process_group=0,
                )
            finally:
                os.close(go_read)
        self.pid = self._process.pid
        self.spared: frozenset[int] = frozenset()
        """Children of the supervisor that are not part of the training: neither paused nor ended with it."""
        self.pidfd = os.pidfd_open(self.pid)

    def go(self) -> None:
        """Let it train."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, b"g")
        os.close(self._go)
        self._go = -1

    @property
    def exit_code(self) -> int | None:
        """The exit code as shells say it (128 + signal); None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    @property
    def stopped(self) -> bool:
        """Whether it stands still, as it does when it was paused from here or from outside."""
        return process_state(self.pid) == "T"

    def ask_to_end(self) -> None:
        """TERM, then CONT, so that a stopped process hears it too."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        self.set_paused(False)

    def set_paused(self, paused: bool) -> None:
        """Stop the whole tree, also what it starts while it is being stopped; or let it go on."""
        if not paused:
            _send(self._tree(), signal.SIGCONT)
            return
        deadline = time.monotonic() + _STOP_SECONDS
        while running := [one for one in self._tree() if process_state(one.pid) not in _AT_REST]:
            _send(running, signal.SIGSTOP)
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)

    def await_group(self, seconds: float) -> None:
        """Wait, but not for longer than `seconds`, until all that were asked to end have ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(map(self._is_asked, self._tree())):
            self._process.poll()
            self.reap()
            time.sleep(0.02)

    def _tree(self) -> list[ProcessIdentity]:
        return tree_below(os.getpid(), self.spared)

    def _is_asked(self, process: ProcessIdentity) -> bool:
        try:
            return os.getpgid(process.pid) == self.pid and process_state(process.pid) not in ("Z", "X", None)
        except ProcessLookupError:
            return False

    def reap(self) -> bool:
        """Collect ended processes that were cut loose and became ours; whether there are children still."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None or ended.si_pid == self.pid:
                return True
            with contextlib.suppress(ChildProcessError):
                os.waitpid(ended.si_pid, 0)

    def end_tree(self) -> int:
        """Kill whatever of the tree is left; gives the training process's exit code."""
        deadline = time.monotonic() + _KILL_SECONDS
        # Who has no child has no tree: the kernel knows that at once, a look at all processes takes long.
        while self.reap() and (left := self._tree()) and time.monotonic() < deadline:
            _send(left, signal.SIGKILL)
            self._process.poll()
            time.sleep(0.005)
        if self._go >= 0:
            os.close(self._go)
        os.close(self.pidfd)
        code = self.exit_code
        return 1 if code is None else code


def _send(processes: Iterable[ProcessIdentity], number: signal.Signals) -> None:
    for process in processes:
        process.send(number)


TICK_SECONDS = 1.0


class Beat(Protocol):
    """Told often that the run lives; `at_once` when something has just changed.

    It may give in how many seconds it wants to be told again, if sooner than after `TICK_SECONDS`.
    """

    def __call__(self, paused: bool = False, at_once: bool = False) -> float | None: ...


class Watch:
    """Made in the main thread, before the training process: from then on a signal is no longer lost."""

    def __init__(self) -> None:
        # Read now: a wrong number must not be found when the run is to end.
        self._grace = grace_seconds()
        self._cancelled_at: float | None = None
        self._wishes: deque[bool] = deque()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    @property
    def cancelled(self) -> bool:
        """Whether a signal has asked for the end."""
        return self._cancelled_at is not None

    def seconds_to_end(self) -> float:
        """How much is left of the time in which a cancelled run may end by itself."""
        if self._cancelled_at is None:
            return 0.0
        return max(0.0, self._cancelled_at + self._grace - time.monotonic())

    def wish_pause(self, wanted: bool) -> None:
        """Have the training process stopped, or go on. May be called from any thread."""
        self._wishes.append(wanted)
        os.write(self._wake_write, b"p")

    def until_end(
        self, training: TrainingProcess, beat: Beat, readers: Mapping[int, Callable[[], bool]] | None = None
    ) -> None:
        """Beats until the training process has ended, and its end when that was asked for.

        A reader is called when its descriptor has something to read, until it gives False.
        """
        poller, waiting = select.poll(), dict(readers or {})
        for descriptor in (training.pidfd, self._wake_read, *waiting):
            poller.register(descriptor, select.POLLIN)
        asked = paused = False
        tick = beat()
        while training.exit_code is None:
            for descriptor, _ in poller.poll((tick or TICK_SECONDS) * 1000):
                if descriptor == self._wake_read:
                    os.read(self._wake_read, 64)
                elif descriptor in waiting and not waiting[descriptor]():
                    poller.unregister(descriptor)
            training.reap()
            if self._cancelled_at is not None:
                if not asked:
                    training.ask_to_end()
                    asked = True
                if time.monotonic() - self._cancelled_at > self._grace:
                    return
            while self._wishes and not asked:
                training.set_paused(self._wishes.popleft())
            # What counts is what the process does: others can stop it, and let it go on, too.
            if training.stopped != paused:
                paused = not paused
                beat(paused, at_once=True)
            tick = beat(paused)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
