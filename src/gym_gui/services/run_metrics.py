"""The scalars of one run, followed while somebody looks."""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from gym_gui.services.daemon_link import DaemonLink
from gym_gui.services.follower import Follower
from mosaic.analytics.table import MetricTable
from mosaic.client import Client

_SIGNAL_MS = 250
_FIRST_MS = 30
"""Whoever opens a run waits for its curves."""


class RunMetrics(QObject):
    """A table that grows with the run, read under `lock`; `changed` comes at most 4 times a second."""

    changed = Signal()
    _news = Signal()

    def __init__(self, link: DaemonLink, run_id: str) -> None:
        super().__init__()
        self.run_id = run_id
        self.lock = threading.Lock()
        self.table = MetricTable()
        self._told = True
        self._timer = QTimer(self, singleShot=True, interval=_FIRST_MS)
        self._timer.timeout.connect(self._tell)
        self._news.connect(self._begin, Qt.ConnectionType.QueuedConnection)
        self._follower = Follower(link.var, self._follow, f"metrics of {run_id}")
        self._follower.start()

    def _follow(self, client: Client) -> None:
        # A stream that begins anew sends all again.
        with self.lock:
            self.table = MetricTable()
        for chunk in client.follow_metrics(self.run_id):
            with self.lock:
                self.table.update([chunk])
                told, self._told = self._told, False
            if told:
                self._follower.tell(self._news.emit)

    @Slot()
    def _begin(self) -> None:
        if not self._follower.closing and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _tell(self) -> None:
        self._timer.setInterval(_SIGNAL_MS)
        with self.lock:
            self._told = True
        self.changed.emit()

    def close(self) -> None:
        """Stop following; the table stays."""
        self._follower.close()
        self._timer.stop()
