"""The middle of the window: the selected run, its head and its tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gym_gui.context import Context
from gym_gui.models.facts import RunFacts, read_facts
from gym_gui.theme import SPACE
from gym_gui.ui.presenters.header import can_evaluate, can_resume, header_words
from gym_gui.ui.run_actions import RunActions
from gym_gui.ui.run_tabs import RunTabs
from gym_gui.ui.views.base import RunView
from gym_gui.ui.widgets.basics import line
from gym_gui.ui.widgets.run_header import RunHeader
from mosaic.client import RunRecord

_LOOK_MS = 3000
"""So often a live run is looked at for things to show."""
_LATE_MS = 200
"""So long the files of a run may take to be looked at before it is shown without what they tell."""


class RunPage(QWidget):
    """One run at a time, with buttons for it or for all seeds of its configuration."""

    def __init__(self, context: Context, actions: RunActions, kinds: Sequence[type[RunView]]) -> None:
        super().__init__()
        self._context = context
        self._actions = actions
        self.run: RunRecord | None = None
        self._whole = False
        self._marked: list[RunRecord] = []
        """Where several rows of the list are marked, all of their runs: the buttons are for them."""
        self._facts = RunFacts()
        self.header = RunHeader()
        self.header.asked.connect(self._act)
        self.header.seed_chosen.connect(self._choose_seed)
        self.header.label_card.saved.connect(
            lambda before, after: self._actions.label(self._meant(), before, after)
        )
        self.tabs = RunTabs(context, kinds)
        self.bar, self.views = self.tabs.bar, self.tabs.views
        self._look = QTimer(self, interval=_LOOK_MS)
        self._look.timeout.connect(self._read_facts)
        self._late = QTimer(self, singleShot=True, interval=_LATE_MS)
        self._late.timeout.connect(self._show_tabs)
        self._lay_out()

    def _lay_out(self) -> None:
        head = QVBoxLayout()
        head.setContentsMargins(SPACE[4], SPACE[3], SPACE[4], 0)
        head.setSpacing(SPACE[0])
        head.addWidget(self.header)
        head.addWidget(self.tabs.bar)
        under = QVBoxLayout()
        under.setContentsMargins(SPACE[4], 0, SPACE[4], 0)
        under.addWidget(line())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addLayout(under)
        column.addWidget(self.tabs.stack, 1)

    def show_run(self, run: RunRecord, whole: bool) -> None:
        """Show a run; with `whole` the buttons are for all of its group."""
        other = self.run is None or self.run.run_id != run.run_id
        self.run, self._whole = run, whole
        self.header.confirm.hide()
        self.header.label_card.hide()
        if other:
            self.tabs.expect(run)
            self._facts = RunFacts()
            self._late.start()
            self._read_facts()
        self.show_header()

    def update_run(self, run: RunRecord) -> None:
        """The run that is shown has news."""
        moved = self.run is None or self.run.status != run.status
        self.run = run
        self.show_header()
        self.tabs.update_run(run)
        if moved:
            self._read_facts()

    def show_header(self) -> None:
        """Say anew how the run and its group are."""
        if self.run is not None:
            told = header_words(
                self.run,
                self._meant(),
                self._group(),
                bool(self._marked),
                self._facts,
                self._context.runs.get,
            )
            self.header.show_words(told, self.run.run_id)

    def set_marked(self, runs: Sequence[RunRecord]) -> None:
        """These runs are marked together, and meant by the buttons; none when a single row is."""
        if [run.run_id for run in runs] != [run.run_id for run in self._marked]:
            self.header.confirm.hide()
            self.header.label_card.hide()
        self._marked = list(runs)
        self.show_header()

    def prefill(self, purpose: str) -> dict[str, Any]:
        """What a form for a purpose is to know of the run that is shown; nothing where it cannot use it."""
        run, facts = self.run, self._facts
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
        if covered:
            self._look.stop()
        self.tabs.set_covered(covered)
        if not covered:
            self._read_facts()

    def clear(self) -> None:
        """The run that was shown is gone."""
        self._look.stop()
        self._late.stop()
        self.run = None
        self.tabs.forget()

    def close_page(self) -> None:
        """For good."""
        self.clear()
        self.tabs.close()

    def _group(self) -> list[RunRecord]:
        assert self.run is not None
        group = self._context.runs.group_of(self.run.run_id)
        return list(group.runs.values()) if group else [self.run]

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
        self._late.stop()
        if self.run is not None:
            self.tabs.show_run(self.run, self._facts)

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
        else:
            self._actions.do(name, self.run, self._meant())
