"""Thumbnail curves of the runs that are on the screen, read in a thread of their own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from PySide6.QtCore import QObject, Qt, Signal, Slot

from gym_gui.models.sparkline import Sketch, sketch_returns
from gym_gui.services.follower import Follower
from mosaic.analytics.event_files import ScalarChunk
from mosaic.client import Client, RunRecord
from mosaic.contract.errors import NotFoundError

_BREATH_SECONDS = 0.002
"""Between two parts of a long history, so that the window's thread gets its turn."""


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
        wanted = [(run.run_id, run.ended) for run in runs if run.started_at and not self._knows(run)]
        if wanted and wanted != self._wanted:
            self._wanted = wanted
            self._wake.put(None)

    def _knows(self, run: RunRecord) -> bool:
        return run.run_id in (self._final if run.ended else self._sketches)

    def take(self, run: RunRecord) -> bool:
        """A headline: the curve of a live run grows by it. Gives whether it did."""
        sketch, step, value = self._sketches.get(run.run_id), run.headline.get("step"), None
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
