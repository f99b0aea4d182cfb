"""Curricula of Syllabus-RL that a schedule may name: they draw a task for each episode."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.contract.errors import UserError, closest

EXTRA = "curriculum"
"""The optional set that brings Syllabus-RL."""
PROGRESS = "OnlineLearningProgress"
_BATCHED = "BatchedDomainRandomization"
_KEYS = ("curriculum", "tasks", "success_return", "arguments")
_EVERY = ("update_interval", "update_interval_steps")
_USUAL_INTERVAL = 100

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "DomainRandomization": (),
    _BATCHED: ("batch_size", "warmup_batches"),
    PROGRESS: (*_EVERY, "ema_alpha", "p_theta", "uniform_prob", "normalize_success"),
}
"""The curricula that can be used, each with those of its arguments that may be given."""

_LEAST = {"batch_size": 1, "warmup_batches": 0, **dict.fromkeys(_EVERY, 1)}
_REFUSED = {
    **dict.fromkeys(
        ("LearningProgress", "Learnability", "OMNI", "OMNILearnability"),
        f"it evaluates the policy on every task by itself; {PROGRESS} learns from training's own episodes",
    ),
    **dict.fromkeys(
        ("PrioritizedLevelReplay", "CentralPrioritizedLevelReplay", "DirectPrioritizedLevelReplay"),
        "it scores tasks by the errors of a critic, and an episode's return does not tell them",
    ),
    **{
        f"Stratified{name}": "it needs tasks in groups, and here they are one list"
        for name in ("LearningProgress", "DomainRandomization", "Learnability", PROGRESS)
    },
    **dict.fromkeys(
        ("SimulatedAnnealing", "ExpandingBox"), "it draws numbers, and tasks are environments here"
    ),
    **dict.fromkeys(
        ("SelfPlay", "FictitiousSelfPlay", "PrioritizedFictitiousSelfPlay"),
        "it draws opponents, and there is one agent here",
    ),
    **dict.fromkeys(
        ("Constant", "Manual"), "it chooses nothing by itself; a list of stages does what it does"
    ),
    "SequentialCurriculum": "write its stages as a list, which needs no Syllabus-RL and counts exactly",
    "SyncedBatchedDomainRandomization": f"its learner has to tell it of updates; use {_BATCHED}",
}


@dataclass(frozen=True)
class Sampler:
    """Which curriculum draws the tasks, and how."""

    name: str
    success_return: float | None = None
    """The return from which on an episode is a success, where the curriculum counts successes."""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self, tasks: list[str]) -> dict[str, Any]:
        """As it is written in a config, with the tasks that it draws from."""
        success = {} if self.success_return is None else {"success_return": self.success_return}
        return {"curriculum": self.name, "tasks": tasks, **success, "arguments": dict(self.arguments)}


def parse_sampler(given: Mapping[str, Any]) -> tuple[Sampler, list[str]]:
    """The curriculum that an object names, and its tasks; a UserError says what is wrong with it."""
    name = _check_name(given["curriculum"])
    for key in given:
        if key not in _KEYS:
            hint = closest(str(key), _KEYS) or f"; allowed: {', '.join(_KEYS)}."
            raise UserError(f"The curriculum {name} has an unknown key '{key}'{hint}")
    success = given.get("success_return")
    if name != PROGRESS and success is not None:
        raise UserError(f"The curriculum {name} does not count successes: leave 'success_return' out.")
    if name == PROGRESS and not _is_number(success):
        state = "is missing" if success is None else f"is {success!r:.80}"
        raise UserError(
            f"The curriculum {name} counts successes, but 'success_return' {state}: "
            "give the minimum return of a success."
        )
    sampler = Sampler(name, None if success is None else float(success), _check_arguments(name, given))
    return sampler, _check_tasks(name, given.get("tasks"))


def _check_name(name: Any) -> str:
    if not isinstance(name, str):
        raise UserError(f"The curriculum is {name!r:.80}, but it must be the name of one of Syllabus-RL.")
    if name in ARGUMENTS:
        return name
    if name in _REFUSED:
        raise UserError(f"{name} of Syllabus-RL cannot be used: {_REFUSED[name]}.")
    hint = closest(name, (*ARGUMENTS, *_REFUSED)) or f"; there are {', '.join(ARGUMENTS)}."
    raise UserError(f"Syllabus-RL has no curriculum '{name:.80}'{hint}")


def _check_tasks(name: str, tasks: Any) -> list[str]:
    if not isinstance(tasks, list | tuple) or not all(isinstance(one, str) and one.strip() for one in tasks):
        state = "are missing" if tasks is None else f"are {tasks!r:.80}"
        raise UserError(f"The tasks of the curriculum {name} {state}: give a list of environment ids.")
    if len(set(tasks)) != len(tasks) or len(tasks) < 2:
        raise UserError(f"The curriculum {name} needs at least two different tasks.")
    return list(tasks)


def _check_arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    arguments = given.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise UserError(f"The arguments of {name} are {arguments!r:.80}, but they must be an object.")
    known = ARGUMENTS[name]
    for key, value in arguments.items():
        if key not in known:
            hint = closest(str(key), known) or (f"; there are {', '.join(known)}." if known else ", nor any.")
            raise UserError(f"The curriculum {name} has no argument '{key}' here{hint}")
        wrong = _what_is_wrong(key, value)
        if wrong:
            raise UserError(f"The argument '{key}' of {name} is {value!r:.80}, but it must be {wrong}.")
    if name == _BATCHED and "batch_size" not in arguments:
        raise UserError(f"{name} needs the argument 'batch_size': the steps for which each task is kept.")
    checked = {key: int(value) if key in _LEAST else value for key, value in arguments.items()}
    if name != PROGRESS:
        return checked
    if all(key in arguments for key in _EVERY):
        raise UserError(f"{name} takes 'update_interval' (episodes) or 'update_interval_steps', not both.")
    usual = {} if any(key in arguments for key in _EVERY) else {"update_interval": _USUAL_INTERVAL}
    return {**checked, **usual}


def _what_is_wrong(key: str, value: Any) -> str:
    """What the value has to be; empty when it is."""
    if key == "normalize_success":
        return "" if isinstance(value, bool) else "true or false"
    if key in _LEAST:
        whole = _is_number(value) and value == int(value) and value >= _LEAST[key]
        return "" if whole else f"a whole number of at least {_LEAST[key]}"
    # At the ends of its range p_theta divides by zero.
    open_range = key == "p_theta"
    inside = _is_number(value) and (0.0 < value < 1.0 if open_range else 0.0 <= value <= 1.0)
    return "" if inside else f"a number between 0 and 1{' and neither of them' if open_range else ''}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
