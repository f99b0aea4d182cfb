"""Every call but health carries the daemon's token."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from mosaic.contract.connection import TOKEN_KEY

_OPEN_SERVICE = "/grpc.health.v1.Health/"


class TokenInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without the token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}"

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        given = dict(details.invocation_metadata).get(TOKEN_KEY, "")
        if details.method.startswith(_OPEN_SERVICE) or hmac.compare_digest(given, self._expected):
            return await continuation(details)
        return _refuse(await continuation(details))


def _refuse(handler: Any) -> Any:
    """The same kind of handler, which refuses the call."""

    async def unary(request: Any, context: grpc.aio.ServicerContext) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "The call lacks the daemon's token.")

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
