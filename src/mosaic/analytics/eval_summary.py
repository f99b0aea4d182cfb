"""`eval_summary.json`: how an evaluation stands, batch by batch, for whoever looks while it goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_json
from mosaic.contract.errors import StorageError
from mosaic.contract.outside import read_json

FILE_NAME = "eval_summary.json"
FORMAT = 1
MOST_BATCHES = 1000
"""How many of the newest batches are listed: an evaluation may go on for ever."""


@dataclass(frozen=True)
class EvalScores:
    """How some episodes went. `batch` is the number of the newest of them, from 1."""

    batch: int
    episodes: int
    mean: float
    median: float
    min: float
    max: float
    std: float
    interval: tuple[float, float]
    """Where the mean lies with a probability of 95 %, by bootstrap."""
    iqm: float
    """The mean of the middle half."""
    discounted_mean: float
    mean_length: float
    steps: int
    cut_off: int
    """How many episodes had not ended when they were left, and count as far as they went."""
    duration_seconds: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EvalScores:
        values = {field.name: data[field.name] for field in fields(cls)}
        low, high = (_number(value) for value in values.pop("interval"))
        return cls(**{name: _number(value) for name, value in values.items()}, interval=(low, high))

    def as_json(self) -> dict[str, Any]:
        """The same as JSON types; what is not finite is null."""
        return {name: _plain(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class EvalSummary:
    """The newest batch, all episodes together, and what is played."""

    policy: dict[str, Any]
    """What is played and how: path, algo, env_id, env_kwargs, step, deterministic, gamma, first_seed; and
    `notes`, sentences that a person should know before judging it."""
    target_episodes: int | None
    """How many episodes there will be; None when they are played until somebody stops that."""
    overall: EvalScores
    batches: tuple[EvalScores, ...]
    """The newest last."""

    def as_json(self) -> dict[str, Any]:
        """The numbers of the newest batch stand on top, where a status line finds them."""
        return {
            "format": FORMAT,
            **self.batches[-1].as_json(),
            "overall": self.overall.as_json(),
            "target_episodes": self.target_episodes,
            "policy": self.policy,
            "batches": [batch.as_json() for batch in self.batches],
        }

    def write(self, run_dir: Path) -> None:
        """Replace the file, whole or not at all."""
        write_json(run_dir / FILE_NAME, self.as_json())


def read_eval_summary(run_dir: Path) -> EvalSummary | None:
    """What the evaluation in a run's folder has found so far; None before there is anything."""
    path = run_dir / FILE_NAME
    try:
        data = read_json(path)
        if data["format"] != FORMAT:
            raise StorageError(f"{path} has format {data['format']}, this release knows {FORMAT}.")
        return EvalSummary(
            policy=dict(data["policy"]),
            target_episodes=data["target_episodes"],
            overall=EvalScores.from_json(data["overall"]),
            batches=tuple(EvalScores.from_json(batch) for batch in data["batches"]),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} is not the summary of an evaluation; delete it.") from error


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"{value!r:.60} is not a number")
    return math.nan if value is None else value
