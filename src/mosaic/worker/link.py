"""A worker's line to the daemon: handshake, heartbeats, control, publishing, over the daemon's restarts."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import grpc

from mosaic.contract.channel import open_channel
from mosaic.contract.connection import (
    FOLDER_VARIABLE,
    PROTO_VERSION,
    SECRET_VARIABLE,
    WORKER_KEY,
    DaemonAddress,
)
from mosaic.contract.errors import MosaicError, UnavailableError
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc
from mosaic.worker.telemetry import Introduction


class Allowance:
    """Credits, which all publishers of a worker share, and a rate that holds for each of them.

    The first grant of a connection is the whole window: more than that is never held, so that credits given
    back twice (by us for a call that failed, and by the daemon that took it in after all) do no harm.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Held to look and to take; told of every change."""
        self._credits = 0
        self._window = 0
        self.rate_hz = 0.0
        """At most so many items a second; 0 for no limit."""

    def grant(self, credits: int) -> None:
        with self.changed:
            self._window = self._window or credits
            self._credits = min(self._credits + credits, self._window)
            self.changed.notify_all()

    def limit_rate(self, hertz: float) -> None:
        with self.changed:
            self.rate_hz = hertz
            self.changed.notify_all()

    def take(self, wanted: int) -> int:
        """As many credits as there are, but not more than `wanted`."""
        with self.changed:
            taken = min(wanted, self._credits)
            self._credits -= taken
            return taken

    def forget(self) -> None:
        """The connection is lost: the next one grants anew."""
        with self.changed:
            self._credits = self._window = 0


_CALL_SECONDS = 10.0
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


class Connection:
    """A channel to one daemon process; `daemon` tells it from its predecessor on the same port."""

    def __init__(self, daemon: DaemonAddress | None, target: str) -> None:
        self.daemon = daemon
        self.target = target
        self.channel = open_channel(target)
        self.stub = pb_grpc.TrainerServiceStub(self.channel)


class TrainerLink:
    """Talks to the daemon of one var folder; `target` is where it was when this run was started."""

    def __init__(self, introduction: Introduction, paths: VarPaths, target: str) -> None:
        self._introduction = introduction
        self._run_id = introduction.run_id
        self._paths = paths
        self._credential = os.environ.get(SECRET_VARIABLE, "")
        self._sent: Any = None
        self._listener: threading.Thread | None = None
        self._closed = threading.Event()
        self._changing = threading.Lock()
        self.allowance = Allowance()
        self.connection = Connection(self._daemon(), target)

    def close(self) -> None:
        with self._changing:
            self._closed.set()
            self.connection.channel.close()
        if self._listener is not None:
            self._listener.join()

    def register(self) -> None:
        """Shake hands. A daemon that is just restarting is waited for."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                answer = self.connection.stub.RegisterWorker(
                    self._request(), timeout=_CALL_SECONDS, metadata=self._metadata(self.connection)
                )
            except grpc.RpcError as error:
                refused = error.code() in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND)
                if refused:
                    raise MosaicError(f"The daemon refuses the handshake: {error.details()}") from None
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        f"The daemon at {self.connection.target} did not take the handshake: "
                        f"{error.details()}"
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
        connection = self.connection
        # A channel that another thread has just replaced refuses with a ValueError.
        with contextlib.suppress(ValueError):
            self._sent = connection.stub.Heartbeat.future(
                pb.HeartbeatRequest(run_id=self._run_id, seq=seq),
                timeout=_CALL_SECONDS,
                metadata=self._metadata(connection),
            )

    def listen(self, on_pause: Callable[[bool], None]) -> None:
        """Follow the daemon's wishes in a thread of its own.

        `on_pause` is called there whenever the run is to be paused or resumed; credits and rate go to
        `allowance`, from which publishers take them.
        """
        self._listener = threading.Thread(target=self._follow, args=[on_pause], name="control", daemon=True)
        self._listener.start()

    def publish(self, connection: Connection, stream: str, items: Sequence[pb.Published]) -> bool:
        """Send items and wait until the daemon has them; False when that is not to be had now."""
        request = pb.PublishRequest(run_id=self._run_id, items=items)
        call = connection.stub.PublishRunSteps if stream == "steps" else connection.stub.PublishRunEpisodes
        try:
            call(iter([request]), timeout=_CALL_SECONDS, metadata=self._metadata(connection))
        except (grpc.RpcError, ValueError):
            self._reopen()
            return False
        return True

    def _follow(self, on_pause: Callable[[bool], None]) -> None:
        request = pb.ControlStreamRequest(run_id=self._run_id)
        while not self._closed.is_set():
            connection = self.connection
            with contextlib.suppress(grpc.RpcError, ValueError):
                # A wish that is not met is repeated when the stream opens: none is lost with a connection.
                for message in connection.stub.ControlStream(request, metadata=self._metadata(connection)):
                    self._obey(message, on_pause)
            self.allowance.forget()
            if not self._closed.wait(_PAUSE_SECONDS):
                self._reopen()

    def _obey(self, message: pb.ControlMessage, on_pause: Callable[[bool], None]) -> None:
        match message.WhichOneof("command"):
            case "pause" | "resume" as wish:
                on_pause(wish == "pause")
            case "grant_steps":
                self.allowance.grant(message.grant_steps)
            case "max_rate_hz":
                self.allowance.limit_rate(message.max_rate_hz)

    def _request(self) -> pb.RegisterWorkerRequest:
        told = {name: value for name, value in vars(self._introduction).items() if name != "details"}
        details = json.dumps(dict(self._introduction.details))
        return pb.RegisterWorkerRequest(
            **told, proto_version=PROTO_VERSION, pid=os.getpid(), details_json=details
        )

    def _metadata(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        daemon = connection.daemon.metadata() if connection.daemon else ()
        return (*daemon, (WORKER_KEY, self._credential))

    def _daemon(self) -> DaemonAddress | None:
        """The daemon of the folder that this run was started in, not of one that has taken its place."""
        daemon = DaemonAddress.read(self._paths.daemon_file)
        home = os.environ.get(FOLDER_VARIABLE)
        return None if daemon is None or home not in (None, daemon.folder) else daemon

    def _reopen(self) -> None:
        """Find the daemon again: after a restart it may have another port and another token."""
        with self._changing:
            daemon, old = self._daemon(), self.connection
            if daemon is None or self._closed.is_set():
                return
            if (daemon, daemon.address) != (old.daemon, old.target):
                self.connection = Connection(daemon, daemon.address)
                old.channel.close()
