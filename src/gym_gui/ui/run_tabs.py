"""The tabs of the selected run: which there are, and which view works."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QStackedWidget, QTabBar

from gym_gui.context import Context
from gym_gui.models.facts import RunFacts
from gym_gui.ui.views.base import RunView
from mosaic.client import RunRecord


class RunTabs:
    """A bar and a stack. A view is made when its tab is first open, and works only while it is seen."""

    def __init__(self, context: Context, kinds: Sequence[type[RunView]]) -> None:
        self._context = context
        self._kinds = kinds
        self._run: RunRecord | None = None
        self._tabs: list[type[RunView]] = []
        self._preferred: type[RunView] | None = None
        """The tab that the person chose last; it may be missing for a while."""
        self._shown: dict[type[RunView], str] = {}
        """Which run each view was last told of."""
        self._entered: RunView | None = None
        self._covered = False
        self.views: dict[type[RunView], RunView] = {}
        self.stack = QStackedWidget()
        self.bar = QTabBar()
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setAccessibleName("Tabs of the run")
        self.bar.currentChanged.connect(self._choose)
        for number in range(1, len(kinds) + 1):
            shortcut = QShortcut(QKeySequence(f"Ctrl+{number}"), self.bar)
            shortcut.activated.connect(lambda at=number - 1: self.bar.setCurrentIndex(at))

    def show_run(self, run: RunRecord, facts: RunFacts) -> None:
        """Have the tabs that make sense for a run; the one that was chosen last is open where it is there."""
        self._run = run
        wanted = [kind for kind in self._kinds if kind.wanted(run, facts)]
        if wanted != self._tabs:
            self.bar.blockSignals(True)
            for at in reversed(range(self.bar.count())):
                self.bar.removeTab(at)
            for at, kind in enumerate(wanted):
                self.bar.addTab(kind.title)
                self.bar.setTabToolTip(at, f"Ctrl+{at + 1}")
            self._tabs = wanted
            self.bar.setCurrentIndex(wanted.index(self._preferred) if self._preferred in wanted else 0)
            self.bar.blockSignals(False)
        self._open()

    def expect(self, run: RunRecord) -> None:
        """Another run was chosen: the open tab shows nothing of the old one while its tabs are not known."""
        self.rest()
        kind = self._current()
        if kind in self.views and self._shown.get(kind) != run.run_id:
            self._shown[kind] = run.run_id
            self.views[kind].show_run(run)

    def prefer_first(self) -> None:
        """Open the first tab of the next run, not the one that was chosen last."""
        self._preferred = None
        self.bar.blockSignals(True)
        self.bar.setCurrentIndex(0)
        self.bar.blockSignals(False)

    def update_run(self, run: RunRecord) -> None:
        """The run that is shown has news."""
        self._run = run
        if self._entered is not None:
            self._entered.update_run(run)

    def rest(self) -> None:
        """Let no view work until the next run is shown."""
        if self._entered is not None:
            entered, self._entered = self._entered, None
            entered.leave()

    def set_covered(self, covered: bool) -> None:
        """Whether something lies over the tabs: then no view works."""
        self._covered = covered
        if covered:
            self.rest()
        else:
            self._open()

    def forget(self) -> None:
        """The run that was shown is gone."""
        self.rest()
        self._run = None
        self._shown.clear()

    def close(self) -> None:
        """For good."""
        self.forget()
        for view in self.views.values():
            view.close_view()
        self.views.clear()

    def _choose(self, at: int) -> None:
        self._preferred = self._current()
        self._open()

    def _current(self) -> type[RunView] | None:
        at = self.bar.currentIndex()
        return self._tabs[at] if 0 <= at < len(self._tabs) else None

    def _open(self) -> None:
        """Let the view of the open tab work, and no other."""
        kind = self._current()
        if kind is None or self._run is None or self._covered:
            self.rest()
            return
        view, other = self._view(kind), self._shown.get(kind) != self._run.run_id
        if view is self._entered and not other:
            return
        self.rest()
        if other:
            self._shown[kind] = self._run.run_id
            view.show_run(self._run)
        else:
            view.update_run(self._run)
        self.stack.setCurrentWidget(view)
        self._entered = view
        view.enter()

    def _view(self, kind: type[RunView]) -> RunView:
        if kind not in self.views:
            self.views[kind] = kind(self._context)
            self.stack.addWidget(self.views[kind])
        return self.views[kind]
