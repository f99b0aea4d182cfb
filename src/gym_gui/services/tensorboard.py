"""TensorBoard for a run, started when asked for and ended with the window."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import shiboken6
from PySide6.QtCore import QObject, Signal, SignalInstance

_ADDRESS = re.compile(r"http://\S+")
_END_SECONDS = 10.0


class TensorBoards(QObject):
    """One TensorBoard for each run, in a process of its own: `mosaic tensorboard RUN`."""

    ready = Signal(str)
    """Its address."""
    failed = Signal(str)
    """Why there is none."""

    def __init__(self, var: Path) -> None:
        super().__init__()
        self._var = var
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._addresses: dict[str, str] = {}
        self._closing = False

    def open(self, run_id: str) -> None:
        """Tell the address of a run's TensorBoard, at once or when it has started."""
        with self._lock:
            address = self._addresses.get(run_id)
            starting = run_id in self._threads
        if address is not None:
            self.ready.emit(address)
        elif not starting:
            thread = threading.Thread(
                target=self._serve, args=(run_id,), name=f"tensorboard {run_id}", daemon=True
            )
            self._threads[run_id] = thread
            thread.start()

    def close(self) -> None:
        """End them all."""
        with self._lock:
            self._closing = True
            processes, threads = list(self._processes.values()), list(self._threads.values())
        for process in processes:
            process.terminate()
        for thread in threads:
            thread.join(_END_SECONDS)

    def _serve(self, run_id: str) -> None:
        command = [sys.executable, "-m", "mosaic", "tensorboard", run_id, "--var", str(self._var)]
        with self._lock:
            if self._closing:
                return
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self._processes[run_id] = process
        last = self._listen(run_id, process)
        with self._lock:
            served = self._addresses.pop(run_id, None)
            del self._processes[run_id], self._threads[run_id]
        if served is None:
            self._say(self.failed, last)

    def _listen(self, run_id: str, process: subprocess.Popen[str]) -> str:
        """Tell the address when it is said, wait for the end, and give the last words."""
        last = "TensorBoard has ended without a word."
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                last = line.strip() or last
                found = _ADDRESS.search(line)
                if found:
                    with self._lock:
                        self._addresses[run_id] = found[0]
                    self._say(self.ready, found[0])
        process.wait()
        return last

    def _say(self, signal: SignalInstance, text: str) -> None:
        if not self._closing and shiboken6.isValid(self):
            signal.emit(text)
