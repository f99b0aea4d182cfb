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
    FOLDER_VARIABLE,
    LOCKED_EXIT_CODE,
    RUN_VARIABLE,
    SECRET_VARIABLE,
    START_ERROR_MARK,
    DaemonAddress,
    LockHolder,
    open_channel,
)
from mosaic.contract.errors import MosaicError, UnavailableError, UserError
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import ProcessIdentity, process_state
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.contract.secrets import HIDDEN_VARIABLE

START_SECONDS = 30.0
SILENT_SECONDS = 15.0
"""How long a daemon that has served and does not answer now is waited for."""
STOP_SECONDS = 15.0
_PAUSE_SECONDS = 0.02
_OF_RUNS = (RUN_VARIABLE, FOLDER_VARIABLE, SECRET_VARIABLE, HIDDEN_VARIABLE)

_started: list[subprocess.Popen[bytes]] = []
"""Daemons that this process started: kept so that an ended one is not left a zombie unseen."""


def living_pid(paths: VarPaths) -> int | None:
    """The process of a daemon of this var folder, answering or not; None when none lives."""
    holder, address = LockHolder.living(paths.daemon_lock), DaemonAddress.read(paths.daemon_file)
    if holder is not None:
        return holder.pid
    return address.pid if address is not None and ProcessIdentity.of(address.pid) is not None else None


def find_daemon(paths: VarPaths) -> DaemonAddress | None:
    """The daemon that serves this var folder now, or None; one that stands still is an UnavailableError."""
    pid, address = living_pid(paths), DaemonAddress.read(paths.daemon_file)
    if pid is not None and process_state(pid) == "T":
        raise UnavailableError(
            f"The daemon of {paths.root} (pid {pid}) was stopped by a signal: "
            f"`kill -CONT {pid}` continues it."
        )
    if pid is None or address is None:
        return None
    with open_channel(address.address) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        try:
            # With our credentials: another daemon may have got the port.
            answer = check(health_pb2.HealthCheckRequest(), timeout=5, metadata=address.metadata())
        except grpc.RpcError:
            return None
    return address if answer.status == health_pb2.HealthCheckResponse.SERVING else None


def await_daemon(paths: VarPaths) -> DaemonAddress | None:
    """The same, but one that has the folder and is just starting, or lost `daemon.json`, is waited for."""
    patience = _Patience()
    while True:
        address = find_daemon(paths)
        holder = LockHolder.living(paths.daemon_lock)
        if address is not None or holder is None:
            return address
        patience.spend(paths, holder)
        time.sleep(_PAUSE_SECONDS)


def ensure_daemon(paths: VarPaths) -> DaemonAddress:
    """A running daemon of this version; one of another version is replaced, its runs go on."""
    address = find_daemon(paths)
    if address is not None and (address.version != __version__ or not address.folder):
        stop_daemon(paths)
        address = None
    return address or start_daemon(paths)


def rejoin_daemon(paths: VarPaths) -> DaemonAddress:
    """The same for a process that is itself a run: any version, and a new daemon only where one was killed.

    One that ended by itself has taken its `daemon.json` with it: an UnavailableError.
    """
    address = await_daemon(paths)
    if address is None and DaemonAddress.read(paths.daemon_file) is None:
        raise UnavailableError(f"The daemon of {paths.root} was stopped: `mosaic daemon start` starts it.")
    return address or start_daemon(paths)


def start_daemon(paths: VarPaths, port: int | None = None) -> DaemonAddress:
    """Start a daemon that outlives this process, and wait until it answers.

    One that has the folder already, but cannot be found or does not answer, is waited for instead.
    """
    paths.make()
    log_start = paths.daemon_log.stat().st_size if paths.daemon_log.exists() else 0
    process: subprocess.Popen[bytes] | None = None
    may_repeat = True
    patience = _Patience()
    while True:
        address = find_daemon(paths)
        if address is not None:
            if process is not None and address.pid != process.pid:
                # Two clients have started one at once, and the other's was first.
                process.terminate()
                process.wait()
            return address
        holder = LockHolder.living(paths.daemon_lock)
        code = process.poll() if process is not None else None
        if code == LOCKED_EXIT_CODE and (holder is not None or may_repeat):
            # It was a moment late, or a moment early for one that was just ending.
            process, may_repeat = None, False
        elif code:
            raise _start_error(paths, code, log_start)
        elif process is None and holder is None:
            process = _spawn(paths, port)
        patience.spend(paths, holder)
        time.sleep(_PAUSE_SECONDS)


class _Patience:
    """How long we wait for a daemon: as long as it says that it is at work, and a while for its answer."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._holder: LockHolder | None = None

    def spend(self, paths: VarPaths, holder: LockHolder | None) -> None:
        """An UnavailableError when there is none left; `holder` is who has the folder now."""
        if holder != self._holder:
            self._began, self._holder = time.monotonic(), holder
        waited = time.monotonic() - self._began
        if holder is not None and holder.address and waited > SILENT_SECONDS:
            raise UnavailableError(
                f"The daemon of {paths.root} (pid {holder.pid}) does not answer at {holder.address}: `kill "
                f"{holder.pid}` ends it, runs continue, and the next command starts another."
            )
        if waited > START_SECONDS:
            doing = f" (pid {holder.pid}) {holder.doing or 'starts'}, but" if holder is not None else ""
            raise UnavailableError(
                f"The daemon{doing} did not answer within {START_SECONDS:.0f} s; "
                f"its log is {paths.daemon_log}."
            )


def _spawn(paths: VarPaths, port: int | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "mosaic.trainer", "--var", str(paths.root)]
    if port is not None:
        command += ["--port", str(port)]
    of_runs = (*_OF_RUNS, *os.environ.get(HIDDEN_VARIABLE, "").split(","))
    with paths.daemon_log.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=paths.root,
            # Started from within a run it is not a part of that run, and does not end with it.
            env={name: value for name, value in os.environ.items() if name not in of_runs},
        )
    _started.append(process)
    return process


def start_notice(paths: VarPaths) -> str:
    """What the daemon had to mend when this process started it, in words."""
    holder = LockHolder.living(paths.daemon_lock)
    ours = {process.pid for process in _started}
    return holder.notice if holder is not None and holder.pid in ours else ""


def _start_error(paths: VarPaths, code: int, log_start: int) -> MosaicError:
    with paths.daemon_log.open("rb") as log:
        log.seek(log_start)
        lines = log.read().decode(errors="replace").splitlines()
    said = [line.removeprefix(START_ERROR_MARK) for line in lines if line.startswith(START_ERROR_MARK)]
    kind = UserError if code == UserError.exit_code else UnavailableError
    return kind(said[-1] if said else f"The daemon ended with code {code}; its log is {paths.daemon_log}.")


def stop_daemon(paths: VarPaths) -> bool:
    """End the daemon and wait until it is gone; runs go on. False when none was running."""
    address = await_daemon(paths)
    if address is None:
        return False
    identity = ProcessIdentity.of(address.pid)
    with open_channel(address.address) as channel:
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
