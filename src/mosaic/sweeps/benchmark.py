"""A benchmark at work: every algorithm on every environment with every seed, each once.

It is a sweep without a search. Its trials are cells, numbered once and for all; the run of a cell is
submitted under a name made of benchmark and number. So the daemon's own list of runs says what was begun,
and nothing else must survive a crash. A cell that an earlier benchmark of the same name has trained with the
same settings is taken from there.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic.client import Client
from mosaic.client.records import RunRecord
from mosaic.sweeps.engine import Engine
from mosaic.sweeps.spec import SweepSpec, Template
from mosaic.sweeps.study import ALGO, COMPLETE, ENDED, ENV, RUNNING, SEED, Study, Trial, read_study
from mosaic.sweeps.trials import Unpruned

BENCHMARK, CELL, LABEL = "benchmark", "cell", "label"
"""What a run of a benchmark says of itself: its name, a sum of the settings, what its algorithm is called."""


def cell_sum(config: Mapping[str, Any]) -> str:
    """What two runs have in common that differ in their seed alone."""
    request = config["metadata"]["worker"]
    asked = {name: value for name, value in request["config"].items() if name not in ("run_id", "seed")}
    told = json.dumps([request["type"], request.get("python"), asked], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def cell_of(spec: SweepSpec, number: int) -> tuple[Template, int]:
    """What a cell trains: the first seed of everything comes before the second."""
    count = len(spec.templates)
    return spec.templates[number % count], spec.seeds[number // count]


def params_of(spec: SweepSpec, number: int) -> dict[str, Any]:
    """The same in words."""
    template, seed = cell_of(spec, number)
    return {ALGO: template.algo, ENV: template.env_id, SEED: seed}


def trained(client: Client, spec: SweepSpec) -> dict[int, RunRecord]:
    """The cells that have a completed run, the newest of each, whichever benchmark of this name made it."""
    found: dict[tuple[str, int], RunRecord] = {}
    for run in client.runs(tags=[spec.benchmark], filter="state=completed"):
        ui = run.config["metadata"]["ui"]
        if run.outcome == "completed" and ui.get(BENCHMARK) == spec.benchmark:
            found.setdefault((str(ui.get(CELL)), int(run.worker_config["seed"])), run)
    cells = {number: cell_of(spec, number) for number in range(spec.trials)}
    keys = {
        number: (str(template.config["metadata"]["ui"][CELL]), seed)
        for number, (template, seed) in cells.items()
    }
    return {number: found[key] for number, key in keys.items() if key in found}


class Cells(Unpruned):
    """The cells of one benchmark, in the place that a study has in a search."""

    def __init__(self, spec: SweepSpec, run_id: str, client: Client) -> None:
        self._spec = spec
        self._run_id = run_id
        self._client = client
        self._folder = Path(client.paths.run(run_id).run_dir)
        before = read_study(self._folder)
        told = before.with_state(*ENDED) if before else []
        self._trials = {one.number: one for one in told if one.number < spec.trials}
        self._waiting: list[int] | None = None
        self._found: dict[int, RunRecord] = {}

    @property
    def wanted(self) -> int:
        return self._spec.trials

    @property
    def spent(self) -> bool:
        return self._waiting is not None and not self._waiting

    @property
    def has_values(self) -> bool:
        return any(one.state == COMPLETE for one in self._trials.values())

    def progress(self) -> tuple[int, float | None]:
        """How many cells have ended; none of them is the best."""
        return sum(one.state in ENDED for one in self._trials.values()), None

    def open_trials(self) -> list[Trial]:
        """The cells whose runs were submitted before, by us, and not judged yet."""
        if self._waiting is None:
            self._found = trained(self._client, self._spec)
            for run in reversed(self._client.runs(filter=f"sweep={self._run_id}")):
                number = int(run.config["metadata"]["ui"]["trial"])
                if number not in self._trials:
                    self._found[number] = run
                    self._begin(number)
            begun = self._trials
            self._waiting = [number for number in range(self._spec.trials) if number not in begun]
            # What is known already is told first.
            self._waiting.sort(key=lambda number: number not in self._found)
        return [one for one in self._trials.values() if one.state == RUNNING]

    def ask(self) -> Trial:
        """The next cell; with the run that has trained it earlier, if there is one."""
        assert self._waiting
        return self._begin(self._waiting.pop(0))

    def _begin(self, number: int) -> Trial:
        found = self._found.get(number)
        runs = (found.run_id,) if found else ()
        begun = (found.started_at if found else None) or time.time()
        trial = Trial(number, RUNNING, params_of(self._spec, number), runs=runs, started_at=begun)
        self._trials[number] = trial
        return trial

    def set_runs(self, number: int, runs: Sequence[str]) -> None:
        self._trials[number] = replace(self._trials[number], runs=tuple(runs))

    def tell(
        self,
        number: int,
        state: str,
        values: Sequence[float] | None = None,
        reason: str = "",
        interrupted: bool = False,
    ) -> Trial:
        """How a cell has ended."""
        found = self._found.get(number)
        ended = (found.ended_at if found else None) or time.time()
        told = replace(
            self._trials[number], state=state, values=tuple(values or ()), reason=reason, ended_at=ended
        )
        self._trials[number] = told
        return told

    def record(self) -> Study:
        """All cells that were begun, as a study."""
        spec, (objective,) = self._spec, self._spec.objectives
        choices = {
            ALGO: spec.algos,
            ENV: spec.env_ids,
            SEED: list(spec.seeds),
        }
        return Study(
            name=spec.benchmark,
            objectives=(objective.words(),),
            directions=(objective.direction,),
            distributions={name: {"choices": values} for name, values in choices.items()},
            trials=tuple(self._trials[number] for number in sorted(self._trials)),
            wanted=spec.trials,
            sweep=self._run_id,
            benchmark=True,
        )


class BenchmarkEngine(Engine):
    """An engine whose trials are the cells of a benchmark."""

    name_another = "Name one of them in 'metric'."

    def _ahead(self) -> int:
        return 1

    def _places(self, trial: Trial) -> tuple[dict[str, Any], list[tuple[Template, int]]]:
        return {}, [cell_of(self._spec, trial.number)]

    def _name(self, template: Template, trial: Trial) -> str:
        return f"{template.config['run_name']}-seed-{trial.params[SEED]}"

    def _check_failures(self) -> None:
        # What fails is trained again with the next start; others have nothing to do with it.
        if not self._search.has_values:
            super()._check_failures()

    def _stop_trials(self, reason: str) -> None:
        super()._stop_trials(reason.replace("sweep", "benchmark"))
