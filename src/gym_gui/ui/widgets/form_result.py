"""The result of the check beside a form."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.form_check import CheckReport
from gym_gui.ui.widgets.basics import button, label, restyle
from gym_gui.ui.widgets.fields.layouts import ScrollColumn

Fact = tuple[str, str]

_NOTHING = "Nothing was checked yet. “Check only” asks the worker whether this can run, and starts nothing."
_OLD = "Out of date · the form was changed after this check"


class ResultView(ScrollColumn):
    """What the check found: one sentence, then facts; text that can be selected."""

    def __init__(self) -> None:
        super().__init__(margin=0)
        self.headline = label(_NOTHING, "dim", wraps=True, selectable=True)
        self.sentence = label("", wraps=True, selectable=True)
        self.facts: list[Fact] = []
        self._facts = QVBoxLayout()
        self._facts.setSpacing(SPACE[1])
        self._text = ""
        self.copy = button("Copy the result", role="link")
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text))
        self.copy.hide()
        for part in (self.headline, self.sentence):
            self.column.addWidget(part)
        self.column.addLayout(self._facts)
        self.column.addWidget(self.copy, 0, Qt.AlignmentFlag.AlignLeft)
        self.column.addStretch(1)
        self.sentence.hide()

    def show_report(self, report: CheckReport) -> None:
        """Put a result in the place of the last one."""
        self.headline.setText(f"{'✓ Right' if report.ok else '✗ Not yet'} · {report.headline}")
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
        while (item := self._facts.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for name, value in facts:
            fact = QWidget()
            column = QVBoxLayout(fact)
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(0)
            column.addWidget(label(name, "faint"))
            # A path has no blanks to be broken at.
            shown = label(value.replace("/", "/\u200b"), wraps=True, selectable=True)
            column.addWidget(shown)
            self._facts.addWidget(fact)
