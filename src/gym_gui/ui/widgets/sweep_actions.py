"""What can be done with a sweep: train with what it has found, go on, stop, open Optuna's dashboard on it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.form_state import parse_seeds
from gym_gui.models.sweep import left_to_do
from gym_gui.services.sweeps import Dashboard, go_on, stop, train_with
from gym_gui.theme import SPACE
from gym_gui.ui.run_actions import submit_all
from gym_gui.ui.widgets.basics import Button, fill, hbox, label, open_url, restyle, vbox
from gym_gui.ui.widgets.run_header import Asking, Confirm
from mosaic.client import RunRecord
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.extras import is_installed
from mosaic.contract.numbers import parse_whole
from mosaic.sweeps.configs import spec_of
from mosaic.sweeps.spec import USUAL_TRIALS, SweepSpec
from mosaic.sweeps.study import RUNNING, Study, Trial

_STOP = "stop"
_INSTALL = "optuna-dashboard is not installed: `./mosaic extras install sweeps`."


class BestCard(Asking):
    """With which seeds, and for how long, to train with the parameters of a trial."""

    wanted = Signal(object, object, object)
    """The trial, the seeds, and the steps or None."""

    def __init__(self) -> None:
        super().__init__()
        self.trial: Trial | None = None
        self._used: Sequence[int] = ()
        self.about = label("", "field")
        self.seeds, self.steps = QLineEdit(), QLineEdit()
        self.go = Button("Train", role="primary", do=self._go)
        self.drop = Button("Not now", do=self.hide)
        self.told = label("", "dim", wraps=True)
        for field, name in ((self.seeds, "Seeds"), (self.steps, "Steps")):
            field.setAccessibleName(name)
            field.returnPressed.connect(self._go)
        self.seeds.textChanged.connect(lambda: self._say())
        seeds, steps = label("Seeds", "field"), label("Steps", "field")
        fill(self.row, self.about, 1, seeds, self.seeds, steps, self.steps, self.go, self.drop)
        self.told.setContentsMargins(SPACE[0], 0, 0, 0)
        self.column.addWidget(self.told)

    def ask(self, trial: Trial, what: str, spec: SweepSpec) -> None:
        """Ask about a trial; seeds that the search has not used tell more."""
        self.trial, self._used = trial, spec.seeds
        first = max(spec.seeds) + 1
        self.about.setText(f"Train with {what}")
        self.seeds.setText(f"{first}-{first + 2}")
        self.steps.setText(f"{spec.budget:,}" if spec.budget else "")
        self.steps.setPlaceholderText("as in the sweep")
        self._say()
        self.show()
        self.go.setFocus()

    def _say(self, problem: str = "") -> None:
        text = problem or "The search has not used these seeds, so their results are unbiased."
        if not problem:
            try:
                used = sorted(set(parse_seeds(self.seeds.text())) & set(self._used))
            except UserError:
                used = []
            if used:
                told = words.sentence(words.seeds_text(used))
                text = f"{told} was used by the search: other seeds give an unbiased result."
        self.told.setText(text)
        restyle(self.told, role="error" if problem else "dim")

    def _go(self) -> None:
        try:
            seeds = parse_seeds(self.seeds.text())
            text = self.steps.text().strip()
            steps = parse_whole(text) if text else None
            if steps is not None and steps < 1:
                raise ValueError(text)
        except UserError as error:
            self._say(str(error))
        except ValueError:
            self._say(f"Steps is '{text}', but must be a whole number, such as 500k.")
        else:
            self.hide()
            self.wanted.emit(self.trial, seeds, steps)


class MoreCard(Asking):
    """How many trials more."""

    wanted = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.about = label("", wraps=True)
        self.number = QLineEdit()
        self.number.setAccessibleName("More trials")
        self.number.setMaximumWidth(90)
        self.number.returnPressed.connect(self._go)
        self.go = Button("Go on", role="primary", do=self._go)
        self.drop = Button("Not now", do=self.hide)
        fill(self.row, (self.about, 1), label("Trials", "field"), self.number, self.go, self.drop)

    def ask(self, left: int) -> None:
        """`left` are those of the old budget that have not ended."""
        rest = f" {words.sentence(f'{left:,} of its trials are left.')}" if left else ""
        self.about.setText(f"A new sweep continues with everything that this one has found.{rest}")
        self.number.setText(str(left or USUAL_TRIALS))
        self.show()
        self.number.setFocus()
        self.number.selectAll()

    def _go(self) -> None:
        try:
            number = parse_whole(self.number.text())
        except ValueError:
            number = 0
        restyle(self.number, invalid=number < 1)
        if number >= 1:
            self.hide()
            self.wanted.emit(number)


class SweepActions(QWidget):
    """The buttons, and under them what is asked before something is done."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self.run: RunRecord | None = None
        self._study: Study | None = None
        self._marked: Trial | None = None
        self.train = Button("Train with the best", role="primary", do=self._ask_best)
        self.more = Button("More trials…", do=self._ask_more)
        self.stop = Button("Stop", role="danger", do=self._ask_stop)
        self.look = Button("Open optuna-dashboard", do=self._open_dashboard)
        self.best_card, self.more_card, self.confirm = BestCard(), MoreCard(), Confirm()
        self.best_card.wanted.connect(self._train)
        self.more_card.wanted.connect(self._go_on)
        self.confirm.confirmed.connect(self._stop)
        self.dashboard = Dashboard()
        self.dashboard.opened.connect(self._show_dashboard)
        self.dashboard.failed.connect(self._dashboard_failed)
        self.row = hbox(self.look, self.more, self.stop, self.train)
        vbox(self.row, self.best_card, self.more_card, self.confirm, on=self)

    def show_run(self, run: RunRecord) -> None:
        """Another sweep: nothing that was asked is meant any more."""
        for card in (self.best_card, self.more_card, self.confirm):
            card.hide()
        self.show_state(run, None, None)

    def show_state(self, run: RunRecord, study: Study | None, marked: Trial | None) -> None:
        """Offer what makes sense now; a marked trial is meant instead of the best."""
        self.run, self._study, self._marked = run, study, marked
        trial = self._meant()
        best = study.best if study is not None else None
        self.train.setEnabled(trial is not None)
        other = trial is not None and (best is None or trial.number != best.number)
        self.train.setText(f"Train with trial {trial.number}" if trial and other else "Train with the best")
        several = study is not None and len(study.directions) > 1
        waits = "Mark a trial: with several objectives there is no single best." if several else ""
        if study is not None and study.members:
            waits = "Mark a trial: the best member came by several sets of parameters. Resume its run."
        none = waits or "No trial is complete yet."
        self.train.setToolTip("" if trial is not None else none)
        self.more.setEnabled(study is not None)
        self.stop.setVisible(not run.ended)
        if run.ended and self.confirm.about == _STOP:
            self.confirm.hide()
        self.look.setEnabled(study is not None and not self.dashboard.opening)
        # A population keeps no study of Optuna's, and its steps are part of its schedules; a benchmark
        # searches for nothing.
        searches = study is None or not (study.members or study.benchmark)
        self.look.setVisible(searches)
        self.more.setVisible(run.ended and searches)
        self.train.setVisible(study is None or not study.benchmark)

    def _meant(self) -> Trial | None:
        if self._marked is not None:
            return self._marked
        return self._study.best if self._study is not None and not self._study.members else None

    def _spec(self) -> SweepSpec | None:
        assert self.run is not None
        try:
            return spec_of(self.run)
        except (MosaicError, KeyError, TypeError, ValueError):
            self._context.notifications.tell("The settings of this sweep can no longer be read.", "warn")
            return None

    def _ask_best(self) -> None:
        trial, spec = self._meant(), self._spec()
        if trial is None or spec is None:
            return
        value = f" ({', '.join(map(words.number, trial.values))})" if trial.values else ""
        best = self._study.best if self._study is not None else None
        what = "the best, trial" if best is not None and best.number == trial.number else "trial"
        self.more_card.hide()
        self.best_card.ask(trial, f"{what} {trial.number}{value}", spec)

    def _train(self, trial: Trial, seeds: Sequence[int], steps: int | None) -> None:
        run, link = self.run, self._context.link
        assert run is not None

        def work() -> list[RunRecord]:
            return submit_all(link.client(), train_with(link.client(), run, trial, seeds, steps))

        def done(runs: list[RunRecord]) -> None:
            what = f"{len(runs)} runs are" if len(runs) != 1 else "A run is"
            told = f"{what} queued with the parameters of trial {trial.number}."
            show = ("Show", lambda: self._context.select_run(runs[0].run_id))
            self._context.notifications.tell(told, "good", show)

        self._context.tasks.run(work, done, owner=self)

    def _ask_more(self) -> None:
        if self._study is not None:
            self.best_card.hide()
            self.more_card.ask(left_to_do(self._study))

    def _go_on(self, more: int) -> None:
        run, link = self.run, self._context.link
        assert run is not None

        def done(made: RunRecord) -> None:
            self._context.notifications.tell(f"A new sweep continues with {more:,} more trials.", "good")
            self._context.select_run(made.run_id)

        self._context.tasks.run(lambda: go_on(link.client(), run, more), done, owner=self)

    def _ask_stop(self) -> None:
        live = len(self._study.with_state(RUNNING)) if self._study is not None else 0
        what = f" Its {live} running trials are cancelled." if live > 1 else ""
        what = " Its running trial is cancelled." if live == 1 else what
        text = f"Stop the sweep?{what} Its results are kept, and it can be resumed later."
        self.confirm.put(_STOP, text, "Stop the sweep", "Keep it running")

    def _stop(self, _: str) -> None:
        run, link = self.run, self._context.link
        assert run is not None
        self._context.tasks.run(lambda: stop(link.client(), run), lambda _: None, owner=self)

    def _open_dashboard(self) -> None:
        if not is_installed("sweeps"):
            self._context.notifications.tell(_INSTALL, "warn")
            return
        if self.run is None or self._spec() is None:
            return
        self.look.setText("Starting optuna-dashboard…")
        self.look.setEnabled(False)
        self.dashboard.open(self.run)

    def _show_dashboard(self, address: str) -> None:
        self._reset_look()
        self._context.notifications.tell(f"optuna-dashboard is at {address} until the window closes.")
        open_url(address, self._context.notifications)

    def _dashboard_failed(self, text: str) -> None:
        self._reset_look()
        self._context.notifications.tell(text, "bad")

    def _reset_look(self) -> None:
        self.look.setText("Open optuna-dashboard")
        self.look.setEnabled(True)

    def close_actions(self) -> None:
        """End the dashboard."""
        self.dashboard.close()
