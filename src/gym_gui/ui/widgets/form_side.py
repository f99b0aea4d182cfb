"""What stands around a form: its foot, what it is about, and the result of the check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QPixmap, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QTabBar, QWidget

from gym_gui.services.tasks import Notifications
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_page import AlgorithmPage, CheckReport, Fact
from gym_gui.ui.widgets.basics import (
    PAGE,
    Button,
    Card,
    ElidedLabel,
    column_of,
    empty,
    fill,
    hbox,
    label,
    open_path,
    restyle,
    stacked,
    swap,
    tip,
    vbox,
)
from gym_gui.ui.widgets.fields.layouts import ScrollColumn

_NOTHING = "Nothing was checked yet. “Check only” asks the worker whether this can run, and starts nothing."
_OLD = "Out of date · the form was changed after this check"
ABOUT, RESULT = 0, 1
_LONGEST_TITLE = 10


class FormFooter(QFrame):
    """State at the left, buttons at the right; the primary one says what will happen."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "bar-bottom")
        self._word = label("", "strong")
        self._text = ElidedLabel("", "dim")
        self.copy = Button("Copy as command")
        self.check = Button("Check only", "F5")
        # The window closes what lies over the runs with this key; two who listen to one key are none.
        self.cancel = Button("Cancel", "Esc", listens=False)
        self.submit = Button("Train", "Ctrl+Return", "primary")
        buttons = (self.copy, self.check, self.cancel, self.submit)
        hbox(self._word, (self._text, 1), *buttons, on=self, margins=PAGE)

    def tell(self, word: str, text: str, role: str) -> None:
        """The state in a word with its colour, and a line about it."""
        self._word.setText(word)
        self._word.setVisible(bool(word))
        restyle(self._word, role=role)
        self._text.setText(text)

    @property
    def told(self) -> str:
        return " ".join(filter(None, (self._word.text(), self._text.text())))

    def set_busy(self, busy: bool) -> None:
        """Nothing but leaving can be done while an order is under way."""
        for made in (self.copy, self.check, self.submit):
            made.setEnabled(not busy)


class ResultView(ScrollColumn):
    """What the check found: one sentence, then facts; text that can be selected."""

    def __init__(self) -> None:
        super().__init__(margin=0)
        self.headline = label(_NOTHING, "dim", wraps=True, selectable=True)
        self.sentence = label("", wraps=True, selectable=True)
        self.facts: list[Fact] = []
        self._facts = vbox()
        self._text = ""
        self.copy = Button(
            "Copy the result", role="link", do=lambda: QGuiApplication.clipboard().setText(self._text)
        )
        self.copy.hide()
        fill(self.column, self.headline, self.sentence, self._facts)
        fill(self.column, (self.copy, 0, Qt.AlignmentFlag.AlignLeft), 1)
        self.sentence.hide()

    def show_report(self, report: CheckReport) -> None:
        """Put a result in the place of the last one."""
        self.headline.setText(f"{'✓ Valid' if report.ok else '✗ Not yet'} · {report.headline}")
        restyle(self.headline, role="good" if report.ok else "error")
        self._say(report.sentence)
        self._text = report.as_text()
        self.copy.show()
        installs = [("install with", one.command) for one in report.missing]
        self._show_facts([*installs, *report.facts, *report.changes])

    def mark_old(self) -> None:
        """The form was changed: what stands here is no longer about it."""
        if self.headline.text() != _NOTHING:
            self.headline.setText(_OLD)
            restyle(self.headline, role="warn")
            restyle(self.sentence, role="dim")
            self.copy.hide()

    def show_problem(self, text: str) -> None:
        """What went wrong without a report."""
        self.headline.setText("✗ Not yet")
        restyle(self.headline, role="error")
        self._say(text)
        self.copy.hide()
        self._show_facts([])

    def _say(self, text: str) -> None:
        self.sentence.setText(text)
        restyle(self.sentence, role="")
        self.sentence.setVisible(bool(text))

    def _show_facts(self, facts: Sequence[Fact]) -> None:
        self.facts = list(facts)
        empty(self._facts)
        for name, value in facts:
            # A path has no blanks to be broken at.
            shown = label(value.replace("/", "/\u200b"), wraps=True, selectable=True)
            fill(self._facts, column_of(label(name, "faint"), shown, spacing=0))


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
        self.text = ""
        self._path = Path()
        self._paragraphs = QWidget()
        self.results = label("", "dim", wraps=True, selectable=True)
        self.picture = Picture()
        # Figures are drawn for white paper.
        self._paper = Card(self.picture, role="paper", margin=SPACE[1])
        self._sections = QWidget()
        self._whole = Button(
            "Open the whole page", role="link", do=lambda: open_path(self._path, notifications)
        )
        fill(self.column, self._paragraphs, self._paper, self.results, self._sections)
        fill(self.column, (self._whole, 0, Qt.AlignmentFlag.AlignLeft), 1)
        self.show_page(AlgorithmPage(""))

    def show_page(self, page: AlgorithmPage, figure: QImage | None = None) -> None:
        """The page, and its figure if it was read already."""
        self.text = page.text
        paragraphs = column_of(*map(_markdown, filter(None, page.text.split("\n\n"))))
        self._paragraphs = swap(self.column, self._paragraphs, paragraphs)
        self.results.setText("\n".join(page.results))
        self.results.setVisible(bool(page.results))
        self._paper.setVisible(figure is not None)
        if figure is not None:
            self.picture.show_image(figure)
        parts: list[QWidget] = []
        for heading, points in page.sections.items():
            title = label(heading, "strong")
            title.setContentsMargins(0, SPACE[1], 0, 0)
            parts += [title, *map(_markdown, points)]
        self._sections = swap(self.column, self._sections, column_of(*parts, spacing=SPACE[0]))
        self._path = page.path or Path()
        self._whole.setVisible(page.path is not None)


def _markdown(text: str) -> QLabel:
    made = label(text, wraps=True, selectable=True)
    made.setTextFormat(Qt.TextFormat.MarkdownText)
    return made


class FormSide(QFrame):
    """Two pages under two tabs."""

    def __init__(self, notifications: Notifications) -> None:
        super().__init__()
        self.setProperty("role", "panel")
        self.tabs = QTabBar(drawBase=False, expanding=False)
        self.tabs.addTab("About")
        self.tabs.addTab("Result of the check")
        self.about, self.result = AboutView(notifications), ResultView()
        self._pages = stacked(self.about, self.result)
        self.tabs.currentChanged.connect(self._pages.setCurrentIndex)
        margins = (SPACE[4], SPACE[2], SPACE[4], SPACE[4])
        vbox(self.tabs, (self._pages, 1), on=self, margins=margins, spacing=SPACE[2])

    def name_about(self, title: str) -> None:
        """What the first page is about; a long name would push the second tab away."""
        self.tabs.setTabText(ABOUT, title if len(title) <= _LONGEST_TITLE else "About")
        self.tabs.setTabToolTip(ABOUT, tip(title))
