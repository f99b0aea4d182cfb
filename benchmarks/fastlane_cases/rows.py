"""One measured line of the table, and the words for numbers in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Row:
    """What was done, what came out, what the limit is and whether it held."""

    what: str
    measured: str
    limit: str
    held: bool

    def cells(self) -> list[str]:
        return [self.what, self.measured, self.limit, "yes" if self.held else "**no**"]


def spread(seconds: Sequence[float], unit: str = "ms") -> str:
    """Median, 99th percentile and maximum."""
    scale = {"µs": 1e6, "ms": 1e3, "s": 1.0}[unit]
    p50, p99 = np.percentile(seconds, (50, 99)) * scale
    return f"p50 {p50:.3g}, p99 {p99:.3g}, max {max(seconds) * scale:.3g} {unit}"
