"""The benchmark file: read, and checked as `train` checks, with every problem told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.contract.errors import UserError, closest
from mosaic.contract.run_config import LONGEST_TAG, checked_tags
from mosaic.sweeps.benchmark import BENCHMARK, CELL, LABEL, cell_sum
from mosaic.sweeps.objective import USUAL_METRIC, Objective
from mosaic.sweeps.space import is_number
from mosaic.sweeps.spec import Choice, SweepSpec, Template, budget_of
from mosaic.sweeps.sweep_file import MOST_PARALLEL, REPORTS
from mosaic.sweeps.tables import SpecError, TableParser

POINTS = 100
"""The return of a run is the mean of its last so many episodes, as everywhere."""
MOST_RUNS = 100_000
_KEYS = (
    *("algo", "env", "total_timesteps", "seeds", "parallel", "max_minutes"),
    *("name", "tags", "notes", "metric", "set", "run", "scores"),
)
_ALGO_KEYS = ("name", "label", "set", "total_timesteps", "env")


def parse_benchmark(table: Mapping[str, Any], name: str, folder: Path | None = None) -> SweepSpec:
    """The benchmark that a table asks for; a SpecError has every problem. `name` is that of the file."""
    return _Parser(table, folder).benchmark(name)


class _Parser(TableParser):
    _env_ids: Sequence[str] = ()
    """Those of all algorithms."""

    def benchmark(self, usual_name: str) -> SweepSpec:
        self._check_keys(self._table, _KEYS, "a benchmark")
        run = self._run()
        name, seeds = self._name(usual_name), self._seeds()
        templates = self._cells(name, seeds, run)
        if len(templates) * len(seeds) > MOST_RUNS:
            self._complain(
                f"These are {len(templates) * len(seeds):,} runs, but at most {MOST_RUNS:,} are allowed."
            )
        metric = self._table.get("metric", USUAL_METRIC)
        if not isinstance(metric, str) or not metric:
            self._complain(f"'metric' is {metric!r:.40}, but must be the name of a curve.")
        spec = SweepSpec(
            templates=tuple(templates),
            space=(),
            seeds=seeds,
            trials=len(templates) * len(seeds),
            parallel=self._whole("parallel", 0, 0, MOST_PARALLEL),
            max_minutes=self._minutes(),
            objectives=(Objective(str(metric), "mean", POINTS),),
            sampler=Choice("none"),
            report_every=max(1, budget_of(templates) // REPORTS),
            name=f"Benchmark {name}",
            tags=self._tags(),
            notes=self._text("notes"),
            benchmark=name,
            references=self._references(),
        )
        if self._problems:
            raise SpecError(list(dict.fromkeys(self._problems)))
        return spec

    def _name(self, usual: str) -> str:
        given = self._table.get("name", usual)
        try:
            (name,) = checked_tags([given if isinstance(given, str) else ""])
        except UserError:
            self._complain(
                f"'name' is {given!r:.60}, but must be a word of at most {LONGEST_TAG} characters: it "
                "becomes the tag of its runs."
            )
            return usual
        return name

    def _algos(self) -> list[dict[str, Any]]:
        """The algorithms: names, or tables with parameters of their own."""
        given = self._table.get("algo")
        listed = [given] if isinstance(given, str | Mapping) else given
        if not isinstance(listed, list) or not listed:
            told = "is missing" if given is None else f"is {given!r:.60}"
            self._complain(f'\'algo\' {told}: write algo = ["ppo", "dqn"], or a table [[algo]] for each.')
            return []
        found = []
        for number, one in enumerate(listed, 1):
            table = {"name": one} if isinstance(one, str) else one
            if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
                self._complain(
                    f"Algorithm {number} is {one!r:.60}, but must be a name, or a table with a name."
                )
                continue
            self._check_keys(table, _ALGO_KEYS, f"algorithm {number}")
            if not isinstance(table.get("set", {}), Mapping):
                self._complain(f"'set' of algorithm {number} is {table['set']!r:.60}, but must be a table.")
                continue
            label = table.get("label", Path(table["name"]).stem)
            if not isinstance(label, str) or not label:
                self._complain(f"'label' of algorithm {number} is {label!r:.60}, but must be text.")
                continue
            found.append({"label": label, "set": {}, **table})
        labels = [one["label"] for one in found]
        for label in dict.fromkeys(one for one in labels if labels.count(one) > 1):
            self._complain(
                f"{labels.count(label)} algorithms are called '{label}': give each a 'label' of its own."
            )
        return found

    def _cells(self, name: str, seeds: Sequence[int], run: Mapping[str, Any]) -> list[Template]:
        algos = self._algos()
        if "env" in self._table or not all("env" in algo for algo in algos):
            self._env_ids = self._texts("env", "CartPole-v1")
        usual = self._env_ids
        shared, found, sums = self._table_of("set"), list[Template](), dict[str, str]()
        for algo in algos:
            own_envs = self._names("env", algo["env"], "CartPole-v1") if "env" in algo else usual
            self._env_ids = list(dict.fromkeys([*self._env_ids, *own_envs]))
            for env_id in own_envs:
                label, params = algo["label"], {**shared, **algo["set"]}
                steps = self._steps(algo.get("total_timesteps", self._table.get("total_timesteps")), env_id)
                try:
                    config = self._template(algo["name"], env_id, steps, max(seeds), params, run)
                except UserError as error:
                    self._complain(f"{error}" if label in str(error) else f"{label}: {error}")
                    continue
                own = cell_sum(config)
                if own in sums:
                    self._complain(f"'{label}' and '{sums[own]}' train the same on {env_id}: leave one out.")
                sums[own] = label
                config["run_name"] = f"{label}-{env_id}".replace("/", "-").replace(" ", "-").lower()
                config["tags"] = list(dict.fromkeys([name, *config["tags"]]))
                config["metadata"]["ui"] |= {BENCHMARK: name, CELL: own, LABEL: label}
                found.append(Template(label, env_id, config))
        return found

    def _steps(self, given: Any, env_id: str) -> int | None:
        """The budget on an environment; a table has one for each."""
        value = given.get(env_id) if isinstance(given, Mapping) else given
        if value is None and isinstance(given, Mapping):
            self._complain(f"'total_timesteps' has none for {env_id}: add \"{env_id}\" = 100_000.")
        if value is None:
            return None
        return self._whole_of("total_timesteps", value, 1, 10**12)

    def _references(self) -> dict[str, tuple[float, float]]:
        found, env_ids = {}, self._env_ids
        for env_id, ends in self._table_of("scores").items():
            pair = ends if isinstance(ends, list) and len(ends) == 2 else [0, 0]
            if env_id not in env_ids:
                hint = closest(env_id, env_ids) or "."
                self._complain(f"'scores' names '{env_id}', which is not an environment here{hint}")
            elif not all(map(is_number, pair)) or pair[0] == pair[1]:
                self._complain(
                    f"'scores.{env_id}' is {ends!r:.60}, but must be [low, high]: the returns that count as 0"
                    " and as 1."
                )
            else:
                found[env_id] = (float(pair[0]), float(pair[1]))
        missing = [one for one in env_ids if one not in found]
        if found and missing and not self._problems:
            self._complain(f"'scores' lacks {', '.join(missing)}: write them all, or none.")
        return found
