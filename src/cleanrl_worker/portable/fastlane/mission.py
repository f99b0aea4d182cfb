"""What is to be done in an environment, in its own words."""

from __future__ import annotations

from typing import Any


def mission_of(env: Any) -> str:
    """The mission of a grid world as it is now; empty where an environment has none."""
    try:
        words = getattr(env.unwrapped, "mission", "")
    except Exception:
        # It may be a property of somebody's own, and is not worth a failed step.
        return ""
    return words if isinstance(words, str) else ""
