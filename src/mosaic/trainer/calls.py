"""Our errors as status codes of the wire."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import grpc

from mosaic.contract.errors import (
    ConflictError,
    MosaicError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UserError,
)
from mosaic.trainer import log
from mosaic.trainer.log import Code

Context: TypeAlias = grpc.aio.ServicerContext
Answer = TypeVar("Answer")


class ForbiddenError(MosaicError):
    """The caller is not who it says it is."""


_CODES: dict[type[MosaicError], grpc.StatusCode] = {
    NotFoundError: grpc.StatusCode.NOT_FOUND,
    UserError: grpc.StatusCode.INVALID_ARGUMENT,
    ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    StorageError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
    ForbiddenError: grpc.StatusCode.PERMISSION_DENIED,
}


class _Service(Protocol):
    touched_at: float


async def _abort(context: Context, method: str, error: Exception) -> None:
    """End the call with a code; an error that is not ours goes into the log with its traceback."""
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
    if code == grpc.StatusCode.INTERNAL:
        log.exception(Code.CALL_FAILED, method)
        await context.abort(code, "The daemon's log has the details.")
    log.info(Code.CALL_REFUSED, f"{method} {code.name}: {error}")
    await context.abort(code, str(error))


def unary(method: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
    """A call with one answer."""

    @functools.wraps(method)
    async def guarded(self: _Service, request: Any, context: Context) -> Answer:
        self.touched_at = time.monotonic()
        try:
            return await method(self, request, context)
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            await _abort(context, method.__name__, error)
        raise AssertionError("abort raises")

    return guarded


def streaming(method: Callable[..., AsyncIterator[Answer]]) -> Callable[..., AsyncIterator[Answer]]:
    """A call with many answers."""

    @functools.wraps(method)
    async def guarded(self: _Service, request: Any, context: Context) -> AsyncIterator[Answer]:
        self.touched_at = time.monotonic()
        try:
            async for answer in method(self, request, context):
                yield answer
        except (grpc.aio.AbortError, GeneratorExit):
            raise
        except Exception as error:
            await _abort(context, method.__name__, error)

    return guarded
