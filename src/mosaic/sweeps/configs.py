"""Run configs around sweeps: of a sweep, of one that goes on with its study, and of runs with its best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic.client import Client, RunQuery
from mosaic.client.configs import again_config
from mosaic.client.records import RunRecord
from mosaic.contract.capabilities import find_worker
from mosaic.contract.errors import ConflictError, UserError
from mosaic.contract.fsm import LIVE
from mosaic.contract.run_config import validate_train_run_config
from mosaic.sweeps import WORKER_TYPE
from mosaic.sweeps.population import lineage
from mosaic.sweeps.space import ALGO, params_for
from mosaic.sweeps.spec import SweepSpec, with_params
from mosaic.sweeps.study import FAILED, Study, Trial, read_study

_KEYS = ("run_id", "sweep", "continues")
RESTARTS = 1000
"""A sweep is started again after every crash of it: to go on costs nothing."""
FIRST = 1000
"""The priority of sweeps: they take no CPU, and wait for nobody."""


def check_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A sweep worker's config, as it is; UserError when it is not one."""
    for name in config:
        if name not in _KEYS:
            raise UserError(f"A sweep's config has no '{name}': `mosaic sweep FILE` makes one.")
    try:
        SweepSpec.from_json(config["sweep"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(
            f"This is not the config of a sweep ({type(error).__name__}: {error}): "
            "`mosaic sweep FILE` makes one."
        ) from error
    return dict(config)


def sweep_config(spec: SweepSpec, continues: str = "") -> dict[str, Any]:
    """The config of the run that is the sweep, to be submitted; `continues` is an earlier sweep."""
    worker: dict[str, Any] = {"run_id": "${RUN_ID}", "sweep": spec.as_json()}
    if continues:
        worker["continues"] = continues
    ui = dict(spec.templates[0].config["metadata"]["ui"])
    if spec.notes:
        ui["notes"] = spec.notes
    config: dict[str, Any] = {
        "run_name": spec.title,
        "schedule": {"max_restarts": RESTARTS, "priority": FIRST},
        "tags": list(spec.tags),
        "metadata": {"worker": {"type": WORKER_TYPE, "config": worker}, "ui": ui},
    }
    # Trials take what their templates name: a sweep holds it for them.
    for name in ("environment", "secrets", "plain"):
        values = [one.config.get(name) for one in spec.templates if one.config.get(name)]
        if values:
            config[name] = values[0]
    return config


def spec_of(run: RunRecord) -> SweepSpec:
    """What a sweep was asked to do; a UserError for a run that is none."""
    if run.worker_type != WORKER_TYPE:
        raise UserError(f"Run {run.run_id} is not a sweep: `mosaic sweep list` lists them.")
    return SweepSpec.from_json(again_config(run.worker_config, run.run_id)["sweep"])


def continue_config(run: RunRecord, study: Study | None, more: int | None) -> dict[str, Any]:
    """The config of a sweep that goes on with the study of one that has ended.

    It asks for `more` trials; without that for those that are left of its budget, those that ended with the
    sweep among them.
    """
    spec = spec_of(run)
    if not run.ended:
        raise ConflictError(f"Sweep {run.run_id} has not ended yet: it continues by itself.")
    if spec.benchmark:
        # It finds by itself what is trained already.
        return sweep_config(spec)
    if study is None:
        raise ConflictError(f"Sweep {run.run_id} has no study: start a new one from its file.")
    if spec.population is not None:
        return _continued_population(run, spec, study, more)
    if more is None:
        ended = [one for one in study.trials if one.ended_at and not _interrupted(one)]
        more = (study.wanted or spec.trials) - len(ended)
        if more < 1:
            raise ConflictError(
                f"Sweep {run.run_id} has had its {len(ended)} trials: "
                f"`mosaic sweep extend {run.run_id} --trials 20` adds more."
            )
    return sweep_config(replace(spec, trials=more, study=spec.study or study.name), run.run_id)


def take_up(client: Client, run: RunRecord, more: int | None) -> dict[str, Any]:
    """The same with the study in its folder, and with what still lives of its trials ended."""
    config = continue_config(run, read_study(Path(run.run_dir)), more)
    cancel_trials(client, run.run_id)
    return config


def cancel_trials(client: Client, sweep: str) -> int:
    """End what still lives of an ended sweep's trials; gives how many there were."""
    query = RunQuery(statuses=sorted(LIVE), filter=f"sweep={sweep}", fields=("run_id", "status"))
    found = list(client.each(query))
    for one in found:
        with suppress(ConflictError):
            client.cancel(one.run_id, "its sweep was cancelled")
    return len(found)


def _continued_population(run: RunRecord, spec: SweepSpec, study: Study, more: int | None) -> dict[str, Any]:
    """The config of a population that takes up what was cut off."""
    done = [one for one in study.trials if one.ended_at and not _interrupted(one)]
    if more is not None or len(done) >= spec.trials:
        line = lineage(study)
        best = line.final.run if line and line.final else "RUN"
        raise ConflictError(
            f"Sweep {run.run_id} is a population, whose steps are part of its schedules: train its best "
            f"member on with `mosaic train --resume {best} --extend N`, or start a new sweep."
        )
    return sweep_config(spec, run.run_id)


def _interrupted(trial: Trial) -> bool:
    return trial.state == FAILED and trial.reason.startswith("its sweep ")


def best_configs(
    run: RunRecord, trial: Trial, seeds: Sequence[int], total_timesteps: int | None = None
) -> list[dict[str, Any]]:
    """Configs that train with a trial's parameters: one for each environment and seed, checked."""
    spec = spec_of(run)
    if spec.benchmark:
        raise UserError(f"Run {run.run_id} is a benchmark, which has no best trial.")
    algo = str(trial.params.get(ALGO, spec.algos[0]))
    params = params_for(spec.space, trial.params, algo)
    if not params:
        raise UserError(
            f"Trial {trial.number} was made elsewhere and has no parameter that is searched here: choose "
            "another one."
        )
    made = []
    for template in spec.templates:
        if template.algo != algo:
            continue
        for seed in seeds:
            config = deepcopy(dict(template.config))
            request = config["metadata"]["worker"]
            asked = {**with_params(request["config"], params), "seed": seed}
            if total_timesteps is not None:
                asked["total_timesteps"] = total_timesteps
            catalog = find_worker(request["type"]).load_catalog()
            request["config"] = catalog.check(asked, request.get("python"), None)
            config["run_name"] = f"{config['run_name']}-best"
            config["metadata"]["ui"] |= {"best_of": run.run_id, "trial": trial.number}
            validate_train_run_config(config)
            made.append(config)
    return made
