"""The daemon process: one per var folder, on loopback, until it is told to stop or has nothing to do."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from mosaic import __version__
from mosaic.contract.connection import CHANNEL_OPTIONS, DEFAULT_PORT, DaemonAddress
from mosaic.contract.errors import UserError
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.trainer import log
from mosaic.trainer.auth import TokenInterceptor
from mosaic.trainer.engine import Engine
from mosaic.trainer.log import Code
from mosaic.trainer.machine import Machine
from mosaic.trainer.registry import Registry
from mosaic.trainer.service import TrainerService

IDLE_SECONDS = 900.0
_TICK_SECONDS = 5.0
_PORT_KEY = "last_port"
# Without so_reuseport a second server on the port is refused instead of sharing its calls.
_SERVER_OPTIONS = (*CHANNEL_OPTIONS, ("grpc.so_reuseport", 0))


@contextmanager
def single_daemon(paths: VarPaths) -> Iterator[bool]:
    """Whether this process is the one daemon of the var folder; it stays so until the block ends."""
    with paths.daemon_lock.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


class Daemon:
    """Serves one var folder."""

    def __init__(self, paths: VarPaths, port: int | None, idle_seconds: float) -> None:
        self._paths = paths
        self._port = port
        self._idle_seconds = idle_seconds
        self._stop = asyncio.Event()

    async def serve(self) -> None:
        """Recover what an earlier daemon left, then serve until stopped or idle."""
        registry = Registry(self._paths.database)
        engine = Engine(self._paths, registry, Machine.detect())
        service = TrainerService(engine, self._stop)
        token = secrets.token_hex(32)
        server = grpc.aio.server(interceptors=[TokenInterceptor(token)], options=_SERVER_OPTIONS)
        pb_grpc.add_TrainerServiceServicer_to_server(service, server)
        health = health_aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        port = self._bind(server, registry)
        registry.set_meta(_PORT_KEY, str(port))
        address = DaemonAddress(f"127.0.0.1:{port}", os.getpid(), __version__, token)
        engine.lifecycle.target = address.address
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        # The address must be known before a recovered or started worker looks for it.
        address.write(self._paths.daemon_file)
        await server.start()
        engine.lifecycle.recover()
        await health.set("", health_pb2.HealthCheckResponse.SERVING)
        log.info(Code.DAEMON_SERVES, f"{address.address} pid {address.pid} version {__version__}")
        await self._run(engine, service)
        engine.lifecycle.detach_all()
        with contextlib.suppress(FileNotFoundError):
            self._paths.daemon_file.unlink()
        engine.broker.wake_all()
        engine.control.wake_all()
        await server.stop(grace=1.0)
        registry.close()
        log.info(Code.DAEMON_STOPS, "stopped; runs go on")

    def _bind(self, server: grpc.aio.Server, registry: Registry) -> int:
        """The port asked for; else the usual one, the last one, or any that is free."""
        if self._port is not None:
            if not _free(self._port):
                raise UserError(
                    f"Port {self._port} is in use: choose another, or leave --port out for a free one."
                )
            return int(server.add_insecure_port(f"127.0.0.1:{self._port}"))
        for port in (DEFAULT_PORT, int(registry.get_meta(_PORT_KEY) or 0), 0):
            if _free(port):
                with contextlib.suppress(RuntimeError):
                    return int(server.add_insecure_port(f"127.0.0.1:{port}"))
        raise UserError("No free port is left on 127.0.0.1 for the daemon.")

    async def _run(self, engine: Engine, service: TrainerService) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _TICK_SECONDS)
            engine.lifecycle.check_silence()
            busy = engine.lifecycle.busy or engine.broker.streams
            if busy:
                service.touched_at = time.monotonic()
            elif time.monotonic() - service.touched_at > self._idle_seconds:
                log.info(Code.DAEMON_STOPS, f"nothing to do for {self._idle_seconds:.0f} s")
                self._stop.set()


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
