"""Thumbnail curves of the runs that are on the screen: the return over a run's life, in a few points."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue

import numpy as np
from PySide6.QtCore import QObject, Qt, Signal, Slot

from gym_gui.services.tasks import Follower
from mosaic.analytics.event_files import ScalarChunk, Series
from mosaic.analytics.headline import EVALUATION_RETURN, TRAINING_RETURN
from mosaic.client import Client, RunRecord
from mosaic.contract.errors import NotFoundError

POINTS = 40
_BINS = 2 * POINTS
_BULK = 512
"""More points than this at once are averaged in blocks before they are looked at one by one."""
_MEAN_RETURN = "rollout/ep_rew_mean"
_TAGS = (TRAINING_RETURN, _MEAN_RETURN, EVALUATION_RETURN)
_BREATH_SECONDS = 0.002
"""Between two parts of a long history, so that the window's thread gets its turn."""


class Sketch:
    """Means of equally many points each; when they become too many, two become one."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._means: list[float] = []
        self._size = 1
        self._open_sum = 0.0
        self._open_count = 0

    @property
    def last_step(self) -> int:
        return self._steps[-1] if self._steps else -1

    def extend(self, series: Series) -> None:
        """Add points that come after those so far."""
        block = max(1, len(series) // _BULK)
        while self._size < block:
            self._halve()
        values = np.asarray(series.values)[: len(series) // block * block]
        means = np.nanmean(values.reshape(-1, block), axis=1) if block > 1 else values
        for step, value in zip(series.steps[block - 1 :: block], means.tolist(), strict=False):
            self.add(step, value, block)

    def add(self, step: int, value: float, count: int = 1) -> None:
        """Add a value that stands for `count` points."""
        if not math.isfinite(value):
            return
        if self._open_count == 0 and len(self._means) >= _BINS:
            self._halve()
        if self._open_count == 0:
            self._means.append(value)
            self._steps.append(step)
        self._open_sum += value * count
        self._open_count += count
        self._means[-1] = self._open_sum / self._open_count
        self._steps[-1] = step
        if self._open_count >= self._size:
            self._open_sum, self._open_count = 0.0, 0

    def purge(self, step: int) -> None:
        """Forget what was at `step` or later."""
        kept = sum(one < step for one in self._steps)
        del self._steps[kept:], self._means[kept:]
        self._open_sum, self._open_count = 0.0, 0

    def _halve(self) -> None:
        pairs = [self._means[at : at + 2] for at in range(0, len(self._means), 2)]
        self._means = [sum(pair) / len(pair) for pair in pairs]
        self._steps = [self._steps[min(2 * at + 1, len(self._steps) - 1)] for at in range(len(pairs))]
        self._size *= 2
        self._open_sum, self._open_count = 0.0, 0

    def points(self) -> list[float]:
        """The curve, in `POINTS` points or fewer."""
        count = min(POINTS, len(self._means))
        edges = [round(at * len(self._means) / max(1, count)) for at in range(count + 1)]
        return [sum(self._means[a:b]) / (b - a) for a, b in pairwise(edges)]


def sketch_returns(chunks: Iterable[ScalarChunk]) -> Sketch:
    """The return of a run from its scalars: that of the folder that was written to last."""
    sketches: dict[tuple[str, str], Sketch] = {}
    latest: dict[str, str] = {}
    for chunk in chunks:
        for tag in _TAGS:
            if chunk.purge_from is not None and (tag, chunk.source) in sketches:
                sketches[tag, chunk.source].purge(chunk.purge_from)
            if tag in chunk.series:
                sketches.setdefault((tag, chunk.source), Sketch()).extend(chunk.series[tag])
                latest[tag] = chunk.source
    best = next((tag for tag in _TAGS if tag in latest), None)
    return sketches[best, latest[best]] if best else Sketch()


def mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """The mean of several curves, each stretched to the same length."""
    known = [curve for curve in curves if len(curve) > 1]
    if len(known) < 2:
        return list(known[0]) if known else []
    places = np.linspace(0.0, 1.0, POINTS)
    stretched = [np.interp(places, np.linspace(0.0, 1.0, len(curve)), curve) for curve in known]
    mean: list[float] = np.mean(stretched, axis=0).tolist()
    return mean


class Sparklines(QObject):
    """The curve of each run that was asked for. One that lives grows with its headlines."""

    changed = Signal(object)
    """set[str], the ids of the runs."""
    _read = Signal(str, object, bool)

    def __init__(self, var: Path) -> None:
        super().__init__()
        self._sketches: dict[str, Sketch] = {}
        self._curves: dict[str, list[float]] = {}
        self._final: set[str] = set()
        """Runs that had ended when they were read: nothing is added to them any more."""
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._wanted: list[tuple[str, bool]] = []
        self._read.connect(self._keep, Qt.ConnectionType.QueuedConnection)
        self._follower = Follower(var, self._work, "sparklines")
        self._follower.start()

    def curve(self, run_id: str) -> list[float]:
        """The points so far; none before they were read."""
        return self._curves.get(run_id, [])

    def request(self, runs: Iterable[RunRecord]) -> None:
        """These runs are on the screen now: read those that are not known. What was asked for before and is
        not among them has scrolled away, and is not read."""
        wanted = [
            (run.run_id, run.ended)
            for run in runs
            if run.started_at and run.run_id not in (self._final if run.ended else self._sketches)
        ]
        if wanted and wanted != self._wanted:
            self._wanted = wanted
            self._wake.put(None)

    def take(self, run: RunRecord) -> bool:
        """A headline: the curve of a live run grows by it. Gives whether it did."""
        sketch, step = self._sketches.get(run.run_id), run.headline.get("step")
        value = run.headline.get("mean_return")
        if sketch is None or run.run_id in self._final or value is None or not step:
            return False
        if step <= sketch.last_step:
            return False
        sketch.add(step, value)
        self._curves[run.run_id] = sketch.points()
        return True

    def forget(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self._sketches.pop(run_id, None)
            self._curves.pop(run_id, None)
            self._final.discard(run_id)

    @Slot(str, object, bool)
    def _keep(self, run_id: str, sketch: Sketch, final: bool) -> None:
        self._sketches[run_id] = sketch
        self._curves[run_id] = sketch.points()
        if final:
            self._final.add(run_id)
        self.changed.emit({run_id})

    def _work(self, client: Client) -> None:
        while not self._follower.closing:
            while self._wanted and not self._follower.closing:
                run_id, ended = self._wanted[0]
                try:
                    sketch = sketch_returns(_slowly(client.follow_metrics(run_id, follow=False)))
                except NotFoundError:
                    sketch = Sketch()
                # The list may have been replaced while this was read.
                self._wanted = [one for one in self._wanted if one[0] != run_id]
                self._follower.tell(partial(self._read.emit, run_id, sketch, ended))
            self._wake.get()

    def close(self) -> None:
        self._follower.close()
        self._wake.put(None)


def _slowly(chunks: Iterator[ScalarChunk]) -> Iterator[ScalarChunk]:
    for chunk in chunks:
        yield chunk
        time.sleep(_BREATH_SECONDS)
