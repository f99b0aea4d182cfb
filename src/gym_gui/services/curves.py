"""The lines of one run's charts or of several runs, made beside the window as scalars come in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

from gym_gui import log
from gym_gui.models import words
from gym_gui.models.charting import ChartOptions, Line, common_window, line_of, mean_line
from gym_gui.models.run_files import metrics_of
from gym_gui.models.series import Curve, curve_of
from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.tasks import Follower, Tasks, timer
from mosaic.analytics.store import NO_POINTS, MetricSeries, RunMetrics
from mosaic.client import Client, RunRecord
from mosaic.client.groups import Group
from mosaic.contract.errors import NotFoundError

_SIGNAL_MS = 250
_LOOK_SECONDS = 0.5
_FIRST_MS = 30
"""Whoever opens a run waits for its curves."""
_Mark = tuple[MetricSeries, ChartOptions]
"""What a line was made of, and how it is drawn: another mark means another line."""
Made = tuple[list[str], list[str], dict[str, Any]]
"""The names of all metrics, what is wrong with event files, and the lines that were made, by metric."""
_PAUSE_MS = 300
_RETRY_MS = 2000


class LiveMetrics(QObject):
    """Metrics that grow with the run; `changed` comes at most 4 times a second."""

    changed = Signal()
    _news = Signal()

    def __init__(self, link: DaemonLink, run_id: str) -> None:
        super().__init__()
        self.run_id = run_id
        self.metrics: RunMetrics | None = None
        """None before the run's folder was read."""
        self.marks: dict[str, _Mark] = {}
        """What lines were made of, by metric; only who makes them looks at it."""
        self._timer = timer(self, _FIRST_MS, self._tell, once=True)
        self._news.connect(self._begin, Qt.ConnectionType.QueuedConnection)
        self._follower = Follower(link.var, self._follow, f"metrics of {run_id}")
        self._follower.start()

    def _follow(self, client: Client) -> None:
        told = -1
        while not self._follower.closing:
            # Asked first: what was written before the end is found after it.
            run = client.get(self.run_id)
            if self.metrics is None:
                self.metrics = metrics_of(Path(run.run_dir))
            self.metrics.refresh()
            # Others who have the same metrics may have taken in what is new.
            if self.metrics.version != told:
                told = self.metrics.version
                self._follower.tell(self._news.emit)
            if run.ended:
                return
            self._follower.wait(_LOOK_SECONDS)

    @Slot()
    def _begin(self) -> None:
        if not self._follower.closing and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _tell(self) -> None:
        self._timer.setInterval(_SIGNAL_MS)
        self.changed.emit()

    def close(self) -> None:
        """Stop following; the table stays."""
        self._follower.close()
        self._timer.stop()


class LineMaker(QObject):
    """Makes lines beside the window: one work at a time, and another when something has changed meanwhile."""

    tags_changed = Signal(object)
    """list[str], the names of all metrics."""
    problems_changed = Signal(object)
    """list[str], a sentence for each event file that cannot be read to its end."""
    ready = Signal(object)
    """What was made new, by metric."""

    def __init__(self, link: DaemonLink, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link, self._tasks = link, tasks
        self.tags: list[str] = []
        self.problems: list[str] = []
        self._wanted: tuple[str, ...] = ()
        self._options = ChartOptions()
        self._busy = self._again = False
        self._source: object = None
        """What is followed, None for nothing; lines that were made of another are of no use any more."""

    @abstractmethod
    def close(self) -> None:
        """Follow nothing any more."""

    @abstractmethod
    def _work(self) -> Callable[[], Made]:
        """What makes the lines that are wanted now, in another thread."""

    def want(self, tags: Sequence[str], options: ChartOptions) -> None:
        """Make lines of these metrics from now on."""
        self._wanted, self._options = tuple(tags), options
        self._make()

    @Slot()
    def _make(self) -> None:
        source = self._source
        if source is None:
            return
        if self._busy:
            self._again = True
            return
        self._busy = True
        self._tasks.run(self._work(), lambda made: self._made(source, made), self._not_made, owner=self)

    def _made(self, source: object, made: Made) -> None:
        self._busy = False
        tags, problems, lines = made
        if source is self._source:
            if problems != self.problems:
                self.problems = problems
                self.problems_changed.emit(problems)
            if tags != self.tags:
                self.tags = tags
                self.tags_changed.emit(tags)
            if lines:
                self.ready.emit(lines)
        if self._again:
            self._again = False
            self._make()

    def _not_made(self, error: Exception) -> None:
        self._busy = False
        log.fault("curves cannot be drawn", error)


class ChartFeed(LineMaker):
    """Follows one run, and makes a Line of each metric that somebody looks at."""

    def __init__(self, link: DaemonLink, tasks: Tasks) -> None:
        super().__init__(link, tasks)
        self._source: LiveMetrics | None = None
        self._run_id = ""

    def open(self, run_id: str) -> None:
        """Follow a run; what was made of the same one before is kept."""
        self.close()
        if run_id != self._run_id:
            self._run_id, self.tags = run_id, []
            self.problems = []
            self.problems_changed.emit([])
        self._source = LiveMetrics(self._link, run_id)
        self._source.changed.connect(self._make)

    def close(self) -> None:
        """Follow nothing any more."""
        if self._source is not None:
            self._source.close()
            self._source.deleteLater()
            self._source = None

    def _work(self) -> Callable[[], Made]:
        assert self._source is not None
        return partial(_fresh_lines, self._source, self._wanted, self._options)


def _fresh_lines(live: LiveMetrics, wanted: Sequence[str], options: ChartOptions) -> Made:
    metrics = live.metrics
    if metrics is None:
        return [], [], {}
    lines = {}
    for tag in wanted:
        series = metrics.series(tag)
        mark = series, options
        if not len(series) or live.marks.get(tag) == mark:
            continue
        lines[tag], live.marks[tag] = line_of(curve_of(series), options), mark
    return metrics.names, metrics.problems, lines


@dataclass
class _Source:
    """The scalars of one run: read once when it has ended, followed while it lives."""

    metrics: RunMetrics | None = None
    live: LiveMetrics | None = None
    curves: dict[str, tuple[MetricSeries, Curve]] = field(default_factory=dict)
    lines: dict[str, tuple[tuple[Curve, ChartOptions, float], Line]] = field(default_factory=dict)

    def _known(self) -> RunMetrics | None:
        """What was read so far."""
        return self.metrics if self.live is None else self.live.metrics

    def tags(self) -> list[str]:
        metrics = self._known()
        return metrics.names if metrics is not None else []

    def problems(self) -> list[str]:
        metrics = self._known()
        return metrics.problems if metrics is not None else []

    def curve(self, tag: str) -> Curve:
        """A metric; it is the same object until there is more of it."""
        metrics = self._known()
        series = NO_POINTS if metrics is None else metrics.series(tag)
        made = self.curves.get(tag)
        if made is None or made[0] is not series:
            made = self.curves[tag] = series, curve_of(series)
        return made[1]

    def line(self, tag: str, options: ChartOptions, window: float) -> Line:
        """The curve as a line; the same one while nothing has changed."""
        curve = self.curve(tag)
        wanted = curve, options, window
        made = self.lines.get(tag)
        if made is None or made[0] != wanted:
            made = self.lines[tag] = wanted, line_of(curve, options, window=window)
        return made[1]


class ComparedRuns(LineMaker):
    """Holds the scalars of the runs between `open` and `close`, and makes the lines of each metric."""

    progress = Signal(int, int)
    """How many runs were read, of how many."""

    def __init__(self, link: DaemonLink, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(link, tasks, parent)
        self._sources: dict[str, _Source] = {}
        self._waiting: list[RunRecord] = []
        self._groups: list[Group] = []
        self._averaged = True
        self._reading = False
        self._timer = timer(self, _PAUSE_MS, self._make, once=True)
        self._retry = timer(self, _RETRY_MS, self._read_next, once=True)

    def open(self, runs: Sequence[RunRecord]) -> None:
        """Read these runs; those that were read before are kept."""
        self._source = self._sources
        ids = {run.run_id for run in runs}
        for run_id in [known for known in self._sources if known not in ids]:
            self._drop(run_id)
        self._waiting = []
        for run in runs:
            source = self._sources.get(run.run_id)
            if source is not None and (source.live is None or not run.ended):
                continue
            if run.ended:
                self._waiting.append(run)
            else:
                live = LiveMetrics(self._link, run.run_id)
                live.changed.connect(self._timer.start)
                self._sources[run.run_id] = _Source(live=live)
        self._read_next()

    def show(self, groups: Sequence[Group], averaged: bool) -> None:
        """How the runs belong together; with `averaged` each group is one line."""
        self._groups, self._averaged = list(groups), averaged
        self._make()

    def close(self) -> None:
        """Follow nothing any more; what was read of ended runs stays."""
        self._source = None
        self._timer.stop()
        self._retry.stop()
        self._waiting = []
        for run_id in [known for known, source in self._sources.items() if source.live is not None]:
            self._drop(run_id)

    def _drop(self, run_id: str) -> None:
        source = self._sources.pop(run_id)
        if source.live is not None:
            source.live.close()
            source.live.deleteLater()

    def _read_next(self) -> None:
        # One at a time: reading holds the interpreter, and the window needs it too.
        if self._reading or self._source is None:
            return
        total = len(self._waiting) + len(self._sources)
        self.progress.emit(len(self._sources), total)
        if not self._waiting:
            self._make()
            return
        run = self._waiting.pop(0)
        self._reading = True
        self._tasks.run(
            lambda: (run, self._link.client().metrics(run.run_id)),
            self._read,
            lambda error: self._not_read(run, error),
            owner=self,
        )

    def _read(self, found: tuple[RunRecord, RunMetrics]) -> None:
        run, metrics = found
        self._reading = False
        if self._source is not None:
            if run.run_id in self._sources:
                self._drop(run.run_id)
            self._sources[run.run_id] = _Source(metrics)
            self._timer.start()
        self._read_next()

    def _not_read(self, run: RunRecord, error: Exception) -> None:
        log.info(log.Code.STREAM_LOST, f"it cannot be compared now: {error}", run.run_id)
        self._reading = False
        if self._source is None:
            return
        if isinstance(error, NotFoundError):
            self._read_next()
        else:
            # The daemon is away; it comes back.
            self._waiting.append(run)
            self._retry.start()

    def _work(self) -> Callable[[], Made]:
        sources, groups, averaged = dict(self._sources), list(self._groups), self._averaged
        wanted, options = self._wanted, self._options

        def work() -> Made:
            tags = sorted({tag for source in sources.values() for tag in source.tags()})
            problems = [text for source in sources.values() for text in source.problems()]
            lines = {tag: _lines_of(sources, groups, averaged, tag, options) for tag in wanted}
            return tags, problems, lines

        return work


def _lines_of(
    sources: dict[str, _Source], groups: Sequence[Group], averaged: bool, tag: str, options: ChartOptions
) -> list[Line]:
    shown = [run.run_id for group in groups for run in group.runs if run.run_id in sources]
    window = common_window([sources[run_id].curve(tag) for run_id in shown], options)
    lines = []
    for group in groups:
        runs = group.one_for_each_seed if averaged else group.runs
        read = [
            (run, sources[run.run_id].line(tag, options, window)) for run in runs if run.run_id in sources
        ]
        there = [(run, line) for run, line in read if len(line.x)]
        if averaged and len(there) > 1:
            lines.append(mean_line(group.label, group.colour, [line for _, line in there]))
            continue
        for run, line in there:
            seed = words.seeds_text([run.worker_config.get("seed")])
            name = f"{group.label} · {seed}" if len(runs) > 1 and seed else group.label
            lines.append(replace(line, label=name, colour=group.colour))
    return lines


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
