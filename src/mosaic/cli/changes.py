"""What the options say about a run, as parts of its config."""

from __future__ import annotations

import argparse
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mosaic.cli import values
from mosaic.cli.program import program
from mosaic.contract.capabilities import WorkerCatalog
from mosaic.contract.errors import UserError
from mosaic.contract.run_config import validate_train_run_config
from mosaic.contract.secrets import set_secrets_apart
from mosaic.contract.workers import find_worker

Config = dict[str, Any]

_JSON_WORDS = {"true": True, "false": False, "null": None}


def changed(config: Config, args: argparse.Namespace) -> Config:
    """A config with what the options say on top, checked by its worker."""
    request = config["metadata"]["worker"]
    worker = find_worker(request["type"])
    catalog = worker.load_catalog() if worker.catalog else None
    asked = _changed_worker(request["config"], args, catalog)
    if ((config.get("artifacts") or {}).get("wandb") or {}).get("enabled"):
        asked = worker.told_to_track(asked)
    request["config"] = asked
    request["python"] = interpreter_of(args) or request.get("python")
    for name, said in declared_of(args).items():
        old = config.get(name) or type(said)()
        config[name] = {**old, **said} if isinstance(said, dict) else list(dict.fromkeys([*old, *said]))
    config = set_secrets_apart(config)
    request = config["metadata"]["worker"]
    config["tags"] = list(dict.fromkeys([*config["tags"], *args.tag]))
    config["run_name"] = args.name or config["run_name"]
    add_resources(config, args)
    add_limits(config, args)
    search_path = config["metadata"]["ui"].setdefault("python_path", str(Path.cwd()))
    folder = Path(str(search_path).partition(os.pathsep)[0])
    if catalog:
        request["config"] = catalog.check(request["config"], request["python"], folder)
    validate_train_run_config(config)
    return config


def _changed_worker(asked: Config, args: argparse.Namespace, catalog: WorkerCatalog | None) -> Config:
    # A new run gets an id of its own, also when the file was left by an earlier one.
    changes: Config = {"run_id": "${RUN_ID}"}
    if args.total_timesteps is not None:
        changes["total_timesteps"] = args.total_timesteps
    seed = greatest_seed(args, default=None)
    if seed is not None:
        changes["seed"] = seed
    params = params_of(args, catalog, str(asked.get("algo", "")))
    extras = extras_of(args)
    old = asked.get("extras") or {}
    if params and isinstance(old, dict):
        extras["algo_params"] = _merged(old.get("algo_params"), params)
    return {**asked, **changes, "extras": _merged(old, extras)}


def _merged(old: Any, new: Config) -> Any:
    """Both together; what is no object stays as it is, for the worker to refuse."""
    return {**(old or {}), **new} if isinstance(old or {}, dict) else old


def add_resources(config: Config, args: argparse.Namespace) -> None:
    """What is reserved for the run."""
    resources = config["resources"]
    if args.cpus is not None:
        resources["cpus"] = args.cpus
    if args.memory_mb is not None:
        resources["memory_mb"] = args.memory_mb
    gpus = resources.get("gpus") or {"requested": 0}
    # A run sees only the GPUs that are reserved for it, so to train on one it needs one.
    wanted = max(1, gpus["requested"]) if args.cuda and args.gpus is None else args.gpus
    if wanted is not None:
        gpus = {**gpus, "requested": wanted}
    if args.gpus_mandatory:
        if not gpus["requested"]:
            raise UserError("--gpus-mandatory says how GPUs are reserved: add --gpus N.")
        gpus = {**gpus, "mandatory": True}
    if gpus["requested"] or "gpus" in resources:
        resources["gpus"] = gpus


def add_limits(config: Config, args: argparse.Namespace) -> None:
    """Limits, priority and tracking, which stand beside the worker's config."""
    schedule = config.setdefault("schedule", {})
    if args.max_minutes is not None:
        schedule["max_wallclock_minutes"] = args.max_minutes
    if args.max_restarts is not None:
        schedule["max_restarts"] = args.max_restarts
    if args.priority is not None:
        schedule["priority"] = args.priority
    if args.wandb:
        config.setdefault("artifacts", {})["wandb"] = {"enabled": True}


def params_of(args: argparse.Namespace, catalog: WorkerCatalog | None, algo: str) -> Config:
    """The algorithm's parameters. The worker types those that it knows; of others JSON's words are taken."""
    known = {parameter.name for parameter in catalog.parameters(algo)} if catalog is not None else set()
    pairs = [(name, text if name in known else _JSON_WORDS.get(text, text)) for name, text in args.set]
    return values.settings(pairs)


def extras_of(args: argparse.Namespace) -> Config:
    """The worker's settings."""
    extras = values.settings((name, values.literal(text)) for name, text in args.extra)
    if args.env_kwargs is not None:
        extras["env_kwargs"] = args.env_kwargs
    if args.curriculum is not None:
        extras["curriculum_schedule"] = args.curriculum
    if args.cuda:
        extras["cuda"] = True
    if args.trust:
        extras["trust_modules"] = args.trust
    if args.wandb:
        if args.python is None and find_spec("wandb") is None:
            raise UserError(f"Weights & Biases is not installed: `{program()} extras install wandb`.")
        extras["track_wandb"] = True
    return extras


def declared_of(args: argparse.Namespace) -> Config:
    """The variables of the run, and what is a secret or only looks like one."""
    return {"environment": dict(args.variables), "secrets": args.secrets, "plain": args.plain}


def interpreter_of(args: argparse.Namespace) -> str | None:
    """An absolute path that is not resolved further: a venv's interpreter is a link, and must stay one."""
    if args.python is None:
        return None
    found = shutil.which(os.path.expanduser(args.python))
    if found is None:
        raise UserError(f"--python: '{args.python}' is no program that can be run.")
    return str(Path(found).absolute())


def greatest_seed(args: argparse.Namespace, default: int | None) -> int | None:
    """The seed to check a config with: where this one fits, those of the other runs do."""
    if args.seed is not None and args.seeds is not None:
        raise UserError("Give --seed or --seeds, not both.")
    if args.seeds is not None:
        return int(max(args.seeds))
    return default if args.seed is None else int(args.seed)
