"""What is asked in place before something is done with runs: whether to go on, and what to call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QWidget

from gym_gui.models.labels import Labels, shared_labels
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.header import doable_with, for_all
from gym_gui.ui.widgets.basics import Card, button, label
from mosaic.client import RunRecord


def run_menu(parent: QWidget, runs: Sequence[RunRecord], rows: int, ask: Callable[[str], object]) -> QMenu:
    """What can be done with the chosen runs, for a right click; `ask` is told the name of it."""
    can = doable_with(runs)
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    entries: tuple[tuple[str, str, bool] | None, ...] = (
        ("open", "Open", rows == 1),
        ("compare", f"Compare {len(runs)} runs", len(runs) > 1),
        None,
        ("label", "Name, tags and notes…", True),
        ("again", "Run again" if len(runs) == 1 else f"Run all {len(runs)} again", True),
        ("change", "Run again with changes…", rows == 1),
        None,
        ("first", "Start next", can.waits > 0),
        ("pause", for_all("Pause", can.pauses), can.pausing == "Pause"),
        ("go_on", for_all("Resume", can.pauses), can.pausing == "Resume"),
        ("cancel", f"{for_all('Cancel', can.cancels)}…", can.cancels > 0),
        None,
        ("copy_id", "Copy its id" if len(runs) == 1 else f"Copy {len(runs)} ids", True),
        ("folder", "Open its folder", rows == 1),
        None,
        ("remove", f"{for_all('Remove', can.removes)}…", can.removes > 0),
    )
    for entry in entries:
        if entry is None:
            menu.addSeparator()
        elif entry[2]:
            menu.addAction(entry[1]).triggered.connect(lambda _=False, name=entry[0]: ask(name))
    return menu


class Asking(Card):
    """A card with a row of parts; Esc takes it away."""

    def __init__(self) -> None:
        super().__init__("raised", margin=SPACE[1])
        self.row = QHBoxLayout()
        self.row.setContentsMargins(SPACE[0], 0, 0, 0)
        self.row.setSpacing(SPACE[1])
        self.column.addLayout(self.row)
        self.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)


class Confirm(Asking):
    """Asks once more before something is done that cannot be undone."""

    confirmed = Signal(str)
    """The name of what was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.about = ""
        self._text = label("", wraps=True)
        self.go = button("", role="danger")
        self.keep = button("")
        self.go.clicked.connect(self._confirm)
        self.keep.clicked.connect(self.hide)
        self.row.addWidget(self._text, 1)
        self.row.addWidget(self.go)
        self.row.addWidget(self.keep)

    def ask(self, name: str, count: int, left: int = 0, begun: bool = True) -> None:
        """Ask about `cancel` or `remove`; `left` is how many of the chosen runs it does not concern.

        `begun` tells whether one of those to cancel has trained already.
        """
        what = "this run" if count == 1 else f"these {count:,} runs"
        if name == "remove":
            stay = f" The other {left:,} still live and stay." if left else ""
            text = f"Remove {what} with all files: curves, checkpoints, videos and logs?{stay}"
            self.put(name, text, "Remove for good", "Keep")
        else:
            kept = "What was trained so far is kept, and can be resumed from its checkpoint."
            nothing = "Nothing was trained yet."
            text = f"Cancel {what}? {kept if begun else nothing}"
            go = "Cancel the run" if count == 1 else f"Cancel {count:,} runs"
            self.put(name, text, go, "Let it go on" if count == 1 else "Let them go on")

    def put(self, name: str, text: str, go: str, keep: str) -> None:
        """Ask a question; `go` and `keep` are the answers, of which the second does nothing."""
        self.about = name
        self._text.setText(text)
        self.go.setText(go)
        self.keep.setText(keep)
        self.show()
        self.keep.setFocus()

    def _confirm(self) -> None:
        self.hide()
        self.confirmed.emit(self.about)


class LabelCard(Asking):
    """Name, tags and notes of one run or of many; what is left as it is stays so for each of them."""

    saved = Signal(object, object)
    """The `Labels` before and after."""

    def __init__(self) -> None:
        super().__init__()
        self._before = Labels()
        self.name, self.tags, self.notes = QLineEdit(), QLineEdit(), QLineEdit()
        self.save = button("Save", role="primary")
        self.save.clicked.connect(self._save)
        self.drop = button("Discard")
        self.drop.clicked.connect(self.hide)
        second = QHBoxLayout()
        second.setContentsMargins(SPACE[0], 0, 0, 0)
        second.setSpacing(SPACE[1])
        self.column.addLayout(second)
        named = label("Name", "field")
        noted = label("Notes", "field")
        # Both rows begin at one line.
        for one in (named, noted):
            one.setFixedWidth(noted.sizeHint().width())
        for row, text, field in (
            (self.row, named, self.name),
            (self.row, label("Tags", "field"), self.tags),
            (second, noted, self.notes),
        ):
            field.setAccessibleName(text.text())
            field.returnPressed.connect(self._save)
            row.addWidget(text)
            row.addWidget(field, 1)
        second.addWidget(self.save)
        second.addWidget(self.drop)

    def ask(self, runs: Sequence[RunRecord]) -> None:
        """Show what these runs have in common."""
        self._before = known = shared_labels(runs)
        several = len(runs) > 1
        self.name.setText(known.name or "")
        self.name.setCursorPosition(0)
        self.name.setPlaceholderText("their own names" if several and known.name is None else "")
        self.tags.setText(", ".join(known.tags))
        self.tags.setPlaceholderText("for all of them" if several else "baseline, night")
        self.notes.setText(known.notes or "")
        self.notes.setPlaceholderText("their own notes" if several and known.notes is None else "")
        self.save.setText(f"Save for {len(runs)} runs" if several else "Save")
        self.show()
        self.tags.setFocus()

    def _save(self) -> None:
        self.hide()
        after = Labels.of_texts(self.name.text(), self.tags.text(), self.notes.text(), self._before)
        if after != self._before:
            self.saved.emit(self._before, after)
