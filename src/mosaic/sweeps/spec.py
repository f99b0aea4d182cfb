"""What a sweep is asked to do, as plain values: what its file says, and what its run config holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic.contract import words
from mosaic.contract.secrets import referred
from mosaic.sweeps.objective import Objective
from mosaic.sweeps.population import Population
from mosaic.sweeps.space import Parameter

SQLITE, JOURNAL = "sqlite", "journal"
"""Storages in a file of the sweep's own folder."""
USUAL_TRIALS = 20


@dataclass(frozen=True)
class Choice:
    """A sampler or pruner of Optuna, by name, with its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.options.items())])


def plain_name(name: str) -> str:
    """The name by which a class of Optuna's goes in a file: `tpe` of `TPESampler`."""
    for ending in ("Sampler", "Pruner", "Crossover"):
        name = name.removesuffix(ending)
    plain = name.lower().replace("-", "").replace("_", "")
    return "none" if plain == "nop" else plain


@dataclass(frozen=True)
class Template:
    """A checked run config for one algorithm on one environment; trials differ in parameters and seed."""

    algo: str
    env_id: str
    config: Mapping[str, Any]


def budget_of(templates: Sequence[Template]) -> int:
    """Steps of a run; of several environments the fewest. 0 where only the script knows."""
    asked = (one.config["metadata"]["worker"]["config"] for one in templates)
    return min((int(one.get("total_timesteps") or 0) for one in asked), default=0)


@dataclass(frozen=True)
class SweepSpec:
    """One sweep, checked."""

    templates: tuple[Template, ...]
    space: tuple[Parameter, ...]
    seeds: tuple[int, ...] = (1,)
    trials: int = USUAL_TRIALS
    parallel: int = 0
    """Trials at once; 0 for as many as fit."""
    max_minutes: float | None = None
    objectives: tuple[Objective, ...] = (Objective(),)
    sampler: Choice = Choice("tpe")
    pruner: Choice | None = None
    report_every: int = 1
    scores: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    storage: str = JOURNAL
    study: str = ""
    """The study's name in a storage that holds several; empty for one of the sweep's own."""
    try_first: tuple[Mapping[str, Any], ...] = ()
    name: str = ""
    tags: tuple[str, ...] = ()
    notes: str = ""
    search_seed: int = 1
    population: Population | None = None
    """How a population is trained in place of a search."""
    benchmark: str = ""
    """The name of a benchmark: nothing is searched, each template is trained with each seed."""
    references: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """For environments of a benchmark the returns that count as 0 and as 1."""

    @property
    def algos(self) -> list[str]:
        return list(dict.fromkeys(one.algo for one in self.templates))

    @property
    def env_ids(self) -> list[str]:
        return list(dict.fromkeys(one.env_id for one in self.templates))

    @property
    def runs_per_trial(self) -> int:
        return 1 if self.benchmark else len(self.seeds) * len(self.env_ids)

    @property
    def budget(self) -> int:
        return budget_of(self.templates)

    @property
    def prunes(self) -> bool:
        return self.pruner is not None and plain_name(self.pruner.name) != "none"

    @property
    def title(self) -> str:
        return self.name or f"Sweep of {', '.join(map(_leaf, self.algos))} · {', '.join(self.env_ids)}"

    def plan(self) -> list[tuple[str, str]]:
        """What it will do, for people: facts by their names."""
        runs, trials = self.runs_per_trial, f"{self.trials:,}"
        budgets = (one.config["metadata"]["worker"]["config"]["total_timesteps"] for one in self.templates)
        steps = " or ".join(dict.fromkeys(map(words.whole, budgets)))
        known = [
            ("objective", "; ".join(f"{one.direction} {one.words(runs)}" for one in self.objectives)),
            ("parallel", str(self.parallel or "as many as fit")),
        ]
        if self.population is not None:
            asked, seed = self.population, self.seeds[0]
            factors = " or ".join(f"{one:g}" for one in asked.perturb)
            copied = "the worst member copies the best one"
            if asked.moved > 1:
                copied = f"the worst {asked.moved} members copy from as many of the best"
            last = seed + asked.members - 1
            return [
                ("population", self.title),
                ("members", f"{asked.members}, each of {steps} steps, with seeds {seed} to {last}"),
                ("generations", f"{asked.generations}, each of {words.whole(asked.interval)} steps"),
                ("exploit", copied),
                ("explore", f"times {factors}; resampled with a probability of {asked.resample:g}"),
                *known,
            ]
        variable = referred(self.storage)
        return [
            ("sweep", self.title),
            ("trials", trials if runs == 1 else f"{trials}, each of {words.count(runs, 'run')}"),
            (
                "steps",
                f"{steps} in each run, at most {self.budget * self.trials * runs:,} in all"
                if self.budget
                else "as the script says",
            ),
            ("seeds", ", ".join(map(str, self.seeds))),
            ("sampler", str(self.sampler)),
            ("pruner", str(self.pruner) if self.prunes else "none"),
            *known,
            ("storage", self.storage if variable is None else f"the URL in ${variable}"),
        ]

    def as_json(self) -> dict[str, Any]:
        """As a run config holds it."""
        return {
            **vars(self),
            "templates": [{**vars(one), "config": dict(one.config)} for one in self.templates],
            "space": [one.as_json() for one in self.space],
            "objectives": [one.as_json() for one in self.objectives],
            "sampler": {"name": self.sampler.name, "options": dict(self.sampler.options)},
            "pruner": self.pruner and {"name": self.pruner.name, "options": dict(self.pruner.options)},
            "population": self.population and vars(self.population),
            "seeds": list(self.seeds),
            "tags": list(self.tags),
            "try_first": [dict(one) for one in self.try_first],
            "scores": {env_id: list(ends) for env_id, ends in self.scores.items()},
            "references": {env_id: list(ends) for env_id, ends in self.references.items()},
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> SweepSpec:
        """The spec in a run config that `as_json` has made."""
        return cls(
            **{
                **told,
                "templates": tuple(Template(**one) for one in told["templates"]),
                "space": tuple(Parameter.from_json(one) for one in told["space"]),
                "objectives": tuple(Objective(**one) for one in told["objectives"]),
                "sampler": Choice(**told["sampler"]),
                "pruner": told["pruner"] and Choice(**told["pruner"]),
                "population": Population.from_json(told["population"]) if told.get("population") else None,
                "seeds": tuple(told["seeds"]),
                "tags": tuple(told["tags"]),
                "try_first": tuple(told["try_first"]),
                "scores": {env_id: (ends[0], ends[1]) for env_id, ends in told["scores"].items()},
                "references": {
                    env_id: (ends[0], ends[1]) for env_id, ends in told.get("references", {}).items()
                },
            }
        )


def _leaf(algo: str) -> str:
    return Path(algo).name


def with_params(asked: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's config with these parameters on top."""
    extras = dict(asked.get("extras") or {})
    extras["algo_params"] = {**(extras.get("algo_params") or {}), **params}
    return {**asked, "extras": extras}
