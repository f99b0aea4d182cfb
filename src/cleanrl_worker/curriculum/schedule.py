"""Curricula: which environments a run trains on one after the other, and when it goes on to the next.

Or, where a curriculum of Syllabus-RL is named, which environments it draws from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleanrl_worker.curriculum.task_sampler import Sampler, parse_sampler
from cleanrl_worker.schemas.environments import EnvironmentEntry, check_fit
from cleanrl_worker.schemas.spaces import describe_briefly, grid_of_dict
from mosaic.contract.errors import UserError, closest
from mosaic.contract.outside import parse_json

STEPS, EPISODES, RETURN = METRICS = ("steps", "episodes", "episode_return")

_CLAUSE = re.compile(r"\s*(\w+)\s*>=\s*([^\s|&]+)\s*")
_HELP = "write steps>=N, episodes>=N or episode_return>=X, joined by | (or) and & (and)"


@dataclass(frozen=True)
class Counts:
    """What a stage has seen, over all environments; without an episode there is no mean return."""

    steps: int = 0
    episodes: int = 0
    mean_return: float | None = None


@dataclass(frozen=True)
class Clause:
    """One comparison."""

    metric: str
    least: float

    def value(self, counts: Counts) -> float | None:
        values = {STEPS: counts.steps, EPISODES: counts.episodes, RETURN: counts.mean_return}
        return values[self.metric]

    def is_met(self, counts: Counts) -> bool:
        value = self.value(counts)
        return value is not None and value >= self.least

    def progress(self, counts: Counts) -> float:
        """How much of the way is done; of a return below zero nobody can say, so nothing until it is."""
        if self.is_met(counts):
            return 1.0
        value = self.value(counts)
        return 0.0 if value is None or self.least <= 0.0 else max(0.0, value / self.least)


@dataclass(frozen=True)
class Condition:
    """A condition as it was written, and its parts: it holds when all clauses of one of `choices` do."""

    text: str
    choices: tuple[tuple[Clause, ...], ...]

    def is_met(self, counts: Counts) -> bool:
        return any(all(clause.is_met(counts) for clause in clauses) for clauses in self.choices)

    def progress(self, counts: Counts) -> float:
        """From 0 to 1, by the choice that is nearest to being met."""
        return max(min(clause.progress(counts) for clause in clauses) for clauses in self.choices)

    def least_steps(self) -> int:
        """The fewest steps after which it can hold: an episode has at least one, a return needs one."""
        return min(
            max(1 if clause.metric == RETURN else int(clause.least) for clause in clauses)
            for clauses in self.choices
        )


def parse_condition(text: str) -> Condition:
    """The condition in a text; a UserError says what in it cannot be read. & binds tighter than |."""
    choices = tuple(
        tuple(_parse_clause(clause, text) for clause in choice.split("&")) for choice in text.split("|")
    )
    return Condition(re.sub(r"\s+", "", text), choices)


def _parse_clause(part: str, text: str) -> Clause:
    match = _CLAUSE.fullmatch(part)
    if match is None:
        raise UserError(f"The condition '{text}' cannot be read at '{part.strip()}': {_HELP}.")
    metric = match[1]
    if metric not in METRICS:
        hint = closest(metric, METRICS) or f"; {_HELP}."
        raise UserError(f"The condition '{text}' names '{metric}', which is not known{hint}")
    return Clause(metric, _parse_number(metric, match[2], text))


def _parse_number(metric: str, number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"The condition '{text}' has '{number}' instead of a number: {_HELP}.")
    if metric != RETURN and (value < 1 or value != int(value)):
        raise UserError(
            f"The condition '{text}' has {number} {metric}, but that must be a whole number of at least 1."
        )
    return value


DEFAULT_CONDITION = "steps>=100000"
_KEYS = ("env_id", "steps", "condition")

BABYAI_GOTO_CURRICULUM: Sequence[Mapping[str, Any]] = (
    {"env_id": "BabyAI-GoToRedBallNoDists-v0", "steps": 200_000},
    {"env_id": "BabyAI-GoToRedBall-v0", "steps": 200_000},
    {"env_id": "BabyAI-GoToObj-v0", "steps": 200_000},
    {"env_id": "BabyAI-GoToLocal-v0"},
)
"""Go to one thing, then to one among others, then to whatever the mission names."""

BABYAI_DOORKEY_CURRICULUM: Sequence[Mapping[str, Any]] = (
    {"env_id": "MiniGrid-DoorKey-5x5-v0", "steps": 100_000},
    {"env_id": "MiniGrid-DoorKey-6x6-v0", "steps": 150_000},
    {"env_id": "MiniGrid-DoorKey-8x8-v0", "steps": 200_000},
    {"env_id": "MiniGrid-DoorKey-16x16-v0"},
)
"""Fetch the key, open the door, reach the goal, in larger and larger rooms."""

PRESETS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "BABYAI_GOTO_CURRICULUM": BABYAI_GOTO_CURRICULUM,
    "BABYAI_DOORKEY_CURRICULUM": BABYAI_DOORKEY_CURRICULUM,
}


@dataclass(frozen=True)
class Stage:
    """One environment of a curriculum, until a condition holds; the last stage has no need of one."""

    env_id: str
    condition: Condition | None

    def as_json(self) -> dict[str, str]:
        ends = {} if self.condition is None else {"condition": self.condition.text}
        return {"env_id": self.env_id, **ends}


@dataclass(frozen=True)
class Schedule:
    """The stages of a curriculum, in their order; with a sampler they are tasks, and it draws the order."""

    stages: tuple[Stage, ...]
    sampler: Sampler | None = None

    def least_steps(self) -> int:
        """The fewest steps that are gone when the last stage begins."""
        before = (stage.condition for stage in self.stages[:-1])
        return sum(condition.least_steps() for condition in before if condition is not None)

    def as_json(self) -> list[dict[str, str]] | dict[str, Any]:
        """The stages as plain data, the same for all ways to write them."""
        if self.sampler is not None:
            return self.sampler.as_json([stage.env_id for stage in self.stages])
        return [stage.as_json() for stage in self.stages]

    def name(self, index: int) -> str:
        """A stage in words, counted from 1: `stage 2 of 4: MiniGrid-DoorKey-6x6-v0`."""
        noun = "stage" if self.sampler is None else f"{self.sampler.name}, task"
        return f"{noun} {index + 1} of {len(self.stages)}: {self.stages[index].env_id}"


def parse_schedule(given: Any) -> Schedule | None:
    """The curriculum in a list of stages, in JSON text or under a preset's name; None when there is none.

    An object with `curriculum` and `tasks` names one of Syllabus-RL. A UserError names what is wrong.
    """
    stages = _read_text(given) if isinstance(given, str) else given
    if stages is None or stages == []:
        return None
    if isinstance(stages, Mapping) and "curriculum" in stages:
        sampler, tasks = parse_sampler(stages)
        return Schedule(tuple(Stage(task, None) for task in tasks), sampler)
    if not isinstance(stages, list | tuple):
        raise UserError(
            f"The curriculum is {given!r:.80}, but it must be a list of stages such as "
            '[{"env_id": "MiniGrid-DoorKey-5x5-v0", "steps": 100000}, …] or the name of a preset.'
        )
    last = len(stages) - 1
    return Schedule(tuple(_parse_stage(stage, index, index == last) for index, stage in enumerate(stages)))


def name_stage(index: int, env_id: object = None) -> str:
    """How an error names a stage."""
    return f"Stage {index + 1} of the curriculum{f' ({env_id})' if isinstance(env_id, str) else ''}"


def _read_text(text: str) -> Any:
    if not text.strip():
        return None
    if text in PRESETS:
        return list(PRESETS[text])
    if not text.lstrip().startswith(("[", "{")):
        hint = closest(text, PRESETS) or f"; there are {' and '.join(PRESETS)}."
        raise UserError(f"There is no curriculum '{text}'{hint}")
    try:
        return parse_json(text)
    except ValueError as error:
        raise UserError(f"The curriculum is not JSON: {error}.") from error


def _parse_stage(stage: Any, index: int, is_last: bool) -> Stage:
    if not isinstance(stage, Mapping):
        raise UserError(f'{name_stage(index)} is {stage!r:.80}, but it must be an object with "env_id".')
    env_id = stage.get("env_id")
    name = name_stage(index, env_id)
    for key in stage:
        if key not in _KEYS:
            hint = closest(str(key), _KEYS) or f"; allowed: {', '.join(_KEYS)}."
            raise UserError(f"{name} has an unknown key '{key}'{hint}")
    if not isinstance(env_id, str) or not env_id.strip():
        raise UserError(f'{name_stage(index)} has no environment: add "env_id".')
    text = _condition_text(stage, name)
    if text is None:
        return Stage(env_id, None if is_last else parse_condition(DEFAULT_CONDITION))
    try:
        return Stage(env_id, parse_condition(text))
    except UserError as error:
        raise UserError(f"{name}: {error}") from error


def _condition_text(stage: Mapping[str, Any], name: str) -> str | None:
    steps, condition = stage.get("steps"), stage.get("condition")
    if steps is not None and condition is not None:
        raise UserError(
            f"{name} has both steps and a condition: write the steps into the condition, as steps>=N."
        )
    if condition is not None:
        if not isinstance(condition, str):
            raise UserError(f"{name}: the condition is {condition!r:.80}, but it must be a text.")
        return condition
    if steps is None:
        return None
    if isinstance(steps, bool) or not isinstance(steps, int | float) or steps < 1 or steps != int(steps):
        raise UserError(f"{name}: steps is {steps!r:.80}, but it must be a whole number of at least 1.")
    return f"steps>={int(steps)}"


def with_target(fields: Mapping[str, Any], schedule: Schedule) -> dict[str, Any]:
    """A config's fields with an environment: of several stages it is the last one, unless one is named."""
    env_id = fields.get("env_id")
    stages = [stage.env_id for stage in schedule.stages]
    if env_id is None:
        return {**fields, "env_id": stages[-1]}
    if env_id not in stages:
        hint = closest(str(env_id), stages) or f"; name one of {', '.join(stages)}, or none."
        raise UserError(f"'env_id' is {env_id!r}, which is not a stage of the curriculum{hint}")
    return dict(fields)


def check_stages(
    schedule: Schedule, algo: str, find: Callable[[str], EnvironmentEntry | None]
) -> list[EnvironmentEntry]:
    """What is known of the stages' environments; a UserError names the stage that cannot be trained on.

    `find` gives None for an environment of which nothing can be said now.
    """
    known: list[EnvironmentEntry] = []
    for index, stage in enumerate(schedule.stages):
        try:
            entry = find(stage.env_id)
            if entry is not None:
                check_fit(algo, entry)
                check_spaces(known[0] if known else entry, entry)
                known.append(entry)
        except UserError as error:
            raise UserError(f"{name_stage(index, stage.env_id)}: {error}") from error
    return known


def check_budget(schedule: Schedule, total_timesteps: int) -> None:
    """Raise UserError when a run would end before the last stage begins."""
    needed = schedule.least_steps()
    if total_timesteps <= needed:
        raise UserError(
            f"The stages before the last one of the curriculum take {needed:,} steps, but the run has "
            f"{total_timesteps:,}: give it more than {needed:,} steps, or shorten the stages."
        )


def check_spaces(first: EnvironmentEntry, entry: EnvironmentEntry, same_actions: bool = True) -> None:
    """Raise UserError when what was trained on one environment cannot go on with another.

    `same_actions`: what is known of the actions beyond their description.
    """
    spaces = (grid_of_dict(one.observation) or one.observation for one in (first, entry))
    # Networks have a shape and no bounds, so observations may have others.
    seen = [{name: space[name] for name in space if name not in ("low", "high")} for space in spaces]
    if seen[0] != seen[1]:
        raise _differ("observations", first, seen[0], seen[1])
    if first.action != entry.action or not same_actions:
        raise _differ("actions", first, first.action, entry.action)


def _differ(what: str, first: EnvironmentEntry, was: Mapping[str, Any], now: Mapping[str, Any]) -> UserError:
    known, here = describe_briefly(was), describe_briefly(now)
    numbers = f"{here} instead of {known}" if here != known else f"other bounds of {here}"
    return UserError(
        f"its {what} are not those of the first stage, {first.env_id} ({numbers}); "
        "all stages must have the same spaces."
    )
