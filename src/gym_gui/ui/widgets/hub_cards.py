"""Models to and from the Hugging Face hub: what is asked before one goes, and where one is got."""

from __future__ import annotations

import json
import sys
from pathlib import Path, PurePath

from PySide6.QtCore import QProcess, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from gym_gui.models import words
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import Button, Card, PassingCard, fill, hbox, label, restyle
from mosaic.client import RunRecord
from mosaic.contract.errors import UserError
from mosaic.hub.account import parse_repo, usual_name
from mosaic.hub.uploads import Upload, check_target

_WIDTH = 560


class PushCard(PassingCard):
    """Where the model of a run goes."""

    wanted = Signal(str, bool)
    """USER/MODEL or nothing for the usual name, and whether nobody else may see it."""

    def __init__(self) -> None:
        super().__init__(role="raised", margin=SPACE[1])
        self.name = QLineEdit()
        self.name.setAccessibleName("Name on Hugging Face")
        self.name.returnPressed.connect(self._go)
        self.private = QCheckBox("Private")
        self.go = Button("Upload", role="primary", do=self._go)
        self.drop = Button("Discard", do=self.hide)
        self.told = label("", "dim", wraps=True)
        row = hbox(margins=(SPACE[0], 0, 0, 0))
        fill(row, label("To Hugging Face as", "field"), (self.name, 1), self.private, self.go, self.drop)
        self.column.addLayout(row)
        self.told.setContentsMargins(SPACE[0], 0, 0, 0)
        self.column.addWidget(self.told)
        self.hide()

    def ask(self, run: RunRecord, before: Upload | None) -> None:
        """Ask about a run; `before` is its newest upload."""
        asked = run.worker_config
        entity = (asked.get("extras") or {}).get("hf_entity")
        exp_name = ((asked.get("extras") or {}).get("algo_params") or {}).get("exp_name")
        algo = PurePath(str(asked.get("algo"))).stem
        usual = usual_name(str(asked.get("env_id")), str(exp_name or algo), asked.get("seed"))
        self.name.setText(before.repo if before is not None and "/" in before.repo else "")
        self.name.setPlaceholderText(f"{entity or 'you'}/{usual}")
        self._usual = f"{entity}/" if entity else ""
        self._say("Weights, parameters, scores, curves, a video where there is one, and a page about it.")
        self.show()
        self.name.setFocus()

    def _say(self, text: str, wrong: bool = False) -> None:
        self.told.setText(text)
        restyle(self.told, role="error" if wrong else "dim")

    def _go(self) -> None:
        try:
            to = check_target(self.name.text().strip())
        except UserError as error:
            self._say(str(error), wrong=True)
            return
        self.hide()
        self.wanted.emit(to or self._usual, self.private.isChecked())


class PullCard(Card):
    """A model is fetched by a process of its own, so that the window never waits; Esc takes the card away."""

    evaluation_wanted = Signal(str)
    """The file of a model that was fetched."""

    def __init__(self, over: QWidget, var: Path) -> None:
        super().__init__(over=over, lifted=True, margin=SPACE[3])
        self._over, self._var = over, var
        self._path = ""
        self._process: QProcess | None = None
        self.name = QLineEdit()
        self.name.setPlaceholderText("USER/MODEL, or the address of its page")
        self.name.setAccessibleName("Model on Hugging Face")
        self.name.returnPressed.connect(self._get)
        self.revision = QLineEdit()
        self.revision.setPlaceholderText("newest")
        self.revision.setAccessibleName("Branch, tag or commit")
        self.revision.setMaximumWidth(120)
        self.revision.returnPressed.connect(self._get)
        self.get = Button("Get", role="primary", do=self._get)
        self.close_card = Button("Close", do=self.leave)
        self.evaluate = Button("Evaluate it", do=self._open)
        self.told = label("", "dim", selectable=True, wraps=True)
        fields = hbox((self.name, 1), self.revision)
        buttons = hbox(1, self.evaluate, self.get, self.close_card)
        fill(self.column, label("Get a model from Hugging Face", "strong"), fields, self.told, buttons)
        self.hide()

    def open(self) -> None:
        """Show it in the upper middle of the window."""
        if self._process is None:
            self._say("Models that were uploaded from here, and CleanRL's own. No code in them is executed.")
            self.evaluate.hide()
        self.setFixedWidth(min(_WIDTH, self._over.width() - 2 * SPACE[4]))
        self.adjustSize()
        self.move((self._over.width() - self.width()) // 2, 64)
        self.show()
        self.raise_()
        self.name.setFocus()
        self.name.selectAll()

    def leave(self) -> None:
        """Take it away. What is being fetched is dropped, and nothing of it stays."""
        if self._process is not None:
            process, self._process = self._process, None
            process.finished.disconnect()
            process.terminate()
            if not process.waitForFinished(2000):
                process.kill()
                process.waitForFinished()
            self._busy(False)
        self.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
        else:
            super().keyPressEvent(event)

    def _say(self, text: str, wrong: bool = False) -> None:
        self.told.setText(text)
        restyle(self.told, role="error" if wrong else "dim")
        self.adjustSize()

    def _busy(self, busy: bool) -> None:
        self.get.setEnabled(not busy)
        self.name.setEnabled(not busy)
        self.revision.setEnabled(not busy)

    def _get(self) -> None:
        self.evaluate.hide()
        try:
            repo = parse_repo(self.name.text())
        except UserError as error:
            self._say(str(error), wrong=True)
            return
        self._busy(True)
        self._say(f"Fetching {repo} …")
        self._process = QProcess(self)
        self._process.finished.connect(self._finished)
        command = ["-P", "-m", "mosaic.hub.models", repo, str(self._var), self.revision.text().strip()]
        self._process.start(sys.executable, command)

    def _finished(self) -> None:
        process, self._process = self._process, None
        self._busy(False)
        if process is None:
            return
        try:
            told = json.loads(bytes(process.readAllStandardOutput().data()).decode())
        except ValueError:
            last = bytes(process.readAllStandardError().data()).decode(errors="replace").strip().splitlines()
            told = {"error": f"It could not be downloaded: {(last or ['no reason is given'])[-1]}"}
        process.deleteLater()
        if "error" in told:
            self._say(str(told["error"]), wrong=True)
            return
        mean, step, seed = told["mean_return"], told["step"], told["seed"]
        known = (
            f"{told['algo'] or '?'} on {told['env_id'] or '?'}",
            "" if seed is None else f"seed {seed}",
            "" if step is None else f"{words.short_steps(step)} steps",
            "" if mean is None else f"mean return {words.number(mean)}",
        )
        self._path = str(told["path"])
        self._say(
            f"{told['repo']} is here: {', '.join(filter(None, known))}. The forms list it among the policies."
        )
        self.evaluate.show()
        self.adjustSize()

    def _open(self) -> None:
        self.hide()
        self.evaluation_wanted.emit(self._path)
