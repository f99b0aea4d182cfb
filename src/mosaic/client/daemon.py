"""Finding, starting, replacing and stopping the daemon of a var folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mosaic import __version__
from mosaic.contract.connection import (
    CHANNEL_OPTIONS,
    RUN_VARIABLE,
    SECRET_VARIABLE,
    START_ERROR_MARK,
    DaemonAddress,
)
from mosaic.contract.errors import MosaicError, UnavailableError, UserError
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import ProcessIdentity
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc

START_SECONDS = 30.0
STOP_SECONDS = 15.0
_PAUSE_SECONDS = 0.02

_started: list[subprocess.Popen[bytes]] = []
"""Daemons that this process started: kept so that an ended one is not left a zombie unseen."""


# A daemon that was away for long is found again as soon as it is back.
_OPTIONS = (*CHANNEL_OPTIONS, ("grpc.max_reconnect_backoff_ms", 1000))


def open_channel(address: DaemonAddress) -> grpc.Channel:
    return grpc.insecure_channel(address.address, options=_OPTIONS)


def is_alive(paths: VarPaths) -> bool:
    """Whether the process of the daemon that was last here lives, answering or not."""
    address = DaemonAddress.read(paths.daemon_file)
    return address is not None and ProcessIdentity.of(address.pid) is not None


def find_daemon(paths: VarPaths) -> DaemonAddress | None:
    """The daemon that serves this var folder now, or None."""
    address = DaemonAddress.read(paths.daemon_file)
    if address is None or not is_alive(paths):
        return None
    with open_channel(address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
        except grpc.RpcError:
            return None
    return address if answer.status == health_pb2.HealthCheckResponse.SERVING else None


def ensure_daemon(paths: VarPaths) -> DaemonAddress:
    """A running daemon of this version; one of another version is replaced, its runs go on."""
    address = find_daemon(paths)
    if address is not None and address.version != __version__:
        stop_daemon(paths)
        address = None
    return address or start_daemon(paths)


def start_daemon(paths: VarPaths, port: int | None = None) -> DaemonAddress:
    """Start a daemon that outlives this process, and wait until it answers."""
    paths.make()
    command = [sys.executable, "-m", "mosaic.trainer", "--var", str(paths.root)]
    if port is not None:
        command += ["--port", str(port)]
    log_start = paths.daemon_log.stat().st_size if paths.daemon_log.exists() else 0
    with paths.daemon_log.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=paths.root,
            env=_outside_of_runs(),
        )
    _started.append(process)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        address = find_daemon(paths)
        if address is not None:
            if address.pid != process.pid:
                # Two clients have started one at once, and the other's was first.
                process.terminate()
                process.wait()
            return address
        if process.poll():
            raise _start_error(paths, process.returncode, log_start)
        time.sleep(_PAUSE_SECONDS)
    raise UnavailableError(
        f"The daemon did not answer within {START_SECONDS:.0f} s; its log is {paths.daemon_log}."
    )


def _outside_of_runs() -> dict[str, str]:
    """A daemon started from within a run is not a part of that run, and does not end with it."""
    ours = (RUN_VARIABLE, SECRET_VARIABLE)
    return {name: value for name, value in os.environ.items() if name not in ours}


def _start_error(paths: VarPaths, code: int, log_start: int) -> MosaicError:
    with paths.daemon_log.open("rb") as log:
        log.seek(log_start)
        lines = log.read().decode(errors="replace").splitlines()
    said = [line.removeprefix(START_ERROR_MARK) for line in lines if line.startswith(START_ERROR_MARK)]
    kind = UserError if code == UserError.exit_code else UnavailableError
    return kind(said[-1] if said else f"The daemon ended with code {code}; its log is {paths.daemon_log}.")


def stop_daemon(paths: VarPaths) -> bool:
    """End the daemon and wait until it is gone; runs go on. False when none was running."""
    address = find_daemon(paths)
    if address is None:
        return False
    identity = ProcessIdentity.of(address.pid)
    with open_channel(address) as channel:
        stub = pb_grpc.TrainerServiceStub(channel)
        try:
            stub.Shutdown(pb.ShutdownRequest(), timeout=10, metadata=address.metadata())
        except grpc.RpcError as error:
            raise UnavailableError(
                f"The daemon at {address.address} refuses to stop: {error.details()}"
            ) from error
    deadline = time.monotonic() + STOP_SECONDS
    while identity is not None and identity.alive():
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"The daemon (pid {address.pid}) did not stop within {STOP_SECONDS:.0f} s."
            )
        time.sleep(_PAUSE_SECONDS)
    return True
