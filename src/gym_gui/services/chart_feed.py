"""The lines of a run's charts, made beside the window as its scalars come in."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot

from gym_gui import log
from gym_gui.models.charting import ChartOptions, Line, line_of
from gym_gui.models.series import curve_of
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.run_metrics import RunMetrics
from gym_gui.services.tasks import Tasks

_Mark = tuple[int, int, float, ChartOptions]
"""How long a metric is, where it ends, and how it is drawn: another mark means another line."""


class ChartFeed(QObject):
    """Follows one run. Only the metrics that somebody looks at are worked on."""

    tags_changed = Signal(object)
    """list[str], the names of all metrics."""
    ready = Signal(object)
    """dict[str, Line], those that are new."""

    def __init__(self, link: DaemonLink, tasks: Tasks) -> None:
        super().__init__()
        self._link = link
        self._tasks = tasks
        self._metrics: RunMetrics | None = None
        self._run_id = ""
        self._tags: list[str] = []
        self._wanted: tuple[str, ...] = ()
        self._options = ChartOptions()
        self._marks: dict[str, _Mark] = {}
        self._busy = False
        self._again = False

    @property
    def tags(self) -> list[str]:
        return self._tags

    def open(self, run_id: str) -> None:
        """Follow a run; what was made of the same one before is kept."""
        self.close()
        if run_id != self._run_id:
            self._run_id, self._tags = run_id, []
        self._marks = {}
        self._metrics = RunMetrics(self._link, run_id)
        self._metrics.changed.connect(self._refresh)

    def want(self, tags: Sequence[str], options: ChartOptions) -> None:
        """Make lines of these metrics from now on."""
        self._wanted, self._options = tuple(tags), options
        self._refresh()

    def close(self) -> None:
        """Follow nothing any more."""
        if self._metrics is not None:
            self._metrics.close()
            self._metrics.deleteLater()
            self._metrics = None

    @Slot()
    def _refresh(self) -> None:
        metrics = self._metrics
        if metrics is None:
            return
        if self._busy:
            self._again = True
            return
        self._busy = True
        wanted, options, marks = self._wanted, self._options, dict(self._marks)
        self._tasks.run(lambda: (metrics, *_work(metrics, wanted, options, marks)), self._done, self._failed)

    def _done(self, result: tuple[RunMetrics, list[str], dict[str, Line], dict[str, _Mark]]) -> None:
        self._busy = False
        metrics, tags, lines, marks = result
        if metrics is self._metrics:
            self._marks |= marks
            if tags != self._tags:
                self._tags = tags
                self.tags_changed.emit(tags)
            if lines:
                self.ready.emit(lines)
        if self._again:
            self._again = False
            self._refresh()

    def _failed(self, error: Exception) -> None:
        self._busy = False
        log.fault("its charts cannot be drawn", error, self._run_id)


def _work(
    metrics: RunMetrics, wanted: Sequence[str], options: ChartOptions, marks: dict[str, _Mark]
) -> tuple[list[str], dict[str, Line], dict[str, _Mark]]:
    with metrics.lock:
        tags = metrics.table.tags()
    lines, news = {}, {}
    for tag in wanted:
        with metrics.lock:
            parts = [part for _, part in metrics.table.parts(tag)]
            if not parts:
                continue
            ends = (sum(map(len, parts)), parts[-1].steps[-1], parts[-1].wall_times[-1])
            mark = (*ends, options)
            if marks.get(tag) == mark:
                continue
            curve = curve_of(metrics.table, tag)
        lines[tag], news[tag] = line_of(curve, options), mark
    return tags, lines, news
