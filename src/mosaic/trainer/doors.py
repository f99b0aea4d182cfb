"""The doors of the daemon: who may call, what may come in by a call, and our errors as status codes."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, MutableSequence
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError, Message

from mosaic.contract.connection import TOKEN_KEY, DaemonAddress
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.run_config import MOST_CONFIG_BYTES
from mosaic.trainer import log
from mosaic.trainer.log import Code

if TYPE_CHECKING:
    from mosaic.trainer.daemon import DaemonLock

Context: TypeAlias = grpc.aio.ServicerContext
_OPEN_SERVICE = "/grpc.health.v1.Health/"


class Door(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without the token, and those of somebody who has it from a copy of the folder.

    Unreadable messages come in as `Malformed`: gRPC would call them an error of the daemon.
    """

    def __init__(self, address: DaemonAddress, lock: DaemonLock) -> None:
        ((_, self._expected),) = address.metadata()
        self._lock = lock
        self.touched_at = time.monotonic()
        """When somebody last called."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        given = dict(details.invocation_metadata).get(TOKEN_KEY)
        is_open = details.method.startswith(_OPEN_SERVICE)
        # A folder that was moved away is not ours to serve: what we write goes to where it was.
        known = self._lock.at_home and given is not None and hmac.compare_digest(given, self._expected)
        if is_open and (given is None or known):
            return handler
        return self._guard(handler, details.method.rpartition("/")[2], refused=not known)

    def _guard(self, handler: Any, method: str, refused: bool) -> Any:
        """The same handler: what comes in is looked at first, and our errors become status codes."""
        kind = next(one for one in ("unary_unary", "unary_stream", "stream_unary") if getattr(handler, one))
        act = getattr(handler, kind)

        def read_or_mark(data: bytes) -> Any:
            try:
                return handler.request_deserializer(data)
            except (DecodeError, ValueError):
                return Malformed()

        async def enter(request: Any, context: Context) -> Any:
            if refused:
                told = "The call lacks the token of this daemon and folder."
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, told)
            self.touched_at = time.monotonic()
            return _checked(request)

        async def answer(request: Any, context: Context) -> Any:
            try:
                return await act(await enter(request, context), context)
            except grpc.aio.AbortError:
                raise
            except Exception as error:
                await _abort(context, method, error)

        async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
            try:
                async for one in act(await enter(request, context), context):
                    yield one
            except (grpc.aio.AbortError, GeneratorExit):
                raise
            except Exception as error:
                await _abort(context, method, error)

        read = None if refused else read_or_mark
        guarded = stream if handler.response_streaming else answer
        return handler._replace(request_deserializer=read, **{kind: guarded})


class Malformed:
    """Stands for a message that cannot be read."""


_LONGEST = {
    **dict.fromkeys(("run_id", "run_ids", "before_run_id"), 64),
    **dict.fromkeys(("stream", "order_by", "statuses", "outcomes", "fields"), 200),
    "request_id": 200,
    "filter": 2_000,
    "reason": 10_000,
    # These say themselves what is too long, in a sentence of their own.
    **dict.fromkeys(("config_json", "run_name", "notes", "tags", "without_tags"), 64 * 2**20),
    # How far each of a run's event files was read.
    "cursor": 4 * 2**20,
    "details_json": MOST_CONFIG_BYTES,
    "payload_json": MOST_CONFIG_BYTES,
}
_LONGEST_OTHER = 10_000
_MOST = {"tags": 1_000_000, "items": 20_000}
_MOST_OTHERS = 1_000
_MOST_NUMBER = 2**53
_MAY_BE_NEGATIVE = frozenset({"priority"})


def check(message: Message | Malformed) -> None:
    """A UserError names the first field that cannot be taken."""
    if isinstance(message, Malformed):
        raise UserError("The message of this call cannot be read: it is not one of this call, or not UTF-8.")
    for field, value in message.ListFields():
        if not isinstance(value, MutableSequence | MutableMapping):
            _check_one(field.name, value)
            continue
        most = _MOST.get(field.name, _MOST_OTHERS)
        if len(value) > most:
            raise UserError(f"'{field.name}' has {len(value):,} entries: at most {most:,} are allowed.")
        parts = [*value, *value.values()] if isinstance(value, MutableMapping) else value
        for part in parts:
            _check_one(field.name, part)


def _check_one(name: str, value: Any) -> None:
    if isinstance(value, Message):
        check(value)
    elif isinstance(value, str):
        longest = _LONGEST.get(name, _LONGEST_OTHER)
        if len(value) > longest:
            raise UserError(f"'{name}' is {len(value):,} characters long: at most {longest:,} are allowed.")
        if "\0" in value:
            raise UserError(f"'{name}' contains a NUL character, which text cannot contain.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"'{name}' is {value}: it must be a finite number.")
    elif isinstance(value, int) and value > _MOST_NUMBER:
        raise UserError(f"'{name}' is {value}: it must be {_MOST_NUMBER} or less.")
    elif isinstance(value, int | float) and value < 0 and name not in _MAY_BE_NEGATIVE:
        raise UserError(f"'{name}' is {value}: it must be 0 or more.")


class ForbiddenError(MosaicError):
    """The caller is not who it says it is."""

    status = "PERMISSION_DENIED"


_OF_VALUES = (OverflowError, RecursionError, UnicodeError)
"""What Python and SQLite raise for values that they cannot hold; those have come with the call."""
_MOST_SAID = 2000
"""Letters of a sentence: what is longer does not fit into the end of a call."""


async def _abort(context: Context, method: str, error: Exception) -> None:
    """End the call with a code; an error that is not ours goes into the log with its traceback."""
    if isinstance(error, _OF_VALUES):
        error = UserError(f"The call has a value that cannot be stored ({type(error).__name__}): {error}.")
    code = grpc.StatusCode[error.status if isinstance(error, MosaicError) else MosaicError.status]
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
