"""Every call but health carries the daemon's token, and the identity of the folder it was read in."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from mosaic.contract.connection import TOKEN_KEY, DaemonAddress
from mosaic.trainer.lock import DaemonLock

_OPEN_SERVICE = "/grpc.health.v1.Health/"


class TokenInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without the token, and those of somebody who has it from a copy of the folder."""

    def __init__(self, address: DaemonAddress, lock: DaemonLock) -> None:
        ((_, self._expected),) = address.metadata()
        self._lock = lock

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        given = dict(details.invocation_metadata).get(TOKEN_KEY)
        if given is None and details.method.startswith(_OPEN_SERVICE):
            return handler
        # A folder that was moved away is not ours to serve: what we write goes to where it was.
        if self._lock.at_home and given is not None and hmac.compare_digest(given, self._expected):
            return handler
        return _refuse(handler)


def _refuse(handler: Any) -> Any:
    """The same kind of handler, which refuses the call."""

    async def unary(request: Any, context: grpc.aio.ServicerContext) -> None:
        await context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "The call lacks the token of this daemon and folder."
        )

    async def stream(request: Any, context: grpc.aio.ServicerContext) -> Any:
        await unary(request, context)
        yield

    if handler is None:
        return None
    make = (
        grpc.unary_stream_rpc_method_handler
        if handler.response_streaming
        else grpc.unary_unary_rpc_method_handler
    )
    return make(stream if handler.response_streaming else unary)
