"""Calls to the daemon that survive its restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from mosaic.client.daemon import ensure_daemon, living_pid, rejoin_daemon
from mosaic.contract.connection import DaemonAddress, open_channel
from mosaic.contract.errors import (
    ConflictError,
    MosaicError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UserError,
)
from mosaic.contract.paths import VarPaths
from mosaic.contract.proto import trainer_pb2_grpc as pb_grpc

_KINDS = {
    grpc.StatusCode[kind.status]: kind for kind in (UserError, NotFoundError, ConflictError, StorageError)
}

# The daemon went away in the middle of the call or before it, or came back with another token: the same call
# may succeed with a daemon found anew.
_LOST = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAUTHENTICATED})


def _translate(error: grpc.RpcError) -> MosaicError:
    """Our exception for a failed call."""
    code, details = error.code(), error.details() or "no details"
    if code in _KINDS:
        return _KINDS[code](details)
    if code in _LOST:
        return UnavailableError(f"The daemon cannot be reached: {details}")
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return UnavailableError("The daemon did not answer in time; `mosaic daemon status` shows its state.")
    return MosaicError(f"The daemon failed on this call ({code.name}): {details}")


CALL_SECONDS = 30.0
STREAM_SECONDS = 3600.0
"""A stream is opened anew after this long, from where it was."""

PATIENCE_SECONDS = 300.0
"""How long a stream waits for a daemon that lives but cannot be reached."""

_ATTEMPTS = 5
_RETRY_SECONDS = 0.1


class ChannelClosed(Exception):
    """The channel that a call was to go through is closed."""


Listener = Callable[[bool], None]
"""Told False when the daemon was lost and is looked for, True when found; in the thread that noticed."""


class Connection:
    """A channel to the daemon of one var folder. A daemon that restarts is found again, or started.

    Several threads may use one connection; `close` ends the streams of all of them.
    """

    def __init__(self, paths: VarPaths, listener: Listener | None = None, guest: bool = False) -> None:
        self.paths = paths
        self._find = rejoin_daemon if guest else ensure_daemon
        self._listener = listener
        self._finding = threading.Lock()
        self._closed = False
        self.address: DaemonAddress = self._find(paths)
        self._channel = open_channel(self.address.address)
        self._stub = pb_grpc.TrainerServiceStub(self._channel)

    def close(self) -> None:
        self._closed = True
        self._channel.close()

    def call(self, method: str, request: Any) -> Any:
        """One answer. Every call may be sent twice: the daemon takes a repeated submit as one."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._invoke(method, request, CALL_SECONDS)
            except ChannelClosed:
                pass
            except grpc.RpcError as error:
                if error.code() not in _LOST or attempt == _ATTEMPTS - 1:
                    raise _translate(error) from None
            self._reconnect()
        raise UnavailableError("The daemon cannot be reached: it restarts again and again.")

    def stream(
        self, method: str, make_request: Callable[[], Any], timeout: float | None = None
    ) -> Iterator[Any]:
        """Messages until the daemon says it was the last, `timeout` is over, or the connection is closed.

        After a lost connection `make_request` is asked again, so that it can go on from its cursor.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while deadline is None or time.monotonic() < deadline:
            seconds = STREAM_SECONDS if deadline is None else deadline - time.monotonic()
            try:
                yield from self._messages(method, make_request(), min(seconds, STREAM_SECONDS))
                return
            except ChannelClosed:
                pass
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    continue
                if error.code() not in _LOST:
                    raise _translate(error) from None
            if self._closed:
                return
            self._come_back()

    def _messages(self, method: str, request: Any, seconds: float) -> Iterator[Any]:
        call = self._invoke(method, request, seconds)
        try:
            yield from call
        finally:
            call.cancel()

    def _invoke(self, method: str, request: Any, seconds: float) -> Any:
        try:
            return getattr(self._stub, method)(request, timeout=seconds, metadata=self.address.metadata())
        except ValueError as error:
            # That is how gRPC says so: another thread has found the daemon anew, or we were closed.
            raise ChannelClosed from error

    def _come_back(self) -> None:
        """Reconnect for a stream: as long as the daemon's process lives, its silence is waited out."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._reconnect()
            except UnavailableError:
                if self._closed or living_pid(self.paths) is None or time.monotonic() > deadline:
                    raise
            else:
                return

    def _reconnect(self) -> None:
        time.sleep(_RETRY_SECONDS)
        with self._finding:
            if self._closed:
                raise UnavailableError("This connection to the daemon is closed.")
            self._tell(False)
            address = self._find(self.paths)
            if address != self.address:
                self._channel.close()
                self.address = address
                self._channel = open_channel(address.address)
                self._stub = pb_grpc.TrainerServiceStub(self._channel)
            self._close_again()
            self._tell(True)

    def _close_again(self) -> None:
        """A connection that was closed while the daemon was looked for has a channel that is open still."""
        if self._closed:
            self._channel.close()

    def _tell(self, found: bool) -> None:
        if self._listener is not None:
            self._listener(found)
