"""Colours, type and spacing: one place, and one stylesheet made from it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from gym_gui.stylesheet import stylesheet_of

SPACE = (4, 8, 12, 16, 20)
TEXT, LABEL, TITLE, HEADLINE = 13, 12, 19, 22
"""Sizes of type in pixels."""

TYPEFACE = "Inter"


@dataclass(frozen=True)
class Palette:
    """The colours of one theme, as hex."""

    background: str
    panel: str
    raised: str
    line: str
    text: str
    dim: str
    faint: str
    accent: str
    good: str
    warn: str
    bad: str
    paused: str

    def colour(self, role: str, alpha: float = 1.0) -> QColor:
        """The colour of a role, for painting."""
        colour = QColor(getattr(self, role))
        colour.setAlphaF(alpha)
        return colour


DARK = Palette(
    background="#14161a",
    panel="#1b1e24",
    raised="#23272f",
    line="#2e333d",
    text="#e6e9ef",
    dim="#9aa3b2",
    faint="#6b7484",
    accent="#5b9dff",
    good="#4cc38a",
    warn="#e2b340",
    bad="#ef6a6a",
    paused="#b18cff",
)
LIGHT = Palette(
    background="#f6f7f9",
    panel="#ffffff",
    raised="#eef1f5",
    line="#dfe3ea",
    text="#1b2027",
    dim="#5b6472",
    faint="#8a93a3",
    accent="#2463d6",
    good="#1d8a55",
    warn="#9a6b00",
    bad="#c43333",
    paused="#7247c9",
)


def stylesheet(palette: Palette) -> str:
    """The one sheet of the application."""
    return stylesheet_of(vars(palette))


def number_font(size: int = TEXT, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """The typeface with figures of equal width."""
    font = QFont(QGuiApplication.font())
    font.setPixelSize(size)
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


class Theme(QObject):
    """The theme that is on now; `changed` tells those who paint themselves to do so again."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._palette = DARK
        self._follows_system = False
        self._dressed = False

    @property
    def palette(self) -> Palette:
        return self._palette

    @property
    def name(self) -> str:
        return "light" if self._palette is LIGHT else "dark"

    def apply(self, app: QApplication, name: str | None = None) -> None:
        """Put a theme on: `dark`, `light`, or None for the system's own, also when that changes."""
        hints = app.styleHints()
        if self._follows_system:
            hints.colorSchemeChanged.disconnect(self._system_changed)
        self._follows_system = name is None
        if name is None:
            hints.colorSchemeChanged.connect(self._system_changed)
            name = "light" if hints.colorScheme() == Qt.ColorScheme.Light else "dark"
        self._palette = LIGHT if name == "light" else DARK
        if not self._dressed:
            # Each of these has every widget dressed anew, so what does not change is said once.
            app.setStyle("Fusion")
            app.setFont(_typeface())
            self._dressed = True
        app.setPalette(_qt_palette(self._palette))
        app.setStyleSheet(stylesheet(self._palette))
        self.changed.emit()

    def _system_changed(self) -> None:
        app = QApplication.instance()
        if isinstance(app, QApplication):
            self.apply(app, None)


def _typeface() -> QFont:
    font = QFont(TYPEFACE) if TYPEFACE in QFontDatabase.families() else QFont(QGuiApplication.font())
    font.setPixelSize(TEXT)
    return font


def _qt_palette(palette: Palette) -> QPalette:
    role = QPalette.ColorRole
    colours = {
        role.Window: "background",
        role.WindowText: "text",
        role.Base: "panel",
        role.AlternateBase: "raised",
        role.Text: "text",
        role.Button: "raised",
        role.ButtonText: "text",
        role.PlaceholderText: "faint",
        role.Highlight: "accent",
        role.ToolTipBase: "raised",
        role.ToolTipText: "text",
        role.Link: "accent",
    }
    made = QPalette()
    for qt_role, name in colours.items():
        made.setColor(qt_role, palette.colour(name))
    made.setColor(role.HighlightedText, QColor("#ffffff"))
    for qt_role in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, qt_role, palette.colour("faint"))
    return made


theme = Theme()
