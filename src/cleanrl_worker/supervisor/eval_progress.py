"""How an evaluation stands, for its supervisor: read from the summary that it writes after each batch."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from mosaic.analytics.eval_summary import FILE_NAME, EvalSummary, read_eval_summary
from mosaic.analytics.headline import EVALUATING
from mosaic.contract.errors import StorageError


class EvalProgress:
    """The summary of one run, read again when it has changed."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._seen: tuple[int, int] | None = None
        self._summary: EvalSummary | None = None
        self._has_news = False

    def _look(self) -> None:
        with contextlib.suppress(OSError, StorageError):
            about = os.stat(self._run_dir / FILE_NAME)
            seen = about.st_ino, about.st_mtime_ns
            if seen != self._seen:
                self._summary = read_eval_summary(self._run_dir)
                self._seen, self._has_news = seen, True

    def take_news(self) -> bool:
        """Whether a batch has ended since this was last asked."""
        news, self._has_news = self._has_news, False
        return news

    def headline(self) -> dict[str, Any]:
        """What it adds to the run's headline; steps are those that were played."""
        self._look()
        if self._summary is None:
            return {}
        overall, target = self._summary.overall, self._summary.target_episodes
        newest = self._summary.batches[-1].as_json()
        seconds = overall.duration_seconds
        return {
            "step": overall.steps,
            "sps": overall.steps / seconds if seconds else None,
            "mean_return": overall.as_json()["mean"],
            "episodes": overall.episodes,
            "progress": min(1.0, overall.episodes / target) if target else None,
            "phase": EVALUATING,
            "evaluation": {**newest, "target_episodes": target},
        }

    def manifest(self) -> dict[str, Any] | None:
        """What the manifest says of it: all episodes together, the newest batch, and what was played."""
        if self._summary is None:
            return None
        return {
            "overall": self._summary.overall.as_json(),
            "newest_batch": self._summary.batches[-1].as_json(),
            "policy": self._summary.policy,
            "summary": str(self._run_dir / FILE_NAME),
        }
