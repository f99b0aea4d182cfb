"""How the daemon is found: `daemon.json`, the channel options and the call credentials."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mosaic.contract.atomic import write_json

PROTO_VERSION = "MOSAIC/1.0"
DEFAULT_PORT = 50055
MESSAGE_LIMIT = 64 * 1024 * 1024

TOKEN_KEY = "authorization"
WORKER_KEY = "x-mosaic-worker"
"""Carries the run's secret at the handshake, the session token afterwards."""

SECRET_VARIABLE = "MOSAIC_RUN_SECRET"
"""Handed to the supervisor only; the training process never sees it."""

RUN_VARIABLE = "MOSAIC_RUN_ID"
"""Marks every process of a run, so that what a killed supervisor left can be told from strangers."""

START_ERROR_MARK = "mosaic.trainer: "
"""Begins the line in which a daemon that cannot start says why."""

CHANNEL_OPTIONS = (
    # The daemon is on this machine, where no proxy leads.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    # Pings that measure the bandwidth: on loopback they cost as much as the small calls themselves.
    ("grpc.http2.bdp_probe", 0),
)


@dataclass(frozen=True)
class DaemonAddress:
    """What a running daemon says of itself in `daemon.json`."""

    address: str
    pid: int
    version: str
    token: str

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The credentials of a call."""
        return ((TOKEN_KEY, f"Bearer {self.token}"),)

    def write(self, path: Path) -> None:
        write_json(path, asdict(self), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> DaemonAddress | None:
        """The daemon that was last here, or None; whether it lives is another question."""
        try:
            fields = json.loads(path.read_bytes())
            return cls(**{name: fields[name] for name in ("address", "pid", "version", "token")})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
