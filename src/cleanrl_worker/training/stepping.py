"""Counting the steps of several environments that are stepped together."""

from __future__ import annotations


def times_due(step: int, new_steps: int, every: int) -> int:
    """How often something that is done once in `every` steps is due after the last `new_steps` of `step`."""
    return step // every - (step - new_steps) // every
