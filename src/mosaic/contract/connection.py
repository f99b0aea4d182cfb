"""How the daemon is found: `daemon.json`, `daemon.lock`, the channel options and the call credentials."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar

from mosaic.contract.atomic import write_json
from mosaic.contract.outside import parse_json
from mosaic.contract.process import ProcessIdentity, boot_id

PROTO_VERSION = "MOSAIC/1.0"
DEFAULT_PORT = 50055
LAST_PORT = 65_535
MESSAGE_LIMIT = 64 * 1024 * 1024

TOKEN_KEY = "authorization"
WORKER_KEY = "x-mosaic-worker"
"""Carries the run's secret at the handshake, the session token afterwards."""

SECRET_VARIABLE = "MOSAIC_RUN_SECRET"
"""Handed to the supervisor only; the training process never sees it."""

RUN_VARIABLE = "MOSAIC_RUN_ID"
"""Marks every process of a run, so that what a killed supervisor left can be told from strangers."""

FOLDER_VARIABLE = "MOSAIC_VAR_ID"
"""Says to each process of a run whose it is: a copied var folder has the same runs, and ends none."""

START_ERROR_MARK = "mosaic.trainer: "
"""Begins the line in which a daemon that cannot start says why."""

LOCKED_EXIT_CODE = 3
"""Of a daemon that found another one in its var folder."""

CHANNEL_OPTIONS = (
    # The daemon is on this machine, where no proxy leads.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    # Pings that measure the bandwidth: on loopback they cost as much as the small calls themselves.
    ("grpc.http2.bdp_probe", 0),
)


def identity_of(path: Path) -> str:
    """What tells a folder or a file from its copies: device and inode. Empty when there is none."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_dev:x}-{found.st_ino:x}"


@dataclass(frozen=True)
class DaemonAddress:
    """What a running daemon says of itself in `daemon.json`."""

    address: str
    pid: int
    version: str
    token: str
    folder: str = ""
    """The identity of the folder that the file lies in; empty in a file of an earlier release."""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The credentials of a call: who has the token, and whose folder it was read in."""
        return ((TOKEN_KEY, f"Bearer {self.token} {self.folder}".rstrip()),)

    def write(self, path: Path) -> None:
        write_json(path, asdict(self), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> DaemonAddress | None:
        """The daemon that was last here; None also in a copied file. Whether it lives is another question."""
        with contextlib.suppress(OSError):
            found = _said(cls, path.read_bytes())
            if found is not None and found.folder in ("", identity_of(path.parent)):
                return found
        return None


@dataclass(frozen=True)
class LockHolder:
    """What the daemon that holds `daemon.lock` says of itself in it; stays there when it has ended.

    It is there before `daemon.json` and cannot be lost with it.
    """

    pid: int
    start: int
    boot: str
    folder: str
    root: str
    """The var folder by its name."""
    address: str = ""
    """Empty until it listens."""
    doing: str = ""
    """What it does that takes its time before it listens."""
    notice: str = ""
    """What it had to mend when it started."""
    copied_from: str = ""
    """The var folder of which this one is a copy, as long as its runs are not told apart."""

    def write(self, descriptor: int) -> None:
        """Put it into the lock that is held, in place of what an earlier daemon said.

        A reader takes the first line: what is left of a longer one behind it does not matter.
        """
        os.pwrite(descriptor, json.dumps(asdict(self)).encode() + b"\n", 0)

    @classmethod
    def read(cls, path: Path) -> LockHolder | None:
        """Who held the lock last, whether it lives or not; None when nobody has said so."""
        with contextlib.suppress(OSError), path.open("rb") as file:
            found = _said(cls, file.readline())
            return found if found is not None and isinstance(found.start, int) else None
        return None

    @classmethod
    def living(cls, path: Path) -> LockHolder | None:
        """The daemon that holds this very lock now. A copy of the file names the daemon of the original."""
        found = cls.read(path)
        if found is None or found.boot != boot_id() or found.folder != identity_of(path.parent):
            return None
        return found if ProcessIdentity(found.pid, found.start).alive() else None


Daemon = TypeVar("Daemon", DaemonAddress, LockHolder)


def _said(kind: type[Daemon], text: bytes) -> Daemon | None:
    """What a daemon says of itself; None for anything else. Keys of other releases are passed over."""
    try:
        given = parse_json(text)
        found = kind(**{one.name: given[one.name] for one in fields(kind) if one.name in given})
    except (ValueError, TypeError):
        return None
    return found if isinstance(found.pid, int) else None
