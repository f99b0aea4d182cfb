"""What a daemon did to its database files and said in its log, in order: read from strace's output."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fault_cases.site import wait_until
from mosaic.client.daemon import find_daemon
from mosaic.contract.paths import VarPaths

_CALLS = "openat,pwrite64,write,ftruncate,fsync,fdatasync,unlink,unlinkat"
_LINE = re.compile(r"^(\w+)\((.*)\)\s+= (\d+)(?:<.*>)?$")
_FILE = re.compile(r"^\d+<([^>]*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True)
class Step:
    """One thing that the daemon did; `path` is the name of a database file, or empty for the folder."""

    kind: Literal["create", "write", "truncate", "sync", "unlink", "log"]
    path: str
    offset: int = 0
    data: bytes = b""


def start_traced(paths: VarPaths, trace: Path) -> subprocess.Popen[bytes]:
    """A daemon whose main thread, the only one that uses the database, is recorded."""
    command = ["strace", "-qq", "-y", "-xx", "-s", "100000", "-e", f"trace={_CALLS}", "-e", "signal=none"]
    command += ["-o", str(trace), sys.executable, "-m", "mosaic.trainer", "--var", str(paths.root)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: find_daemon(paths) is not None, "the traced daemon answers")
    return process


def read_trace(trace: Path, paths: VarPaths) -> list[Step]:
    """The steps on the database and the log; calls that failed have done nothing."""
    steps = []
    for line in trace.read_text().splitlines():
        match = _LINE.match(line)
        if match is not None:
            step = _step(match.group(1), match.group(2), int(match.group(3)), paths)
            if step is not None:
                steps.append(step)
    return steps


def _step(call: str, arguments: str, result: int, paths: VarPaths) -> Step | None:
    texts = [_bytes(text) for text in _TEXT.findall(arguments)]
    if call in ("openat", "unlink", "unlinkat"):
        name = _database_name(texts[0].decode(), paths)
        if not name or (call == "openat" and "O_CREAT" not in arguments):
            return None
        return Step("create" if call == "openat" else "unlink", name)
    found = _FILE.match(arguments)
    path = _bytes(found.group(1)).decode() if found else ""
    if call == "write" and path == str(paths.daemon_log):
        return Step("log", path, data=texts[0][:result])
    if call in ("fsync", "fdatasync") and path == str(paths.trainer):
        return Step("sync", "")
    name = _database_name(path, paths)
    if not name:
        return None
    if call in ("fsync", "fdatasync"):
        return Step("sync", name)
    if call == "ftruncate":
        return Step("truncate", name, offset=int(arguments.rpartition(", ")[2]))
    assert call == "pwrite64", f"the database was written by {call}"
    return Step("write", name, int(arguments.rpartition(", ")[2]), texts[0][:result])


def _database_name(path: str, paths: VarPaths) -> str:
    """The file's name when it is the database or its log; the shared memory index is rebuilt by readers."""
    file = Path(path)
    kept = (paths.database.name, f"{paths.database.name}-wal", f"{paths.database.name}-journal")
    return file.name if file.parent == paths.trainer and file.name in kept else ""


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", "")) if text.startswith("\\x") else text.encode()
