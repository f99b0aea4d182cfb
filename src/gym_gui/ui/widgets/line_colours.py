"""The colours of lines in a chart: the accent first, the others far enough from it and from each other."""

from __future__ import annotations

from PySide6.QtGui import QColor

from gym_gui.theme import theme

_DARK = ("#5b9dff", "#f2a65a", "#4cc38a", "#e879b9", "#b18cff", "#e2d04a", "#57c7d4", "#ef6a6a", "#6b7484")
_LIGHT = ("#2463d6", "#c2610c", "#1d8a55", "#b8307f", "#7247c9", "#8f7a00", "#0e7f8c", "#c43333", "#a9b1bd")

COLOURS = len(_DARK)
OTHER = COLOURS - 1
"""The number of a line that stands back."""


def line_colour(index: int, alpha: float = 1.0) -> QColor:
    """The colour of the line with this number, in the theme that is on."""
    colours = _LIGHT if theme.name == "light" else _DARK
    colour = QColor(colours[index % len(colours)])
    colour.setAlphaF(alpha)
    return colour
