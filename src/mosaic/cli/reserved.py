"""CPUs, memory and GPUs in words: what runs ask for, hold, and leave to others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.client import HealthRecord, RunRecord


@dataclass(frozen=True)
class Request:
    """What a run asked for, and the GPUs that it holds."""

    cpus: int
    memory_mb: int | None
    gpus: int
    gpus_mandatory: bool
    held_gpus: tuple[int, ...]

    @classmethod
    def of(cls, run: RunRecord) -> Request:
        asked = run.config["resources"]
        gpus = asked["gpus"]
        return cls(asked["cpus"], asked["memory_mb"], gpus["requested"], gpus["mandatory"], tuple(run.gpus))

    def needs(self) -> str:
        """What it must get to start: `2 CPUs, 4,096 MB, 1 GPU`."""
        parts = [_plural(self.cpus, "CPU"), *self._memory()]
        if self.gpus:
            parts.append(f"{_plural(self.gpus, 'GPU')}{'' if self.gpus_mandatory else ' if free'}")
        return ", ".join(parts)

    def holds(self) -> str:
        """What others cannot have while it lives: `2 CPUs, 4,096 MB, GPU 0 3`."""
        held = [f"GPU {' '.join(map(str, self.held_gpus))}"] if self.held_gpus else []
        return ", ".join([_plural(self.cpus, "CPU"), *self._memory(), *held])

    def as_json(self) -> dict[str, Any]:
        return {
            "cpus": self.cpus,
            "memory_mb": self.memory_mb,
            "gpus_requested": self.gpus,
            "gpus_mandatory": self.gpus_mandatory,
            "gpus": list(self.held_gpus),
        }

    def _memory(self) -> list[str]:
        return [f"{self.memory_mb:,} MB"] if self.memory_mb else []


def totals(health: HealthRecord) -> list[tuple[str, str]]:
    """What is reserved of what the machine has, by kind."""
    gpus = f"{health.gpus_reserved} of {health.gpus} reserved" if health.gpus else "none"
    return [
        ("CPUs", f"{health.cpus_reserved} of {health.cpus} reserved"),
        ("memory", f"{health.memory_mb_reserved:,} of {health.memory_mb:,} MB reserved"),
        ("GPUs", gpus),
    ]


def sentence(health: HealthRecord) -> str:
    """The same in one line: `1 of 2 CPUs, 0 of 16,000 MB and 0 of 1 GPUs reserved`."""
    parts = [
        f"{health.cpus_reserved} of {_plural(health.cpus, 'CPU')}",
        f"{health.memory_mb_reserved:,} of {health.memory_mb:,} MB",
    ]
    if health.gpus:
        parts.append(f"{health.gpus_reserved} of {_plural(health.gpus, 'GPU')}")
    return f"{', '.join(parts[:-1])} and {parts[-1]} reserved"


def _plural(amount: int, name: str) -> str:
    return f"{amount} {name}{'' if amount == 1 else 's'}"
