"""The daemon process: one per var folder by its lock, until it is told to stop or has nothing to do."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from mosaic import __version__
from mosaic.contract.atomic import part, remove_to_spare
from mosaic.contract.connection import (
    CHANNEL_OPTIONS,
    DEFAULT_PORT,
    DaemonAddress,
    LockHolder,
    identity_of,
)
from mosaic.contract.errors import StorageError, UserError
from mosaic.contract.machine import Machine
from mosaic.contract.paths import VarPaths
from mosaic.contract.process import ProcessIdentity, boot_id, grace_seconds
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.trainer import log
from mosaic.trainer.doors import Door
from mosaic.trainer.engine import Engine
from mosaic.trainer.log import Code
from mosaic.trainer.rebuild import settle_imports
from mosaic.trainer.registry import Registry
from mosaic.trainer.service import TrainerService
from mosaic.trainer.storage import DamagedError

_PATIENCE_SECONDS = 2.0


class DaemonLock:
    """Held for life, with what we say of ourselves in it.

    Locked are the file, which has the words and which earlier releases know, and its folder, which nobody
    can remove without removing the runs.
    """

    def __init__(self, paths: VarPaths, folder: int, file: int) -> None:
        self._paths = paths
        self._folder = folder
        self._file = file
        identity, own = identity_of(paths.trainer), ProcessIdentity.of(os.getpid())
        origin = _origin(LockHolder.read(paths.daemon_lock), identity)
        start = own.start if own is not None else 0
        self.holder = LockHolder(os.getpid(), start, boot_id(), identity, str(paths.root), copied_from=origin)
        self.tell()

    def tell(self, **changes: Any) -> None:
        """Say something else of ourselves. A full disk is not a reason to end."""
        self.holder = replace(self.holder, **changes)
        with contextlib.suppress(OSError):
            self.holder.write(self._file)

    def keep(self) -> None:
        """Make the file again when somebody has removed it."""
        with contextlib.suppress(OSError):
            if os.fstat(self._file).st_nlink:
                return
            made = _locked(self._paths.daemon_lock, os.O_RDWR | os.O_CREAT)
            if made is not None:
                os.close(self._file)
                self._file = made
                self.tell()

    @property
    def at_home(self) -> bool:
        """Whether the path still leads to the folder that we serve."""
        return identity_of(self._paths.trainer) == self.holder.folder

    def close(self) -> None:
        os.close(self._file)
        os.close(self._folder)


@contextmanager
def single_daemon(paths: VarPaths) -> Iterator[DaemonLock | None]:
    """The lock of the var folder, held until the block ends; None when another daemon has it."""
    # Open for as long as we live, so that no other folder gets its inode meanwhile.
    folder = _locked(paths.trainer, os.O_RDONLY | os.O_DIRECTORY)
    if folder is None:
        yield None
        return
    # Shared with a copy by hard links it would be the other's lock too.
    part(paths.daemon_lock)
    file = _locked(paths.daemon_lock, os.O_RDWR | os.O_CREAT)
    if file is None:
        os.close(folder)
        yield None
        return
    lock = DaemonLock(paths, folder, file)
    try:
        yield lock
    finally:
        lock.close()


def _locked(path: Path, flags: int) -> int | None:
    """A descriptor with the lock of a file or folder; None when somebody else has it."""
    descriptor = os.open(path, flags, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        # Some network file systems lock no folders.
        if not flags & os.O_DIRECTORY:
            os.close(descriptor)
            raise
    return descriptor


def _origin(earlier: LockHolder | None, identity: str) -> str:
    """The var folder of which ours is a copy. Where that is gone, ours was moved or restored."""
    if earlier is None:
        return ""
    if earlier.folder == identity:
        return earlier.copied_from
    original = VarPaths(Path(earlier.root)).trainer
    return earlier.root if identity_of(original) == earlier.folder else ""


def who_holds(paths: VarPaths) -> str:
    """The other daemon of the var folder, in a sentence."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    # One that has just got the lock has not said yet who it is and where it listens.
    while True:
        holder = LockHolder.living(paths.daemon_lock)
        if (holder is not None and holder.address) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if holder is None:
        return f"Another process holds {paths.daemon_lock}: a daemon of this folder is already running."
    place = f" at {holder.address}" if holder.address else ""
    return f"The daemon of {paths.root} is already running: pid {holder.pid}{place}."


IDLE_SECONDS = 900.0
_TICK_SECONDS = 5.0
_GUARD_SECONDS = 1.0
"""How soon the daemon sees that its folder or one of its files is gone."""
_PORT_KEY = "last_port"
# Without so_reuseport a second server on the port is refused instead of sharing its calls.
_SERVER_OPTIONS = (*CHANNEL_OPTIONS, ("grpc.so_reuseport", 0))


class Daemon:
    """Serves one var folder."""

    def __init__(self, paths: VarPaths, lock: DaemonLock, port: int | None, idle_seconds: float) -> None:
        self._paths = paths
        self._lock = lock
        self._port = port
        self._idle_seconds = idle_seconds
        self._stop = asyncio.Event()

    async def serve(self) -> None:
        """Recover what an earlier daemon left, then serve until stopped or idle."""
        # A wrong number in a variable is told now, and not when the first run is cancelled.
        grace_seconds()
        machine = Machine.detect()
        settle_imports(self._paths)
        registry = Registry(self._paths, lambda doing: self._lock.tell(doing=doing))
        engine = Engine(self._paths, registry, machine)
        unbound = DaemonAddress("", os.getpid(), __version__, secrets.token_hex(32), self._lock.holder.folder)
        door = Door(unbound, self._lock)
        server = grpc.aio.server(interceptors=[door], options=_SERVER_OPTIONS)
        pb_grpc.add_TrainerServiceServicer_to_server(TrainerService(engine, self._stop), server)
        health = health_aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        port = self._bind(server, registry)
        with contextlib.suppress(StorageError):
            registry.set_meta(_PORT_KEY, str(port))
        address = replace(unbound, address=f"127.0.0.1:{port}")
        engine.lifecycle.target = address.address
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        # What a killed daemon has left; on a full disk there may be no other room.
        with contextlib.suppress(FileNotFoundError):
            remove_to_spare(self._paths.daemon_file)
        # The address must be known before a recovered or started worker looks for it.
        address.write(self._paths.daemon_file)
        engine.lifecycle.keep_room()
        await server.start()
        try:
            engine.lifecycle.recover(self._lock.holder.copied_from)
        except DamagedError:
            registry.mend()
            engine.lifecycle.recover(self._lock.holder.copied_from)
        self._lock.tell(address=address.address, copied_from="", notice=registry.mended)
        await health.set("", health_pb2.HealthCheckResponse.SERVING)
        log.info(Code.DAEMON_SERVES, f"{address.address} pid {address.pid} version {__version__}")
        registry.on_damage = partial(loop.call_soon, self._mend, engine)
        await self._run(engine, door, address)
        engine.lifecycle.detach_all()
        # Unless it is that of another daemon, in a folder that replaced ours.
        told = DaemonAddress.read(self._paths.daemon_file)
        if told is not None and told.pid == os.getpid():
            with contextlib.suppress(FileNotFoundError):
                remove_to_spare(self._paths.daemon_file)
        engine.broker.wake_all()
        engine.control.wake_all()
        await server.stop(grace=1.0)
        registry.close()
        log.info(Code.DAEMON_STOPS, "stopped; runs go on")

    def _bind(self, server: grpc.aio.Server, registry: Registry) -> int:
        """The port asked for; else the usual one, the last one, or any that is free."""
        if self._port is not None:
            why = _taken(self._port)
            if why:
                raise UserError(
                    f"Port {self._port} {why}: choose another, or leave --port out for a free one."
                )
            return int(server.add_insecure_port(f"127.0.0.1:{self._port}"))
        for port in (DEFAULT_PORT, int(registry.get_meta(_PORT_KEY) or 0), 0):
            if not _taken(port):
                with contextlib.suppress(RuntimeError):
                    return int(server.add_insecure_port(f"127.0.0.1:{port}"))
        raise UserError("No free port is left on 127.0.0.1 for the daemon.")

    async def _run(self, engine: Engine, door: Door, address: DaemonAddress) -> None:
        looked_at = time.monotonic()
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _GUARD_SECONDS)
            self._guard(address)
            self._mend(engine)
            if time.monotonic() - looked_at < _TICK_SECONDS:
                continue
            looked_at = time.monotonic()
            engine.lifecycle.check_silence()
            engine.lifecycle.keep_room()
            # A run that lives or waits, or somebody who looks.
            busy = engine.lifecycle.attached or engine.lifecycle.waits or engine.broker.subscribers
            if busy:
                door.touched_at = time.monotonic()
            elif time.monotonic() - door.touched_at > self._idle_seconds:
                log.info(Code.DAEMON_STOPS, f"nothing to do for {self._idle_seconds:.0f} s")
                self._stop.set()

    def _guard(self, address: DaemonAddress) -> None:
        """See that the folder is still ours, and that we can be found in it."""
        if not self._lock.at_home:
            log.warning(Code.DAEMON_STOPS, f"{self._paths.trainer} was moved, removed or replaced")
            self._stop.set()
            return
        self._lock.keep()
        if DaemonAddress.read(self._paths.daemon_file) is None:
            log.warning(Code.DAEMON_SERVES, f"{self._paths.daemon_file} was lost, and is written again")
            with contextlib.suppress(OSError):
                address.write(self._paths.daemon_file)

    def _mend(self, engine: Engine) -> None:
        """Go on with the database that is there now, when it is not the one that we had."""
        try:
            if self._lock.at_home and engine.registry.mend():
                engine.lifecycle.schedule()
        except (OSError, StorageError) as error:
            log.warning(Code.STORAGE_FAILED, str(error))
            engine.lifecycle.storage.failed(error)


def _taken(port: int) -> str:
    """Why we cannot listen at this port; empty when we can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
    return ""
