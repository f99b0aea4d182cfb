"""The Sweep tab: what a search has found, live, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QComboBox, QMenu, QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import RunFacts
from gym_gui.models.sweep import (
    LEAST_FOR_IMPORTANCE,
    NOTHING_YET,
    SweepPicture,
    about_trial,
    best_text,
    counts_text,
    may_be_weighed,
)
from gym_gui.models.words import is_sweep, short_id
from gym_gui.services.sweeps import SweepFeed
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import (
    Card,
    ElidedLabel,
    column_of,
    gap_splitter,
    hbox,
    label,
    named,
    scrolled,
    stacked,
    vbox,
)
from gym_gui.ui.widgets.fields.layouts import ChoiceBox
from gym_gui.ui.widgets.overview_charts import Columns
from gym_gui.ui.widgets.sweep_actions import SweepActions
from gym_gui.ui.widgets.sweep_plots import FigurePlot, ImportanceBars, ParallelPlot, TrialChart
from gym_gui.ui.widgets.trial_table import TrialTableView
from mosaic.client import RunRecord
from mosaic.sweeps.study import COMPLETE, Study, Trial

_SLICE_WIDTH = 250
_HALF = 420
_TABLE_SHARE = 0.34


class PlotCard(Card):
    """A chart with its title."""

    def __init__(self, title: str, plot: QWidget) -> None:
        self.title, self.note = label(title, "strong"), ElidedLabel("", "label")
        self.note.setAlignment(Qt.AlignmentFlag.AlignRight)
        super().__init__(hbox(self.title, (self.note, 1)), (plot, 1), spacing=SPACE[0])
        self.plot = plot


class SweepView(RunView):
    """Charts above, the trials below; what is marked in one of them is marked in all."""

    title = "Sweep"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.picture: SweepPicture | None = None
        self._trials: dict[int, Trial] = {}
        self.feed = SweepFeed(context.tasks)
        self.feed.ready.connect(self._take)
        self.feed.weighed.connect(self._show_weights)
        self.counts, self.best = ElidedLabel("", "strong"), ElidedLabel("", "dim")
        self.objective = named(ChoiceBox(), "Objective")
        self.objective.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.objective.activated.connect(self.feed.choose)
        self.objective.hide()
        self._make_charts()
        self.table = TrialTableView()
        self.table.marked.connect(self._mark)
        self.table.opened.connect(self.open_trial)
        self.empty = label(NOTHING_YET, "dim", wraps=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        below = Card((self.table, 1), margin=SPACE[0])
        self.split = gap_splitter(Qt.Orientation.Vertical, scrolled(self._charts), below)
        self._pages = stacked(self.empty, self.split)
        self._laid_out = False
        self._steps: list[Callable[[], object]] = []
        self._making = timer(self, 0, self._make_next)
        self.orders = SweepActions(context)
        self.orders.row.insertWidget(0, self.counts, 1)
        self.orders.row.insertWidget(1, self.objective)
        head = vbox(self.orders, self.best, spacing=SPACE[0])
        edge = (SPACE[4], SPACE[3], SPACE[4], SPACE[2])
        vbox(head, (self._pages, 1), on=self, margins=edge, spacing=SPACE[2])

    def _make_charts(self) -> None:
        self.history, self.intermediate = FigurePlot("History", 210), FigurePlot("Intermediate values", 210)
        self.importance, self.parallel = ImportanceBars(), ParallelPlot()
        self.history_card = PlotCard("History", self.history)
        self.importance_card = PlotCard("Importance", self.importance)
        self.parallel_card = PlotCard("Parameters side by side", self.parallel)
        self.intermediate_card = PlotCard("Intermediate values", self.intermediate)
        self.parallel.fitted.connect(self._say_fitted)
        self.slices: list[FigurePlot] = []
        self.fronts: list[FigurePlot] = []
        self._slice_cards: list[PlotCard] = []
        self._front_cards: list[PlotCard] = []
        self._first = QWidget()
        hbox((self.history_card, 2), (self.importance_card, 1), on=self._first, spacing=SPACE[2])
        self._slice_row = Columns(self._slice_cards, _SLICE_WIDTH, fills=False)
        self._front_row = Columns(self._front_cards, _HALF, fills=True)
        self._front_row.hide()
        self._charts = column_of(
            self._first,
            self._front_row,
            self.parallel_card,
            self._slice_row,
            self.intermediate_card,
            1,
            margins=(0, 0, SPACE[1], 0),
            spacing=SPACE[2],
        )
        for plot in (self.history, self.intermediate, self.parallel):
            self._join(plot)

    def _join(self, plot: TrialChart) -> None:
        """What is clicked in a chart is marked everywhere."""
        plot.about = self._about
        plot.chosen.connect(self.mark)
        plot.opened.connect(self.open_trial)

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        return is_sweep(run)

    def show_run(self, run: RunRecord) -> None:
        super().show_run(run)
        self.picture, self._trials, self._steps = None, {}, []
        self._making.stop()
        self.feed.forget()
        self.objective.clear()
        self.table.mark(None)
        self.empty.setText("Reading…")
        self._pages.setCurrentWidget(self.empty)
        self.orders.show_run(run)
        self._say_head()

    def update_run(self, run: RunRecord) -> None:
        super().update_run(run)
        self.feed.update(run)
        self._say_head()

    def enter(self) -> None:
        super().enter()
        self.feed.open(self.run)
        if self.picture is not None:
            self._making.start()

    def leave(self) -> None:
        super().leave()
        self._making.stop()
        self.feed.close()

    def close_view(self) -> None:
        super().close_view()
        self.orders.close_actions()

    @property
    def study(self) -> Study | None:
        return self.picture.study if self.picture is not None else None

    def _take(self, picture: SweepPicture | None) -> None:
        self.picture = picture
        if picture is None:
            ended = "The sweep has ended before its first trial."
            self.empty.setText(ended if self.run.ended else NOTHING_YET)
            self._pages.setCurrentWidget(self.empty)
            self._say_head()
            return
        study = picture.study
        self._trials = {one.number: one for one in study.trials}
        self._show_objectives(study)
        # Runs on several tasks are not compared with each other.
        for card in (self._first, self.parallel_card, self.intermediate_card):
            card.setVisible(not study.benchmark)
        self.importance_card.setVisible(may_be_weighed(study))
        self.history.show_figure(picture.history)
        self.history_card.note.setText("" if picture.history.empty else picture.history.note)
        self._show_weights(self.feed.weights)
        self._say_head()
        self._pages.setCurrentWidget(self.split)
        if not self._laid_out:
            self._laid_out = True
            rows = round(self.split.height() * _TABLE_SHARE)
            self.split.setSizes([self.split.height() - rows, rows])
        self._steps = self._rest_of(picture)
        self._making.start()

    def _rest_of(self, picture: SweepPicture) -> list[Callable[[], object]]:
        """What is still to be shown, a part at a time: between two of them the window goes on."""
        steps: list[Callable[[], object]] = [
            lambda: self.table.show_study(picture.study),
            partial(self._show_parallel, picture),
        ]
        self._front_row.setVisible(bool(picture.fronts))
        for at in range(max(len(picture.fronts), len(self.fronts))):
            steps.append(partial(self._show_front, picture, at))
        for at in range(max(len(picture.slices), len(self.slices))):
            steps.append(partial(self._show_slice, picture, at))
        return [*steps, partial(self._show_intermediate, picture)]

    def _make_next(self) -> None:
        if self._steps:
            self._steps.pop(0)()
        else:
            self._making.stop()

    @property
    def settled(self) -> bool:
        """Whether all that is known is to be seen."""
        drawn = all(plot.drawn for plot in self._plots() if not plot.visibleRegion().isEmpty())
        return self.picture is not None and not self._steps and drawn

    def _show_parallel(self, picture: SweepPicture) -> None:
        self.parallel.show_parallel(picture.parallel, picture.best)

    def _say_fitted(self, hidden: int) -> None:
        self.parallel_card.note.setText(f"{hidden} more are not shown" if hidden else "")

    def _show_intermediate(self, picture: SweepPicture) -> None:
        self.intermediate.show_figure(picture.intermediate)
        self.intermediate_card.note.setText("" if picture.intermediate.empty else picture.intermediate.note)

    def _show_front(self, picture: SweepPicture, at: int) -> None:
        if at >= len(self.fronts):
            self.fronts.append(FigurePlot("Pareto front", 240))
            self._front_cards.append(PlotCard("Pareto front", self.fronts[at]))
            self._join(self.fronts[at])
        card, there = self._front_cards[at], at < len(picture.fronts)
        if there:
            self.fronts[at].show_figure(picture.fronts[at])
            card.title.setText(picture.fronts[at].title)
            card.note.setText(picture.fronts[at].note)
        self._front_row.arrange(len(picture.fronts), anew=True)
        card.setVisible(there)

    def _show_slice(self, picture: SweepPicture, at: int) -> None:
        fresh = at >= len(self.slices)
        if fresh:
            self.slices.append(FigurePlot("Slice"))
            self._slice_cards.append(PlotCard("", self.slices[at]))
            self._join(self.slices[at])
        card, there = self._slice_cards[at], at < len(picture.slices)
        if there:
            figure = picture.slices[at]
            self.slices[at].show_figure(figure)
            self.slices[at].setAccessibleName(f"Slice of {figure.title}")
            card.title.setText(figure.title)
            card.note.setText("log" if figure.x.log else "")
        self._slice_row.arrange(len(picture.slices), anew=fresh)
        card.setVisible(there)

    def _show_objectives(self, study: Study) -> None:
        names = study.short_objectives
        if [self.objective.itemText(at) for at in range(self.objective.count())] != names:
            self.objective.clear()
            self.objective.addItems(names)
        self.objective.setCurrentIndex(self.picture.objective if self.picture else 0)
        self.objective.setVisible(len(names) > 1)

    def _show_weights(self, weights: dict[str, float] | None) -> None:
        study = self.study
        done = len(study.with_state(COMPLETE)) if study is not None else 0
        if weights is None:
            empty = self.feed.problem
        elif done < LEAST_FOR_IMPORTANCE:
            empty = f"It needs {LEAST_FOR_IMPORTANCE} complete trials; there are {done}"
        elif self.feed.weighing:
            empty = "Computing which parameters matter…"
        else:
            empty = "The trials do not show yet which parameters matter"
        self.importance.show_weights(weights or {}, empty)

    def _say_head(self) -> None:
        study = self.study
        self.counts.setText(counts_text(study) if study is not None else "")
        self.best.setText(best_text(study) if study is not None else "")
        marked = None if self.table.number is None else self._trials.get(self.table.number)
        self.orders.show_state(self.run, study, marked)

    def _about(self, number: int) -> str:
        trial, study = self._trials.get(number), self.study
        return about_trial(study, trial) if trial is not None and study is not None else ""

    def mark(self, number: int) -> None:
        """Mark a trial in the table and in every chart."""
        self.table.mark(number)
        self._mark(number)

    def _mark(self, number: int | None) -> None:
        for plot in self._plots():
            plot.mark(number)
        self._say_head()

    def _plots(self) -> Sequence[TrialChart]:
        return [self.history, self.parallel, self.intermediate, *self.slices, *self.fronts]

    def open_trial(self, number: int) -> None:
        """Show the run of a trial; of several ask which."""
        trial = self._trials.get(number)
        runs = trial.runs if trial is not None else ()
        if len(runs) == 1:
            self.context.select_run(runs[0])
        elif runs:
            menu = QMenu(self)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            for run_id in runs:
                known = self.context.runs.get(run_id)
                seed = known.worker_config.get("seed") if known is not None else None
                env_id = known.worker_config.get("env_id") if known is not None else ""
                told = f"{env_id}, seed {seed}" if known is not None else short_id(run_id)
                menu.addAction(told).triggered.connect(
                    lambda _=False, run_id=run_id: self.context.select_run(run_id)
                )
            menu.popup(QCursor.pos())
