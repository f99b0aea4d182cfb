"""What a benchmark has found: a number for each algorithm on each environment, and what they say together.

All of it is computed from the benchmark's study, by the conventions of `mosaic.analytics.statistics`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mosaic.analytics import statistics
from mosaic.analytics.statistics import Array, Interval, Statistic
from mosaic.contract import words
from mosaic.sweeps.benchmark import cell_of
from mosaic.sweeps.spec import SweepSpec
from mosaic.sweeps.study import COMPLETE, ENDED, FAILED, Study, Trial

AGGREGATES: dict[str, Statistic] = {
    "IQM": statistics.iqm,
    "median": statistics.median,
    "mean": statistics.mean,
    "optimality gap": statistics.optimality_gap,
}
_THRESHOLDS = 51


@dataclass(frozen=True)
class Cell:
    """An algorithm on an environment, with all seeds."""

    algo: str
    env_id: str
    wanted: int
    trials: tuple[Trial, ...]
    """Those that have begun."""

    @cached_property
    def values(self) -> list[float]:
        """What the runs that completed came to."""
        return [one.values[0] for one in self.trials if one.state == COMPLETE]

    @property
    def ended(self) -> int:
        return sum(one.state in ENDED for one in self.trials)

    @property
    def failed(self) -> int:
        return sum(one.state == FAILED for one in self.trials)

    def over_seeds(self, statistic: Statistic) -> Interval | None:
        return statistics.interval([self.values], statistic) if self.values else None


@dataclass(frozen=True)
class Results:
    """A benchmark as far as it has come."""

    spec: SweepSpec
    objective: str
    cells: tuple[Cell, ...]

    def of(self, algo: str, env_id: str) -> Cell:
        """One cell; that of an algorithm which is not trained there is empty."""
        found = (one for one in self.cells if (one.algo, one.env_id) == (algo, env_id))
        return next(found, Cell(algo, env_id, 0, ()))

    @cached_property
    def scores(self) -> dict[str, list[Array]]:
        """Normalised scores of each algorithm that has a result on every environment, task by task."""
        env_ids = self.spec.env_ids
        whole = [algo for algo in self.spec.algos if all(self.of(algo, one).values for one in env_ids)]
        found: dict[str, list[Array]] = {algo: [] for algo in whole}
        for env_id in env_ids:
            own = {algo: np.asarray(self.of(algo, env_id).values, np.float64) for algo in whole}
            if not own:
                return {}
            known = np.concatenate(list(own.values()))
            low, high = self.spec.references.get(env_id, (float(known.min()), float(known.max())))
            for algo, values in own.items():
                found[algo].append((values - low) / ((high - low) or 1.0))
        return found

    @property
    def incomplete(self) -> list[str]:
        """The algorithms that lack a result somewhere, and so have no aggregates."""
        return [algo for algo in self.spec.algos if algo not in self.scores]

    @property
    def normalised(self) -> str:
        """How scores are made, in a sentence."""
        if self.spec.references:
            return "Scores are normalised by the references in the file: [low, high] become 0 and 1."
        return "Scores are normalised in each environment: 0 is the worst run of all there, 1 the best."

    @cached_property
    def aggregates(self) -> dict[str, dict[str, Interval]]:
        """Each of `AGGREGATES` for each algorithm, over all environments."""
        return {
            algo: {name: statistics.interval(tasks, how) for name, how in AGGREGATES.items()}
            for algo, tasks in self.scores.items()
        }

    @cached_property
    def improvements(self) -> list[tuple[str, str, Interval]]:
        """How probable it is that a run of the first beats one of the second."""
        return [
            (one, other, statistics.probability_of_improvement(mine, theirs))
            for one, mine in self.scores.items()
            for other, theirs in self.scores.items()
            if one != other
        ]

    def as_json(self) -> dict[str, Any]:
        """All of it, with the performance profiles."""
        return {
            "benchmark": self.spec.benchmark,
            "objective": self.objective,
            "seeds": list(self.spec.seeds),
            "cells": [_cell_json(one) for one in self.cells],
            "normalised": self.normalised,
            "aggregates": {
                algo: {name: vars(found) for name, found in row.items()}
                for algo, row in self.aggregates.items()
            },
            "improvements": [
                {"algo": one, "over": other, **vars(found)} for one, other, found in self.improvements
            ],
            "profiles": self._profiles(),
        }

    def _profiles(self) -> dict[str, Any]:
        if not self.scores:
            return {}
        every = np.concatenate([task for tasks in self.scores.values() for task in tasks])
        marks = np.linspace(min(0.0, float(every.min())), max(1.0, float(every.max())), _THRESHOLDS)
        found = {algo: statistics.performance_profile(tasks, marks) for algo, tasks in self.scores.items()}
        lines = {
            algo: {name: part.tolist() for name, part in vars(band).items()} for algo, band in found.items()
        }
        return {"thresholds": marks.tolist(), "algos": lines}

    def markdown(self) -> str:
        """Tables for a page: algorithms × environments, and over all environments."""
        seeds = words.seeds_text(self.spec.seeds)
        parts = [
            f"The result is {self.objective}: its mean over {seeds}, with the 95 % bootstrap interval.",
            _table(["algorithm", *self.spec.env_ids], [self._row(algo) for algo in self.spec.algos]),
        ]
        if self.several and self.aggregates:
            rows = [
                [algo, *(interval_text(row[name], score_text) for name in AGGREGATES)]
                for algo, row in self.aggregates.items()
            ]
            parts += [
                f"Over all environments. {self.normalised} A lower optimality gap is better.",
                _table(["algorithm", *AGGREGATES], rows),
            ]
        if self.improvements:
            pairs = [
                [one, other, interval_text(found, score_text)] for one, other, found in self.improvements
            ]
            parts += [
                "The probability that a run of the first is better than one of the second:",
                _table(["algorithm", "better than", "probability"], pairs),
            ]
        return "\n\n".join(parts) + "\n"

    @property
    def several(self) -> bool:
        return len(self.spec.env_ids) > 1

    def _row(self, algo: str) -> list[str]:
        found = [self.of(algo, env_id) for env_id in self.spec.env_ids]
        return [algo, *(f"{interval_text(one.over_seeds(statistics.mean))}{_lacking(one)}" for one in found)]

    def csv(self) -> str:
        """A line for each run."""
        made = io.StringIO()
        writer = csv.writer(made, lineterminator="\n")
        writer.writerow(["algorithm", "environment", "seed", "state", "value", "run"])
        for one in self.cells:
            for trial in one.trials:
                value = trial.values[0] if trial.state == COMPLETE else ""
                seed = trial.params["seed"]
                writer.writerow([one.algo, one.env_id, seed, trial.state, value, *trial.runs[:1]])
        return made.getvalue()


def results_of(spec: SweepSpec, study: Study | None) -> Results:
    """What there is so far; None is a benchmark that has not begun."""
    trials: dict[tuple[str, str], list[Trial]] = {(one.algo, one.env_id): [] for one in spec.templates}
    for trial in study.trials if study else ():
        template, _ = cell_of(spec, trial.number)
        trials[template.algo, template.env_id].append(trial)
    cells = tuple(Cell(*key, len(spec.seeds), tuple(found)) for key, found in trials.items())
    return Results(spec, spec.objectives[0].words(), cells)


def interval_text(found: Interval | None, number: Callable[[float], str] = words.number) -> str:
    """`487.3 (480.1 to 495.0)`; of a single run only what it came to."""
    if found is None:
        return words.NONE
    if found.low == found.high:
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} to {number(found.high)})"


def score_text(value: float) -> str:
    return f"{value:.2f}".replace("-", words.MINUS)


def _lacking(cell: Cell) -> str:
    """How many seeds stand behind a number, where it is not all of them."""
    return "" if len(cell.values) == cell.wanted else f" [{len(cell.values)} of {cell.wanted} seeds]"


def _cell_json(one: Cell) -> dict[str, Any]:
    mean, middle = one.over_seeds(statistics.mean), one.over_seeds(statistics.iqm)
    return {
        "algo": one.algo,
        "env_id": one.env_id,
        "wanted": one.wanted,
        "ended": one.ended,
        "failed": one.failed,
        "mean": mean and vars(mean),
        "iqm": middle and vars(middle),
        "runs": [
            {
                "seed": trial.params["seed"],
                "state": trial.state,
                "value": trial.values[0] if trial.state == COMPLETE else None,
                "run_id": trial.runs[0] if trial.runs else None,
                "reason": trial.reason,
            }
            for trial in one.trials
        ],
    }


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '∣') for cell in line)} |" for line in lines)
