"""What may come in by a call: every message is looked at before anybody acts on it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, MutableMapping, MutableSequence
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from mosaic.contract.errors import UserError
from mosaic.contract.run_config import MOST_CONFIG_BYTES

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


class Malformed:
    """Stands for a message that cannot be read."""


class Door(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Lets unreadable messages through as `Malformed`: gRPC would call them an error of the daemon."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or handler.request_deserializer is None:
            return handler
        read = handler.request_deserializer

        def read_or_mark(data: bytes) -> Any:
            try:
                return read(data)
            except (DecodeError, ValueError):
                return Malformed()

        return handler._replace(request_deserializer=read_or_mark)


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
            raise UserError(f"'{field.name}' has {len(value):,} entries: {most:,} at most can be taken.")
        parts = [*value, *value.values()] if isinstance(value, MutableMapping) else value
        for part in parts:
            _check_one(field.name, part)


def _check_one(name: str, value: Any) -> None:
    if isinstance(value, Message):
        check(value)
    elif isinstance(value, str):
        longest = _LONGEST.get(name, _LONGEST_OTHER)
        if len(value) > longest:
            raise UserError(f"'{name}' is {len(value):,} characters long: {longest:,} at most can be taken.")
        if "\0" in value:
            raise UserError(f"'{name}' has a character of code 0, which no text can have.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"'{name}' is {value}: it must be a finite number.")
    elif isinstance(value, int) and value > _MOST_NUMBER:
        raise UserError(f"'{name}' is {value}: it must be {_MOST_NUMBER} or less.")
    elif isinstance(value, int | float) and value < 0 and name not in _MAY_BE_NEGATIVE:
        raise UserError(f"'{name}' is {value}: it must be 0 or more.")
