"""The words for numbers in a line of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spread(seconds: Sequence[float], unit: str = "ms") -> str:
    """Median, 99th percentile and maximum."""
    scale = {"µs": 1e6, "ms": 1e3, "s": 1.0}[unit]
    p50, p99 = np.percentile(seconds, (50, 99)) * scale
    return f"p50 {p50:.3g}, p99 {p99:.3g}, max {max(seconds) * scale:.3g} {unit}"
