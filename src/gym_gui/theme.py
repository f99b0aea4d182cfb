"""Colours, type and spacing, and the one stylesheet that is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

ASSETS = Path(__file__).parent / "assets"

_SHEET = Template("""
QWidget { color: $text; }
QMainWindow, QDialog, QWidget[role="page"] { background: $background; }
QFrame[role="panel"], QFrame[role="side"] { background: $panel; border: none; }
QFrame[role="card"] { background: $panel; border: 1px solid $line; border-radius: 8px; }
QFrame[role="card"][focused="true"] { border-color: $accent; }
QFrame[role="raised"] { background: $raised; border: 1px solid $line; border-radius: 8px; }
QFrame[role="paper"] { background: #ffffff; border: 1px solid $line; border-radius: 8px; }
QFrame[role="line"] { background: $line; border: none; }
QFrame[role="bar-top"] { background: $panel; border: none; border-bottom: 1px solid $line; }
QFrame[role="bar-bottom"] { background: $panel; border: none; border-top: 1px solid $line; }

QLabel { background: transparent; }
QLabel[role="brand"] { font-weight: 700; letter-spacing: 2px; }
QLabel[role="title"] { font-size: 19px; font-weight: 700; }
QLabel[role="section"] { font-size: 12px; font-weight: 600; color: $dim; letter-spacing: 1px; }
QLabel[role="strong"] { font-weight: 600; }
QLabel[role="label"], QLabel[role="help"] { font-size: 12px; color: $dim; }
QLabel[role="dim"] { color: $dim; }
QLabel[role="faint"] { font-size: 12px; color: $faint; }
QLabel[role="error"] { color: $bad; }
QLabel[role="field"] { font-size: 12px; font-weight: 600; }
QLabel[role="mark"] { font-size: 12px; font-weight: 600; color: $accent; }
QLabel[role="help-error"] { font-size: 12px; color: $bad; }
QLabel[role="good"] { color: $good; }
QLabel[role="warn"] { color: $warn; }

QLabel[pill] { font-size: 12px; font-weight: 600; border-radius: 9px; padding: 2px 9px; }
QLabel[pill="good"] { color: $good; background: $good_tint; }
QLabel[pill="warn"] { color: $warn; background: $warn_tint; }
QLabel[pill="bad"] { color: $bad; background: $bad_tint; }
QLabel[pill="paused"] { color: $paused; background: $paused_tint; }
QLabel[pill="accent"] { color: $accent; background: $accent_tint; }
QLabel[pill="dim"] { color: $dim; background: $raised; }

QPushButton {
    background: $raised; color: $text; border: 1px solid $line; border-radius: 6px;
    padding: 0 12px; min-height: 30px; max-height: 30px;
}
QPushButton:hover { border-color: $faint; }
QPushButton:pressed { background: $line; }
QPushButton:focus { border-color: $accent; outline: none; }
QPushButton:disabled { color: $faint; background: $panel; }
QPushButton[role="primary"] { background: $accent; border-color: $accent; color: #ffffff; font-weight: 600; }
QPushButton[role="primary"]:hover { background: $accent_hover; }
QPushButton[role="primary"]:focus { border-color: $text; }
QPushButton[role="primary"]:disabled { background: $raised; border-color: $line; color: $faint; }
QPushButton[role="danger"] { color: $bad; }
QPushButton[role="danger"]:disabled { color: $faint; }
QPushButton[role="quiet"] { background: transparent; border-color: transparent; color: $dim; }
QPushButton[role="quiet"]:hover { color: $text; background: $raised; }
QPushButton[role="quiet"]:focus { border-color: $accent; }
QPushButton[role="link"], QPushButton[role="quiet-link"] {
    background: transparent; border: 1px solid transparent; color: $accent;
    padding: 0; min-height: 20px; max-height: 20px;
}
QPushButton[role="quiet-link"] { color: $dim; font-size: 12px; }
QPushButton[role="link"]:focus, QPushButton[role="quiet-link"]:focus {
    border-bottom-color: $accent; border-radius: 0;
}
QPushButton[role="chip"] {
    background: $raised; border-color: transparent; color: $dim; border-radius: 11px;
    padding: 0 8px; min-height: 20px; max-height: 20px; font-size: 12px;
}
QPushButton[role="chip"]:hover { color: $text; }
QPushButton[role="chip"]:focus { border-color: $accent; }
QPushButton[role="chip"]:checked { background: $text; color: $panel; }
QPushButton[role="fold"] {
    background: transparent; border: none; border-top: 1px solid $line; border-radius: 0;
    padding: 0; min-height: 36px; max-height: 36px;
}
QPushButton[role="fold"]:hover { background: $background; }
QPushButton[role="fold"]:focus { border-top-color: $accent; }
QToolButton[role="reset"] {
    background: $field; border: none; border-radius: 4px; color: $faint; padding: 1px 4px; font-size: 12px;
}
QToolButton[role="reset"]:hover, QToolButton[role="reset"]:focus { color: $accent; }
QPushButton::menu-indicator { image: none; width: 0; }

QLineEdit, QPlainTextEdit, QTextEdit, QComboBox, QAbstractSpinBox {
    background: $field; color: $text; border: 1px solid $line; border-radius: 6px;
    selection-background-color: $accent; selection-color: #ffffff;
}
QLineEdit, QComboBox, QAbstractSpinBox { padding: 0 10px; min-height: 32px; max-height: 32px; }
QPlainTextEdit, QTextEdit { padding: 6px; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QComboBox:focus, QAbstractSpinBox:focus {
    border-color: $accent;
}
QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled { color: $faint; background: $panel; }
QLineEdit[invalid="true"], QComboBox[invalid="true"], QPlainTextEdit[invalid="true"] { border-color: $bad; }
QComboBox QLineEdit, QComboBox QLineEdit:focus {
    background: transparent; border: none; padding: 0; min-height: 0;
}
QComboBox::drop-down { border: none; width: 26px; }
QComboBox::down-arrow { image: url($chevron); width: 12px; height: 12px; margin-right: 10px; }
QComboBox QAbstractItemView, QMenu {
    background: $panel; color: $text; border: 1px solid $line; border-radius: 6px;
    padding: 4px; outline: none;
}
QComboBox QAbstractItemView { selection-background-color: $raised; selection-color: $text; }
QComboBox QAbstractItemView::item { min-height: 26px; padding: 0 6px; }
QMenu::item { padding: 6px 24px 6px 12px; border-radius: 4px; }
QMenu::item:selected { background: $raised; }
QMenu::item:disabled { color: $faint; }
QMenu::separator { height: 1px; background: $line; margin: 4px 8px; }

QCheckBox { spacing: 8px; background: transparent; }
QCheckBox::indicator, QTableView::indicator {
    width: 14px; height: 14px; border: 1px solid $line; border-radius: 4px; background: $field;
}
QCheckBox::indicator:hover { border-color: $accent; }
QCheckBox::indicator:checked, QTableView::indicator:checked {
    background: $accent; border-color: $accent; image: url($tick);
}
QCheckBox:focus { color: $accent; }

QTabBar { background: transparent; }
QTabBar::tab {
    background: transparent; color: $dim; border: none; border-bottom: 2px solid transparent;
    padding: 8px 0 9px 0; margin-right: 22px;
}
QTabBar::tab:hover { color: $text; }
QTabBar::tab:selected { color: $text; border-bottom-color: $accent; font-weight: 600; }
QTabBar::tab:focus { color: $accent; }
QTabBar::scroller { width: 0; }

QListView, QTreeView, QTableView {
    background: $panel; color: $text; border: none; outline: none; alternate-background-color: $panel;
    selection-background-color: $raised; selection-color: $text; gridline-color: $line;
}
QTreeView::item, QTableView::item { padding: 4px 8px; border: none; }
QTreeView::item:selected, QTableView::item:selected { background: $raised; color: $text; }
QHeaderView { background: $panel; border: none; }
QHeaderView::section {
    background: $panel; color: $dim; border: none; border-bottom: 1px solid $line;
    padding: 6px 11px; font-size: 12px;
}
QAbstractScrollArea::corner, QTableCornerButton::section { background: $panel; border: none; }

QScrollArea, QScrollBar { background: transparent; border: none; }
QScrollArea > QWidget > QWidget { background: transparent; }
QScrollBar:vertical { width: 8px; margin: 2px 1px; }
QScrollBar:horizontal { height: 8px; margin: 1px 2px; }
QScrollBar::handle { background: $line; border-radius: 3px; }
QScrollBar::handle:vertical { min-height: 28px; }
QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::handle:hover { background: $faint; }
QScrollBar::add-line, QScrollBar::sub-line, QScrollBar::add-page, QScrollBar::sub-page {
    background: none; border: none; width: 0; height: 0;
}
QSplitter::handle { background: $line; }
QSplitter::handle:horizontal { width: 1px; }
QSplitter::handle:vertical { height: 1px; }

QProgressBar { background: $line; border: none; border-radius: 2px; max-height: 4px; min-height: 4px; }
QProgressBar::chunk { background: $accent; border-radius: 2px; }
QSlider::groove:horizontal { background: $line; height: 4px; border-radius: 2px; }
QSlider::sub-page:horizontal { background: $accent; border-radius: 2px; }
QSlider::handle:horizontal {
    background: $text; width: 12px; height: 12px; margin: -4px 0; border-radius: 6px;
}
QToolTip { background: $raised; color: $text; border: 1px solid $line; padding: 4px 6px; }
""")

_TINTED = ("good", "warn", "bad", "paused", "accent")
_TINT = 0.16
SPACE = (4, 8, 12, 16, 20)
TEXT, LABEL, HEADLINE = 13, 12, 22
"""Sizes of type in pixels."""

TYPEFACE = "Inter"
_COLOURS = {
    "background": ("#14161a", "#f6f7f9"),
    "panel": ("#1b1e24", "#ffffff"),
    "raised": ("#23272f", "#eef1f5"),
    "line": ("#2e333d", "#dfe3ea"),
    "text": ("#e6e9ef", "#1b2027"),
    "dim": ("#9aa3b2", "#5b6472"),
    "faint": ("#6b7484", "#8a93a3"),
    "accent": ("#5b9dff", "#2463d6"),
    "good": ("#4cc38a", "#1d8a55"),
    "warn": ("#e2b340", "#9a6b00"),
    "bad": ("#ef6a6a", "#c43333"),
    "paused": ("#b18cff", "#7247c9"),
}


def stylesheet_of(colours: Mapping[str, str]) -> str:
    """The sheet in these colours."""
    return _SHEET.substitute(
        colours,
        **{f"{name}_tint": mix(colours[name], colours["panel"], _TINT) for name in _TINTED},
        # Fields lie on panels: in the dark they are wells, in the light a shade of the page.
        field=colours["background"],
        accent_hover=mix(colours["accent"], colours["text"], 0.88),
        tick=(ASSETS / "tick.svg").as_posix(),
        chevron=(ASSETS / "chevron.svg").as_posix(),
    )


def mix(colour: str, other: str, share: float) -> str:
    """`share` of one colour over another."""
    parts = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + "".join(f"{round(one * share + two * (1 - share)):02x}" for one, two in parts)


class Palette(dict[str, str]):
    """The colours of one theme by role, as hex."""

    def colour(self, role: str, alpha: float = 1.0) -> QColor:
        """The colour of a role, for painting."""
        colour = QColor(self[role])
        colour.setAlphaF(alpha)
        return colour


DARK, LIGHT = (Palette({role: pair[at] for role, pair in _COLOURS.items()}) for at in (0, 1))


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
        self.palette = DARK
        self._follows_system = False
        self._dressed = False

    @property
    def name(self) -> str:
        return "light" if self.palette is LIGHT else "dark"

    def apply(self, app: QApplication, name: str | None = None) -> None:
        """Put a theme on: `dark`, `light`, or None for the system's own, also when that changes."""
        hints = app.styleHints()
        if self._follows_system:
            hints.colorSchemeChanged.disconnect(self._system_changed)
        self._follows_system = name is None
        if name is None:
            hints.colorSchemeChanged.connect(self._system_changed)
            name = "light" if hints.colorScheme() == Qt.ColorScheme.Light else "dark"
        self.palette = LIGHT if name == "light" else DARK
        if not self._dressed:
            # Each of these has every widget dressed anew, so what does not change is said once.
            app.setStyle("Fusion")
            app.setFont(_typeface())
            self._dressed = True
        app.setPalette(_qt_palette(self.palette))
        app.setStyleSheet(stylesheet_of(self.palette))
        self.changed.emit()

    def _system_changed(self) -> None:
        put_on(None)


def _typeface() -> QFont:
    font = QFont(TYPEFACE) if TYPEFACE in QFontDatabase.families() else QFont(QGuiApplication.font())
    font.setPixelSize(TEXT)
    return font


def _qt_palette(palette: Palette) -> QPalette:
    role = QPalette.ColorRole
    colours = {
        "background": (role.Window,),
        "panel": (role.Base,),
        "raised": (role.AlternateBase, role.Button, role.ToolTipBase),
        "text": (role.WindowText, role.Text, role.ButtonText, role.ToolTipText),
        "faint": (role.PlaceholderText,),
        "accent": (role.Highlight, role.Link),
    }
    made = QPalette()
    for name, roles in colours.items():
        for qt_role in roles:
            made.setColor(qt_role, palette.colour(name))
    made.setColor(role.HighlightedText, QColor("#ffffff"))
    for qt_role in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, qt_role, palette.colour("faint"))
    return made


theme = Theme()


def put_on(name: str | None) -> None:
    """Change the theme of the running application; None follows the system."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        theme.apply(app, name)
