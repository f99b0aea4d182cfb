"""The few numbers that say how a run is doing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mosaic.analytics.event_files import ScalarChunk
from mosaic.analytics.source_progress import SourceProgress

STARTING, TRAINING, EVALUATING = "starting", "training", "evaluating"

_RATE_TAGS = ("charts/SPS", "time/fps")
_MEAN_RETURN_TAG = "rollout/ep_rew_mean"
_SHARE_PREFIX = "time/"
# Stable-Baselines3 keeps its clock under the same prefix.
_NOT_SHARES = frozenset({"fps", "iterations", "time_elapsed", "total_timesteps"})


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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Headline:
        """The headline that `as_json` gave; keys of other versions are passed over."""
        return cls(**{key: value for key, value in data.items() if key in cls.__dataclass_fields__})


class HeadlineTracker:
    """Keeps the headline of one run up to date from what its reader returns; its memory does not grow."""

    def __init__(self, total_steps: int | None = None, add_up: bool = False) -> None:
        """With `add_up` the run is several trainings in a row, and its steps are those of all of them."""
        self.total_steps = total_steps
        self._add_up = add_up
        self._sources: dict[str, SourceProgress] = {}

    def update(self, chunks: Iterable[ScalarChunk]) -> None:
        """Takes in what a poll returned."""
        wanted = (*_RATE_TAGS, _MEAN_RETURN_TAG, _SHARE_PREFIX)
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
        rate, told = clock.rate(), [main.latest[tag] for tag in _RATE_TAGS if tag in main.latest]
        return Headline(
            step=step,
            total_steps=self.total_steps,
            sps=rate if rate is not None else next(iter(told), None),
            last_return=_finite(episodes.last()),
            mean_return=main.latest.get(_MEAN_RETURN_TAG) if mean is None else mean,
            episodes=episodes.count,
            progress=min(1.0, max(0.0, step / self.total_steps)) if self.total_steps else None,
            phase=_phase(sources),
            time_shares=_time_shares(main.latest),
        )


def _rank(source: SourceProgress) -> tuple[bool, bool, float]:
    trains = source.training.wall_time > -math.inf
    return trains, source.other.wall_time > -math.inf, source.main_clock().wall_time


def _phase(sources: list[SourceProgress]) -> str:
    evaluated = max(source.evaluation.wall_time for source in sources)
    trained = max(max(source.training.wall_time, source.other.wall_time) for source in sources)
    return EVALUATING if evaluated > trained else TRAINING


def _time_shares(latest: Mapping[str, float]) -> dict[str, float]:
    named = {tag.removeprefix(_SHARE_PREFIX): v for tag, v in latest.items() if tag.startswith(_SHARE_PREFIX)}
    return {name: v for name, v in sorted(named.items()) if name not in _NOT_SHARES and 0 <= v <= 1}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
