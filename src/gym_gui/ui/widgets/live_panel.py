"""The live picture of a run with its numbers, for a tab or a card."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from gym_gui.models.hud import Absence, Hud, absence_of, caption, hud_of, staleness
from gym_gui.models.words import is_evaluation
from gym_gui.services.frames import LiveFrames, LiveNews
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import ElidedLabel, NumberLabel, column_of, hbox, label, restyle, stacked, vbox
from gym_gui.ui.widgets.form_install import InstallCard
from gym_gui.ui.widgets.frame_view import FrameView
from mosaic.client import RunRecord
from mosaic.fastlane.reader import SlotStatus

_HUD_SECONDS = 0.25


class LivePanel(QWidget):
    """Looks at a run between `start` and `stop`, and says in words what it sees."""

    def __init__(self, heading: bool = True) -> None:
        super().__init__()
        self._run: RunRecord | None = None
        self.looking = False
        """Whether it looks now."""
        self._told_at = 0.0
        self._state = ""
        self._seen = SlotStatus("waiting")
        self._news: LiveNews | None = None
        self.frames = LiveFrames()
        self.frames.news.connect(self._take)
        self.view = FrameView()
        self.caption = label("", "label")
        self.state = label("", "dim")
        self.batch = ElidedLabel("", "label")
        self._numbers = hbox(spacing=SPACE[0])
        self._values: list[tuple[QLabel, NumberLabel]] = []
        self.absent = label("", "strong", wraps=True)
        self.advice = label("", "dim", selectable=True, wraps=True)
        for text in (self.absent, self.advice):
            text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.install = InstallCard(self)
        self._stack = stacked(
            self.view, column_of(1, self.absent, self.advice, self.install, 1, margins=None)
        )
        title = label("Live", "strong")
        # As high as the head of a chart, beside which it stands.
        title.setMinimumHeight(22)
        head = (hbox(title, 1, self.caption),) if heading else ()
        self._foot = hbox(
            self._numbers, 1, *(() if heading else (self.caption,)), self.state, spacing=SPACE[2]
        )
        vbox(*head, (self._stack, 1), self.batch, self._foot, on=self)
        self.batch.hide()

    def hasHeightForWidth(self) -> bool:
        # The words in place of a picture have; with it the page would be as high as its charts wish to be.
        return False

    def show_run(self, run: RunRecord) -> None:
        """Look at another run."""
        if self._run is None or self._run.run_id != run.run_id:
            self.view.clear()
            self._run, self._seen, self._news = run, SlotStatus("waiting"), None
            self._show_hud(hud_of(run, SlotStatus("waiting"), None))
            if self.looking:
                self.start()
        self.update_run(run)

    def update_run(self, run: RunRecord) -> None:
        """The same run has news."""
        self._run = run
        if self._news is not None and self.view.count:
            # At once, with all other places that show these numbers, not with the next picture.
            self._show_hud(hud_of(run, self._seen, self._news.metrics, self._news.summary))
        if not self.view.count:
            self._say(absence_of(run, SlotStatus("ended") if run.ended else self._seen))

    def start(self) -> None:
        """Look from now on: this is what makes the run render."""
        self.looking = True
        if self._run is not None:
            folder = Path(self._run.run_dir) if is_evaluation(self._run) else None
            self.frames.start(self._run.run_id, self.view.prepare, folder)

    def stop(self) -> None:
        """Look no more; what was seen last stays."""
        self.looking = False
        self.frames.stop()

    def _take(self) -> None:
        news, run = self.frames.take(), self._run
        if news is None or run is None:
            return
        self._news = news
        self._seen = status = SlotStatus("ended", "the run has ended") if run.ended else news.status
        self.view.show_images(news.pictures, staleness(status) if news.pictures else "")
        if news.pictures:
            self._stack.setCurrentIndex(0)
        else:
            self._say(absence_of(run, status))
        # Nobody reads numbers that change with every picture.
        now = time.monotonic()
        if now - self._told_at >= _HUD_SECONDS or status.state != self._state:
            self._told_at, self._state = now, status.state
            self.caption.setText(caption(len(news.pictures), news.frames_per_second))
            self._show_hud(hud_of(run, status, news.metrics, news.summary))

    def _say(self, absence: Absence) -> None:
        self.absent.setText(absence.title)
        self.advice.setText(absence.advice)
        if not self.install.running:
            self.install.offer([absence.missing] if absence.missing else [])
        self._stack.setCurrentIndex(1)

    def _show_hud(self, hud: Hud) -> None:
        while len(self._values) < len(hud.numbers):
            name, value = label("", "label"), NumberLabel("", 13, bold=True)
            if self._values:
                self._numbers.addSpacing(SPACE[2])
            self._numbers.addWidget(name)
            self._numbers.addWidget(value)
            self._values.append((name, value))
        for place, (name_label, value) in enumerate(self._values):
            there = place < len(hud.numbers)
            name_label.setVisible(there)
            value.setVisible(there)
            if there:
                name_label.setText(hud.numbers[place][0])
                value.setText(hud.numbers[place][1])
        self.batch.setText(hud.batch)
        self.batch.setVisible(bool(hud.batch))
        self.state.setText(hud.state)
        restyle(self.state, role=hud.role)
        self._leave_out(len(hud.numbers))

    def _leave_out(self, count: int) -> None:
        """Where there is little room the last numbers give way: half a number would be a wrong one."""
        while count > 1 and self._foot.sizeHint().width() > self.width():
            count -= 1
            for part in self._values[count]:
                part.hide()
            # Else it would tell its old width until the next turn of the event loop.
            self._numbers.invalidate()
            self._foot.invalidate()
