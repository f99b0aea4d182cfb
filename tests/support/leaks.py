"""Finding what a test has left behind: processes, threads, file handles, shared memory."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing.resource_tracker
import os
import sysconfig
import threading
import time
import traceback
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

GRACE_SECONDS = 5.0
"""How long a process or thread that is about to end may take."""

# gRPC's poller makes these on first use and keeps them as long as the process lives.
_POLLER_HANDLES = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]")

# multiprocessing starts one on first use and keeps it as long as the process lives.
_RESOURCE_TRACKER = "multiprocessing.resource_tracker"

_LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))

_SHARED_MEMORY = Path("/dev/shm")

_starters: weakref.WeakKeyDictionary[threading.Thread, str] = weakref.WeakKeyDictionary()


def remember_starters() -> None:
    """From now on know for each thread which line started it."""
    start = threading.Thread.start

    def start_and_remember(thread: threading.Thread) -> None:
        frames = traceback.extract_stack()[:-1]
        own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
        frame = (own or frames)[-1]
        _starters[thread] = f"{frame.filename}:{frame.lineno}"
        start(thread)

    threading.Thread.start = start_and_remember  # type: ignore[method-assign]


@dataclass(frozen=True)
class Footprint:
    """What this process has at one moment."""

    processes: frozenset[psutil.Process]
    threads: frozenset[threading.Thread]
    handles: frozenset[tuple[int, str]]
    segments: frozenset[Path]

    @classmethod
    def take(cls) -> Footprint:
        return cls(
            processes=frozenset(psutil.Process().children(recursive=True)),
            threads=frozenset(threading.enumerate()),
            handles=frozenset(_open_handles()),
            segments=frozenset(_SHARED_MEMORY.glob("mosaic.*")),
        )


def end_and_describe_leaks(before: Footprint, marks: Sequence[str]) -> list[str]:
    """One line for each thing that is new since `before`; leaked processes are ended.

    A process anywhere that carries one of `marks` in its environment or command line counts as well.
    """
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        now = Footprint.take()
        processes = [
            process
            for process in {*(now.processes - before.processes), *_marked(marks)}
            if _lives(process) and _RESOURCE_TRACKER not in " ".join(_command(process))
        ]
        threads = now.threads - before.threads
        handles = now.handles - before.handles
        segments = [path for path in now.segments - before.segments if _is_abandoned(path)]
        if not (processes or threads or handles or segments) or time.monotonic() > deadline:
            break
        # A handle may wait in a reference cycle.
        gc.collect()
        time.sleep(0.02)
    lines = [f"process {process.pid}: {' '.join(_command(process))}" for process in processes]
    lines += [
        f"thread {thread.name}, started at {_starters.get(thread, 'an unknown line')}" for thread in threads
    ]
    lines += [f"file handle {number}: {target}" for number, target in sorted(handles)]
    lines += [f"shared memory {path}" for path in segments]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return lines


def _open_handles() -> list[tuple[int, str]]:
    tracker = getattr(multiprocessing.resource_tracker._resource_tracker, "_fd", None)
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if int(name) != tracker and target not in _POLLER_HANDLES:
                found.append((int(name), target))
    return found


def _marked(marks: Sequence[str]) -> list[psutil.Process]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, psutil.Error):
            told = Path("/proc", pid, "environ").read_bytes() + Path("/proc", pid, "cmdline").read_bytes()
            if int(pid) != os.getpid() and any(mark.encode() in told for mark in marks):
                found.append(psutil.Process(int(pid)))
    return found


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def _is_abandoned(segment: Path) -> bool:
    """Whether nobody but this process and its children uses the segment: other tests run beside this one."""
    ours = {os.getpid(), *(process.pid for process in psutil.Process().children(recursive=True))}
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            # In bytes: what another process has mapped may have any name.
            mapped = Path(f"/proc/{process.pid}/maps").read_bytes()
            if process.pid not in ours and os.fsencode(segment) in mapped:
                return False
    return True
