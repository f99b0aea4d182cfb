"""A sweep as a form holds it: fields, and a line for each parameter; read from a sweep file, and written.

What a file says beyond the form stays as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from gym_gui.models.form_state import Field, FormState, parse_seeds, problem_in, show_seeds
from mosaic.contract.capabilities import ParamSchema
from mosaic.contract.errors import UserError
from mosaic.sweeps.objective import DIRECTIONS, OVER_SEEDS, TAKES, USUAL_METRIC, USUAL_POINTS
from mosaic.sweeps.population import PBT
from mosaic.sweeps.space import known_spaces
from mosaic.sweeps.spec import USUAL_TRIALS, SweepSpec, plain_name

RANGE, LOG, CHOICES, FIXED = "range", "log", "choices", "fixed"
KINDS = {RANGE: "range", LOG: "log range", CHOICES: "choices", FIXED: "fixed"}
"""How a parameter is searched, with the words for it; the last one is not searched at all."""
SAMPLERS = ("tpe", "random", "gp", "cmaes", "nsgaii", "nsgaiii", "qmc", "grid", "bruteforce")
PRUNERS = (
    *("median", "none", "hyperband", "successivehalving", "percentile"),
    *("patient", "threshold", "wilcoxon"),
)
ABOUT_SAMPLERS = {
    "tpe": "tpe: learns from all trials; a good first choice",
    "random": "random: independent samples; a robust baseline",
    "gp": "gp: Gaussian processes, for few, long trials",
    "cmaes": "cmaes: evolution strategy, for many numbers and trials",
    "nsgaii": "nsgaii: genetic algorithm, for several objectives",
    "nsgaiii": "nsgaiii: the same for many objectives",
    "qmc": "qmc: covers the space evenly",
    "grid": "grid: every combination of choices and steps",
    "bruteforce": "bruteforce: every combination, with conditions too",
}
ABOUT_PRUNERS = {
    "median": "median: prunes trials below the median of the others",
    "none": "none: prunes no trial",
    "hyperband": "hyperband: several brackets of halving",
    "successivehalving": "successivehalving: only the best continue",
    "percentile": "percentile: prunes trials outside the best percentile",
    "patient": "patient: prunes trials without recent improvement",
    "threshold": "threshold: prunes trials outside given bounds",
    "wilcoxon": "wilcoxon: prunes trials that a signed-rank test finds worse",
}
_MOST_CHOICES = 200


def fields() -> FormState:
    """The fields of a sweep that are not about one parameter."""
    return FormState(
        [
            Field("env_id", default="CartPole-v1", label="Environment"),
            Field.maybe("total_timesteps", "count", "of each run", "Steps", minimum=1),
            Field("seeds", default="1", help="one run for each in every trial", label="Seeds"),
            Field("trials", "count", USUAL_TRIALS, "", "Trials", minimum=1),
            Field.maybe("parallel", "int", "trials at once", "In parallel", "as many as fit", minimum=1),
            Field.maybe("max_minutes", "float", "no trial begins later", "Minutes", "no limit", minimum=0),
            Field.maybe("name", label="Name", placeholder="derived from the search"),
            Field("metric", default=USUAL_METRIC, help="any curve that the runs log", label="Curve"),
            Field("direction", default=DIRECTIONS[0], label="Direction", choices=DIRECTIONS),
            Field("take", default="mean", label="Value", choices=TAKES),
            Field("points", "int", USUAL_POINTS, "at the end of the curve", "Points", minimum=1),
            Field("over_seeds", default=OVER_SEEDS[0], label="Over seeds", choices=OVER_SEEDS),
            Field("sampler", default=SAMPLERS[0], label="Sampler", choices=SAMPLERS),
            Field("pruner", default=PRUNERS[0], label="Pruner", choices=PRUNERS),
        ]
    )


@dataclass
class ParamDraft:
    """What is typed about one parameter."""

    name: str
    kind: str
    low: str = ""
    high: str = ""
    step: str = ""
    choices: str = ""
    value: str = ""
    when: Mapping[str, Any] = field(default_factory=dict)
    """Of a file: the form leaves it as it is."""

    def problem(self) -> str:
        """What is wrong with the line; empty when nothing is."""
        return problem_in(self.told)

    def told(self) -> Any:
        """What stands in the sweep file: of a fixed one its value."""
        if self.kind == FIXED:
            return self._value(self.value)
        if self.kind == CHOICES:
            found = [self._value(one) for one in re.split(r"[,;]", self.choices) if one.strip()]
            if not found:
                raise UserError(f"{self.name} has no choices: write them as 0.9, 0.99.")
            if len(found) > _MOST_CHOICES:
                raise UserError(f"{self.name} has {len(found)} choices: search a range instead.")
            return {"choices": found, "when": dict(self.when)} if self.when else found
        told: dict[str, Any] = {"low": self._number("low"), "high": self._number("high")}
        if told["low"] >= told["high"]:
            raise UserError(f"{self.name} goes from {self.low} to {self.high}: start below the end.")
        if self.kind == LOG:
            if told["low"] <= 0:
                raise UserError(f"{self.name} is logarithmic and begins at {self.low}: start above 0.")
            told["log"] = True
        elif self.step.strip():
            told["step"] = self._number("step")
        return {**told, "when": dict(self.when)} if self.when else told

    def _number(self, part: str) -> int | float:
        text = getattr(self, part).strip().replace("_", "").replace(",", "")
        try:
            number = int(text)
        except ValueError:
            try:
                decimal = float(text)
            except ValueError:
                decimal = math.nan
            if not math.isfinite(decimal):
                words = {"low": "begins at", "high": "ends at", "step": "has the step"}[part]
                raise UserError(f"{self.name} {words} '{text}', which is not a number.") from None
            return decimal
        return number

    def _value(self, text: str) -> bool | int | float | str:
        plain = text.strip()
        if not plain:
            raise UserError(f"{self.name} has no value: write one, or take it out.")
        if plain.lower() in ("on", "true", "off", "false"):
            return plain.lower() in ("on", "true")
        for kind in (int, float):
            try:
                number = kind(plain.replace("_", ""))
            except ValueError:
                continue
            if math.isfinite(number):
                return number
        return plain

    @classmethod
    def of(cls, name: str, told: Any) -> ParamDraft:
        """The line of a parameter in a `[space]`; a UserError when the form cannot show it."""
        if isinstance(told, list):
            told = {"choices": told}
        if not isinstance(told, Mapping) or not ("choices" in told or ("low" in told and "high" in told)):
            raise UserError(f"The search of '{name}' is {told!r:.60}, but must be choices or a range.")
        when = told.get("when") or {}
        if "choices" in told:
            listed = told["choices"] if isinstance(told["choices"], list) else [told["choices"]]
            return cls(name, CHOICES, choices=", ".join(map(typed, listed)), when=when)
        step = typed(told["step"]) if told.get("step") is not None else ""
        kind = LOG if told.get("log") else RANGE
        return cls(name, kind, typed(told["low"]), typed(told["high"]), step, when=when)

    @classmethod
    def beginning(cls, schema: ParamSchema) -> ParamDraft:
        """A line to begin with for a parameter that no known space has: around its default."""
        default = schema.default
        if schema.choices:
            return cls(schema.name, CHOICES, choices=", ".join(map(typed, schema.choices)))
        if schema.type == "bool":
            return cls(schema.name, CHOICES, choices="on, off")
        if schema.type not in ("int", "float") or isinstance(default, bool | str) or not default:
            return cls(schema.name, RANGE if schema.type in ("int", "float") else CHOICES)
        low, high = float(default) / 4, float(default) * 4
        if schema.maximum is not None:
            high = min(high, schema.maximum)
        if schema.type == "int":
            least = max(int(low), int(schema.minimum or 0), 1)
            return cls(schema.name, LOG, str(least), str(max(least + 1, int(high))))
        return cls(schema.name, LOG, f"{low:.3g}", f"{high:.3g}")


def typed(value: Any) -> str:
    """A value as it is typed into the form."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


class SweepDraft:
    """The whole form: fields, algorithms, the lines of each, and what else a file has said."""

    def __init__(self, algo: str) -> None:
        self.state = fields()
        self.algos = [algo]
        self.lines: dict[str, list[ParamDraft]] = {}
        """Of each algorithm."""
        self._rest: dict[str, Any] = {}
        self._objective: dict[str, Any] | list[Any] = {}
        self._options: dict[str, dict[str, Any]] = {"sampler": {}, "pruner": {}}
        self.begin(algo)

    def begin(self, algo: str) -> None:
        """Search an algorithm as is known to be good, unless there are lines for it."""
        if algo not in self.lines:
            known = known_spaces().get(algo)
            space = known.space if known else {}
            self.lines[algo] = [ParamDraft.of(name, told) for name, told in space.items()]

    @property
    def is_population(self) -> bool:
        """Whether the file trains a population in place of a search; it has members, and no trials."""
        return self._rest.get("kind") == PBT

    @property
    def env_ids(self) -> list[str]:
        """The environments, which stand in one field with commas between them."""
        return [one.strip() for one in self.state.said("env_id").split(",") if one.strip()]

    @property
    def several(self) -> bool:
        """Whether there are several objectives, which the form leaves as the file has them."""
        return isinstance(self._objective, list)

    def source(self, algo: str) -> str:
        """Where the known space of an algorithm comes from."""
        known = known_spaces().get(algo)
        unknown = "No search space is known for it: add the parameters that matter."
        return f"Known space: {known.source}." if known else unknown

    def choose(self, algo: str) -> None:
        """Search this algorithm in place of the first one."""
        self.algos = [algo, *(one for one in self.algos[1:] if one != algo)]
        self.begin(algo)

    def add(self, algo: str) -> None:
        if algo not in self.algos:
            self.algos.append(algo)
            self.begin(algo)

    def drop(self, algo: str) -> None:
        if len(self.algos) > 1:
            self.algos.remove(algo)

    def problems(self) -> list[str]:
        """What can be seen to be wrong without asking anybody."""
        found = [problem_in(lambda: parse_seeds(self.state.text("seeds")))]
        found += [] if self.state.said("env_id") else ["No environment is chosen: choose one."]
        found += [line.problem() for algo in self.algos for line in self.lines[algo]]
        if not any(line.kind != FIXED for algo in self.algos for line in self.lines[algo]):
            found.append("There is nothing to search: add a parameter.")
        return [one for one in (*found, *self.state.problems()) if one]

    def runs(self) -> int:
        """How many runs it will be at most, as far as that can be told."""
        try:
            if self.is_population:
                return 0
            envs = len(self.env_ids)
            return (self.state.whole("trials") or 0) * len(parse_seeds(self.state.text("seeds"))) * envs
        except UserError:
            return 0

    def table(self) -> dict[str, Any]:
        """The sweep file's content; a UserError tells what is wrong first."""
        problems = self.problems()
        if problems:
            raise UserError(problems[0])
        state = self.state
        envs = self.env_ids
        told: dict[str, Any] = {
            "algo": self.algos[0] if len(self.algos) == 1 else list(self.algos),
            "env": envs[0] if len(envs) == 1 else envs,
            "total_timesteps": state.value("total_timesteps"),
            "seeds": list(parse_seeds(state.text("seeds"))),
            "trials": state.value("trials"),
            "parallel": state.value("parallel"),
            "max_minutes": state.value("max_minutes"),
            "name": state.value("name"),
        }
        if self.is_population:
            told.pop("trials")
        made = {name: value for name, value in told.items() if value not in (None, "")}
        made |= {name: value for name, value in self._rest.items() if name not in ("set", "space")}
        fixed, space = self._params()
        made |= {"set": fixed} if fixed else {}
        made["space"] = space
        if isinstance(self._objective, list):
            made["objective"] = deepcopy(self._objective)
        else:
            names = ("metric", "take", "points", "over_seeds", "direction")
            made["objective"] = {**self._objective, **{name: state.value(name) for name in names}}
        if self.is_population:
            return made
        made["sampler"] = {"name": state.value("sampler"), **self._options["sampler"]}
        if not self.several or state.is_changed("pruner"):
            made["pruner"] = {"name": state.value("pruner"), **self._options["pruner"]}
        return made

    def _params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        fixed: dict[str, Any] = deepcopy(self._rest.get("set", {}))
        space: dict[str, Any] = {}
        for algo in self.algos:
            own_space = {one.name: one.told() for one in self.lines[algo] if one.kind != FIXED}
            own_fixed = {one.name: one.told() for one in self.lines[algo] if one.kind == FIXED}
            if len(self.algos) == 1:
                return {**fixed, **own_fixed}, own_space
            space[algo] = own_space
            if own_fixed:
                fixed[algo] = {**fixed.get(algo, {}), **own_fixed}
        return fixed, space

    def take(self, table: Mapping[str, Any]) -> None:
        """Fill the form with a sweep file; a UserError leaves it as it was."""
        other = SweepDraft(self.algos[0])
        other._take(deepcopy(dict(table)))
        self.state, self.algos, self.lines = other.state, other.algos, other.lines
        self._rest, self._objective, self._options = other._rest, other._objective, other._options

    def _take(self, table: dict[str, Any]) -> None:
        state = self.state
        algos = _listed(table.pop("algo", self.algos), "algo")
        envs = _listed(table.pop("env", state.said("env_id")), "env")
        self.algos, self.lines = algos, {}
        state.put("env_id", ", ".join(envs))
        seeds = table.pop("seeds", [1])
        state.put("seeds", show_seeds(seeds) if isinstance(seeds, list) else str(seeds))
        for name in ("total_timesteps", "trials", "parallel", "max_minutes", "name"):
            if name in table:
                value = table.pop(name)
                state.put(name, None if name == "parallel" and value == 0 else value)
        objective = table.pop("objective", {})
        self._objective = objective if isinstance(objective, list) else _table(objective, "objective")
        if isinstance(self._objective, dict):
            for name in ("metric", "take", "points", "over_seeds", "direction"):
                if name in self._objective:
                    state.put(name, self._objective.pop(name))
            if "points" not in objective and state.said("take") == "best":
                state.put("points", 1)
        for name in ("sampler", "pruner"):
            given = table.pop(name, {})
            given = {"name": given} if isinstance(given, str) else _table(given, name)
            chosen = str(given.pop("name", state.fields[name].default))
            state.put(name, plain_name(chosen))
            self._options[name] = given
        fixed, space = _table(table.pop("set", {}), "set"), _table(table.pop("space", {}), "space")
        for algo in algos:
            self._take_lines(algo, fixed, space)
        self._rest = {**table, **({"set": fixed} if fixed else {})}

    def _take_lines(self, algo: str, fixed: dict[str, Any], space: Mapping[str, Any]) -> None:
        alone = len(self.algos) == 1
        own = space if alone else _table(space.get(algo, {}), f"space.{algo}")
        own_fixed = fixed if alone else _table(fixed.pop(algo, {}), f"set.{algo}")
        if own:
            self.lines[algo] = [ParamDraft.of(name, told) for name, told in own.items()]
        else:
            self.begin(algo)
            self.lines[algo] = [one for one in self.lines[algo] if one.name not in own_fixed]
        for name in list(own_fixed):
            if isinstance(own_fixed[name], bool | int | float | str):
                self.lines[algo].append(ParamDraft(name, FIXED, value=typed(own_fixed.pop(name))))
        if own_fixed and not alone:
            fixed[algo] = own_fixed


def _listed(value: Any, name: str) -> list[str]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
        raise UserError(f"'{name}' is {value!r:.60}, but must be a name or a list of names.")
    return list(found)


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"'{name}' is {value!r:.60}, but must be a table: write [{name}] above its settings.")
    return dict(value)


def table_of(spec: SweepSpec) -> dict[str, Any]:
    """The sweep file that asks for the same as an earlier sweep."""
    first = spec.templates[0].config
    asked = first["metadata"]["worker"]["config"]
    several = len(spec.algos) > 1
    space: dict[str, Any] = {}
    for one in spec.space:
        if several and not one.algo:
            continue
        ends = {"low": one.low, "high": one.high}
        told: dict[str, Any] = {"choices": list(one.choices)} if one.choices else dict(ends)
        told |= {"log": True} if one.log else {"step": one.step} if one.step is not None else {}
        told |= {"when": {name: list(values) for name, values in one.when.items()}} if one.when else {}
        (space.setdefault(one.algo, {}) if several else space)[one.name] = told
    fixed: dict[str, Any] = {}
    for template in spec.templates:
        extras = template.config["metadata"]["worker"]["config"].get("extras") or {}
        if params := extras.get("algo_params"):
            fixed |= {template.algo: params} if several else params
    table: dict[str, Any] = {
        "algo": spec.algos,
        "env": spec.env_ids,
        "total_timesteps": asked.get("total_timesteps"),
        "seeds": list(spec.seeds),
        "trials": spec.trials,
        "parallel": spec.parallel,
        "max_minutes": spec.max_minutes,
        "name": spec.name,
        "tags": list(spec.tags),
        "notes": spec.notes,
        "scores": {env_id: list(ends) for env_id, ends in spec.scores.items()},
        "set": fixed,
        "space": space,
        "objective": [one.as_json() for one in spec.objectives],
        "sampler": {"name": spec.sampler.name, "seed": spec.search_seed, **spec.sampler.options},
        "pruner": {"name": spec.pruner.name, **spec.pruner.options} if spec.pruner else None,
        "try_first": [dict(one) for one in spec.try_first],
    }
    if len(spec.objectives) == 1:
        table["objective"] = table["objective"][0]
    if spec.population is not None:
        # How many generations there are follows from the steps.
        told = {name: value for name, value in vars(spec.population).items() if name != "generations"}
        table |= {"kind": PBT, "population": {**told, "perturb": list(spec.population.perturb)}}
        table |= dict.fromkeys(("sampler", "pruner", "trials", "scores"))
    return {name: value for name, value in table.items() if value not in (None, "", [], {})}
