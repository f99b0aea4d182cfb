"""What a page of the window is: a tab of the selected run, or one about several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gym_gui.context import Context
from gym_gui.models.facts import RunFacts
from mosaic.client import RunRecord


class View(QWidget):
    """Something to look at. Timers and threads run only between `enter` and `leave`."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    def enter(self) -> None:
        """It has become visible."""
        raise NotImplementedError

    def leave(self) -> None:
        """It is hidden now."""
        raise NotImplementedError

    def close_view(self) -> None:
        """For good: nothing may stay running."""
        raise NotImplementedError


class RunView(View):
    """A tab of the selected run."""

    title: ClassVar[str]

    @staticmethod
    def wanted(run: RunRecord, facts: RunFacts) -> bool:
        """Whether the tab has something to show: else it does not exist."""
        raise NotImplementedError

    def show_run(self, run: RunRecord) -> None:
        """Another run was selected."""
        raise NotImplementedError

    def update_run(self, run: RunRecord) -> None:
        """The same run has news."""
        raise NotImplementedError


class RunsView(View):
    """A page about several runs: `CompareView` in `ui/views/compare.py` is one."""

    closed = Signal()
    """The person wants to go back."""

    def show_runs(self, runs: Sequence[RunRecord]) -> None:
        """These runs were chosen."""
        raise NotImplementedError

    def update_runs(self, runs: Sequence[RunRecord]) -> None:
        """Some of them have news."""
        raise NotImplementedError
