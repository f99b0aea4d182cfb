"""What a sweep has found so far, as plain values, and the file in its folder that holds it.

The sweep's process is the only writer of `study.jsonl`. Its first line tells of the study; each other line
has what is new of one trial, so that a reader takes in what was appended and nothing else. The truth is
Optuna's storage: when a sweep starts again, it writes the file anew from there.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mosaic.contract.atomic import write_atomic
from mosaic.contract.outside import parse_json

FILE = "study.jsonl"
FORMAT = 1
WAITING, RUNNING, COMPLETE, PRUNED, FAILED = "waiting", "running", "complete", "pruned", "failed"
"""The states of a trial; `waiting` ones have parameters and no run yet."""
ENDED = frozenset({COMPLETE, PRUNED, FAILED})
ALGO, ENV, SEED = "algo", "env", "seed"
"""How the parameters of a benchmark's trials are called."""

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Trial:
    """One set of parameters, and what came of it."""

    number: int
    state: str
    params: Mapping[str, Value]
    values: tuple[float, ...] = ()
    """One for each objective, once the trial is complete; a pruned one has its last intermediate value."""
    intermediate: Mapping[int, float] = field(default_factory=dict)
    """What the objective was at a step, by steps."""
    runs: tuple[str, ...] = ()
    """The ids of its runs: one for each seed and environment."""
    reason: str = ""
    """Why it was pruned or has failed."""
    started_at: float | None = None
    ended_at: float | None = None
    parent: int | None = None
    """In a population, the trial whose checkpoint it began with."""

    @property
    def value(self) -> float | None:
        """What it reached, where there is a single objective and it got to its end."""
        return self.values[0] if self.state == COMPLETE and len(self.values) == 1 else None


@dataclass(frozen=True)
class Study:
    """A study with all its trials, by number."""

    name: str
    objectives: tuple[str, ...]
    """What each value of a trial is, such as `charts/episodic_return (mean of the last 50)`."""
    directions: tuple[str, ...]
    """`maximize` or `minimize` for each of them."""
    distributions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The search space: for each parameter `choices`, or `low`, `high`, `log`, `step` and `whole`."""
    trials: tuple[Trial, ...] = ()
    wanted: int | None = None
    """How many trials there will be; None where nobody has said it."""
    sweep: str = ""
    """The id of the sweep that works on it; empty for a study that was made elsewhere."""
    members: int = 0
    """How many members the population has: so many trials, one after another, are a generation."""
    benchmark: bool = False
    """Whether its trials are the cells of a benchmark, of which none is the best."""

    @property
    def short_objectives(self) -> list[str]:
        """`episodic_return` of `charts/episodic_return (last)`, as long as that tells them apart."""
        short = [one.partition(" (")[0].rpartition("/")[2] for one in self.objectives]
        return short if len(set(short)) == len(short) else list(self.objectives)

    def with_state(self, *states: str) -> list[Trial]:
        return [one for one in self.trials if one.state in states]

    @property
    def best(self) -> Trial | None:
        """The best complete trial of a study with one objective."""
        if len(self.directions) != 1 or self.benchmark:
            return None
        done = [one for one in self.with_state(COMPLETE) if one.values and math.isfinite(one.values[0])]
        sign = 1 if self.directions[0] == "maximize" else -1
        return max(done, key=lambda one: sign * one.values[0], default=None)

    def best_so_far(self) -> list[tuple[int, float]]:
        """The best value after each complete trial, in the order of their numbers."""
        pick = max if self.directions[0] == "maximize" else min
        found: list[tuple[int, float]] = []
        for one in self.with_state(COMPLETE):
            if one.values and math.isfinite(one.values[0]):
                found.append((one.number, pick(one.values[0], found[-1][1]) if found else one.values[0]))
        return found

    @cached_property
    def front(self) -> list[Trial]:
        """The complete trials that no other one beats in every objective (the Pareto front)."""
        import numpy as np

        done = [one for one in self.with_state(COMPLETE) if len(one.values) == len(self.directions)]
        signs = np.array([1.0 if way == "maximize" else -1.0 for way in self.directions])
        values = np.array([one.values for one in done], np.float64).reshape(-1, len(signs)) * signs
        values[~np.isfinite(values)] = -np.inf
        beaten = [
            bool((np.all(values >= row, axis=1) & np.any(values > row, axis=1)).any()) for row in values
        ]
        return [one for one, is_beaten in zip(done, beaten, strict=True) if not is_beaten]

    def as_json(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        told = asdict(self)
        best = self.best
        whole: dict[str, Any] = _finite({**told, "best": None if best is None else best.number})
        return whole


class StudyReader:
    """Reads a sweep's study from its folder, and what is new with each call."""

    def __init__(self, run_dir: Path, file: str = FILE) -> None:
        self._path = run_dir / file
        self._inode = self._offset = 0
        self._head: Study | None = None
        self._trials: dict[int, Trial] = {}
        self._study: Study | None = None
        self._changed = False

    def poll(self) -> Study | None:
        """The study as it is now; None when the sweep has not begun. The same object when nothing is new."""
        try:
            with self._path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    # The sweep has started again and written it anew.
                    self._forget()
                    self._inode = inode
                file.seek(self._offset)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return self._study
        for line in lines[:-1]:
            self._offset += len(line) + 1
            self._take(line)
        if self._changed and self._head is not None:
            trials = tuple(self._trials[number] for number in sorted(self._trials))
            self._study = replace(self._head, trials=trials)
            self._changed = False
        return self._study

    def _forget(self) -> None:
        self._offset = 0
        self._head = self._study = None
        self._trials.clear()

    def _take(self, line: bytes) -> None:
        try:
            told = parse_json(line)
            if "trial" in told:
                number = told.pop("trial")
                known = self._trials.get(number) or Trial(number, RUNNING, {})
                self._trials[number] = _with(known, told)
            else:
                self._head = _head(told)
        except (ValueError, KeyError, TypeError, AttributeError):
            # A line that a crash has torn.
            return
        self._changed = True


class StudyWriter:
    """Writes the same file; for the sweep's own process."""

    def __init__(self, run_dir: Path, file: str = FILE, sync: bool = False) -> None:
        """With `sync`, what was written stays also when the machine goes down."""
        self._path = run_dir / file
        self._sync = sync

    def begin(self, study: Study) -> None:
        """Write all that is known, in place of what was there."""
        head = {name: value for name, value in asdict(study).items() if name != "trials"}
        lines = [json.dumps({"format": FORMAT, **head})]
        lines += [_line(one.number, _told(one)) for one in study.trials]
        write_atomic(self._path, "".join(f"{line}\n" for line in lines).encode(), sync=self._sync)

    def add(self, number: int, **news: Any) -> None:
        """Append what is new of a trial; of `intermediate` only the new points."""
        self._append(_line(number, news))

    def add_all(self, trials: Sequence[Trial]) -> None:
        """Append all of these trials at once."""
        self._append("\n".join(_line(one.number, _told(one)) for one in trials))

    def _append(self, lines: str) -> None:
        with self._path.open("ab") as file:
            file.write(lines.encode() + b"\n")
            if self._sync:
                file.flush()
                os.fsync(file.fileno())


def value_text(value: Any) -> str:
    """A value of a parameter, for people."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_study(run_dir: Path, file: str = FILE) -> Study | None:
    """The study in a sweep's folder; None when there is none yet."""
    return StudyReader(run_dir, file).poll()


def _line(number: int, told: Mapping[str, Any]) -> str:
    return json.dumps(_finite({"trial": number, **told}), separators=(",", ":"))


def _told(trial: Trial) -> dict[str, Any]:
    known = {name: value for name, value in vars(trial).items() if value not in (None, "")}
    return {name: value for name, value in known.items() if name != "number"}


def _with(trial: Trial, told: Mapping[str, Any]) -> Trial:
    news = _known(Trial, told)
    points = {int(step): _number(value) for step, value in news.pop("intermediate", {}).items()}
    if "values" in news:
        news["values"] = tuple(map(_number, news["values"]))
    if "runs" in news:
        news["runs"] = tuple(news["runs"])
    return replace(
        trial, **news, intermediate={**trial.intermediate, **points} if points else trial.intermediate
    )


def _head(told: dict[str, Any]) -> Study:
    known = _known(Study, told)
    return Study(
        **{**known, "objectives": tuple(told["objectives"]), "directions": tuple(told["directions"])}
    )


def _known(kind: type[Study] | type[Trial], told: Mapping[str, Any]) -> dict[str, Any]:
    """What this version knows: a later one may write more."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in told.items() if name in names}


def _number(told: float | None) -> float:
    """A number as `_finite` has told it."""
    return math.nan if told is None else float(told)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
