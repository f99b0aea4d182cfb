"""The supervisor's line to the daemon: handshake and heartbeats, over restarts of the daemon."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from cleanrl_worker.config import CleanRLWorkerConfig
from mosaic.contract.connection import CHANNEL_OPTIONS, SECRET_VARIABLE, WORKER_KEY, DaemonAddress
from mosaic.contract.errors import MosaicError, UnavailableError
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.contract.workers import PROTO_VERSION

_CALL_SECONDS = 10.0
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


class TrainerLink:
    """Talks to the daemon of one var folder; `target` is where it was when this run was started."""

    def __init__(self, config: CleanRLWorkerConfig, paths: VarPaths, target: str) -> None:
        self._config = config
        self._paths = paths
        self._target = target
        self._credential = os.environ.get(SECRET_VARIABLE, "")
        self._sent: Any = None
        self._listener: threading.Thread | None = None
        self._closed = False
        self._changing = threading.Lock()
        self._open()

    def close(self) -> None:
        self._closed = True
        self._channel.close()
        if self._listener is not None:
            self._listener.join()

    def register(self) -> None:
        """Shake hands. A daemon that is just restarting is waited for."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                answer = self._stub.RegisterWorker(
                    self._introduction(), timeout=_CALL_SECONDS, metadata=self._metadata()
                )
            except grpc.RpcError as error:
                refused = error.code() in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND)
                if refused:
                    raise MosaicError(f"The daemon refuses the handshake: {error.details()}") from None
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        f"The daemon at {self._target} did not take the handshake: {error.details()}"
                    ) from None
                time.sleep(_PAUSE_SECONDS)
                self._reopen()
            else:
                self._credential = answer.session_token
                return

    def heartbeat(self, seq: int) -> None:
        """Tell the daemon to look at the event file. Never waits: the file is the truth, this is a nudge."""
        if self._sent is not None:
            if not self._sent.done():
                return
            if self._sent.code() != grpc.StatusCode.OK:
                self._reopen()
        request = pb.HeartbeatRequest(run_id=self._config.run_id, seq=seq)
        self._sent = self._stub.Heartbeat.future(request, timeout=_CALL_SECONDS, metadata=self._metadata())

    def listen(self, on_pause: Callable[[bool], None]) -> None:
        """Call `on_pause` from a thread of its own whenever the daemon wants the run paused or resumed."""
        self._listener = threading.Thread(target=self._follow, args=[on_pause], name="control", daemon=True)
        self._listener.start()

    def _follow(self, on_pause: Callable[[bool], None]) -> None:
        request = pb.ControlStreamRequest(run_id=self._config.run_id)
        while not self._closed:
            with contextlib.suppress(grpc.RpcError, ValueError):
                # The daemon repeats its wish when the stream opens, so none is lost with a connection.
                for message in self._stub.ControlStream(request, metadata=self._metadata()):
                    command = message.WhichOneof("command")
                    if command in ("pause", "resume"):
                        on_pause(command == "pause")
            if not self._closed:
                time.sleep(_PAUSE_SECONDS)
                self._reopen()

    def _introduction(self) -> pb.RegisterWorkerRequest:
        config, extras = self._config, self._config.extras
        details = {"algo": config.algo, "env_id": config.env_id, "seed": config.seed, "mode": config.mode}
        return pb.RegisterWorkerRequest(
            run_id=config.run_id,
            worker_id=config.worker_id or f"cleanrl-worker-{config.run_id[:8]}",
            worker_kind="cleanrl",
            proto_version=PROTO_VERSION,
            schema_id=str(extras.get("schema_id") or f"cleanrl.{config.algo}"),
            schema_version=int(extras.get("schema_version") or 1),
            supports_pause=bool(extras.get("supports_pause")),
            supports_checkpoint=bool(extras.get("supports_checkpoint")),
            pid=os.getpid(),
            details_json=json.dumps(details),
        )

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        daemon = self._daemon.metadata() if self._daemon else ()
        return (*daemon, (WORKER_KEY, self._credential))

    def _open(self) -> None:
        self._daemon = DaemonAddress.read(self._paths.daemon_file)
        self._channel = grpc.insecure_channel(self._target, options=CHANNEL_OPTIONS)
        self._stub = pb_grpc.TrainerServiceStub(self._channel)

    def _reopen(self) -> None:
        """Find the daemon again: after a restart it may have another port and another token."""
        with self._changing:
            daemon = DaemonAddress.read(self._paths.daemon_file)
            if daemon is not None and daemon != self._daemon and not self._closed:
                self._channel.close()
                self._target = daemon.address
                self._open()
