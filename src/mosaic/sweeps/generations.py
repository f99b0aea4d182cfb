"""A population at work: its generations take the place of a search, its members that of trials.

The choices are made of the seed, the generation and the member alone, so they are the same whenever they are
made. A generation is in `population.jsonl`, synced, with parents and parameters, before a run of it is
submitted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from mosaic.contract.capabilities import RESUMES
from mosaic.contract.errors import UserError
from mosaic.sweeps.engine import Engine
from mosaic.sweeps.population import Population
from mosaic.sweeps.space import Parameter, Value
from mosaic.sweeps.spec import SweepSpec, Template
from mosaic.sweeps.study import (
    COMPLETE,
    ENDED,
    FAILED,
    RUNNING,
    WAITING,
    Study,
    StudyWriter,
    Trial,
    read_study,
)
from mosaic.sweeps.trials import Unpruned

JOURNAL = "population.jsonl"
_CUT_OFF = "its sweep "
"""So the reason begins for a trial that ended with its sweep, and is to be trained again."""


def drawn(one: Parameter, random: Random) -> Value:
    """A value from the search space."""
    if one.choices:
        return random.choice(one.choices)
    low, high = float(one.low or 0), float(one.high or 0)
    if one.log:
        found = math.exp(random.uniform(math.log(low), math.log(high)))
    elif one.whole:
        return _fitted(one, random.randint(int(low), int(high)))
    else:
        found = random.uniform(low, high)
    return _fitted(one, found)


def perturbed(one: Parameter, near: Any, population: Population, random: Random) -> Value:
    """A value near another one, or now and then any value of the search space."""
    value: Value = near
    if random.random() < population.resample:
        return drawn(one, random)
    if one.choices:
        if any(isinstance(choice, bool | str) for choice in one.choices):
            # There is no near and far among them.
            return value
        ordered = sorted(one.choices, key=float)
        place = ordered.index(value) + random.choice((-1, 1))
        return ordered[min(max(place, 0), len(ordered) - 1)]
    factor = random.choice(population.perturb)
    found = _fitted(one, float(value) * factor)
    if one.whole and found == value:
        # A factor that rounding takes back moves a small number by one step.
        found = _fitted(one, float(value) + math.copysign(one.step or 1, factor - 1))
    return found


def _fitted(one: Parameter, value: float) -> Value:
    """The nearest value that the parameter may have."""
    low, high = float(one.low or 0), float(one.high or 0)
    if one.step:
        value = low + round((value - low) / one.step) * one.step
        high = low + math.floor((high - low) / one.step + 1e-9) * one.step
    value = min(max(value, low), high)
    return round(value) if one.whole else value


def first_generation(spec: SweepSpec, population: Population) -> list[Trial]:
    """The members that a population begins with: those that are to be tried first, the others drawn."""
    found = []
    for member in range(population.members):
        random = _random(population, 0, member)
        params = {one.key: drawn(one, random) for one in spec.space}
        if member < len(spec.try_first):
            params |= spec.try_first[member]
        found.append(Trial(member, WAITING, params))
    return found


def next_generation(spec: SweepSpec, population: Population, last: Sequence[Trial]) -> list[Trial]:
    """The members after these: the worst go on from one of the best, with other parameters."""
    sign = spec.objectives[0].sign
    done = [one for one in last if one.state == COMPLETE and one.values]
    if not done:
        raise UserError(
            f"All {len(last)} members of generation {last[0].number // population.members} have failed, the "
            f"last because: {last[-1].reason}"
        )
    done.sort(key=lambda one: (-sign * one.values[0], one.number))
    best = done[: population.moved]
    failed = [one for one in last if one not in done]
    rest, count = done[len(best) :], max(0, population.moved - len(failed))
    worst = [*failed, *rest[max(0, len(rest) - count) :]]
    found = []
    for member, own in enumerate(last):
        number = own.number + population.members
        random = _random(population, number // population.members, member)
        parent, params = own, dict(own.params)
        if own in worst:
            donor = random.choice(best)
            # Where all do equally well, nobody has anything to copy.
            if own in failed or sign * donor.values[0] > sign * own.values[0]:
                parent = donor
                params = {
                    one.key: perturbed(one, donor.params[one.key], population, random) for one in spec.space
                }
        found.append(Trial(number, WAITING, params, parent=parent.number))
    return found


def _random(population: Population, generation: int, member: int) -> Random:
    return Random(f"{population.seed}:{generation}:{member}")


class Generations(Unpruned):
    """The members of all generations, in the place that a study has in a search."""

    def __init__(
        self, spec: SweepSpec, population: Population, sweep: str, folder: Path, before: Path | None = None
    ) -> None:
        """Take up what is in the sweep's folder, or in that of the sweep `before`, which it goes on with."""
        self._spec = spec
        self._population = population
        self._sweep = sweep
        self._folder = folder
        self._journal = StudyWriter(folder, JOURNAL, sync=True)
        self._trials: list[Trial] = []
        study = read_study(folder, JOURNAL)
        if study is not None:
            self._trials = list(_unbroken(study.trials))
        elif before is not None and (study := read_study(before, JOURNAL)) is not None:
            self._trials = [_again(one) for one in _unbroken(study.trials)]
        # A generation that a crash has cut off while it was written is made anew, with the same choices.
        whole = len(self._trials) // population.members * population.members
        del self._trials[whole:]
        self._journal.begin(self.record())

    @property
    def wanted(self) -> int:
        return self._population.trials

    @property
    def ready(self) -> bool:
        """Whether a member can go on now; else others have to end their piece first."""
        if any(one.state == WAITING for one in self._trials):
            return True
        return len(self._trials) < self.wanted and all(one.state in ENDED for one in self._trials)

    @property
    def spent(self) -> bool:
        return len(self._trials) >= self.wanted and not any(one.state == WAITING for one in self._trials)

    @property
    def has_values(self) -> bool:
        return any(one.state == COMPLETE for one in self._trials)

    def progress(self) -> tuple[int, float | None]:
        """How many pieces have ended, and the best value."""
        best = self.record().best
        return sum(one.state in ENDED for one in self._trials), best.values[0] if best else None

    def trial(self, number: int) -> Trial:
        return self._trials[number]

    def founder(self, trial: Trial) -> int:
        """The member of the first generation that it came of, whose seed a checkpoint keeps."""
        while trial.parent is not None:
            trial = self._trials[trial.parent]
        return trial.number

    def open_trials(self) -> list[Trial]:
        """The members that were begun and not judged."""
        return [one for one in self._trials if one.state == RUNNING]

    def ask(self) -> Trial:
        """The next member; after the last one of a generation the first of the next."""
        waiting = next((one for one in self._trials if one.state == WAITING), None)
        if waiting is None:
            made = self._made()
            self._trials += made
            self._journal.add_all(made)
            waiting = made[0]
        return self._change(waiting.number, state=RUNNING, started_at=time.time())

    def _made(self) -> list[Trial]:
        if not self._trials:
            return first_generation(self._spec, self._population)
        return next_generation(self._spec, self._population, self._trials[-self._population.members :])

    def _change(self, number: int, **news: Any) -> Trial:
        changed = self._trials[number] = replace(self._trials[number], **news)
        self._journal.add(number, **news)
        return changed

    def set_runs(self, number: int, runs: Sequence[str]) -> None:
        self._change(number, runs=tuple(runs))

    def tell(
        self,
        number: int,
        state: str,
        values: Sequence[float] | None = None,
        reason: str = "",
        interrupted: bool = False,
    ) -> Trial:
        """How a member's piece has ended."""
        return self._change(
            number, state=state, values=tuple(values or ()), reason=reason, ended_at=time.time()
        )

    def record(self) -> Study:
        """All of it, as a study."""
        (objective,) = self._spec.objectives
        return Study(
            name=self._sweep,
            objectives=(objective.words(),),
            directions=(objective.direction,),
            distributions={one.key: one.distribution() for one in self._spec.space},
            trials=tuple(self._trials),
            wanted=self.wanted,
            sweep=self._sweep,
            members=self._population.members,
        )


def _unbroken(trials: Sequence[Trial]) -> Iterator[Trial]:
    """The trials up to the first one that is missing."""
    return (one for number, one in enumerate(trials) if one.number == number)


def _again(trial: Trial) -> Trial:
    """A trial of the sweep before, to be trained anew where that was cut off."""
    if trial.state == COMPLETE or (trial.state == FAILED and not trial.reason.startswith(_CUT_OFF)):
        return trial
    return Trial(trial.number, WAITING, trial.params, parent=trial.parent)


class PopulationEngine(Engine):
    """An engine whose trials are the pieces of members."""

    _search: Generations

    def _ahead(self) -> int:
        # No member learns from another one of its generation: all may wait in the queue.
        return 0 if self._spec.parallel else self._search.wanted

    def _fill(self) -> None:
        if self._left_over:
            self._recover()
        while (
            len(self._flights) < self._most
            and self._search.ready
            and not self._spent()
            and not self._wishes.cancelled
        ):
            self._submit(self._search.ask())

    def _submit(self, trial: Trial) -> None:
        super()._submit(trial)
        if trial.parent is not None:
            self._mirror.add(trial.number, parent=trial.parent)

    def _places(self, trial: Trial) -> tuple[dict[str, Any], list[tuple[Template, int]]]:
        population = self._spec.population
        assert population is not None
        (template,), (seed,) = self._spec.templates, self._spec.seeds
        generation = trial.number // population.members
        params: dict[str, Any] = dict(trial.params)
        if generation + 1 < population.generations:
            params["stop_at"] = (generation + 1) * population.interval
        config = deepcopy(dict(template.config))
        if trial.parent is not None:
            run = self._search.trial(trial.parent).runs[0]
            place = str(self._client.paths.run(run).run_dir)
            params["resume_changes"] = ",".join(one.name for one in self._spec.space)
            _extras(config).update({"mode": RESUMES, "checkpoint_path": place})
        return params, [(replace(template, config=config), seed + self._search.founder(trial))]

    def _name(self, template: Template, trial: Trial) -> str:
        assert self._spec.population is not None
        generation, member = divmod(trial.number, self._spec.population.members)
        return f"{template.config['run_name']}-member-{member}-generation-{generation}"


def _extras(config: Mapping[str, Any]) -> dict[str, Any]:
    asked = config["metadata"]["worker"]["config"]
    found: dict[str, Any] = asked.setdefault("extras", {})
    return found
