"""Run configs for the common cases, built and checked before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from mosaic.client.records import RunRecord
from mosaic.contract.capabilities import (
    EVALUATES,
    NO_ENVIRONMENT,
    RESUMES,
    ExaminingCatalog,
    PolicyCatalog,
    PolicyFacts,
    ResumingCatalog,
    ScriptCatalog,
    WorkerCapabilities,
    WorkerCatalog,
    discover_workers,
)
from mosaic.contract.errors import UserError, closest
from mosaic.contract.paths import choose_var
from mosaic.contract.run_filter import is_neutral
from mosaic.contract.secrets import set_secrets_apart


class RunSettings(TypedDict, total=False):
    """What every run may be given besides what it does."""

    extras: Mapping[str, Any] | None
    tags: Sequence[str]
    run_name: str | None
    cpus: int
    """To reserve: 1 unless given."""
    python: str | None
    """Another interpreter for the training process."""
    worker_type: str | None
    folder: Path | None
    """The user's own (default: the current one): modules there can be imported by the run."""
    environment: Mapping[str, str] | None
    """Variables for the run."""
    secrets: Sequence[str]
    """Parameters, extras and variables that no file keeps (a value '@env:NAME' says the same)."""
    plain: Sequence[str]
    """Those that only look like secrets."""


def worker_for(algo: str, worker_type: str | None = None) -> WorkerCapabilities:
    """The installed worker that knows `algo`; a path or dotted module goes to the first that takes it."""
    workers = [worker for name, worker in sorted(discover_workers().items()) if worker_type in (None, name)]
    if not workers:
        wanted = f"of type '{worker_type}' " if worker_type else ""
        raise UserError(f"No worker {wanted}is installed: run `./mosaic doctor`.")
    known: list[str] = []
    for worker in workers:
        catalog = worker.load_catalog()
        if catalog.knows(algo):
            return worker
        known += catalog.algorithms()
    raise UserError(
        f"'{algo}' is not a known algorithm{closest(algo, known) or '.'} "
        f"Known: {', '.join(known)}; or give the path of a script or a dotted module."
    )


def train_config(
    algo: str,
    env_id: str | None = None,
    *,
    total_timesteps: int | None = None,
    seed: int | None = 1,
    params: Mapping[str, Any] | None = None,
    **settings: Unpack[RunSettings],
) -> dict[str, Any]:
    """A run config that trains `algo` on `env_id`, checked by the worker that will run it.

    A shell script needs no `env_id`; without `total_timesteps` its budget is what its head says.
    """
    worker = worker_for(algo, settings.get("worker_type"))
    if total_timesteps is None and not takes_no_env(algo):
        total_timesteps = worker.load_catalog().default_timesteps(algo)
    extras = {"algo_params": dict(params)} if params else {}
    asked = {"algo": algo, "env_id": env_id, "total_timesteps": total_timesteps, "seed": seed}
    return _checked(worker, asked, extras, settings)


def takes_no_env(algo: str) -> bool:
    """Whether `algo` is a shell script, which knows its environments and its budget itself."""
    catalog = worker_for(algo).load_catalog()
    return isinstance(catalog, ScriptCatalog) and catalog.is_script(algo)


def resume_config(
    checkpoint: str | Path,
    *,
    total_timesteps: int | None = None,
    extend: int | None = None,
    algo: str | None = None,
    env_id: str | None = None,
    seed: int | None = None,
    params: Mapping[str, Any] | None = None,
    **settings: Unpack[RunSettings],
) -> dict[str, Any]:
    """A run config that goes on from a full checkpoint, from the newest one of a run, or from a model file.

    It is a new run. Without `total_timesteps` or `extend`, which adds to the old budget, it finishes what was
    begun. `algo` and `env_id` are needed only for a model file that does not say what it is of.
    """
    worker, catalog = resuming_worker(settings.get("worker_type"))
    facts = catalog.checkpoint(str(checkpoint), _folder(settings))
    if extend is not None:
        if total_timesteps is not None:
            raise UserError("Give total_timesteps or extend, not both.")
        if facts.total_timesteps is None:
            raise UserError(f"{facts.path} has no budget that could be extended: give total_timesteps.")
        total_timesteps = facts.total_timesteps + extend
    algo = algo or facts.algo
    if facts.step is None and total_timesteps is None and algo is not None:
        total_timesteps = catalog.default_timesteps(algo)
    extras: dict[str, Any] = {"algo_params": dict(params)} if params else {}
    extras |= {"mode": RESUMES, "checkpoint_path": str(checkpoint)}
    asked = {"algo": algo, "env_id": env_id, "total_timesteps": total_timesteps, "seed": seed}
    return _checked(worker, asked, extras, settings)


def again_config(config: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """The config of an earlier run as it was before the run's id was filled in, to be submitted again."""
    return {key: _forget(value, run_id) for key, value in config.items()}


def _forget(value: Any, run_id: str) -> Any:
    if isinstance(value, str):
        return value.replace(run_id, "${RUN_ID}")
    if isinstance(value, Mapping):
        return {key: _forget(item, run_id) for key, item in value.items()}
    if isinstance(value, list):
        return [_forget(item, run_id) for item in value]
    return value


def settings_of(run: RunRecord) -> dict[str, Any]:
    """All that decides what a run learns, by name; values that differ in the run's id alone are the same."""
    asked = run.worker_config
    extras = asked.get("extras") or {}
    params = extras.get("algo_params") or {}
    plain = {
        "worker": run.worker_type,
        "python": run.python,
        "algo": asked.get("algo"),
        "env_id": asked.get("env_id"),
        "total_timesteps": asked.get("total_timesteps"),
        "seed": extras.get("seed_override", asked.get("seed")),
        "mode": run.mode,
    }
    others = {name: value for name, value in extras.items() if not is_neutral(name) and value is not None}
    return again_config({**plain, **others, **params}, run.run_id)


def eval_config(
    policy: str | Path,
    *,
    episodes: int | None = None,
    batch_size: int | None = None,
    repeat: bool = False,
    deterministic: bool = True,
    gamma: float | None = None,
    seed: int | None = None,
    env_id: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    algo: str | None = None,
    capture_video: bool = False,
    num_envs: int | None = None,
    max_episode_steps: int | None = None,
    max_seconds: float | None = None,
    var: Path | None = None,
    **settings: Unpack[RunSettings],
) -> dict[str, Any]:
    """A run config that evaluates a policy: a model file, a full checkpoint, or a run's newest one.

    A run is named by its folder, its id, the beginning of one or `last`; with `:best` after the name its best
    policy is taken. Algorithm, environment and seed are the policy's own unless given here. Episode n starts
    from 1,000,000 + seed + n, so that evaluations with one seed can be compared.
    """
    worker, catalog = evaluating_worker(settings.get("worker_type"))
    found = catalog.policy(str(policy), _folder(settings), choose_var(var))
    how = {
        "eval_episodes": episodes,
        "eval_batch_size": batch_size,
        "eval_repeat": repeat or None,
        "eval_capture_video": capture_video or None,
        "deterministic": None if deterministic else False,
        "gamma": gamma,
        "num_envs": num_envs,
        "max_episode_steps": max_episode_steps,
        "max_seconds": max_seconds,
        "env_kwargs": None if env_kwargs is None else dict(env_kwargs),
    }
    extras: dict[str, Any] = {name: value for name, value in how.items() if value is not None}
    extras |= {"mode": EVALUATES, "policy_path": found.path}
    config = _checked(worker, {"algo": algo, "env_id": env_id, "seed": seed}, extras, settings)
    if settings.get("run_name") is None:
        config["run_name"] = f"eval-{config['run_name']}"
    return config


def list_policies(var: Path | None = None) -> list[PolicyFacts]:
    """Every model and full checkpoint under the var folder, of the newest run first."""
    return list(each_policy(var))


def each_policy(var: Path | None = None, run: str = "") -> Iterator[PolicyFacts]:
    """The same one by one, as they are found; with `run` only of runs whose id begins so."""
    place = choose_var(var)
    for _, catalog in _workers():
        if isinstance(catalog, PolicyCatalog):
            yield from catalog.policies(place, run)


def evaluating_worker(worker_type: str | None = None) -> tuple[WorkerCapabilities, PolicyCatalog]:
    """The installed worker that can play policies, with its catalog."""
    for worker, catalog in _workers(worker_type):
        if isinstance(catalog, PolicyCatalog):
            return worker, catalog
    raise UserError("No worker is installed that can evaluate a policy: run `./mosaic doctor`.")


def resuming_worker(worker_type: str | None = None) -> tuple[WorkerCapabilities, ResumingCatalog]:
    """The installed worker that can go on from checkpoints, with its catalog."""
    for worker, catalog in _workers(worker_type):
        if isinstance(catalog, ResumingCatalog):
            return worker, catalog
    raise UserError("No worker is installed that can resume a run: run `./mosaic doctor`.")


def _workers(worker_type: str | None = None) -> Iterator[tuple[WorkerCapabilities, WorkerCatalog]]:
    for name, worker in sorted(discover_workers().items()):
        if worker.catalog and worker_type in (None, name):
            yield worker, worker.load_catalog()


def check_config(config: dict[str, Any], catalog: WorkerCatalog, folder: Path) -> None:
    """Have a run config checked by its worker: typed values take their places in it, and what was found
    stays with the run."""
    request, ui = config["metadata"]["worker"], config["metadata"]["ui"]
    ui.pop("checked", None)
    if isinstance(catalog, ExaminingCatalog):
        request["config"], ui["checked"] = catalog.examine(request["config"], request["python"], folder)
    else:
        request["config"] = catalog.check(request["config"], request["python"], folder)


def _folder(settings: RunSettings) -> Path:
    return (settings.get("folder") or Path.cwd()).resolve()


def _checked(
    worker: WorkerCapabilities, asked: Mapping[str, Any], extras: Mapping[str, Any], settings: RunSettings
) -> dict[str, Any]:
    """The whole run config around what a worker is asked for, once that worker has checked it."""
    folder, python, run_name = _folder(settings), settings.get("python"), settings.get("run_name")
    # The folders that the caller's PYTHONPATH names, as they are seen from anywhere.
    named = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    python_path = os.pathsep.join([str(folder), *map(os.path.abspath, named)])
    all_extras = {**(settings.get("extras") or {}), **extras}
    request = {
        "type": worker.worker_type,
        "python": python,
        "config": {"run_id": "${RUN_ID}", **asked, "extras": all_extras},
    }
    said = {
        "environment": dict(settings.get("environment") or {}),
        "secrets": list(settings.get("secrets", ())),
        "plain": list(settings.get("plain", ())),
    }
    # What is checked and told of has no secrets in it.
    config = set_secrets_apart(
        {
            "run_name": run_name,
            "resources": {"cpus": settings.get("cpus", 1)},
            "tags": list(settings.get("tags", ())),
            **{name: value for name, value in said.items() if value},
            "metadata": {"worker": request, "ui": {"python_path": python_path}},
        }
    )
    request = config["metadata"]["worker"]
    check_config(config, worker.load_catalog(), folder)
    checked = request["config"]
    parts = [Path(checked["algo"]).stem, checked["env_id"]]
    name = "-".join(part for part in parts if part != NO_ENVIRONMENT)
    config["run_name"] = run_name or name.replace("/", "-").replace(":", "-").lower()
    return config
