"""The few numbers that say how a run is doing."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from mosaic.analytics.event_files import ScalarChunk, Series

RETURNS_KEPT = 100
MARKS_KEPT = 4096
RATE_WINDOW_SECONDS = 10.0
_SAMPLES_KEPT = 256
_SAMPLE_SECONDS = 0.25

TRAINING_RETURN = "charts/episodic_return"
EVALUATION_RETURN = "eval/episodic_return"
MEAN_RETURN = "rollout/ep_rew_mean"
"""Of scripts that keep the mean of their last episodes themselves, as Stable-Baselines3 does."""


class EpisodeLog:
    """Counts episodes and keeps the last returns; takes a purge back out of both.

    For a purge further back than the returns, the step of every n-th episode is kept. n doubles when they
    become too many, and the count after such a purge is less than n too low.
    """

    def __init__(self) -> None:
        self.count = 0
        self.returns: deque[tuple[int, float]] = deque(maxlen=RETURNS_KEPT)
        self._stride = 1
        self._marks: list[int] = []

    def extend(self, series: Series) -> None:
        for step, value in zip(series.steps, series.values, strict=True):
            self.count += 1
            self.returns.append((step, value))
            if self.count % self._stride == 0:
                self._marks.append(step)
            if len(self._marks) > MARKS_KEPT:
                self._stride *= 2
                self._marks = self._marks[1::2]

    def purge(self, step: int) -> None:
        kept = [entry for entry in self.returns if entry[0] < step]
        removed = len(self.returns) - len(kept)
        del self._marks[bisect_left(self._marks, step) :]
        self.count = self.count - removed if kept else len(self._marks) * self._stride
        self.returns.clear()
        self.returns.extend(kept)

    def last(self) -> float | None:
        return self.returns[-1][1] if self.returns else None

    def mean(self) -> float | None:
        finite = [value for _, value in self.returns if math.isfinite(value)]
        return math.fsum(finite) / len(finite) if finite else None


class StepClock:
    """The largest step so far, and how fast it has grown of late."""

    def __init__(self) -> None:
        self.step = 0
        self.wall_time = -math.inf
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES_KEPT)

    def extend(self, series: Series) -> None:
        self.step = max(self.step, max(series.steps))
        self.wall_time = max(self.wall_time, series.wall_times[-1])
        for wall_time, step in zip(series.wall_times, series.steps, strict=True):
            if not self._samples or wall_time >= self._samples[-1][0] + _SAMPLE_SECONDS:
                self._samples.append((wall_time, step))

    def purge(self, step: int) -> None:
        # Training goes on at the step of the purge, so that is where it stands.
        self.step = max(0, min(self.step, step))
        self._samples.clear()

    def rate(self) -> float | None:
        """Steps per second over the last ten seconds, or since a script wrote before if that is longer."""
        if len(self._samples) < 2:
            return None
        end_time, end_step = self._samples[-1]
        within = next(at for at, one in enumerate(self._samples) if one[0] >= end_time - RATE_WINDOW_SECONDS)
        start_time, start_step = self._samples[min(within, len(self._samples) - 2)]
        if end_time <= start_time or end_step < start_step:
            return None
        return (end_step - start_step) / (end_time - start_time)


@dataclass
class SourceProgress:
    """The state of one source: `training` sees `charts/*` and `losses/*`, `evaluation` `eval/*`."""

    training: StepClock = field(default_factory=StepClock)
    other: StepClock = field(default_factory=StepClock)
    evaluation: StepClock = field(default_factory=StepClock)
    training_episodes: EpisodeLog = field(default_factory=EpisodeLog)
    evaluation_episodes: EpisodeLog = field(default_factory=EpisodeLog)
    latest: dict[str, float] = field(default_factory=dict)

    def update(self, chunk: ScalarChunk, wanted: tuple[str, ...]) -> None:
        """Takes in a chunk; of tags that begin with one of `wanted` the latest finite value is kept."""
        if chunk.purge_from is not None:
            for part in (self.training, self.other, self.evaluation):
                part.purge(chunk.purge_from)
            self.training_episodes.purge(chunk.purge_from)
            self.evaluation_episodes.purge(chunk.purge_from)
        for tag, series in chunk.series.items():
            if not len(series):
                continue
            self._clock_of(tag).extend(series)
            if tag == TRAINING_RETURN:
                self.training_episodes.extend(series)
            elif tag == EVALUATION_RETURN:
                self.evaluation_episodes.extend(series)
            elif tag.startswith(wanted) and math.isfinite(series.values[-1]):
                self.latest[tag] = series.values[-1]

    def main_clock(self) -> StepClock:
        """The clock that tells the run's step best."""
        return next((c for c in (self.training, self.other) if c.wall_time > -math.inf), self.evaluation)

    def _clock_of(self, tag: str) -> StepClock:
        if tag.startswith(("charts/", "losses/")):
            return self.training
        return self.evaluation if tag.startswith("eval/") else self.other


STARTING, TRAINING, EVALUATING = "starting", "training", "evaluating"

_RATE_TAGS = ("charts/SPS", "time/fps")
_SHARE_PREFIX = "time/"
# Stable-Baselines3 keeps its clock under the same prefix.
_NOT_SHARES = frozenset({"time/fps", "time/iterations", "time/time_elapsed", "time/total_timesteps"})


@dataclass(frozen=True)
class Headline:
    """Where a run stands; what is not known is None.

    These are the only definitions of its return and its speed: whatever shows one of them shows these.
    """

    step: int = 0
    total_steps: int | None = None
    sps: float | None = None
    """Steps per second over the last ten seconds, by the times in its event files; what the script itself
    calls its speed, which may be since its start, only while that cannot be told."""
    last_return: float | None = None
    mean_return: float | None = None
    """Of the last 100 episodes; of all while there are fewer."""
    episodes: int = 0
    progress: float | None = None
    phase: str = STARTING
    time_shares: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The same as JSON types, all numbers finite or null."""
        data = {key: _finite(value) for key, value in asdict(self).items()}
        shares = {name: _finite(share) for name, share in self.time_shares.items()}
        data["time_shares"] = {name: share for name, share in shares.items() if share is not None}
        return data


class HeadlineTracker:
    """Keeps the headline of one run up to date from what its reader returns; its memory does not grow."""

    def __init__(self, total_steps: int | None = None, add_up: bool = False) -> None:
        """With `add_up` the run is several trainings in a row, and its steps are those of all of them."""
        self.total_steps = total_steps
        self._add_up = add_up
        self._sources: dict[str, SourceProgress] = {}

    def update(self, chunks: Iterable[ScalarChunk]) -> None:
        """Takes in what a poll returned."""
        wanted = (*_RATE_TAGS, MEAN_RETURN, _SHARE_PREFIX)
        for chunk in chunks:
            self._sources.setdefault(chunk.source, SourceProgress()).update(chunk, wanted)

    def headline(self) -> Headline:
        """Where the run stands now.

        When several folders hold scalars, the one that training wrote to last speaks for the run: a script
        that starts over writes to a new folder, from step 0.
        """
        sources = list(self._sources.values())
        main = max(sources, key=_rank, default=None)
        if main is None or main.main_clock().wall_time == -math.inf:
            return Headline(total_steps=self.total_steps)
        clock = main.main_clock()
        step = sum(source.main_clock().step for source in sources) if self._add_up else clock.step
        episodes = main.training_episodes if main.training_episodes.count else main.evaluation_episodes
        mean = episodes.mean()
        timed = [tag for tag in main.latest if tag.startswith(_SHARE_PREFIX) and tag not in _NOT_SHARES]
        shares = {tag.removeprefix(_SHARE_PREFIX): main.latest[tag] for tag in timed}
        rate, told = clock.rate(), [main.latest[tag] for tag in _RATE_TAGS if tag in main.latest]
        return Headline(
            step=step,
            total_steps=self.total_steps,
            sps=rate if rate is not None else next(iter(told), None),
            last_return=_finite(episodes.last()),
            mean_return=main.latest.get(MEAN_RETURN) if mean is None else mean,
            episodes=episodes.count,
            progress=min(1.0, max(0.0, step / self.total_steps)) if self.total_steps else None,
            phase=_phase(sources),
            time_shares={name: share for name, share in sorted(shares.items()) if 0 <= share <= 1},
        )


def _rank(source: SourceProgress) -> tuple[bool, bool, float]:
    trains = source.training.wall_time > -math.inf
    return trains, source.other.wall_time > -math.inf, source.main_clock().wall_time


def _phase(sources: list[SourceProgress]) -> str:
    evaluated = max(source.evaluation.wall_time for source in sources)
    trained = max(max(source.training.wall_time, source.other.wall_time) for source in sources)
    return EVALUATING if evaluated > trained else TRAINING


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
