"""A chart: its title, its plot, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QMenu, QSizePolicy

from gym_gui.context import Context
from gym_gui.models.charting import Axis, Line
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import Card, button, label, restyle
from gym_gui.ui.widgets.chart_export import as_image, exporter
from gym_gui.ui.widgets.elided import ElidedLabel
from gym_gui.ui.widgets.plot_area import PlotArea

_FILTERS = {"png": "Picture (*.png)", "svg": "Drawing (*.svg)", "csv": "Table (*.csv)"}


class Chart(Card):
    """One metric. Drag to zoom, Shift-drag to move, double-click for all; arrows, + and − do the same."""

    enlarge = Signal()
    """The person wants to see it larger."""

    def __init__(self, context: Context, height: int = 240) -> None:
        super().__init__(margin=SPACE[2], spacing=SPACE[0])
        self._context = context
        self._axis: Axis = "step"
        self.title = ElidedLabel("", "strong", middle=True)
        self.title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.note = ElidedLabel("", "label")
        self.note.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.menu_button = button("⋯", role="quiet")
        self.menu_button.setStyleSheet("min-height: 20px; max-height: 20px; padding: 0 6px;")
        self.menu_button.setAccessibleName("Save, copy, enlarge")
        self.plot = PlotArea()
        self._empty = label("", "dim")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setParent(self)
        self.setMinimumHeight(height)
        head = QHBoxLayout()
        head.setSpacing(SPACE[1])
        head.addWidget(self.title)
        head.addWidget(self.note, 1)
        head.addWidget(self.menu_button)
        self.column.addLayout(head)
        self.column.addWidget(self.plot, 1)
        self.menu_button.setMenu(self._menu())
        self.plot.focused.connect(lambda there: restyle(self, focused=there))
        self.show_lines("", [], "step")

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        for kind, words in (("png", "Save as PNG…"), ("svg", "Save as SVG…"), ("csv", "Save points as CSV…")):
            menu.addAction(words).triggered.connect(lambda _=False, kind=kind: self.ask_and_save(kind))
        menu.addAction("Copy picture").triggered.connect(self.copy_picture)
        menu.addSeparator()
        self._all = QAction("Show all\t0", self)
        self._all.triggered.connect(lambda: self.plot.zoom_to(None))
        menu.addAction(self._all)
        menu.addAction("Enlarge\tEnter").triggered.connect(self.enlarge.emit)
        return menu

    def show_lines(
        self, title: str, lines: Sequence[Line], axis: Axis, note: str = "", empty: str = "No points yet"
    ) -> None:
        """Draw lines under a title; without a point `empty` says so."""
        self._axis = axis
        self.title.setText(title)
        self.note.setText(note)
        self.plot.show_lines(lines, axis)
        nothing = not any(len(line.x) for line in lines)
        self._empty.setText(empty)
        self._empty.raise_()
        self._empty.setVisible(nothing)
        self.menu_button.setEnabled(not nothing)

    @property
    def empty_text(self) -> str:
        """What is said in place of lines."""
        return "" if self._empty.isHidden() else self._empty.text()

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._empty.setGeometry(QRect(0, self.height() // 2 - 14, self.width(), 28))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.enlarge.emit()
        else:
            super().keyPressEvent(event)

    def ask_and_save(self, kind: str) -> None:
        """Ask for a name and write the chart there."""
        name = self.title.text().replace("/", "-").replace(" ", "-") or "chart"
        asked, _ = QFileDialog.getSaveFileName(
            self.window(), f"Save {self.title.text()}", f"{name}.{kind}", _FILTERS[kind]
        )
        if asked:
            path = Path(asked)
            self.save(path if path.suffix else path.with_suffix(f".{kind}"))

    def save(self, path: Path) -> None:
        """Write the chart as the end of the name says: .png, .svg or .csv."""
        work = exporter(self.plot, self.title.text(), self._axis, path)
        self._context.tasks.run(work, self._saved)

    def _saved(self, path: Path) -> None:
        self._context.notifications.tell(f"Saved {path}.", "good")

    def copy_picture(self) -> None:
        """Put the chart on the clipboard."""
        QGuiApplication.clipboard().setImage(as_image(self.plot, self.title.text()))
        self._context.notifications.tell(f"Copied the picture of {self.title.text()}.", "good")
