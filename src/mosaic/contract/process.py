"""Processes known by (pid, start time), so that a reused pid is never taken for ours."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import signal
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from mosaic.contract.variables import number_variable


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of this boot. `start` is its start time in clock ticks since boot."""

    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Who has this pid now; None when nobody has, or only a zombie."""
        fields = _stat_fields(pid)
        if fields is None or fields[0] in ("Z", "X"):
            return None
        return cls(pid, int(fields[19]))

    def alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    def open(self) -> int | None:
        """A pidfd of exactly this process, or None when it is gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return None
        if self.alive():
            return handle
        os.close(handle)
        return None

    def send(self, number: int) -> bool:
        """Signal exactly this process; False when it is gone."""
        handle = self.open()
        if handle is None:
            return False
        try:
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


GRACE_VARIABLE = "MOSAIC_GRACE_SECONDS"


def grace_seconds() -> float:
    """How long a cancelled run may take to end by itself: long enough to write a checkpoint."""
    return number_variable(GRACE_VARIABLE, 30.0)


NOBODY = ProcessIdentity(0, 0)
"""Stands for a process that is gone and was never known."""


def process_state(pid: int) -> str | None:
    """The kernel's letter for what the process does (`T` is stopped); None when it is gone."""
    fields = _stat_fields(pid)
    return fields[0] if fields else None


def tree_below(pid: int, without: Collection[int] = ()) -> list[ProcessIdentity]:
    """All processes below `pid`, parents before children; a signal to one of them finds no stranger.

    Those in `without`, and what is below them, are left out.
    """
    children: dict[int, list[ProcessIdentity]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        fields = _stat_fields(int(entry))
        if fields is not None:
            identity = ProcessIdentity(int(entry), int(fields[19]))
            children.setdefault(int(fields[1]), []).append(identity)
    found: list[ProcessIdentity] = []
    queue = [pid]
    while queue:
        below = [one for one in children.get(queue.pop(0), ()) if one.pid not in without]
        found += below
        queue += [identity.pid for identity in below]
    return found


_UNLIMITED = 2**63
_LOCKS_LIMIT = 10
"""`RLIMIT_LOCKS`: without meaning to the kernel since Linux 2.4, but every process has it from its parent."""
_LOCKS_LINE = b"Max file locks"


def family_mark(file: Path) -> int:
    """A number for the family of processes of a run, by its lock: no copy of the folder, not even one by hard
    links, has the same."""
    about = file.parent.parent.stat()
    digest = hashlib.sha256(f"{file.parent.name}:{about.st_dev}:{about.st_ino}".encode()).digest()
    return int.from_bytes(digest[:7], "big") | 1 << 60


def wear_mark(mark: int | None) -> None:
    """Give this process, and all that it starts from now on, a mark; None takes an inherited one off.

    It outlives an empty environment, a new session, closed descriptors and the death of every parent.
    """
    _, most = resource.getrlimit(_LOCKS_LIMIT)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(_LOCKS_LIMIT, (most if mark is None else mark, most))


def wears_mark(pid: int, mark: int) -> bool:
    try:
        limits = Path(f"/proc/{pid}/limits").read_bytes()
    except OSError:
        return False
    return any(line.startswith(_LOCKS_LINE) and b"%d" % mark in line.split() for line in limits.splitlines())


def boot_id() -> str:
    """Changes with every boot: start times compare only within one."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on (field 3 of proc(5) is index 0)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rfind(")") + 2 :].split()


def open_closed_streams() -> None:
    """Standard streams that were closed for this process lead nowhere from now on.

    Else the next file that is opened takes their number, and gets what is printed.
    """
    modes = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
    for number, (name, mode) in enumerate(modes):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def memory_limit(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes that a container, or a group of processes, may have: what is beyond them is killed for it."""
    limits = [_UNLIMITED]
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return _UNLIMITED
    for line in lines:
        _, kinds, own = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        top, name = (root, "memory.max") if not kinds else (root / kinds, "memory.limit_in_bytes")
        folder = top / own.lstrip("/")
        # What a group may have, those within it share; a container sees its own group at the top.
        for one in {top, folder, *folder.parents} - set(top.parents):
            with contextlib.suppress(OSError, ValueError):
                limits.append(int((one / name).read_text()))
    return min(limits)
