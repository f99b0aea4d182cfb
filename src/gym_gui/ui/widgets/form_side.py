"""The column beside a form: what it is about, and the result of the check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPixmap, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from gym_gui.services.notifications import Notifications
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_page import AlgorithmPage, Section
from gym_gui.ui.widgets.basics import Card, button, label, tip
from gym_gui.ui.widgets.fields.layouts import ScrollColumn
from gym_gui.ui.widgets.form_result import ResultView
from gym_gui.ui.widgets.opening import open_path

ABOUT, RESULT = 0, 1
_LONGEST_TITLE = 10


class Picture(QLabel):
    """A picture as wide as its column, never wider than it is."""

    def __init__(self) -> None:
        super().__init__()
        self._whole = QPixmap()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)

    def show_image(self, image: QImage) -> None:
        self._whole = QPixmap.fromImage(image)
        self._scale()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._scale()

    def _scale(self) -> None:
        if self._whole.isNull() or self.width() < 2:
            return
        ratio = self.devicePixelRatioF()
        wide = min(int(self.width() * ratio), self._whole.width())
        shown = self._whole.scaledToWidth(wide, Qt.TransformationMode.SmoothTransformation)
        shown.setDevicePixelRatio(ratio)
        self.setPixmap(shown)
        self.setFixedHeight(round(shown.height() / ratio))


class AboutView(ScrollColumn):
    """The page of an algorithm, or a few words."""

    def __init__(self, notifications: Notifications) -> None:
        super().__init__(margin=0)
        self._notifications = notifications
        self.text = ""
        self._paragraphs = QWidget()
        self.results = label("", "dim", wraps=True, selectable=True)
        self.picture = Picture()
        # Figures are drawn for white paper.
        self._paper = Card("paper", SPACE[1])
        self._paper.column.addWidget(self.picture)
        self._sections = QWidget()
        self._whole = button("Open the whole page", role="link")
        self._whole.clicked.connect(self._open)
        self._path = Path()
        for part in (self._paragraphs, self._paper, self.results, self._sections):
            self.column.addWidget(part)
        self.column.addWidget(self._whole, 0, Qt.AlignmentFlag.AlignLeft)
        self.column.addStretch(1)
        self.show_page(AlgorithmPage(""))

    def show_page(self, page: AlgorithmPage, figure: QImage | None = None) -> None:
        """The page, and its figure if it was read already."""
        self.text = page.text
        self._paragraphs = self._put(self._paragraphs, _paragraphs(page.text))
        self.results.setText("\n".join(page.results))
        self.results.setVisible(bool(page.results))
        self._paper.setVisible(figure is not None)
        if figure is not None:
            self.picture.show_image(figure)
        self._sections = self._put(self._sections, _sections(page.sections))
        self._path = page.path or Path()
        self._whole.setVisible(page.path is not None)

    def _put(self, old: QWidget, fresh: QWidget) -> QWidget:
        """One part in the place of another."""
        self.column.replaceWidget(old, fresh)
        old.hide()
        old.deleteLater()
        return fresh

    def _open(self) -> None:
        open_path(self._path, self._notifications)


def _paragraphs(text: str) -> QWidget:
    """A text as a label for each paragraph, with room between them."""
    made = QWidget()
    column = QVBoxLayout(made)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(SPACE[1])
    for paragraph in filter(None, text.split("\n\n")):
        column.addWidget(_markdown(paragraph))
    return made


def _sections(sections: Sequence[Section]) -> QWidget:
    """Headings with their points."""
    made = QWidget()
    column = QVBoxLayout(made)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(SPACE[0])
    for section in sections:
        title = label(section.title, "strong")
        title.setContentsMargins(0, SPACE[1], 0, 0)
        column.addWidget(title)
        for point in section.points:
            column.addWidget(_markdown(point))
    return made


def _markdown(text: str) -> QLabel:
    made = label(text, wraps=True, selectable=True)
    made.setTextFormat(Qt.TextFormat.MarkdownText)
    return made


class FormSide(QFrame):
    """Two pages under two tabs."""

    def __init__(self, notifications: Notifications) -> None:
        super().__init__()
        self.setProperty("role", "panel")
        self.tabs = QTabBar()
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.addTab("About")
        self.tabs.addTab("Result of the check")
        self.about, self.result = AboutView(notifications), ResultView()
        self._pages = QStackedWidget()
        self._pages.addWidget(self.about)
        self._pages.addWidget(self.result)
        self.tabs.currentChanged.connect(self._pages.setCurrentIndex)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE[4], SPACE[2], SPACE[4], SPACE[4])
        column.setSpacing(SPACE[2])
        column.addWidget(self.tabs)
        column.addWidget(self._pages, 1)

    def name_about(self, title: str) -> None:
        """What the first page is about; a long name would push the second tab away."""
        self.tabs.setTabText(ABOUT, title if len(title) <= _LONGEST_TITLE else "About")
        self.tabs.setTabToolTip(ABOUT, tip(title))

    def open(self, page: int) -> None:
        self.tabs.setCurrentIndex(page)
