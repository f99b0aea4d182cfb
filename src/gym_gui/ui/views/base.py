"""What a page of the window is, and a tab of the selected run."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import RunFacts
from mosaic.client import RunRecord


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
    """A tab of the selected run."""

    title: ClassVar[str]

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._run: RunRecord | None = None

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        """Whether the tab has something to show: else it does not exist."""
        return True

    @abstractmethod
    def show_run(self, run: RunRecord) -> None:
        """Another run was selected."""

    def update_run(self, run: RunRecord) -> None:
        """The same run has news."""
        self._run = run

    def is_shown(self, run_id: str) -> bool:
        """Whether what was read is about the run that is selected now."""
        return self._run is not None and self._run.run_id == run_id
