"""What a page of the window is: a tab of the selected run, or one about several runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from gym_gui.models.run_files import RunFacts
from mosaic.client import RunRecord


class View(QWidget):
    """Something to look at. Timers and threads run only between `enter` and `leave`."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    @abstractmethod
    def enter(self) -> None:
        """It has become visible."""

    @abstractmethod
    def leave(self) -> None:
        """It is hidden now."""

    @abstractmethod
    def close_view(self) -> None:
        """For good: nothing may stay running."""


class RunView(View):
    """A tab of the selected run."""

    title: ClassVar[str]

    @staticmethod
    @abstractmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        """Whether the tab has something to show: else it does not exist."""

    @abstractmethod
    def show_run(self, run: RunRecord) -> None:
        """Another run was selected."""

    @abstractmethod
    def update_run(self, run: RunRecord) -> None:
        """The same run has news."""


class RunsView(View):
    """A page about several runs: `CompareView` in `ui/views/compare.py` is one."""

    closed = Signal()
    """The person wants to go back."""

    @abstractmethod
    def show_runs(self, runs: Sequence[RunRecord]) -> None:
        """These runs were chosen."""

    @abstractmethod
    def update_runs(self, runs: Sequence[RunRecord]) -> None:
        """Some of them have news."""
