"""What an evaluation leaves: a summary, curves, and a row for each episode; all of it after each batch."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.evaluation.episodes import PlayedEpisode
from cleanrl_worker.kit.writer import PatientEvents, write_patiently
from mosaic.analytics.eval_summary import MOST_BATCHES, EvalScores, EvalSummary, read_eval_summary
from mosaic.analytics.statistics import RESAMPLES, interval, iqm
from mosaic.contract.atomic import write_atomic
from mosaic.contract.errors import MosaicError, StorageError

_DRAWS = 4_000_000
"""Numbers drawn for one interval at most; of more episodes fewer samples are drawn."""
_MOST_EPISODES = 20_000
"""Beyond, the bootstrap gives what the normal distribution gives at once."""


def score(episodes: Sequence[PlayedEpisode], batch: int, duration: float) -> EvalScores:
    """The numbers of a summary; there must be an episode."""
    returns = np.array([episode.total_reward for episode in episodes], dtype=np.float64)
    lengths = [episode.length for episode in episodes]
    return EvalScores(
        batch=batch,
        episodes=len(episodes),
        mean=float(returns.mean()),
        median=float(np.median(returns)),
        min=float(returns.min()),
        max=float(returns.max()),
        std=float(returns.std()),
        interval=_interval_of_mean(returns),
        iqm=float(iqm([returns])),
        discounted_mean=float(np.mean([episode.discounted for episode in episodes])),
        mean_length=float(np.mean(lengths)),
        steps=sum(lengths),
        cut_off=sum(episode.cut_off for episode in episodes),
        duration_seconds=round(duration, 3),
    )


def _interval_of_mean(returns: NDArray[np.float64]) -> tuple[float, float]:
    """Where the mean lies with a probability of 95 %, in a time that many episodes do not make longer."""
    count = len(returns)
    if count > _MOST_EPISODES:
        mean, error = float(returns.mean()), 1.96 * float(returns.std()) / math.sqrt(count)
        return mean - error, mean + error
    if not np.isfinite(returns).all():
        return math.nan, math.nan
    found = interval([returns], resamples=min(RESAMPLES, _DRAWS // count))
    return found.low, found.high


CURVES = "tensorboard_eval"
TABLE = "eval_episodes.csv"
_COLUMNS = ("episode", "seed", *(field.name for field in fields(PlayedEpisode)))
_OF_BATCH = ("mean", "median", "min", "max", "std", "iqm", "discounted_mean", "mean_length")


class EvalRecord:
    """The files of one evaluation. One that was cut short by a fault goes on where its last batch ended."""

    def __init__(self, folder: Path, policy: dict[str, Any], target: int | None) -> None:
        """`policy` says what is played and how; files of another evaluation are begun anew."""
        self._folder = folder
        self._policy = policy
        self._target = target
        try:
            earlier = read_eval_summary(folder)
        except MosaicError:
            earlier = None
        self.summary = earlier if earlier is not None and earlier.policy == policy else None
        """How the evaluation stands; None before its first batch."""
        self.episodes = _read_table(folder / TABLE, self.summary) if self.summary else []
        done = len(self.episodes)
        if self.summary is None or done < self.summary.overall.episodes:
            self.summary, self.episodes, done = None, [], 0
        try:
            write_patiently(self._write_table)
            self._curves = write_patiently(lambda: PatientEvents(folder / CURVES, purge_step=done + 1))
        except OSError as error:
            raise _unwritable(folder, error) from error

    def add(self, episodes: Sequence[PlayedEpisode], duration: float) -> EvalSummary:
        """Take in a batch that took `duration` seconds."""
        batches = self.summary.batches if self.summary else ()
        spent = self.summary.overall.duration_seconds if self.summary else 0.0
        number = batches[-1].batch + 1 if batches else 1
        first = len(self.episodes)
        self.episodes += episodes
        newest = score(episodes, number, duration)
        overall = newest if number == 1 else score(self.episodes, number, spent + duration)
        summary = EvalSummary(self._policy, self._target, overall, (*batches, newest)[-MOST_BATCHES:])
        try:
            # A row may have been cut off by the full disk: then the whole table is written anew.
            write_patiently(lambda: self._append(first), self._write_table)
            self._draw(first, newest)
            write_patiently(lambda: summary.write(self._folder))
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        self.summary = summary
        return summary

    def _row(self, number: int) -> tuple[Any, ...]:
        return number, self._policy["first_seed"] + number, *astuple(self.episodes[number])

    def _write_table(self) -> None:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(_COLUMNS)
        writer.writerows(map(self._row, range(len(self.episodes))))
        write_atomic(self._folder / TABLE, text.getvalue().encode())

    def _append(self, first: int) -> None:
        with (self._folder / TABLE).open("a", newline="") as file:
            csv.writer(file).writerows(map(self._row, range(first, len(self.episodes))))
            file.flush()
            # The summary that follows counts these rows.
            os.fsync(file.fileno())

    def _draw(self, first: int, batch: EvalScores) -> None:
        for number in range(first, len(self.episodes)):
            episode = self.episodes[number]
            self._curves.add_scalar("eval/episodic_return", episode.total_reward, number + 1)
            self._curves.add_scalar("eval/episodic_length", episode.length, number + 1)
            self._curves.add_scalar("eval/discounted_return", episode.discounted, number + 1)
        for name in _OF_BATCH:
            tag = name if name == "mean_length" else f"{name}_return"
            self._curves.add_scalar(f"eval/{tag}", getattr(batch, name), len(self.episodes))
        for name, value in zip(("low", "high"), batch.interval, strict=True):
            self._curves.add_scalar(f"eval/interval_{name}", value, len(self.episodes))
        self._curves.add_scalar(
            "eval/SPS", batch.steps / max(batch.duration_seconds, 1e-3), len(self.episodes)
        )
        self._curves.flush()

    def close(self) -> None:
        """Close the curves."""
        self._curves.close()


def _read_table(path: Path, summary: EvalSummary) -> list[PlayedEpisode]:
    """The episodes that the summary counts; a batch that was being written when the process died is not."""
    try:
        rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))[: summary.overall.episodes]
        return [
            PlayedEpisode(
                float(row["total_reward"]),
                int(row["length"]),
                float(row["discounted"]),
                row["cut_off"] == "True",
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _unwritable(folder: Path, error: OSError) -> StorageError:
    place = folder.absolute()
    return StorageError(
        f"The evaluation's results cannot be written to {place}: {error.strerror}; free some space."
    )
