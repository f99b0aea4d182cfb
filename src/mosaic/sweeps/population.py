"""Population-based training: what a sweep file says of it, and the lineage that it leaves, as plain values.

A population trains its members a piece at a time. After each piece the worst of them go on from a checkpoint
of one of the best, with other parameters. A member's piece is a trial of the study; `Trial.parent` is the
trial whose checkpoint it began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mosaic.client.configs import worker_for
from mosaic.contract.capabilities import ChangingCatalog
from mosaic.contract.errors import UserError, closest
from mosaic.sweeps.space import Parameter, is_number
from mosaic.sweeps.study import COMPLETE, ENDED, Study, Trial
from mosaic.sweeps.tables import TableParser

PBT, SEARCH = "pbt", "search"
KINDS = (SEARCH, PBT)
"""What `kind` in a sweep file may be."""
MOST_MEMBERS = 1_000
MOST_GENERATIONS = 1_000
USUAL_GENERATIONS = 10
_OF_A_SEARCH = ("sampler", "pruner", "trials", "storage", "study", "scores", "report_every")
"""Settings of a sweep file that a population has no use for."""
_SETTINGS = ("members", "interval", "quantile", "perturb", "resample", "seed")
_GREATEST_SEED = 2**31 - 1
_NO_EVALUATION = {"eval_episodes": 0}


@dataclass(frozen=True)
class Population:
    """How a population is trained."""

    members: int = 8
    interval: int = 10_000
    """Steps of each member between two moments at which the worst copy the best."""
    generations: int = USUAL_GENERATIONS
    quantile: float = 0.25
    """This share of the members, the worst, copies from as many of the best."""
    perturb: tuple[float, ...] = (0.8, 1.25)
    """A number that is copied is multiplied by one of these."""
    resample: float = 0.25
    """How likely it is drawn anew from the search space instead."""
    seed: int = 1
    """Of the choices; members train with the seeds of the sweep."""

    @property
    def trials(self) -> int:
        return self.members * self.generations

    @property
    def moved(self) -> int:
        """How many members copy, and how many they copy from."""
        return max(1, int(self.quantile * self.members))

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Population:
        return cls(**{**told, "perturb": tuple(told["perturb"])})


def is_population(table: Mapping[str, Any]) -> bool:
    """Whether a sweep file asks for one."""
    return table.get("kind") == PBT


def changeable(algo: str) -> Sequence[str]:
    """The parameters of an algorithm that may change when a run is resumed; none of what cannot be."""
    try:
        catalog = worker_for(algo).load_catalog()
    except UserError:
        return ()
    return catalog.changeable(algo) if isinstance(catalog, ChangingCatalog) else ()


def _steps_of_update(algo: str, fixed: Mapping[str, Any]) -> int:
    """How many steps lie between two updates, as far as the parameters tell."""
    try:
        known = {one.name: one.default for one in worker_for(algo).load_catalog().parameters(algo)}
        values = {**known, **fixed}
        return int(values["num_envs"]) * int(values["num_steps"])
    except (UserError, KeyError, TypeError, ValueError):
        # Told of elsewhere; or there is an update every few steps.
        return 1


def usual_settings(table: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """What is set in all members: nobody waits for an evaluation after each piece unless it is asked for."""
    objective = table.get("objective")
    metric = objective.get("metric") if isinstance(objective, Mapping) else None
    if str(metric or "").startswith("eval/") or not changeable(str(table.get("algo"))):
        return dict(fixed)
    return {**_NO_EVALUATION, **fixed}


class PopulationParser(TableParser):
    """Reads `[population]` and what a sweep file says besides; every problem is complained of."""

    def population(
        self,
        algos: Sequence[str],
        env_ids: Sequence[str],
        seeds: Sequence[int],
        fixed: Mapping[str, Any],
        space: Sequence[Parameter],
        budget: int,
    ) -> Population:
        for name in _OF_A_SEARCH:
            if name in self._table:
                self._complain(f"'{name}' is for a search: leave it out where kind is \"{PBT}\".")
        for what, found in (("algorithm", algos), ("environment", env_ids), ("seed", seeds)):
            if len(found) > 1:
                more = " Its members take the seeds after it." if what == "seed" else ""
                self._complain(
                    f"A population trains with one {what}: name one instead of {len(found)}.{more}"
                )
        if isinstance(self._table.get("objective"), list) and len(self._table["objective"]) > 1:
            self._complain("A population is judged by one objective: keep one [objective].")
        if fixed.get("checkpoint_every") == 0:
            self._complain("'set.checkpoint_every' is 0, but a population needs checkpoints: leave it out.")
        for algo in algos[:1]:
            self._check_space(algo, space)
        asked = self._settings(budget)
        update = _steps_of_update(algos[0], fixed) if algos else 1
        if asked.interval < update:
            self._complain(
                f"'population.interval' is {asked.interval:,}, but an update of {algos[0]} takes {update:,} "
                "steps (num_envs times num_steps): give at least so many."
            )
        if seeds and seeds[0] + asked.members - 1 > _GREATEST_SEED:
            self._complain(
                f"'seeds' begins with {seeds[0]}, and {asked.members} members take the seeds from there on, "
                f"but a seed must be at most {_GREATEST_SEED}."
            )
        return asked

    def _check_space(self, algo: str, space: Sequence[Parameter]) -> None:
        free = changeable(algo)
        if not free:
            self._complain(
                f"'{algo}' cannot be trained as a population: only algorithms on the training kit write full "
                "checkpoints."
            )
            return
        for one in space:
            if one.name not in free:
                hint = closest(one.name, free) or "."
                self._complain(
                    f"'space.{one.name}' cannot change when a run is resumed, so a population cannot search "
                    f"it: put it into [set]{hint} {algo} can change {', '.join(free)}."
                )
            if one.when:
                self._complain(f"'space.{one.name}.when' is for a search: a population has no conditions.")

    def _settings(self, budget: int) -> Population:
        given, usual = self._table_of("population"), Population()
        self._check_keys(given, _SETTINGS, "[population]")

        def whole(name: str, usual: int, least: int, most: int) -> int:
            found = self._whole_of(f"population.{name}", given.get(name, usual), least, most)
            return usual if found is None else found

        def number(name: str, usual: float, low: float, high: float) -> float:
            found = self._number_of(f"population.{name}", given.get(name, usual), low, high)
            return usual if found is None else found

        members = whole("members", usual.members, 2, MOST_MEMBERS)
        tenth = max(1, -(-budget // USUAL_GENERATIONS))
        interval = whole("interval", tenth, 1, 10**12)
        generations = max(1, -(-budget // interval))
        if budget and not 2 <= generations <= MOST_GENERATIONS:
            self._complain(
                f"'population.interval' is {interval:,} of {budget:,} steps, but must cut them into 2 to "
                f"{MOST_GENERATIONS:,} pieces."
            )
        return Population(
            members,
            interval,
            generations,
            number("quantile", usual.quantile, 0.0, 0.5),
            self._factors(given, usual.perturb),
            number("resample", usual.resample, 0.0, 1.0),
            whole("seed", usual.seed, 0, _GREATEST_SEED),
        )

    def _factors(self, given: Mapping[str, Any], usual: tuple[float, ...]) -> tuple[float, ...]:
        value = given.get("perturb", list(usual))
        if (
            not isinstance(value, list)
            or not value
            or not all(is_number(one) and one > 0 and one != 1 for one in value)
        ):
            self._complain(
                f"'population.perturb' is {value!r:.60}, but must be a list of factors above 0 other than 1, "
                "such as [0.8, 1.25]."
            )
            return usual
        return tuple(float(one) for one in value)


# Reading what it leaves


@dataclass(frozen=True)
class Piece:
    """What one member trained in one generation."""

    trial: int
    generation: int
    member: int
    state: str
    params: Mapping[str, Any]
    value: float | None = None
    run: str = ""
    parent: int | None = None
    """The trial whose checkpoint it began with; None in the first generation."""
    parent_run: str = ""
    copied_from: int | None = None
    """The member that it was copied from; None where it goes on from its own checkpoint."""


@dataclass(frozen=True)
class Lineage:
    """Who came of whom in a population."""

    members: int
    generations: int
    """How many there will be."""
    pieces: tuple[Piece, ...]
    """By generation, then by member."""
    best: int | None = None
    """The trial of the best member of the newest generation that has ended, of which the model is taken."""

    def piece(self, trial: int) -> Piece:
        return self.pieces[trial]

    @property
    def final(self) -> Piece | None:
        """The best member of the newest ended generation."""
        return None if self.best is None else self.pieces[self.best]

    def ancestors(self, trial: int) -> list[Piece]:
        """The pieces that led to a trial, the first one first, and it at the end."""
        found = [self.pieces[trial]]
        while (parent := found[-1].parent) is not None:
            found.append(self.pieces[parent])
        return found[::-1]

    def as_json(self) -> dict[str, Any]:
        path = [] if self.best is None else [one.trial for one in self.ancestors(self.best)]
        return {**asdict(self), "path": path}


def lineage(study: Study) -> Lineage | None:
    """The lineage in a study; None where it is not of a population."""
    members = study.members
    if not members:
        return None
    trials = study.trials
    pieces = tuple(_piece(one, trials, members) for one in trials)
    sign = 1 if study.directions[0] == "maximize" else -1
    best = None
    for begin in range(len(trials) - members, -1, -1):
        newest = trials[begin : begin + members] if begin % members == 0 else ()
        if newest and all(one.state in ENDED for one in newest):
            best = max(
                (one for one in newest if one.value is not None),
                key=lambda one: sign * (one.value or 0.0),
                default=None,
            )
            break
    generations = (study.wanted or len(trials)) // members
    return Lineage(members, generations, pieces, None if best is None else best.number)


def _piece(one: Trial, trials: Sequence[Trial], members: int) -> Piece:
    generation, member = divmod(one.number, members)
    parent = None if one.parent is None else trials[one.parent]
    copied = parent is not None and parent.number % members != member
    return Piece(
        trial=one.number,
        generation=generation,
        member=member,
        state=one.state,
        params=dict(one.params),
        value=one.values[0] if one.state == COMPLETE and one.values else None,
        run=one.runs[0] if one.runs else "",
        parent=one.parent,
        parent_run=parent.runs[0] if parent is not None and parent.runs else "",
        copied_from=parent.number % members if parent is not None and copied else None,
    )
