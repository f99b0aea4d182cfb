"""The middle of the window: the selected run, its head and its tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QStackedWidget, QTabBar, QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import RunFacts, read_facts
from gym_gui.models.words import is_sweep
from gym_gui.services.tasks import timer
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.window import can_evaluate, can_resume, header_words
from gym_gui.ui.run_actions import RunActions
from gym_gui.ui.views.artifacts import ArtifactsView
from gym_gui.ui.views.base import RunView
from gym_gui.ui.views.charts import ChartsView
from gym_gui.ui.views.logs import ConfigView, LogsView
from gym_gui.ui.views.media import MediaView
from gym_gui.ui.views.overview import LiveView, OverviewView
from gym_gui.ui.views.play import PlayView
from gym_gui.ui.views.sweep import SweepView
from gym_gui.ui.views.tensorboard import TensorBoardView
from gym_gui.ui.views.trackers import TrackersView
from gym_gui.ui.widgets.basics import line, vbox
from gym_gui.ui.widgets.run_header import RunHeader
from mosaic.client import RunRecord

RUN_VIEWS = (
    *(SweepView, OverviewView, LiveView, ChartsView, MediaView, TensorBoardView, TrackersView),
    *(LogsView, ConfigView, ArtifactsView, PlayView),
)
"""The tabs of a run, in their order."""
_LOOK_MS = 3000
"""So often a live run is looked at for things to show."""
_LATE_MS = 200
"""So long the files of a run may take to be looked at before it is shown without what they tell."""


class RunPage(QWidget):
    """One run at a time, with buttons for it or for all seeds of its configuration.

    The view of a tab is made when the tab is first open, and works only while it is seen.
    """

    def __init__(self, context: Context, actions: RunActions) -> None:
        super().__init__()
        self._context = context
        self._actions = actions
        self.run: RunRecord | None = None
        self._whole = False
        self._marked: list[RunRecord] = []
        """Where several rows of the list are marked, all of their runs: the buttons are for them."""
        self._facts = RunFacts()
        self._tabs: list[type[RunView]] = []
        self._preferred: type[RunView] | None = None
        """The tab that the person chose last; it may be missing for a while."""
        self._shown: dict[type[RunView], str] = {}
        """Which run each view was last told of."""
        self._entered: RunView | None = None
        self._covered = False
        self.views: dict[type[RunView], RunView] = {}
        self._stack = QStackedWidget()
        self._look = timer(self, _LOOK_MS, self._read_facts)
        self._late = timer(self, _LATE_MS, self._show_tabs, once=True)
        self._make_header()
        self._make_bar()
        head = vbox(self.header, self.bar, margins=(SPACE[4], SPACE[3], SPACE[4], 0), spacing=SPACE[0])
        rule = vbox(line(), margins=(SPACE[4], 0, SPACE[4], 0))
        vbox(head, rule, (self._stack, 1), on=self, spacing=0)

    def _make_header(self) -> None:
        self.header = RunHeader()
        self.header.asked.connect(self._act)
        self.header.seed_chosen.connect(self._choose_seed)
        self.header.label_card.saved.connect(
            lambda before, after: self._actions.label(self._meant(), before, after)
        )
        self.header.push_card.wanted.connect(self._push)

    def _make_bar(self) -> None:
        self.bar = QTabBar()
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setAccessibleName("Tabs of the run")
        self.bar.currentChanged.connect(self._choose_tab)
        for at in range(min(9, len(RUN_VIEWS))):
            shortcut = QShortcut(QKeySequence(f"Ctrl+{at + 1}"), self.bar)
            shortcut.activated.connect(lambda at=at: self.bar.setCurrentIndex(at))

    def show_run(self, run: RunRecord, whole: bool) -> None:
        """Show a run; with `whole` the buttons are for all of its group."""
        other = self.run is None or self.run.run_id != run.run_id
        self.run, self._whole = run, whole
        self._hide_questions()
        if other:
            # The open tab shows nothing of the old run while the tabs of the new one are not known.
            self._rest()
            kind = self._current()
            if kind in self.views:
                self._tell(kind, run)
            self._facts = RunFacts()
            self._late.start()
            self._read_facts()
        self.show_header()

    def update_run(self, run: RunRecord) -> None:
        """The run that is shown has news."""
        moved = self.run is None or self.run.status != run.status
        self.run = run
        self.show_header()
        if self._entered is not None:
            self._entered.update_run(run)
        if moved:
            self._read_facts()

    def show_header(self) -> None:
        """Say anew how the run and its group are."""
        if self.run is not None:
            marked, find = bool(self._marked), self._context.runs.get
            told = header_words(self.run, self._meant(), self._group(), marked, self._facts, find)
            if told.can.removes and is_sweep(self.run):
                ended = sum(one.ended for one in self._all_of(self.run))
                told = replace(told, can=replace(told.can, removes=ended))
            self.header.show_words(told, self.run.run_id)
            if self._entered is not None:
                self._entered.select_runs(self._meant())

    def set_marked(self, runs: Sequence[RunRecord]) -> None:
        """These runs are marked together, and meant by the buttons; none when a single row is."""
        if [run.run_id for run in runs] != [run.run_id for run in self._marked]:
            self._hide_questions()
        self._marked = list(runs)
        self.show_header()

    def _hide_questions(self) -> None:
        self.header.confirm.hide()
        self.header.label_card.hide()
        self.header.push_card.hide()

    def prefill(self, purpose: str) -> dict[str, Any]:
        """What a form for a purpose is to know of the run that is shown; nothing where it cannot use it."""
        run, facts = self.run, self._facts
        if purpose == "hand" and run is not None:
            return {"env_id": run.worker_config.get("env_id")}
        wanted = {"policy": can_evaluate, "resume": can_resume}.get(purpose)
        if run is None or wanted is None or not wanted(run, facts):
            return {}
        return {"run_id": run.run_id, "run_dir": run.run_dir}

    def _meant(self) -> list[RunRecord]:
        """The runs that the buttons are for."""
        if self._marked:
            found = (self._context.runs.get(run.run_id) for run in self._marked)
            return [run for run in found if run is not None]
        assert self.run is not None
        return self._group() if self._whole else [self.run]

    def set_covered(self, covered: bool) -> None:
        """Whether something lies over the page: then nothing in it works."""
        self._covered = covered
        if covered:
            self._look.stop()
            self._rest()
        else:
            self._open_tab()
            self._read_facts()

    def clear(self) -> None:
        """The run that was shown is gone."""
        self._look.stop()
        self._late.stop()
        self._rest()
        self.run = None
        self._shown.clear()

    def close_page(self) -> None:
        """For good."""
        self.clear()
        for view in self.views.values():
            view.close_view()
        self.views.clear()

    def _group(self) -> list[RunRecord]:
        assert self.run is not None
        group = self._context.runs.group_of(self.run.run_id)
        # A sweep looks after its trials itself.
        return list(group.runs.values()) if group and not group.is_sweep else [self.run]

    def _all_of(self, run: RunRecord) -> list[RunRecord]:
        """A run, and of a sweep its trials, which go with it."""
        group = self._context.runs.group_of(run.run_id) if is_sweep(run) and not self._marked else None
        return list(group.runs.values()) if group else self._meant()

    def _read_facts(self) -> None:
        run = self.run
        if run is None:
            return
        if run.ended:
            self._look.stop()
        elif not self._look.isActive():
            self._look.start()
        self._context.tasks.run(
            lambda: read_facts(run), lambda facts: self._take_facts(run.run_id, facts), owner=self
        )

    def _take_facts(self, run_id: str, facts: RunFacts) -> None:
        if self.run is None or self.run.run_id != run_id:
            return
        if facts != self._facts or self._late.isActive():
            self._facts = facts
            self._show_tabs()
            self.show_header()

    def _show_tabs(self) -> None:
        """Have the tabs that make sense for the run; that which was chosen last is open where it is there."""
        self._late.stop()
        if self.run is None:
            return
        wanted: list[type[RunView]] = [kind for kind in RUN_VIEWS if kind.wanted(self.run, self._facts)]
        if wanted != self._tabs:
            with QSignalBlocker(self.bar):
                for at in reversed(range(self.bar.count())):
                    self.bar.removeTab(at)
                for at, kind in enumerate(wanted):
                    self.bar.addTab(kind.title)
                    self.bar.setTabToolTip(at, f"Ctrl+{at + 1}" if at < 9 else "")
                self._tabs = wanted
                self.bar.setCurrentIndex(wanted.index(self._preferred) if self._preferred in wanted else 0)
        for at, kind in enumerate(self._tabs):
            # A lone & would stand for a key.
            self.bar.setTabText(at, kind.title_for(self._facts).replace("&", "&&"))
        self._open_tab()

    def prefer_first(self) -> None:
        """Open the first tab of the next run, not the one that was chosen last."""
        self._preferred = None
        with QSignalBlocker(self.bar):
            self.bar.setCurrentIndex(0)

    def _rest(self) -> None:
        """Let no view work until the next one is entered."""
        if self._entered is not None:
            entered, self._entered = self._entered, None
            entered.leave()

    def _choose_tab(self) -> None:
        self._preferred = self._current()
        self._open_tab()

    def _current(self) -> type[RunView] | None:
        at = self.bar.currentIndex()
        return self._tabs[at] if 0 <= at < len(self._tabs) else None

    def _open_tab(self) -> None:
        """Let the view of the open tab work, and no other."""
        kind = self._current()
        if kind is None or self.run is None or self._covered:
            self._rest()
            return
        if kind not in self.views:
            self.views[kind] = kind(self._context)
            self._stack.addWidget(self.views[kind])
        view = self.views[kind]
        if view is self._entered and self._shown.get(kind) == self.run.run_id:
            return
        self._rest()
        self._tell(kind, self.run)
        self._stack.setCurrentWidget(view)
        self._entered = view
        view.enter()

    def _tell(self, kind: type[RunView], run: RunRecord) -> None:
        """Tell a view of the run, or of its news when it knows of it."""
        known, self._shown[kind] = self._shown.get(kind) == run.run_id, run.run_id
        if known:
            self.views[kind].update_run(run)
        else:
            self.views[kind].show_run(run)
        self.views[kind].select_runs(self._meant())

    def _choose_seed(self, run_id: str) -> None:
        run = self._context.runs.get(run_id)
        if run is not None:
            self.show_run(run, False)

    def _act(self, name: str) -> None:
        """Do what a button of the header says."""
        if self.run is None:
            return
        if name == "label":
            self.header.label_card.ask(self._meant())
        elif name == "push":
            self._actions.ask_push(self.run, self.header.push_card)
        else:
            self._actions.do(name, self.run, self._all_of(self.run) if name == "remove" else self._meant())

    def _push(self, to: str, private: bool) -> None:
        if self.run is not None:
            self._actions.push(self.run, to, private)
