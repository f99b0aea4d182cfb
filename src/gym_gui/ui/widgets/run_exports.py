"""Runs as something for others: a report, a figure, an archive; and an archive of somebody else's runs."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import QFileDialog, QProgressBar, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.theme import SPACE
from gym_gui.ui.widgets.basics import Button, Card, ElidedLabel, fill, hbox, open_path
from mosaic.client import Client, RunRecord
from mosaic.client.groups import defaults_for
from mosaic.contract.errors import ConflictError, MosaicError
from mosaic.contract.outside import bytes_text

T = TypeVar("T")
Progress = Callable[[int, int, str], object]
_WIDTH, _UP, _BESIDE = 420, 48, 472
_KINDS = {
    "report": ("Write a report of", "report.html", "Page (*.html)"),
    "plot": ("Plot the curves of", "curves.svg", "Drawing (*.svg);;Document (*.pdf);;Picture (*.png)"),
    "export": ("Export", "runs.tar.gz", "Archive (*.tar.gz *.tar *.tar.zst)"),
}
"""By the name of what is asked for: the title of the dialog, a file's name, and the kinds of files."""
_ENDING = re.compile(r"\*(\.[\w.]+)")
_ARCHIVES = "Archive (*.tar *.tar.gz *.tgz *.tar.zst *.tzst);;All files (*)"


def with_ending(asked: str, kind: str) -> Path:
    """The file that was asked for; without an ending it gets the first of the kind that was chosen."""
    ending = _ENDING.search(kind)
    return Path(asked if Path(asked).suffix or ending is None else asked + ending[1])


class Stopped(MosaicError):
    """The person has stopped it."""


class WorkCard(Card):
    """What is being done, how far that is, and a way to stop it; in the lower middle of the window."""

    def __init__(self, over: QWidget) -> None:
        super().__init__(role="raised", over=over, lifted=True)
        self._over = over
        self.text = ElidedLabel("", "dim")
        self.bar = QProgressBar(textVisible=False)
        self.stop = Button("Stop")
        fill(self.column, hbox((self.text, 1), self.stop), self.bar)
        self.setFixedWidth(_WIDTH)
        over.installEventFilter(self)
        self.hide()

    def tell(self, done: int, total: int, what: str) -> None:
        self.text.setText(what[:1].upper() + what[1:])
        # Bytes may be more than a bar can count.
        self.bar.setRange(0, 1000 if total else 0)
        self.bar.setValue(done * 1000 // total if total else 0)

    def open(self, what: str) -> None:
        self.tell(0, 0, what)
        self.stop.setEnabled(True)
        self.show()
        self._place()
        self.raise_()

    def _place(self) -> None:
        self.adjustSize()
        # Left of it notifications stand, in the right corner the buttons of forms.
        room = self._over.width() - self.width()
        left = min(max(room // 2, _BESIDE), room - SPACE[2])
        self.move(left, self._over.height() - self.height() - _UP - SPACE[2])

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._over and event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)


class RunExports(QObject):
    """Asks for a file, does the work beside the window, one at a time, and shows what came of it."""

    imported = Signal(str)
    """The first run that is new here."""
    _progress = Signal(int, int, str)

    def __init__(self, context: Context, over: QWidget) -> None:
        super().__init__(over)
        self._context = context
        self._over = over
        self._stopping = threading.Event()
        self.card = WorkCard(over)
        self.card.stop.clicked.connect(self._stop)
        self._progress.connect(self.card.tell)

    def ask(self, kind: str, runs: Sequence[RunRecord]) -> None:
        """Ask where a `report`, a `plot` or an `export` of these runs is to go, and write it."""
        title, usual, filters = _KINDS[kind]
        what = words.title_of(runs[0]) if len(runs) == 1 else f"{len(runs)} runs"
        window = self._over.window()
        asked, chosen = QFileDialog.getSaveFileName(window, f"{title} {what}", usual, filters)
        if asked:
            self.write(kind, runs, with_ending(asked, chosen))

    def write(self, kind: str, runs: Sequence[RunRecord], path: Path) -> None:
        """Write one of these; what others look at is opened when it is there."""
        writers = {"report": self._report, "plot": self._plot, "export": self._export}
        what = {"report": "reads the runs", "plot": "reads the runs", "export": "reads the files"}[kind]
        shown = kind != "export"
        self._begin(what, lambda: writers[kind](runs, path), lambda told: self._written(path, told, shown))

    def ask_import(self) -> None:
        """Ask for an archive, and take its runs in."""
        asked, _ = QFileDialog.getOpenFileName(self._over.window(), "Import runs", "", _ARCHIVES)
        if asked:
            self.take_in(Path(asked))

    def take_in(self, path: Path, as_new: bool = False) -> None:
        """Import an archive; runs that are here already with other files may come under new ids."""

        def work() -> list[str]:
            from mosaic.client.archive import import_archive

            with Client.connect(self._context.link.var) as client:
                return [one.run_id for one in import_archive(client, path, as_new, self._tell) if one.new]

        def done(fresh: list[str]) -> None:
            if not fresh:
                self._context.notifications.tell(f"The runs of {path.name} exist already.")
                return
            what = "1 run is" if len(fresh) == 1 else f"{len(fresh)} runs are"
            self._context.notifications.tell(f"{what} imported from {path.name}.", "good")
            self.imported.emit(fresh[0])

        def failed(error: Exception) -> None:
            if isinstance(error, ConflictError) and not as_new:
                action = ("Import as new", lambda: self.take_in(path, as_new=True))
                self._context.notifications.tell(str(error), "warn", action)
            else:
                self._context.notifications.tell_error(error)

        self._begin("checks the archive", work, done, failed)

    def close(self) -> None:
        """Stop what is being done; the window goes."""
        self._stopping.set()

    def _report(self, runs: Sequence[RunRecord], path: Path) -> str:
        from mosaic.analytics.report import evaluations_of, write_report

        with Client.connect(self._context.link.var) as client:
            evaluations = evaluations_of(client, runs)
        defaults = defaults_for(runs)
        write_report(runs, path, evaluations=evaluations, defaults=defaults, progress=self._tell)
        return ""

    def _plot(self, runs: Sequence[RunRecord], path: Path) -> str:
        from mosaic.analytics.figures import check_figure_path, write_figure
        from mosaic.analytics.report_data import compare_runs
        from mosaic.contract.extras import require_extra

        check_figure_path(path)
        require_extra("plots", "A figure")
        compared = compare_runs(runs, defaults=defaults_for(runs), progress=self._tell)
        self._tell(0, 0, "draws the figure")
        write_figure(compared, path)
        return " ".join(compared.notices)

    def _export(self, runs: Sequence[RunRecord], path: Path) -> str:
        from mosaic.client.archive import export_runs

        with Client.connect(self._context.link.var) as client:
            made = export_runs(client, [run.run_id for run in runs], path, progress=self._tell)
        return f"It has {made.files:,} files, {bytes_text(made.size)}."

    def _written(self, path: Path, told: str, shown: bool) -> None:
        notifications = self._context.notifications
        place = path if shown else path.parent
        action = ("Open" if shown else "Open its folder", lambda: open_path(place, notifications))
        if shown:
            open_path(path, notifications)
        notifications.tell(f"Saved {path}. {told}".strip(), "good", action)

    def _begin(
        self,
        what: str,
        work: Callable[[], T],
        done: Callable[[T], object],
        failed: Callable[[Exception], object] | None = None,
    ) -> None:
        if self.card.isVisible():
            self._context.notifications.tell("Something is being exported or imported: wait, or stop it.")
            return

        def good(result: T) -> None:
            self.card.hide()
            done(result)

        def bad(error: Exception) -> None:
            self.card.hide()
            if isinstance(error, Stopped):
                self._context.notifications.tell("It was stopped, and nothing was written.")
            else:
                (failed or self._context.notifications.tell_error)(error)

        self._stopping.clear()
        self.card.open(what)
        self._context.tasks.run(work, good, bad, owner=self)

    def _tell(self, done: int, total: int, what: str) -> None:
        """Called in the other thread, which ends where this raises."""
        if self._stopping.is_set():
            raise Stopped("It was stopped.")
        self._progress.emit(done, total, what)

    def _stop(self) -> None:
        self._stopping.set()
        self.card.stop.setEnabled(False)
