"""Taking in what the daemon tells: into the book, the curves, and the notifications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from gym_gui.context import Context
from gym_gui.models import words
from gym_gui.models.run_rows import with_titles
from gym_gui.services.machine import read_usage
from gym_gui.services.sparklines import Sparklines
from mosaic.client import RunRecord

_USAGE_MS = 2000
_TOGETHER_MS = 600
"""Runs that end within so long are told of in one sentence."""
_KINDS = {"completed": "good", "failed": "bad", "timed_out": "bad", "cancelled": "info"}

_WORST = ("bad", "good", "info")


class News(QObject):
    """Keeps the book of runs, and says when one that was seen alive has ended."""

    usage = Signal(object)

    def __init__(self, context: Context, sparklines: Sparklines) -> None:
        super().__init__()
        self._context = context
        self._sparklines = sparklines
        self._timer = QTimer(self, interval=_USAGE_MS)
        self._timer.timeout.connect(self._read_usage)
        self._timer.start()
        self._ended: list[RunRecord] = []
        self._telling = QTimer(self, singleShot=True, interval=_TOGETHER_MS)
        self._telling.timeout.connect(self._tell_ends)
        self._read_usage()

    def take(self, records: Sequence[RunRecord]) -> set[str]:
        """Take runs in; gives the groups that changed."""
        for run in records:
            before = self._context.runs.get(run.run_id)
            if before is not None and run.ended and not before.ended:
                self._ended.append(run)
                self._telling.start()
            self._sparklines.take(run)
        return self._context.runs.update(records)

    def forget(self, run_ids: Iterable[str]) -> set[str]:
        ids = list(run_ids)
        self._sparklines.forget(ids)
        return self._context.runs.remove(ids)

    def again_words(self) -> str | None:
        """What `Train again` would train; None when it cannot know."""
        kept = self._context.settings.get("last_configs")
        if kept:
            asked = kept[0]["metadata"]["worker"]["config"]
            seeds = {one["metadata"]["worker"]["config"].get("seed") for one in kept}
            several = f", {len(seeds)} seeds" if len(seeds) > 1 else ""
            return f"{asked.get('algo')} on {asked.get('env_id')}{several}"
        return "The newest training" if len(self._context.runs) else None

    def close(self) -> None:
        self._timer.stop()
        self._telling.stop()

    def _tell_ends(self) -> None:
        ended, self._ended = self._ended, []
        if len(ended) == 1:
            self._tell_end(ended[0])
            return
        counts = Counter(words.state_of(run).word.lower() for run in ended)
        told = ", ".join(f"{count} {state}" for state, count in counts.most_common())
        worst = min(ended, key=lambda run: _WORST.index(_KINDS.get(run.outcome or "", "info")))
        kind = _KINDS.get(worst.outcome or "", "info")
        action = ("Show", lambda: self._context.select_run(worst.run_id))
        self._context.notifications.tell(f"{len(ended)} runs ended: {told}.", kind, action, aside=True)

    def _tell_end(self, run: RunRecord) -> None:
        outcome = run.outcome or ""
        state = words.state_of(run).word.lower()
        value = run.headline.get("mean_return")
        text = f"{words.title_of(run)} {state}"
        if outcome == "completed" and value is not None:
            text += f" with a return of {words.number(value)}"
        elif outcome in ("failed", "timed_out") and run.reason:
            text += f": {with_titles(run.reason, self._context.runs.get).rstrip('.')}"
        action = ("Show", lambda: self._context.select_run(run.run_id))
        self._context.notifications.tell(f"{text}.", _KINDS.get(outcome, "info"), action, aside=True)

    def _read_usage(self) -> None:
        self._context.tasks.run(read_usage, self.usage.emit, lambda _: None, owner=self)
