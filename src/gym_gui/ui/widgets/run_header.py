"""The head of the selected run: what it is, how it is, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QVBoxLayout, QWidget

from gym_gui.theme import SPACE
from gym_gui.ui.presenters.header import HeaderWords, for_all
from gym_gui.ui.widgets.basics import Button, button, label, pill, restyle, set_pill
from gym_gui.ui.widgets.elided import ElidedLabel
from gym_gui.ui.widgets.run_asking import Confirm, LabelCard

MENU = (
    ("again", "Run again", ""),
    ("change", "Run again with changes…", ""),
    ("resume_training", "Resume training…", ""),
    ("label", "Name, tags and notes…", "F2"),
    ("folder", "Open its folder", "Ctrl+O"),
    ("copy_id", "Copy its id", "Ctrl+Shift+C"),
    ("remove", "Remove…", "Ctrl+Delete"),
)
"""Name, words and shortcut of each entry behind the three dots."""
_LEAST_META = 120


class RunHeader(QWidget):
    """Says what it is asked for by name: `pause`, `go_on`, `cancel`, `evaluate`, or one of `MENU`."""

    asked = Signal(str)
    seed_chosen = Signal(str)
    """The id of another run of the same group."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ElidedLabel("", "title", middle=True)
        self.title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.state = pill("", "dim")
        self.meta = ElidedLabel("", "dim")
        self.pausing = button("Pause", "Ctrl+P")
        self.pausing.set_compact(True)
        self.pausing.clicked.connect(self._ask_pausing)
        self.cancel = button("Cancel", role="danger")
        self.cancel.clicked.connect(lambda: self.ask("cancel"))
        # It is there from the beginning, so that it never comes to stand where Cancel was a moment ago.
        self.evaluate = button("Evaluate")
        self.evaluate.clicked.connect(lambda: self.asked.emit("evaluate"))
        self.more = button("⋯")
        self.more.setAccessibleName("More")
        self.more.setMenu(self._menu())
        self.reason = label("", "error", selectable=True, wraps=True)
        self._seeds = QHBoxLayout()
        self._seeds.setSpacing(SPACE[0])
        self._shown_seeds: tuple[tuple[str, str], ...] = ()
        self.seed_buttons: dict[str, Button] = {}
        self._pausing: str | None = None
        self._told: HeaderWords | None = None
        self.confirm = Confirm()
        self.confirm.confirmed.connect(self.asked)
        self.labels = ElidedLabel("", "dim")
        self.label_card = LabelCard()
        self._about = QWidget()
        beside = QHBoxLayout(self._about)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(SPACE[1] + 2)
        beside.addWidget(self.state, 0, Qt.AlignmentFlag.AlignVCenter)
        beside.addLayout(self._seeds)
        beside.addWidget(self.meta, 1)
        self._first = QHBoxLayout()
        self._first.setSpacing(SPACE[1] + 2)
        self._first.addWidget(self.title)
        self._first.addWidget(self._about, 1)
        for one in (self.pausing, self.cancel, self.evaluate, self.more):
            self._first.addWidget(one)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(SPACE[1])
        self._column.addLayout(self._first)
        for part in (self.labels, self.reason, self.confirm, self.label_card):
            self._column.addWidget(part)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Where title and state have no room beside each other, the state goes into a line of its own."""
        asked = (self.pausing, self.cancel, self.evaluate, self.more)
        taken = sum(one.sizeHint().width() + self._first.spacing() for one in asked if not one.isHidden())
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
        set_pill(self.state, told.state.word, told.state.role)
        self.meta.setText(told.meta)
        self.labels.setText(told.labels)
        self.labels.setVisible(bool(told.labels))
        self.reason.setText(told.reason)
        restyle(self.reason, role="error" if told.state.role == "bad" else "dim")
        self.reason.setVisible(bool(told.reason))
        self._pausing = told.pausing
        self.pausing.setVisible(told.pausing is not None)
        self.pausing.setText(for_all(told.pausing or "Pause", told.pauses))
        self.cancel.setVisible(told.cancels > 0)
        self.cancel.setText(for_all("Cancel", told.cancels))
        self._told = told
        if self.confirm.about == "cancel" and not told.cancels:
            self.confirm.hide()
        self.evaluate.setVisible(told.plays)
        self.evaluate.setEnabled(told.can_evaluate)
        self.evaluate.setToolTip("" if told.can_evaluate else "It has saved no policy yet.")
        self.entries["again"].setText("Run again" if told.count == 1 else f"Run all {told.count} again")
        self.entries["resume_training"].setEnabled(told.can_resume_training)
        self.entries["remove"].setEnabled(told.removes > 0)
        self.entries["remove"].setText(f"{for_all('Remove', told.removes)}…")
        self._show_seeds(told.seeds, "" if told.count > 1 else run_id)
        self._arrange()

    def offers(self) -> dict[str, str]:
        """What can be asked for now, by name, with the words for it."""
        if not self.isVisible():
            return {}
        pausing = "pause" if self._pausing == "Pause" else "go_on"
        buttons = {pausing: self.pausing, "cancel": self.cancel, "evaluate": self.evaluate}
        found = {name: one.text() for name, one in buttons.items() if one.isVisible() and one.isEnabled()}
        return found | {name: entry.text() for name, entry in self.entries.items() if entry.isEnabled()}

    def ask(self, name: str) -> None:
        """Ask for something as its button does."""
        if name in self.entries:
            self.entries[name].trigger()
        elif name == "cancel" and self._told is not None:
            self.confirm.ask(name, self._told.cancels, begun=self._told.cancels > self._told.waits)
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
        chip = button(seed, role="chip")
        chip.setCheckable(True)
        chip.setToolTip(f"Seed {seed}")
        chip.setAccessibleName(f"Seed {seed}")
        chip.clicked.connect(lambda: self.seed_chosen.emit(run_id))
        self._seeds.addWidget(chip)
        return chip

    def _ask_pausing(self) -> None:
        self.asked.emit("pause" if self._pausing == "Pause" else "go_on")

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
            self.confirm.ask(name, self._told.removes, self._told.count - self._told.removes)
        else:
            self.asked.emit(name)
