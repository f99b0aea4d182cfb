"""Disks that can be full at will: a small tmpfs, or, where mounting is not allowed, a limit on file sizes."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from fault_cases.site import processes_with

_SIZE_MB = 24
_PAGE = 4096


class Disk(Protocol):
    """A folder that takes no more after `fill`, until `free`."""

    folder: Path
    kind: str
    words: str
    """How the system names the trouble."""
    passes: bool
    """Whether it is a state of the disk, which is waited for, and for which room is kept."""

    def fill(self) -> None: ...
    def free(self) -> None: ...


class Tmpfs:
    """A file system of its own, filled up by a file."""

    kind = f"tmpfs of {_SIZE_MB} MB"
    words = "No space left on device|disk is full"
    passes = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for size in (1 << 20, _PAGE, 1):
                try:
                    while os.write(descriptor, bytes(size)) == size:
                        pass
                except OSError:
                    continue
        finally:
            os.close(descriptor)

    def free(self) -> None:
        self._filler.unlink()

    @contextmanager
    def kept_full(self) -> Iterator[None]:
        """Whatever becomes free is taken at once, as by a process that writes without end."""
        done = threading.Event()

        def fill() -> None:
            while not done.wait(0.01):
                self.fill()

        thread = threading.Thread(target=fill)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.free()


class FileLimit:
    """No mount, no root: every process of the site may write no file beyond its first byte."""

    kind = "limit on file sizes"
    words = "File too large|disk I/O error|disk is full"
    passes = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        self._limit(1)

    def free(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        for pid in processes_with(f"FAULT_DISK={self.folder}"):
            # A process may have ended since it was found.
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """The best that this machine allows; what is mounted is unmounted at the end."""
    folder.mkdir()
    if not try_mount(folder):
        yield FileLimit(folder)
        return
    try:
        yield Tmpfs(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def try_mount(folder: Path) -> bool:
    """Mount a small tmpfs; False where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE_MB}m", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
