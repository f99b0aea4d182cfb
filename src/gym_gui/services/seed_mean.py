"""The mean of the runs that differ from one run in their seeds alone."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from gym_gui.models.charting import ChartOptions, Line
from gym_gui.models.compare import Group
from gym_gui.services.compared_runs import ComparedRuns
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Tasks
from mosaic.client import RunRecord


class SeedMean(QObject):
    """Follows a group of runs and makes one line with a band of them; of a lone run it makes none."""

    ready = Signal(str, object)
    """The metric, and its Line."""

    def __init__(self, link: DaemonLink, tasks: Tasks) -> None:
        super().__init__()
        self._compared = ComparedRuns(link, tasks, self)
        self._compared.ready.connect(self._tell)
        self._states: dict[str, bool] = {}

    @property
    def count(self) -> int:
        """How many runs there are."""
        return len(self._states)

    def follow(self, runs: Sequence[RunRecord]) -> None:
        """Take in these runs from now on; nothing is done when they are the same as before."""
        states = {run.run_id: run.ended for run in runs} if len(runs) > 1 else {}
        if states == self._states:
            return
        self._states = states
        if not states:
            self._compared.close()
            return
        self._compared.open(runs)
        self._compared.show([Group(f"mean of {len(runs)} seeds", tuple(runs), 0)], True)

    def want(self, tag: str | None, options: ChartOptions) -> None:
        """Make the line of this metric."""
        if tag is not None and self._states:
            self._compared.want([tag], options)

    def close(self) -> None:
        self._states = {}
        self._compared.close()

    def _tell(self, lines: dict[str, list[Line]]) -> None:
        for tag, made in lines.items():
            if len(made) == 1 and made[0].trend is not None and self._states:
                self.ready.emit(tag, made[0])
