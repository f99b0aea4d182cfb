"""What the bottom bar says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mosaic.client import HealthRecord
from mosaic.contract.outside import bytes_text

_REASON = 56
"""So many letters of a reason stand in the bar; all of it is in the tooltip, and in the middle."""


@dataclass(frozen=True)
class Told:
    """A few words, all of them, and the role of their colour."""

    short: str
    long: str
    role: str


class UsageLike(Protocol):
    @property
    def cpu(self) -> float: ...
    @property
    def memory_used(self) -> int: ...
    @property
    def memory_total(self) -> int: ...
    @property
    def gpus(self) -> tuple[float, ...]: ...


def daemon_words(state: str, reason: str) -> Told:
    """Whether the daemon is there."""
    if state == "alive":
        return Told("Daemon on this machine", "", "good")
    if state == "connecting":
        return Told("Daemon restarting…" if reason else "Looking for the daemon…", reason, "warn")
    first = reason.split(". ")[0].rstrip(".")
    short = first if len(first) <= _REASON else f"{first[:_REASON].rstrip()}…"
    return Told(f"Daemon unreachable: {short}" if short else "Daemon unreachable", reason, "bad")


def queue_words(health: HealthRecord) -> str:
    """`Queue 2`, or that nothing waits."""
    return f"Queue {health.waiting_runs}" if health.waiting_runs else "Queue empty"


def room_words(health: HealthRecord) -> str:
    """The first problem, else the room on the disk."""
    return health.problems[0] if health.problems else f"{bytes_text(health.disk_free_bytes)} free"


def machine_words(usage: UsageLike) -> tuple[str, str, str]:
    """CPU, memory and GPU."""
    used, total = usage.memory_used / 1e9, usage.memory_total / 1e9
    loads = ", ".join(f"{load * 100:.0f} %" for load in usage.gpus)
    gpu = f"GPU {loads}" if loads else "No GPU"
    return f"CPU {usage.cpu * 100:.0f} %", f"Memory {used:.1f} of {total:.0f} GB", gpu
