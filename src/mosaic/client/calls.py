"""Errors of the wire turned into ours."""

from __future__ import annotations

import grpc

from mosaic.contract.errors import (
    ConflictError,
    MosaicError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UserError,
)

_KINDS: dict[grpc.StatusCode, type[MosaicError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: UserError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.FAILED_PRECONDITION: ConflictError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: StorageError,
}

# The daemon went away in the middle of the call or before it, or came back with another token.
_LOST = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAUTHENTICATED})


def is_lost(error: grpc.RpcError) -> bool:
    """Whether the same call may succeed with a daemon found anew."""
    return error.code() in _LOST


def translate(error: grpc.RpcError) -> MosaicError:
    """Our exception for a failed call."""
    code, details = error.code(), error.details() or "no details"
    if code in _KINDS:
        return _KINDS[code](details)
    if code in _LOST:
        return UnavailableError(f"The daemon cannot be reached: {details}")
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return UnavailableError("The daemon did not answer in time; `mosaic daemon status` tells how it is.")
    return MosaicError(f"The daemon failed on this call ({code.name}): {details}")
