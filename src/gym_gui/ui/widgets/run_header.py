"""The head of the selected run: what it is, how it is, what can be done with it and is asked before that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QLineEdit, QMenu, QPlainTextEdit, QSizePolicy, QWidget

from gym_gui.models.words import is_evaluation
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.window import HeaderWords, Labels, doable_with, for_all, shared_labels
from gym_gui.ui.widgets.basics import (
    Button,
    ElidedLabel,
    PassingCard,
    fill,
    hbox,
    label,
    named,
    restyle,
    vbox,
)
from gym_gui.ui.widgets.hub_cards import PushCard
from mosaic.client import RunRecord

MENU = (
    ("again", "Run again", ""),
    ("change", "Run again with changes…", ""),
    ("resume_training", "Resume training…", ""),
    ("label", "Name, tags and notes…", "F2"),
    ("folder", "Open its folder", "Ctrl+O"),
    ("copy_id", "Copy its id", "Ctrl+Shift+C"),
    ("report", "Report…", ""),
    ("plot", "Plot…", ""),
    ("export", "Export…", ""),
    ("push", "Upload to Hugging Face…", ""),
    ("remove", "Remove…", "Ctrl+Delete"),
)
"""Name, words and shortcut of each entry behind the three dots."""
_LEAST_META = 120
_MOST_LINES = 6


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
        ("report", "Report…", True),
        ("plot", "Plot…", True),
        ("export", "Export…", all(run.ended for run in runs)),
        ("push", "Upload to Hugging Face…", rows == 1 and runs[0].ended and not is_evaluation(runs[0])),
        None,
        ("remove", f"{for_all('Remove', can.removes)}…", can.removes > 0),
    )
    for entry in entries:
        if entry is None:
            menu.addSeparator()
        elif entry[2]:
            menu.addAction(entry[1]).triggered.connect(lambda _=False, name=entry[0]: ask(name))
    return menu


class Asking(PassingCard):
    """A row of parts that is there while something is asked."""

    def __init__(self) -> None:
        super().__init__(role="raised", margin=SPACE[1])
        self.row = hbox(margins=(SPACE[0], 0, 0, 0))
        self.column.addLayout(self.row)
        self.hide()


class Confirm(Asking):
    """Asks once more before something is done that cannot be undone."""

    confirmed = Signal(str)
    """The name of what was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.about = ""
        self._text = label("", wraps=True)
        self.go = Button("", role="danger", do=self._confirm)
        self.keep = Button("", do=self.hide)
        fill(self.row, (self._text, 1), self.go, self.keep)

    def ask(self, name: str, count: int, left: int = 0, begun: bool = True) -> None:
        """Ask about `cancel` or `remove`; `left` is how many of the chosen runs it does not concern.

        `begun` tells whether one of those to cancel has trained already.
        """
        what = "this run" if count == 1 else f"these {count:,} runs"
        if name == "remove":
            stay = f" The other {left:,} are still live and stay." if left else ""
            text = f"Remove {what} with all files: curves, checkpoints, videos and logs?{stay}"
            self.put(name, text, "Remove permanently", "Keep")
        else:
            kept = "The training so far is kept and can be resumed from its checkpoint."
            nothing = "Nothing has been trained yet."
            text = f"Cancel {what}? {kept if begun else nothing}"
            go = "Cancel the run" if count == 1 else f"Cancel {count:,} runs"
            self.put(name, text, go, "Keep it running" if count == 1 else "Keep them running")

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
        self.name, self.tags, self.notes = QLineEdit(), QLineEdit(), QPlainTextEdit()
        self.notes.setTabChangesFocus(True)
        self.notes.textChanged.connect(self._fit_notes)
        self.save = Button("Save", role="primary", do=self._save)
        self.drop = Button("Discard", do=self.hide)
        second = hbox(margins=(SPACE[0], 0, 0, 0))
        self.column.addLayout(second)
        named, tagged, noted = (label(text, "field") for text in ("Name", "Tags", "Notes"))
        # Both rows begin at one line.
        for one in (named, noted):
            one.setFixedWidth(noted.sizeHint().width())
        for text, field in ((named, self.name), (tagged, self.tags), (noted, self.notes)):
            field.setAccessibleName(text.text())
            if isinstance(field, QLineEdit):
                field.returnPressed.connect(self._save)
            fill(second if field is self.notes else self.row, text, (field, 1))
        keys = QShortcut(QKeySequence("Ctrl+Return"), self.notes)
        keys.setContext(Qt.ShortcutContext.WidgetShortcut)
        keys.activated.connect(self._save)
        fill(second, self.save, self.drop)
        self._fit_notes()

    def ask(self, runs: Sequence[RunRecord]) -> None:
        """Show what these runs have in common."""
        self._before = known = shared_labels(runs)
        several = len(runs) > 1
        self.name.setText(known.name or "")
        self.name.setCursorPosition(0)
        self.name.setPlaceholderText("their own names" if several and known.name is None else "")
        self.tags.setText(", ".join(known.tags or ()))
        self.tags.setPlaceholderText("for all of them" if several else "baseline, night")
        self.notes.setPlainText(known.notes or "")
        own = "their own notes" if several and known.notes is None else "one line or several"
        self.notes.setPlaceholderText(f"{own}; Ctrl+Enter saves")
        self.save.setText(f"Save for {len(runs)} runs" if several else "Save")
        self.show()
        self.tags.setFocus()

    def _fit_notes(self) -> None:
        """As high as what is written, up to some lines."""
        lines = min(max(1, self.notes.document().blockCount()), _MOST_LINES)
        room = self.name.sizeHint().height() - self.name.fontMetrics().lineSpacing()
        margins = 2 * round(self.notes.document().documentMargin())
        self.notes.setFixedHeight(lines * self.notes.fontMetrics().lineSpacing() + room + margins)

    def _save(self) -> None:
        self.hide()
        after = Labels.of_texts(self.name.text(), self.tags.text(), self.notes.toPlainText(), self._before)
        if after != self._before:
            self.saved.emit(self._before, after)


class RunHeader(QWidget):
    """Says what it is asked for by name: `pause`, `go_on`, `cancel`, `evaluate`, or one of `MENU`."""

    asked = Signal(str)
    seed_chosen = Signal(str)
    """The id of another run of the same group."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ElidedLabel("", "title", middle=True)
        self.title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.state = label()
        self.state.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.state.setProperty("pill", "dim")
        self.meta = ElidedLabel("", "dim")
        self.pausing = Button("Pause", "Ctrl+P", do=lambda: self.asked.emit(self._pausing))
        self.pausing.set_compact(True)
        self.cancel = Button("Cancel", role="danger", do=lambda: self.ask("cancel"))
        # It is there from the beginning, so that it never comes to stand where Cancel was a moment ago.
        self.evaluate = Button("Evaluate", do=lambda: self.asked.emit("evaluate"))
        self.more = named(Button("⋯"), "More")
        self.more.setMenu(self._menu())
        self.reason = label("", "error", selectable=True, wraps=True)
        self._seeds = hbox(spacing=SPACE[0])
        self._shown_seeds: tuple[tuple[str, str], ...] = ()
        self.seed_buttons: dict[str, Button] = {}
        self._told: HeaderWords | None = None
        self.confirm = Confirm()
        self.confirm.confirmed.connect(self.asked)
        self.labels = ElidedLabel("", "dim")
        self.label_card, self.push_card = LabelCard(), PushCard()
        self._about, spacing = QWidget(), SPACE[1] + 2
        state = (self.state, 0, Qt.AlignmentFlag.AlignVCenter)
        hbox(state, self._seeds, (self.meta, 1), on=self._about, spacing=spacing)
        self._buttons = (self.pausing, self.cancel, self.evaluate, self.more)
        self._first = hbox(self.title, (self._about, 1), *self._buttons, spacing=spacing)
        self._column = vbox(
            self._first, self.labels, self.reason, self.confirm, self.label_card, self.push_card, on=self
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Where title and state have no room beside each other, the state goes into a line of its own."""
        shown = [one for one in self._buttons if not one.isHidden()]
        taken = sum(one.sizeHint().width() + self._first.spacing() for one in shown)
        wanted = self.title.sizeHint().width() + self._about.minimumSizeHint().width() + _LEAST_META
        below = wanted + taken > self.width()
        if below != (self._first.indexOf(self._about) < 0):
            if below:
                self._first.insertStretch(1, 1)
                self._column.insertWidget(1, self._about)
            else:
                self._first.takeAt(1)
                self._first.insertWidget(1, self._about, 1)

    def show_words(self, told: HeaderWords, run_id: str) -> None:
        self.title.setText(told.title)
        self.state.setText(told.state.word)
        restyle(self.state, pill=told.state.role)
        self.meta.setText(told.meta)
        self.labels.setText(told.labels)
        self.labels.setVisible(bool(told.labels))
        self.reason.setText(told.reason)
        restyle(self.reason, role="error" if told.state.role == "bad" else "dim")
        self.reason.setVisible(bool(told.reason))
        self.pausing.setVisible(told.can.pausing is not None)
        self.pausing.setText(for_all(told.can.pausing or "Pause", told.can.pauses))
        self.cancel.setVisible(told.can.cancels > 0)
        self.cancel.setText(for_all("Cancel", told.can.cancels))
        self._told = told
        if self.confirm.about == "cancel" and not told.can.cancels:
            self.confirm.hide()
        self.evaluate.setVisible(told.plays)
        self.evaluate.setEnabled(told.can_evaluate)
        self.evaluate.setToolTip("" if told.can_evaluate else "It has saved no policy yet.")
        self.entries["again"].setText("Run again" if told.count == 1 else f"Run all {told.count} again")
        for name in ("resume_training", "push"):
            self.entries[name].setEnabled(told.can_resume_training)
        self.entries["remove"].setEnabled(told.can.removes > 0)
        self.entries["export"].setEnabled(told.can.removes >= told.count)
        self.entries["remove"].setText(f"{for_all('Remove', told.can.removes)}…")
        self._show_seeds(told.seeds, "" if told.count > 1 else run_id)
        self._arrange()

    @property
    def _pausing(self) -> str:
        """The name of what the button asks for."""
        return "pause" if self._told is not None and self._told.can.pausing == "Pause" else "go_on"

    def offers(self) -> dict[str, str]:
        """What can be asked for now, by name, with the words for it."""
        if not self.isVisible():
            return {}
        buttons = {self._pausing: self.pausing, "cancel": self.cancel, "evaluate": self.evaluate}
        found = {name: one.text() for name, one in buttons.items() if one.isVisible() and one.isEnabled()}
        return found | {name: entry.text() for name, entry in self.entries.items() if entry.isEnabled()}

    def ask(self, name: str) -> None:
        """Ask for something as its button does."""
        if name in self.entries:
            self.entries[name].trigger()
        elif name == "cancel" and self._told is not None:
            can = self._told.can
            self.confirm.ask(name, can.cancels, begun=can.cancels > can.waits)
        else:
            self.asked.emit(name)

    def _show_seeds(self, seeds: tuple[tuple[str, str], ...], run_id: str) -> None:
        if seeds != self._shown_seeds:
            for old in self.seed_buttons.values():
                old.deleteLater()
            self.seed_buttons = {one: self._seed_button(one, seed) for one, seed in seeds}
            self._shown_seeds = seeds
        for one, chip in self.seed_buttons.items():
            chip.setChecked(one == run_id)

    def _seed_button(self, run_id: str, seed: str) -> Button:
        chip = Button(seed, role="chip", do=lambda: self.seed_chosen.emit(run_id), checkable=True)
        chip.setToolTip(f"Seed {seed}")
        self._seeds.addWidget(named(chip, f"Seed {seed}"))
        return chip

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        self.entries: dict[str, QAction] = {}
        for name, text, shortcut in MENU:
            if name == "remove":
                menu.addSeparator()
            action = QAction(text, self)
            action.setShortcut(QKeySequence(shortcut))
            action.triggered.connect(lambda _=False, name=name: self._chosen(name))
            menu.addAction(action)
            self.addAction(action)
            self.entries[name] = action
        return menu

    def _chosen(self, name: str) -> None:
        if name == "remove" and self._told is not None:
            self.confirm.ask(name, self._told.can.removes, max(0, self._told.count - self._told.can.removes))
        else:
            self.asked.emit(name)
