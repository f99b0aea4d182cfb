"""How far a curriculum has come, told from the event files that its run writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cleanrl_worker.curriculum.schedule import Counts, Schedule
from mosaic.analytics.event_files import ScalarChunk
from mosaic.analytics.event_files.parser import Series
from mosaic.analytics.headline import EpisodeLog

STAGE_TAG, STEPS_TAG = "curriculum/stage", "curriculum/steps"


class StageProgress:
    """Follows the stages of one run; its memory does not grow."""

    def __init__(self, schedule: Schedule, total_steps: int) -> None:
        self._schedule = schedule
        self._total_steps = total_steps
        self._began: dict[int, int] = {}
        """The step at which each stage began, by the stage counted from 0."""
        self._steps = 0
        self._logs = [EpisodeLog() for _ in schedule.stages]
        self._logs_by_tag = {
            f"curriculum/stage_{number}_return": log for number, log in enumerate(self._logs, 1)
        }

    def update(self, chunks: Iterable[ScalarChunk]) -> None:
        """Takes in what a poll returned."""
        for chunk in chunks:
            if chunk.purge_from is not None:
                # A run that goes on from a checkpoint takes back what came after it.
                self._began = {index: at for index, at in self._began.items() if at < chunk.purge_from}
                for log in self._logs:
                    log.purge(chunk.purge_from)
            for tag, series in chunk.series.items():
                self._take(tag, series)

    def _take(self, tag: str, series: Series) -> None:
        if tag in self._logs_by_tag:
            self._logs_by_tag[tag].extend(series)
        elif tag == STAGE_TAG:
            for step, value in zip(series.steps, series.values, strict=True):
                self._began.setdefault(int(value) - 1, step)
        elif tag == STEPS_TAG and len(series):
            self._steps = int(series.values[-1])

    @property
    def index(self) -> int:
        """The stage that the run is in, counted from 0."""
        return max(self._began, default=0)

    def phase(self) -> str:
        """The stage in words."""
        return self._schedule.name(self.index)

    def as_json(self, step: int) -> dict[str, Any]:
        """Where the run is in its curriculum after `step` steps."""
        log = self._logs[self.index]
        counts = Counts(self._steps, log.count, log.mean())
        return {
            "stage": self.index + 1,
            "stages": len(self._schedule.stages),
            "env_id": self._schedule.stages[self.index].env_id,
            "steps": counts.steps,
            "episodes": counts.episodes,
            "mean_return": counts.mean_return,
            "progress": round(self._progress(counts, step), 4),
        }

    def history(self) -> list[dict[str, Any]]:
        """Every stage with the step at which it began, its episodes and the mean return of its last ones."""
        return [
            {
                "stage": index + 1,
                **stage.as_json(),
                "began_at": self._began.get(index),
                "episodes": log.count,
                "mean_return": log.mean(),
            }
            for index, (stage, log) in enumerate(zip(self._schedule.stages, self._logs, strict=True))
        ]

    def _progress(self, counts: Counts, step: int) -> float:
        condition = self._schedule.stages[self.index].condition
        if condition is not None and self.index + 1 < len(self._schedule.stages):
            return condition.progress(counts)
        began = self._began.get(self.index, 0)
        return min(1.0, max(0.0, (step - began) / max(1, self._total_steps - began)))


class TaskProgress(StageProgress):
    """The same for tasks that are drawn again and again: the newest one counts as the stage."""

    _newest = 0

    def _take(self, tag: str, series: Series) -> None:
        super()._take(tag, series)
        if not len(series):
            return
        if tag == STAGE_TAG:
            self._newest = int(series.values[-1]) - 1
        elif tag in self._logs_by_tag:
            # The first tasks of a run are drawn before anything is written.
            self._began.setdefault(list(self._logs_by_tag).index(tag), series.steps[0])

    @property
    def index(self) -> int:
        return self._newest

    def _progress(self, counts: Counts, step: int) -> float:
        """Tasks are drawn until the budget is used."""
        return min(1.0, step / max(1, self._total_steps))


def follow_stages(schedule: Schedule, total_steps: int) -> StageProgress:
    """What follows a run with this curriculum."""
    follows = StageProgress if schedule.sampler is None else TaskProgress
    return follows(schedule, total_steps)
