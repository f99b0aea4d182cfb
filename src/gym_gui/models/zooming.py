"""Which piece of an axis is shown after somebody zooms or moves; None stands for all of it."""

from __future__ import annotations

Piece = tuple[float, float]

_SMALLEST = 1e-5
"""The smallest share of the whole that can be zoomed into."""


def zoomed(piece: Piece, whole: Piece) -> Piece | None:
    """A piece as far as it lies in the whole, and not too small to be seen."""
    low, high = max(min(piece), whole[0]), min(max(piece), whole[1])
    if (low, high) == whole:
        return None
    return low, max(high, low + (whole[1] - whole[0]) * _SMALLEST)


def moved(piece: Piece, by: float, whole: Piece) -> Piece | None:
    """The piece of the same length further on; it stops at the ends."""
    by = min(max(by, whole[0] - piece[0]), whole[1] - piece[1])
    return zoomed((piece[0] + by, piece[1] + by), whole)


def scaled(piece: Piece, factor: float, around: float | None, whole: Piece) -> Piece | None:
    """A piece `factor` times as long, in which the place `around`, or its middle, stays where it is."""
    fixed = sum(piece) / 2 if around is None else around
    return zoomed((fixed - (fixed - piece[0]) * factor, fixed + (piece[1] - fixed) * factor), whole)
