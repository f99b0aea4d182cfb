"""The sweep file: read, and checked as `train` checks, with every problem told at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.client.configs import worker_for
from mosaic.contract.capabilities import find_worker
from mosaic.contract.errors import UserError, closest
from mosaic.contract.run_config import LONGEST_NAME
from mosaic.contract.secrets import has_known_shape, referred
from mosaic.sweeps.objective import DIRECTIONS, OVER_SEEDS, TAKES, Objective
from mosaic.sweeps.population import (
    KINDS,
    PBT,
    SEARCH,
    Population,
    PopulationParser,
    changeable,
    is_population,
    usual_settings,
)
from mosaic.sweeps.space import ALGO, Parameter, is_number, known_spaces, parse_space
from mosaic.sweeps.spec import (
    JOURNAL,
    SQLITE,
    USUAL_TRIALS,
    Choice,
    SweepSpec,
    Template,
    budget_of,
    plain_name,
    with_params,
)
from mosaic.sweeps.tables import SpecError, TableParser

MOST_TRIALS = 100_000
MOST_PARALLEL = 1_000
REPORTS = 20
"""So often is a trial looked at while it trains, unless `report_every` says otherwise."""

_KEYS = {
    **dict.fromkeys(("algo", "env", "total_timesteps", "seeds", "trials", "parallel", "max_minutes", "name")),
    **dict.fromkeys(("kind", "population")),
    **dict.fromkeys(("tags", "notes", "storage", "study", "report_every", "scores")),
    **dict.fromkeys(("set", "space", "objective", "sampler", "pruner", "run", "try_first")),
}


def parse_spec(table: Mapping[str, Any], folder: Path | None = None) -> SweepSpec:
    """The sweep that a table asks for, checked as `train` checks; else a SpecError with every problem."""
    return _Parser(table, folder).parse()


class _Parser(TableParser):
    def parse(self) -> SweepSpec:
        table = self._table
        self._check_keys(table, _KEYS, "a sweep")
        algos, env_ids = self._texts(ALGO, "ppo"), self._texts("env", "CartPole-v1")
        seeds = self._seeds()
        run = self._run()
        fixed = self._fixed(algos)
        templates = self._templates(algos, env_ids, seeds, fixed, run)
        spaces = self._spaces(algos, fixed)
        self._check_corners(spaces, templates)
        objectives = self._objectives()
        budget = budget_of(templates)
        population = self._population(algos, env_ids, seeds, fixed[algos[0]] if algos else {}, spaces, budget)
        sampler, pruner = self._choice("sampler"), self._choice("pruner")
        trials = self._whole("trials", USUAL_TRIALS, 1, MOST_TRIALS)
        if sampler is not None and plain_name(sampler.name) == "grid":
            combinations = math.prod(one.count() or 1 for one in spaces)
            if combinations > MOST_TRIALS:
                self._complain(
                    f"The grid has {combinations:,} combinations, but at most {MOST_TRIALS:,} are "
                    "allowed: give larger steps or fewer choices, or choose another sampler."
                )
            trials = min(trials, combinations)
        options = dict(sampler.options) if sampler else {}
        spec = SweepSpec(
            templates=tuple(templates),
            space=tuple(spaces),
            seeds=seeds,
            trials=population.trials if population else trials,
            parallel=self._whole("parallel", 0, 0, MOST_PARALLEL),
            max_minutes=self._minutes(),
            objectives=objectives,
            search_seed=options.pop("seed", 1),
            sampler=Choice(sampler.name, options) if sampler else Choice("tpe"),
            pruner=pruner or (Choice("median") if len(objectives) == 1 and not population else None),
            population=population,
            report_every=self._whole("report_every", max(1, budget // REPORTS), 1, 10**12),
            scores=self._scores(env_ids),
            storage=self._storage(),
            study=self._text("study"),
            try_first=self._try_first(spaces, algos),
            name=self._text("name")[:LONGEST_NAME],
            tags=self._tags(),
            notes=self._text("notes"),
        )
        seed = spec.search_seed
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
            self._complain(f"'sampler.seed' is {seed!r:.40}, but must be a whole number from 0 to 2^32 - 1.")
        if not spaces and templates:
            self._complain("There is nothing to search: add parameters to [space].")
        if self._problems:
            raise SpecError(list(dict.fromkeys(self._problems)))
        return spec

    def _population(
        self,
        algos: Sequence[str],
        env_ids: Sequence[str],
        seeds: Sequence[int],
        fixed: Mapping[str, Any],
        space: Sequence[Parameter],
        budget: int,
    ) -> Population | None:
        kind = self._table.get("kind", SEARCH)
        if kind not in KINDS:
            hint = closest(str(kind), KINDS) or "."
            self._complain(f"'kind' is {kind!r:.40}, but must be one of {', '.join(KINDS)}{hint}")
        if not is_population(self._table):
            if "population" in self._table:
                self._complain(
                    f'[population] is for population-based training: write kind = "{PBT}" as well.'
                )
            return None
        return PopulationParser(self._table, self._folder, self._problems).population(
            algos, env_ids, seeds, fixed, space, budget
        )

    def _templates(
        self,
        algos: Sequence[str],
        env_ids: Sequence[str],
        seeds: Sequence[int],
        fixed: Mapping[str, Mapping[str, Any]],
        run: Mapping[str, Any],
    ) -> list[Template]:
        steps = self._table.get("total_timesteps")
        if steps is not None:
            steps = self._whole("total_timesteps", 1, 1, 10**12)
        found = []
        for algo in algos:
            for env_id in env_ids:
                try:
                    config = self._template(algo, env_id, steps, max(seeds), fixed[algo], run)
                except UserError as error:
                    self._complain(str(error))
                    continue
                found.append(Template(algo, env_id, config))
        return found

    def _fixed(self, algos: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What is the same in all trials of each algorithm: shared settings, and those of its own table."""
        given = self._table_of("set")
        if is_population(self._table):
            given = usual_settings(self._table, given)
        shared = {name: value for name, value in given.items() if name not in algos}
        return {algo: {**shared, **self._own(given, algo, "set")} for algo in algos}

    def _own(self, given: Mapping[str, Any], algo: str, place: str) -> Mapping[str, Any]:
        """The table of one algorithm among several."""
        own = given.get(algo, {})
        if isinstance(own, Mapping):
            return own
        self._complain(
            f"'{place}.{algo}' is {own!r:.60}, but must be a table: write [{place}.{algo}] above its "
            "settings."
        )
        return {}

    def _spaces(self, algos: Sequence[str], fixed: Mapping[str, Mapping[str, Any]]) -> list[Parameter]:
        given = self._table_of("space")
        if len(algos) == 1:
            return self._space_of(algos[0], given, fixed[algos[0]], "", "space")
        wrong = [name for name in given if name not in algos]
        for name in wrong:
            self._complain(
                f"'space.{name}' is not of an algorithm{closest(name, algos) or '.'} With several algorithms "
                f"each has a table of its own, such as [space.{algos[0] if algos else 'ppo'}]."
            )
        if not algos:
            return []
        found = [Parameter(ALGO, choices=tuple(algos))]
        for algo in algos:
            own = self._own(given, algo, "space")
            found += self._space_of(algo, own, fixed[algo], algo, f"space.{algo}")
        return found

    def _space_of(
        self, algo: str, given: Mapping[str, Any], fixed: Mapping[str, Any], prefix: str, place: str
    ) -> list[Parameter]:
        try:
            types = {one.name: one.type for one in worker_for(algo).load_catalog().parameters(algo)}
        except UserError:
            # Told of where the template is made.
            types = {}
        table = given
        if not given:
            known = known_spaces().get(algo)
            if known is None:
                self._complain(f"No search space is known for '{algo}': write one under [{place}].")
                return []
            table = {name: told for name, told in known.space.items() if name not in fixed}
            if is_population(self._table):
                table = {name: told for name, told in table.items() if name in changeable(algo)}
        for name in given:
            if name in fixed:
                self._complain(f"'{name}' is searched and set: take it out of [{place}] or of [set].")
        return parse_space(table, types, self._complain, prefix, place)

    def _check_corners(self, spaces: Sequence[Parameter], templates: Sequence[Template]) -> None:
        """Every end of every range, checked by the worker that will run it."""
        seen = set()
        for template in templates:
            if template.algo in seen:
                continue
            seen.add(template.algo)
            for one in spaces:
                if one.key == ALGO or (one.algo and one.algo != template.algo):
                    continue
                for value in one.corners():
                    problem = _refusal(template, {one.name: value})
                    if problem:
                        self._complain(problem)
                        break

    def _objectives(self) -> tuple[Objective, ...]:
        given = self._table.get("objective", {})
        tables = given if isinstance(given, list) else [given]
        found = []
        for number, table in enumerate(tables, 1):
            place = "objective" if len(tables) == 1 else f"objective {number}"
            if not isinstance(table, Mapping):
                self._complain(f"'{place}' is {table!r:.60}, but must be a table: write [objective].")
                continue
            self._check_keys(table, list(vars(Objective())), f"[{place}]")
            for name, known in (("take", TAKES), ("over_seeds", OVER_SEEDS), ("direction", DIRECTIONS)):
                value = table.get(name, known[0])
                if value not in known:
                    self._complain(
                        f"'{place}.{name}' is {value!r:.40}, but must be one of {', '.join(known)}"
                        f"{closest(str(value), known) or '.'}"
                    )
            points, metric = table.get("points", 1), table.get("metric", "-")
            if isinstance(points, bool) or not isinstance(points, int) or points < 1:
                self._complain(
                    f"'{place}.points' is {points!r:.40}, but must be a whole number of at least 1."
                )
            if not isinstance(metric, str) or not metric:
                self._complain(f"'{place}.metric' is {metric!r:.40}, but must be the name of a curve.")
            known_keys = {name: value for name, value in table.items() if name in vars(Objective())}
            if "points" not in table and table.get("take") == "best":
                known_keys["points"] = 1
            found.append(Objective(**known_keys))
        return tuple(found) or (Objective(),)

    def _choice(self, name: str) -> Choice | None:
        given = self._table.get(name)
        if given is None:
            return None
        table = {"name": given} if isinstance(given, str) else given
        if not isinstance(table, Mapping) or not isinstance(table.get("name", ""), str):
            self._complain(
                f"'{name}' is {given!r:.60}, but must be a name, or a table with a name and options."
            )
            return None
        usual = {"sampler": "tpe", "pruner": "median"}[name]
        return Choice(table.get("name", usual), {key: value for key, value in table.items() if key != "name"})

    def _scores(self, env_ids: Sequence[str]) -> dict[str, tuple[float, float]]:
        given = self._table_of("scores")
        if len(env_ids) < 2:
            if given:
                self._complain("'scores' compares several environments: leave it out with one.")
            return {}
        found = {}
        for env_id in env_ids:
            ends = given.get(env_id)
            pair = ends if isinstance(ends, list) and len(ends) == 2 else [0, 0]
            if not all(map(is_number, pair)) or pair[0] == pair[1]:
                self._complain(
                    "Returns of several environments can only be put together as scores: write under "
                    f'[scores] "{env_id}" = [low, high], the returns that count as 0 and as 1.'
                )
            else:
                found[env_id] = (float(pair[0]), float(pair[1]))
        for name in given:
            if name not in env_ids:
                hint = closest(name, env_ids) or "."
                self._complain(f"'scores' names '{name}', which is not an environment here{hint}")
        return found

    def _storage(self) -> str:
        given = self._table.get("storage", JOURNAL)
        if not isinstance(given, str) or not given:
            self._complain(
                f"'storage' is {given!r:.40}, but must be journal, sqlite, or the URL of a database."
            )
            return JOURNAL
        if given in (JOURNAL, SQLITE) or referred(given) is not None:
            return given
        if has_known_shape(given):
            self._complain(
                "'storage' has a password in it: put the URL into a variable, such as SWEEP_DB, and write "
                'storage = "@env:SWEEP_DB".'
            )
        elif "://" not in given:
            self._complain(
                f"'storage' is '{given:.60}', but must be journal, sqlite, or a URL such as "
                f"postgresql+psycopg://host/name{closest(given, (JOURNAL, SQLITE)) or '.'}"
            )
        return given

    def _try_first(self, spaces: Sequence[Parameter], algos: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        given = self._table.get("try_first", [])
        if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
            self._complain("'try_first' must be a list of tables: write [[try_first]] above each.")
            return ()
        known = {one.key: one for one in spaces}
        for one in given:
            for name, value in one.items():
                if name in known and not known[name].holds(value):
                    self._complain(f"'try_first.{name}' is {value!r:.40}, which [space] does not contain.")
                elif name not in known:
                    self._complain(
                        f"'try_first' names '{name}', which is not searched{closest(name, known) or '.'}"
                    )
        return tuple(given)


def _refusal(template: Template, params: Mapping[str, Any]) -> str:
    """Why the worker does not take these parameters; empty when it does."""
    request = template.config["metadata"]["worker"]
    asked = with_params(request["config"], params)
    try:
        find_worker(request["type"]).load_catalog().check(asked, request.get("python"), None)
    except UserError as error:
        return str(error)
    return ""
