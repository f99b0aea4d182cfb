"""What a fault case has found."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Report:
    """Counts, measurements and everything that was not as it must be."""

    counts: str
    failures: list[str] = field(default_factory=list)
    too_slow: list[str] = field(default_factory=list)
    """Limits of time and size that were not held; a loaded machine may be the cause."""
    measured: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def passed(self) -> bool:
        return not self.failures and not self.too_slow

    def check(self, holds: bool, otherwise: str) -> None:
        """Note `otherwise` unless `holds`."""
        if not holds:
            self.failures.append(otherwise)
            self.say(f"FAILED: {otherwise}")

    def limit(self, holds: bool, otherwise: str) -> None:
        """Note that a limit is not held."""
        if not holds:
            self.too_slow.append(otherwise)
            self.say(f"TOO SLOW: {otherwise}")

    def measure(self, text: str) -> None:
        self.measured.append(text)

    def say(self, text: str) -> None:
        """Progress, for whoever watches the benchmark."""
        print(f"  {time.monotonic() - self.began:7.1f} s  {text}", flush=True)


def spread(seconds: Sequence[float], unit: str = "s") -> str:
    """Median, 99th percentile and maximum."""
    scale, digits = (1000, 1) if unit == "ms" else (1, 2)
    ordered = sorted(seconds)
    shown = (statistics.median(ordered), percentile(ordered, 0.99), ordered[-1])
    median, high, most = (f"{value * scale:.{digits}f}" for value in shown)
    return f"median {median}, p99 {high}, most {most} {unit}"


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
