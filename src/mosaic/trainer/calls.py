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
from mosaic.trainer.doors import check
from mosaic.trainer.log import Code
from mosaic.trainer.schema import DamagedError

Context: TypeAlias = grpc.aio.ServicerContext
Answer = TypeVar("Answer")


class ForbiddenError(MosaicError):
    """The caller is not who it says it is."""


_CODES: dict[type[MosaicError], grpc.StatusCode] = {
    NotFoundError: grpc.StatusCode.NOT_FOUND,
    UserError: grpc.StatusCode.INVALID_ARGUMENT,
    # Rebuilt in a moment: the client asks again.
    DamagedError: grpc.StatusCode.UNAVAILABLE,
    ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    StorageError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
    ForbiddenError: grpc.StatusCode.PERMISSION_DENIED,
}
_OF_VALUES = (OverflowError, RecursionError, UnicodeError)
"""What Python and SQLite raise for values that they cannot hold; those have come with the call."""
_MOST_SAID = 2000
"""Letters of a sentence: what is longer does not fit into the end of a call."""


class _Service(Protocol):
    touched_at: float


async def _abort(context: Context, method: str, error: Exception) -> None:
    """End the call with a code; an error that is not ours goes into the log with its traceback."""
    if isinstance(error, _OF_VALUES):
        error = UserError(f"The call has a value that cannot be stored ({type(error).__name__}): {error}.")
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
    if code == grpc.StatusCode.INTERNAL:
        log.exception(Code.CALL_FAILED, method)
        await context.abort(code, "The daemon's log has the details.")
    said = str(error) if len(str(error)) <= _MOST_SAID else f"{str(error)[:_MOST_SAID]}…"
    log.info(Code.CALL_REFUSED, f"{method} {code.name}: {said}")
    await context.abort(code, said)


def _checked(request: Any) -> Any:
    """The message of a call, looked at; a stream of them looks at each when it comes."""
    if not isinstance(request, AsyncIterator):
        check(request)
        return request

    async def one_by_one() -> AsyncIterator[Any]:
        async for message in request:
            check(message)
            yield message

    return one_by_one()


def unary(method: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
    """A call with one answer."""

    @functools.wraps(method)
    async def guarded(self: _Service, request: Any, context: Context) -> Answer:
        self.touched_at = time.monotonic()
        try:
            return await method(self, _checked(request), context)
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
            async for answer in method(self, _checked(request), context):
                yield answer
        except (grpc.aio.AbortError, GeneratorExit):
            raise
        except Exception as error:
            await _abort(context, method.__name__, error)

    return guarded
