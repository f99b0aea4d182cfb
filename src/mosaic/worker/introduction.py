"""What a worker says of itself at the handshake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Introduction:
    """One run's worker, as the daemon keeps it with the run."""

    run_id: str
    worker_id: str
    worker_kind: str
    schema_id: str = ""
    schema_version: int = 1
    supports_pause: bool = False
    supports_checkpoint: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    """Anything else worth keeping (algorithm, environment, …), as JSON can hold it."""
