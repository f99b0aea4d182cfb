"""The channel to the daemon, for clients and workers."""

from __future__ import annotations

import grpc
import grpc._common

from mosaic.contract.connection import CHANNEL_OPTIONS

# A daemon that was away for long is found again as soon as it is back.
_OPTIONS = (*CHANNEL_OPTIONS, ("grpc.max_reconnect_backoff_ms", 1000))

# Threads that wait for a message sleep until it comes. gRPC would wake them ten times a second, to hear
# signals that Python hears anyway; of a process that does little else that would be most of its work.
grpc._common.MAXIMUM_WAIT_TIMEOUT = 10.0


def open_channel(target: str) -> grpc.Channel:
    """A channel to the daemon at an address."""
    return grpc.insecure_channel(target, options=_OPTIONS)
