"""What a page of the window is, and a tab of the selected run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import RunFacts
from mosaic.client import RunRecord

T = TypeVar("T")


class View(QWidget):
    """Something to look at. Timers and threads run only between `enter` and `leave`."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        self._visible = False
        """Whether it is seen."""

    def enter(self) -> None:
        """It has become visible."""
        self._visible = True

    def leave(self) -> None:
        """It is hidden now."""
        self._visible = False

    def close_view(self) -> None:
        """For good: nothing may stay running."""
        self.leave()


class RunView(View):
    """A tab of the selected run, or a part of one. A run is shown before anybody enters."""

    title: ClassVar[str]
    run: RunRecord

    @classmethod
    def title_for(cls, facts: RunFacts) -> str:
        """What stands on the tab."""
        return cls.title

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        """Whether the tab has something to show: else it does not exist."""
        return True

    def show_run(self, run: RunRecord) -> None:
        """Another run was selected, while the tab is hidden."""
        self.run = run

    def update_run(self, run: RunRecord) -> None:
        """The same run has news."""
        self.run = run

    def select_runs(self, runs: Sequence[RunRecord]) -> None:
        """The runs that the buttons of the page are for: this one, its group, or all that are marked."""

    def read(
        self,
        work: Callable[[RunRecord], T],
        done: Callable[[T], object],
        failed: Callable[[Exception], object] | None = None,
    ) -> None:
        """Read something of the run beside the window; it is dropped when another one is shown by then."""
        run = self.run

        def take(found: T) -> None:
            if self.run.run_id == run.run_id:
                done(found)

        self.context.tasks.run(lambda: work(run), take, failed, owner=self)
